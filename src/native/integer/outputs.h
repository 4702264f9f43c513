// Sums of a row as outputs: integers modulo 2^32, requantised bytes, or real numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "integer/problem.h"
#include "integer/requantize.h"
#include "integer/tuning.h"
#include "platform/isa.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Writes rows of a block of columns, one after the other. Where B has a scale for each column, there are at
// most kColumnBlock of them.
class RowWriter {
 public:
  // `bias` and `out` lie at the first row and column of the matrix.
  RowWriter(const Problem& problem, const void* const* inputs, const std::byte* bias, std::byte* out,
            int64_t first_column, int64_t columns)
      : p_(problem), inputs_(inputs), bias_(bias), out_(out), first_(first_column), columns_(columns) {}

  // `parameters` is the row's number among scales, zero points and biases.
  template <class Sum>
  void write(const Sum* sums, int64_t row, int64_t parameters) {
    switch (p_.out_type) {
      case DataType::kInt32:
        return write_integers(sums, row);
      case DataType::kInt8:
        return write_quantized<int8_t>(sums, row, parameters);
      case DataType::kUint8:
        return write_quantized<uint8_t>(sums, row, parameters);
      case DataType::kFloat32:
        return write_real<float>(sums, row, parameters);
      default:
        return write_real<Half>(sums, row, parameters);
    }
  }

 private:
  static constexpr int64_t kAtOnce = kRequantizedAtOnce;

  template <class Sum>
  void write_integers(const Sum* sums, int64_t row) {
    uint32_t outputs[kAtOnce];
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      for (int64_t i = 0; i < count; ++i) outputs[i] = static_cast<uint32_t>(sums[c + i]);
      store_outputs(outputs, row, c, count);
    }
  }

  template <class Out, class Sum>
  void write_quantized(const Sum* sums, int64_t row, int64_t parameters) {
    set_factors(parameters);
    const double bias = static_cast<double>(p_.row_bias.integer(inputs_, parameters));
    const int64_t lowest = std::is_signed_v<Out> ? -128 : 0;
    const Scaling scaling = {p_.out_scale.real(inputs_, parameters), p_.out_zero.integer(inputs_, parameters),
                             lowest, lowest + 255};
    const bool in_singles =
        sizeof(Sum) == 4 && are_usual_ && p_.depth.count() <= kFewProducts && std::fabs(bias) <= 0x1p30;
    int32_t integers[kAtOnce] = {};
    double totals[kAtOnce] = {};
    Out outputs[kAtOnce];
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      if (in_singles) {
        for (int64_t i = 0; i < count; ++i) {
          integers[i] = static_cast<int32_t>(sums[c + i]) + static_cast<int32_t>(bias);
        }
        if (requantize_in_singles(integers, single_slopes_ + values_at(c), scaling, outputs)) {
          store_outputs(outputs, row, c, count);
          continue;
        }
      }
      // Sums of bytes, and of a bias, are exact.
      for (int64_t i = 0; i < count; ++i) totals[i] = static_cast<double>(sums[c + i]) + bias;
      requantize(totals, factors_ + values_at(c), slopes_ + values_at(c), are_short_ && sizeof(Sum) == 4,
                 scaling, outputs);
      store_outputs(outputs, row, c, count);
    }
  }

  template <class Out, class Sum>
  void write_real(const Sum* sums, int64_t row, int64_t parameters) {
    set_factors(parameters);
    double totals[kAtOnce];
    Out outputs[kAtOnce];
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      const double* const factors = factors_ + values_at(c);
      for (int64_t i = 0; i < count; ++i) totals[i] = static_cast<double>(sums[c + i]) * factors[i];
      if (bias_ != nullptr) {
        const std::byte* const bias = bias_ + row * p_.bias_row + (first_ + c) * p_.column_bias.step;
        for (int64_t i = 0; i < count; ++i) {
          const Out value = load<Out>(bias + i * p_.column_bias.step);
          totals[i] += static_cast<double>(static_cast<float>(value));
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (sizeof(Out) == 2) {
          outputs[i] = Out(single_for_half(totals[i]));
        } else {
          outputs[i] = static_cast<Out>(totals[i]);
        }
      }
      store_outputs(outputs, row, c, count);
    }
  }

  // The products of scales for each column, and their quotients by the output's; of a row, where they have
  // one for each.
  void set_factors(int64_t parameters) {
    if (is_set_ && p_.a_scale.step == 0 && p_.out_scale.step == 0) return;
    is_set_ = true;
    const double of_row = p_.a_scale.real(inputs_, parameters);
    const double scale = p_.out_scale.real(inputs_, parameters);
    are_short_ = true;
    are_usual_ = true;
    const int64_t values = p_.b_scale.step == 0 ? 1 : columns_;
    for (int64_t i = 0; i < values; ++i) {
      factors_[i] = of_row * p_.b_scale.real(inputs_, first_ + i);
      slopes_[i] = factors_[i] / scale;
      are_short_ = are_short_ && is_short(slopes_[i], factors_[i], scale);
      are_usual_ = are_usual_ && is_usual(slopes_[i]);
      single_slopes_[i] = are_usual_ ? static_cast<float>(slopes_[i]) : 0;
    }
    // Of whole batches, those behind the last column too.
    const bool is_one = p_.b_scale.step == 0;
    const int64_t end = is_one ? kAtOnce : (columns_ + kAtOnce - 1) / kAtOnce * kAtOnce;
    std::fill(factors_ + values, factors_ + end, is_one ? factors_[0] : 0);
    std::fill(slopes_ + values, slopes_ + end, is_one ? slopes_[0] : 0);
    std::fill(single_slopes_ + values, single_slopes_ + end, is_one ? single_slopes_[0] : 0);
  }

  // Where the values of a batch of columns begin; of one for all columns there is a batch.
  int64_t values_at(int64_t column) const { return p_.b_scale.step == 0 ? 0 : column; }

  template <class Out>
  void store_outputs(const Out* outputs, int64_t row, int64_t column, int64_t count) {
    const int64_t width = p_.depth.width.places;
    column += first_;
    // Division takes as long as all else.
    int64_t line = p_.depth.height.places == 1 ? 0 : column / width;
    int64_t x = column - line * width;
    while (count > 0) {
      const int64_t run = std::min(count, width - x);
      std::byte* const to = out_ + row * p_.out_row + line * p_.out_height + x * p_.out_width;
      if (p_.out_width == sizeof(Out)) {
        std::memcpy(to, outputs, static_cast<size_t>(run) * sizeof(Out));
      } else {
        for (int64_t i = 0; i < run; ++i) store(to + i * p_.out_width, outputs[i]);
      }
      outputs += run;
      count -= run;
      ++line;
      x = 0;
    }
  }

  const Problem& p_;
  const void* const* inputs_;
  const std::byte* bias_;
  std::byte* out_;
  int64_t first_;
  int64_t columns_;
  bool is_set_ = false;
  bool are_short_ = false;
  bool are_usual_ = false;
  double factors_[kColumnBlock];
  double slopes_[kColumnBlock];
  float single_slopes_[kColumnBlock];
};

}  // namespace
ANYDML_ISA_END
