// Packing of weights: panels whose columns are units of gates, side by side for each element of the depth.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "attention/rows.h"
#include "dense/tile.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "recurrent/tuning.h"
#include "simd/half.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// Units of a layer, padded, as many as a chunk has.
struct UnitRange {
  int64_t begin;
  int64_t end;
  int64_t chunk;
  int64_t size() const { return end - begin; }
};

// A matrix of weights: rows are units, gate by gate, columns the depth. Steps are in bytes.
struct GateWeights {
  const std::byte* at;
  int64_t row_step;
  int64_t step;
  int64_t hidden;  // units of a gate
};

// Calls body(gate, unit, column, count) for what `width` columns from `first` are, of columns that are the
// units of a range, gate by gate.
template <class Body>
void for_each_gate(UnitRange units, int64_t first, int64_t width, const Body& body) {
  for (int64_t column = 0; column < width;) {
    const int64_t gate = (first + column) / units.size();
    const int64_t unit = (first + column) % units.size();
    const int64_t count = std::min(width - column, units.size() - unit);
    body(gate, units.begin + unit, column, count);
    column += count;
  }
}

#if defined(ANYDML_VECTORS)
// The lanes of two rows in turn: those of their first halves, and those of their second halves.
template <size_t... kLane>
ANYDML_INLINE void interleave_rows(const Columns& a, const Columns& b, Columns& low, Columns& high,
                                   std::index_sequence<kLane...>) {
  constexpr int kCount = sizeof...(kLane);
  low = __builtin_shufflevector(a, b, static_cast<int>(kLane / 2 + kLane % 2 * kCount)...);
  high = __builtin_shufflevector(a, b, static_cast<int>(kCount / 2 + kLane / 2 + kLane % 2 * kCount)...);
}

// A square of as many rows as a vector has lanes, transposed: each round interleaves row i with row i + half.
template <class T>
ANYDML_INLINE void pack_square(const std::byte* from, int64_t row_step, float* to, int64_t width) {
  Columns rows[kColumnLanes];
#pragma GCC unroll 16
  for (int64_t i = 0; i < kColumnLanes; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      rows[i] = load_vector<Columns>(from + i * row_step);
    } else {
      rows[i] = load_numbers<T, float, Columns>(from + i * row_step);
    }
  }
#pragma GCC unroll 4
  for (int64_t round = 1; round < kColumnLanes; round *= 2) {
    Columns next[kColumnLanes];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kColumnLanes / 2; ++i) {
      interleave_rows(rows[i], rows[i + kColumnLanes / 2], next[2 * i], next[2 * i + 1],
                      std::make_index_sequence<static_cast<size_t>(kColumnLanes)>{});
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < kColumnLanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kColumnLanes; ++i)
    store_vector(reinterpret_cast<std::byte*>(to + i * width), rows[i]);
}
#endif

// Rows of weights as columns of a panel. Where the elements of rows lie side by side, squares of them are
// transposed in registers, and written in whole lines, which are far apart.
template <class T>
void pack_columns(const GateWeights& weights, const std::byte* from, int64_t depth, int64_t columns,
                  float* to, int64_t width) {
  int64_t whole_depth = 0;
  int64_t whole_columns = 0;
#if defined(ANYDML_VECTORS)
  if constexpr (std::is_same_v<T, float> || std::is_same_v<Columns, Singles>) {
    if (weights.step == static_cast<int64_t>(sizeof(T))) {
      whole_depth = depth / kColumnLanes * kColumnLanes;
      whole_columns = columns / kColumnLanes * kColumnLanes;
      for (int64_t c = 0; c < whole_columns; c += kColumnLanes) {
        for (int64_t k = 0; k < whole_depth; k += kColumnLanes) {
          pack_square<T>(from + c * weights.row_step + k * weights.step, weights.row_step, to + k * width + c,
                         width);
        }
      }
    }
  }
#endif
  for (int64_t k = columns == whole_columns ? whole_depth : 0; k < depth; ++k) {
    const int64_t c = k < whole_depth ? whole_columns : 0;
    load_row<T>(from + c * weights.row_step + k * weights.step, weights.row_step, columns - c,
                to + k * width + c);
  }
}

// Elements [first_depth, first_depth + depth) of columns [first, first + width), with zeros for units that
// there are not.
template <class T>
void pack_weights(const GateWeights& weights, UnitRange units, const int* gates, int64_t first, int64_t width,
                  int64_t first_depth, int64_t depth, float* to) {
  for_each_gate(units, first, width, [&](int64_t gate, int64_t unit, int64_t column, int64_t columns) {
    const int64_t there = std::clamp<int64_t>(weights.hidden - unit, 0, columns);
    if (there > 0) {
      const std::byte* const from =
          weights.at + (gates[gate] * weights.hidden + unit) * weights.row_step + first_depth * weights.step;
      pack_columns<T>(weights, from, depth, there, to + column, width);
    }
    for (int64_t k = 0; there < columns && k < depth; ++k)
      std::fill_n(to + k * width + column + there, columns - there, 0.0f);
  });
}

ANYDML_ISA_END
