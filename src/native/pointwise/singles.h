// Exponentials and logarithms in single precision, within 1 unit in the last place of the exact result.
//
// They consist of fused multiply-adds, additions, divisions and bit operations, and so have the same bits on
// every machine. The largest errors over all 2^32 singles, in units in the last place: exp_of 0.967,
// sigmoid_of 0.881, swish_of 0.841, tanh_of 0.872, scaled_expm1_of 0.864 (times 1.758 0.898), softplus_of
// 0.950, log_of 0.848.
#pragma once

#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"

ANYDML_ISA_BEGIN

inline constexpr float kLn2High = 0x1.62e430p-1f;
inline constexpr float kLn2Low = -0x1.05c610p-29f;

using SingleBits = Lanes<uint32_t, sizeof(Singles) / sizeof(float)>;

// A number and its rounding error.
struct SinglePair {
  Singles high;
  Singles low;
};

ANYDML_INLINE Singles singles(float value) { return Singles{} + value; }

// c0 + c1 * x + c2 * x^2 + ...: in pairs (Estrin's scheme), as one chain would be a long wait.
ANYDML_INLINE Singles polynomial(Singles, Singles, float c0) { return singles(c0); }
template <class... Rest>
ANYDML_INLINE Singles polynomial(Singles x, Singles x2, float c0, float c1, Rest... rest) {
  const Singles pair = multiply_add(x, singles(c1), singles(c0));
  if constexpr (sizeof...(rest) == 0) {
    return pair;
  } else {
    return multiply_add(polynomial(x, x2, rest...), x2, pair);
  }
}

// Dekker's fast two-sum of a larger number, or 0, and a smaller one.
ANYDML_INLINE SinglePair fast_two_sum(Singles larger, Singles smaller) {
  const Singles sum = larger + smaller;
  return {sum, smaller - (sum - larger)};
}

// e^x = 2^n * (1 + part)
struct SingleExponential {
  SingleBits n;  // its last 9 bits
  SinglePair part;

  // 2^(n + more)
  ANYDML_INLINE Singles scale(uint32_t more) const { return bits_as<Singles>((n + (127 + more)) << 23); }
};

