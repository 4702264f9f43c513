// The weights of a few rows, as of a query at a time: keys are lanes, so that none is idle.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "attention/tuning.h"
#include "attention/weights.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Vectors of kWidest lanes.
inline constexpr int64_t kWide = kWidest / kSingleLanes;

// The sums of the upper and the lower halves of groups of 2 * kHalf lanes, those of a before those of b.
template <int kHalf>
ANYDML_INLINE Singles added_halves(Singles a, Singles b) {
#if defined(ANYDML_VECTORS)
  constexpr int kLanes = static_cast<int>(kSingleLanes);
  constexpr auto place = [](int lane) {
    const int group = lane / kHalf;
    const int groups = kLanes / (2 * kHalf);
    return (group < groups ? 0 : kLanes) + group % groups * 2 * kHalf + lane % kHalf;
  };
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(a, b, place(kLane)...) +
           __builtin_shufflevector(a, b, (place(kLane) + kHalf)...);
  }(std::make_integer_sequence<int, kLanes>{});
#else
  return a + b;
#endif
}

// The sums of the lanes of as many vectors as one has lanes, by halves: vector i's in lane i.
template <int kHalf>
ANYDML_INLINE void add_lanes(Singles* vectors) {
  if constexpr (kHalf > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < kHalf; ++i) vectors[i] = added_halves<kHalf>(vectors[2 * i], vectors[2 * i + 1]);
    add_lanes<kHalf / 2>(vectors);
  }
}

// kWidest lanes as those of one vector, by halves.
ANYDML_INLINE Singles folded(const Singles* wide) {
  Singles sums[kWide];
#pragma GCC unroll 16
  for (int64_t v = 0; v < kWide; ++v) sums[v] = wide[v];
#pragma GCC unroll 4
  for (int64_t half = kWide / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < half; ++v) sums[v] = sums[v] + sums[v + half];
  }
  return sums[0];
}

// The products of a query, which has zeros behind it, and some keys: element i of all is in lane i % kWidest.
template <int kCount>
ANYDML_INLINE void multiply_keys(const float* query, const std::byte* const* keys, int64_t depth,
                                 Singles* products) {
  Singles sums[kCount][kWide]{};
  const auto add = [&](const float* x, int64_t k, const std::byte* y) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < kWide; ++v) {
      Singles b;
      std::memcpy(&b, y + v * static_cast<int64_t>(sizeof(Singles)), sizeof(Singles));
      sums[k][v] = multiply_add(singles_at(x + v * kSingleLanes), b, sums[k][v]);
    }
  };
  int64_t i = 0;
  for (; i + kWidest <= depth; i += kWidest) {
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) add(query + i, k, keys[k] + i * static_cast<int64_t>(sizeof(float)));
  }
  if (i < depth) {
    // Behind a key there may be nothing.
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) {
      std::byte last[kWidest * sizeof(float)]{};
      std::memcpy(last, keys[k] + i * static_cast<int64_t>(sizeof(float)),
                  static_cast<size_t>(depth - i) * sizeof(float));
      add(query + i, k, last);
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < kCount; ++k) products[k] = folded(sums[k]);
}

// out[j] += the product of a query with key j of `count`; out has room for kKeys.
ANYDML_NOINLINE void add_products(const float* query, const std::byte* keys, int64_t step, int64_t count,
                                  int64_t depth, float* out) {
  constexpr int kAtOnce = static_cast<int>(std::min<int64_t>(kSingleLanes, kWide == 1 ? 8 : 4));
  for (int64_t first = 0; first < count; first += kSingleLanes) {
    Singles products[kSingleLanes];
    for (int64_t k = 0; k < kSingleLanes; k += kAtOnce) {
      const std::byte* some[kAtOnce];
      for (int64_t i = 0; i < kAtOnce; ++i) some[i] = keys + std::min(first + k + i, count - 1) * step;
      multiply_keys<kAtOnce>(query, some, depth, products + k);
    }
    add_lanes<static_cast<int>(kSingleLanes / 2)>(products);
    put_singles(out + first, singles_at(out + first) + products[0]);
  }
}

// As `weigh`, of one row, whose keys lie side by side, kKeys of them: those from `seen` on have no weight.
template <Adds kAdds>
void weigh_row(float* weights, int64_t seen, float scale, const Added& added, int64_t row, Rows& rows) {
  static_assert(kKeys % kWidest == 0);
  const auto number = static_cast<size_t>(row);
  const float* const bias = kAdds == Adds::kByScore ? added.bias.data() + row * kKeys : added.key_bias.data();
  const float* const mask = kAdds == Adds::kByScore ? added.mask.data() + row * kKeys : added.key_mask.data();
  const auto at = [&](const float* numbers, int64_t j) {
    return kAdds == Adds::kNothing ? Singles{} : singles_at(numbers + j);
  };
  std::array<float, kSingleLanes> lanes;
  for (int64_t k = 0; k < kSingleLanes; ++k) lanes[static_cast<size_t>(k)] = static_cast<float>(k);
  const Singles left = static_cast<float>(seen) - singles_at(lanes.data());
  Singles most = singles(kNoScore);
  for (int64_t j = 0; j < kKeys; j += kSingleLanes) {
    const Singles u = multiply_add(singles_at(weights + j), singles(scale), at(bias, j));
    put_singles(weights + j, u);
    const Singles score = left > static_cast<float>(j) ? u + at(mask, j) : singles(kNoScore);
    most = lane_max<float>(score, most);
  }
  put_singles(lanes.data(), most);
  const float before = rows.largest[number];
  float largest = before;
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  const Singles shift = shift_of(singles(largest));
  Singles sums[kWide]{};
  for (int64_t j = 0; j < kKeys; j += kWidest) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < kWide; ++v) {
      const int64_t i = j + v * kSingleLanes;
      const Singles weight = weight_of(singles_at(weights + i) + (at(mask, i) - shift));
      const Singles kept = left > static_cast<float>(i) ? weight : Singles{};
      put_singles(weights + i, kept);
      sums[v] = sums[v] + kept;
    }
  }
  Singles all[kSingleLanes]{folded(sums)};
  add_lanes<static_cast<int>(kSingleLanes / 2)>(all);
  const Singles factor = weight_of(singles(before) - shift);
  put_singles(lanes.data(), factor);
  rows.factors[number] = lanes[0];
  rows.largest[number] = largest;
  put_singles(lanes.data(), multiply_add(singles(rows.sums[number]), factor, all[0]));
  rows.sums[number] = lanes[0];
}

ANYDML_ISA_END
