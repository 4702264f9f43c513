// Functions of one byte by a table of all of their results, which a program fills once (memoisation).
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "platform/isa.h"
#include "pointwise/instructions.h"

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kByteValues = 256;
static_assert(kByteValues % kWholeElements == 0);

// out[i] = table[x[i]], for multiples of kWholeElements.
using LookUp = void (*)(const std::byte* table, const std::byte* x, std::byte* out, int64_t count);

inline void look_up_one_by_one(const std::byte* table, const std::byte* x, std::byte* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = table[std::to_integer<size_t>(x[i])];
}

#if defined(ANYDML_ISA_AVX512)
// Two shuffles of 128 bytes each, by the low bits; the highest one tells which of them counts.
[[gnu::target("avx512vbmi")]] inline void look_up_by_shuffles(const std::byte* table, const std::byte* x,
                                                              std::byte* out, int64_t count) {
  constexpr int64_t kVector = 64;
  const __m512i quarters[4] = {_mm512_loadu_si512(table), _mm512_loadu_si512(table + kVector),
                               _mm512_loadu_si512(table + 2 * kVector),
                               _mm512_loadu_si512(table + 3 * kVector)};
  for (int64_t i = 0; i < count; i += kVector) {
    const __m512i at = _mm512_loadu_si512(x + i);
    const __m512i low = _mm512_permutex2var_epi8(quarters[0], at, quarters[1]);
    const __m512i high = _mm512_permutex2var_epi8(quarters[2], at, quarters[3]);
    _mm512_storeu_si512(out + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
}
#endif

// By shuffles, or null where there are none of so many bytes.
inline LookUp quick_look_up() {
#if defined(ANYDML_ISA_AVX512)
  if (__builtin_cpu_supports("avx512vbmi")) return look_up_by_shuffles;
#endif
  return nullptr;
}

}  // namespace
ANYDML_ISA_END
