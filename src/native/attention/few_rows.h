// The weights of a few rows, as of a query at a time: keys are lanes, so that none is idle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention/tuning.h"
#include "attention/weights.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// The sum of x[i] * y[i] in kWidest lanes, which are then added by halves.
ANYDML_INLINE float dot(const float* x, const std::byte* y, int64_t count) {
  constexpr auto kLanes = static_cast<int64_t>(sizeof(Singles) / sizeof(float));
  constexpr int64_t kVectors = kWidest / kLanes;
  Singles sums[kVectors]{};
  int64_t i = 0;
  for (; i + kWidest <= count; i += kWidest) {
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) {
      Singles a;
      Singles b;
      std::memcpy(&a, x + i + v * kLanes, sizeof(Singles));
      std::memcpy(&b, y + (i + v * kLanes) * static_cast<int64_t>(sizeof(float)), sizeof(Singles));
      sums[v] = sums[v] + a * b;
    }
  }
  float lanes[kWidest];
  std::memcpy(lanes, sums, sizeof(lanes));
  for (float* lane = lanes; i < count; ++i, ++lane) {
    *lane += x[i] * load<float>(y + i * static_cast<int64_t>(sizeof(float)));
  }
#pragma GCC unroll 4
  for (int64_t half = kWidest / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  }
  return lanes[0];
}

// As `weigh`, of one row, whose keys lie side by side, kKeys of them: those from `seen` on have no weight.
template <bool kByScore>
void weigh_row(float* weights, int64_t seen, double scale, const Added& added, size_t row, Rows& rows) {
  constexpr auto kLanes = static_cast<int64_t>(sizeof(Doubles) / sizeof(double));
  constexpr double kNone = -kInfinity;
  std::array<Doubles, kKeys / kLanes> scores;
  std::array<double, static_cast<size_t>(kLanes)> lanes;
  for (int64_t k = 0; k < kLanes; ++k) lanes[static_cast<size_t>(k)] = static_cast<double>(k);
  const Doubles left = static_cast<double>(seen) - doubles_at(lanes.data());
  Doubles most = Doubles{} + kNone;
  for (int64_t j = 0; j < kKeys; j += kLanes) {
    Doubles score = widened_at(weights + j) * scale + doubles_at(added.of_key.data() + j);
    if constexpr (kByScore) {
      score = score + doubles_at(added.of_score.data() + static_cast<int64_t>(row) * kKeys + j);
    }
    score = left > static_cast<double>(j) ? score : Doubles{} + kNone;
    scores[static_cast<size_t>(j / kLanes)] = score;
    most = lane_max<double>(score, most);
  }
  put_doubles(lanes.data(), most);
  const double before = rows.largest[row];
  double largest = before;
  for (const double lane : lanes) largest = lane > largest ? lane : largest;
  const Doubles shift = Doubles{} + (largest == kNone ? 0.0 : largest);
  std::array<float, static_cast<size_t>(kLanes)> factors;
  put_exponentials(factors.data(), Doubles{} + before, shift);
  for (int64_t j = 0; j < kKeys; j += kLanes) {
    put_exponentials(weights + j, scores[static_cast<size_t>(j / kLanes)], shift);
  }
  double sum = rows.sums[row] * factors[0];
  for (int64_t j = 0; j < seen; ++j) sum += weights[j];
  rows.factors[row] = factors[0];
  rows.largest[row] = largest;
  rows.sums[row] = sum;
}

ANYDML_ISA_END
