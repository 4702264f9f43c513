// Functions that are computed of halves otherwise than of singles: by fewer operations, as a larger error
// does not matter, or in single precision where singles need double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/operations.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// What is computed of halves in single precision, and the relative error beyond which none is: of most
// operations what is computed of singles.
template <class Operation>
struct OfHalves {
  static constexpr float kError = 0x1p-23f;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles y) {
    return Operation::template of<float>(k, x, y);
  }
};

// 2^(x * factor), within 2^-21 of it, of a factor in two parts: what a product of a half and the larger one
// lacks is taken away by a multiply-add. Beyond 2^60 it is as large.
struct Factor {
  float high;
  float low;
  float most;  // of |x|

  explicit Factor(double factor)
      : high(static_cast<float>(factor)),
        low(static_cast<float>(factor - high)),
        most(static_cast<float>(60 / std::max(std::abs(factor), 0x1p-60))) {}
};
ANYDML_INLINE Singles exp2_of_product(Singles x, const Factor& factor) {
  const Singles v = lane_max<float>(singles(-factor.most), lane_min<float>(singles(factor.most), x));
  const Singles shifted = multiply_add(v, singles(factor.high), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles f = multiply_add(v, singles(factor.low), multiply_add(v, singles(factor.high), -n));
  const Singles power = polynomial(f, f * f, 1.0f, 0x1.62e42ap-1f, 0x1.ebf9c2p-3f, 0x1.c6b6d8p-5f,
                                   0x1.3ce8aep-7f, 0x1.5bda5cp-10f);
  return bits_as<Singles>(bits_as<SingleBits>(power) + (bits_as<SingleBits>(shifted) << 23));
}

// 1 / x within 2^-23 of it, where a division takes longer than all else by Newton's iteration.
ANYDML_INLINE Singles reciprocal_estimate(Singles x) {
#if defined(ANYDML_ISA_AVX512)
  const auto near = (Singles)_mm512_maskz_rcp14_ps(kAllLanes, (__m512)x);
  return multiply_add(multiply_add(-x, near, singles(1)), near, near);
#else
  return 1.0f / x;
#endif
}

template <>
struct OfHalves<Swish> {
  static constexpr float kError = 0x1.2p-21f;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles /*y*/) {
    const Singles power = exp2_of_product(x, Factor(static_cast<double>(k[0]) * -kLog2E));
    const Singles sigmoid = reciprocal_estimate(power + 1.0f);
    constexpr float kNone = 0x1p-50f;
    if (all_between(sigmoid, kNone, 2)) [[likely]]
      return x * sigmoid;
    // So small that no product is a half, and 0 at infinity.
    return product_at_limit<float>(x, sigmoid <= kNone ? Singles{} : sigmoid);
  }
};

// Of every half right as it is, which the tests compare.
template <>
struct OfHalves<Tanh> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    return tanh_of(x);
  }
};
template <>
struct OfHalves<Asin> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    return asin_of(x);
  }
};

// Of these, too: the last bits of coefficients are those of which no half is wrong, and results that are
// exactly between two halves, where the exact one is not, are moved by their last bit.
struct Tie {
  float of;     // of odd and even functions |x|
  uint32_t by;  // what is added to the result's bits
};
template <size_t kCount>
ANYDML_INLINE Singles untied(Singles y, Singles a, const Tie (&ties)[kCount]) {
  auto bits = bits_as<SingleBits>(y);
  for (const Tie& tie : ties) bits = a == tie.of ? bits + tie.by : bits;
  return bits_as<Singles>(bits);
}

template <>
struct OfHalves<Exp> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1.de4p-8f, ~0u}, {0x1.73cp-6f, ~0u}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    return untied(exp2_of_product(x, Factor(kLog2E)), x, kTies);
  }
};
// All are moved towards 1/2 by their last bit, as for small numbers they are next to ties beyond them.
template <>
struct OfHalves<Sigmoid> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{-0x1.4fcp-3f, ~2u}, {-0x1.fep+0f, ~0u}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles y = 1.0f / (exp2_of_product(x, Factor(-kLog2E)) + 1.0f);
    const auto sign = bits_as<SingleBits>(bits_as<SingleIntegers>(x) >> 31);
    return untied(bits_as<Singles>(bits_as<SingleBits>(y) - (sign | 1)), x, kTies);
  }
};

