// Instructions whose operands and result have different types: comparisons, selection, and conversions of
// integers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "pointwise/bit_count.h"
#include "pointwise/instructions.h"
#include "pointwise/passes.h"
#include "pointwise/precise_pow.h"
#include "simd/bits_as.h"
#include "simd/convert.h"

ANYDML_ISA_BEGIN
namespace {

template <class T>
struct Equals : Plain {
  using Plain::Plain;
  uint8_t operator()(T a, T b) const { return a == b; }
};
template <class T>
struct LessThan : Plain {
  using Plain::Plain;
  uint8_t operator()(T a, T b) const { return a < b; }
};
template <class T>
struct LessThanOrEqual : Plain {
  using Plain::Plain;
  uint8_t operator()(T a, T b) const { return a <= b; }
};
template <class T>
struct GreaterThan : Plain {
  using Plain::Plain;
  uint8_t operator()(T a, T b) const { return b < a; }
};
template <class T>
struct GreaterThanOrEqual : Plain {
  using Plain::Plain;
  uint8_t operator()(T a, T b) const { return b <= a; }
};

// Halves are compared as integers: sign and magnitude, made two's complement. With NaN all is false.
template <template <class> class Comparison>
struct OfHalves : Plain {
  using Plain::Plain;
  static int16_t order(uint16_t bits) {
    const auto sign = static_cast<int16_t>(static_cast<int16_t>(bits) >> 15);
    return static_cast<int16_t>(((bits & 0x7fff) ^ sign) - sign);
  }
  static uint8_t is_number(uint16_t bits) { return (bits & 0x7fff) <= 0x7c00; }
  uint8_t operator()(uint16_t a, uint16_t b) const {
    const uint8_t holds = Comparison<int16_t>(nullptr)(order(a), order(b));
    return holds & is_number(a) & is_number(b);
  }
};

template <template <class> class Comparison>
Pass comparison(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return loop<Comparison<float>, uint8_t, float, float>;
    case DataType::kFloat64:
      return loop<Comparison<double>, uint8_t, double, double>;
    case DataType::kFloat16:
      return loop<OfHalves<Comparison>, uint8_t, uint16_t, uint16_t>;
    case DataType::kUint8:
      return loop<Comparison<uint8_t>, uint8_t, uint8_t, uint8_t>;
    case DataType::kUint16:
      return loop<Comparison<uint16_t>, uint8_t, uint16_t, uint16_t>;
    case DataType::kUint32:
      return loop<Comparison<uint32_t>, uint8_t, uint32_t, uint32_t>;
    case DataType::kUint64:
      return loop<Comparison<uint64_t>, uint8_t, uint64_t, uint64_t>;
    case DataType::kInt8:
      return loop<Comparison<int8_t>, uint8_t, int8_t, int8_t>;
    case DataType::kInt16:
      return loop<Comparison<int16_t>, uint8_t, int16_t, int16_t>;
    case DataType::kInt32:
      return loop<Comparison<int32_t>, uint8_t, int32_t, int32_t>;
    case DataType::kInt64:
      return loop<Comparison<int64_t>, uint8_t, int64_t, int64_t>;
    default:
      return nullptr;
  }
}

// By the bits of floats: of kInfinity infinite ones, of more NaN.
template <class Bits>
inline constexpr Bits kInfinityBits = sizeof(Bits) == 2 ? Bits{0x7c00} : static_cast<Bits>(0x7f800000);
template <class Bits>
inline constexpr Bits kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);

template <class Bits>
struct IsNan : Plain {
  using Plain::Plain;
  uint8_t operator()(Bits x) const { return (x & kMagnitude<Bits>) > kInfinityBits<Bits>; }
};
// The constant is DML_IS_INFINITY_MODE: 0 either sign, 1 positive, 2 negative.
template <class Bits>
struct IsInfinity {
  Bits mask;
  Bits wanted;

  explicit IsInfinity(const int64_t* constants)
      : mask(bits_as<double>(constants[0]) == 0 ? kMagnitude<Bits> : static_cast<Bits>(~Bits{0})),
        wanted(bits_as<double>(constants[0]) == 2 ? static_cast<Bits>(kInfinityBits<Bits> | ~kMagnitude<Bits>)
                                                  : kInfinityBits<Bits>) {}
  uint8_t operator()(Bits x) const { return (x & mask) == wanted; }
};

