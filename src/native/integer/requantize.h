// Exact requantisation: round(sum * factor / scale), a quotient of exact numbers, halves to the even integer.
//
// A quotient in double precision is off by less than 2^-51 of itself, and so says the integer next to the
// exact one wherever it is not as close to a half. There the half is compared exactly: sum * factor, as the
// sum of two doubles, with half * scale, which is exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// What an output is computed by; of a row, of which the factor may have one value for each column.
struct Scaling {
  double scale;  // of the output
  int64_t zero_point;
  int64_t lowest;
  int64_t highest;
};

constexpr int64_t kRequantizedAtOnce = 64;
// Added to a double below 2^51, it leaves the nearest integer in the sum.
constexpr double kRounder = 0x1.8p52;
// Beyond every output, whatever its zero point.
constexpr double kFar = 1024;
constexpr double kNearHalf = 0.5 - 0x1p-40;

// `nearest` is the quotient rounded, and `rest` what it was rounded by.
inline double settled(double sum, double factor, double scale, double nearest, double rest) {
  const double step = rest < 0 ? -1 : 1;
  const double high = sum * factor;
  const double low = std::fma(sum, factor, -high);
  const double beyond = ((high - (nearest + step / 2) * scale) + low) * (scale < 0 ? -step : step);
  const bool is_odd = std::fmod(nearest, 2) != 0;
  return beyond > 0 || (beyond == 0 && is_odd) ? nearest + step : nearest;
}

// outputs[i] = clamp(round(sums[i] * factors[i] / scale) + zero point), for at most kRequantizedAtOnce of
// them. `slopes` are factors / scale. Where they are exact, and so are products by them, no half is doubtful.
template <class Out>
void requantize(const double* sums, const double* factors, const double* slopes, bool is_exact,
                const Scaling& scaling, int64_t count, Out* outputs) {
  double nearest[kRequantizedAtOnce];
  double rests[kRequantizedAtOnce];
  int64_t are_near = 0;
  for (int64_t i = 0; i < count; ++i) {
    double quotient = sums[i] * slopes[i];
    // NaN, which compares with nothing, is 0.
    quotient = quotient == quotient ? quotient : 0.0;
    quotient = quotient < kFar ? quotient : kFar;
    quotient = quotient > -kFar ? quotient : -kFar;
    nearest[i] = (quotient + kRounder) - kRounder;
    rests[i] = quotient - nearest[i];
    const double distance = rests[i] < 0 ? -rests[i] : rests[i];
    are_near |= static_cast<int64_t>(distance >= kNearHalf);
  }
  if (are_near != 0 && !is_exact) {
    for (int64_t i = 0; i < count; ++i) {
      if (std::fabs(rests[i]) < kNearHalf) continue;
      nearest[i] = settled(sums[i], factors[i], scaling.scale, nearest[i], rests[i]);
    }
  }
  const auto zero_point = static_cast<double>(scaling.zero_point);
  const auto lowest = static_cast<double>(scaling.lowest);
  const auto highest = static_cast<double>(scaling.highest);
  for (int64_t i = 0; i < count; ++i) {
    double y = nearest[i] + zero_point;
    y = y > lowest ? y : lowest;
    y = y < highest ? y : highest;
    outputs[i] = static_cast<Out>(static_cast<int32_t>(y));
  }
}

// Whether a slope is exact, and its products by integers of 33 bits are: it has at most 20.
inline bool is_short(double slope, double factor, double scale) {
  return slope * scale == factor && (std::bit_cast<uint64_t>(slope) & ((uint64_t{1} << 33) - 1)) == 0 &&
         slope - slope == 0;
}

}  // namespace
ANYDML_ISA_END
