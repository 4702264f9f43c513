// Functions of halves in single precision, rounded right, whatever the constants are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/half_arithmetic.h"
#include "pointwise/half_error_function.h"
#include "pointwise/half_functions.h"
#include "pointwise/lanes.h"
#include "pointwise/operations.h"
#include "simd/bits_as.h"
#include "simd/half.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// As many halves as Singles has lanes, as singles and rounded from these; and whether two vectors of these
// are the same.
#if defined(ANYDML_ISA_AVX512)
ANYDML_INLINE Singles load_halves(const std::byte* from) {
  return (Singles)_mm512_maskz_cvtph_ps(kAllLanes, (__m256i)load_vector<Vector<uint16_t, 16>>(from));
}
ANYDML_INLINE Vector<uint16_t, 16> to_halves(Singles v) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return (Vector<uint16_t, 16>)_mm512_maskz_cvtps_ph(kAllLanes, (__m512)v, kNearest);
}
ANYDML_INLINE bool are_same(Vector<uint16_t, 16> a, Vector<uint16_t, 16> b) {
  const auto differs = (__m256i)(a ^ b);
  return _mm256_testz_si256(differs, differs) != 0;
}
#elif defined(ANYDML_VECTORS)
ANYDML_INLINE Singles load_halves(const std::byte* from) { return load_lanes<Half, float>(from); }
ANYDML_INLINE Vector<uint16_t, 8> to_halves(Singles v) { return narrow_row<Half, Vector<uint16_t, 8>>(v); }
ANYDML_INLINE bool are_same(Vector<uint16_t, 8> a, Vector<uint16_t, 8> b) {
  const auto words = bits_as<std::array<uint64_t, 2>>(a ^ b);
  return (words[0] | words[1]) == 0;
}
#else
ANYDML_INLINE Singles load_halves(const std::byte* from) { return load_lanes<Half, float>(from); }
ANYDML_INLINE uint16_t to_halves(Singles v) { return bits_as<uint16_t>(Half(v)); }
ANYDML_INLINE bool are_same(uint16_t a, uint16_t b) { return a == b; }
#endif

// A vector of halves in double precision.
template <class Operation>
ANYDML_NOINLINE void halves_by_doubles(const int64_t* constants, const float* x, const float* y,
                                       std::byte* out) {
  const Constants<double> k(constants);
  constexpr auto kCount = static_cast<int>(sizeof(Singles) / sizeof(float));
  for (int i = 0; i < kCount; i += static_cast<int>(sizeof(Doubles) / sizeof(double))) {
    const auto a = load_numbers<float, double, Doubles>(reinterpret_cast<const std::byte*>(x + i));
    const auto b = load_numbers<float, double, Doubles>(reinterpret_cast<const std::byte*>(y + i));
    store_numbers<Half, double>(out + i * sizeof(Half), Operation::template of<double>(k, a, b));
  }
}

// Stores results as halves by Ziv's rounding test: a single whose error has a bound tells the right half,
// unless a tie between halves lies within that error. Vectors with such numbers, about one in a hundred, are
// computed once more, in double precision.
template <class Operation>
ANYDML_INLINE void store_halves(const int64_t* constants, Singles x, Singles y, Singles result,
                                std::byte* out) {
  if constexpr (OfHalves<Operation>::kError == 0) {
    const auto halves = to_halves(result);
    std::memcpy(out, &halves, sizeof(halves));
  } else {
    Singles least = result * (1.0f - OfHalves<Operation>::kError);
    Singles most = result * (1.0f + OfHalves<Operation>::kError);
    if constexpr (requires { OfHalves<Operation>::is_exact(x); }) {
      least = OfHalves<Operation>::is_exact(x) ? result : least;
      most = OfHalves<Operation>::is_exact(x) ? result : most;
    }
    const auto low = to_halves(least);
    const auto high = to_halves(most);
    if (are_same(low, high)) [[likely]] {
      std::memcpy(out, &low, sizeof(low));
      return;
    }
    constexpr size_t kLanes = sizeof(Singles) / sizeof(float);
    const auto xs = bits_as<std::array<float, kLanes>>(x);
    const auto ys = bits_as<std::array<float, kLanes>>(y);
    halves_by_doubles<Operation>(constants, xs.data(), ys.data(), out);
  }
}

