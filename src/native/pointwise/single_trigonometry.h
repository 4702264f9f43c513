// Trigonometric functions in single precision, within 1 unit in the last place of the exact result; with the
// same bits on every machine, as those of singles.h.
//
// The coefficients of all polynomials are those of the least largest error of the result (Remez' algorithm),
// rounded one after the other. The largest errors over all 2^32 singles stand in tests/native/exhaustive.txt.
#pragma once

#include <cstdint>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"
#include "pointwise/trigonometry.h"

ANYDML_ISA_BEGIN

// Pi and its half in parts, each the rest's nearest single.
inline constexpr float kHalfPi1 = 0x1.921fb6p+0f;
inline constexpr float kHalfPi2 = -0x1.777a5cp-25f;
inline constexpr float kHalfPi3 = -0x1.ee59dap-50f;

// Angles beyond go by double precision: n has too many bits for parts of pi to be enough.
inline constexpr float kFarSingle = 0x1p14f;

// pi/2 in three parts for the reduction below: 23 and 11 bits, whose products with n are not rounded before
// what they are taken from, and the next 24, which lie so that 2^-63 is left.
inline constexpr float kStep1 = 0x1.921fb4p+0f;
inline constexpr float kStep2 = 0x1.444p-24f;
inline constexpr float kStep3 = 0x1.68c234p-39f;

// x = n * pi/2 + r + low, |r| <= pi/4, by the reduction of Cody and Waite. Where x is 0, r has its sign, and
// low is -0, which changes no zero.
struct ReducedSingles {
  SingleBits n;  // its last bits
  Singles r;
  Singles low;
};

