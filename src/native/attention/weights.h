// The weights of a block of keys by online softmax: of each row, the largest score so far, and the sum of the
// exponentials of what lies below it, which are rescaled where a block has a larger one.
//
// With u = product * scale + bias and the mask m, which is 0 or the filter's value, the score is u + m, and
// its weight e^(u + (m - largest)). Masked by -10000, a score in single precision would have lost most of u;
// the difference has not, and whether the largest is rounded does not matter to a softmax.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attention/tuning.h"
#include "dense/tile.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kSingleLanes = sizeof(Singles) / sizeof(float);
inline constexpr float kNoScore = -std::numeric_limits<float>::infinity();

struct Rows {
  alignas(64) std::array<float, kBlockRows> largest;
  alignas(64) std::array<float, kBlockRows> sums;
  alignas(64) std::array<float, kBlockRows> factors;  // of what was summed before
  alignas(64) std::array<float, kBlockRows> seen;     // keys of the block, the first of them
};

// What is added to the scores of a block: to those of each key, or of each key and row.
enum class Adds : uint8_t { kNothing, kByKey, kByScore };
struct Added {
  static constexpr int64_t kScores = kKeys * (kPanel > kFewRows ? kPanel : kFewRows);

  Adds adds;
  alignas(64) std::array<float, kKeys> key_bias;
  alignas(64) std::array<float, kKeys> key_mask;
  alignas(64) std::array<float, kScores> bias;
  alignas(64) std::array<float, kScores> mask;
};

ANYDML_INLINE Singles singles_at(const float* from) {
  Singles x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}
ANYDML_INLINE void put_singles(float* to, Singles x) { std::memcpy(to, &x, sizeof(x)); }

// e^x, and 0 where that is no normal number. Only of huge scores, by rounding, is x much above 0.
ANYDML_INLINE Singles weight_of(Singles x) {
  const auto e = single_exponential(lane_min<float>(singles(1), x));
  const Singles scale = e.scale(0);
  const Singles y = multiply_add(scale, e.part.high, scale);
  return x < -87.0f ? Singles{} : y;
}

// Nothing can be subtracted from minus infinities, whose weights are 0 as long as nothing else comes.
ANYDML_INLINE Singles shift_of(Singles largest) { return largest == kNoScore ? Singles{} : largest; }

// In place of products of queries and keys, `weights` has the weights after it: `width` rows lie side by
// side, those from `row` on. kParts: whether rows see but a part of the keys.
template <Adds kAdds, bool kParts>
ANYDML_NOINLINE void weigh(float* weights, int64_t width, int64_t keys, float scale, const Added& added,
                           int64_t row, Rows& rows) {
  const auto bias = [&](int64_t at, int64_t j) {
    if constexpr (kAdds == Adds::kByScore) return singles_at(added.bias.data() + at);
    return singles(kAdds == Adds::kByKey ? added.key_bias[static_cast<size_t>(j)] : 0.0f);
  };
  const auto mask = [&](int64_t at, int64_t j) {
    if constexpr (kAdds == Adds::kByScore) return singles_at(added.mask.data() + at);
    return singles(kAdds == Adds::kByKey ? added.key_mask[static_cast<size_t>(j)] : 0.0f);
  };
  const Singles factor = singles(scale);
  for (int64_t r = 0; r < width; r += kSingleLanes) {
    const Singles before = singles_at(rows.largest.data() + row + r);
    const Singles seen = singles_at(rows.seen.data() + row + r);
    const auto score = [&](int64_t j) {
      float* const at = weights + j * width + r;
      const Singles u = multiply_add(singles_at(at), factor, bias(j * width + r, j));
      put_singles(at, u);
      const Singles all = kAdds == Adds::kNothing ? u : u + mask(j * width + r, j);
      if constexpr (kParts) return seen > static_cast<float>(j) ? all : singles(kNoScore);
      return all;
    };
    // Of a NaN and a number, the number: the weight will be NaN. Two, as one would wait for itself.
    Singles largest = before;
    Singles other = before;
    int64_t j = 0;
    for (; j + 2 <= keys; j += 2) {
      largest = lane_max<float>(score(j), largest);
      other = lane_max<float>(score(j + 1), other);
    }
    if (j < keys) largest = lane_max<float>(score(j), largest);
    largest = lane_max<float>(other, largest);
    const Singles shift = shift_of(largest);
    Singles sum{};
    for (j = 0; j < keys; ++j) {
      float* const at = weights + j * width + r;
      Singles weight = weight_of(singles_at(at) + (mask(j * width + r, j) - shift));
      if constexpr (kParts) weight = seen > static_cast<float>(j) ? weight : Singles{};
      put_singles(at, weight);
      sum = sum + weight;
    }
    const Singles rescaled = weight_of(before - shift);
    put_singles(rows.factors.data() + row + r, rescaled);
    put_singles(rows.largest.data() + row + r, largest);
    put_singles(rows.sums.data() + row + r,
                multiply_add(singles_at(rows.sums.data() + row + r), rescaled, sum));
  }
}

using Weigh = void (*)(float*, int64_t, int64_t, float, const Added&, int64_t, Rows&);
inline Weigh weigh_for(Adds adds, bool is_part) {
  if (adds == Adds::kByScore) return is_part ? weigh<Adds::kByScore, true> : weigh<Adds::kByScore, false>;
  if (adds == Adds::kByKey) return is_part ? weigh<Adds::kByKey, true> : weigh<Adds::kByKey, false>;
  return is_part ? weigh<Adds::kNothing, true> : weigh<Adds::kNothing, false>;
}

ANYDML_ISA_END