// x = n * ln 2 + r; part = e^r - 1 = r + r^2 * q(r). It is from -1/4 to 1/2, rather than from 1/sqrt(2) - 1
// to sqrt(2) - 1, as its rounding counts for more where e^r is below 1.
ANYDML_INLINE SingleExponential single_exponential(Singles x) {
  // Added to a number and taken away it leaves the nearest integer, whose bits are the sum's last.
  constexpr float kShift = 0x1.8p23f;
  const Singles shifted = multiply_add(x - 0.059f, singles(0x1.715476p+0f), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles most = multiply_add(n, singles(-kLn2High), x);  // exact
  const Singles r = multiply_add(n, singles(-kLn2Low), most);
  const Singles r_low = multiply_add(n, singles(-kLn2Low), most - r);
  const Singles r2 = r * r;
  const Singles q = polynomial(r, r2, 0x1p-1f, 0x1.555558p-3f, 0x1.555516p-5f, 0x1.110888p-7f,
                               0x1.6cf120p-10f, 0x1.b4033ep-13f);
  const Singles part = multiply_add(q, r2, r);
  return {bits_as<SingleBits>(shifted), {part, multiply_add(q, r2, r - part) + r_low}};
}

// 2^n in two factors, as their product may be too large, or not large enough, for a single.
ANYDML_INLINE Singles exp_of(Singles x) {
  const auto e = single_exponential(lane_max<float>(singles(-105), lane_min<float>(singles(90), x)));
  const Singles last = x < 0.0f ? singles(0x1p-64f) : singles(0x1p+64f);
  const Singles first = bits_as<Singles>((e.n << 23) + (254u << 23) - bits_as<SingleBits>(last));
  return multiply_add(first, e.part.high, first) * last;
}

// k * (e^x - 1) for x <= 0: e^x - 1 = 2^n * part + (2^n - 1)
ANYDML_INLINE Singles scaled_expm1_of(Singles x, double k) {
  const auto e = single_exponential(lane_max<float>(singles(-20), lane_min<float>(Singles{}, x)));
  const Singles scale = e.scale(0);
  const Singles less = scale - 1.0f;
  const Singles high = multiply_add(scale, e.part.high, less);
  const Singles low = multiply_add(scale, e.part.low, multiply_add(scale, e.part.high, less - high));
  const auto k_high = static_cast<float>(k);
  const auto k_low = static_cast<float>(k - k_high);
  return multiply_add(high, singles(k_high), multiply_add(high, singles(k_low), low * k_high));
}

// 1 / (high + low), with a step of Newton's method
ANYDML_INLINE Singles reciprocal_of(Singles high, Singles low) {
  const Singles rough = 1.0f / high;
  const Singles left = multiply_add(-low, rough, multiply_add(-high, rough, singles(1)));
  return multiply_add(rough, left, rough);
}

// With y = e^|x|: 1 / (1 + y), or what that is less than 1. Both 1 and y are times 2^-64, which y at its
// largest needs.
ANYDML_INLINE Singles sigmoid_of(Singles x) {
  const auto e = single_exponential(lane_min<float>(singles(105), magnitude_of<float>(x)));
  const Singles scale = e.scale(static_cast<uint32_t>(-64));
  const Singles y = multiply_add(scale, e.part.high, scale);
  const Singles y_low = multiply_add(scale, e.part.high, scale - y);
  const Singles sum = y + 0x1p-64f;
  const Singles low = (0x1p-64f - (sum - y)) + y_low;
  const Singles w = reciprocal_of(sum, low) * 0x1p-64f;
  return x < 0.0f ? w : 1.0f - w;
}

// x / (1 + y), y = e^-t of t = x * k in two parts, for k from 2^-16 to 2^16: the quotient with a step of
// Newton's method, so that it is rounded about once. Both 1 and y are times 2^-64 where y is large.
ANYDML_INLINE Singles swish_of(Singles x, float k) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  // Beyond, no result is a number but 0.
  constexpr float kLeast = -124;
  const Singles t = x * k;
  const auto e = single_exponential(lane_max<float>(singles(-60), lane_min<float>(singles(-kLeast), -t)));
  Singles part_low = e.part.low;
  if (k != 1.0f) {
    // Of a t that overflows, which is not that of any number, it is infinite.
    const Singles t_low =
        lane_max<float>(singles(-1), lane_min<float>(singles(1), multiply_add(x, singles(k), -t)));
    part_low = multiply_add(-t_low, e.part.high + 1.0f, part_low);
  }
  const Singles one = t < -32.0f ? singles(0x1p-64f) : singles(1);
  const auto scale = bits_as<Singles>((e.n << 23) + bits_as<SingleBits>(one));
  const Singles y = multiply_add(scale, e.part.high, scale);
  const Singles y_low = multiply_add(scale, part_low, multiply_add(scale, e.part.high, scale - y));
  const SinglePair sum = fast_two_sum(lane_max<float>(one, y), lane_min<float>(one, y));
  const Singles rough = 1.0f / sum.high;
  const Singles quotient = x * rough;
  const Singles left = multiply_add(-quotient, sum.low + y_low, multiply_add(-quotient, sum.high, x));
  const Singles rest = multiply_add(left, rough, quotient) * one;
  // Which has the sign of 0 as well.
  const auto finite = bits_as<Singles>(bits_as<SingleBits>(rest) | (bits_as<SingleBits>(x) & 0x80000000u));
  const Singles all = t < kLeast ? x * 0.0f : finite;
  return magnitude_of<float>(x) == kInfinite ? (t < 0.0f ? Singles{} : x) : all;
}

// a / (1 + a), likewise rounded about once; beyond 2^100 it is 1.
ANYDML_INLINE Singles softsign_of(Singles x) {
  const Singles a = lane_min<float>(singles(0x1p100f), magnitude_of<float>(x));
  const SinglePair sum = fast_two_sum(lane_max<float>(a, singles(1)), lane_min<float>(a, singles(1)));
  const Singles rough = 1.0f / sum.high;
  const Singles quotient = a * rough;
  const Singles left = multiply_add(-quotient, sum.low, multiply_add(-quotient, sum.high, a));
  return with_sign_of<float>(multiply_add(left, rough, quotient), x);
}

