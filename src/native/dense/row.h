// A row, or a few, by a matrix that is read once, where it is: along its rows, or across them by transposing
// squares in registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dense/product.h"
#include "dense/squares.h"
#include "dense/tuning.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Vectors of columns whose sums are in registers while a part of the depth passes.
inline constexpr int64_t kRowVectors = 4;

// sums[c] += sum over k of x[k] * b[k][c], of kVectors vectors or, of one, so many columns; from 0 on if they
// are the first.
template <class Item, int kVectors>
ANYDML_INLINE void add_rows(const float* x, const std::byte* b, int64_t step, int64_t depth, bool is_first,
                            float* sums, int64_t columns = kVectors * kColumnLanes) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  constexpr int64_t kBytes = kVectors * kColumnLanes * kItem;
  const bool is_whole = columns == kVectors * kColumnLanes;
  Columns y[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const auto* const at = reinterpret_cast<const std::byte*>(sums + v * kColumnLanes);
    y[v] = is_first ? Columns{} : load_numbers<float, float, Columns>(at);
  }
  for (int64_t k = 0; k < depth; ++k, b += step) {
    const Columns each = x[k] - Columns{};
    const std::byte* from = b;
    std::byte rest[kBytes];
    if (!is_whole) {
      std::memset(rest, 0, kBytes);
      std::memcpy(rest, b, static_cast<size_t>(columns * kItem));
      from = rest;
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto w = load_numbers<Item, float, Columns>(from + v * kColumnLanes * kItem);
      y[v] = multiply_add(each, w, y[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    store_numbers<float, float>(reinterpret_cast<std::byte*>(sums + v * kColumnLanes), y[v]);
  }
}

// sums[c] = sum over k of x[k] * b[k][c], of at most kReadColumns columns that lie side by side, behind which
// there is room for a vector.
template <class Item>
ANYDML_NOINLINE void multiply_row_along(const float* x, const std::byte* b, int64_t step, int64_t depth,
                                        int64_t columns, float* sums) {
  constexpr int64_t kAtOnce = kRowVectors * kColumnLanes;
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  // The last columns with some that are there already, whose sums are the same.
  const int64_t last = columns % kAtOnce == 0 || columns < kAtOnce ? -1 : columns - kAtOnce;
  float last_sums[kAtOnce];
  for (int64_t k = 0; k < depth; k += kRowDepth) {
    const int64_t deep = std::min(kRowDepth, depth - k);
    const std::byte* const from = b + k * step;
    int64_t c = 0;
    for (; c + kAtOnce <= columns; c += kAtOnce) {
      add_rows<Item, kRowVectors>(x + k, from + c * kItem, step, deep, k == 0, sums + c);
    }
    if (last >= 0) {
      add_rows<Item, kRowVectors>(x + k, from + last * kItem, step, deep, k == 0, last_sums);
      continue;
    }
    for (; c < columns; c += kColumnLanes) {
      add_rows<Item, 1>(x + k, from + c * kItem, step, deep, k == 0, sums + c,
                        std::min(kColumnLanes, columns - c));
    }
  }
  if (last >= 0) std::copy(last_sums, last_sums + kAtOnce, sums + last);
}

using MultiplyRowsAcross = void (*)(const float* x, const std::byte* b, int64_t step, int64_t depth,
                                    float* sums);

#if defined(ANYDML_VECTORS) && defined(__GNUC__)
// sums[r][c] = sum over k of x[r][k] * b[k][c], of a panel of columns, each of which lies side by side in
// memory, `step` behind the one before. Rows of x are kDepth apart. One vector of columns after the other, as
// columns of both are more streams than processors prefetch.
template <class Item, int kRows>
ANYDML_NOINLINE void multiply_rows_across(const float* x, const std::byte* b, int64_t step, int64_t depth,
                                          float* sums) {
  using S = Squares<Item>;
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  Columns y[kRows][2]{};
  const int64_t whole = depth / S::kDeep * S::kDeep;
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    for (int64_t k = 0; k < whole; k += S::kDeep) {
      for_each_of_columns<Item, 0>(b + v * kColumnLanes * step + k * kItem, step, [&](int64_t i, Columns w) {
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) y[r][v] = multiply_add(x[r * kDepth + k + i] - Columns{}, w, y[r][v]);
      });
    }
  }
  for (int64_t k = whole; k < depth; ++k) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const Columns w = element_of_columns<Item>(b + v * kColumnLanes * step + k * kItem, step);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) y[r][v] = multiply_add(x[r * kDepth + k] - Columns{}, w, y[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      auto* const to = reinterpret_cast<std::byte*>(sums + r * kPanel + v * kColumnLanes);
      store_numbers<float, float>(to, y[r][v]);
    }
  }
}

// By the rows, less 1.
template <class Item>
inline constexpr MultiplyRowsAcross kMultiplyRowsAcross[]{
    multiply_rows_across<Item, 1>, multiply_rows_across<Item, 2>, multiply_rows_across<Item, 3>,
    multiply_rows_across<Item, 4>};
#else
template <class Item>
inline constexpr MultiplyRowsAcross kMultiplyRowsAcross[kRowsAcross]{};
#endif

ANYDML_ISA_END
