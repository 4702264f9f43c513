// Exponentials and logarithms in double precision, for powers and for what is scaled before, to within 2^-31
// of the result: rounded to a single, within 0.51 units in the last place of the exact one. They consist of
// additions, multiplications, divisions and bit operations, and so have the same bits on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"

ANYDML_ISA_BEGIN

using DoubleBits = Lanes<uint64_t, sizeof(Doubles) / sizeof(double)>;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kLog2E = 0x1.71547652b82fep+0;
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
// Added to a number and subtracted it leaves the nearest integer, whose bits are the sum's last.
inline constexpr double kRounds = 0x1.8p52;
// Beyond these 2^t is infinity or 0 in single precision.
inline constexpr double kMostExponent = 1022;

// c0 + c1 * x + c2 * x^2 + ...: in pairs (Estrin's scheme), as one chain would be a long wait.
ANYDML_INLINE Doubles polynomial(Doubles, Doubles, double c0) { return Doubles{} + c0; }
template <class... Rest>
ANYDML_INLINE Doubles polynomial(Doubles x, Doubles x2, double c0, double c1, Rest... rest) {
  const Doubles pair = x * c1 + c0;
  if constexpr (sizeof...(rest) == 0) {
    return pair;
  } else {
    return polynomial(x, x2, rest...) * x2 + pair;
  }
}

// 2^t = 2^k * (1 + part)
struct Exponential {
  DoubleBits k;  // its last bits
  Doubles part;
};

// t = k + f, |f| <= 1/2; part = 2^f - 1 = f * q(f), q interpolated at the nodes of Chebyshev.
ANYDML_INLINE Exponential exponential(Doubles t) {
  t = lane_max<double>(Doubles{} - kMostExponent, lane_min<double>(Doubles{} + kMostExponent, t));
  const Doubles shifted = t + kRounds;
  const Doubles f = t - (shifted - kRounds);
  const Doubles f2 = f * f;
  // Estrin's scheme, as one chain of 12 operations would be a long wait.
  const Doubles q01 = f * 0x1.ebfbe0460cc0bp-3 + 0x1.62e42fefa39efp-1;
  const Doubles q23 = f * 0x1.3b2a1b516ca7fp-7 + 0x1.c6b08d884527ep-5;
  const Doubles q45 = f * 0x1.44401fae30efep-13 + 0x1.5d879e9962406p-10;
  const Doubles q = (f2 * 0x1.00a594fd058bap-16 + q45) * (f2 * f2) + (q23 * f2 + q01);
  return {bits_as<DoubleBits>(shifted) << 52, f * q};
}

// 2^t: k is added to the exponent's bits. A NaN stays one, as its last bits are 0 where it was a single.
ANYDML_INLINE Doubles exp2_of(Doubles t) {
  const Exponential e = exponential(t);
  return bits_as<Doubles>(bits_as<DoubleBits>(e.part + 1.0) + e.k);
}

// 2^t - 1 = 2^k * part + (2^k - 1)
ANYDML_INLINE Doubles exp2m1_of(Doubles t) {
  const Exponential e = exponential(t);
  constexpr uint64_t kOne = uint64_t{1023} << 52;
  const auto scale = bits_as<Doubles>(e.k + kOne);
  return scale * e.part + (scale - 1.0);
}

ANYDML_INLINE Doubles exp_of(Doubles x) { return exp2_of(x * kLog2E); }
ANYDML_INLINE Doubles scaled_expm1_of(Doubles x, double k) { return exp2m1_of(x * kLog2E) * k; }
ANYDML_INLINE Doubles sigmoid_of(Doubles x) { return 1.0 / (exp2_of(x * -kLog2E) + 1.0); }

// x * sigmoid(scale * x). The least sigmoid is 0, which an infinite factor tells from other numbers.
ANYDML_INLINE Doubles swish_of(Doubles x, double scale) {
  const Doubles t = x * (scale * -kLog2E);
  return x / (t >= kMostExponent ? Doubles{} + kInfinity : exp2_of(t) + 1.0);
}

