// Copies of short runs of bytes, such as rows of small images, inline: a call of memcpy() takes longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// to[i] = from[i] ^ flip, for bytes. Nothing beside the runs is read or written.
ANYDML_INLINE void copy_run(const std::byte* from, int64_t count, uint8_t flip, std::byte* to) {
#if defined(ANYDML_ISA_AVX512)
  // 32 bytes at a time, as processors forward no more of what was just stored by as many.
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  for (; count >= 32; count -= 32, from += 32, to += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_xor_si256(bytes, flips));
  }
  if (count > 0) {
    const __mmask32 lanes = (uint32_t{1} << count) - 1;
    _mm256_mask_storeu_epi8(to, lanes, _mm256_xor_si256(_mm256_maskz_loadu_epi8(lanes, from), flips));
  }
#else
  // Words of eight bytes; the last one ends where the run does, and may lie over the one before.
  const uint64_t flips = flip * uint64_t{0x0101010101010101};
  const auto copy_word = [&](int64_t at) {
    uint64_t word;
    std::memcpy(&word, from + at, sizeof(word));
    word ^= flips;
    std::memcpy(to + at, &word, sizeof(word));
  };
  if (count >= 8) {
    for (int64_t i = 0; i + 8 < count; i += 8) copy_word(i);
    copy_word(count - 8);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] ^ std::byte{flip};
  }
#endif
}

// Runs of rows, which lie so many bytes apart.
ANYDML_INLINE void copy_rows(const std::byte* from, int64_t from_pitch, int64_t rows, int64_t count,
                             uint8_t flip, std::byte* to, int64_t to_pitch) {
#if defined(ANYDML_ISA_AVX512)
  if (0 < count && count <= 32) {
    const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
    const auto lanes = static_cast<__mmask32>((uint64_t{1} << count) - 1);
    for (; rows > 0; --rows, from += from_pitch, to += to_pitch)
      _mm256_mask_storeu_epi8(to, lanes, _mm256_xor_si256(_mm256_maskz_loadu_epi8(lanes, from), flips));
    return;
  }
#endif
  for (; rows > 0; --rows, from += from_pitch, to += to_pitch) copy_run(from, count, flip, to);
}

}  // namespace
ANYDML_ISA_END
