// The lanes that pointwise operations compute on: vectors, or single numbers where the compiler has no
// vectors.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "simd/bits_as.h"
#include "simd/half.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)
template <class T>
inline constexpr int kLanesOf = kVectorBytes / sizeof(T);
template <class T, int kLanes>
using Lanes = Vector<T, kLanes>;
#else
template <class T>
inline constexpr int kLanesOf = 1;
template <class T, int kLanes>
using Lanes = T;
#endif

// Applies a scalar function to each lane, where there is no vector instruction.
template <class T, class V, class Function>
ANYDML_INLINE V for_each_lane(V v, const Function& function) {
  T lanes[sizeof(V) / sizeof(T)];
  std::memcpy(lanes, &v, sizeof(V));
  for (T& lane : lanes) lane = function(lane);
  std::memcpy(&v, lanes, sizeof(V));
  return v;
}

template <class T, class V, class Function>
ANYDML_INLINE V for_each_lane(V x, V y, const Function& function) {
  T others[sizeof(V) / sizeof(T)];
  std::memcpy(others, &y, sizeof(V));
  const T* other = others;
  return for_each_lane<T>(x, [&](T lane) { return function(lane, *other++); });
}

#if defined(ANYDML_ISA_AVX512)
// GCC warns of what its own header does where there is no mask.
inline constexpr uint16_t kAllLanes = 0xffff;
inline constexpr uint8_t kAll8Lanes = 0xff;
#endif

// The larger, or smaller, of x and y in each lane; y where one of them is NaN. For floats this is one
// instruction on x86, which compilers do not find.
template <class T, class V>
ANYDML_INLINE V lane_max(V x, V y) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<T, float> && sizeof(V) == 64) {
    return (V)_mm512_maskz_max_ps(kAllLanes, (__m512)x, (__m512)y);
  }
  if constexpr (std::is_same_v<T, double> && sizeof(V) == 64) {
    return (V)_mm512_maskz_max_pd(kAll8Lanes, (__m512d)x, (__m512d)y);
  }
#endif
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<T, float> && sizeof(V) == kVectorBytes) {
    return (V)_mm256_max_ps((__m256)x, (__m256)y);
  }
  if constexpr (std::is_same_v<T, double> && sizeof(V) == kVectorBytes) {
    return (V)_mm256_max_pd((__m256d)x, (__m256d)y);
  }
#endif
  return x > y ? x : y;
}
template <class T, class V>
ANYDML_INLINE V lane_min(V x, V y) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<T, float> && sizeof(V) == 64) {
    return (V)_mm512_maskz_min_ps(kAllLanes, (__m512)x, (__m512)y);
  }
  if constexpr (std::is_same_v<T, double> && sizeof(V) == 64) {
    return (V)_mm512_maskz_min_pd(kAll8Lanes, (__m512d)x, (__m512d)y);
  }
#endif
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<T, float> && sizeof(V) == kVectorBytes) {
    return (V)_mm256_min_ps((__m256)x, (__m256)y);
  }
  if constexpr (std::is_same_v<T, double> && sizeof(V) == kVectorBytes) {
    return (V)_mm256_min_pd((__m256d)x, (__m256d)y);
  }
#endif
  return x < y ? x : y;
}

// The square root of IEEE 754, rounded once.
template <class T, class V>
ANYDML_INLINE V square_root(V v) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<T, double> && sizeof(V) == 64) {
    return (V)_mm512_maskz_sqrt_pd(kAll8Lanes, (__m512d)v);
  }
  if constexpr (std::is_same_v<T, float> && sizeof(V) == 64) {
    return (V)_mm512_maskz_sqrt_ps(kAllLanes, (__m512)v);
  }
#endif
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<T, float> && sizeof(V) == kVectorBytes) return (V)_mm256_sqrt_ps((__m256)v);
  if constexpr (std::is_same_v<T, double> && sizeof(V) == kVectorBytes) return (V)_mm256_sqrt_pd((__m256d)v);
#else
  return for_each_lane<T>(v, [](T lane) { return std::sqrt(lane); });
#endif
}

using FewSingles = Lanes<float, kLanesOf<float>>;