template <template <class> class Predicate>
Pass of_float_bits(DataType type) {
  if (type == DataType::kFloat16) return loop<Predicate<uint16_t>, uint8_t, uint16_t>;
  return type == DataType::kFloat32 ? loop<Predicate<uint32_t>, uint8_t, uint32_t> : nullptr;
}

template <class Bits>
struct Select : Plain {
  using Plain::Plain;
  // By masks: compilers would load either under a condition, and so hide it from the prefetchers.
  Bits operator()(uint8_t condition, Bits a, Bits b) const {
    const auto mask = static_cast<Bits>(-static_cast<Bits>(condition != 0));
    return static_cast<Bits>((a & mask) | (b & static_cast<Bits>(~mask)));
  }
};

Pass selection(DataType type) {
  switch (size_of(type)) {
    case 1:
      return loop<Select<uint8_t>, uint8_t, uint8_t, uint8_t, uint8_t>;
    case 2:
      return loop<Select<uint16_t>, uint16_t, uint8_t, uint16_t, uint16_t>;
    case 4:
      return loop<Select<uint32_t>, uint32_t, uint8_t, uint32_t, uint32_t>;
    case 8:
      return loop<Select<uint64_t>, uint64_t, uint8_t, uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}

// An element of another type, as CAST has it.
template <class To, class From>
struct Converted : Plain {
  using Plain::Plain;
  To operator()(From x) const { return converted<To>(x); }
};

// Calls body with the C++ type of an integer type; null for others.
template <class Body>
Pass with_integer(DataType type, const Body& body) {
  switch (type) {
    case DataType::kUint8:
      return body(std::type_identity<uint8_t>{});
    case DataType::kUint16:
      return body(std::type_identity<uint16_t>{});
    case DataType::kUint32:
      return body(std::type_identity<uint32_t>{});
    case DataType::kUint64:
      return body(std::type_identity<uint64_t>{});
    case DataType::kInt8:
      return body(std::type_identity<int8_t>{});
    case DataType::kInt16:
      return body(std::type_identity<int16_t>{});
    case DataType::kInt32:
      return body(std::type_identity<int32_t>{});
    case DataType::kInt64:
      return body(std::type_identity<int64_t>{});
    default:
      return nullptr;
  }
}

// Blocks of elements from double precision, as CAST converts them.
template <class T>
void from_doubles(const int64_t* /*constants*/, const std::byte* x, const std::byte* /*y*/,
                  const std::byte* /*z*/, std::byte* out, int64_t count) {
  static_assert(kConvertedAtOnce == kWholeElements);
  convert<T, double>(x, out, (count + kWholeElements - 1) / kWholeElements);
}

Pass conversion(DataType from, DataType to) {
  if (to == DataType::kFloat64) {
    return with_integer(
        from, []<class T>(std::type_identity<T>) -> Pass { return loop<Converted<double, T>, double, T>; });
  }
  if (from == DataType::kFloat64) {
    return with_integer(to, []<class T>(std::type_identity<T>) -> Pass { return from_doubles<T>; });
  }
  if (from == DataType::kInt32 && to == DataType::kFloat32)
    return loop<Converted<float, int32_t>, float, int32_t>;
  if (from == DataType::kUint8 && to == DataType::kUint32)
    return loop<Converted<uint32_t, uint8_t>, uint32_t, uint8_t>;
  return nullptr;
}
// To and from 64 bits, modulo 2^n.
Pass extension(DataType from) {
  return with_integer(
      from, []<class T>(std::type_identity<T>) -> Pass { return loop<Converted<int64_t, T>, int64_t, T>; });
}
Pass wrapping(DataType to) {
  return with_integer(
      to, []<class T>(std::type_identity<T>) -> Pass { return loop<Converted<T, int64_t>, T, int64_t>; });
}

// Exponentiation by squaring, modulo 2^64, of several elements at a time; with an exponent below 0, where
// 1 / x^-e truncated is 0 but for 1 and -1, and all bits are 1 for 0.
void integer_powers(const int64_t* /*constants*/, const std::byte* x, const std::byte* y,
                    const std::byte* /*z*/, std::byte* out, int64_t count) {
  for (int64_t at = 0; at < count * 8; at += kWholeElements * 8) {
    std::array<uint64_t, kWholeElements> squares;
    std::array<uint64_t, kWholeElements> rests;
    std::array<uint64_t, kWholeElements> powers;
    std::memcpy(squares.data(), x + at, sizeof(squares));
    uint64_t all = 0;
    for (size_t i = 0; i < kWholeElements; ++i) {
      const auto e = load<int64_t>(y + at + i * 8);
      rests[i] = e < 0 ? uint64_t{0} - static_cast<uint64_t>(e) : static_cast<uint64_t>(e);
      powers[i] = 1;
      all |= rests[i];
    }
    for (; all != 0; all >>= 1) {
      for (size_t i = 0; i < kWholeElements; ++i) {
        powers[i] *= (rests[i] & 1) != 0 ? squares[i] : 1;
        squares[i] *= squares[i];
        rests[i] >>= 1;
      }
    }
    for (size_t i = 0; i < kWholeElements; ++i) {
      const auto base = load<int64_t>(x + at + i * 8);
      const uint64_t inverse = base == 0 ? ~uint64_t{0} : base == 1 || base == -1 ? powers[i] : 0;
      store(out + at + i * 8, load<int64_t>(y + at + i * 8) < 0 ? inverse : powers[i]);
    }
  }
}

struct PrecisePower : Plain {
  using Plain::Plain;
  double operator()(double x, double e) const { return precise_pow_of(x, e); }
};

template <class T>
struct Zero : Plain {
  using Plain::Plain;
  T operator()(uint8_t /*x*/) const { return T{0}; }
};

bool is_comparison(Opcode opcode) { return opcode >= Opcode::EQUALS && opcode <= Opcode::LESS_THAN_OR_EQUAL; }

Pass find_comparison(Opcode opcode, DataType type) {
  switch (opcode) {
    case Opcode::EQUALS:
      return comparison<Equals>(type);
    case Opcode::GREATER_THAN:
      return comparison<GreaterThan>(type);
    case Opcode::LESS_THAN:
      return comparison<LessThan>(type);
    case Opcode::GREATER_THAN_OR_EQUAL:
      return comparison<GreaterThanOrEqual>(type);
    default:
      return comparison<LessThanOrEqual>(type);
  }
}

}  // namespace

