// The micro-kernel of convolutions on planes: some results of a group by a panel of places.
//
// Every result is one chain of fused multiply-adds, from its bias on, through the taps in their order and
// each tap's channels: the same bits everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dense/tile.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Steps are in bytes.
struct WindowTile {
  // Weights, of a result one after the other.
  const std::byte* weights;
  int64_t result_step;
  int64_t step;
  // Elements of neighbouring places side by side, at each tap's offset.
  const std::byte* places;
  const int64_t* offsets;
  int64_t taps;
  int64_t channels;
  int64_t channel_step;
  const float* biases;  // null where the sums go on from the results
};

// Rows from which on there is time to prefetch the next panel of places, beside the channels' own: the
// channels are more streams than processors follow by themselves.
inline constexpr int kRowsToPrefetch = 4;

// y[i][p] = start[i] + sum over taps t and channels c of w[i][t, c] * x[c][p + t], in rows of kVectors
// vectors.
template <int kRows, int kVectors>
ANYDML_NOINLINE void multiply_window(const WindowTile& tile, float* results) {
  Columns sums[kRows][kVectors];
  if (tile.biases != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[i][v] = tile.biases[i] - Columns{};
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        std::memcpy(&sums[i][v], results + (i * kVectors + v) * kColumnLanes, sizeof(Columns));
    }
  }
  // Four rows by a pointer and two multiples of the step: one for each would be too many for the registers.
  constexpr int kGroups = (kRows + 3) / 4;
  const std::byte* at[kGroups];
  for (int g = 0; g < kGroups; ++g) at[g] = tile.weights + g * 4 * tile.result_step;
  const int64_t result_step = tile.result_step;
  const int64_t three = 3 * result_step;
  const int64_t step = tile.step;
  const int64_t channels = tile.channels;
  const int64_t channel_step = tile.channel_step;
  const int64_t* const end = tile.offsets + tile.taps;
  for (const int64_t* offset = tile.offsets; offset < end; ++offset) {
    const std::byte* from = tile.places + *offset;
    for (int64_t c = 0; c < channels; ++c, from += channel_step) {
      Columns x[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        x[v] = load_vector<Columns>(from + v * static_cast<int64_t>(sizeof(Columns)));
      if constexpr (kRows >= kRowsToPrefetch) {
        constexpr int64_t kWidth = kVectors * static_cast<int64_t>(sizeof(Columns));
#pragma GCC unroll 8
        for (int64_t at_byte = 63; at_byte < kWidth; at_byte += 64)
          __builtin_prefetch(from + kWidth + at_byte);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const Columns w = load<float>(at[i / 4] + (i % 4 == 3 ? three : i % 4 * result_step)) - Columns{};
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[i][v] = multiply_add(w, x[v], sums[i][v]);
      }
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) at[g] += step;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    std::memcpy(results + i * kVectors * kColumnLanes, sums[i], sizeof(sums[i]));
  }
}

// As many sums as hide the latency of a multiply-add: of few rows more vectors. Where one is computed in
// double precision, registers hold few.
constexpr int64_t most_vectors(int64_t rows) { return kCompact ? 2 : rows == 1 ? 8 : rows <= 3 ? 4 : 2; }

inline constexpr int64_t kMostLanes = 8 * kColumnLanes;

using MultiplyWindow = void (*)(const WindowTile&, float* results);
template <int kVectors, int... kRows>
constexpr std::array<MultiplyWindow, kMostRows> windows_by_rows(std::integer_sequence<int, kRows...>) {
  const auto of = []<int kCount>() -> MultiplyWindow {
    if constexpr (kVectors <= most_vectors(kCount)) return multiply_window<kCount, kVectors>;
    return nullptr;
  };
  return { of.template operator()<kRows + 1>()... };
}
template <int... kVectors>
constexpr std::array<std::array<MultiplyWindow, kMostRows>, sizeof...(kVectors)> windows_by_vectors(
    std::integer_sequence<int, kVectors...>) {
  return {windows_by_rows<kVectors + 1>(std::make_integer_sequence<int, kMostRows>{})...};
}

// By the vectors of a panel, less 1, and the rows, less 1.
inline constexpr auto kMultiplyWindow = windows_by_vectors(std::make_integer_sequence<int, 8>{});

ANYDML_ISA_END
