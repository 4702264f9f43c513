// From sums to outputs, many at a time, with the bits of requantize().
//
// For a given count, q(S) is a step function of the integer S that never falls, and has at most 255 steps. So
// has y(S) = round(float(S) * slope + add): every float operation in it is monotone, as rounding
// is. Two such functions that agree on both sides of every step of q agree everywhere: between two steps q is
// constant, and y lies between equal values. So whether a slope will do is found out, not estimated, by
// comparing both functions at no more than 511 sums, however large the window. Where none of a few candidates
// will do, a table of q(S) is written from the same steps; where that would be too large, and where there are
// too few outputs to be worth either, the formula itself is evaluated for each.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "isa.h"
#include "pooling_geometry.h"
#include "pooling_lanes.h"

ANYDML_ISA_BEGIN
namespace {

// float(S) * slope + add, rounded to an integer, half to even, by adding `rounder`: 1.5 * 2^23 leaves the
// nearest integer to a float below 2^22 in the sum's low bits. The output's byte is the low byte of that,
// plus that of the zero point.
struct Line {
  static constexpr float kRounder = 0x1.8p23F;

  float slope;
  float add;
  float rounder;
  int32_t zero_point;

  int64_t operator()(int64_t sum) const {
    const float y = static_cast<float>(sum) * slope + add;
    return std::bit_cast<int32_t>(y + rounder) - std::bit_cast<int32_t>(kRounder) + int64_t{zero_point};
  }
  // Only the low byte of each lane counts, and it lacks the zero point.
  template <class Ints>
  Ints lanes(Ints sums) const {
    using Floats = Lanes<float, sizeof(Ints) / sizeof(float)>;
    const Floats y = convert<Floats>(sums) * all_lanes<Floats>(slope) + all_lanes<Floats>(add);
    return as<Ints>(y + all_lanes<Floats>(rounder));
  }
};

class Requantizer {
 public:
  static constexpr int64_t kTableBytes = 16 << 10;

  // The sums are those of `taps` bytes, each less the zero point: below 2^24, so that floats hold them.
  Requantizer(const Quantization& quantization, int64_t count, int64_t taps, uint8_t* table)
      : quantization_(&quantization), count_(count), table_(table) {
    low_ = taps * (0 - quantization.input_zero_point);
    high_ = taps * (255 - quantization.input_zero_point);
    find_steps();
    form_ = find_line() ? Form::kLine : high_ - low_ < kTableBytes ? Form::kTable : Form::kFormula;
    if (form_ == Form::kTable) fill_table();
  }

  enum class Form { kLine, kTable, kFormula };
  Form form() const { return form_; }
  const Line& line() const { return line_; }
  // Sums below and above give what these two give.
  int64_t low() const { return low_; }
  int64_t high() const { return high_; }

  uint8_t operator()(int64_t sum) const {
    if (form_ == Form::kFormula) return static_cast<uint8_t>(q(sum));
    sum = std::clamp(sum, low_, high_);
    return form_ == Form::kTable ? table_[sum - low_] : static_cast<uint8_t>(line_(sum));
  }

 private:
  int64_t q(int64_t sum) const { return requantize(sum, count_, *quantization_); }

  // The least sum above low_ with an output of at least `level`, if there is one; sought from an estimate,
  // for which any value would do.
  int64_t step_to(int64_t level) const {
    const Quantization& z = *quantization_;
    const double estimate = (static_cast<double>(level - z.output_zero_point) - 0.5) *
                            (static_cast<double>(count_) * z.output_scale) / z.input_scale;
    auto sum = static_cast<int64_t>(
        std::fmin(std::fmax(estimate, static_cast<double>(low_)), static_cast<double>(high_)));
    while (sum > low_ && q(sum) >= level) --sum;
    while (sum < high_ && q(sum) < level) ++sum;
    return sum;
  }

  // Narrows low_ and high_ to where the outputs change: steps_[i] is the least sum of output base_ + 1 + i or
  // more.
  void find_steps() {
    base_ = q(low_);
    const int64_t last = q(high_);
    for (steps_count_ = 0; base_ + steps_count_ < last; ++steps_count_) {
      steps_[steps_count_] = static_cast<int32_t>(step_to(base_ + steps_count_ + 1));
    }
    if (steps_count_ == 0) {
      high_ = low_;
    } else {
      high_ = steps_[steps_count_ - 1];
      low_ = steps_[0] - 1;
    }
  }

  bool find_line() {
    const Quantization& z = *quantization_;
    const double slope = z.input_scale / (static_cast<double>(count_) * z.output_scale);
    const double reach = slope * static_cast<double>(std::max(std::abs(low_), std::abs(high_)));
    // Neither subnormal, which some threads flush to 0, nor beyond what kRounder rounds.
    if (!(slope > 0x1p-60) || !(reach < 0x1p20)) return false;
    line_ = {static_cast<float>(slope), 0, Line::kRounder, static_cast<int32_t>(z.output_zero_point)};
    if (fits()) return true;
    // Ties that the scales' own rounding breaks are broken away from 0, or towards it, by some more of it.
    for (const double factor : {1 + 0x1p-21, 1 - 0x1p-21}) {
      line_.slope = static_cast<float>(slope * factor);
      if (fits()) return true;
    }
    // All sums are kept as far from ties as can be.
    line_.slope = static_cast<float>(slope);
    line_.add = between_steps(slope);
    if (fits()) return true;
    // What is within 2^-9 of a tie, as errors of rounding are, becomes one.
    line_.add = 0x1.8p15F;
    line_.rounder = Line::kRounder - line_.add;
    return fits();
  }

  // The middle of what may be added to S * slope for each step to come neither too late nor too early.
  float between_steps(double slope) const {
    double least = -1, most = 1;
    for (int64_t i = 0; i < steps_count_; ++i) {
      const double half = static_cast<double>(base_ + i - quantization_->output_zero_point) + 0.5;
      least = std::max(least, half - slope * static_cast<double>(steps_[i]));
      most = std::min(most, half - slope * static_cast<double>(steps_[i] - 1));
    }
    return static_cast<float>(0.5 * (least + most));
  }

  // Whether the line gives q on both sides of every step.
  bool fits() const {
    if (line_(low_) != base_ || line_(high_) != q(high_)) return false;
    for (int64_t i = 0; i < steps_count_; ++i) {
      // Several outputs share a step where one step skips some.
      const bool skips = i + 1 < steps_count_ && steps_[i + 1] == steps_[i];
      const bool skipped = i > 0 && steps_[i - 1] == steps_[i];
      if (!skips && line_(steps_[i]) != base_ + i + 1) return false;
      if (!skipped && line_(steps_[i] - 1) != base_ + i) return false;
    }
    return true;
  }

  void fill_table() {
    int64_t sum = low_;
    for (int64_t i = 0; i < steps_count_; ++i) {
      for (; sum < steps_[i]; ++sum) table_[sum - low_] = static_cast<uint8_t>(base_ + i);
    }
    table_[high_ - low_] = static_cast<uint8_t>(base_ + steps_count_);
  }

  const Quantization* quantization_;
  int64_t count_;
  uint8_t* table_;
  int64_t low_, high_;
  int64_t base_ = 0;
  int64_t steps_count_ = 0;
  int32_t steps_[255];
  Line line_{};
  Form form_;
};

}  // namespace
ANYDML_ISA_END