// As log1p_rest
ANYDML_INLINE Singles log1p_rest_of_half(Singles f, Singles f_low) {
  const Singles f2 = f * f;
  const Singles p =
      polynomial(f, f2, 0x1.55557p-2f, -0x1.000146p-2f, 0x1.99a29cp-3f, -0x1.550cep-3f, 0x1.23370cp-3f,
                 -0x1.02a372p-3f, 0x1.f0728ap-4f, -0x1.a73d9ep-4f, 0x1.8a1f46p-5f);
  return multiply_add(f2 * f, p, multiply_add(f2, singles(-0.5f), f_low));
}
// As log_of, but that halves are no subnormal singles.
template <>
struct OfHalves<Log> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1.5ep-8f, ~0u}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const LogarithmParts parts = logarithm_parts(x);
    const Singles f2 = parts.f * parts.f;
    const Singles q = polynomial(parts.f, f2, -0.5f, 0x1.5555p-2f);
    const Singles y = untied(parts.whole + (parts.f + multiply_add(f2, q, parts.low)), x, kTies);
    if (all_of<float>(is_normal_above_0(x))) [[likely]]
      return y;
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    const Singles none = x == 0.0f ? singles(-kInfinite) : singles(std::numeric_limits<float>::quiet_NaN());
    return (x > 0.0f) & (x < kInfinite) ? y : x == kInfinite ? x : none;
  }
};
// ln(1 + v) for v >= 0
ANYDML_INLINE Singles log1p_of_half(Singles v) {
  const SinglePair sum = fast_two_sum(lane_max<float>(v, singles(1)), lane_min<float>(v, singles(1)));
  constexpr uint32_t kLeast = 0x3f3504f3;  // sqrt(1/2)
  const SingleBits above = bits_as<SingleBits>(sum.high) - kLeast;
  const SingleBits places = above & 0xff800000u;
  const Singles f = bits_as<Singles>((above & 0x7fffff) + kLeast) - 1.0f;
  const Singles f_low = sum.low * bits_as<Singles>((127u << 23) - places);  // by 2^-k
  const Singles k = bits_as<Singles>((places >> 23) | (150u << 23)) - 0x1p23f;
  const Singles rest = log1p_rest_of_half(f, multiply_add(k, singles(0x1.7f7d1cp-20f), f_low));
  return multiply_add(k, singles(0x1.62e4p-1f), f) + rest;
}
// atanh a = ln(1 + q) / 2, q = 2 * a / (1 - a)
template <>
struct OfHalves<Atanh> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles a = magnitude_of<float>(x);
    const Singles y = log1p_of_half((a + a) / (1.0f - a)) * 0.5f;
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    const Singles end = a == 1.0f ? singles(std::numeric_limits<float>::infinity()) : singles(kNone);
    return with_sign_of<float>(a < 1.0f ? y : end, x);
  }
};
// asinh a = ln(1 + v), v = a + sqrt(a^2 + 1) - 1
template <>
struct OfHalves<Asinh> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {
      {0x1.af4p-3f, 1}, {0x1.5acp+1f, ~0u}, {0x1.c7cp+3f, ~0u}, {0x1.028p+8f, ~0u}, {0x1.4f4p+9f, ~0u}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles a = magnitude_of<float>(x);
    const Singles z = a * a;
    const Singles y = untied(log1p_of_half(a + z / (single_root(z + 1.0f) + 1.0f)), a, kTies);
    return with_sign_of<float>(a < std::numeric_limits<float>::infinity() ? y : a, x);
  }
};
// acosh x = ln(1 + v), v = u + sqrt(u^2 + 2 * u), u = x - 1
template <>
struct OfHalves<Acosh> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1.39p+0f, 1}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles u = x - 1.0f;
    const Singles y = untied(log1p_of_half(u + single_root(multiply_add(u, u, u + u))), x, kTies);
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    const Singles none = x == kInfinite ? x : singles(std::numeric_limits<float>::quiet_NaN());
    return (x >= 1.0f) & (x < kInfinite) ? y : none;
  }
};
// As acos_of
template <>
struct OfHalves<Acos> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{-0x1.2cp-18f, 1}, {-0x1.2bcp-4f, ~0u}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles a = magnitude_of<float>(x);
    const auto is_large = a > 0.5f;
    const Singles z = is_large ? multiply_add(a, singles(-0.5f), singles(0.5f)) : a * a;
    const Singles s = is_large ? single_root(z) : a;
    const Singles p =
        polynomial(z, z * z, 0x1.55567ap-3f, 0x1.32fc1cp-4f, 0x1.7451f6p-5f, 0x1.8ca312p-6f, 0x1.5af92cp-5f);
    const Singles arc = multiply_add(s * z, p, s);
    const Singles large = x < 0.0f ? 2 * kHalfPi1 - (arc + arc) : arc + arc;
    return untied(is_large ? large : kHalfPi1 - with_sign_of<float>(arc, x), x, kTies);
  }
};

