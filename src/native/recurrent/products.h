// Products of rows and packed panels of columns: each sum is one chain of fused multiply-adds in the order of
// the depth, whatever the panel's width and the rows of a tile.
//
// The fewer rows there are, the wider are panels, so that as many chains run beside each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "dense/tile.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// y[i][c] = start[i][c] + sum over k of x[i][k] * w[k][c], in rows that are out_step floats apart; or, with
// biases, y[i][c] = y[i][c] + (that + bias[c]).
template <int kRows, int kVectors>
ANYDML_NOINLINE void add_products(const DenseTile& tile, const float* bias, float* out, int64_t out_step) {
  Columns sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      std::memcpy(&sums[i][v], tile.start + i * tile.start_step + v * kColumnLanes, sizeof(Columns));
  }
  constexpr int kGroups = (kRows + 3) / 4;
  const std::byte* at[kGroups];
  for (int g = 0; g < kGroups; ++g) at[g] = tile.from + g * 4 * tile.row_step;
  const int64_t row_step = tile.row_step;
  const int64_t three = 3 * row_step;
  const int64_t step = tile.step;
  const std::byte* weights = tile.weights;
  const auto x_of = [&](int i) {
    return load<float>(at[i / 4] + (i % 4 == 3 ? three : i % 4 * row_step)) - Columns{};
  };
  const auto w_of = [&](int v) {
    return load_vector<Columns>(weights + v * static_cast<int64_t>(sizeof(Columns)));
  };
  for (int64_t k = 0; k < tile.depth; ++k, weights += kVectors * sizeof(Columns)) {
    // What is used more often stays in registers.
    if constexpr (kRows < kVectors) {
      Columns x[kRows];
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) x[i] = x_of(i);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Columns w = w_of(v);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) sums[i][v] = multiply_add(x[i], w, sums[i][v]);
      }
    } else {
      Columns w[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) w[v] = w_of(v);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const Columns x = x_of(i);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[i][v] = multiply_add(x, w[v], sums[i][v]);
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) at[g] += step;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      float* const to = out + i * out_step + v * kColumnLanes;
      Columns sum = sums[i][v];
      if (bias != nullptr) {
        Columns before;
        Columns added;
        std::memcpy(&before, to, sizeof(Columns));
        std::memcpy(&added, bias + v * kColumnLanes, sizeof(Columns));
        sum = before + (sum + added);
      }
      std::memcpy(to, &sum, sizeof(Columns));
    }
  }
}

// Panels have 1, 2, 4 or 8 vectors: two to the power of their level.
inline constexpr int kLevels = 4;
// Rows of a tile, whose sums stay in registers.
constexpr int tile_rows(int level) { return level < 2 ? kMostRows : std::max(1, kMostRows * 2 >> level); }

using AddProducts = void (*)(const DenseTile&, const float* bias, float* out, int64_t out_step);
template <int kLevel, int... kRows>
constexpr std::array<AddProducts, kMostRows> products_by_rows(std::integer_sequence<int, kRows...>) {
  return {add_products<kRows + 1, 1 << kLevel>...};
}
template <int... kLevel>
constexpr std::array<std::array<AddProducts, kMostRows>, kLevels> products_by_level(
    std::integer_sequence<int, kLevel...>) {
  return {products_by_rows<kLevel>(std::make_integer_sequence<int, tile_rows(kLevel)>{})...};
}
// By the level, and the rows less 1.
inline constexpr auto kAddProducts = products_by_level(std::make_integer_sequence<int, kLevels>{});

// The level of the panels for so many rows.
inline int level_for(int64_t rows) {
  for (int level = kLevels - 1; level > 1; --level) {
    if (rows <= tile_rows(level)) return level;
  }
  return 1;
}

constexpr int64_t panel_width(int level) { return kColumnLanes << level; }

// Calls body(first column, level) for the panels of so many columns, the last of which are narrower.
template <class Body>
void for_each_panel(int64_t columns, int level, const Body& body) {
  for (int64_t first = 0; first < columns; first += panel_width(level)) {
    while (panel_width(level) > columns - first) --level;
    body(first, level);
  }
}

// All rows by a panel, in tiles that are as even as can be.
inline void add_panel(DenseTile tile, const float* bias, int64_t rows, int level, float* out,
                      int64_t out_step) {
  const std::byte* const from = tile.from;
  const float* const start = tile.start;
  const int64_t tiles = (rows + tile_rows(level) - 1) / tile_rows(level);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t row = share_begin(t, tiles, rows);
    const int64_t count = share_begin(t + 1, tiles, rows) - row;
    tile.from = from + row * tile.row_step;
    tile.start = start + row * tile.start_step;
    kAddProducts[static_cast<size_t>(level)][static_cast<size_t>(count - 1)](tile, bias, out + row * out_step,
                                                                             out_step);
  }
}

ANYDML_ISA_END
