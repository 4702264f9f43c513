// Packing: panels of columns, and groups of rows, as singles side by side in the order in which tiles read
// them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dense/product.h"
#include "dense/squares.h"
#include "dense/tuning.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Of a panel of so many columns, whose last vector may be all that it has.
inline int64_t width_of(int64_t columns) { return columns <= kColumnLanes ? kColumnLanes : kPanel; }

// Copies elements To from From, side by side: the same type, or halves as singles.
template <class From, class To>
ANYDML_INLINE void copy_run(const std::byte* from, To* to, int64_t count) {
  if constexpr (std::is_same_v<From, To>) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(To));
  } else {
    widen_run<From>(from, to, count);
  }
}

// A panel of columns, each of which lies side by side in memory, `step` behind the one before.
template <class From>
void pack_columns(const std::byte* from, int64_t step, int64_t depth, float* to);

#if defined(ANYDML_VECTORS) && defined(__GNUC__)
template <class From>
ANYDML_NOINLINE void pack_columns(const std::byte* from, int64_t step, int64_t depth, float* to) {
  constexpr int64_t kDeep = Squares<From>::kDeep;
  constexpr auto kItem = static_cast<int64_t>(sizeof(From));
  for (int v = 0; v < 2; ++v, from += kColumnLanes * step, to += kColumnLanes) {
    const auto put = [&](int64_t k, Columns w) { store(reinterpret_cast<std::byte*>(to + k * kPanel), w); };
    int64_t k = 0;
    for (; k + kDeep <= depth; k += kDeep) {
      for_each_of_columns<From>(from + k * kItem, step, [&](int64_t i, Columns w) { put(k + i, w); });
    }
    for (; k < depth; ++k) put(k, element_of_columns<From>(from + k * kItem, step));
  }
}
#endif

// Panels of columns, each `panel_step` behind the one before, with zeros for columns that there are not.
// `staging` has room for kDepth * kPanel halves.
template <class From, class To>
ANYDML_NOINLINE void pack_panels(const std::byte* from, Matrix matrix, int64_t depth, int64_t columns, To* to,
                                 int64_t panel_step, std::byte* staging) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(From));
  const int64_t whole = columns / kPanel;
  const int64_t rest = columns % kPanel;
  const int64_t width = width_of(rest);
  To* const last = to + whole * panel_step;
  if (rest != 0 && rest != width) std::fill_n(last, depth * width, To{});
  if (matrix.column == kItem) {
    for (int64_t k = 0; k < depth; ++k) {
      const std::byte* row = from + k * matrix.row;
      To* at = to + k * kPanel;
      for (int64_t panel = 0; panel < whole; ++panel, row += kPanel * kItem, at += panel_step) {
        copy_run<From, To>(row, at, kPanel);
      }
      if (rest != 0) copy_run<From, To>(row, last + k * width, rest);
    }
    return;
  }
  using Bits = std::conditional_t<kItem == 4, uint32_t, uint16_t>;
  for (int64_t first = 0; first < columns; first += kPanel, to += panel_step) {
    const int64_t count = std::min(kPanel, columns - first);
    const int64_t wide = width_of(count);
    if constexpr (std::is_same_v<To, float> && kTransposesColumns<From>) {
      if (matrix.row == kItem && count == kPanel) {
        pack_columns<From>(from + first * matrix.column, matrix.column, depth, to);
        continue;
      }
    }
    for (int64_t k = 0; k < depth; k += kDepth) {
      const int64_t deep = std::min(kDepth, depth - k);
      const Tile tile{from + first * matrix.column + k * matrix.row, matrix.row, matrix.column};
      auto* const at = reinterpret_cast<std::byte*>(to + k * wide);
      if constexpr (std::is_same_v<From, To>) {
        gather_tile<Bits>(tile, deep, count, at, wide * kItem);
      } else {
        if (count < wide) std::memset(staging, 0, static_cast<size_t>(deep * wide * kItem));
        gather_tile<Bits>(tile, deep, count, staging, wide * kItem);
        widen_run<From>(staging, to + k * wide, deep * wide);
      }
    }
  }
}

// Where rows lie as singles, in bytes.
struct Rows {
  const std::byte* from;
  int64_t row_step;
  int64_t step;
};

// At most kGroupRows rows of at most kDepth: those that lie side by side in memory do so here too.
template <class From>
ANYDML_NOINLINE Rows pack_rows(const std::byte* from, Matrix matrix, int64_t rows, int64_t depth, float* to) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(From));
  const auto* const packed = reinterpret_cast<const std::byte*>(to);
  if (matrix.row == kItem && matrix.column != kItem) {
    for (int64_t k = 0; k < depth; ++k) widen_run<From>(from + k * matrix.column, to + k * kGroupRows, rows);
    return {packed, 4, kGroupRows * 4};
  }
  for (int64_t r = 0; r < rows; ++r) {
    widen_line<From>(from + r * matrix.row, matrix.column, to + r * kPackedRowStep, depth);
  }
  return {packed, kPackedRowStep * 4, 4};
}

// What a group of rows takes, in singles.
inline int64_t packed_rows_size(int64_t rows, int64_t depth) {
  return std::max(std::min(rows, kGroupRows) * kPackedRowStep, std::min(depth, kDepth) * kGroupRows);
}

ANYDML_ISA_END
