// Shuffles that put short lines in order, a register of the same element of as many lines at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "platform/isa.h"
#include "simd/unaligned.h"

#if defined(ANYDML_ISA_AVX512)
#include <immintrin.h>

ANYDML_ISA_BEGIN
namespace {

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

inline bool has_byte_shuffles() {
  static const bool has_them = __builtin_cpu_supports("avx512vbmi");
  return has_them;
}

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

}  // namespace
ANYDML_ISA_END
#endif