// With t = e^-2x - 1: tanh x = -t / (t + 2)
ANYDML_INLINE Doubles tanh_of(Doubles x) {
  const Doubles t = exp2m1_of(x * (-2 * kLog2E));
  return with_sign_of<double>(t / (t + 2.0), x);
}

// ln(1 + t) for t from 0 to 1: s = t / (2 + t), 2 * atanh(s) = 2 * s * (1 + s^2 * g(s^2))
ANYDML_INLINE Doubles log1p_of(Doubles t) {
  const Doubles s = t / (t + 2.0);
  const Doubles z = s * s;
  const Doubles z2 = z * z;
  const Doubles g01 = z * 0.2000000538497483 + 0.33333333325011805;
  const Doubles g23 = z * 0.11132355604500663 + 0.1428515286094183;
  const Doubles g45 = z * 0.10393808427873376 + 0.08732351232720387;
  const Doubles g = (g45 * z2 + g23) * z2 + g01;
  return (s + s) * (z * g + 1.0);
}

// Of positive numbers: x = m * 2^k, sqrt(1/2) <= m < sqrt(2); ln x = k * ln 2 + 2 * atanh((m - 1) / (m + 1))
ANYDML_INLINE Doubles finite_log_of(Doubles x) {
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
  const DoubleBits bits = bits_as<DoubleBits>(x);
  // From the bits of sqrt(1/2), rounded up in the leading 32, an exponent begins.
  constexpr uint64_t kRoot = uint64_t{0x3fe6a09f} << 32;
  const DoubleBits above = bits - kRoot;
  const auto m = bits_as<Doubles>((above & kMantissa) + kRoot);
  // The exponent's 11 bits below those of 2^52, which is subtracted with their bias.
  constexpr uint64_t kTwo52 = uint64_t{1023 + 52} << 52;
  const DoubleBits exponent = ((above + (uint64_t{1024} << 52)) >> 52) & 0xfff;
  const auto k = bits_as<Doubles>(exponent | kTwo52) - (0x1p52 + 1024);
  const Doubles s = (m - 1.0) / (m + 1.0);
  const Doubles z = s * s;
  const Doubles g01 = z * 0.20000061105905326 + 0.33333333277021004;
  const Doubles g23 = z * 0.11665807235921749 + 0.14275389316595982;
  const Doubles g = g23 * (z * z) + g01;
  return k * kLn2 + (s + s) * (z * g + 1.0);
}
ANYDML_INLINE Doubles log_of(Doubles x) {
  // Neither 0 nor what is not finite has a mantissa, and what is below 0 no logarithm.
  const Doubles none =
      x == 0.0 ? Doubles{} - kInfinity : Doubles{} + std::numeric_limits<double>::quiet_NaN();
  return (x > 0.0) & (x < kInfinity) ? finite_log_of(x) : x == kInfinity ? x : none;
}

// x to the power of an integer from 0 to 15, by squaring: only of these a result may lie halfway between two
// singles, and then it is exact.
ANYDML_INLINE Doubles integer_power(Doubles x, Doubles e) {
  const DoubleBits bits = bits_as<DoubleBits>(e + kRounds);
  Doubles power = Doubles{} + 1.0;
  for (uint64_t bit = 1; bit < 16; bit *= 2) {
    power = (bits & bit) != 0 ? power * x : power;
    x = x * x;
  }
  return power;
}