#if defined(ANYDML_ISA_AVX512)
ANYDML_NOINLINE inline void hard_swish_to_odd(const int64_t* constants, const float* x, std::byte* out) {
  const Singles v = load_vector<Singles>(reinterpret_cast<const std::byte*>(x));
  const auto halves = to_halves(OfHalves<HardSwish>::of(Constants<float>(constants), v, v));
  std::memcpy(out, &halves, sizeof(halves));
}
// Interval arithmetic: what is rounded to one half from below and from above is rounded right, exact products
// among them. A product is cut off as a half, to 0 and to its first factor.
ANYDML_INLINE void hard_swish_of_halves(const int64_t* constants, const std::byte* from, std::byte* out,
                                        int64_t count) {
  const Constants<float> k(constants);
  const __m256i sign = _mm256_set1_epi16(static_cast<int16_t>(0x8000));
  // Nothing counts as finite beside a constant that is not.
  const bool are_finite = (k[0] - k[0]) + (k[1] - k[1]) == 0;
  const __m256i infinity = _mm256_set1_epi16(are_finite ? 0x7c00 : 0);
  for (int64_t at = 0; at < count * static_cast<int64_t>(sizeof(Half)); at += sizeof(__m256i)) {
    const auto bits = (__m256i)load_vector<Vector<uint16_t, 16>>(from + at);
    const Singles x = load_halves(from + at);
    const Singles a = magnitude_of<float>(x);
    const Singles low = product_by<kDown>(a, multiply_add_by<kDown>(x, singles(k[0]), singles(k[1])));
    const Singles high = product_by<kUp>(a, multiply_add_by<kUp>(x, singles(k[0]), singles(k[1])));
    const auto y = (__m256i)to_halves(low);
    const __m256i magnitude = _mm256_andnot_si256(sign, bits);
    const __mmask16 differ = _mm256_cmpneq_epi16_mask(y, (__m256i)to_halves(high));
    if (_kortestz_mask16_u8(differ, _mm256_cmpge_epu16_mask(magnitude, infinity)) != 0) [[likely]] {
      const __m256i cut = _mm256_min_epi16(_mm256_max_epi16(y, _mm256_setzero_si256()), magnitude);
      store_vector(out + at, cut | (bits & sign));
    } else {
      const auto xs = bits_as<std::array<float, 16>>(x);
      hard_swish_to_odd(constants, xs.data(), out + at);
    }
  }
}

// Likewise squares of differences that singles hold, as they do but where one number is far larger than the
// other: the other vectors go by double precision.
inline void difference_square_of_halves(const int64_t* constants, const std::byte* x, const std::byte* y,
                                        const std::byte* /*z*/, std::byte* out, int64_t count) {
  for (int64_t at = 0; at < count * static_cast<int64_t>(sizeof(Half)); at += sizeof(__m256i)) {
    const Singles a = load_halves(x + at);
    const Singles b = load_halves(y + at);
    const __m512 down = _mm512_maskz_sub_round_ps(kAllLanes, (__m512)a, (__m512)b, kDown);
    const __m512 up = _mm512_maskz_sub_round_ps(kAllLanes, (__m512)a, (__m512)b, kUp);
    const auto low = to_halves(product_by<kDown>((Singles)down, (Singles)down));
    const auto high = to_halves(product_by<kUp>((Singles)down, (Singles)down));
    const __mmask16 are_inexact = _mm512_cmp_ps_mask(down, up, _CMP_NEQ_OQ);
    if (_kortestz_mask16_u8(are_inexact, _mm256_cmpneq_epi16_mask((__m256i)low, (__m256i)high)) != 0)
        [[likely]] {
      store_vector(out + at, low);
    } else {
      const auto first = bits_as<std::array<float, 16>>(a);
      const auto second = bits_as<std::array<float, 16>>(b);
      halves_by_doubles<DifferenceSquare>(constants, first.data(), second.data(), out + at);
    }
  }
}
#endif

// The loop of a function. Where it has one operand, that counts as the second one too.
template <class Operation>
void pass_of_halves(const int64_t* constants, const std::byte* x, const std::byte* y, const std::byte* /*z*/,
                    std::byte* out, int64_t count) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<Operation, HardSwish>) return hard_swish_of_halves(constants, x, out, count);
#endif
  const Constants<float> k(constants);
  constexpr int64_t kBytes = sizeof(Singles) / sizeof(float) * sizeof(Half);
  constexpr bool kIsOfTwo = kIsOneOf<Operation, AtanYx>;
  for (int64_t at = 0; at < count * static_cast<int64_t>(sizeof(Half)); at += 2 * kBytes) {
    const Singles x1 = load_halves(x + at);
    const Singles x2 = load_halves(x + at + kBytes);
    const Singles y1 = kIsOfTwo ? load_halves(y + at) : x1;
    const Singles y2 = kIsOfTwo ? load_halves(y + at + kBytes) : x2;
    const Singles first = OfHalves<Operation>::of(k, x1, y1);
    const Singles second = OfHalves<Operation>::of(k, x2, y2);
    store_halves<Operation>(constants, x1, y1, first, out + at);
    store_halves<Operation>(constants, x2, y2, second, out + at + kBytes);
  }
}

ANYDML_ISA_END
