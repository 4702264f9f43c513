// The two kinds of loops that instructions are: by vectors, where all elements have types of one size or are
// numbers of one type, and by a function of single elements, which compilers make vectors of.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/halves.h"
#include "pointwise/instructions.h"
#include "pointwise/operations.h"
#include "simd/half.h"
#include "simd/unaligned.h"

// The iterations of the loop that follows do not depend on each other: an output is in the place of an
// operand or apart from it.
#if defined(__clang__)
#define ANYDML_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ANYDML_INDEPENDENT _Pragma("GCC ivdep")
#else
#define ANYDML_INDEPENDENT
#endif

ANYDML_ISA_BEGIN

// Computes elements of type Out from those of type In, as numbers of T. The loop is unrolled by two vectors,
// whose chains of operations overlap, but on a baseline that is to be small.
template <class Operation, class In, class T, class Out>
void pass(const int64_t* constants, const std::byte* x, const std::byte* y, const std::byte* /*z*/,
          std::byte* out, int64_t count) {
  const Constants<T> k(constants);
  using V = NumbersOf<Operation, In, T, Out>;
  constexpr int kLanes = sizeof(V) / sizeof(T);
  if constexpr (kCompact) {
    for (int64_t i = 0; i < count; i += kLanes) {
      const auto a = load_numbers<In, T, V>(x + i * sizeof(In));
      const auto b = load_numbers<In, T, V>(y + i * sizeof(In));
      store_numbers<Out, T>(out + i * sizeof(Out), Operation::template of<T>(k, a, b));
    }
    return;
  }
  for (int64_t i = 0; i < count; i += 2 * kLanes) {
    const auto a = load_numbers<In, T, V>(x + i * sizeof(In));
    const auto b = load_numbers<In, T, V>(y + i * sizeof(In));
    const auto c = load_numbers<In, T, V>(x + (i + kLanes) * sizeof(In));
    const auto d = load_numbers<In, T, V>(y + (i + kLanes) * sizeof(In));
    const auto first = Operation::template of<T>(k, a, b);
    const auto second = Operation::template of<T>(k, c, d);
    store_numbers<Out, T>(out + i * sizeof(Out), first);
    store_numbers<Out, T>(out + (i + kLanes) * sizeof(Out), second);
  }
}

// Calls Function::of(constants, elements...) for single elements.
template <class Function, class Out, class X, class Y = void, class Z = void>
void loop(const int64_t* constants, const std::byte* x, const std::byte* y, const std::byte* z,
          std::byte* out, int64_t count) {
  const Function function(constants);
  for (int64_t start = 0; start < count; start += kWholeElements) {
    ANYDML_INDEPENDENT
    for (int64_t j = 0; j < kWholeElements; ++j) {
      const int64_t i = start + j;
      const auto element = [i]<class T>(std::type_identity<T>, const std::byte* from) {
        return load<T>(from + i * static_cast<int64_t>(sizeof(T)));
      };
      const X first = element(std::type_identity<X>{}, x);
      Out result;
      if constexpr (std::is_void_v<Y>) {
        result = function(first);
      } else if constexpr (std::is_void_v<Z>) {
        result = function(first, element(std::type_identity<Y>{}, y));
      } else {
        result = function(first, element(std::type_identity<Y>{}, y), element(std::type_identity<Z>{}, z));
      }
      store(out + i * static_cast<int64_t>(sizeof(Out)), result);
    }
  }
}

// Likewise function(element), which has more than constants.
template <class X, class Out, class Function>
ANYDML_INLINE void for_each_element(const std::byte* x, std::byte* out, int64_t count,
                                    const Function& function) {
  for (int64_t start = 0; start < count; start += kWholeElements) {
    ANYDML_INDEPENDENT
    for (int64_t j = 0; j < kWholeElements; ++j) {
      const int64_t i = start + j;
      store(out + i * static_cast<int64_t>(sizeof(Out)),
            function(load<X>(x + i * static_cast<int64_t>(sizeof(X)))));
    }
  }
}

// What most functions of elements have in common: no constants.
struct Plain {
  explicit Plain(const int64_t* /*constants*/) {}
};

// The loops of an operation for a type.

template <class Operation, class T>
constexpr Pass of_numbers = pass<Operation, T, T, T>;

template <class Operation>
Pass of_bits(DataType type) {
  switch (size_of(type)) {
    case 1:
      return of_numbers<Operation, uint8_t>;
    case 2:
      return of_numbers<Operation, uint16_t>;
    case 4:
      return of_numbers<Operation, uint32_t>;
    case 8:
      return of_numbers<Operation, uint64_t>;
    default:
      return nullptr;
  }
}

