// Products of small matrices in single precision (GEBP): each sum is one chain of fused multiply-adds in the
// order of the inner dimension, whatever the tile that it is in.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention/tuning.h"
#include "attention/weights.h"
#include "dense/tile.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// The lanes of a panel that has so many columns: its last vector may be all that it has.
inline int64_t width_of(int64_t columns) {
  return columns <= kColumnLanes && kColumnLanes % kSingleLanes == 0 ? kColumnLanes : kPanel;
}

// scores[j][r] = sum over i of keys[j][i] * queries[i][r], for a panel of queries; added to what is there, or
// instead of it.
inline void multiply_keys(const std::byte* keys, int64_t step, int64_t count, int64_t depth,
                          const float* queries, int64_t width, bool is_first, float* scores) {
  static constexpr float kZeros[kPanel]{};
  alignas(64) float sums[kMostRows * kPanel];
  DenseTile tile{keys,
                 step,
                 sizeof(float),
                 depth,
                 reinterpret_cast<const std::byte*>(queries),
                 width * static_cast<int64_t>(sizeof(float)),
                 kZeros,
                 0};
  const auto& tiles_of = kMultiplyTile[width > kColumnLanes ? 1 : 0];
  const int64_t tiles = divided_up(count, kMostRows);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t row = share_begin(t, tiles, count);
    const int64_t rows = share_begin(t + 1, tiles, count) - row;
    float* const to = scores + row * width;
    tile.from = keys + row * step;
    tiles_of[static_cast<size_t>(rows - 1)](tile, is_first ? to : sums);
    for (int64_t i = 0; !is_first && i < rows * width; ++i) to[i] += sums[i];
  }
}

// Values of some keys, a panel of columns at a time, in bytes.
struct ValuePanels {
  const std::byte* at;
  int64_t panel_step;
  int64_t row_step;
};

// sums[r][c] = factor[r] * sums[r][c] + sum over j of weights[j][r] * values[j][c], for a panel of `count`
// rows from `row` on, `seen` of whose keys have weights; no row reads a value that it does not see, be it
// infinite. Sums lie panel by panel of columns, `panel_step` floats apart.
inline void multiply_values(const float* weights, int64_t width, int64_t row, int64_t count, int64_t keys,
                            bool is_part, const Rows& rows, const ValuePanels& values, int64_t columns,
                            float* sums, int64_t panel_step) {
  static constexpr float kZeros[kPanel]{};
  constexpr auto kSingle = static_cast<int64_t>(sizeof(float));
  alignas(64) float results[kMostRows * kPanel];
  const int64_t tiles = divided_up(count, kMostRows);
  const auto seen = [&](int64_t r) { return static_cast<int64_t>(rows.seen[static_cast<size_t>(row + r)]); };
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t begin = share_begin(t, tiles, count);
    const int64_t end = share_begin(t + 1, tiles, count);
    int64_t common = keys;
    for (int64_t r = begin; is_part && r < end; ++r) common = std::min(common, seen(r));
    for (int64_t c = 0, p = 0; c < columns; c += kPanel, ++p) {
      const bool is_wide = columns - c > kColumnLanes;
      const int64_t lanes = is_wide ? kPanel : kColumnLanes;
      const std::byte* const panel = values.at + p * values.panel_step;
      const DenseTile tile{reinterpret_cast<const std::byte*>(weights + begin),
                           kSingle,
                           width * kSingle,
                           common,
                           panel,
                           values.row_step,
                           kZeros,
                           0};
      kMultiplyTile[is_wide ? 1 : 0][static_cast<size_t>(end - begin - 1)](tile, results);
      for (int64_t r = begin; is_part && r < end; ++r) {
        if (seen(r) == common) continue;
        float* const result = results + (r - begin) * lanes;
        const DenseTile rest{reinterpret_cast<const std::byte*>(weights + common * width + r),
                             kSingle,
                             width * kSingle,
                             seen(r) - common,
                             panel + common * values.row_step,
                             values.row_step,
                             result,
                             0};
        kMultiplyTile[is_wide ? 1 : 0][0](rest, result);
      }
      for (int64_t r = begin; r < end; ++r) {
        float* const to = sums + p * panel_step + (row + r) * kPanel;
        const float* const from = results + (r - begin) * lanes;
        const Columns factor = Columns{} + rows.factors[static_cast<size_t>(row + r)];
        for (int64_t i = 0; i < lanes; i += kColumnLanes) {
          Columns before;
          Columns sum;
          std::memcpy(&before, to + i, sizeof(before));
          std::memcpy(&sum, from + i, sizeof(sum));
          sum = multiply_add(before, factor, sum);
          std::memcpy(to + i, &sum, sizeof(sum));
        }
      }
    }
  }
}

// The same of a few rows, which lie one behind the other: weights kKeys apart, sums and values by whole rows.
struct FewValues {
  const float* weights;
  const std::byte* values;
  int64_t step;
  int64_t keys;
  int64_t columns;  // a multiple of kWidest
  const float* factors;
  float* sums;
};

template <int kRows, int kVectors>
ANYDML_INLINE void multiply_few(const FewValues& few, int64_t column) {
  Singles sums[kRows][kVectors]{};
  const std::byte* values = few.values + column * static_cast<int64_t>(sizeof(float));
  for (int64_t j = 0; j < few.keys; ++j, values += few.step) {
    Singles y[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) std::memcpy(&y[v], values + v * sizeof(Singles), sizeof(Singles));
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const Singles x = singles(few.weights[i * kKeys + j]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[i][v] = multiply_add(x, y[v], sums[i][v]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      float* const to = few.sums + i * few.columns + column + v * kSingleLanes;
      put_singles(to, multiply_add(singles_at(to), singles(few.factors[i]), sums[i][v]));
    }
  }
}

template <int kRows>
ANYDML_NOINLINE void multiply_few(const FewValues& few) {
  // Two sums alone would wait for each other.
  constexpr int kMost = kRows == 1 ? 8 : kRows == 2 ? 4 : 2;
  int64_t column = 0;
  for (; column + kMost * kSingleLanes <= few.columns; column += kMost * kSingleLanes) {
    multiply_few<kRows, kMost>(few, column);
  }
  if constexpr (kRows == 1) {
    for (; column + 4 * kSingleLanes <= few.columns; column += 4 * kSingleLanes)
      multiply_few<1, 4>(few, column);
  }
  for (; column < few.columns; column += kSingleLanes) multiply_few<kRows, 1>(few, column);
}

inline void multiply_few(const FewValues& few, int64_t rows) {
  static constexpr std::array<void (*)(const FewValues&), kFewRows> kByRows{multiply_few<1>, multiply_few<2>,
                                                                            multiply_few<3>, multiply_few<4>};
  kByRows[static_cast<size_t>(rows - 1)](few);
}

ANYDML_ISA_END
