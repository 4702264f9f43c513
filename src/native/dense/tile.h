// The micro-kernel of products of matrices: some rows by a panel of columns, whose results stay in registers.
//
// Every result is one chain of fused multiply-adds in the order of the depth: the same bits everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Rows of a register tile. Two vectors of each are as many sums as registers hold: of 32, or of 16. Where a
// fused multiply-add is computed in double precision, registers hold one.
#if defined(ANYDML_ISA_AVX512)
inline constexpr int kMostRows = 14;
#elif defined(__aarch64__)
inline constexpr int kMostRows = 12;
#elif defined(ANYDML_ISA_AVX2)
inline constexpr int kMostRows = 6;
#else
inline constexpr int kMostRows = 2;
#endif
// Multiplications that take as long as a byte of memory, for the number of threads.
inline constexpr int64_t kMultiplicationsOfAByte = 2;

// Of a row: as many as one register holds, as GCC keeps what takes two in memory.
#if defined(__aarch64__)
using Columns = Vector<float, 4>;
ANYDML_INLINE Columns multiply_add(Columns x, Columns y, Columns z) { return vfmaq_f32(z, x, y); }
#else
using Columns = Singles;
#endif
inline constexpr int64_t kColumnLanes = sizeof(Columns) / sizeof(float);
inline constexpr int64_t kPanel = 2 * kColumnLanes;

// What a tile of results is made of. Steps are in bytes; weights are side by side in each row of a panel.
struct DenseTile {
  const std::byte* from;
  int64_t row_step;
  int64_t step;
  int64_t depth;
  const std::byte* weights;
  int64_t weights_step;
  const float* start;  // of the results, in rows that are start_step floats apart
  int64_t start_step;
  // What is added to the sums, if anything, in rows that are added_step floats apart.
  const float* added = nullptr;
  int64_t added_step = 0;
  // Rows of the results are so many floats apart, or side by side if it is 0.
  int64_t results_step = 0;
  // What is prefetched meanwhile, if anything: a line for each two of the depth; where steps are known at run
  // time alone, the line of every ahead_step bytes for each one.
  const std::byte* ahead = nullptr;
  int64_t ahead_step = 0;
  // Parts of the depth whose elements lie so many bytes behind `from`, each as deep, one after the other;
  // null is one at `from` itself. Where steps are known at run time alone.
  const int64_t* offsets = nullptr;
  int64_t parts = 1;
};

template <int kRows, int kVectors>
using Sums = Columns[kRows][kVectors];

template <int kRows, int kVectors>
ANYDML_INLINE void load_sums(Sums<kRows, kVectors>& sums, const float* from, int64_t step) {
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      sums[i][v] = load<Columns>(reinterpret_cast<const std::byte*>(from + i * step + v * kColumnLanes));
  }
}

template <int kRows, int kVectors>
ANYDML_INLINE void store_sums(const DenseTile& tile, const Sums<kRows, kVectors>& sums, const float* added,
                              float* results) {
  const int64_t results_step = tile.results_step != 0 ? tile.results_step : kVectors * kColumnLanes;
  const int64_t added_step = tile.added_step;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      Columns y = sums[i][v];
      if (added != nullptr)
        y += load<Columns>(reinterpret_cast<const std::byte*>(added + i * added_step + v * kColumnLanes));
      store(reinterpret_cast<std::byte*>(results + i * results_step + v * kColumnLanes), y);
    }
  }
}

// sums[i][c] += x[i] * w[c], where row_at(i) is the address of x[i].
template <int kRows, int kVectors, class RowAt>
ANYDML_INLINE void add_products(Sums<kRows, kVectors>& sums, const std::byte* weights, const RowAt& row_at) {
  Columns w[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v)
    w[v] = load<Columns>(weights + v * static_cast<int64_t>(sizeof(Columns)));
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    const Columns x = load<float>(row_at(i)) - Columns{};
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[i][v] = multiply_add(x, w[v], sums[i][v]);
  }
}

