// Conversions between elements of all types: floats to the nearest one, to integers by truncation, saturated,
// and NaN to 0; integers to others modulo 2^n, and to the nearest float.
//
// Loops over a fixed number of elements are what compilers vectorise without a word about it. Each is a
// conversion that some instruction set has, or a few operations around one, so that bits are the same on all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "platform/isa.h"
#include "simd/bits_as.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// The largest number of a float type that an integer type holds.
template <class To, class From>
constexpr From highest_within() {
  constexpr int kSpare = std::numeric_limits<To>::digits - std::numeric_limits<From>::digits;
  constexpr To kHighest = std::numeric_limits<To>::max();
  if constexpr (kSpare > 0) {
    return static_cast<From>(kHighest >> kSpare << kSpare);
  } else {
    return static_cast<From>(kHighest);
  }
}

// A float as an integer, truncated and saturated; 0 for NaN.
template <class To, class From>
ANYDML_INLINE To truncated(From x) {
  constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
  constexpr From kHigh = highest_within<To, From>();
  // What is converted is in range, as nobody says what comes of anything else. Comparisons are those of the
  // instructions for the larger and the smaller of two, which give the second where one is NaN.
  From inside = x > kLow ? x : kLow;
  inside = inside < kHigh ? inside : kHigh;
  if constexpr (kLow != 0) inside = x == x ? inside : From{0};
  if constexpr (sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(inside));
  } else {
    const To result = static_cast<To>(inside);
    return x > kHigh ? std::numeric_limits<To>::max() : result;
  }
}

#if defined(ANYDML_VECTORS)
// A vector of floats in a range, and what is no number as 0. Compilers take no comparison for these
// instructions, as they know nothing of zeros' signs and of NaN here.
template <class T>
ANYDML_INLINE Vector<T> clamped(Vector<T> x, T low, T high) {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  // The larger of NaN and a number is the number.
  if (low != 0) x = (Vector<T>)((Vector<Bits>)x & (Vector<Bits>)(x == x));
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(T) == 4) {
    const auto above = _mm256_max_ps((__m256)x, (__m256)broadcast(low));
    return (Vector<T>)_mm256_min_ps(above, (__m256)broadcast(high));
  } else {
    const auto above = _mm256_max_pd((__m256d)x, (__m256d)broadcast(low));
    return (Vector<T>)_mm256_min_pd(above, (__m256d)broadcast(high));
  }
#else
  x = x > low ? x : broadcast(low);
  return x < high ? x : broadcast(high);
#endif
}
#endif

// A number in single precision that rounds to the same half as the number itself.
template <class From>
ANYDML_INLINE float single_for_half(From x) {
  if constexpr (std::is_same_v<From, double>) {
    // Rounding to odd: of the bits that single precision has not, one is kept that says whether there were
    // any, so that the next rounding sees no tie where there is none.
    constexpr uint64_t kLost = (uint64_t{1} << 29) - 1;
    const auto bits = bits_as<uint64_t>(x);
    return static_cast<float>(bits_as<double>((bits | ((bits & kLost) + kLost)) & ~kLost));
  } else if constexpr (sizeof(From) > 2) {
    // Far beyond the largest half.
    constexpr From kMost = 1 << 17;
    From inside = x < kMost ? x : kMost;
    if constexpr (std::is_signed_v<From>) inside = inside > -kMost ? inside : -kMost;
    return static_cast<float>(static_cast<int32_t>(inside));
  } else {
    return static_cast<float>(x);
  }
}

