// Packing of tiles whose rows are across short lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "platform/isa.h"
#include "reduce/lanes.h"
#include "reduce/tuning.h"
#include "simd/squares.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(ANYDML_ISA_AVX512)
template <class Lane>
ANYDML_INLINE __m512i blend_lanes(uint64_t mask, __m512i a, __m512i b) {
  if constexpr (sizeof(Lane) == 1) return _mm512_mask_blend_epi8(mask, a, b);
  if constexpr (sizeof(Lane) == 2) return _mm512_mask_blend_epi16(static_cast<__mmask32>(mask), a, b);
  if constexpr (sizeof(Lane) == 4) return _mm512_mask_blend_epi32(static_cast<__mmask16>(mask), a, b);
  return _mm512_mask_blend_epi64(static_cast<__mmask8>(mask), a, b);
}

// Shuffles of the lanes of one register, and of two, which the instruction set has for all but bytes.
struct Shuffle {
  template <class Lane>
  ANYDML_INLINE static __m512i of(__m512i lanes, __m512i a) {
    if constexpr (sizeof(Lane) == 2) return _mm512_maskz_permutexvar_epi16(~uint32_t{0}, lanes, a);
    if constexpr (sizeof(Lane) == 4)
      return _mm512_maskz_permutexvar_epi32(static_cast<__mmask16>(~0), lanes, a);
    return _mm512_maskz_permutexvar_epi64(static_cast<__mmask8>(~0), lanes, a);
  }
  template <class Lane>
  ANYDML_INLINE static __m512i of(__m512i a, __m512i lanes, __m512i b) {
    if constexpr (sizeof(Lane) == 2) return _mm512_permutex2var_epi16(a, lanes, b);
    if constexpr (sizeof(Lane) == 4) return _mm512_permutex2var_epi32(a, lanes, b);
    return _mm512_permutex2var_epi64(a, lanes, b);
  }
};
// Of bytes, for processors with VBMI: intrinsics would have all around them compiled for these.
struct ByteShuffle {
  template <class Lane>
  ANYDML_INLINE static __m512i of(__m512i lanes, __m512i a) {
    __m512i moved;
    asm("vpermb %1, %2, %0" : "=v"(moved) : "v"(a), "v"(lanes));
    return moved;
  }
  template <class Lane>
  ANYDML_INLINE static __m512i of(__m512i a, __m512i lanes, __m512i b) {
    asm("vpermt2b %2, %1, %0" : "+v"(a) : "v"(lanes), "v"(b));
    return a;
  }
};

// Packed lines of a few elements, from an array of structures to a structure of arrays: element `row` of so
// many lines as a register has lanes is at every rows-th place of as many registers as a line has elements.
// Where the number of lanes has no divisor in common with that of the elements, these places are different
// lanes of all of the registers, which are blended before one shuffle puts them in order; otherwise they are
// so in each of kParts groups of registers.
template <class Lane, int64_t rows>
struct LineShuffles {
  static constexpr int64_t kLanes = 64 / sizeof(Lane);
  static constexpr int64_t kParts = std::gcd(rows, kLanes);
  static constexpr int64_t kShuffles = std::max<int64_t>(kParts - 1, 1);
  alignas(64) Lane lanes[rows][kShuffles][kLanes] = {};
  // The lanes of register v that have element `row` of a line.
  uint64_t masks[rows][rows] = {};

  constexpr LineShuffles() {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < kLanes; ++i) {
        const int64_t part = i / (kLanes / kParts);
        const int64_t lane = (i * rows + row) % kLanes;
        for (int64_t s = 0; s < kShuffles; ++s) {
          const int64_t from = part == s + 1 ? kLanes + lane : s == 0 && part == 0 ? lane : i;
          lanes[row][s][i] = static_cast<Lane>(from);
        }
        const int64_t place = i * rows + row;
        masks[row][place / kLanes] |= uint64_t{1} << place % kLanes;
      }
    }
  }
};

// Element `row` of lines, which are in registers.
template <class By, class Lane, int64_t rows>
ANYDML_INLINE __m512i shuffle_row(const __m512i (&elements)[rows], int64_t row) {
  using Shuffles = LineShuffles<Lane, rows>;
  constexpr int64_t kEach = rows / Shuffles::kParts;
  static constexpr Shuffles kShuffles;
  __m512i moved{};
  ANYDML_UNROLL(16)
  for (int64_t part = 0; part < Shuffles::kParts; ++part) {
    const __m512i* const first = elements + part * kEach;
    __m512i blended = first[0];
    ANYDML_UNROLL(16)
    for (int64_t v = 1; v < kEach; ++v)
      blended = blend_lanes<Lane>(kShuffles.masks[row][v], blended, first[v]);
    const auto* const at =
        reinterpret_cast<const std::byte*>(kShuffles.lanes[row][std::max<int64_t>(part - 1, 0)]);
    const auto lanes = (__m512i)load_vector<Vector<uint64_t, 8>>(at);
    if constexpr (Shuffles::kParts == 1) {
      moved = By::template of<Lane>(lanes, blended);
    } else {
      moved = part == 0 ? blended : By::template of<Lane>(moved, lanes, blended);
    }
  }
  return moved;
}

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
    // Without them bytes are moved as words.
    static const bool has_byte_shuffles = __builtin_cpu_supports("avx512vbmi");
    if (has_byte_shuffles) return shuffle_lines<ByteShuffle, Bits, Bits>(from, rows, lines, to, to_step);
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
