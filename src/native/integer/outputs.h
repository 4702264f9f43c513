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
#include "platform/parallel.h"
#include "simd/byte_runs.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Columns that are places of several rows of an image: of each so many are outputs, of as many as are sums.
struct Lines {
  int64_t width, pitch;
  bool are_whole;  // whether sums are there up to the end of the last batch
};

// The scales of a row, of one value for all columns: what sums are multiplied by, and the same by the
// output's.
struct RowScale {
  double factor, slope;
  Scaling scaling;
  int32_t bias;
  bool is_short, in_singles;
  float slopes[kSlopesAtOnce];
};

inline RowScale row_scale(const Problem& problem, const void* const* inputs, int64_t parameters) {
  RowScale row;
  const int64_t lowest = problem.out_type == DataType::kInt8 ? -128 : 0;
  row.scaling = {problem.out_scale.real(inputs, parameters), problem.out_zero.integer(inputs, parameters),
                 lowest, lowest + 255};
  row.bias = static_cast<int32_t>(problem.row_bias.integer(inputs, parameters));
  row.factor = problem.a_scale.real(inputs, parameters);
  if (problem.b_scale.step == 0) row.factor *= problem.b_scale.real(inputs, 0);
  row.slope = row.factor / row.scaling.scale;
  row.is_short = is_short(row.slope, row.factor, row.scaling.scale);
  row.in_singles = is_usual(row.slope) && problem.depth.count() <= kFewProducts && row.bias >= -(1 << 30) &&
                   row.bias <= 1 << 30;
  std::fill_n(row.slopes, kSlopesAtOnce, row.in_singles ? static_cast<float>(row.slope) * kSlopeUnit : 0.0f);
  return row;
}

// Writes rows of a block of at most kColumnBlock columns, one after the other.
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

  // `parameters` is the row's number among scales, zero points and biases. To each sum `addend` is added
  // first, modulo 2^32 where sums are of 32 bits.
  template <class Sum>
  void write(const Sum* sums, int64_t row, int64_t parameters, int32_t addend = 0) {
    if (p_.out_type != DataType::kInt32) set_scales(parameters);
    write(sums, row, scale_, addend);
  }

  // Whether a row of outputs is a run of integers.
  bool is_run_of_integers() const {
    return p_.out_type == DataType::kInt32 && p_.out_width == 4 && first_ + columns_ <= lines_.width;
  }
  // Of such a row: sums[c] - less[c] + addend, modulo 2^32.
  void write_difference(const int32_t* sums, const int32_t* less, int64_t row, int32_t addend) const {
    const auto at = [&](int64_t c) {
      return static_cast<uint32_t>(sums[c]) - static_cast<uint32_t>(less[c]);
    };
    write_run(row, addend, at,
              [&](int64_t c) { return from_sums<int32_t>(sums + c) - from_sums<int32_t>(less + c); });
  }

  // Of a row whose scale is known.
  template <class Sum>
  void write(const Sum* sums, int64_t row, const RowScale& scale, int32_t addend) const {
    switch (p_.out_type) {
      case DataType::kInt32:
        return write_integers(sums, row, addend);
      case DataType::kInt8:
        return write_quantized<int8_t>(sums, row, scale, addend);
      case DataType::kUint8:
        return write_quantized<uint8_t>(sums, row, scale, addend);
      case DataType::kFloat32:
        return write_real<float>(sums, row, scale, addend);
      default:
        return write_real<Half>(sums, row, scale, addend);
    }
  }

 private:
  static constexpr int64_t kAtOnce = kRequantizedAtOnce;

#if defined(ANYDML_VECTORS)
  // As many integers as a register holds of the widest kind.
  static constexpr int kLanes = static_cast<int>(2 * kVectorBytes / sizeof(uint32_t));
  using Integers = Vector<uint32_t, kLanes>;

  // The low halves of so many sums.
  template <class Sum>
  ANYDML_INLINE static Integers from_sums(const Sum* sums) {
    const auto all = load_vector<Vector<Sum, kLanes>>(reinterpret_cast<const std::byte*>(sums));
    return __builtin_convertvector(all, Integers);
  }
#else
  template <class Sum>
  static uint32_t from_sums(const Sum* sums) {
    return static_cast<uint32_t>(*sums);
  }
