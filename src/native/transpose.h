// Tiles of elements, copied from where they lie apart to where they lie side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "isa.h"
#include "memory.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(__GNUC__)
inline constexpr int64_t kSquareBytes = 16;

template <class Bits>
using SquareRow __attribute__((vector_size(kSquareBytes))) = Bits;

template <class Bits, size_t... kIndex>
ANYDML_INLINE void interleave_halves(const SquareRow<Bits>& a, const SquareRow<Bits>& b, SquareRow<Bits>& low,
                                     SquareRow<Bits>& high, std::index_sequence<kIndex...>) {
  constexpr int kLanes = sizeof...(kIndex);
  low = __builtin_shufflevector(a, b,
                                (static_cast<int>(kIndex) / 2 + static_cast<int>(kIndex) % 2 * kLanes)...);
  high = __builtin_shufflevector(
      a, b, (static_cast<int>(kIndex) / 2 + kLanes / 2 + static_cast<int>(kIndex) % 2 * kLanes)...);
}

// rows[r][c] = rows[c][r], of as many rows as a row has elements. Each round interleaves row i with row i +
// half.
template <class Bits>
ANYDML_INLINE void transpose(SquareRow<Bits>* rows) {
  constexpr size_t kLanes = kSquareBytes / sizeof(Bits);
#pragma GCC unroll 4
  for (size_t round = 1; round < kLanes; round *= 2) {
    SquareRow<Bits> next[kLanes];
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes / 2; ++i) {
      interleave_halves<Bits>(rows[i], rows[i + kLanes / 2], next[2 * i], next[2 * i + 1],
                              std::make_index_sequence<kLanes>{});
    }
    // One by one, so that they stay in registers: copied as a whole they go through memory, stored by 16
    // bytes and loaded by up to 64, for which processors wait.
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

// Row r of `to` from column r of `from`.
template <class Bits>
ANYDML_INLINE void gather_square(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step) {
  constexpr int64_t kLanes = kSquareBytes / sizeof(Bits);
  SquareRow<Bits> rows[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) rows[i] = load<SquareRow<Bits>>(from + i * from_step);
  transpose<Bits>(rows);
  for (int64_t i = 0; i < kLanes; ++i) store(to + i * to_step, rows[i]);
}
#endif

// A matrix of elements in memory: where its first lies, and how far the next row and the next column are.
struct Tile {
  const std::byte* first;
  int64_t row_step;
  int64_t column_step;
};

// Row r of the tile to to + r * to_step, its elements side by side.
template <class Bits>
inline void gather_tile(const Tile tile, int64_t rows, int64_t columns, std::byte* to, int64_t to_step) {
  constexpr int64_t kSize = sizeof(Bits);
  if (tile.column_step == kSize) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(to + r * to_step, tile.first + r * tile.row_step, static_cast<size_t>(columns * kSize));
    }
    return;
  }
  int64_t whole_rows = 0;
  int64_t whole_columns = 0;
#if defined(__GNUC__)
  constexpr int64_t kLanes = kSquareBytes / kSize;
  if (tile.row_step == kSize) {
    whole_rows = rows / kLanes * kLanes;
    whole_columns = columns / kLanes * kLanes;
    for (int64_t c = 0; c < whole_columns; c += kLanes) {
      const std::byte* from = tile.first + c * tile.column_step;
      for (int64_t r = 0; r < whole_rows; r += kLanes) {
        gather_square<Bits>(from + r * kSize, tile.column_step, to + r * to_step + c * kSize, to_step);
      }
    }
  }
#endif
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* from = tile.first + r * tile.row_step;
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      store(to + r * to_step + c * kSize, load<Bits>(from + c * tile.column_step));
    }
  }
}

}  // namespace
ANYDML_ISA_END