// Operations that single precision computes as exactly as the specification's wider numbers, halves being
// rounded from singles; and the hyperbolic tangent, within one unit in the last place.
template <class Operation>
Pass of_singles(DataType type) {
  if (type == DataType::kFloat16) return pass<Operation, Half, float, Half>;
  return type == DataType::kFloat32 ? of_numbers<Operation, float> : nullptr;
}
// Likewise with doubles, for programs that round later.
template <class Operation>
Pass of_floats(DataType type) {
  return type == DataType::kFloat64 ? of_numbers<Operation, double> : of_singles<Operation>(type);
}

// Operations that need double precision.
template <class Operation>
Pass of_wide(DataType type) {
  if (type == DataType::kFloat16) return pass<Operation, Half, double, Half>;
  if (type == DataType::kFloat32) return pass<Operation, float, double, float>;
  return type == DataType::kFloat64 ? of_numbers<Operation, double> : nullptr;
}

// Operations on elements and constants, which have more bits than halves; and exponentials, of which some
// halves would be rounded from a single's error.
template <class Operation>
Pass of_constants(DataType type) {
  return type == DataType::kFloat16 ? of_wide<Operation>(type) : of_floats<Operation>(type);
}

// Functions that halves have in single precision, and singles in double precision. Where a fused multiply-add
// takes long, double precision gives the same halves sooner.
template <class Operation>
Pass of_functions_of_halves(DataType type) {
  return type == DataType::kFloat16 && !kCompact ? pass_of_halves<Operation> : of_wide<Operation>(type);
}
// And those that singles have in single precision, too.
template <class Operation>
Pass of_functions(DataType type) {
  return type == DataType::kFloat16 ? of_functions_of_halves<Operation>(type) : of_floats<Operation>(type);
}

// In two parts of single precision, or, with constants that are large or small, in double precision.
inline void hard_swish_by_constants(const int64_t* constants, const std::byte* x, const std::byte* y,
                                    const std::byte* z, std::byte* out, int64_t count) {
  const auto is_ordinary = [](int64_t bits) {
    const double magnitude = std::abs(bits_as<double>(bits));
    return magnitude >= 0x1p-16 && magnitude <= 0x1p16;
  };
  return is_ordinary(constants[0]) && is_ordinary(constants[1])
             ? pass_of_halves<HardSwish>(constants, x, y, z, out, count)
             : pass<HardSwishToOdd, Half, double, Half>(constants, x, y, z, out, count);
}
inline Pass hard_swish(DataType type) {
  return type == DataType::kFloat16 ? hard_swish_by_constants : of_floats<HardSwish>(type);
}
// Those that halves have in single precision with AVX-512's directed rounding and estimates alone.
#if defined(ANYDML_ISA_AVX512)
inline Pass reciprocal(DataType type) { return of_functions<Reciprocal>(type); }
inline Pass linear(DataType type) {
  return type == DataType::kFloat16 ? pass_of_halves<Linear> : of_wide<Linear>(type);
}
inline Pass hard_sigmoid(DataType type) { return of_functions<HardSigmoid>(type); }
inline Pass difference_square(DataType type) {
  return type == DataType::kFloat16 ? difference_square_of_halves : of_wide<DifferenceSquare>(type);
}
#else
inline Pass difference_square(DataType type) { return of_wide<DifferenceSquare>(type); }
inline Pass reciprocal(DataType type) { return of_floats<Reciprocal>(type); }
inline Pass linear(DataType type) {
  return type == DataType::kFloat16 ? pass<LinearToOdd, Half, double, Half> : of_wide<Linear>(type);
}
inline Pass hard_sigmoid(DataType type) {
  return type == DataType::kFloat16 ? pass<HardSigmoidToOdd, Half, double, Half>
                                    : of_floats<HardSigmoid>(type);
}
#endif

template <class Operation>
Pass of_signed(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return of_numbers<Operation, int8_t>;
    case DataType::kInt16:
      return of_numbers<Operation, int16_t>;
    case DataType::kInt32:
      return of_numbers<Operation, int32_t>;
    case DataType::kInt64:
      return of_numbers<Operation, int64_t>;
    default:
      return nullptr;
  }
}

template <class Operation>
Pass of_integers(DataType type) {
  switch (type) {
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32:
    case DataType::kUint64:
      return of_bits<Operation>(type);
    default:
      return of_signed<Operation>(type);
  }
}

// Integer operations whose bits do not depend on signedness.
template <class Operation>
Pass of_any(DataType type) {
  return is_float(type) ? of_floats<Operation>(type) : of_bits<Operation>(type);
}

ANYDML_ISA_END
