// What is tallied, how, and how wide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "simd/half.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

struct Sum {
  static constexpr const char* kName = "sum";
  static constexpr int kIdentity = 0;
  template <class T>
  static T combine(T accumulator, T x) {
    return accumulator + x;
  }
};

struct Product {
  static constexpr const char* kName = "product";
  static constexpr int kIdentity = 1;
  template <class T>
  static T combine(T accumulator, T x) {
    return accumulator * x;
  }
};

#if defined(ANYDML_VECTORS)
// a o b, for what no next step waits for. Some processors add in two places, and multiply and add in two
// others, which sums would leave idle: 1 * a + b, rounded once, is a + b.
template <class Operation, class V>
ANYDML_INLINE V combine_on_fma_port(V a, V b) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<Operation, Sum> && std::is_same_v<V, Vector<double>>)
    return (V)_mm256_fmadd_pd((__m256d)a, _mm256_set1_pd(1), (__m256d)b);
  if constexpr (std::is_same_v<Operation, Sum> && std::is_same_v<V, Vector<float>>)
    return (V)_mm256_fmadd_ps((__m256)a, _mm256_set1_ps(1), (__m256)b);
#endif
  return Operation::combine(a, b);
}
#endif

// Floats are tallied wide and rounded once per output; unsigned integers wrap, and give signed ones' bits
// too.
template <class T>
using AccumulatorOf = std::conditional_t<std::is_same_v<T, float>, double,
                                         std::conditional_t<std::is_same_v<T, Half>, float, T>>;

template <class T>
inline constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, Half>;

// Scans that are cut into blocks carry what the blocks before come to beside a block's own tally: sums of
// floats do, whose order matters. Integers' does not, so that their tallies go on from block to block.
// Products of floats are not cut, as those of a block might leave their range where the whole does not.
template <class T, class Operation>
inline constexpr bool kIsOrderSensitive = kIsFloat<T> && std::is_same_v<Operation, Sum>;
template <class T, class Operation>
inline constexpr bool kIsBlockable = !kIsFloat<T> || std::is_same_v<Operation, Sum>;

// A type without arithmetic, of T's size.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

// One element on. x is read before y is written, as the two may be one.
template <class T, class Operation, bool kExclusive>
inline void advance_one(AccumulatorOf<T>& accumulator, const std::byte* x, std::byte* y) {
  const auto next = Operation::combine(accumulator, widen<T, AccumulatorOf<T>>(x));
  narrow<T, AccumulatorOf<T>>(y, kExclusive ? accumulator : next);
  accumulator = next;
}

ANYDML_ISA_END