// |x|^e = e^(e * ln |x|). A number below 0 gives the sign of an odd e, and NaN where e is no integer; any
// number to the power of 0 is 1, and so is 1 to any power.
ANYDML_INLINE Doubles pow_of(Doubles x, Doubles e) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  // Almost always all are ordinary: of positive numbers, with exponents that are no multiples of 1/4.
  const Doubles fourfold = e * 4.0;
  const auto ordinary =
      (x > 0.0) & (x < kInfinity) & (e == e) & (((fourfold + kRounds) - kRounds) != fourfold);
  if (all_of<double>(ordinary)) [[likely]]
    return exp_of(e * finite_log_of(x));
  const Doubles magnitude = magnitude_of<double>(x);
  const Doubles power = exp_of(e * log_of(magnitude));
  const auto one = (e == 0.0) | (x == 1.0) | ((magnitude == 1.0) & (e * 0.0 != e * 0.0) & (e == e));
  const Doubles y = one ? Doubles{} + 1.0 : power;
  // Numbers beyond 2^51 have no halves, nor have those that are not finite.
  const Doubles half = e * 0.5;
  const auto small = (half < 0x1p51) & (half > -0x1p51);
  const auto whole = (((e + kRounds) - kRounds) == e) | (small == 0);
  const auto odd = (((half + kRounds) - kRounds) != half) & whole & small;
  const Doubles signed_y = odd ? with_sign_of<double>(y, x) : y;
  const Doubles approximate =
      (x < 0.0) & (magnitude < kInfinity) & (whole == 0) ? Doubles{} + kNone : signed_y;
  const Doubles y0 = whole & (e >= 0.0) & (e < 16.0) ? integer_power(x, e) : approximate;
  // Likewise powers of a square or of a fourth power whose exponent is a multiple of 1/2 or 1/4.
  const Doubles quarters = e * 4.0;
  const auto is_short = (whole == 0) & (((quarters + kRounds) - kRounds) == quarters) & (e > 0.0) & (e < 8.0);
  if (all_of<double>(is_short == 0)) return y0;
  const Doubles root = square_root<double>(magnitude);
  const Doubles root4 = square_root<double>(root);
  const auto is_square = (((e + e) + kRounds) - kRounds == e + e) & (root * root == x);
  const auto is_fourth = (e < 4.0) & ((root4 * root4) * (root4 * root4) == x);
  const Doubles y1 = is_fourth & is_short ? integer_power(root4, quarters) : y0;
  return is_square & is_short ? integer_power(root, e + e) : y1;
}

// A power whose exponent is a multiple of 1/2 below 16: by squaring, which is exact where pow_of is.
ANYDML_INLINE Doubles short_power(Doubles x, double e) {
  auto rest = static_cast<uint32_t>(e < 0 ? -2 * e : 2 * e);
  Doubles power = Doubles{} + 1.0;
  if (rest % 2 != 0) {
    // Unlike a square root, a power of -0 or of -infinity has no sign.
    x = x == -kInfinity ? -x : x + 0.0;
    power = square_root<double>(x);
  }
  for (rest /= 2; rest != 0; rest /= 2) {
    if (rest % 2 != 0) power = power * x;
    x = x * x;
  }
  return e < 0 ? 1.0 / power : power;
}

inline bool has_short_power(double e) { return e > -16 && e < 16 && std::floor(2 * e) == 2 * e; }

// pow_of with an exponent that is the same for all.
ANYDML_INLINE Doubles constant_pow_of(Doubles x, double e) {
  if (has_short_power(e)) return short_power(x, e);
  if (!(e > -kInfinity && e < kInfinity)) return pow_of(x, Doubles{} + e);
  if (std::floor(e) != e) return exp_of(log_of(x == -kInfinity ? -x : x) * e);
  const Doubles power = exp_of(log_of(magnitude_of<double>(x)) * e);
  return std::floor(e / 2) != e / 2 ? with_sign_of<double>(power, x) : power;
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)
ANYDML_INLINE Doubles softplus_of(Doubles x) {
  const Doubles magnitude = magnitude_of<double>(x);
  const Doubles positive = x < 0.0 ? Doubles{} : x;
  // The least power is no 0, which an infinite factor would tell apart.
  const Doubles power = magnitude < 708.0 ? exp2_of(magnitude * -kLog2E) : Doubles{};
  return positive + log1p_of(power);
}

ANYDML_ISA_END
