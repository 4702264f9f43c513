// Pointwise operations on lanes of numbers of type T: the references' formulas, in their order.
//
// Comparisons are such that NaN goes where the specification has it. Integers are computed as unsigned ones,
// which wrap.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/error_function.h"
#include "pointwise/hyperbolic.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/rounding.h"
#include "pointwise/single_atan2.h"
#include "pointwise/single_gelu.h"
#include "pointwise/single_hyperbolic.h"
#include "pointwise/single_log.h"
#include "pointwise/single_pow.h"
#include "pointwise/single_swish.h"
#include "pointwise/single_tanh.h"
#include "pointwise/single_trigonometry.h"
#include "pointwise/singles.h"
#include "pointwise/trigonometry.h"

ANYDML_ISA_BEGIN

// The constants of an instruction, as numbers of T.
template <class T>
struct Constants {
  T values[3];

  explicit Constants(const int64_t* bits) {
    for (int i = 0; i < 3; ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        values[i] = static_cast<T>(bits_as<double>(bits[i]));
      } else {
        values[i] = static_cast<T>(bits[i]);
      }
    }
  }
  T operator[](int i) const { return values[i]; }
};

template <class T, class V>
using UnsignedLanes = Lanes<std::make_unsigned_t<T>, static_cast<int>(sizeof(V) / sizeof(T))>;

template <class T, class V>
ANYDML_INLINE V negative(V x) {
  if constexpr (std::is_floating_point_v<T>)
    return -x;
  else
    return bits_as<V>(UnsignedLanes<T, V>{} - bits_as<UnsignedLanes<T, V>>(x));
}
template <class T, class V>
ANYDML_INLINE V product(V x, V y) {
  if constexpr (std::is_floating_point_v<T>)
    return x * y;
  else
    return bits_as<V>(bits_as<UnsignedLanes<T, V>>(x) * bits_as<UnsignedLanes<T, V>>(y));
}

// An operation's function takes the constants and two operands; where it has one, that comes twice.
#define ANYDML_OPERATION(name)  \
  struct name {                 \
    template <class T, class V> \
    ANYDML_INLINE static V of([[maybe_unused]] const Constants<T>& k, V x, [[maybe_unused]] V y)

// clang-format off

ANYDML_OPERATION(Copy) { return x; } };
ANYDML_OPERATION(Add) { return x + y; } };
ANYDML_OPERATION(Subtract) { return x - y; } };
ANYDML_OPERATION(Multiply) { return x * y; } };
ANYDML_OPERATION(Negate) { return negative<T>(x); } };
ANYDML_OPERATION(Absolute) { return x < T{0} ? negative<T>(x) : x; } };
ANYDML_OPERATION(SquareRoot) { return square_root<T>(x); } };
ANYDML_OPERATION(Reciprocal) { return T{1} / x; } };

// A NaN and a number give the number, 0 and -0 the first of them.
ANYDML_OPERATION(Larger) {
  const V larger = lane_max<T>(y, x);
  if constexpr (std::is_floating_point_v<T>) return x != x ? y : larger;
  return larger;
} };
ANYDML_OPERATION(Smaller) {
  const V smaller = lane_min<T>(y, x);
  if constexpr (std::is_floating_point_v<T>) return x != x ? y : smaller;
  return smaller;
} };

// A division by 0 sets all bits; the lowest integer divided by -1, which processors refuse, is itself.
template <class T, class V>
ANYDML_INLINE V divisor_of(V y) {
  V divisor = y == T{0} ? V{} + T{1} : y;
  if constexpr (std::is_signed_v<T>) divisor = y == T{-1} ? V{} + T{1} : divisor;
  return divisor;
}
// x / y of integers, truncated: of 32 bits by a double's quotient, which is no nearer to an integer than its
// rounding error, unless it is one.
template <class T, class V>
ANYDML_INLINE V quotient_of(V x, V y) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<T, int32_t>)
    return (V)_mm512_maskz_cvttpd_epi32(kAll8Lanes, _mm512_div_pd(
        _mm512_maskz_cvtepi32_pd(kAll8Lanes, (__m256i)x), _mm512_maskz_cvtepi32_pd(kAll8Lanes, (__m256i)y)));
  if constexpr (std::is_same_v<T, uint32_t>)
    return (V)_mm512_maskz_cvttpd_epu32(kAll8Lanes, _mm512_div_pd(
        _mm512_maskz_cvtepu32_pd(kAll8Lanes, (__m256i)x), _mm512_maskz_cvtepu32_pd(kAll8Lanes, (__m256i)y)));
