// Requantisation by affine maps in single precision that are proven to give the bits of requantize().
//
// For a given count, q(S) is a step function of the integer S that never falls. So is
// y(S) = round(float(S) * slope + add): every float operation in it is monotone, as rounding is. Both are
// saturated alike. Two such functions that agree on both sides of every step of q agree everywhere: between
// two steps q is constant, and y lies between equal values. So whether a slope will do is found out, not
// estimated; with no add, only those steps are looked at that lie so close to an integer that the float's
// rounding could matter. Where none of a few candidates will do, the formula itself is evaluated.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/lanes.h"

ANYDML_ISA_BEGIN
namespace {

// The affine map float(S) * slope + add, rounded to an integer, half to even, by adding `rounder`: 1.5 * 2^23
// leaves the nearest integer to a float below 2^22 in the sum's low bits. Values beyond stay beyond every
// output.
struct AffineMap {
  static constexpr float kRounder = 0x1.8p23F;

  float slope = 0;
  float add = 0;
  float rounder = kRounder;

  bool is_scale() const { return add == 0 && rounder == kRounder; }
  // The output without the zero point, not yet saturated.
  float rounded(int64_t sum) const { return static_cast<float>(sum) * slope + add + rounder; }
};

// Finds the affine map for one count.
class AffineMapFinder {
 public:
  // The sums are those of `taps` bytes, each less the zero point: below 2^24, so that floats hold them.
  AffineMapFinder(const Quantization& quantization, int64_t count, int64_t taps)
      : z_(quantization),
        count_(count),
        least_(taps * (0 - quantization.input_zero_point)),
        most_(taps * (255 - quantization.input_zero_point)),
        // A slope with these bits clear times a sum is exact.
        exact_bits_(taps <= most_taps(16) ? 0xffff : 0x7fffff) {}

  // Whether there is one. A `thorough` search takes as long as the formula for some 500 outputs.
  bool find(bool thorough, AffineMap& map) const {
    if (count_ == 0) {
      map = {};
      return true;
    }
    const double slope = z_.input_scale / (static_cast<double>(count_) * z_.output_scale);
    if (!(slope > 0)) return false;
    // Not subnormal, which some threads flush to 0; beyond 1024 every sum but 0 saturates.
    if (slope < 0x1p-60) {
      map = {};
      return true;
    }
    map = {.slope = static_cast<float>(std::min(slope, 1024.0))};
    if (is_exact(slope, map.slope) || fits_near_integers(map, slope, 0x1.2p-23)) return true;
    // Ties that the scales' own rounding breaks are broken away from 0, or towards it, by slightly larger or
    // smaller slopes.
    for (const double factor : {1 + 0x1p-21, 1 - 0x1p-21}) {
      map.slope = static_cast<float>(slope * factor);
      if (fits_near_integers(map, slope, 0x1.5p-21)) return true;
    }
    if (!thorough) return false;
    Steps steps;
    find_steps(steps);
    // All sums are kept as far from ties as possible.
    map.slope = static_cast<float>(slope);
    map.add = between_steps(steps, slope);
    if (fits(map, steps)) return true;
    // Values within 2^-9 of a tie, as rounding errors are, become ties.
    map.add = 0x1.8p15F;
    map.rounder = AffineMap::kRounder - map.add;
    return fits(map, steps);
  }

 private:
  // least[i] is the least sum of output base + 1 + i or more.
  struct Steps {
    int64_t base;
    int64_t count = 0;
    int32_t least[255];
  };

  int64_t q(int64_t sum) const { return requantize(sum, count_, z_); }

  int64_t value(const AffineMap& map, int64_t sum) const {
    const float low = AffineMap::kRounder + static_cast<float>(z_.lowest - z_.output_zero_point);
    const float high = AffineMap::kRounder + static_cast<float>(z_.highest - z_.output_zero_point);
    const float y = std::clamp(map.rounded(sum), low, high);
    return static_cast<int64_t>(y - AffineMap::kRounder) + z_.output_zero_point;
  }

  // Whether no operation of the map or of the formula rounds, but that to an integer.
  bool is_exact(double slope, float map) const {
    return map == slope && (std::bit_cast<uint32_t>(map) & exact_bits_) == 0 &&
           slope * (static_cast<double>(count_) * z_.output_scale) == z_.input_scale;
  }

  // Outputs `level` and `level` + 1 part at the sum t = (level - zero point + 0.5) / slope. Where the map
  // and the formula together are off by less than the tolerance, they can only differ within t * tolerance of
  // t.
  bool fits_near_integers(const AffineMap& map, double slope, double tolerance) const {
    const double step = 1 / slope;
    // No sum is beyond this.
    const auto reach = static_cast<double>(std::max(-least_, most_)) + 2;
    if (map.slope == 1024.0F) tolerance = 1;
    for (int64_t level = z_.lowest; level < z_.highest; ++level) {
      const double t = (static_cast<double>(level - z_.output_zero_point) + 0.5) * step;
      const double nearest = (t + 0x1.8p52) - 0x1.8p52;
      if (std::fabs(t - nearest) > std::fabs(t) * tolerance || std::fabs(t) > reach) continue;
      const auto sum = static_cast<int64_t>(nearest);
      const int64_t around = 1 + static_cast<int64_t>(std::fabs(t) * tolerance);
      for (int64_t s = std::max(sum - around, least_); s <= std::min(sum + around, most_); ++s) {
        if (value(map, s) != q(s)) return false;
      }
    }
    return true;
  }

  // The least sum above the least one with an output of at least `level`, if there is one; sought from an
  // estimate, for which any value would do.
  int64_t step_to(int64_t level) const {
    const double estimate = (static_cast<double>(level - z_.output_zero_point) - 0.5) *
                            (static_cast<double>(count_) * z_.output_scale) / z_.input_scale;
    auto sum = static_cast<int64_t>(
        std::fmin(std::fmax(estimate, static_cast<double>(least_)), static_cast<double>(most_)));
    while (sum > least_ && q(sum) >= level) --sum;
    while (sum < most_ && q(sum) < level) ++sum;
    return sum;
  }

  void find_steps(Steps& steps) const {
    steps.base = q(least_);
    const int64_t last = q(most_);
    for (; steps.base + steps.count < last; ++steps.count) {
      steps.least[steps.count] = static_cast<int32_t>(step_to(steps.base + steps.count + 1));
    }
  }

  // The middle of what may be added to S * slope for each step to come neither too late nor too early.
  float between_steps(const Steps& steps, double slope) const {
    double least = -1, most = 1;
    for (int64_t i = 0; i < steps.count; ++i) {
      const double half = static_cast<double>(steps.base + i - z_.output_zero_point) + 0.5;
      least = std::max(least, half - slope * static_cast<double>(steps.least[i]));
      most = std::min(most, half - slope * static_cast<double>(steps.least[i] - 1));
    }
    return static_cast<float>(0.5 * (least + most));
  }

  // Whether the map gives q at both ends and on both sides of every step.
  bool fits(const AffineMap& map, const Steps& steps) const {
    if (value(map, least_) != steps.base || value(map, most_) != q(most_)) return false;
    for (int64_t i = 0; i < steps.count; ++i) {
      for (int64_t s = steps.least[i] - 1; s <= steps.least[i]; ++s) {
        if (value(map, s) != q(s)) return false;
      }
    }
    return true;
  }

  const Quantization& z_;
  int64_t count_;
  int64_t least_, most_;
  uint32_t exact_bits_;
};

}  // namespace
ANYDML_ISA_END
