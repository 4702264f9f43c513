// Hyperbolic functions, their inverses and the error function in single precision, within 1 unit in the last
// place of the exact result; with the same bits on every machine, as those of singles.h, where the hyperbolic
// tangent is.
//
// The coefficients of all polynomials are those of the least largest error of the result (Remez' algorithm),
// rounded one after the other. The largest errors over all 2^32 singles stand in tests/native/exhaustive.txt.
#pragma once

#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pointwise/single_trigonometry.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// e^a / 4 in two parts, and 4 / e^a: halves of them are too large for a single where their sum is not.
struct QuarterExponential {
  Singles high;
  Singles low;
  Singles inverse;
};
ANYDML_INLINE QuarterExponential quarter_exponential(Singles a) {
  const auto e = single_exponential(lane_min<float>(singles(89.6f), a));
  const Singles scale = e.scale(static_cast<uint32_t>(-2));
  const Singles high = multiply_add(scale, e.part.high, scale);
  const Singles low = multiply_add(scale, e.part.low, multiply_add(scale, e.part.high, scale - high));
  return {high, low, 1.0f / high};
}

// cosh a = (e^a + e^-a) / 2
ANYDML_INLINE Singles cosh_of(Singles x) {
  const QuarterExponential e = quarter_exponential(magnitude_of<float>(x));
  return (e.high + multiply_add(e.inverse, singles(0x1p-4f), e.low)) * 2.0f;
}
// sinh a = (e^a - e^-a) / 2, and below 1 a + a^3 * p(a^2)
ANYDML_INLINE Singles sinh_of(Singles x) {
  const Singles a = magnitude_of<float>(x);
  const QuarterExponential e = quarter_exponential(a);
  const Singles far = (e.high + multiply_add(e.inverse, singles(-0x1p-4f), e.low)) * 2.0f;
  const Singles z = a * a;
  const Singles p = polynomial(z, z * z, 0x1.555556p-3f, 0x1.1110e0p-7f, 0x1.a022bcp-13f, 0x1.756c1ep-19f);
  const Singles near = multiply_add(a * z, p, a);
  return with_sign_of<float>(a < 1.0f ? near : far, x);
}

// ln(high + low) + more * ln 2 of numbers from 1 to 2^127: as log_of, where low / high counts as well.
ANYDML_INLINE Singles log_of_sum(Singles high, Singles low, Singles more) {
  constexpr uint32_t kLeast = 0x3f3504f3;  // sqrt(1/2)
  const SingleBits above = bits_as<SingleBits>(high) - kLeast;
  const SingleBits places = above & 0xff800000u;
  const Singles f = bits_as<Singles>((above & 0x7fffff) + kLeast) - 1.0f;
  const Singles f_low = low * bits_as<Singles>((127u << 23) - places);  // by 2^-k
  const Singles k = bits_as<Singles>((places >> 23) | (150u << 23)) - 0x1p23f + more;
  const SinglePair sum = fast_two_sum(k * 0x1.62e4p-1f, f);
  // By the logarithm's slope, 1 / (1 + f) = 1 - f + 0.8 * f^2, roughly.
  const Singles slope = f * multiply_add(f, singles(0.8f), singles(-1));
  const Singles least = sum.low + multiply_add(slope, f_low, f_low);
  return sum.high + log1p_rest(f, multiply_add(k, singles(0x1.7f7d1cp-20f), least));
}

// From here on x and sqrt(x^2 + 1) are one.
inline constexpr float kBeyondRoot = 0x1p30f;

