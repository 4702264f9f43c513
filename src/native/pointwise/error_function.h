// The error function in double precision, to within 2^-31 of the result; with the same bits on every machine,
// as those of math.h.
//
// The coefficients of all polynomials are those of the least largest relative error of the result (Remez'
// algorithm).
#pragma once

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"

ANYDML_ISA_BEGIN

// erf |x| = 1 - erfc |x| = -(2^t - 1), t = log2(erfc |x|) = |x| * r(|x|). From 3.93 on it is next to 1.
ANYDML_INLINE Doubles erf_of(Doubles x) {
  const Doubles a = lane_min<double>(Doubles{} + 3.93, magnitude_of<double>(x));
  const Doubles r = polynomial(a, a * a, -0x1.a0be83d82310ep+0, -0x1.d63ed814d4decp-1, -0x1.2fa7a205576fdp-3,
                               0x1.c40e089c9f4afp-6, 0x1.5641fdae2821ap-12, -0x1.496cd1eaf5114p-9,
                               0x1.f8596d310bd2cp-11, -0x1.46d0033a4f7e7p-13, -0x1.9c16f26dbbd7cp-17,
                               0x1.7cb81ed26529fp-17, -0x1.246c7eb02f8dcp-19, 0x1.47bebb8735b63p-23);
  return with_sign_of<double>(0.0 - exp2m1_of(a * r), x);
}

// x * tail(-x), with the tail of the normal distribution: for a from 0 on tail(a) = erfc(a / sqrt 2) / 2 =
// e^(-a^2 / 2) * t * p(t), t = 3.5 / (3.5 + a), and tail(-a) = 1 - tail(a).
ANYDML_INLINE Doubles gelu_of(Doubles x) {
  const Doubles a = magnitude_of<double>(x);
  const Doubles t = 3.5 / (a + 3.5);
  const Doubles p = polynomial(t, t * t, 0x1.d2de7856e8dcep-4, 0x1.d3167aa755fb9p-4, 0x1.aa1359d49ff80p-4,
                               0x1.74bba1467409dp-4, 0x1.27ed21496f028p-5, 0x1.d6e279fd67a54p-4,
                               -0x1.8467e1009b31bp-3, 0x1.48ec169d8c01dp-2, -0x1.8963531bebc2fp-2,
                               0x1.025417649540ap-2, -0x1.5feffd9925e63p-4, 0x1.8d7ada2d72d5ep-7);
  // So far off it is 0 in single precision, and is made so, as an infinite factor tells it from the least.
  const Doubles tail = a < 38.0 ? exp2_of((x * x) * (-kLog2E / 2)) * (t * p) : Doubles{};
  return x * (x < 0.0 ? tail : 1.0 - tail);
}

ANYDML_ISA_END