ANYDML_INLINE ReducedSingles reduced(Singles x) {
  const Singles shifted = multiply_add(x, singles(0x1.45f306p-1f), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles most = multiply_add(n, singles(-kStep1), x);  // exact
  const Singles r = multiply_add(n, singles(-kStep2), most);
  const Singles left = -multiply_add(n, singles(kStep2), r - most);  // exact
  return {bits_as<SingleBits>(shifted), r, multiply_add(n, singles(-kStep3), left)};
}

// sin (r + low) = r - (r^3 * p(r^2) - low)
ANYDML_INLINE Singles sine(const ReducedSingles& x, Singles z) {
  const Singles p = polynomial(z, z * z, 0x1.555546p-3f, -0x1.110778p-7f, 0x1.995408p-13f);
  return x.r - multiply_add(x.r * z, p, -x.low);
}
// cos (r + low) = 1 - r^2 / 2 + r^4 * q(r^2) - r * low
ANYDML_INLINE Singles cosine(const ReducedSingles& x, Singles z) {
  const Singles q = polynomial(z, z * z, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e80cp-16f);
  const Singles high = multiply_add(z, singles(-0.5f), singles(1));
  const Singles low = multiply_add(z, singles(-0.5f), 1.0f - high);
  return high + multiply_add(z * z, q, multiply_add(-x.r, x.low, low));
}

// A function's results, taken from double precision where an angle is far from 0.
template <class Function>
ANYDML_INLINE Singles with_far(Singles x, Singles y) {
  if (all_between(x, -kFarSingle, kFarSingle)) [[likely]]
    return y;
  const auto is_far = magnitude_of<float>(x) > kFarSingle;
  return right_or_by_doubles(is_far == 0, y, [](Doubles v) { return Function::of(v); }, x);
}

// sin (x + turns * pi/2)
template <uint32_t kTurns>
ANYDML_INLINE Singles sine_of_turned(Singles x) {
  const ReducedSingles parts = reduced(x);
  const Singles z = parts.r * parts.r;
  const SingleBits n = parts.n + kTurns;
  const Singles y = (n & 1) != 0 ? cosine(parts, z) : sine(parts, z);
  return bits_as<Singles>(bits_as<SingleBits>(y) ^ ((n & 2) << 30));
}
ANYDML_INLINE Singles sin_of(Singles x) {
  struct Far {
    ANYDML_INLINE static Doubles of(Doubles v) { return sin_of(v); }
  };
  return with_far<Far>(x, sine_of_turned<0>(x));
}
ANYDML_INLINE Singles cos_of(Singles x) {
  struct Far {
    ANYDML_INLINE static Doubles of(Doubles v) { return cos_of(v); }
  };
  return with_far<Far>(x, sine_of_turned<1>(x));
}

// r^3, and what rounding leaves of it, which counts where a polynomial has more than a tenth of the result.
ANYDML_INLINE SinglePair cube_of(Singles r, Singles square) {
  const Singles cube = r * square;
  const Singles square_low = multiply_add(r, r, -square);
  return {cube, multiply_add(r, square_low, multiply_add(r, square, -cube))};
}

// tan (r + low) = r + r^3 * p(r^2) + low * (1 + 1.5 * r^2), roughly; odd multiples of pi/2 before give -1 /
// tan r. Signs are such that -0 stays.
ANYDML_INLINE Singles tan_of(Singles x) {
  struct Far {
    ANYDML_INLINE static Doubles of(Doubles v) { return tan_of(v); }
  };
  const ReducedSingles parts = reduced(x);
  const Singles z = parts.r * parts.r;
  const Singles p = polynomial(z, z * z, 0x1.555560p-2f, 0x1.110d9ep-3f, 0x1.bad9bep-5f, 0x1.5cc138p-6f,
                               0x1.62c7d8p-7f, 0x1.9f0966p-14f, 0x1.1e8a2ep-8f);
  const SinglePair cube = cube_of(parts.r, z);
  const Singles low = multiply_add(parts.low * 1.5f, z, parts.low);
  const Singles rest = -multiply_add(-cube.high, p, -multiply_add(cube.low, p, low));
  const SinglePair tangent = fast_two_sum(parts.r, rest);
  const Singles inverse = reciprocal_of(tangent.high, tangent.low);
  return with_far<Far>(x, (parts.n & 1) != 0 ? -inverse : tangent.high);
}

// The square root of a number below 1, whose rounding error is taken from the root's inverse, for which the
// bits of the number, halved and subtracted from those of a constant, are near enough.
ANYDML_INLINE Singles single_root(Singles v) {
#if defined(ANYDML_ISA_AVX512)
  return (Singles)_mm512_maskz_sqrt_ps(kAllLanes, (__m512)v);
#else
  return square_root<float>(v);
#endif
}
ANYDML_INLINE SinglePair root_of(Singles v, Singles v_low) {
  const Singles root = single_root(v);
  const auto inverse = bits_as<Singles>(0x5f3759dfu - (bits_as<SingleBits>(v) >> 1));
  const Singles left = multiply_add(-root, root, v) + v_low;
  return {root, left * (inverse * 0.5f)};
}

// Of asin s = s + rest, 0 <= s <= 1/2, which asin and acos of x are made of: where |x| is large, s =
// sqrt((1 - |x|) / 2), and asin |x| = pi/2 - 2 * asin s.
struct ArcSine {
  Singles s;
  Singles rest;
  decltype(Singles{} > Singles{}) is_large;
};
ANYDML_INLINE ArcSine arc_sine(Singles x) {
  const Singles a = magnitude_of<float>(x);
  const auto is_large = a > 0.5f;
  const Singles z = is_large ? multiply_add(a, singles(-0.5f), singles(0.5f)) : a * a;
  const SinglePair root = root_of(z, Singles{});
  const Singles s = is_large ? root.high : a;
  const Singles p =
      polynomial(z, z * z, 0x1.5555c8p-3f, 0x1.330204p-4f, 0x1.747bb8p-5f, 0x1.8c3e50p-6f, 0x1.595c60p-5f);
  return {s, multiply_add(s * z, p, is_large ? root.low : Singles{}), is_large};
}

// high + low - (u + rest), |high| > |u|, or 0
ANYDML_INLINE Singles minus(Singles high, Singles low, Singles u, Singles rest) {
  const Singles difference = high - u;
  return difference + (((high - difference) - u) + (low - rest));
}

ANYDML_INLINE Singles asin_of(Singles x) {
  const ArcSine arc = arc_sine(x);
  const Singles large = minus(singles(kHalfPi1), singles(kHalfPi2), arc.s + arc.s, arc.rest + arc.rest);
  return with_sign_of<float>(arc.is_large ? large : arc.s + arc.rest, x);
}
// acos x = pi/2 - asin x; where x is large, 2 * asin s, or pi less that.
ANYDML_INLINE Singles acos_of(Singles x) {
  const ArcSine arc = arc_sine(x);
  const auto is_below = x < 0.0f;
  // What is subtracted from pi, pi/2 or 0.
  const SingleBits large_sign = is_below ? SingleBits{} : SingleBits{} + 0x80000000u;
  const SingleBits sign = arc.is_large ? large_sign : bits_as<SingleBits>(x) & 0x80000000u;
  const Singles s = bits_as<Singles>(bits_as<SingleBits>(arc.s) | sign);
  const Singles rest = bits_as<Singles>(bits_as<SingleBits>(arc.rest) ^ sign);
  const Singles behind = is_below ? singles(2 * kHalfPi1) : Singles{};
  const Singles behind_low = is_below ? singles(2 * kHalfPi2) : Singles{};
  return minus(arc.is_large ? behind : singles(kHalfPi1), arc.is_large ? behind_low : singles(kHalfPi2),
               arc.is_large ? s + s : s, arc.is_large ? rest + rest : rest);
}

// atan a = a + a^3 * p(a^2) for a to 1, and beyond pi/2 - atan(1 / a)
ANYDML_INLINE Singles atan_of(Singles x) {
  // An infinity counts as a number so large that 1 / a is next to nothing.
  const Singles a = lane_min<float>(singles(0x1p60f), magnitude_of<float>(x));
  const auto is_large = a > 1.0f;
  const Singles s = is_large ? 1.0f / a : a;
  const Singles z = s * s;
  const Singles p =
      polynomial(z, z * z, -0x1.55553ep-2f, 0x1.9991e4p-3f, -0x1.242086p-3f, 0x1.c08c4ep-4f, -0x1.58091cp-4f,
                 0x1.da2a0cp-5f, -0x1.fd7e04p-6f, 0x1.6424a0p-7f, -0x1.d35952p-10f);
  // The rounding error of 1 / a, by the slope of the arc tangent, 1 / (1 + z), roughly.
  const Singles error = multiply_add(-a, s, singles(1)) * (s * multiply_add(z, singles(-0.5f), singles(1)));
  const SinglePair cube = cube_of(s, z);
  const Singles rest = multiply_add(cube.high, p, multiply_add(cube.low, p, is_large ? error : Singles{}));
  const Singles large = minus(singles(kHalfPi1), singles(kHalfPi2), s, rest);
  return with_sign_of<float>(is_large ? large : s + rest, x);
}

ANYDML_ISA_END
