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

#include "half.h"
#include "isa.h"
#include "memory.h"

#if defined(__GNUC__)
#define ANYDML_VECTORS
#if defined(__SSE2__)
#include <immintrin.h>
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

// Not load() and store(), which are compiled for the baseline: a vector crosses no such border.
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

// Inclusive prefixes (`identity` holds it in every lane): pairs first, then pairs of pairs, so that a vector
// takes log2(lanes) steps.
template <class Operation, class V>
  requires(sizeof(V) / sizeof(std::declval<V>()[0]) == 4)
inline V prefixes(V v, V identity) {
  v = Operation::combine(V(__builtin_shufflevector(identity, v, 0, 4, 2, 6)), v);
  return Operation::combine(V(__builtin_shufflevector(identity, v, 0, 1, 5, 5)), v);
}
template <class Operation, class V>
  requires(sizeof(V) / sizeof(std::declval<V>()[0]) == 8)
inline V prefixes(V v, V identity) {
  v = Operation::combine(V(__builtin_shufflevector(identity, v, 0, 8, 9, 10, 4, 12, 13, 14)), v);
  v = Operation::combine(V(__builtin_shufflevector(identity, v, 0, 1, 8, 9, 4, 5, 12, 13)), v);
  return Operation::combine(V(__builtin_shufflevector(identity, v, 0, 1, 2, 3, 11, 11, 11, 11)), v);
}

// [first[0], v0, v1, ...].
template <class V>
inline V shift_up(V v, V first) {
  if constexpr (sizeof(V) / sizeof(v[0]) == 4) {
    return __builtin_shufflevector(first, v, 0, 4, 5, 6);
  } else {
    return __builtin_shufflevector(first, v, 0, 8, 9, 10, 11, 12, 13, 14);
  }
}

template <class V>
inline V broadcast_last(V v) {
  if constexpr (sizeof(V) / sizeof(v[0]) == 4) {
    return __builtin_shufflevector(v, v, 3, 3, 3, 3);
  } else {
    return __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7);
  }
}

template <class V>
inline V reversed(V v) {
  if constexpr (sizeof(V) / sizeof(v[0]) == 4) {
    return __builtin_shufflevector(v, v, 3, 2, 1, 0);
  } else {
    return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
  }
}

// Compilers convert between vectors of different sizes element by element; one instruction does it.
inline Vector<double> to_doubles(Vector<float, 4> v) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  return (Vector<double>)_mm256_cvtps_pd((__m128)v);
#else
  return __builtin_convertvector(v, Vector<double>);
#endif
}
inline Vector<float, 4> to_singles(Vector<double> v) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  return (Vector<float, 4>)_mm256_cvtpd_ps((__m256d)v);
#else
  return __builtin_convertvector(v, Vector<float, 4>);
#endif
}

// A vector's worth of elements of T, as numbers of type Wide.
template <class T, class Wide>
inline Vector<Wide> load_wide(const std::byte* from) {
  constexpr int kLanes = kVectorBytes / sizeof(Wide);
  if constexpr (std::is_same_v<T, Wide>) {
    return load_vector<Vector<T>>(from);
  } else if constexpr (std::is_same_v<T, Half>) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    if constexpr (kLanes == 8) {
      return (Vector<float>)_mm256_cvtph_ps(load<__m128i>(from));
    } else {
      const auto singles = (Vector<float, 4>)_mm_cvtph_ps(_mm_cvtsi64_si128(load<long long>(from)));
      return to_doubles(singles);
    }
#else
    Vector<Wide> wide;
    for (int i = 0; i < kLanes; ++i) wide[i] = static_cast<float>(load<Half>(from + i * 2));
    return wide;
#endif
  } else {
    return to_doubles(load_vector<Vector<float, 4>>(from));
  }
}

// The other way round, each number rounded.
template <class T, class Wide>
inline void store_wide(std::byte* to, Vector<Wide> wide) {
  constexpr int kLanes = kVectorBytes / sizeof(Wide);
  if constexpr (std::is_same_v<T, Wide>) {
    store_vector(to, wide);
  } else if constexpr (std::is_same_v<T, Half>) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    if constexpr (kLanes == 8) {
      store(to, _mm256_cvtps_ph((__m256)wide, _MM_FROUND_TO_NEAREST_INT));
    } else {
      const auto singles = (__m128)to_singles(wide);
      store(to, static_cast<int64_t>(_mm_cvtsi128_si64(_mm_cvtps_ph(singles, _MM_FROUND_TO_NEAREST_INT))));
    }
#else
    for (int i = 0; i < kLanes; ++i) store(to + i * 2, Half(static_cast<float>(wide[i])));
#endif
  } else {
    store_vector(to, to_singles(wide));
  }
}

#endif  // ANYDML_VECTORS

// One element as a number of type Wide, and back.
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

// Copies past the caches, which an output larger than they are would only push everything else out of: a line
// written so is not read first. Others see it after stream_fence().
inline void stream_copy(std::byte* to, const std::byte* from, int64_t bytes) {
#if defined(__SSE2__) && defined(__GNUC__)
  constexpr int64_t kLine = 64;
  const int64_t head = std::min(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kLine));
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    for (int64_t part = i; part < i + kLine; part += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part), load<__m128i>(from + part));
    }
  }
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

inline void stream_fence() {
#if defined(__SSE2__) && defined(__GNUC__)
  _mm_sfence();
#endif
}

ANYDML_ISA_END
