// What is computed of a product of matrices: its sizes, where its operands lie, and what is done to a sum
// before it is stored.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "dense/activation.h"
#include "dense/tile.h"
#include "nhwc/fused_activation.h"
#include "platform/division.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Steps in bytes from row to row, and from column to column.
struct Matrix {
  int64_t row;
  int64_t column;

  Matrix transposed() const { return {column, row}; }
};

struct Product {
  std::vector<int64_t> batch;
  std::array<std::vector<int64_t>, 4> steps;  // of A, B, C and the output, along the batch
  int64_t rows;
  int64_t columns;
  int64_t depth;
  Matrix a;  // rows by depth
  Matrix b;  // depth by columns
  Matrix c;
  Matrix y;
  bool has_c;
  double alpha;
  double beta;
  bool has_activation;
  Fused fused;
  TileActivation activation;  // another than those
  bool stores_singles;        // of halves, for an activation of the whole output
  bool is_swapped = false;    // A is the second input

  bool is_plain() const { return !has_c && alpha == 1 && !has_activation; }
};

struct Range {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};

// Of one product of a batch.
struct Operands {
  const std::byte* a;
  const std::byte* b;
  const std::byte* c;
  std::byte* y;
};

// Elements side by side as singles.
template <class Item>
ANYDML_INLINE void widen_run(const std::byte* from, float* to, int64_t count) {
  constexpr int64_t kItem = sizeof(Item);
  int64_t i = 0;
  for (; i + kColumnLanes <= count; i += kColumnLanes) {
    store_numbers<float, float>(reinterpret_cast<std::byte*>(to + i),
                                load_numbers<Item, float, Columns>(from + i * kItem));
  }
  for (; i + kLanesOf<float> <= count; i += kLanesOf<float>) {
    store_lanes<float, float>(reinterpret_cast<std::byte*>(to + i),
                              load_lanes<Item, float>(from + i * kItem));
  }
  for (; i < count; ++i) to[i] = static_cast<float>(load<Item>(from + i * kItem));
}

// Likewise elements at any distance.
template <class Item>
inline void widen_line(const std::byte* from, int64_t step, float* to, int64_t count) {
  if (step == sizeof(Item)) return widen_run<Item>(from, to, count);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(load<Item>(from + i * step));
}

// Singles as elements, rounded once.
template <class Item>
inline void narrow_line(const float* from, std::byte* to, int64_t step, int64_t count) {
  constexpr int64_t kItem = sizeof(Item);
  int64_t i = 0;
  if (step == kItem) {
    for (; i + kLanesOf<float> <= count; i += kLanesOf<float>) {
      const auto* const at = reinterpret_cast<const std::byte*>(from + i);
      store_lanes<Item, float>(to + i * kItem, load_lanes<float, float>(at));
    }
  }
  for (; i < count; ++i) store(to + i * step, static_cast<Item>(from[i]));
}

// y = f(alpha * total + beta * c), of a tile of at most a panel's columns; totals lie in rows of `width`,
// which is a multiple of vectors.
template <class Item>
ANYDML_NOINLINE void finish_tile(const Product& p, const Operands& operands, Range rows, Range columns,
                                 float* totals, int64_t width) {
  const int64_t count = columns.size();
  float* const first = totals;
  // A sum or a product of two singles that is rounded to a double and then to a single is rounded as if once.
  const bool is_single_alpha = static_cast<double>(static_cast<float>(p.alpha)) == p.alpha;
  const auto alpha = static_cast<float>(p.alpha);
  for (int64_t row = rows.begin; row < rows.end; ++row, totals += width) {
    if (p.has_c) {
      float added[kPanel];
      widen_line<Item>(operands.c + row * p.c.row + columns.begin * p.c.column, p.c.column, added, count);
      if (p.alpha == 1 && p.beta == 1) {
        for (int64_t i = 0; i < count; ++i) totals[i] += added[i];
      } else {
        for (int64_t i = 0; i < count; ++i) {
          const double y = p.alpha * static_cast<double>(totals[i]) + p.beta * static_cast<double>(added[i]);
          totals[i] = static_cast<float>(y);
        }
      }
    } else if (p.alpha != 1 && is_single_alpha) {
      for (int64_t i = 0; i < count; ++i) totals[i] *= alpha;
    } else if (p.alpha != 1) {
      for (int64_t i = 0; i < count; ++i) totals[i] = static_cast<float>(p.alpha * totals[i]);
    }
  }
  if (!p.activation.is_none()) p.activation.apply(first, rows.size() * width);
  totals = first;
  for (int64_t row = rows.begin; row < rows.end; ++row, totals += width) {
    auto* const bytes = reinterpret_cast<std::byte*>(totals);
    for (int64_t i = 0; p.has_activation && i < count; i += kLanesOf<float>) {
      const auto lanes = load_lanes<float, float>(bytes + i * 4);
      store_lanes<float, float>(bytes + i * 4, p.fused.applied<float>(lanes));
    }
    std::byte* const to = operands.y + row * p.y.row + columns.begin * p.y.column;
    if (p.stores_singles) {
      narrow_line<float>(totals, to, p.y.column, count);
    } else {
      narrow_line<Item>(totals, to, p.y.column, count);
    }
  }
}

ANYDML_ISA_END
