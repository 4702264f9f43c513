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
#include "integer/runs.h"
#include "integer/tuning.h"
#include "platform/isa.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Columns that are places of several rows of an image: of each so many are outputs, of as many as are sums.
struct Lines {
  int64_t width, pitch;
};

// Writes rows of a block of columns, one after the other. Where B has a scale for each column, there are at
// most kColumnBlock of them.
class RowWriter {
 public:
  // `bias` and `out` lie at the first row and column of the matrix.
  RowWriter(const Problem& problem, const void* const* inputs, const std::byte* bias, std::byte* out,
            int64_t first_column, int64_t columns, Lines lines)
      : p_(problem),
        inputs_(inputs),
        bias_(bias),
        out_(out),
        first_(first_column),
        columns_(columns),
        lines_(lines) {}

  // `parameters` is the row's number among scales, zero points and biases. To each sum `addend` is added first,
  // modulo 2^32 where sums are of 32 bits.
  template <class Sum>
  void write(const Sum* sums, int64_t row, int64_t parameters, int32_t addend = 0) {
    switch (p_.out_type) {
      case DataType::kInt32:
        return write_integers(sums, row, addend);
      case DataType::kInt8:
        return write_quantized<int8_t>(sums, row, parameters, addend);
      case DataType::kUint8:
        return write_quantized<uint8_t>(sums, row, parameters, addend);
      case DataType::kFloat32:
        return write_real<float>(sums, row, parameters, addend);
      default:
        return write_real<Half>(sums, row, parameters, addend);
    }
  }

 private:
  static constexpr int64_t kAtOnce = kRequantizedAtOnce;

  template <class Sum>
  static Sum total_of(Sum sum, int32_t addend) {
    using Bits = std::make_unsigned_t<Sum>;
    return static_cast<Sum>(static_cast<Bits>(sum) + static_cast<Bits>(addend));
  }

  template <class Sum>
  void write_integers(const Sum* sums, int64_t row, int32_t addend) {
    uint32_t outputs[kAtOnce];
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      for (int64_t i = 0; i < count; ++i) {
        outputs[i] = static_cast<uint32_t>(sums[c + i]) + static_cast<uint32_t>(addend);
      }
      store_outputs(outputs, row, c, count);
    }
  }

  template <class Out, class Sum>
  void write_quantized(const Sum* sums, int64_t row, int64_t parameters, int32_t addend) {
    set_factors(parameters);
    const auto bias = static_cast<int32_t>(p_.row_bias.integer(inputs_, parameters));
    const int64_t lowest = std::is_signed_v<Out> ? -128 : 0;
    const Scaling scaling = {p_.out_scale.real(inputs_, parameters), p_.out_zero.integer(inputs_, parameters),
                             lowest, lowest + 255};
    const bool in_singles = sizeof(Sum) == 4 && are_usual_ && p_.depth.count() <= kFewProducts &&
                            bias >= -(1 << 30) && bias <= 1 << 30;
    Out outputs[kAtOnce];
    int32_t last[kAtOnce];
    double totals[kAtOnce] = {};
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      if constexpr (sizeof(Sum) == 4) {
        if (in_singles) {
          const int32_t* from = sums + c;
          if (count < kAtOnce) {
            std::copy_n(from, count, last);
            std::fill(last + count, last + kAtOnce, from[count - 1]);
            from = last;
          }
          if (requantize_in_singles(from, total_of(addend, bias), single_slopes_ + values_at(c), scaling,
                                    outputs)) {
            store_outputs(outputs, row, c, count);
            continue;
          }
        }
      }
      // Sums of bytes, and of a bias, are exact.
      for (int64_t i = 0; i < count; ++i) {
        totals[i] = static_cast<double>(total_of(sums[c + i], addend)) + bias;
      }
      set_quotients();
      requantize(totals, factors_ + values_at(c), slopes_ + values_at(c), are_short_ && sizeof(Sum) == 4,
                 scaling, outputs);
      store_outputs(outputs, row, c, count);
    }
  }

  template <class Out, class Sum>
  void write_real(const Sum* sums, int64_t row, int64_t parameters, int32_t addend) {
    set_factors(parameters);
    set_quotients();
    double totals[kAtOnce];
    Out outputs[kAtOnce];
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      const double* const factors = factors_ + values_at(c);
      for (int64_t i = 0; i < count; ++i) {
        totals[i] = static_cast<double>(total_of(sums[c + i], addend)) * factors[i];
      }
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
  // one for each. Of one for all columns there is a batch, in double precision where it is asked for.
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
    repeat(single_slopes_);
    are_quotients_set_ = false;
  }

  void set_quotients() {
    if (are_quotients_set_) return;
    are_quotients_set_ = true;
    repeat(factors_);
    repeat(slopes_);
  }

  // Of whole batches, those behind the last column too.
  template <class T>
  void repeat(T* values) const {
    if (p_.b_scale.step == 0) {
      std::fill(values + 1, values + kAtOnce, values[0]);
    } else {
      std::fill(values + columns_, values + (columns_ + kAtOnce - 1) / kAtOnce * kAtOnce, T{0});
    }
  }

  // Where the values of a batch of columns begin; of one for all columns there is a batch.
  int64_t values_at(int64_t column) const { return p_.b_scale.step == 0 ? 0 : column; }

  template <class Out>
  void store_outputs(const Out* outputs, int64_t row, int64_t column, int64_t count) {
    column += first_;
    // Division takes as long as all else.
    int64_t line = column < lines_.pitch ? 0 : column / lines_.pitch;
    int64_t x = column - line * lines_.pitch;
    while (count > 0) {
      const int64_t run = std::clamp(lines_.width - x, int64_t{0}, count);
      std::byte* const to = out_ + row * p_.out_row + line * p_.out_height + x * p_.out_width;
      if (p_.out_width == sizeof(Out)) {
        copy_run(reinterpret_cast<const std::byte*>(outputs), run * static_cast<int64_t>(sizeof(Out)), 0, to);
      } else {
        for (int64_t i = 0; i < run; ++i) store(to + i * p_.out_width, outputs[i]);
      }
      outputs += lines_.pitch - x;
      count -= lines_.pitch - x;
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
  Lines lines_;
  bool is_set_ = false;
  bool are_short_ = false;
  bool are_usual_ = false;
  bool are_quotients_set_ = false;
  double factors_[kColumnBlock];
  double slopes_[kColumnBlock];
  float single_slopes_[kColumnBlock];
};

}  // namespace
ANYDML_ISA_END
