// The weights of a block of keys by online softmax: of each row, the largest score so far, and the sum of the
// exponentials of what lies below it, which are rescaled where a block has a larger one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention/tuning.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"

ANYDML_ISA_BEGIN

struct Rows {
  alignas(64) std::array<double, kMostRows> largest;
  alignas(64) std::array<double, kMostRows> sums;
  alignas(64) std::array<float, kMostRows> factors;  // of what was summed before
  alignas(64) std::array<double, kMostRows> seen;    // keys of the block, the first of them
};

// What is added to the scores of a block: for each key, and for each key and row.
struct Added {
  alignas(64) std::array<double, kKeys> of_key;
  alignas(64) std::array<double, kKeys * kMostRows> of_score;
  bool by_score;
};

ANYDML_INLINE Doubles doubles_at(const double* from) {
  Doubles x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}
ANYDML_INLINE void put_doubles(double* to, Doubles x) { std::memcpy(to, &x, sizeof(x)); }

// 2^((x - shift) / ln 2), rounded to singles, of which it leaves 0 where the exponential is below them.
ANYDML_INLINE void put_exponentials(float* to, Doubles x, Doubles shift) {
  store_numbers<float, double>(reinterpret_cast<std::byte*>(to), exp2_of((x - shift) * kLog2E));
}
ANYDML_INLINE Doubles widened_at(const float* from) {
  return load_numbers<float, double, Doubles>(reinterpret_cast<const std::byte*>(from));
}

// In place of products of queries and keys, `weights` has the weights after it: rows lie side by side, keys
// `width` apart. kParts: whether rows see but a part of the keys.
template <bool kByScore, bool kParts>
void weigh(float* weights, int64_t width, int64_t keys, double scale, const Added& added, Rows& rows) {
  constexpr auto kLanes = static_cast<int64_t>(sizeof(Doubles) / sizeof(double));
  std::array<Doubles, kKeys> scores;
  for (int64_t r = 0; r < width; r += kLanes) {
    const Doubles before = doubles_at(rows.largest.data() + r);
    const Doubles seen = doubles_at(rows.seen.data() + r);
    Doubles largest = before;
    for (int64_t j = 0; j < keys; ++j) {
      Doubles score = widened_at(weights + j * width + r) * scale + added.of_key[static_cast<size_t>(j)];
      if constexpr (kByScore) score = score + doubles_at(added.of_score.data() + j * width + r);
      if constexpr (kParts) score = seen > static_cast<double>(j) ? score : Doubles{} - kInfinity;
      scores[static_cast<size_t>(j)] = score;
      // Of a NaN and a number, the number: the weight will be NaN.
      largest = lane_max<double>(score, largest);
    }
    // Nothing can be subtracted from minus infinities, whose weights are 0 as long as nothing else comes.
    const Doubles shift = largest == -kInfinity ? Doubles{} : largest;
    put_exponentials(rows.factors.data() + r, before, shift);
    Doubles sum = doubles_at(rows.sums.data() + r) * widened_at(rows.factors.data() + r);
    for (int64_t j = 0; j < keys; ++j) {
      float* const weight = weights + j * width + r;
      put_exponentials(weight, scores[static_cast<size_t>(j)], shift);
      sum = sum + widened_at(weight);
    }
    put_doubles(rows.largest.data() + r, largest);
    put_doubles(rows.sums.data() + r, sum);
  }
}

ANYDML_ISA_END
