// Vectors of one logical width, as the compiler offers them: the same operations on every instruction set.
//
// Where the compiler has none (ANYDML_VECTORS is not defined), kernels keep to plain loops.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "platform/isa.h"
#include "simd/half.h"
#include "simd/unaligned.h"

#if defined(__GNUC__)
#define ANYDML_VECTORS
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
// Every function here is inlined or internal, so that no other compiler ever meets its calling convention.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

inline constexpr int kVectorBytes = 32;

template <class T, int kLanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kLanes * sizeof(T))));
};
template <class T, int kLanes = kVectorBytes / static_cast<int>(sizeof(T))>
using Vector = typename VectorOf<T, kLanes>::type;

// These are not load() and store(), which are compiled for the baseline, and must not pass vectors.
template <class V>
inline V load_vector(const std::byte* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <class V>
inline void store_vector(std::byte* to, V v) {
  std::memcpy(to, &v, sizeof(V));
}

template <class T>
inline Vector<T> broadcast(T value) {
  return Vector<T>{} + value;
}

// Calls body with each index below kCount as a template argument.
template <int kCount, class Body>
ANYDML_INLINE void for_each_index(const Body& body) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    (body.template operator()<kIndex>(), ...);
  }(std::make_integer_sequence<int, kCount>{});
}

// A shuffle: each lane of the result is the one of `a` and `b` end to end that From gives for its index.
template <class V, class From>
ANYDML_INLINE V shuffled(V a, V b, From) {
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(a, b, From{}(kLane)...);
  }(std::make_integer_sequence<int, static_cast<int>(sizeof(V) / sizeof(a[0]))>{});
}

// Takes one lane from `other`, and the rest from `lanes`.
template <int kLane, class V>
ANYDML_INLINE V with_lane(V lanes, V other) {
  return shuffled(lanes, other, [](int lane) {
    return lane == kLane ? static_cast<int>(sizeof(V) / sizeof(other[0])) + lane : lane;
  });
}

// Conversions in one instruction: compilers convert between vectors of different sizes element by element.
ANYDML_INLINE Vector<double> to_doubles(Vector<float, 4> v) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  return (Vector<double>)_mm256_cvtps_pd((__m128)v);
#else
  return __builtin_convertvector(v, Vector<double>);
#endif
}
ANYDML_INLINE Vector<float, 4> to_singles(Vector<double> v) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  return (Vector<float, 4>)_mm256_cvtpd_ps((__m256d)v);
#else
  return __builtin_convertvector(v, Vector<float, 4>);
#endif
}

#if !defined(ANYDML_ISA_AVX2) && !defined(ANYDML_ISA_AVX512)
// The conversions of half.h for several elements: without branches, each case is computed and one is chosen.
// They work on 16 bytes, as compilers compare longer vectors element by element where there are no such
// registers.
template <class T>
struct Parts {
  Vector<T, 4> low;
  Vector<T, 4> high;
};
ANYDML_INLINE_UNLESS_COMPACT Vector<float, 4> from_halves(Vector<uint32_t, 4> bits) {
  using namespace half_detail;
  using Bits = Vector<uint32_t, 4>;
  using Ints = Vector<int32_t, 4>;
  const auto magnitude = (Ints)(bits & 0x7fff);
  const Bits normal = ((Bits)magnitude << kMantissaShift) + kRebias;
  const Bits special = (normal + kRebias) | ((Bits)(magnitude > 0x7c00) & kFloatQuietBit);
  const auto subnormal = (Bits)(__builtin_convertvector(magnitude, Vector<float, 4>) * 0x1p-24F);
  const Bits finite = magnitude < 0x0400 ? subnormal : normal;
  return (Vector<float, 4>)((bits & 0x8000) << 16 | (magnitude < 0x7c00 ? finite : special));
}
ANYDML_INLINE_UNLESS_COMPACT Vector<uint32_t, 4> to_halves(Vector<float, 4> singles) {
  using namespace half_detail;
  using Bits = Vector<uint32_t, 4>;
  using Ints = Vector<int32_t, 4>;
  const auto bits = (Bits)singles;
  const auto magnitude = (Ints)(bits & 0x7fffffff);
  const Bits value = (Bits)magnitude - kRebias;
  const auto rounded = (Ints)((value + 0xfff + (value >> kMantissaShift & 1)) >> kMantissaShift);
  const Ints normal = rounded < 0x7c00 ? rounded : Ints{} + 0x7c00;
  const Ints nan = 0x7e00 | (magnitude >> kMantissaShift & 0x3ff);
  // Below 2^-14: the multiple of 2^-24, and the rest.
  const Ints is_small = magnitude < 0x38800000;
  const auto times = (Vector<float, 4>)(magnitude & is_small) * 0x1p24F;
  const Ints whole = __builtin_convertvector(times, Ints);
  const Vector<float, 4> left = times - __builtin_convertvector(whole, Vector<float, 4>);
  const Ints rounds_up = (left > 0.5F) | ((left == 0.5F) & ((whole & 1) != 0));
  const Ints number = is_small ? whole - rounds_up : normal;
  const Ints half = magnitude > static_cast<int32_t>(kFloatInfinity) ? nan : number;
  return (Bits)half | (bits >> 16 & 0x8000);
}
#endif

