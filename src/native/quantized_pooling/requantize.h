// From sums to outputs, many at a time, with the bits of requantize().
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

// float(S) * slope + add, rounded to an integer, half to even, by adding `rounder`: 1.5 * 2^23 leaves the
// nearest integer to a float below 2^22 in the sum's low bits. Values beyond stay beyond every output.
struct Line {
  static constexpr float kRounder = 0x1.8p23F;

  float slope = 0;
  float add = 0;
  float rounder = kRounder;

  bool plain() const { return add == 0 && rounder == kRounder; }
  // Without the zero point, and not yet saturated.
  float rounded(int64_t sum) const { return static_cast<float>(sum) * slope + add + rounder; }
};

// Finds the line for one count.
class LineFinder {
 public:
  // The sums are those of `taps` bytes, each less the zero point: below 2^24, so that floats hold them.
  LineFinder(const Quantization& quantization, int64_t count, int64_t taps)
      : z_(quantization),
        count_(count),
        least_(taps * (0 - quantization.input_zero_point)),
        most_(taps * (255 - quantization.input_zero_point)),
        // So many bits of a slope times a sum are exact.
        exact_bits_(taps <= 257 ? 0xffff : 0x7fffff) {}

  // Whether there is one. `thorough`: a search is worth as much as some 500 outputs.
  bool find(bool thorough, Line& line) const {
    if (count_ == 0) {
      line = {};
      return true;
    }
    const double slope = z_.input_scale / (static_cast<double>(count_) * z_.output_scale);
    if (!(slope > 0)) return false;
    // Not subnormal, which some threads flush to 0; beyond 1024 every sum but 0 saturates.
    if (slope < 0x1p-60) {
      line = {};
      return true;
    }
    line = {.slope = static_cast<float>(std::min(slope, 1024.0))};
    if (is_exact(slope, line.slope) || fits_near_integers(line, slope, 0x1.2p-23)) return true;
    // Ties that the scales' own rounding breaks are broken away from 0, or towards it, by some more of it.
    for (const double factor : {1 + 0x1p-21, 1 - 0x1p-21}) {
      line.slope = static_cast<float>(slope * factor);
      if (fits_near_integers(line, slope, 0x1.5p-21)) return true;
    }
    if (!thorough) return false;
    Steps steps;
    find_steps(steps);
    // All sums are kept as far from ties as can be.
    line.slope = static_cast<float>(slope);
    line.add = between_steps(steps, slope);
    if (fits(line, steps)) return true;
    // What is within 2^-9 of a tie, as errors of rounding are, becomes one.
    line.add = 0x1.8p15F;
    line.rounder = Line::kRounder - line.add;
    return fits(line, steps);
  }

 private:
  // least[i] is the least sum of output base + 1 + i or more.
  struct Steps {
    int64_t base;
    int64_t count = 0;
    int32_t least[255];
  };

  int64_t q(int64_t sum) const { return requantize(sum, count_, z_); }

  int64_t value(const Line& line, int64_t sum) const {
    const float low = Line::kRounder + static_cast<float>(z_.lowest - z_.output_zero_point);
    const float high = Line::kRounder + static_cast<float>(z_.highest - z_.output_zero_point);
    const float y = std::clamp(line.rounded(sum), low, high);
    return static_cast<int64_t>(y - Line::kRounder) + z_.output_zero_point;
  }

  // Whether no operation rounds, neither the line's nor the formula's, but to an integer.
  bool is_exact(double slope, float line) const {
    return line == slope && (std::bit_cast<uint32_t>(line) & exact_bits_) == 0 &&
           slope * (static_cast<double>(count_) * z_.output_scale) == z_.input_scale;
  }

  // Outputs `level` and `level` + 1 part at the sum t = (level - zero point + 0.5) / slope. Where the line
  // and the formula together are off by less than the tolerance, they can only differ within t * tolerance of
  // t.
  bool fits_near_integers(const Line& line, double slope, double tolerance) const {
    const double step = 1 / slope;
    // Sums beyond this are none.
    const auto reach = static_cast<double>(std::max(-least_, most_)) + 2;
    if (line.slope == 1024.0F) tolerance = 1;
    for (int64_t level = z_.lowest; level < z_.highest; ++level) {
      const double t = (static_cast<double>(level - z_.output_zero_point) + 0.5) * step;
      const double nearest = (t + 0x1.8p52) - 0x1.8p52;
      if (std::fabs(t - nearest) > std::fabs(t) * tolerance || std::fabs(t) > reach) continue;
      const auto sum = static_cast<int64_t>(nearest);
      const int64_t around = 1 + static_cast<int64_t>(std::fabs(t) * tolerance);
      for (int64_t s = std::max(sum - around, least_); s <= std::min(sum + around, most_); ++s) {
        if (value(line, s) != q(s)) return false;
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

  // Whether the line gives q at both ends and on both sides of every step.
  bool fits(const Line& line, const Steps& steps) const {
    if (value(line, least_) != steps.base || value(line, most_) != q(most_)) return false;
    for (int64_t i = 0; i < steps.count; ++i) {
      for (int64_t s = steps.least[i] - 1; s <= steps.least[i]; ++s) {
        if (value(line, s) != q(s)) return false;
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
