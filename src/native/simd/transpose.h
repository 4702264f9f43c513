// Transposition of square tiles of elements in registers, and packing of tiles whose elements are apart in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platform/isa.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(__GNUC__)
inline constexpr int64_t kSquareBytes = 16;

// Square tiles of 16 bytes by 16 bytes. A register holds a row of so many adjacent tiles.
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
inline constexpr int64_t kTilesAtOnce = 2;
#else
inline constexpr int64_t kTilesAtOnce = 1;
#endif

template <class Bits, int64_t kSquares = 1>
using SquareRow __attribute__((vector_size(kSquares * kSquareBytes))) = Bits;

// The lane, counted through two rows, that comes to a place when the lower halves of their tiles are
// interleaved.
constexpr int interleaved(int place, int lanes_of_square, int lanes) {
  const int lane = place % lanes_of_square;
  return place - lane + lane / 2 + lane % 2 * lanes;
}

template <class Row, size_t... kIndex>
ANYDML_INLINE void interleave_halves(const Row& a, const Row& b, Row& low, Row& high,
                                     std::index_sequence<kIndex...>) {
  constexpr int kAll = sizeof...(kIndex);
  constexpr int kLanes = kAll * static_cast<int>(kSquareBytes) / static_cast<int>(sizeof(Row));
  low = __builtin_shufflevector(a, b, interleaved(static_cast<int>(kIndex), kLanes, kAll)...);
  high = __builtin_shufflevector(a, b, (interleaved(static_cast<int>(kIndex), kLanes, kAll) + kLanes / 2)...);
}

// rows[r][c] = rows[c][r] within each square, of as many rows as a square's row has elements. Each round
// interleaves row i with row i + half.
template <class Bits, int64_t kSquares = 1>
ANYDML_INLINE void transpose(SquareRow<Bits, kSquares>* rows) {
  constexpr size_t kLanes = kSquareBytes / sizeof(Bits);
#pragma GCC unroll 4
  for (size_t round = 1; round < kLanes; round *= 2) {
    SquareRow<Bits, kSquares> next[kLanes];
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes / 2; ++i) {
      interleave_halves(rows[i], rows[i + kLanes / 2], next[2 * i], next[2 * i + 1],
                        std::make_index_sequence<kLanes * kSquares>{});
    }
    // Copied one by one they stay in registers. Copied as a whole they would go through memory, by stores of
    // 16 bytes and loads of up to 64, which wait for the stores.
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

// The part of a row that is in one tile, and a row made of parts.
template <class One, class Row>
ANYDML_INLINE One square_of(const Row& row, int64_t square) {
  if constexpr (sizeof(Row) == sizeof(One)) {
    return row;
  } else {
    return [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
      constexpr int kCount = sizeof...(kIndex);
      return square == 0 ? __builtin_shufflevector(row, row, kIndex...)
                         : __builtin_shufflevector(row, row, (kIndex + kCount)...);
    }(std::make_integer_sequence<int, sizeof(One) / sizeof(One{}[0])>{});
  }
}
template <class Row, class One>
ANYDML_INLINE Row side_by_side(const One* squares) {
  if constexpr (sizeof(Row) == sizeof(One)) {
    return squares[0];
  } else {
    return [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
      return __builtin_shufflevector(squares[0], squares[1], kIndex...);
    }(std::make_integer_sequence<int, sizeof(Row) / sizeof(Row{}[0])>{});
  }
}

// Squares that are copied at once: as many as a register has.
#if defined(ANYDML_ISA_AVX512)
inline constexpr int64_t kSquaresAtOnce = 4;
#else
inline constexpr int64_t kSquaresAtOnce = kTilesAtOnce;
#endif

// Writes the squares of a register to lines that are `step` bytes apart.
template <class Bits, int64_t kSquares>
ANYDML_INLINE void store_squares(const SquareRow<Bits, kSquares>& row, std::byte* to, int64_t step) {
  [&]<int... kSquare>(std::integer_sequence<int, kSquare...>) {
#if defined(ANYDML_ISA_AVX512)
    // Compilers take a shuffle of their own for each, and the port that transpositions wait for.
    if constexpr (kSquares == 4) {
      (store(to + kSquare * step, _mm512_maskz_extracti32x4_epi32(0xf, (__m512i)row, kSquare)), ...);
      return;
    }
#endif
    const auto all = (SquareRow<uint64_t, kSquares>)row;
    (store(to + kSquare * step, __builtin_shufflevector(all, all, 2 * kSquare, 2 * kSquare + 1)), ...);
  }(std::make_integer_sequence<int, kSquares>{});
}

// Copies column r of `from` to row r of `to`, of so many adjacent squares.
template <class Bits, int64_t kSquares = 1>
ANYDML_INLINE void gather_square(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step) {
  constexpr int64_t kLanes = kSquareBytes / sizeof(Bits);
  SquareRow<Bits, kSquares> rows[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) rows[i] = load<SquareRow<Bits, kSquares>>(from + i * from_step);
  transpose<Bits, kSquares>(rows);
  for (int64_t i = 0; i < kLanes; ++i) {
    store_squares<Bits, kSquares>(rows[i], to + i * to_step, kLanes * to_step);
  }
}
#endif

// A matrix of elements in memory: the address of the first one, and the distances of rows and of columns in
// bytes.
struct Tile {
  const std::byte* first;
  int64_t row_step;
  int64_t column_step;
};

// Prefetches a line of each of some columns.
template <int64_t kColumns>
ANYDML_INLINE void prefetch_column_lines(const std::byte* first, int64_t step) {
  for (int64_t k = 0; k < kColumns; ++k) prefetch_line(first + k * step);
}

// Packs a tile: copies its row r to to + r * to_step. Where columns are contiguous in memory, what is `ahead`
// bytes behind is prefetched, unless that is 0. It is compiled once for each size of elements.
template <class Bits>
ANYDML_NOINLINE void gather_tile(const Tile tile, int64_t rows, int64_t columns, std::byte* to,
                                 int64_t to_step, int64_t ahead = 0) {
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
    // Then a column lies in one line more than it fills.
    const bool begins_within_line =
        ahead != 0 &&
        (reinterpret_cast<uintptr_t>(tile.first) | static_cast<uintptr_t>(tile.column_step)) % kLine != 0;
    for (int64_t c = 0; c < whole_columns; c += kLanes) {
      const std::byte* const from = tile.first + c * tile.column_step;
      std::byte* const column = to + c * kSize;
      const std::byte* const next = from + ahead;
      if (begins_within_line) prefetch_column_lines<kLanes>(next + whole_rows * kSize - 1, tile.column_step);
      int64_t r = 0;
      for (; r + kSquaresAtOnce * kLanes <= whole_rows; r += kSquaresAtOnce * kLanes) {
        if (ahead != 0 && r * kSize % kLine == 0)
          prefetch_column_lines<kLanes>(next + r * kSize, tile.column_step);
        gather_square<Bits, kSquaresAtOnce>(from + r * kSize, tile.column_step, column + r * to_step,
                                            to_step);
      }
      for (; r < whole_rows; r += kLanes) {
        gather_square<Bits>(from + r * kSize, tile.column_step, column + r * to_step, to_step);
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
