// Copies of short runs of bytes, such as rows of small images, inline: a call of memcpy() takes longer. Also
// of bytes that lie apart from each other.
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

// to[i] = from[i * step] ^ flip
inline void read_bytes(const std::byte* from, int64_t step, int64_t count, uint8_t flip, std::byte* to) {
  if (step == 1) return copy_run(from, count, flip, to);
  const std::byte flips{flip};
  if (step == 2) {
#if defined(ANYDML_ISA_AVX512)
    const __m256i all_flips = _mm256_set1_epi8(static_cast<char>(flip));
    for (; count > 0; count -= 32, from += 64, to += 32) {
      // What lies behind the last element is not read.
      const __mmask64 read = count >= 32 ? ~uint64_t{0} >> 1 : (uint64_t{1} << (2 * count - 1)) - 1;
      const __mmask32 lanes = count >= 32 ? ~uint32_t{0} : (uint32_t{1} << count) - 1;
      const __m256i even = _mm512_maskz_cvtepi16_epi8(~uint32_t{0}, _mm512_maskz_loadu_epi8(read, from));
      _mm256_mask_storeu_epi8(to, lanes, _mm256_xor_si256(even, all_flips));
    }
#else
    for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i] ^ flips;
#endif
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * step] ^ flips;
  }
}

// Rows of so many bytes, `step` apart in each, from where they lie `from_pitch` apart to `to_pitch` apart.
ANYDML_INLINE void read_rows(const std::byte* from, int64_t from_pitch, int64_t step, int64_t rows,
                             int64_t count, uint8_t flip, std::byte* to, int64_t to_pitch) {
  if (step == 1) return copy_rows(from, from_pitch, rows, count, flip, to, to_pitch);
#if defined(ANYDML_ISA_AVX512)
  if (step == 2) {
    const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
    // Piece by piece of all rows, which have the same masks. What lies behind the last element is not read.
    for (; count > 0; count -= 32, from += 64, to += 32) {
      const __mmask64 read = count >= 32 ? ~uint64_t{0} >> 1 : ~uint64_t{0} >> (65 - 2 * count);
      const __mmask32 lanes = count >= 32 ? ~uint32_t{0} : ~uint32_t{0} >> (32 - count);
      for (int64_t row = 0; row < rows; ++row) {
        const __m512i both = _mm512_maskz_loadu_epi8(read, from + row * from_pitch);
        const __m256i even = _mm512_maskz_cvtepi16_epi8(~uint32_t{0}, both);
        _mm256_mask_storeu_epi8(to + row * to_pitch, lanes, _mm256_xor_si256(even, flips));
      }
    }
    return;
  }
#endif
  for (; rows > 0; --rows, from += from_pitch, to += to_pitch) read_bytes(from, step, count, flip, to);
}

}  // namespace
ANYDML_ISA_END