// Converts 16 bytes of elements of T to numbers, and back, each rounded.
template <class T, class V, class Row>
ANYDML_INLINE V widen_row(Row row) {
  if constexpr (std::is_same_v<T, Half>) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    return (V)_mm256_cvtph_ps((__m128i)row);
#else
    const auto bits = __builtin_convertvector((Vector<uint16_t, 8>)row, Vector<uint32_t>);
    const auto parts = std::bit_cast<Parts<uint32_t>>(bits);
    return std::bit_cast<V>(Parts<float>{from_halves(parts.low), from_halves(parts.high)});
#endif
  } else if constexpr (std::is_same_v<T, float>) {
    return to_doubles((Vector<float, 4>)row);
  } else {
    return (V)row;
  }
}
template <class T, class Row, class V>
ANYDML_INLINE Row narrow_row(V wide) {
  if constexpr (std::is_same_v<T, Half>) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    return (Row)_mm256_cvtps_ph((__m256)wide, _MM_FROUND_TO_NEAREST_INT);
#else
    const auto parts = std::bit_cast<Parts<float>>(wide);
    const Parts<uint32_t> halves{to_halves(parts.low), to_halves(parts.high)};
    const auto bits = std::bit_cast<Vector<uint32_t>>(halves);
    return (Row) __builtin_convertvector(bits, Vector<uint16_t, 8>);
#endif
  } else if constexpr (std::is_same_v<T, float>) {
    return (Row)to_singles(wide);
  } else {
    return (Row)wide;
  }
}

// Loads as many elements of T as a vector has numbers of type Wide.
template <class T, class Wide>
ANYDML_INLINE Vector<Wide> load_wide(const std::byte* from) {
  constexpr int kLanes = kVectorBytes / sizeof(Wide);
  if constexpr (std::is_same_v<T, Wide>) {
    return load_vector<Vector<T>>(from);
  } else if constexpr (std::is_same_v<T, Half> && kLanes == 4) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    return to_doubles((Vector<float, 4>)_mm_cvtph_ps(_mm_cvtsi64_si128(load<long long>(from))));
#else
    Vector<Wide> wide;
    for (int i = 0; i < kLanes; ++i) wide[i] = static_cast<float>(load<Half>(from + i * 2));
    return wide;
#endif
  } else {
    return widen_row<T, Vector<Wide>>(load_vector<Vector<uint16_t, 8>>(from));
  }
}

// Stores them, each rounded.
template <class T, class Wide>
ANYDML_INLINE void store_wide(std::byte* to, Vector<Wide> wide) {
  if constexpr (std::is_same_v<T, Wide>) {
    store_vector(to, wide);
  } else {
    store_vector(to, narrow_row<T, Vector<uint16_t, 8>>(wide));
  }
}

// Rounds as many vectors of numbers as give a vector of elements of T.
template <class T, class Wide>
ANYDML_INLINE Vector<uint16_t> narrow_vector(const Vector<Wide>* wide) {
  if constexpr (std::is_same_v<T, Wide>) {
    return (Vector<uint16_t>)wide[0];
  } else {
    using Row = Vector<uint16_t, 8>;
    const Row low = narrow_row<T, Row>(wide[0]);
    const Row high = narrow_row<T, Row>(wide[1]);
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
}

// Stores the first kBytes of a vector, in two parts that may overlap.
template <int64_t kBytes>
ANYDML_INLINE void store_first(std::byte* to, Vector<uint16_t, 8> v) {
  if constexpr (kBytes < 4) {
    const uint16_t only = v[0];
    std::memcpy(to, &only, sizeof(only));
  } else {
    constexpr bool kShort = kBytes < 8;
    using Piece = std::conditional_t<kShort, uint32_t, uint64_t>;
    constexpr int kFrom = (kBytes - sizeof(Piece)) / 2;
    const auto moved = [&]<int... kPlace>(std::integer_sequence<int, kPlace...>) {
      return __builtin_shufflevector(v, v, ((kPlace + kFrom) % 8)...);
    }(std::make_integer_sequence<int, 8>{});
    const Piece first = ((Vector<Piece, 16 / sizeof(Piece)>)v)[0];
    const Piece last = ((Vector<Piece, 16 / sizeof(Piece)>)moved)[0];
    std::memcpy(to, &first, sizeof(Piece));
    if (kFrom > 0) std::memcpy(to + kFrom * 2, &last, sizeof(Piece));
  }
}

// A non-temporal store of half a vector to an aligned address,
template <class T>
ANYDML_INLINE void stream_half(std::byte* to, Vector<T, kVectorBytes / 2 / sizeof(T)> v) {
#if defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), (__m128i)v);
#else
  store_vector(to, v);
#endif
}
// and of a whole one.
ANYDML_INLINE void stream_vector(std::byte* to, Vector<uint16_t> v) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)v);
#else
  const auto bits = (Vector<uint64_t>)v;
  stream_half<uint64_t>(to, __builtin_shufflevector(bits, bits, 0, 1));
  stream_half<uint64_t>(to + kVectorBytes / 2, __builtin_shufflevector(bits, bits, 2, 3));
#endif
}

#endif  // ANYDML_VECTORS

// Loads one element as a number of type Wide, and stores it.
template <class T, class Wide>
inline Wide widen(const std::byte* from) {
  if constexpr (std::is_same_v<T, Half>) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    return static_cast<Wide>(_cvtsh_ss(load<uint16_t>(from)));
#else
    return static_cast<Wide>(static_cast<float>(load<Half>(from)));
#endif
  } else {
    return static_cast<Wide>(load<T>(from));
  }
}
template <class T, class Wide>
inline void narrow(std::byte* to, Wide wide) {
  if constexpr (std::is_same_v<T, Half>) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    store(to, static_cast<uint16_t>(_cvtss_sh(static_cast<float>(wide), _MM_FROUND_TO_NEAREST_INT)));
#else
    store(to, Half(static_cast<float>(wide)));
#endif
  } else {
    store(to, static_cast<T>(wide));
  }
}

ANYDML_ISA_END