#endif
  return x / y;
}
ANYDML_OPERATION(Divide) {
  if constexpr (std::is_floating_point_v<T>) {
    return x / y;
  } else {
    V quotient = quotient_of<T>(x, divisor_of<T>(y));
    if constexpr (std::is_signed_v<T>) quotient = y == T{-1} ? negative<T>(x) : quotient;
    return y == T{0} ? ~V{} : quotient;
  }
} };
// a - b * trunc(a / b), which is exact for numbers that were singles: a quotient below 2^27 is no nearer to an
// integer than its rounding error, and has 53 bits together with the divisor. Vectors with a larger one, or
// with a divisor that is 0, go lane by lane.
template <class V>
ANYDML_INLINE V float_remainder(V a, V b) {
  const V quotient = a / b;
  const V magnitude = magnitude_of<double>(quotient);
  if (!all_of<double>(magnitude < 0x1p27))
    return for_each_lane<double>(a, b, [](double x, double y) { return std::fmod(x, y); });
  const V whole = rounded_to_zero<double>(quotient);
  return whole == 0.0 ? a : with_sign_of<double>(a - whole * b, a);
}
template <class T, class V>
ANYDML_INLINE V integer_remainder(V x, V y) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(T) == 4) return x - quotient_of<T>(x, y) * y;
#endif
  return x % y;
}
ANYDML_OPERATION(Remainder) {
  if constexpr (std::is_floating_point_v<T>) return float_remainder(x, y);
  else return y == T{0} ? ~V{} : integer_remainder<T>(x, divisor_of<T>(y));
} };
// The remainder with the sign of the divisor.
ANYDML_OPERATION(ModulusFloor) {
  if constexpr (std::is_floating_point_v<T>) {
    const V rest = float_remainder(x, y);
    const auto moves = (rest != T{0}) & ((rest < T{0}) != (y < T{0}));
    return moves ? rest + y : rest == T{0} ? with_sign_of<T>(rest, y) : rest;
  } else {
    const V rest = integer_remainder<T>(x, divisor_of<T>(y));
    if constexpr (std::is_unsigned_v<T>) return y == T{0} ? ~V{} : rest;
    // Which wraps in lanes where it is not taken.
    const V other = bits_as<V>(bits_as<UnsignedLanes<T, V>>(rest) + bits_as<UnsignedLanes<T, V>>(y));
    const V moved = (rest != T{0}) & ((rest ^ y) < T{0}) ? other : rest;
    return y == T{0} ? ~V{} : moved;
  }
} };

// (a - b)^2
ANYDML_OPERATION(DifferenceSquare) { const V difference = x - y; return difference * difference; } };
ANYDML_OPERATION(Sign) {
  const V above = x > T{0} ? V{} + T{1} : V{};
  if constexpr (std::is_unsigned_v<T>) return above;
  else return x < T{0} ? V{} + static_cast<T>(-1) : above;
} };

// To an integer; the sign of zero stays.
ANYDML_OPERATION(Truncate) { return rounded_to_zero<T>(x); } };
ANYDML_OPERATION(RoundEven) { return rounded_to_even<T>(x); } };
ANYDML_OPERATION(RoundAway) {
  const V whole = rounded_to_zero<T>(magnitude_of<T>(x));
  return with_sign_of<T>(magnitude_of<T>(x) - whole >= T{0.5} ? whole + T{1} : whole, x);
} };
ANYDML_OPERATION(Floor) { return rounded_down<T>(x); } };
ANYDML_OPERATION(Ceil) { return rounded_up<T>(x); } };