// As reduced(), for angles below 2^16: a rounding error counts for less.
struct ReducedHalves {
  SingleBits n;  // its last bits
  Singles r;
};
ANYDML_INLINE ReducedHalves reduced_half(Singles x) {
  const Singles shifted = multiply_add(x, singles(0x1.45f306p-1f), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles most = multiply_add(n, singles(-kHalfPi1), x);  // exact
  const Singles less = multiply_add(n, singles(-kHalfPi2), most);
  return {bits_as<SingleBits>(shifted), multiply_add(n, singles(-kHalfPi3), less)};
}
// sin r = r + r^3 * p(r^2), and cos r = 1 + r^2 * q(r^2)
struct SineAndCosine {
  Singles sine;
  Singles cosine;
};
ANYDML_INLINE SineAndCosine sine_and_cosine(Singles r) {
  const Singles z = r * r;
  const Singles p = polynomial(z, z * z, -0x1.555546p-3f, 0x1.110778p-7f, -0x1.995408p-13f);
  const Singles q = polynomial(z, z * z, -0.5f, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e80cp-16f);
  return {multiply_add(r * z, p, r), multiply_add(z, q, singles(1))};
}
// sin (x + turns * pi/2)
template <uint32_t kTurns>
ANYDML_INLINE Singles sine_of_turned_half(Singles x) {
  const ReducedHalves parts = reduced_half(x);
  const SineAndCosine both = sine_and_cosine(parts.r);
  const SingleBits n = parts.n + kTurns;
  const Singles y = (n & 1) != 0 ? both.cosine : both.sine;
  return bits_as<Singles>(bits_as<SingleBits>(y) ^ ((n & 2) << 30));
}
template <>
struct OfHalves<Sin> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1.accp-3f, 1}, {300, ~0u}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles y = untied(sine_of_turned_half<0>(x), magnitude_of<float>(x), kTies);
    return x == 0.0f ? x : y;
  }
};
template <>
struct OfHalves<Cos> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1.dfp-5f, 1}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    return untied(sine_of_turned_half<1>(x), magnitude_of<float>(x), kTies);
  }
};
template <>
struct OfHalves<Tan> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1.25p-5f, 1}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const ReducedHalves parts = reduced_half(x);
    const SineAndCosine both = sine_and_cosine(parts.r);
    const auto is_odd = (parts.n & 1) != 0;
    const Singles y = (is_odd ? both.cosine : both.sine) / (is_odd ? -both.sine : both.cosine);
    return x == 0.0f ? x : untied(y, magnitude_of<float>(x), kTies);
  }
};