// asinh a = ln(a + sqrt(a^2 + 1)), and below 1/2 a + a^3 * p(a^2)
ANYDML_INLINE Singles asinh_of(Singles x) {
  const Singles a = magnitude_of<float>(x);
  const Singles z = a * a;
  const Singles p =
      polynomial(z, z * z, -0x1.555536p-3f, 0x1.3324f2p-4f, -0x1.6b95ccp-5f, 0x1.cd6382p-6f, -0x1.b14a3ep-7f);
  const Singles near = multiply_add(a * z, p, a);
  const auto is_beyond = a >= kBeyondRoot;
  const Singles b = is_beyond ? singles(kBeyondRoot) : a;
  const Singles square = multiply_add(b, b, singles(1));
  const SinglePair root = root_of(square, multiply_add(b, b, 1.0f - square));
  const SinglePair sum = fast_two_sum(root.high, b);
  const Singles y = log_of_sum(is_beyond ? a * 0.5f : sum.high, is_beyond ? Singles{} : sum.low + root.low,
                               is_beyond ? singles(2) : Singles{});
  return with_sign_of<float>((a >= 0.5f) & (a < std::numeric_limits<float>::infinity()) ? y
                             : a < 0.5f                                                 ? near
                                                                                        : a,
                             x);
}

// acosh x = ln(x + sqrt(x^2 - 1)), x^2 - 1 = u^2 + 2 * u, u = x - 1
ANYDML_INLINE Singles acosh_of(Singles x) {
  const auto is_beyond = x >= kBeyondRoot;
  const Singles u = (is_beyond ? singles(kBeyondRoot) : x) - 1.0f;
  const Singles square = multiply_add(u, u, u + u);
  const SinglePair root = root_of(square, multiply_add(u, u, (u + u) - square));
  const SinglePair sum = fast_two_sum(x, root.high);
  const Singles y = log_of_sum(is_beyond ? x * 0.5f : sum.high, is_beyond ? Singles{} : sum.low + root.low,
                               is_beyond ? singles(2) : Singles{});
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Singles none = x == kInfinite ? x : singles(std::numeric_limits<float>::quiet_NaN());
  return (x >= 1.0f) & (x < kInfinite) ? y : none;
}

// Below 1 erf a = a * (2 / sqrt pi + a^2 * p(a^2)), beyond 1 - e^q(a), q(a) = ln(erfc a)
ANYDML_INLINE Singles erf_of(Singles x) {
  const Singles a = magnitude_of<float>(x);
  const Singles z = a * a;
  const Singles p1 = z * polynomial(z, z * z, 0x1.ce2d28p-4f, -0x1.b7fab0p-6f, 0x1.540a3cp-8f,
                                    -0x1.a3ec54p-11f, 0x1.48f0bap-14f);
  const SinglePair cube = cube_of(a, z);
  const Singles p0 = singles(-0x1.812740p-2f);
  const Singles low = multiply_add(cube.low, p0, a * -0x1.f7ac92p-25f);
  const Singles rest = multiply_add(cube.high, p0, multiply_add(cube.high, p1, low));
  const Singles near = multiply_add(a, singles(0x1.20dd76p+0f), rest);
  // From 3.93 on it is next to 1.
  const Singles b = lane_min<float>(singles(3.93f), a);
  const Singles b2 = b * b;
  const Singles q0 = singles(0x1.8b3e8ap-13f);
  const Singles q1 = singles(-0x1.212c2cp+0f);
  const Singles first = multiply_add(b, q1, q0);
  const Singles others = polynomial(b, b2, -0x1.4434f6p-1f, -0x1.bc189ap-4f, 0x1.9d0b56p-6f, -0x1.139872p-8f,
                                    0x1.ceea5cp-12f, -0x1.6c07fap-16f);
  const Singles q = multiply_add(others, b2, first);
  const Singles b2_low = multiply_add(b, b, -b2);
  const Singles first_low = multiply_add(others, b2_low, multiply_add(b, q1, q0 - first));
  const Singles q_low = multiply_add(others, b2, first - q) + first_low;
  const auto e = single_exponential(q);
  const Singles scale = e.scale(0);
  const Singles power = multiply_add(scale, e.part.high, scale);
  const Singles far = 1.0f - multiply_add(power, q_low, power);
  return with_sign_of<float>(a < 1.0f ? near : far, x);
}

ANYDML_ISA_END