// Half of the sum, and where that overflows, the sum of the halves, whose last bits count for nothing there.
ANYDML_OPERATION(Mean) {
  const V sum = x + y;
  const V infinity = V{} + std::numeric_limits<T>::infinity();
  const V halves = x * T{0.5} + y * T{0.5};
  return (sum == infinity) | (sum == -infinity) ? halves : sum * T{0.5};
} };
// The bits that both have and half of those that one has, which rounds down; a negative mean is then rounded
// towards 0.
ANYDML_OPERATION(IntegerMean) {
  const V down = (x & y) + ((x ^ y) >> 1);
  if constexpr (std::is_unsigned_v<T>) return down;
  return down < T{0} ? down + ((x ^ y) & T{1}) : down;
} };

// min(k1, max(k0, x)), and max(k0, min(k1, x)), where a NaN is not the one chosen.
ANYDML_OPERATION(Clip) {
  const V low = V{} + k[0];
  const V high = V{} + k[1];
  return Smaller::of<T>(k, high, Larger::of<T>(k, low, x));
} };
ANYDML_OPERATION(ClipFromAbove) {
  const V low = V{} + k[0];
  const V high = V{} + k[1];
  return Larger::of<T>(k, low, Smaller::of<T>(k, high, x));
} };

// The gradient y where it passes.
ANYDML_OPERATION(ClipGrad) { return (x <= k[0]) | (x >= k[1]) ? V{} : y; } };
ANYDML_OPERATION(ReluGrad) { return x > T{0} ? y : V{}; } };

// Truth values: 1 where a number is not 0.
template <class T, class V>
ANYDML_INLINE V truth(V is) { return is & T{1}; }
ANYDML_OPERATION(LogicalAnd) { return truth<T>((V)((x != T{0}) & (y != T{0}))); } };
ANYDML_OPERATION(LogicalOr) { return truth<T>((V)((x | y) != T{0})); } };
ANYDML_OPERATION(LogicalXor) { return truth<T>((V)((x != T{0}) ^ (y != T{0}))); } };
ANYDML_OPERATION(LogicalNot) { return truth<T>((V)(x == T{0})); } };

ANYDML_OPERATION(BitAnd) { return x & y; } };
ANYDML_OPERATION(BitOr) { return x | y; } };
ANYDML_OPERATION(BitXor) { return x ^ y; } };
ANYDML_OPERATION(BitNot) { return ~x; } };
// By the amount modulo the number of bits.
template <class T>
inline constexpr T kAmount = 8 * sizeof(T) - 1;
ANYDML_OPERATION(ShiftLeft) { return x << (y & kAmount<T>); } };
ANYDML_OPERATION(ShiftRight) { return x >> (y & kAmount<T>); } };

ANYDML_OPERATION(Relu) { return lane_max<T>(V{}, x); } };
ANYDML_OPERATION(ParameterizedRelu) { const V below = product<T>(y, x); return x >= T{0} ? x : below; } };
ANYDML_OPERATION(LeakyRelu) { const V below = x * k[0]; return x >= T{0} ? x : below; } };
ANYDML_OPERATION(ThresholdedRelu) { return (x > k[0]) | (x != x) ? x : V{}; } };
ANYDML_OPERATION(Shrink) {
  const V lower = x - k[0];
  const V higher = x + k[0];
  const V inner = x < -k[1] ? higher : x != x ? x : V{};
  return x > k[1] ? lower : inner;
} };

