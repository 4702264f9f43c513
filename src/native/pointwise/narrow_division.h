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

// The loop of an operation on integers of any size, of which Narrow has those of up to 16 bits.
template <class Operation, class Narrow>
Pass of_quotients(DataType type) {
  switch (type) {
    case DataType::kUint8:
      return of_numbers<Narrow, uint8_t>;
    case DataType::kUint16:
      return of_numbers<Narrow, uint16_t>;
    case DataType::kUint32:
      return of_numbers<Operation, uint32_t>;
    case DataType::kUint64:
      return of_numbers<Operation, uint64_t>;
    case DataType::kInt8:
      return of_numbers<Narrow, int8_t>;
    case DataType::kInt16:
      return of_numbers<Narrow, int16_t>;
    case DataType::kInt32:
      return of_numbers<Operation, int32_t>;
    case DataType::kInt64:
      return of_numbers<Operation, int64_t>;
    default:
      return nullptr;
  }
}

#else

using NarrowDivide = Divide;
using NarrowRemainder = Remainder;
using NarrowModulusFloor = ModulusFloor;
template <class Operation, class /*Narrow*/>
Pass of_quotients(DataType type) {
  return of_integers<Operation>(type);
}

#endif

ANYDML_ISA_END