// x * y + z in double precision, rounded to odd, of a product that is exact, as that of singles: the last bit
// is set where 53 bits do not hold the sum, so that a single is rounded as from the exact sum.
template <class V>
ANYDML_INLINE V multiply_add_round_to_odd(V x, V y, V z) {
  using Bits = Lanes<uint64_t, static_cast<int>(sizeof(V) / sizeof(double))>;
  const V product = x * y;
  const V sum = product + z;
  const V added = sum - product;
  const V error = (product - (sum - added)) + (z - added);
  const Bits bits = bits_as<Bits>(sum);
  const auto away = (error > 0.0) == (sum > 0.0);
  const Bits odd = (bits & 1) != 0 ? bits : away ? bits + 1 : bits - 1;
  // Values that are not finite have no error.
  return bits_as<V>((error > 0.0) | (error < 0.0) ? odd : bits);
}

#if defined(ANYDML_VECTORS) && defined(__SSE2__) && !defined(ANYDML_ISA_AVX2) && !defined(ANYDML_ISA_AVX512)
// Not inlined, as whole polynomials of it would be most of a machine's code that has no such instruction.
ANYDML_NOINLINE inline FewSingles multiply_add_in_doubles(FewSingles x, FewSingles y, FewSingles z) {
  using Halves = std::array<Vector<float, 4>, 2>;
  const auto x4 = bits_as<Halves>(x);
  const auto y4 = bits_as<Halves>(y);
  auto z4 = bits_as<Halves>(z);
  for (size_t i = 0; i < 2; ++i) {
    z4[i] = to_singles(multiply_add_round_to_odd(to_doubles(x4[i]), to_doubles(y4[i]), to_doubles(z4[i])));
  }
  return bits_as<FewSingles>(z4);
}
#endif

// x * y + z, rounded once.
ANYDML_INLINE FewSingles multiply_add(FewSingles x, FewSingles y, FewSingles z) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  return (FewSingles)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z);
#elif defined(ANYDML_VECTORS) && defined(__aarch64__)
  using Halves = std::array<Vector<float, 4>, 2>;
  const auto x4 = bits_as<Halves>(x);
  const auto y4 = bits_as<Halves>(y);
  auto z4 = bits_as<Halves>(z);
  for (size_t i = 0; i < 2; ++i) z4[i] = vfmaq_f32(z4[i], x4[i], y4[i]);
  return bits_as<FewSingles>(z4);
#elif defined(ANYDML_VECTORS) && defined(__SSE2__)
  return multiply_add_in_doubles(x, y, z);
#else
  return std::fma(x, y, z);
#endif
}

// As many lanes as a register holds, for long computations without operations across lanes.
#if defined(ANYDML_ISA_AVX512)
using Singles = Vector<float, 16>;
ANYDML_INLINE Singles multiply_add(Singles x, Singles y, Singles z) {
  return (Singles)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z);
}
using Doubles = Vector<double, 8>;
ANYDML_INLINE Doubles to_doubles(FewSingles v) {
  return (Doubles)_mm512_maskz_cvtps_pd(kAll8Lanes, (__m256)v);
}
ANYDML_INLINE FewSingles to_singles(Doubles v) {
  return (FewSingles)_mm512_maskz_cvtpd_ps(kAll8Lanes, (__m512d)v);
}
#else
using Singles = FewSingles;
using Doubles = Lanes<double, kLanesOf<double>>;
#endif

// Sixteen numbers that are looked up by the last four bits of an index.
using LookupTable = float[16];
template <class Bits>
ANYDML_INLINE Singles looked_up(const LookupTable& table, Bits index) {
#if defined(ANYDML_ISA_AVX512)
  return (Singles)_mm512_maskz_permutexvar_ps(kAllLanes, (__m512i)index, _mm512_loadu_ps(table));
#elif defined(ANYDML_ISA_AVX2)
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)index);
  return (Singles)_mm256_blendv_ps(low, high, (__m256)(index << 28));
#elif defined(ANYDML_VECTORS)
  Singles found;
  for (size_t i = 0; i < sizeof(Singles) / sizeof(float); ++i) found[i] = table[index[i] & 15];
  return found;
#else
  return table[index & 15];
#endif
}