Pass find_mixed(Opcode opcode, const Types& types) {
  const auto [x, y, z] = types.operands;
  const DataType out = types.out;
  if (is_comparison(opcode)) return x == y && out == DataType::kUint8 ? find_comparison(opcode, x) : nullptr;
  switch (opcode) {
    case Opcode::COPY:
      return conversion(x, out);
    case Opcode::EXTEND:
      return out == DataType::kInt64 ? extension(x) : nullptr;
    case Opcode::WRAP:
      return x == DataType::kInt64 ? wrapping(out) : nullptr;
    case Opcode::IS_NAN:
      return out == DataType::kUint8 ? of_float_bits<IsNan>(x) : nullptr;
    case Opcode::IS_INFINITY:
      return out == DataType::kUint8 ? of_float_bits<IsInfinity>(x) : nullptr;
    case Opcode::BIT_COUNT:
      return out == DataType::kUint8 ? bit_count(x) : nullptr;
    case Opcode::IF:
      return x == DataType::kUint8 && y == z && y == out ? selection(out) : nullptr;
    case Opcode::INTEGER_POW:
      return types.only() == DataType::kInt64 ? integer_powers : nullptr;
    case Opcode::PRECISE_POW:
      return types.only() == DataType::kFloat64 ? loop<PrecisePower, double, double, double> : nullptr;
    case Opcode::ZERO:
      return with_integer(out,
                          []<class T>(std::type_identity<T>) -> Pass { return loop<Zero<T>, T, uint8_t>; });
    default:
      return nullptr;
  }
}

ANYDML_ISA_END