// e^a = scale * (1 + part) for a >= 0; beyond 13 it is as large.
struct HalfExponential {
  Singles scale;
  Singles part;
};
ANYDML_INLINE HalfExponential half_exponential(Singles a) {
  const Singles v = lane_min<float>(singles(13), a);
  const Singles shifted = multiply_add(v, singles(0x1.715476p+0f), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles r = multiply_add(n, singles(-kLn2Low), multiply_add(n, singles(-kLn2High), v));
  const Singles q =
      polynomial(r, r * r, 0x1.ffffe8p-2f, 0x1.555558p-3f, 0x1.555562p-5f, 0x1.110eb4p-7f, 0x1.6cf7bcp-10f);
  return {bits_as<Singles>((bits_as<SingleBits>(shifted) + 127) << 23), multiply_add(q, r * r, r)};
}
// With t = e^a - 1: sinh a = (t + t / (t + 1)) / 2
template <>
struct OfHalves<Sinh> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const HalfExponential e = half_exponential(magnitude_of<float>(x));
    const Singles t = multiply_add(e.scale, e.part, e.scale - 1.0f);
    return with_sign_of<float>((t + t / (t + 1.0f)) * 0.5f, x);
  }
};
template <>
struct OfHalves<Cosh> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1p-5f, 1}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles a = magnitude_of<float>(x);
    const HalfExponential e = half_exponential(a);
    const Singles y = multiply_add(e.scale, e.part, e.scale);
    return untied((y + 1.0f / y) * 0.5f, a, kTies);
  }
};
// As atan_of, of s from 0 to 1.
ANYDML_INLINE Singles atan_of_small_half(Singles s) {
  const Singles z = s * s;
  const Singles p =
      polynomial(z, z * z, -0x1.55553ep-2f, 0x1.9991e4p-3f, -0x1.242086p-3f, 0x1.c08c4ep-4f, -0x1.58091cp-4f,
                 0x1.da2a0cp-5f, -0x1.fd7e04p-6f, 0x1.6424a0p-7f, -0x1.d35952p-10f);
  return multiply_add(s * z, p, s);
}
template <>
struct OfHalves<Atan> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1.d14p-6f, 1}, {0x1.ad4p-3f, 1}, {0x1.9b8p+2f, 1}, {0x1.2b8p+3f, ~0u}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles a = lane_min<float>(singles(0x1p60f), magnitude_of<float>(x));
    const auto is_large = a > 1.0f;
    const Singles near = atan_of_small_half(is_large ? 1.0f / a : a);
    return with_sign_of<float>(untied(is_large ? kHalfPi1 - near : near, a, kTies), x);
  }
};
// As atan2_of. An infinity counts as a number so large that halves are next to nothing, and a divisor of 0 as
// one so small.
template <>
struct OfHalves<AtanYx> {
  static constexpr float kError = 0x1p-22f;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles y, Singles x) {
    const Singles height = lane_min<float>(singles(0x1p60f), magnitude_of<float>(y));
    const Singles width = lane_min<float>(singles(0x1p60f), magnitude_of<float>(x));
    const auto is_steep = height > width;
    const Singles a = is_steep ? width : height;
    const Singles b = lane_max<float>(singles(0x1p-60f), is_steep ? height : width);
    const Singles near = atan_of_small_half(a / b);
    const SingleBits behind = bits_as<SingleBits>(x) & 0x80000000u;
    const SingleBits turned = is_steep ? behind ^ 0x80000000u : behind;
    const Singles turn = is_steep ? singles(kHalfPi1) : behind != 0 ? singles(2 * kHalfPi1) : Singles{};
    return with_sign_of<float>(turn + bits_as<Singles>(bits_as<SingleBits>(near) ^ turned), y);
  }
};

template <>
struct OfHalves<Softsign> {
  static constexpr float kError = 0x1p-22f;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles a = lane_min<float>(singles(0x1p60f), magnitude_of<float>(x));
    return with_sign_of<float>(a / (a + 1.0f), x);
  }
};

ANYDML_ISA_END