// x - amount, saturated, of an amount within a signed type's highest number: cut off before, as no lanes
// saturate.
template <class T, class V>
ANYDML_INLINE V saturated_difference(V x, T amount) {
  constexpr T kLow = std::numeric_limits<T>::min();
  constexpr T kHigh = std::numeric_limits<T>::max();
  const T least = amount > T{0} ? static_cast<T>(kLow + amount) : kLow;
  const T most = amount < T{0} ? static_cast<T>(kHigh + amount) : kHigh;
  const V lows = V{} + least;
  const V highs = V{} + most;
  const V amounts = V{} + amount;
  const V inside = lane_min<T>(highs, lane_max<T>(lows, x));
  return bits_as<V>(bits_as<UnsignedLanes<T, V>>(inside) - bits_as<UnsignedLanes<T, V>>(amounts));
}
// SHRINK of integers, truncated and saturated, with floor(Threshold), floor(Bias) and ceil(Bias): of x - b at
// least 0 it is x - ceil(b), and below x - floor(b).
ANYDML_OPERATION(IntegerShrink) {
  const V down = saturated_difference<T>(x, k[2]);
  if constexpr (std::is_unsigned_v<T>) {
    return x > k[0] ? down : V{};
  } else {
    const V up = saturated_difference<T>(x, negative<T>(k[1]));
    const V lower = down < T{0} ? saturated_difference<T>(x, k[1]) : down;
    const V higher = up < T{0} ? saturated_difference<T>(x, negative<T>(k[2])) : up;
    const V inner = x < negative<T>(k[0]) ? higher : V{};
    return x > k[0] ? lower : inner;
  }
} };

// Operations in single or double precision; NumbersOf lists them.

ANYDML_OPERATION(Exp) { return exp_of(x); } };
ANYDML_OPERATION(Log) { return log_of(x); } };
ANYDML_OPERATION(Sigmoid) { return sigmoid_of(x); } };
ANYDML_OPERATION(Tanh) { return tanh_of(x); } };
ANYDML_OPERATION(Softplus) { return softplus_of(x); } };
ANYDML_OPERATION(Elu) { const V below = scaled_expm1_of(x, k[0]); return x >= T{0} ? x : below; } };
ANYDML_OPERATION(ScaledElu) {
  const V below = scaled_expm1_of(x, static_cast<double>(k[0]) * static_cast<double>(k[1]));
  return x > T{0} ? x * k[1] : below;
} };

// Operations in double precision, rounded afterwards.