// One element.
template <class To, class From>
ANYDML_INLINE To converted(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return truncated<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

// Elements that are converted at once, at any address.
inline constexpr int64_t kConvertedAtOnce = 64;

using Convert = void (*)(const std::byte* from, std::byte* to, int64_t blocks);

#if defined(ANYDML_VECTORS)
// Eight floats in a range as integers.
template <class From>
ANYDML_INLINE Vector<int32_t, 8> eight_integers(const std::byte* from, From low, From high) {
  const auto first = clamped(load_vector<Vector<From>>(from), low, high);
  if constexpr (sizeof(From) == 4) {
    return __builtin_convertvector(first, Vector<int32_t, 8>);
  } else {
    const auto second = clamped(load_vector<Vector<From>>(from + kVectorBytes), low, high);
    const auto a = __builtin_convertvector(first, Vector<int32_t, 4>);
    const auto b = __builtin_convertvector(second, Vector<int32_t, 4>);
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  }
}
#endif

// Whether all of an integer type are floats of a type, and integers of 32 bits.
template <class To, class From>
constexpr bool kFitsInt32 =
    std::is_floating_point_v<From> && std::is_integral_v<To> && std::numeric_limits<To>::digits <= 31 &&
    std::numeric_limits<To>::digits <= std::numeric_limits<From>::digits;

#if defined(ANYDML_ISA_AVX512) || defined(ANYDML_ISA_AVX2)
// Singles as bytes by saturating packs, which leave no more than what is too large to be cut off before. What
// is no number becomes the least integer, which packs to 0 where bytes have no sign. Packs put together what
// is in the same 16 bytes of registers, so that runs of four bytes are brought into their order at the end.
template <class To>
ANYDML_INLINE void pack_singles(const std::byte* from, std::byte* to) {
  constexpr bool kSigned = std::is_signed_v<To>;
  constexpr float kHigh = std::numeric_limits<To>::max();
#if defined(ANYDML_ISA_AVX512)
  constexpr __mmask16 kAll = 0xffff;
  const auto integers = [&](int64_t i) {
    const auto x = (__m512)load_vector<Vector<float, 16>>(from + i * 64);
    const __m512 inside = _mm512_maskz_min_ps(kAll, _mm512_set1_ps(kHigh), x);
    return _mm512_maskz_cvttps_epi32(kSigned ? _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q) : kAll, inside);
  };
  const __m512i low = _mm512_packs_epi32(integers(0), integers(1));
  const __m512i high = _mm512_packs_epi32(integers(2), integers(3));
  const __m512i bytes = kSigned ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  store_vector(to, (Vector<uint8_t, 64>)_mm512_maskz_permutexvar_epi32(kAll, order, bytes));
#else
  const auto integers = [&](int64_t i) {
    const auto x = (__m256)load_vector<Vector<float>>(from + i * 32);
    const __m256 inside = _mm256_min_ps(_mm256_set1_ps(kHigh), x);
    return _mm256_cvttps_epi32(kSigned ? _mm256_and_ps(inside, _mm256_cmp_ps(x, x, _CMP_ORD_Q)) : inside);
  };
  for (int64_t i = 0; i < 8; i += 4, to += kVectorBytes) {
    const __m256i low = _mm256_packs_epi32(integers(i), integers(i + 1));
    const __m256i high = _mm256_packs_epi32(integers(i + 2), integers(i + 3));
    const __m256i bytes = kSigned ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    store_vector(to, (Vector<uint8_t>)_mm256_permutevar8x32_epi32(bytes, order));
  }
#endif
}
#endif

template <class To, class From>
void convert(const std::byte* from, std::byte* to, int64_t blocks) {
  constexpr int64_t kIn = sizeof(From);
  constexpr int64_t kOut = sizeof(To);
#if defined(ANYDML_ISA_AVX512) || defined(ANYDML_ISA_AVX2)
  if constexpr (std::is_same_v<From, float> && std::is_integral_v<To> && sizeof(To) == 1) {
    for (; blocks > 0; --blocks, from += kConvertedAtOnce * kIn, to += kConvertedAtOnce * kOut) {
      pack_singles<To>(from, to);
    }
    return;
  }
#endif
#if defined(ANYDML_VECTORS)
  if constexpr (kFitsInt32<To, From>) {
    constexpr int64_t kLanes = 8;
    constexpr auto kLow = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto kHigh = static_cast<From>(std::numeric_limits<To>::max());
    for (; blocks > 0; --blocks, from += kConvertedAtOnce * kIn, to += kConvertedAtOnce * kOut) {
      for (int64_t i = 0; i < kConvertedAtOnce; i += kLanes) {
        const auto integers = eight_integers<From>(from + i * kIn, kLow, kHigh);
        if constexpr (kOut == 4) {
          store_vector(to + i * kOut, integers);
        } else {
          // By halves, as compilers know no instruction for more.
          const auto shorts = __builtin_convertvector(integers, Vector<int16_t, kLanes>);
          store_vector(to + i * kOut, __builtin_convertvector(shorts, Vector<To, kLanes>));
        }
      }
    }
    return;
  }
#endif
  for (; blocks > 0; --blocks, from += kConvertedAtOnce * kIn, to += kConvertedAtOnce * kOut) {
    for (int64_t i = 0; i < kConvertedAtOnce; ++i) {
      store(to + i * kOut, converted<To>(load<From>(from + i * kIn)));
    }
  }
}

// To singles that halves are made of.
template <class From>
void convert_for_halves(const std::byte* from, std::byte* to, int64_t blocks) {
  constexpr int64_t kIn = sizeof(From);
  constexpr int64_t kOut = sizeof(float);
  for (; blocks > 0; --blocks, from += kConvertedAtOnce * kIn, to += kConvertedAtOnce * kOut) {
    for (int64_t i = 0; i < kConvertedAtOnce; ++i) {
      store(to + i * kOut, single_for_half(load<From>(from + i * kIn)));
    }
  }
}

// Halves to singles, and back.
inline void widen_halves(const std::byte* from, std::byte* to, int64_t blocks) {
  const int64_t count = blocks * kConvertedAtOnce;
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = kVectorBytes / sizeof(float);
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i += kLanes) store_vector(to + i * 4, load_wide<Half, float>(from + i * 2));
#else
  for (int64_t i = 0; i < count; ++i) store(to + i * 4, widen<Half, float>(from + i * 2));
#endif
}
inline void narrow_to_halves(const std::byte* from, std::byte* to, int64_t blocks) {
  const int64_t count = blocks * kConvertedAtOnce;
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = kVectorBytes / sizeof(float);
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; i += kLanes)
    store_wide<Half, float>(to + i * 2, load_vector<Vector<float>>(from + i * 4));
#else
  for (int64_t i = 0; i < count; ++i) narrow<Half, float>(to + i * 2, load<float>(from + i * 4));
#endif
}

ANYDML_ISA_END
