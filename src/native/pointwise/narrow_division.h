// Quotients and remainders of integers of 8 and of 16 bits, for which there are no instructions on vectors:
// by the quotient of singles, which is no nearer to an integer than its rounding error, unless it is one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/operations.h"
#include "pointwise/passes.h"
#include "pointwise/singles.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// x / y, truncated, of which the last bits stay where they are more than T has; x where y is 0.
template <class T, class V>
ANYDML_INLINE V narrow_quotient(V x, V y) {
  constexpr int kLanes = sizeof(Singles) / sizeof(float);
  // Compilers convert bytes by way of these.
  using Words = Vector<std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>, kLanes>;
  using Parts = std::array<Vector<T, kLanes>, sizeof(V) / sizeof(T) / kLanes>;
  const auto to_single = [](auto part) {
    const auto integers = __builtin_convertvector(__builtin_convertvector(part, Words), SingleIntegers);
    return __builtin_convertvector(integers, Singles);
  };
  auto parts = bits_as<Parts>(x);
  const auto divisors = bits_as<Parts>(y == T{0} ? V{} + T{1} : y);
  for (size_t i = 0; i < parts.size(); ++i) {
    const Singles quotient = to_single(parts[i]) / to_single(divisors[i]);
    const auto words = __builtin_convertvector(__builtin_convertvector(quotient, SingleIntegers), Words);
    parts[i] = __builtin_convertvector(words, Vector<T, kLanes>);
  }
  return bits_as<V>(parts);
}
template <class T, class V>
ANYDML_INLINE V narrow_rest(V x, V y) {
  const auto taken = product<T>(narrow_quotient<T>(x, y), y);
  return bits_as<V>(bits_as<UnsignedLanes<T, V>>(x) - bits_as<UnsignedLanes<T, V>>(taken));
}

// As Divide, Remainder and ModulusFloor: a division by 0 sets all bits.
struct NarrowDivide {
  template <class T, class V>
  ANYDML_INLINE static V of(const Constants<T>& /*k*/, V x, V y) {
    return y == T{0} ? ~V{} : narrow_quotient<T>(x, y);
  }
};
struct NarrowRemainder {
  template <class T, class V>
  ANYDML_INLINE static V of(const Constants<T>& /*k*/, V x, V y) {
    return y == T{0} ? ~V{} : narrow_rest<T>(x, y);
  }
};
struct NarrowModulusFloor {
  template <class T, class V>
  ANYDML_INLINE static V of(const Constants<T>& /*k*/, V x, V y) {
    const V rest = narrow_rest<T>(x, y);
    const V other = bits_as<V>(bits_as<UnsignedLanes<T, V>>(rest) + bits_as<UnsignedLanes<T, V>>(y));
    const V moved = (rest != T{0}) & ((rest ^ y) < T{0}) ? other : rest;
    return y == T{0} ? ~V{} : moved;
  }
};

// An operation on integers of any size, of which Narrow has those of up to 16 bits.
template <class Operation, class Narrow>
struct BySize {
  template <class T, class V>
  ANYDML_INLINE static V of(const Constants<T>& k, V x, V y) {
    if constexpr (sizeof(T) <= 2) {
      return Narrow::template of<T>(k, x, y);
    } else {
      return Operation::template of<T>(k, x, y);
    }
  }
};
using DivideBySize = BySize<Divide, NarrowDivide>;
using RemainderBySize = BySize<Remainder, NarrowRemainder>;
using ModulusFloorBySize = BySize<ModulusFloor, NarrowModulusFloor>;

#else

using DivideBySize = Divide;
using RemainderBySize = Remainder;
using ModulusFloorBySize = ModulusFloor;

#endif

ANYDML_ISA_END
