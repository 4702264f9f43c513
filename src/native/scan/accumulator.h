// The two operations of scans, the types that they accumulate in, and which of them may be cut into blocks.
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
// a o b on the ports of fused multiply-add, for results that no next operation waits for. Some processors add
// on two ports and multiply-add on two others, which sums would leave idle: 1 * a + b, rounded once, is a +
// b.
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

// The accumulator type. Floats are accumulated in a wider type and rounded once for each output; unsigned
// integers wrap, and give the bits of signed ones too.
template <class T>
using AccumulatorOf = std::conditional_t<std::is_same_v<T, float>, double,
                                         std::conditional_t<std::is_same_v<T, Half>, float, T>>;

template <class T>
inline constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, Half>;

// Whether the order of combining changes the bits, as it does for sums of floats: a scan that is cut into
// blocks then carries the prefix of the blocks before beside the block's own accumulator. Integers simply go
// on from block to block. Products of floats are not cut into blocks of columns, as those of a block might
// leave the range of the accumulator where the whole product does not.
template <class T, class Operation>
inline constexpr bool kIsOrderSensitive = kIsFloat<T> && std::is_same_v<Operation, Sum>;
template <class T, class Operation>
inline constexpr bool kIsBlockable = !kIsFloat<T> || std::is_same_v<Operation, Sum>;

// What leaves the bits of every element as they are: of floats -0 does so where +0 would make +0 of -0.
template <class Accumulator, class Operation>
inline constexpr Accumulator kNeutral =
    std::is_same_v<Operation, Sum> ? static_cast<Accumulator>(-0.0) : static_cast<Accumulator>(1);

// An integer of T's size, for moving elements without arithmetic.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

// Scans one element. x is read before y is written, as the two may be one.
template <class T, class Operation>
inline void advance_one(AccumulatorOf<T>& accumulator, const std::byte* x, std::byte* y, bool exclusive) {
  const auto next = Operation::combine(accumulator, widen<T, AccumulatorOf<T>>(x));
  narrow<T, AccumulatorOf<T>>(y, exclusive ? accumulator : next);
  accumulator = next;
}

ANYDML_ISA_END