// Rounds doubles to odd singles, from which halves are rounded as from the doubles: the last bit, which no
// half has, is set where 24 bits do not hold the number.
template <int kLanes>
ANYDML_INLINE Lanes<float, kLanes> round_to_odd(Lanes<double, kLanes> v) {
  using Bits = Lanes<uint64_t, kLanes>;
  constexpr uint64_t kLast = uint64_t{1} << (52 - 23);
  const Bits bits = bits_as<Bits>(v);
  const Bits odd = (((bits & (kLast - 1)) + (kLast - 1)) | bits) & kLast;
  const auto rest = bits_as<Lanes<double, kLanes>>((bits & ~(2 * kLast - 1)) | odd);
#if defined(ANYDML_VECTORS)
  return to_singles(rest);
#else
  return static_cast<float>(rest);
#endif
}

// Elements of type From as numbers of T, and numbers of T as elements of To, rounded once.

template <class From, class T>
ANYDML_INLINE Lanes<T, kLanesOf<T>> load_lanes(const std::byte* from) {
#if defined(ANYDML_VECTORS)
  return load_wide<From, T>(from);
#else
  return widen<From, T>(from);
#endif
}

template <class To, class T>
ANYDML_INLINE void store_lanes(std::byte* to, Lanes<T, kLanesOf<T>> v) {
  if constexpr (std::is_same_v<To, T>) {
    std::memcpy(to, &v, sizeof(v));
  } else if constexpr (std::is_same_v<To, Half> && std::is_same_v<T, double>) {
    const auto singles = round_to_odd<kLanesOf<T>>(v);
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    const __m128i halves = _mm_cvtps_ph((__m128)singles, _MM_FROUND_TO_NEAREST_INT);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), halves);
#else
    float each[kLanesOf<T>];
    std::memcpy(each, &singles, sizeof(each));
    for (int i = 0; i < kLanesOf<T>; ++i) store(to + i * 2, Half(each[i]));
#endif
  } else {
#if defined(ANYDML_VECTORS)
    store_wide<To, T>(to, v);
#else
    narrow<To, T>(to, v);
#endif
  }
}

// Likewise as many as V has.
template <class From, class T, class V>
ANYDML_INLINE V load_numbers(const std::byte* from) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(V) == kVectorBytes) {
    return load_lanes<From, T>(from);
  } else if constexpr (std::is_same_v<From, T>) {
    return load_vector<V>(from);
  } else if constexpr (std::is_same_v<T, double>) {
    return to_doubles(load_lanes<From, float>(from));
  } else {
    static_assert(std::is_same_v<From, Half> && std::is_same_v<T, float>);
    return (V)_mm512_maskz_cvtph_ps(kAllLanes, (__m256i)load_vector<Vector<uint16_t, 16>>(from));
  }
#else
  if constexpr (sizeof(V) == sizeof(Lanes<T, kLanesOf<T>>)) {
    return load_lanes<From, T>(from);
  } else {
    // Half as many, where a register holds no more.
    V v;
    for (size_t i = 0; i < sizeof(V) / sizeof(T); ++i)
      v[i] = static_cast<T>(load<From>(from + i * sizeof(From)));
    return v;
  }
#endif
}
template <class To, class T, class V>
ANYDML_INLINE void store_numbers(std::byte* to, V v) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(V) == kVectorBytes) {
    store_lanes<To, T>(to, v);
  } else if constexpr (std::is_same_v<To, T>) {
    store_vector(to, v);
  } else if constexpr (std::is_same_v<T, double>) {
    store_lanes<To, float>(to, std::is_same_v<To, Half> ? round_to_odd<8>(v) : to_singles(v));
  } else {
    static_assert(std::is_same_v<To, Half> && std::is_same_v<T, float>);
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    store_vector(to, (Vector<uint16_t, 16>)_mm512_maskz_cvtps_ph(kAllLanes, (__m512)v, kNearest));
  }
#else
  if constexpr (sizeof(V) == sizeof(Lanes<T, kLanesOf<T>>)) {
    store_lanes<To, T>(to, v);
  } else {
    static_assert(std::is_same_v<To, T>);
    store_vector(to, v);
  }
#endif
}

ANYDML_ISA_END
