// Packing of tiles whose rows are across short lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "platform/isa.h"
#include "reduce/lanes.h"
#include "reduce/tuning.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(ANYDML_ISA_AVX512)
// The elements of a register that shuffles move: bytes are moved as words.
template <class Bits>
using Moved = std::conditional_t<sizeof(Bits) == 1, uint16_t, Bits>;

template <class Bits>
ANYDML_INLINE __m512i load_moved(const std::byte* from) {
  if constexpr (sizeof(Bits) == 1) return _mm512_cvtepu8_epi16((__m256i)load_vector<Vector<uint8_t>>(from));
  return (__m512i)load_vector<Vector<uint64_t, 8>>(from);
}
template <class Bits>
ANYDML_INLINE void store_moved(std::byte* to, __m512i v) {
  if constexpr (sizeof(Bits) == 1) {
    store_vector(to, (Vector<uint8_t>)_mm512_maskz_cvtepi16_epi8(~uint32_t{0}, v));
  } else {
    store_vector(to, (Vector<uint64_t, 8>)v);
  }
}
template <class Bits>
ANYDML_INLINE __m512i move_lanes(__m512i moved, uint32_t mask, __m512i lanes, __m512i from) {
  if constexpr (sizeof(Bits) == 4) {
    return _mm512_mask_permutexvar_epi32(moved, static_cast<__mmask16>(mask), lanes, from);
  } else if constexpr (sizeof(Bits) == 8) {
    return _mm512_mask_permutexvar_epi64(moved, static_cast<__mmask8>(mask), lanes, from);
  } else {
    return _mm512_mask_permutexvar_epi16(moved, mask, lanes, from);
  }
}

// Packed lines of a few elements: element `row` of so many lines as a register has lanes is at every
// rows-th place of as many registers as a line has elements.
template <class Bits, int64_t rows>
ANYDML_NOINLINE int64_t shuffle_lines(const std::byte* from, int64_t lines, std::byte* to, int64_t to_step) {
  using Lane = Moved<Bits>;
  constexpr int64_t kLanes = 64 / sizeof(Lane);
  constexpr int64_t kBytes = kLanes * sizeof(Bits);
  alignas(64) Lane lanes[rows][kLanes];
  uint32_t masks[rows][rows] = {};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t place = i * rows + row;
      lanes[row][i] = static_cast<Lane>(place % kLanes);
      masks[row][place / kLanes] |= uint32_t{1} << i;
    }
  }
  int64_t line = 0;
  for (; line + kLanes <= lines; line += kLanes, from += rows * kBytes) {
    __m512i elements[rows];
#pragma GCC unroll 16
    for (int64_t v = 0; v < rows; ++v) {
      if (v * kBytes % 64 == 0) prefetch_near(from + v * kBytes + tuning::kPrefetchBytes);
      elements[v] = load_moved<Bits>(from + v * kBytes);
    }
#pragma GCC unroll 16
    for (int64_t row = 0; row < rows; ++row) {
      const auto moves =
          (__m512i)load_vector<Vector<uint64_t, 8>>(reinterpret_cast<const std::byte*>(lanes[row]));
      __m512i moved{};
#pragma GCC unroll 16
      for (int64_t v = 0; v < rows; ++v) moved = move_lanes<Bits>(moved, masks[row][v], moves, elements[v]);
      store_moved<Bits>(to + row * to_step + line * static_cast<int64_t>(sizeof(Bits)), moved);
    }
  }
  return line;
}

// By the elements of a line, those that there are no shuffles for are left to others.
template <class Bits>
int64_t shuffle_lines(const std::byte* from, int64_t rows, int64_t lines, std::byte* to, int64_t to_step) {
  switch (rows) {
    case 2:
      return shuffle_lines<Bits, 2>(from, lines, to, to_step);
    case 3:
      return shuffle_lines<Bits, 3>(from, lines, to, to_step);
    case 4:
      return shuffle_lines<Bits, 4>(from, lines, to, to_step);
    case 5:
      return shuffle_lines<Bits, 5>(from, lines, to, to_step);
    case 6:
      return shuffle_lines<Bits, 6>(from, lines, to, to_step);
    case 7:
      return shuffle_lines<Bits, 7>(from, lines, to, to_step);
    case 9:
      return shuffle_lines<Bits, 9>(from, lines, to, to_step);
    case 12:
      return shuffle_lines<Bits, 12>(from, lines, to, to_step);
    case 15:
      return shuffle_lines<Bits, 15>(from, lines, to, to_step);
    default:
      return 0;
  }
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
  if (done == lines) return;
  const Tile rest{tile.first + done * tile.column_step, tile.row_step, tile.column_step};
  gather_tile<Bits>(rest, rows, lines - done, to + done * kSize, to_step);
}

}  // namespace
ANYDML_ISA_END
