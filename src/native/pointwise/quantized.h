// Numbers of 8 bits as singles, and integers saturated to numbers of 8 bits: what quantisation rounds to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "pointwise/lanes.h"
#include "pointwise/singles.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// clamp(round(q) + zero point) of a quotient q, halves to even, NaN 0. It is clamped before it is rounded, so
// that adding and subtracting 1.5 * 2^23, or 2^52, rounds it.
template <class T, class Float>
ANYDML_INLINE T quantized(Float quotient, Float zero_point) {
  constexpr Float kRounds = sizeof(Float) == 8 ? Float(0x1.8p52) : Float(0x1.8p23);
  const Float low = std::numeric_limits<T>::min() - zero_point;
  const Float high = std::numeric_limits<T>::max() - zero_point;
  const Float number = quotient == quotient ? quotient : Float{0};
  const Float raised = number > low ? number : low;
  const Float inside = raised < high ? raised : high;
  const Float whole = (inside + kRounds) - kRounds;
  return static_cast<T>(static_cast<int32_t>(whole + zero_point));
}

#if defined(ANYDML_VECTORS)
// As many numbers of 8 bits as Singles has lanes; those that are unsigned less 128, by flipping their first
// bit.
ANYDML_INLINE Singles load_bytes(const std::byte* from, uint8_t flip) {
  constexpr int kLanes = sizeof(Singles) / sizeof(float);
  using Integers = Vector<int32_t, kLanes>;
#if defined(ANYDML_ISA_AVX512)
  const auto bytes = load_vector<Vector<uint8_t, 16>>(from) ^ flip;
  return __builtin_convertvector((Integers)_mm512_maskz_cvtepi8_epi32(kAllLanes, (__m128i)bytes), Singles);
#elif defined(ANYDML_ISA_AVX2)
  const __m128i bytes =
      _mm_xor_si128(_mm_cvtsi64_si128(load<long long>(from)), _mm_set1_epi8(static_cast<char>(flip)));
  return __builtin_convertvector((Integers)_mm256_cvtepi8_epi32(bytes), Singles);
#else
  Integers integers;
  for (int i = 0; i < kLanes; ++i) integers[i] = static_cast<int8_t>(load<uint8_t>(from + i) ^ flip);
  return __builtin_convertvector(integers, Singles);
#endif
}

// A block of integers of 16 bits, saturated to signed ones of 8.
struct ByteBlock {
  static constexpr int kLanes = sizeof(Singles) / sizeof(float);
  using Integers = Vector<int32_t, kLanes>;
  Integers integers[kWholeElements / kLanes];

  ANYDML_INLINE void store(std::byte* to, uint8_t flip) const {
#if defined(ANYDML_ISA_AVX512)
    // Which pack the four parts of 16 bytes of two vectors each with the other's.
    const auto pair = [this](int n) {
      return _mm512_maskz_packs_epi32(~__mmask32{0}, (__m512i)integers[n], (__m512i)integers[n + 1]);
    };
    const __m512i packed = _mm512_maskz_packs_epi16(~__mmask64{0}, pair(0), pair(2));
    const Vector<uint32_t, 16> order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    const auto bytes = (Vector<uint8_t, 64>)_mm512_maskz_permutexvar_epi32(kAllLanes, (__m512i)order, packed);
    store_vector(to, bytes ^ flip);
#elif defined(ANYDML_ISA_AVX2)
    const Vector<uint32_t> order = {0, 4, 1, 5, 2, 6, 3, 7};
#pragma GCC unroll 2
    for (int n = 0; n < 8; n += 4) {
      const auto pair = [this, n](int k) {
        return _mm256_packs_epi32((__m256i)integers[n + k], (__m256i)integers[n + k + 1]);
      };
      const __m256i packed = _mm256_packs_epi16(pair(0), pair(2));
      const auto bytes = (Vector<uint8_t>)_mm256_permutevar8x32_epi32(packed, (__m256i)order);
      store_vector(to + n * kLanes, bytes ^ flip);
    }
#else
    int32_t each[kWholeElements];
    std::memcpy(each, integers, sizeof(each));
    for (int i = 0; i < kWholeElements; ++i) {
      const int32_t inside = each[i] > 127 ? 127 : each[i] < -128 ? -128 : each[i];
      to[i] = static_cast<std::byte>(static_cast<uint8_t>(inside) ^ flip);
    }
#endif
  }
};
#endif

ANYDML_ISA_END
