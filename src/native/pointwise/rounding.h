// Signs and rounding of floats in lanes, in operations that are exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/lanes.h"

ANYDML_ISA_BEGIN

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T, class V>
using BitLanes = Lanes<BitsOf<T>, static_cast<int>(sizeof(V) / sizeof(T))>;
template <class T>
inline constexpr auto kSignOf = static_cast<BitsOf<T>>(BitsOf<T>{1} << (8 * sizeof(T) - 1));

template <class T, class V>
ANYDML_INLINE V magnitude_of(V x) {
  using Bits = BitLanes<T, V>;
  return bits_as<V>(bits_as<Bits>(x) & ~kSignOf<T>);
}
// The magnitude of a number with the sign of another.
template <class T, class V>
ANYDML_INLINE V with_sign_of(V magnitude, V sign) {
  using Bits = BitLanes<T, V>;
  const Bits signs = bits_as<Bits>(sign) & kSignOf<T>;
  return bits_as<V>((bits_as<Bits>(magnitude) & ~kSignOf<T>) | signs);
}

#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
// One instruction, which compilers find for no vector.
template <int kMode, class T, class V>
ANYDML_INLINE V rounded_by(V x) {
  constexpr int kQuietly = kMode | _MM_FROUND_NO_EXC;
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(V) == 64 && sizeof(T) == 8)
    return (V)_mm512_mask_roundscale_pd((__m512d)x, kAll8Lanes, (__m512d)x, kQuietly);
  if constexpr (sizeof(V) == 64 && sizeof(T) == 4)
    return (V)_mm512_mask_roundscale_ps((__m512)x, kAllLanes, (__m512)x, kQuietly);
#endif
  if constexpr (sizeof(V) == 32 && sizeof(T) == 8) return (V)_mm256_round_pd((__m256d)x, kQuietly);
  if constexpr (sizeof(V) == 32 && sizeof(T) == 4) return (V)_mm256_round_ps((__m256)x, kQuietly);
}
template <class T, class V>
ANYDML_INLINE V rounded_to_even(V x) {
  return rounded_by<_MM_FROUND_TO_NEAREST_INT, T>(x);
}
template <class T, class V>
ANYDML_INLINE V rounded_to_zero(V x) {
  return rounded_by<_MM_FROUND_TO_ZERO, T>(x);
}
template <class T, class V>
ANYDML_INLINE V rounded_down(V x) {
  return rounded_by<_MM_FROUND_TO_NEG_INF, T>(x);
}
template <class T, class V>
ANYDML_INLINE V rounded_up(V x) {
  return rounded_by<_MM_FROUND_TO_POS_INF, T>(x);
}
#else
// The nearest integer, halves to the even one: beyond 2^23, or 2^52, there are none between. NaN stays, and
// so does the sign of zero.
template <class T, class V>
ANYDML_INLINE V rounded_to_even(V x) {
  constexpr T kWhole = sizeof(T) == 8 ? T(0x1p52) : T(0x1p23);
  const V magnitude = magnitude_of<T>(x);
  const V near = (magnitude + kWhole) - kWhole;
  return with_sign_of<T>(magnitude < kWhole ? near : magnitude, x);
}
template <class T, class V>
ANYDML_INLINE V rounded_to_zero(V x) {
  const V magnitude = magnitude_of<T>(x);
  const V near = rounded_to_even<T>(magnitude);
  return with_sign_of<T>(near > magnitude ? near - T{1} : near, x);
}
template <class T, class V>
ANYDML_INLINE V rounded_down(V x) {
  const V near = rounded_to_even<T>(x);
  return with_sign_of<T>(near > x ? near - T{1} : near, x);
}
template <class T, class V>
ANYDML_INLINE V rounded_up(V x) {
  const V near = rounded_to_even<T>(x);
  return with_sign_of<T>(near < x ? near + T{1} : near, x);
}
#endif

// Whether a comparison holds in all lanes of numbers of T.
template <class T, class Mask>
ANYDML_INLINE bool all_of(Mask mask) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(Mask) == 64) return _mm512_movepi32_mask((__m512i)mask) == kAllLanes;
#endif
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(Mask) == 32) return _mm256_movemask_epi8((__m256i)mask) == -1;
#endif
#if defined(ANYDML_VECTORS)
  std::array<BitsOf<T>, sizeof(Mask) / sizeof(T)> lanes = bits_as<decltype(lanes)>(mask);
  BitsOf<T> all = ~BitsOf<T>{0};
  for (const BitsOf<T> lane : lanes) all &= lane;
  return all != 0;
#else
  return mask;
#endif
}

ANYDML_ISA_END