// y[i][c] = added[i][c] + (start[i][c] + sum over k of x[i][k] * w[k][c]), in rows of kVectors vectors. Where
// kRowStep is not 0, rows of x are so many bytes apart and their elements kStep, and the rows of the panel
// lie side by side: what a compiler knows of addresses takes no registers, and no time to compute.
template <int kRows, int kVectors, int64_t kRowStep = 0, int64_t kStep = 0>
ANYDML_NOINLINE void multiply_tile(const DenseTile& tile, float* results) {
  Sums<kRows, kVectors> sums;
  load_sums<kRows, kVectors>(sums, tile.start, tile.start_step);
  const std::byte* weights = tile.weights;
  if constexpr (kRowStep != 0) {
    constexpr auto kWidth = static_cast<int64_t>(kVectors * sizeof(Columns));
    const std::byte* from = tile.from;
    int64_t k = 0;
    if constexpr (!kCompact) {
      const std::byte* ahead = tile.ahead != nullptr ? tile.ahead : weights;
      for (; k + 2 <= tile.depth; k += 2, from += 2 * kStep, weights += 2 * kWidth, ahead += kLine) {
        prefetch_line(ahead);
#pragma GCC unroll 2
        for (int u = 0; u < 2; ++u) {
          add_products<kRows, kVectors>(sums, weights + u * kWidth,
                                        [&](int i) { return from + i * kRowStep + u * kStep; });
        }
      }
    }
    for (; k < tile.depth; ++k, from += kStep, weights += kWidth) {
      add_products<kRows, kVectors>(sums, weights, [&](int i) { return from + i * kRowStep; });
    }
  } else {
    // Four rows by a pointer and two multiples of the step: one for each would be too many for the registers.
    constexpr int kGroups = (kRows + 3) / 4;
    const int64_t row_step = tile.row_step;
    const int64_t three = 3 * row_step;
    const int64_t step = tile.step;
    const int64_t weights_step = tile.weights_step;
    const std::byte* ahead = tile.ahead != nullptr ? tile.ahead : weights;
    const int64_t ahead_step = tile.ahead_step;
    for (int64_t part = 0; part < tile.parts; ++part) {
      const std::byte* at[kGroups];
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g)
        at[g] = tile.from + (tile.offsets != nullptr ? tile.offsets[part] : 0) + g * 4 * row_step;
      for (int64_t k = 0; k < tile.depth; ++k, weights += weights_step, ahead += ahead_step) {
        if constexpr (!kCompact) prefetch_line(ahead);
        add_products<kRows, kVectors>(
            sums, weights, [&](int i) { return at[i / 4] + (i % 4 == 3 ? three : i % 4 * row_step); });
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) at[g] += step;
      }
    }
  }
  if (tile.added == nullptr) {
    store_sums<kRows, kVectors>(tile, sums, nullptr, results);
  } else {
    store_sums<kRows, kVectors>(tile, sums, tile.added, results);
  }
}

using MultiplyTile = void (*)(const DenseTile&, float* results);
template <int kVectors, int64_t kRowStep, int64_t kStep, int... kRows>
constexpr std::array<MultiplyTile, kMostRows> tiles_by_rows(std::integer_sequence<int, kRows...>) {
  return {multiply_tile<kRows + 1, kVectors, kRowStep, kStep>...};
}

// By the vectors of a panel, less 1, and the rows, less 1.
template <int64_t kRowStep, int64_t kStep>
inline constexpr std::array<std::array<MultiplyTile, kMostRows>, 2> kTilesOfSteps{
    tiles_by_rows<1, kRowStep, kStep>(std::make_integer_sequence<int, kMostRows>{}),
    tiles_by_rows<2, kRowStep, kStep>(std::make_integer_sequence<int, kMostRows>{})};
inline constexpr const auto& kMultiplyTile = kTilesOfSteps<0, 0>;

ANYDML_ISA_END
