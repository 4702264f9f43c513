// Hyperbolic functions and their inverses in double precision, to within 2^-31 of the result; with the same
// bits on every machine, as those of math.h, where the hyperbolic tangent is.
//
// The coefficients of all polynomials are those of the least largest relative error (Remez' algorithm).
#pragma once

#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"

ANYDML_ISA_BEGIN

// x = (k + f) * ln 2, |f| <= 1/2, where k and f have hyperbolic functions of their own
struct HyperbolicParts {
  Doubles cosh_k;
  Doubles sinh_k;
  Doubles cosh_f;
  Doubles sinh_f;
};

ANYDML_INLINE HyperbolicParts hyperbolic_parts(Doubles x) {
  const Doubles t =
      lane_max<double>(Doubles{} - kMostExponent, lane_min<double>(Doubles{} + kMostExponent, x * kLog2E));
  const Doubles shifted = t + kRounds;
  const Doubles f = t - (shifted - kRounds);
  const Doubles z = f * f;
  const Doubles z2 = z * z;
  const Doubles cosh_f = polynomial(z, z2, 0x1.ffffffffa9a0ep-1, 0x1.ebfbe0a72398fp-3, 0x1.3b29daa632856p-7,
                                    0x1.446b32648a80ep-13);
  const Doubles sinh_f = f * polynomial(z, z2, 0x1.62e42fef9cd70p-1, 0x1.c6b08da6c2953p-5,
                                        0x1.5d8775fb2fef5p-10, 0x1.00c0a2e4e45f9p-16);
  // 2^k / 2 and 2^-k / 2
  constexpr uint64_t kHalf = uint64_t{1022} << 52;
  const DoubleBits k = bits_as<DoubleBits>(shifted) << 52;
  const auto up = bits_as<Doubles>(kHalf + k);
  const auto down = bits_as<Doubles>(kHalf - k);
  return {up + down, up - down, cosh_f, sinh_f};
}

// sinh (a + b) = sinh a * cosh b + cosh a * sinh b, which has the sign of x also where that is 0.
ANYDML_INLINE Doubles sinh_of(Doubles x) {
  const HyperbolicParts parts = hyperbolic_parts(x);
  return parts.cosh_k * parts.sinh_f - (0.0 - parts.sinh_k) * parts.cosh_f;
}
// cosh (a + b) = cosh a * cosh b + sinh a * sinh b
ANYDML_INLINE Doubles cosh_of(Doubles x) {
  const HyperbolicParts parts = hyperbolic_parts(x);
  return parts.cosh_k * parts.cosh_f + parts.sinh_k * parts.sinh_f;
}

// Below this asinh x and atanh x are x, and what formulas round off would count.
inline constexpr double kLinear = 0x1p-17;

// asinh |x| = ln(|x| + sqrt(x^2 + 1))
ANYDML_INLINE Doubles asinh_of(Doubles x) {
  const Doubles a = magnitude_of<double>(x);
  const Doubles y = finite_log_of(a + square_root<double>(a * a + 1.0));
  return (a > kLinear) & (a < kInfinity) ? with_sign_of<double>(y, x) : x;
}

// acosh x = ln(x + sqrt(x^2 - 1))
ANYDML_INLINE Doubles acosh_of(Doubles x) {
  const Doubles y = finite_log_of(x + square_root<double>(x * x - 1.0));
  const Doubles none = x == kInfinity ? x : Doubles{} + std::numeric_limits<double>::quiet_NaN();
  return (x >= 1.0) & (x < kInfinity) ? y : none;
}

// atanh a = ln(n / d) / 2, n = 1 + a, d = 1 - a; with 2^k next to n / d and s = (n - 2^k * d) / (n + 2^k *
// d), which is to 1/5: ln(n / d) / 2 = k * ln 2 / 2 + atanh s
ANYDML_INLINE Doubles atanh_of(Doubles x) {
  const Doubles a = magnitude_of<double>(x);
  const Doubles n = a + 1.0;
  const Doubles d = 1.0 - a;
  // The bits of a positive number are, but for a bias, next to its logarithm: k's begin at the exponent's.
  constexpr int kPlaces = 52;
  const DoubleBits difference = bits_as<DoubleBits>(n) - bits_as<DoubleBits>(d);
  const DoubleBits k = (difference + (uint64_t{1} << (kPlaces - 1))) >> kPlaces;
  const auto scaled = bits_as<Doubles>(bits_as<DoubleBits>(d) + (k << kPlaces));
  const Doubles s = (n - scaled) / (n + scaled);
  const Doubles z = s * s;
  const Doubles rest = s * polynomial(z, z * z, 0x1.000000001773bp+0, 0x1.55555392f5c52p-2,
                                      0x1.999c4c5c2ff89p-3, 0x1.23d98f1b33b6dp-3, 0x1.ef0f816aebfb9p-4);
  constexpr uint64_t kTwo52 = uint64_t{1023 + 52} << 52;
  const Doubles y = (bits_as<Doubles>(k | kTwo52) - 0x1p52) * (kLn2 / 2) + rest;
  const Doubles none = Doubles{} + std::numeric_limits<double>::quiet_NaN();
  const Doubles end = a == 1.0 ? Doubles{} + kInfinity : a > 1.0 ? none : a;
  return with_sign_of<double>((a > kLinear) & (a < 1.0) ? y : end, x);
}

ANYDML_ISA_END
