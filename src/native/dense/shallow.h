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

ANYDML_ISA_BEGIN

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
    const int64_t count = columns.size();
    const std::byte* const b = operands_.b + columns.begin * kItem;
    // Rows whose vectors do not reach behind the last element, where they are longer; others have zeros
    // behind them.
    const int64_t behind = count < kColumnLanes ? (kColumnLanes - count) * kItem : 0;
    const int64_t whole = behind == 0    ? p_.depth
                          : p_.b.row > 0 ? std::max<int64_t>(0, p_.depth - divided_up(behind, p_.b.row))
                                         : 0;
    alignas(64) std::byte padded[kSmallDepth * kVector];
    if (whole < p_.depth) std::memset(padded, 0, static_cast<size_t>((p_.depth - whole) * kVector));
    for (int64_t k = whole; k < p_.depth; ++k)
      std::memcpy(padded + (k - whole) * kVector, b + k * p_.b.row, static_cast<size_t>(count * kItem));
    const Deep deep{b, whole, padded};
    int64_t row = rows.begin;
    std::byte* y = operands_.y + row * p_.y.row + columns.begin * kItem;
    for (; row + kRows <= rows.end; row += kRows, y += kRows * p_.y.row)
      multiply_rows<kRows>(row, deep, count, y);
    for (; row < rows.end; ++row, y += p_.y.row) multiply_rows<1>(row, deep, count, y);
  }

 private:
  static constexpr int64_t kItem = sizeof(float);
  static constexpr int64_t kVector = kColumnLanes * kItem;
  static constexpr int kRows = 4;
  static constexpr int kVectors = 2;

  // The right matrix: rows that are read where they are, and the last ones, copied.
  struct Deep {
    const std::byte* from;
    int64_t whole;
    const std::byte* padded;
  };

  template <int kCount>
  void multiply_rows(int64_t row, const Deep& b, int64_t count, std::byte* y) const {
    float a[kCount][kSmallDepth];
    for (int r = 0; r < kCount; ++r) {
      for (int64_t k = 0; k < p_.depth; ++k)
        a[r][k] = load<float>(operands_.a + (row + r) * p_.a.row + k * p_.a.column);
    }
    int64_t c = 0;
    for (; c + kVectors * kColumnLanes <= count; c += kVectors * kColumnLanes)
      multiply_tile<kCount, kVectors>(a, b, c * kItem, kVector, y + c * kItem);
    // The last ones with some that are done.
    for (; c < count; c += kColumnLanes) {
      const int64_t at = count < kColumnLanes ? 0 : std::min(c, count - kColumnLanes) * kItem;
      multiply_tile<kCount, 1>(a, b, at, std::min(count, kColumnLanes) * kItem, y + at);
    }
  }

  template <int kCount, int kWide>
  ANYDML_INLINE void multiply_tile(const float (*a)[kSmallDepth], const Deep& b, int64_t offset, int64_t size,
                                   std::byte* y) const {
    Columns sums[kCount][kWide]{};
    const auto add = [&](int64_t k, const std::byte* from) {
      Columns x[kWide];
#pragma GCC unroll 2
      for (int v = 0; v < kWide; ++v) x[v] = load_numbers<float, float, Columns>(from + v * kVector);
#pragma GCC unroll 4
      for (int r = 0; r < kCount; ++r) {
        const Columns each = a[r][k] - Columns{};
#pragma GCC unroll 2
        for (int v = 0; v < kWide; ++v) sums[r][v] = multiply_add(each, x[v], sums[r][v]);
      }
    };
    const std::byte* from = b.from + offset;
    for (int64_t k = 0; k < b.whole; ++k, from += p_.b.row) add(k, from);
    for (int64_t k = b.whole; k < p_.depth; ++k) add(k, b.padded + (k - b.whole) * kVector);
#pragma GCC unroll 4
    for (int r = 0; r < kCount; ++r, y += p_.y.row) {
      if (kWide == 1 && size < kVector) {
        std::memcpy(y, &sums[r][0], static_cast<size_t>(size));
        continue;
      }
#pragma GCC unroll 2
      for (int v = 0; v < kWide; ++v) store_numbers<float, float>(y + v * kVector, sums[r][v]);
    }
  }

  const Product& p_;
  Operands operands_;
};

ANYDML_ISA_END