#endif

  // A row of integers at(c) + addend, of which vector_at(c) has as many as a vector.
  template <class At, class VectorAt>
  ANYDML_INLINE void write_run(int64_t row, int32_t addend, const At& at,
                               [[maybe_unused]] const VectorAt& vector_at) const {
    std::byte* const to = out_ + row * p_.out_row + first_ * p_.out_width;
    const auto added = static_cast<uint32_t>(addend);
    const int64_t columns = columns_;
    int64_t c = 0;
#if defined(ANYDML_VECTORS)
    for (; c + kLanes <= columns; c += kLanes) store_vector(to + c * 4, vector_at(c) + added);
#endif
    for (; c < columns; ++c) store(to + c * 4, at(c) + added);
  }

  template <class Sum>
  static Sum total_of(Sum sum, int32_t addend) {
    using Bits = std::make_unsigned_t<Sum>;
    return static_cast<Sum>(static_cast<Bits>(sum) + static_cast<Bits>(addend));
  }

  template <class Sum>
  void write_integers(const Sum* sums, int64_t row, int32_t addend) const {
    if (is_run_of_integers()) {
      const auto at = [&](int64_t c) { return static_cast<uint32_t>(sums[c]); };
      return write_run(row, addend, at, [&](int64_t c) { return from_sums<Sum>(sums + c); });
    }
    uint32_t outputs[kAtOnce];
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      for (int64_t i = 0; i < count; ++i) {
        outputs[i] = static_cast<uint32_t>(sums[c + i]) + static_cast<uint32_t>(addend);
      }
      store_outputs(outputs, row, c, count);
    }
  }

  bool is_by_column() const { return p_.b_scale.step != 0; }

  template <class Out, class Sum>
  void write_quantized(const Sum* sums, int64_t row, const RowScale& scale, int32_t addend) const {
    const bool in_singles = sizeof(Sum) == 4 && scale.in_singles && (!is_by_column() || are_usual_);
    // Where a row of outputs is one run, all but its last batch are written where they belong.
    const bool is_run = p_.out_width == 1 && first_ + columns_ <= lines_.width;
    Out outputs[kColumnBlock];
    const int64_t in_place = is_run ? columns_ / kAtOnce * kAtOnce : 0;
    Out* const run = reinterpret_cast<Out*>(out_ + row * p_.out_row + first_ * p_.out_width);
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      Out* const to = c < in_place ? run + c : outputs + c;
      if constexpr (sizeof(Sum) == 4) {
        if (in_singles && quantize_in_singles(sums + c, scale, addend, c, count, to)) continue;
      }
      quantize_exactly(sums + c, scale, addend, c, count, to);
    }
    if (in_place < columns_) store_outputs(outputs + in_place, row, in_place, columns_ - in_place);
  }

  // A batch of outputs, of which those behind `count` are not used.
  template <class Out>
  ANYDML_INLINE bool quantize_in_singles(const int32_t* sums, const RowScale& scale, int32_t addend,
                                         int64_t column, int64_t count, Out* outputs) const {
    int32_t last[kAtOnce];
    if (count < kAtOnce && !lines_.are_whole) {
      std::copy_n(sums, count, last);
      std::fill(last + count, last + kAtOnce, sums[count - 1]);
      sums = last;
    }
    return requantize_in_singles(sums, total_of(addend, scale.bias),
                                 is_by_column() ? single_slopes_ + column : scale.slopes,
                                 is_by_column() ? 1 : 0, scale.scaling, outputs);
  }

  // Sums of bytes, and of a bias, are exact in double precision.
  template <class Out, class Sum>
  ANYDML_NOINLINE void quantize_exactly(const Sum* sums, const RowScale& scale, int32_t addend,
                                        int64_t column, int64_t count, Out* outputs) const {
    double totals[kAtOnce] = {};
    double factors[kAtOnce];
    double slopes[kAtOnce];
    for (int64_t i = 0; i < count; ++i)
      totals[i] = static_cast<double>(total_of(sums[i], addend)) + scale.bias;
    if (is_by_column()) {
      std::copy_n(factors_ + column, kAtOnce, factors);
      std::copy_n(slopes_ + column, kAtOnce, slopes);
    } else {
      std::fill_n(factors, kAtOnce, scale.factor);
      std::fill_n(slopes, kAtOnce, scale.slope);
    }
    const bool are_short = is_by_column() ? are_short_ : scale.is_short;
    requantize(totals, factors, slopes, are_short && sizeof(Sum) == 4, scale.scaling, outputs);
  }

  template <class Out, class Sum>
  void write_real(const Sum* sums, int64_t row, const RowScale& scale, int32_t addend) const {
    Out outputs[kAtOnce];
    for (int64_t c = 0; c < columns_; c += kAtOnce) {
      const int64_t count = std::min(kAtOnce, columns_ - c);
      const auto total = [&](int64_t i) { return static_cast<double>(total_of(sums[c + i], addend)); };
      if (is_by_column()) {
        const double* const factors = factors_ + c;
        round_to(outputs, count, row, c, [&](int64_t i) { return total(i) * factors[i]; });
      } else {
        const double factor = scale.factor;
        round_to(outputs, count, row, c, [&](int64_t i) { return total(i) * factor; });
      }
      store_outputs(outputs, row, c, count);
    }
  }

  // outputs[i] = product(i) + bias, rounded once.
  template <class Out, class Product>
  ANYDML_INLINE void round_to(Out* outputs, int64_t count, int64_t row, int64_t column,
                              const Product& product) const {
    const auto rounded = [](double total) {
      if constexpr (sizeof(Out) == 2) {
        return Out(single_for_half(total));
      } else {
        return static_cast<Out>(total);
      }
    };
    if (bias_ == nullptr) {
      for (int64_t i = 0; i < count; ++i) outputs[i] = rounded(product(i));
      return;
    }
    const int64_t step = p_.column_bias.step;
    const std::byte* const bias = bias_ + row * p_.bias_row + (first_ + column) * step;
    for (int64_t i = 0; i < count; ++i) {
      outputs[i] = rounded(product(i) + static_cast<double>(static_cast<float>(load<Out>(bias + i * step))));
    }
  }

  // The row's scale, and where B has one for each column, the products and quotients of all of these.
  void set_scales(int64_t parameters) {
    if (is_set_ && p_.a_scale.step == 0 && p_.out_scale.step == 0 && p_.out_zero.step == 0 &&
        p_.row_bias.step == 0) {
      return;
    }
    const RowScale before = scale_;
    scale_ = row_scale(p_, inputs_, parameters);
    const bool is_same = is_set_ && scale_.factor == before.factor && scale_.slope == before.slope;
    is_set_ = true;
    if (!is_by_column() || is_same) return;
    are_short_ = true;
    are_usual_ = true;
    for (int64_t i = 0; i < columns_; ++i) {
      factors_[i] = scale_.factor * p_.b_scale.real(inputs_, first_ + i);
      slopes_[i] = factors_[i] / scale_.scaling.scale;
      are_short_ = are_short_ && is_short(slopes_[i], factors_[i], scale_.scaling.scale);
      are_usual_ = are_usual_ && is_usual(slopes_[i]);
      single_slopes_[i] = are_usual_ ? static_cast<float>(slopes_[i]) * kSlopeUnit : 0;
    }
    // Of whole batches, those behind the last column too.
    const int64_t end = divided_up(columns_, kAtOnce) * kAtOnce;
    std::fill(factors_ + columns_, factors_ + end, 0.0);
    std::fill(slopes_ + columns_, slopes_ + end, 0.0);
    std::fill(single_slopes_ + columns_, single_slopes_ + end, 0.0f);
  }

  template <class Out>
  void store_outputs(const Out* outputs, int64_t row, int64_t column, int64_t count) const {
    column += first_;
    // Division takes as long as all else.
    int64_t line = column < lines_.pitch ? 0 : column / lines_.pitch;
    int64_t x = column - line * lines_.pitch;
    const int64_t whole = x == 0 ? count / lines_.pitch : 0;
    if (sizeof(Out) == 1 && p_.out_width == 1 && whole > 1) {
      copy_rows(reinterpret_cast<const std::byte*>(outputs), lines_.pitch, whole, lines_.width, 0,
                out_ + row * p_.out_row + line * p_.out_height, p_.out_height);
      outputs += whole * lines_.pitch;
      count -= whole * lines_.pitch;
      line += whole;
    }
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
  RowScale scale_ = {};
  double factors_[kColumnBlock];
  double slopes_[kColumnBlock];
  float single_slopes_[kColumnBlock];
};

}  // namespace
ANYDML_ISA_END
