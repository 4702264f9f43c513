// Which elements are other than 0, as the bits of words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#if defined(ANYDML_ISA_AVX512)
#include <immintrin.h>
#endif

#include "platform/isa.h"
#include "simd/flag_words.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Of each element a byte, 1 where any of the bits of `mask` is set: all but the sign of a float.
template <class T>
void flag_elements(const std::byte* from, int64_t step, int64_t count, T mask, uint8_t* flags) {
  const auto flag = [&](int64_t by) {
    for (int64_t i = 0; i < count; ++i) {
      flags[i] = static_cast<uint8_t>((load<T>(from + i * by) & mask) != 0 ? 1 : 0);
    }
  };
  // Elements that follow each other become vectors.
  if (step == sizeof(T)) {
    flag(sizeof(T));
  } else {
    flag(step);
  }
}

// Of 64 elements that follow each other.
template <class T>
ANYDML_INLINE uint64_t word_at(const std::byte* from, T mask) {
#if defined(ANYDML_ISA_AVX512)
  constexpr int kLanes = static_cast<int>(64 / sizeof(T));
  uint64_t word = 0;
#pragma GCC unroll 4
  for (int i = 0; i < kFlags / kLanes; ++i) {
    const __m512i elements = _mm512_loadu_si512(from + 64 * i);
    uint64_t lanes = 0;
    if constexpr (sizeof(T) == 1) {
      lanes = _mm512_test_epi8_mask(elements, _mm512_set1_epi8(static_cast<char>(mask)));
    } else if constexpr (sizeof(T) == 2) {
      lanes = _mm512_test_epi16_mask(elements, _mm512_set1_epi16(static_cast<int16_t>(mask)));
    } else {
      lanes = _mm512_test_epi32_mask(elements, _mm512_set1_epi32(static_cast<int>(mask)));
    }
    word |= lanes << i * kLanes % 64;
  }
  return word;
#else
  uint8_t flags[kFlags];
  flag_elements<T>(from, sizeof(T), kFlags, mask, flags);
  return word_of(flags);
#endif
}

}  // namespace
ANYDML_ISA_END