// Near 0 tanh a = a + a^3 * g(a^2), elsewhere 1 - 2 / (1 + e^2a)
ANYDML_INLINE Singles tanh_of(Singles x) {
  const Singles a = magnitude_of<float>(x);
  const auto e = single_exponential(lane_min<float>(singles(20), a + a));
  const Singles scale = e.scale(0);
  const Singles one = scale + 1.0f;
  const Singles sum = multiply_add(scale, e.part.high, one);
  const Singles low = multiply_add(scale, e.part.high, one - sum);
  const Singles far = multiply_add(reciprocal_of(sum, low), singles(-2), singles(1));
  const Singles a2 = a * a;
  const Singles g = polynomial(a2, a2 * a2, -0x1.555554p-2f, 0x1.110ee0p-3f, -0x1.b955dcp-5f, 0x1.59e1c8p-6f,
                               -0x1.9ada60p-8f);
  const Singles near = multiply_add(a2 * a, g, a);
  const Singles y = a < 0.6f ? near : far;
  return bits_as<Singles>(bits_as<SingleBits>(y) | (bits_as<SingleBits>(x) & 0x80000000u));
}

// ln(1 + f) - f = -f^2 / 2 + f^3 * p(f), for f from sqrt(1/2) - 1 to 1/2; with what is left of f.
ANYDML_INLINE Singles log1p_rest(Singles f, Singles f_low) {
  const Singles f2 = f * f;
  const Singles p =
      polynomial(f, f2, 0x1.55554cp-2f, -0x1.0000b6p-2f, 0x1.99a2f6p-3f, -0x1.55130ep-3f, 0x1.232528p-3f,
                 -0x1.02cd9ep-3f, 0x1.f0d48cp-4f, -0x1.ac4decp-4f, 0x1.89b9bap-5f);
  return multiply_add(f2 * f, p, multiply_add(f2, singles(-0.5f), f_low));
}

// max(x, 0) + ln(1 + y), y = e^-|x|; from y = 1/2 on ln(1 + y) = ln 2 + ln(1 + (y - 1) / 2).
ANYDML_INLINE Singles softplus_of(Singles x) {
  const auto e = single_exponential(lane_max<float>(singles(-105), -magnitude_of<float>(x)));
  // Times 2^64, as what is left of rounding would be too small.
  const Singles scale = e.scale(64);
  const Singles scaled = multiply_add(scale, e.part.high, scale);
  const Singles y = scaled * 0x1p-64f;
  const Singles y_low =
      multiply_add(scale, e.part.low, multiply_add(scale, e.part.high, scale - scaled)) * 0x1p-64f;
  const auto is_large = y >= 0.5f;
  const Singles f = is_large ? multiply_add(y, singles(0.5f), singles(-0.5f)) : y;
  // The rounding error of y is scaled by the logarithm's slope, roughly.
  const Singles rest = log1p_rest(f, multiply_add(y_low * y, singles(-0.5f), y_low));
  const SinglePair whole = fast_two_sum(is_large ? singles(kLn2High) : Singles{}, x < 0.0f ? Singles{} : x);
  const SinglePair sum = fast_two_sum(whole.high, f);
  const Singles low = is_large ? whole.low + kLn2Low : whole.low;
  // Infinity has no rounding error.
  return x > 32.0f ? x : sum.high + (low + (sum.low + rest));
}

// x = m * 2^k, sqrt(1/2) <= m < sqrt(2); ln x = k * ln 2 + ln(1 + f), f = m - 1
ANYDML_INLINE Singles log_of(Singles x) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const auto is_small = x < 0x1p-126f;
  constexpr uint32_t kLeast = 0x3f3504f3;  // sqrt(1/2)
  const SingleBits above = bits_as<SingleBits>(is_small ? x * 0x1p23f : x) - kLeast;
  const Singles f = bits_as<Singles>((above & 0x7fffff) + kLeast) - 1.0f;
  // The exponent's bits below those of 2^23, which is subtracted with their bias.
  const SingleBits exponent = ((above + (128u << 23)) >> 23) | (150u << 23);
  const Singles k =
      bits_as<Singles>(exponent) - (is_small ? singles(0x1p23f + 128 + 23) : singles(0x1p23f + 128));
  const SinglePair sum = fast_two_sum(k * 0x1.62e4p-1f, f);  // of so few bits that the product is exact
  const Singles y = sum.high + log1p_rest(f, multiply_add(k, singles(0x1.7f7d1cp-20f), sum.low));
  // Neither 0 nor what is not finite has a mantissa, and what is below 0 no logarithm.
  const Singles none = x == 0.0f ? singles(-kInfinite) : singles(std::numeric_limits<float>::quiet_NaN());
  return (x > 0.0f) & (x < kInfinite) ? y : x == kInfinite ? x : none;
}

ANYDML_ISA_END