ANYDML_OPERATION(Linear) { return x * k[0] + k[1]; } };
ANYDML_OPERATION(HardSigmoid) {
  V y01;
  if constexpr (std::is_same_v<T, float>) y01 = multiply_add(x, V{} + k[0], V{} + k[1]);
  else y01 = x * k[0] + k[1];
  const V most1 = y01 > T{1} ? V{} + T{1} : y01;
  return most1 < T{0} ? V{} : most1;
} };
// x * factor, and 0 where that is 0 and x infinite
template <class T, class V>
ANYDML_INLINE V product_at_limit(V x, V factor) {
  return (magnitude_of<T>(x) == std::numeric_limits<T>::infinity()) & (factor == T{0}) ? V{} : x * factor;
}
// What HARD_SWISH multiplies by, cut off to 0 to 1, with its rounding error: the two-sum of a product with its own
// error and another number, Dekker's where that is at least 1/2, as then the product is no larger where nothing
// is cut off, and else Knuth's.
ANYDML_INLINE SinglePair hard_sigmoid_pair(const Constants<float>& k, Singles x) {
  const Singles scaled = x * k[0];
  const Singles scaled_low = multiply_add(x, singles(k[0]), -scaled);
  const Singles sum = scaled + k[1];
  const Singles added = sum - k[1];
  Singles low = (scaled - added) + scaled_low;
  if (!(k[1] >= 0.5f)) low = low + (k[1] - (sum - added));
  const Singles cut = lane_max<float>(Singles{}, lane_min<float>(singles(1), sum));
  // The sum of both is not below 0.
  return {cut, cut == sum ? lane_max<float>(-sum, low) : Singles{}};
}
ANYDML_OPERATION(HardSwish) {
  if constexpr (std::is_same_v<T, float>) {
    const SinglePair y01 = hard_sigmoid_pair(k, x);
    const auto is_infinite = magnitude_of<float>(x) == std::numeric_limits<float>::infinity();
    const V both = multiply_add(x, y01.high, (is_infinite ? V{} : x) * y01.low);
    return is_infinite & (y01.high == 0.0f) ? V{} : both;
  } else {
    return product_at_limit<T>(x, HardSigmoid::of<T>(k, x, y));
  }
} };
ANYDML_OPERATION(Softsign) {
  if constexpr (std::is_same_v<T, float>) return softsign_of(x);
  const V magnitude = x < T{0} ? -x : x;
  const V sign = x < T{0} ? V{} - T{1} : V{} + T{1};
  return magnitude == std::numeric_limits<T>::infinity() ? sign : x / (magnitude + T{1});
} };
ANYDML_OPERATION(Pow) { return pow_of(x, y); } };
ANYDML_OPERATION(ConstantPow) {
  if constexpr (std::is_same_v<T, float>) return pow_of(x, V{} + k[0]);
  else return constant_pow_of(x, k[0]);
} };
ANYDML_OPERATION(Celu) { const V below = scaled_expm1_of(x / k[0], k[0]); return x >= T{0} ? x : below; } };
ANYDML_OPERATION(Swish) {
  if constexpr (std::is_same_v<T, float>) return swish_of(x, k[0]);
  const V scaled = x * k[0];
  // The least value of the sigmoid is no 0, which an infinite x would tell apart.
  return product_at_limit<T>(x, scaled < T{-708} ? V{} : sigmoid_of(scaled));
} };
ANYDML_OPERATION(Gelu) {
  if constexpr (std::is_same_v<T, float>) return gelu_of(x);
  else return x == -std::numeric_limits<T>::infinity() ? V{} : gelu_of(x);
} };
ANYDML_OPERATION(Erf) { return erf_of(x); } };
ANYDML_OPERATION(Sin) { return sin_of(x); } };
ANYDML_OPERATION(Cos) { return cos_of(x); } };
ANYDML_OPERATION(Tan) { return tan_of(x); } };
ANYDML_OPERATION(Asin) { return asin_of(x); } };
ANYDML_OPERATION(Acos) { return acos_of(x); } };
ANYDML_OPERATION(Atan) { return atan_of(x); } };
ANYDML_OPERATION(AtanYx) { return atan2_of(x, y); } };
ANYDML_OPERATION(Sinh) { return sinh_of(x); } };
ANYDML_OPERATION(Cosh) { return cosh_of(x); } };
ANYDML_OPERATION(Asinh) { return asinh_of(x); } };
ANYDML_OPERATION(Acosh) { return acosh_of(x); } };
ANYDML_OPERATION(Atanh) { return atanh_of(x); } };
ANYDML_OPERATION(ScaledTanh) { return tanh_of(x * k[1]) * k[0]; } };
ANYDML_OPERATION(ScaledSoftplus) { return softplus_of(x * k[1]) * k[0]; } };

// clang-format on

#undef ANYDML_OPERATION

template <class Operation, class... Others>
inline constexpr bool kIsOneOf = (std::is_same_v<Operation, Others> || ...);

// Functions of Singles.
template <class Operation>
inline constexpr bool kIsOfSingles =
    kIsOneOf<Operation, Exp, Log, Sigmoid, Tanh, Softplus, Elu, ScaledElu, Erf, Sin, Cos, Tan, Asin, Acos,
             Atan, Sinh, Cosh, Asinh, Acosh, Softsign, Swish, Pow, ConstantPow, HardSigmoid, HardSwish, Gelu,
             AtanYx>;

// The vectors that an operation takes: Doubles, and Singles where it has functions of these, or where
// elements are halves, which are converted as many at a time.
template <class Operation, class In, class T, class Out>
using NumbersOf = std::conditional_t<
    std::is_same_v<T, double>, Doubles,
    std::conditional_t<std::is_same_v<T, float> &&
                           (kIsOfSingles<Operation> || std::is_same_v<In, Half> || std::is_same_v<Out, Half>),
                       Singles, Lanes<T, kLanesOf<T>>>>;

ANYDML_ISA_END
