// Packing of tiles whose rows are across short lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "platform/isa.h"
#include "reduce/lanes.h"
#include "reduce/line_shuffles.h"
#include "reduce/tuning.h"
#include "simd/squares.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(ANYDML_ISA_AVX512)
template <class By, class Bits, class Lane, int64_t rows>
ANYDML_NOINLINE int64_t shuffle_lines(const std::byte* from, int64_t lines, std::byte* to, int64_t to_step) {
  constexpr int64_t kLanes = LineShuffles<Lane, rows>::kLanes;
  constexpr int64_t kBytes = kLanes * sizeof(Bits);
  int64_t line = 0;
  for (; line + kLanes <= lines; line += kLanes, from += rows * kBytes) {
    __m512i elements[rows];
    ANYDML_UNROLL(16)
    for (int64_t v = 0; v < rows; ++v) {
      const std::byte* const at = from + v * kBytes;
      if (v * kBytes % 64 == 0) {
        prefetch_near(at + tuning::kTileNear);
        prefetch_line(at + tuning::kTileAhead);
      }
      if constexpr (sizeof(Bits) == sizeof(Lane)) {
        elements[v] = (__m512i)load_vector<Vector<uint64_t, 8>>(at);
      } else {
        elements[v] = _mm512_cvtepu8_epi16((__m256i)load_vector<Vector<uint8_t>>(at));
      }
    }
    ANYDML_UNROLL(16)
    for (int64_t row = 0; row < rows; ++row) {
      const __m512i moved = shuffle_row<By, Lane, rows>(elements, row);
      std::byte* const column = to + row * to_step + line * static_cast<int64_t>(sizeof(Bits));
      if constexpr (sizeof(Bits) == sizeof(Lane)) {
        store_vector(column, (Vector<uint64_t, 8>)moved);
      } else {
        store_vector(column, (Vector<uint8_t>)_mm512_maskz_cvtepi16_epi8(~uint32_t{0}, moved));
      }
    }
  }
  return line;
}

// By the elements of a line, those that there are no shuffles for are left to others.
template <class By, class Bits, class Lane>
int64_t shuffle_lines(const std::byte* from, int64_t rows, int64_t lines, std::byte* to, int64_t to_step) {
  switch (rows) {
    case 2:
      return shuffle_lines<By, Bits, Lane, 2>(from, lines, to, to_step);
    case 3:
      return shuffle_lines<By, Bits, Lane, 3>(from, lines, to, to_step);
    case 4:
      return shuffle_lines<By, Bits, Lane, 4>(from, lines, to, to_step);
    case 5:
      return shuffle_lines<By, Bits, Lane, 5>(from, lines, to, to_step);
    case 6:
      return shuffle_lines<By, Bits, Lane, 6>(from, lines, to, to_step);
    case 7:
      return shuffle_lines<By, Bits, Lane, 7>(from, lines, to, to_step);
    default:
      return 0;
  }
}

template <class Bits>
int64_t shuffle_lines(const std::byte* from, int64_t rows, int64_t lines, std::byte* to, int64_t to_step) {
  if constexpr (sizeof(Bits) > 1) {
    return shuffle_lines<Shuffle, Bits, Bits>(from, rows, lines, to, to_step);
  } else {
    // Without shuffles of bytes they are moved as words.
    if (has_byte_shuffles()) return shuffle_lines<ByteShuffle, Bits, Bits>(from, rows, lines, to, to_step);
    return shuffle_lines<Shuffle, Bits, uint16_t>(from, rows, lines, to, to_step);
  }
}
#endif

#if defined(__GNUC__)
// Packs 16 bytes of each of as many lines as a register has lanes at a time, those of a line's end once more.
// Returns how many lines are packed.
template <class Bits>
ANYDML_NOINLINE int64_t pack_lines(const std::byte* from, int64_t step, int64_t rows, int64_t lines,
                                   std::byte* to, int64_t to_step) {
  constexpr int64_t kSize = sizeof(Bits);
  constexpr int64_t kLanes = kSquareBytes / kSize;
  constexpr int64_t kLines = kSquaresAtOnce * kLanes;
  // Of shorter lines the next ones are read, too, but nothing behind the last one.
  const int64_t last = lines - 1 - (std::max(kSquareBytes - rows * kSize, int64_t{0}) + step - 1) / step;
  int64_t line = 0;
  for (; line + kLines - 1 <= last; line += kLines, from += kLines * step) {
    for (int64_t row = 0; row < rows; row += kLanes) {
      const int64_t first = std::max(std::min(row, rows - kLanes), int64_t{0});
      SquareRow<Bits, kSquaresAtOnce> squares[kLanes];
      ANYDML_UNROLL(16)
      for (int64_t i = 0; i < kLanes; ++i) {
        squares[i] = load_squares<Bits, kSquaresAtOnce>(from + i * step + first * kSize, kLanes * step);
      }
      transpose<Bits, kSquaresAtOnce>(squares);
      std::byte* const column = to + first * to_step + line * kSize;
      ANYDML_UNROLL(16)
      for (int64_t i = 0; i < kLanes; ++i) {
        if (i < rows) store(column + i * to_step, squares[i]);
      }
    }
    // Lines that lie apart are not next to each other in the caches either.
    if (step > 4 * kLine) continue;
    for (int64_t i = 0; i < kLines * step; i += kLine) {
      prefetch_near(from + i + tuning::kTileNear);
      prefetch_line(from + i + tuning::kTileAhead);
    }
  }
  return line;
}
#endif

// Packs a tile of rows across lines, which are its columns.
template <class Bits>
void transpose_lines(const Tile& tile, int64_t rows, int64_t lines, std::byte* to, int64_t to_step) {
  constexpr int64_t kSize = sizeof(Bits);
  int64_t done = 0;
#if defined(ANYDML_ISA_AVX512)
  if (tile.row_step == kSize && tile.column_step == rows * kSize) {
    done = shuffle_lines<Bits>(tile.first, rows, lines, to, to_step);
  }
#endif
#if defined(__GNUC__)
  if (done == 0 && tile.row_step == kSize && tile.column_step >= rows * kSize) {
    done = pack_lines<Bits>(tile.first, tile.column_step, rows, lines, to, to_step);
  }
#endif
  if (done == lines) return;
  const Tile rest{tile.first + done * tile.column_step, tile.row_step, tile.column_step};
  gather_tile<Bits>(rest, rows, lines - done, to + done * kSize, to_step);
}

}  // namespace
ANYDML_ISA_END
