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

template <class V>
inline constexpr int kLanesOf = sizeof(V) / sizeof(std::declval<V>()[0]);

// Lanes are traversed upward, or, with kDown, downward: then the last one is the lowest.
template <class V, bool kDown>
inline constexpr int kLastLane = kDown ? 0 : kLanesOf<V> - 1;

// Inclusive prefixes (`identity` holds it in every lane): pairs first, then pairs of pairs, so that a vector
// takes log2(lanes) steps.
template <class Operation, bool kDown, class V>
inline V prefixes(V v, V identity) {
  if constexpr (kLanesOf<V> == 4 && !kDown) {
    v = Operation::combine(V(__builtin_shufflevector(identity, v, 0, 4, 2, 6)), v);
    return Operation::combine(V(__builtin_shufflevector(identity, v, 0, 1, 5, 5)), v);
  } else if constexpr (kLanesOf<V> == 4) {
    v = Operation::combine(V(__builtin_shufflevector(identity, v, 5, 1, 7, 3)), v);
    return Operation::combine(V(__builtin_shufflevector(identity, v, 6, 6, 2, 3)), v);
  } else if constexpr (!kDown) {
    v = Operation::combine(V(__builtin_shufflevector(identity, v, 0, 8, 9, 10, 4, 12, 13, 14)), v);
    v = Operation::combine(V(__builtin_shufflevector(identity, v, 0, 1, 8, 9, 4, 5, 12, 13)), v);
    return Operation::combine(V(__builtin_shufflevector(identity, v, 0, 1, 2, 3, 11, 11, 11, 11)), v);
  } else {
    v = Operation::combine(V(__builtin_shufflevector(identity, v, 9, 10, 11, 3, 13, 14, 15, 7)), v);
    v = Operation::combine(V(__builtin_shufflevector(identity, v, 10, 11, 2, 3, 14, 15, 6, 7)), v);
    return Operation::combine(V(__builtin_shufflevector(identity, v, 12, 12, 12, 12, 4, 5, 6, 7)), v);
  }
}

// v, each lane of it one later, and before them `first`.
template <bool kDown, class V>
inline V shift_later(V v, V first) {
  if constexpr (kLanesOf<V> == 4 && !kDown) {
    return __builtin_shufflevector(first, v, 0, 4, 5, 6);
  } else if constexpr (kLanesOf<V> == 4) {
    return __builtin_shufflevector(first, v, 5, 6, 7, 3);
  } else if constexpr (!kDown) {
    return __builtin_shufflevector(first, v, 0, 8, 9, 10, 11, 12, 13, 14);
  } else {
    return __builtin_shufflevector(first, v, 9, 10, 11, 12, 13, 14, 15, 7);
  }
}

template <int kLane, class V>
inline V broadcast_lane(V v) {
  if constexpr (kLanesOf<V> == 4) {
    return __builtin_shufflevector(v, v, kLane, kLane, kLane, kLane);
  } else {
    return __builtin_shufflevector(v, v, kLane, kLane, kLane, kLane, kLane, kLane, kLane, kLane);
  }
}

// [last of v[0], last of v[1], ...], of as many vectors as a vector has lanes.
template <bool kDown, class V>
inline V last_lanes(const V* v) {
  if constexpr (kLanesOf<V> == 4 && !kDown) {
    const V a = __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7);
    const V b = __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7);
    return __builtin_shufflevector(a, b, 2, 3, 6, 7);
  } else if constexpr (kLanesOf<V> == 4) {
    const V a = __builtin_shufflevector(v[0], v[1], 0, 4, 2, 6);
    const V b = __builtin_shufflevector(v[2], v[3], 0, 4, 2, 6);
    return __builtin_shufflevector(a, b, 0, 1, 4, 5);
  } else {
    V quads[2];
    for (int i = 0; i < 2; ++i) {
      if constexpr (!kDown) {
        const V a = __builtin_shufflevector(v[4 * i], v[4 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
        const V b = __builtin_shufflevector(v[4 * i + 2], v[4 * i + 3], 2, 10, 3, 11, 6, 14, 7, 15);
        quads[i] = __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
      } else {
        const V a = __builtin_shufflevector(v[4 * i], v[4 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        const V b = __builtin_shufflevector(v[4 * i + 2], v[4 * i + 3], 0, 8, 1, 9, 4, 12, 5, 13);
        quads[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
      }
    }
    if constexpr (kDown) return __builtin_shufflevector(quads[0], quads[1], 0, 1, 2, 3, 8, 9, 10, 11);
    return __builtin_shufflevector(quads[0], quads[1], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// last_lanes() of the prefixes of each vector, in the same order of combining, without the other lanes.
template <class Operation, class V>
inline V totals(const V* v) {
  if constexpr (kLanesOf<V> == 4) {
    V pairs[2];
    for (int i = 0; i < 2; ++i) {
      pairs[i] = Operation::combine(V(__builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 4, 2, 6)),
                                    V(__builtin_shufflevector(v[2 * i], v[2 * i + 1], 1, 5, 3, 7)));
    }
    return Operation::combine(V(__builtin_shufflevector(pairs[0], pairs[1], 0, 1, 4, 5)),
                              V(__builtin_shufflevector(pairs[0], pairs[1], 2, 3, 6, 7)));
  } else {
    const auto fold = [](V a, V b) {
      return Operation::combine(V(__builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14)),
                                V(__builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15)));
    };
    const V low = fold(fold(v[0], v[1]), fold(v[2], v[3]));
    const V high = fold(fold(v[4], v[5]), fold(v[6], v[7]));
    return Operation::combine(V(__builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11)),
                              V(__builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15)));
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

ANYDML_ISA_END
