// Eight doubles, as many elements that become them, and the elements that they are rounded to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kEight = 8;

#if defined(ANYDML_ISA_AVX512)
using Eight = Vector<double, 8>;

ANYDML_INLINE Eight load_eight(const double* from) {
  Eight v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
ANYDML_INLINE void store_eight(double* to, Eight v) { std::memcpy(to, &v, sizeof(v)); }
ANYDML_INLINE Eight all_eight(double value) { return Eight{} + value; }
// The lanes of `a` where x is larger than y, and those of `b` elsewhere.
ANYDML_INLINE Eight where_larger(Eight x, Eight y, Eight a, Eight b) { return x > y ? a : b; }
#elif defined(ANYDML_VECTORS)
// Two registers: GCC would hold a vector that is longer than one in memory.
struct Eight {
  Vector<double> low;
  Vector<double> high;
};

ANYDML_INLINE Eight operator+(const Eight& a, const Eight& b) { return {a.low + b.low, a.high + b.high}; }
ANYDML_INLINE Eight operator*(const Eight& a, const Eight& b) { return {a.low * b.low, a.high * b.high}; }
ANYDML_INLINE Eight operator/(const Eight& a, const Eight& b) { return {a.low / b.low, a.high / b.high}; }
ANYDML_INLINE Eight load_eight(const double* from) {
  Eight v;
  std::memcpy(&v.low, from, sizeof(v.low));
  std::memcpy(&v.high, from + kEight / 2, sizeof(v.high));
  return v;
}
ANYDML_INLINE void store_eight(double* to, const Eight& v) {
  std::memcpy(to, &v.low, sizeof(v.low));
  std::memcpy(to + kEight / 2, &v.high, sizeof(v.high));
}
ANYDML_INLINE Eight all_eight(double value) { return {broadcast(value), broadcast(value)}; }
ANYDML_INLINE Eight where_larger(const Eight& x, const Eight& y, const Eight& a, const Eight& b) {
  return {x.low > y.low ? a.low : b.low, x.high > y.high ? a.high : b.high};
}
#else
struct Eight {
  double lane[kEight];
};

template <class Function>
inline Eight by_lanes(const Function& function) {
  Eight v;
  for (int64_t i = 0; i < kEight; ++i) v.lane[i] = function(i);
  return v;
}
inline Eight operator+(const Eight& a, const Eight& b) {
  return by_lanes([&](int64_t i) { return a.lane[i] + b.lane[i]; });
}
inline Eight operator*(const Eight& a, const Eight& b) {
  return by_lanes([&](int64_t i) { return a.lane[i] * b.lane[i]; });
}
inline Eight operator/(const Eight& a, const Eight& b) {
  return by_lanes([&](int64_t i) { return a.lane[i] / b.lane[i]; });
}
inline Eight load_eight(const double* from) {
  return by_lanes([&](int64_t i) { return from[i]; });
}
inline void store_eight(double* to, const Eight& v) { std::memcpy(to, v.lane, sizeof(v.lane)); }
inline Eight all_eight(double value) {
  return by_lanes([&](int64_t) { return value; });
}
inline Eight where_larger(const Eight& x, const Eight& y, const Eight& a, const Eight& b) {
  return by_lanes([&](int64_t i) { return x.lane[i] > y.lane[i] ? a.lane[i] : b.lane[i]; });
}
#endif

// The integer nearest to a double that is small against 2^51, of two the even one, in its last bits.
constexpr double kWhole = 0x1.8p52;

#if defined(ANYDML_VECTORS)
// Intrinsics without a mask begin with what GCC warns is undefined.
ANYDML_INLINE Eight eight_of(Vector<float> v) {
#if defined(ANYDML_ISA_AVX512)
  return (Eight)_mm512_maskz_cvtps_pd(0xff, (__m256)v);
#else
  return {to_doubles(__builtin_shufflevector(v, v, 0, 1, 2, 3)),
          to_doubles(__builtin_shufflevector(v, v, 4, 5, 6, 7))};
#endif
}
ANYDML_INLINE Vector<float> singles_of(Eight v) {
#if defined(ANYDML_ISA_AVX512)
  return (Vector<float>)_mm512_maskz_cvtpd_ps(0xff, (__m512d)v);
#else
  return __builtin_shufflevector(to_singles(v.low), to_singles(v.high), 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

// Doubles rounded to odd, as in single_for_half().
template <class V>
ANYDML_INLINE V odd_for_halves(V v) {
  using Bits = Vector<uint64_t, static_cast<int>(sizeof(V) / sizeof(double))>;
  constexpr uint64_t kLost = (uint64_t{1} << 29) - 1;
  const auto bits = (Bits)v;
  return (V)((bits | ((bits & kLost) + kLost)) & ~kLost);
}
#endif

// Eight elements that follow each other.
template <class T>
ANYDML_INLINE Eight widen_eight(const std::byte* from) {
#if defined(ANYDML_VECTORS)
  if constexpr (std::is_same_v<T, float>) {
    return eight_of(load_vector<Vector<float>>(from));
  } else if constexpr (std::is_same_v<T, Half>) {
    return eight_of(widen_row<Half, Vector<float>>(load_vector<Vector<uint16_t, 8>>(from)));
  } else {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    const __m128i bytes = _mm_cvtsi64_si128(load<long long>(from));
    const __m256i integers = std::is_signed_v<T> ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
#if defined(ANYDML_ISA_AVX512)
    return (Eight)_mm512_maskz_cvtepi32_pd(0xff, integers);
#else
    return {(Vector<double>)_mm256_cvtepi32_pd(_mm256_castsi256_si128(integers)),
            (Vector<double>)_mm256_cvtepi32_pd(_mm256_extracti128_si256(integers, 1))};
#endif
#else
    double numbers[kEight];
    for (int64_t i = 0; i < kEight; ++i) numbers[i] = static_cast<double>(load<T>(from + i));
    return load_eight(numbers);
#endif
  }
#else
  return by_lanes([&](int64_t i) { return widen<T, double>(from + i * static_cast<int64_t>(sizeof(T))); });
#endif
}

// Eight halves that follow each other as floats.
ANYDML_INLINE void widen_eight_halves(const std::byte* from, float* to) {
#if defined(ANYDML_VECTORS)
  store_vector(reinterpret_cast<std::byte*>(to),
               widen_row<Half, Vector<float>>(load_vector<Vector<uint16_t, 8>>(from)));
#else
  for (int64_t i = 0; i < kEight; ++i) to[i] = widen<Half, float>(from + i * 2);
#endif
}

// Each rounded once; integers, whose type has all that come here, to the nearest, of two to the even one.
template <class T>
ANYDML_INLINE void narrow_eight(std::byte* to, Eight v) {
#if defined(ANYDML_VECTORS)
  if constexpr (std::is_same_v<T, float>) {
    store_vector(to, singles_of(v));
  } else if constexpr (std::is_same_v<T, Half>) {
#if defined(ANYDML_ISA_AVX512)
    const Eight odd = odd_for_halves(v);
#else
    const Eight odd{odd_for_halves(v.low), odd_for_halves(v.high)};
#endif
    store_vector(to, narrow_row<Half, Vector<uint16_t, 8>>(singles_of(odd)));
  } else {
    const Eight whole = v + all_eight(kWhole);
#if defined(ANYDML_ISA_AVX512)
    store(to, static_cast<long long>(_mm_cvtsi128_si64(_mm512_maskz_cvtepi64_epi8(0xff, (__m512i)whole))));
#elif defined(ANYDML_ISA_AVX2)
    // The lower halves of all, in order, packed to what has room for them.
    const __m256 mixed = _mm256_shuffle_ps((__m256)whole.low, (__m256)whole.high, _MM_SHUFFLE(2, 0, 2, 0));
    const __m256i integers = _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), _MM_SHUFFLE(3, 1, 2, 0));
    const __m128i shorts =
        _mm_packs_epi32(_mm256_castsi256_si128(integers), _mm256_extracti128_si256(integers, 1));
    const __m128i bytes =
        std::is_signed_v<T> ? _mm_packs_epi16(shorts, shorts) : _mm_packus_epi16(shorts, shorts);
    store(to, static_cast<long long>(_mm_cvtsi128_si64(bytes)));
#else
    double numbers[kEight];
    store_eight(numbers, whole);
    for (int64_t i = 0; i < kEight; ++i) {
      store(to + i, static_cast<T>(load<uint64_t>(reinterpret_cast<const std::byte*>(numbers + i))));
    }
#endif
  }
#else
  for (int64_t i = 0; i < kEight; ++i) {
    std::byte* const place = to + i * static_cast<int64_t>(sizeof(T));
    if constexpr (std::is_same_v<T, Half>) {
      store(place, Half(single_for_half(v.lane[i])));
    } else if constexpr (std::is_same_v<T, float>) {
      store(place, static_cast<float>(v.lane[i]));
    } else {
      store(place, static_cast<T>(bits_as<uint64_t>(v.lane[i] + kWhole)));
    }
  }
#endif
}

// Elements of an output, `step` bytes apart: the first `count` of eight.
template <class T>
ANYDML_INLINE void store_results(std::byte* to, int64_t step, int64_t count, Eight v) {
  constexpr int64_t kItem = sizeof(T);
  if (step == kItem && count == kEight) return narrow_eight<T>(to, v);
  std::byte staged[kEight * kItem];
  narrow_eight<T>(staged, v);
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * step, staged + i * kItem, kItem);
}

}  // namespace
ANYDML_ISA_END
