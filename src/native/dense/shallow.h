// Products of a small depth, outer products among them, of matrices that are read where they are: sums of a
// few rows by a few vectors of columns stay in registers, and are stored once,
//   y(i, j) = a(i, 0) * b(0, j) + a(i, 1) * b(1, j) + ...
// To pack either matrix, or to keep sums elsewhere, would take as long as the product.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dense/product.h"
#include "dense/tile.h"
#include "dense/tuning.h"
#include "platform/division.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// As many lanes of a vector as there are columns, where these are fewer: no others are read or written.
class FirstLanes {
 public:
#if defined(ANYDML_ISA_AVX512)
  explicit FirstLanes(int64_t count) : mask_(static_cast<__mmask16>((1U << count) - 1)) {}
  Columns load(const std::byte* from) const { return (Columns)_mm512_maskz_loadu_ps(mask_, from); }
  void store(std::byte* to, Columns x) const { _mm512_mask_storeu_ps(to, mask_, (__m512)x); }

 private:
  __mmask16 mask_;
#elif defined(ANYDML_ISA_AVX2)
  explicit FirstLanes(int64_t count)
      : mask_(_mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                                 _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}
  Columns load(const std::byte* from) const {
    return (Columns)_mm256_maskload_ps(reinterpret_cast<const float*>(from), mask_);
  }
  void store(std::byte* to, Columns x) const {
    _mm256_maskstore_ps(reinterpret_cast<float*>(to), mask_, (__m256)x);
  }

 private:
  __m256i mask_;
#else
  explicit FirstLanes(int64_t count) : size_(static_cast<size_t>(count) * sizeof(float)) {}
  Columns load(const std::byte* from) const {
    Columns x{};
    std::memcpy(&x, from, size_);
    return x;
  }
  void store(std::byte* to, const Columns& x) const { std::memcpy(to, &x, size_); }

 private:
  size_t size_;
#endif
};

class ShallowProduct {
 public:
  // Of singles whose columns lie side by side in B and in the output, and to whose sums nothing is done.
  static bool takes(const Product& p) {
    const bool is_small = p.rows * p.columns <= kSmallProduct;
    return p.is_plain() && p.b.column == kItem && p.y.column == kItem && p.rows > 1 &&
           p.depth <= (is_small ? kSmallDepth : kOuterDepth);
  }

  ShallowProduct(const Product& product, const Operands& operands) : p_(product), operands_(operands) {}

  ANYDML_NOINLINE void multiply(Range rows, Range columns) const {
    const std::byte* const a = operands_.a + rows.begin * p_.a.row;
    const std::byte* const b = operands_.b + columns.begin * kItem;
    std::byte* const y = operands_.y + rows.begin * p_.y.row + columns.begin * kItem;
    const int64_t count = columns.size();
    int64_t row = 0;
    if (p_.depth <= kLongDepth && count >= kLongRow) {
      for (; row < rows.size(); ++row) multiply_long_row(a + row * p_.a.row, b, count, y + row * p_.y.row);
      return;
    }
    for (; row + kRows <= rows.size(); row += kRows)
      multiply_rows<kRows>(a + row * p_.a.row, b, count, y + row * p_.y.row);
    if (row == rows.size()) return;
    if (row > 0) {  // the last ones with some that are done
      row = rows.size() - kRows;
      return multiply_rows<kRows>(a + row * p_.a.row, b, count, y + row * p_.y.row);
    }
    for (; row < rows.size(); ++row) multiply_rows<1>(a + row * p_.a.row, b, count, y + row * p_.y.row);
  }

 private:
  static constexpr int64_t kItem = sizeof(float);
  static constexpr int64_t kVector = kColumnLanes * kItem;
  static constexpr int kRows = 4;
  static constexpr int kVectors = 2;
  static constexpr int64_t kLongRow = 4 * kPanel;
  static constexpr int64_t kLongDepth = 2;

  template <int kCount>
  ANYDML_INLINE void multiply_rows(const std::byte* a, const std::byte* b, int64_t count,
                                   std::byte* y) const {
    if (count < kColumnLanes) return multiply_tile<kCount, 1, true>(a, b, y, count);
    int64_t c = 0;
    for (; c + kVectors * kColumnLanes <= count; c += kVectors * kColumnLanes)
      multiply_tile<kCount, kVectors, false>(a, b + c * kItem, y + c * kItem);
    // The last ones with some that are done.
    for (; c < count; c += kColumnLanes) {
      const int64_t at = std::min(c, count - kColumnLanes) * kItem;
      multiply_tile<kCount, 1, false>(a, b + at, y + at);
    }
  }

  // A row by itself, whose vectors are written as lines lie: of several rows they would mostly cross two
  // lines. Of a larger depth this takes longer, as B is read for each row.
  ANYDML_INLINE void multiply_long_row(const std::byte* a, const std::byte* b, int64_t count,
                                       std::byte* y) const {
    constexpr int kWide = 2 * kVectors;
    int64_t c = to_next_line(y) / kItem % kColumnLanes;
    if (c > 0) multiply_tile<1, 1, false>(a, b, y);
    for (; c + kWide * kColumnLanes <= count; c += kWide * kColumnLanes)
      multiply_tile<1, kWide, false>(a, b + c * kItem, y + c * kItem);
    for (; c < count; c += kColumnLanes) {
      const int64_t at = std::min(c, count - kColumnLanes) * kItem;
      multiply_tile<1, 1, false>(a, b + at, y + at);
    }
  }

  // Of kSome, the first lanes alone are read and written.
  template <int kCount, int kWide, bool kSome>
  ANYDML_INLINE void multiply_tile(const std::byte* a, const std::byte* b, std::byte* y,
                                   int64_t lanes = kColumnLanes) const {
    const FirstLanes some(lanes);
    Columns sums[kCount][kWide]{};
    for (int64_t k = 0; k < p_.depth; ++k, a += p_.a.column, b += p_.b.row) {
      Columns x[kWide];
#pragma GCC unroll 4
      for (int v = 0; v < kWide; ++v)
        x[v] = kSome ? some.load(b) : load_numbers<float, float, Columns>(b + v * kVector);
#pragma GCC unroll 4
      for (int r = 0; r < kCount; ++r) {
        const Columns each = load<float>(a + r * p_.a.row) - Columns{};
#pragma GCC unroll 4
        for (int v = 0; v < kWide; ++v) sums[r][v] = multiply_add(each, x[v], sums[r][v]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kCount; ++r, y += p_.y.row) {
#pragma GCC unroll 4
      for (int v = 0; v < kWide; ++v)
        kSome ? some.store(y, sums[r][v]) : store_numbers<float, float>(y + v * kVector, sums[r][v]);
    }
  }

  const Product& p_;
  Operands operands_;
};

ANYDML_ISA_END
