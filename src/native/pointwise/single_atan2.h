// The angle of a point in single precision, within 1 unit in the last place of the exact result; with the
// same bits on every machine, as the functions of singles.h.
#pragma once

#include <cstdint>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pointwise/single_trigonometry.h"
#include "pointwise/singles.h"
#include "pointwise/trigonometry.h"

ANYDML_ISA_BEGIN

// From 0 to 1 a polynomial next to each multiple of 1 / 15.4: atan q = t0 + d + d * (t1 + d * (t2 + ...)),
// d = q - c. The centres c are those next to these multiples of which atan c is a single almost exactly, so
// that t0 has no rounding error.
struct AngleTables {
  static constexpr float kPerUnit = 15.4f;
  LookupTable c = {0,
                   0x1.0aa9f8p-4f,
                   0x1.0b2674p-3f,
                   0x1.8dd8d6p-3f,
                   0x1.0aaf9p-2f,
                   0x1.4d0b08p-2f,
                   0x1.8f5bccp-2f,
                   0x1.d2a806p-2f,
                   0x1.0abd96p-1f,
                   0x1.2ac7f2p-1f,
                   0x1.4cbfap-1f,
                   0x1.6daef2p-1f,
                   0x1.8deaa2p-1f,
                   0x1.b1350ep-1f,
                   0x1.d119fap-1f,
                   0x1.f3cd44p-1f};
  LookupTable t0 = {0,
                    0x1.0a49c4p-4f,
                    0x1.09a676p-3f,
                    0x1.88f3eap-3f,
                    0x1.04e3f2p-2f,
                    0x1.41fe4ap-2f,
                    0x1.7cc786p-2f,
                    0x1.b5dcb4p-2f,
                    0x1.ebd0c4p-2f,
                    0x1.0e759ep-1f,
                    0x1.271164p-1f,
                    0x1.3d8c1ap-1f,
                    0x1.52437ap-1f,
                    0x1.678ab6p-1f,
                    0x1.799164p-1f,
                    0x1.8bf398p-1f};
  LookupTable t1 = {-0x1.dc1752p-30f, -0x1.149a9p-8f,  -0x1.121f5ep-6f, -0x1.29e73ap-5f,
                    -0x1.042bd2p-4f,  -0x1.87d344p-4f, -0x1.0e5ff6p-3f, -0x1.602fb4p-3f,
                    -0x1.b5332p-3f,   -0x1.0420b8p-2f, -0x1.30130ep-2f, -0x1.59e83ep-2f,
                    -0x1.819994p-2f,  -0x1.ab3a66p-2f, -0x1.cef6a2p-2f, -0x1.f3a814p-2f};
  LookupTable t2 = {0x1.ca5614p-20f, -0x1.0869d6p-4f, -0x1.0248c6p-3f, -0x1.717002p-3f,
                    -0x1.d3c3eap-3f, -0x1.105f62p-2f, -0x1.2cdf8ep-2f, -0x1.3ff56cp-2f,
                    -0x1.4a05a8p-2f, -0x1.4c8664p-2f, -0x1.48f194p-2f, -0x1.40b5f6p-2f,
                    -0x1.3551dap-2f, -0x1.264498p-2f, -0x1.173a8cp-2f, -0x1.061894p-2f};
  LookupTable t3 = {-0x1.559a4ap-2f, -0x1.4c7f1ap-2f, -0x1.33b7c8p-2f, -0x1.0eb65cp-2f,
                    -0x1.be742cp-3f, -0x1.58aabp-3f,  -0x1.e59ec6p-4f, -0x1.24875cp-4f,
                    -0x1.ef41f6p-6f, 0x1.7a2ee6p-9f,  0x1.f90bacp-6f,  0x1.a3b2b8p-5f,
                    0x1.0c482cp-4f,  0x1.35ece2p-4f,  0x1.4b22d2p-4f,  0x1.54b03ep-4f};
  LookupTable t4 = {0x1.a906b4p-7f, 0x1.ff9428p-5f, 0x1.e72bf2p-4f, 0x1.49d784p-3f,
                    0x1.7d89dcp-3f, 0x1.8e12dep-3f, 0x1.8072e6p-3f, 0x1.5c60b6p-3f,
                    0x1.2a8c62p-3f, 0x1.e6fc88p-4f, 0x1.785d8ap-4f, 0x1.13c312p-4f,
                    0x1.7aa6f6p-5f, 0x1.ce7e4p-6f,  0x1.d2981cp-7f, 0x1.1234bp-8f};
};
inline constexpr AngleTables kAngles;

// With a the smaller one of |x| and |y| and b the larger: atan(a / b), its difference from pi/2 where |y| is
// larger, and from pi where x is below 0. Where b is far from 1, or a is so small that a quotient's error is
// no normal number, in double precision.
ANYDML_INLINE Singles atan2_of(Singles y, Singles x) {
  const Singles height = magnitude_of<float>(y);
  const Singles width = magnitude_of<float>(x);
  const auto is_steep = height > width;
  const Singles a = is_steep ? width : height;
  const Singles b = is_steep ? height : width;
  const Singles inverse = 1.0f / b;
  const Singles q = a * inverse;
  const Singles q_low = multiply_add(-q, b, a) * inverse;
  const auto rounded = multiply_add(q, singles(AngleTables::kPerUnit / 16), singles(1 + 0x1p-5f));
  const SingleBits index = bits_as<SingleBits>(rounded) >> 19;
  const Singles d = q - looked_up(kAngles.c, index);
  const Singles t12 = multiply_add(d, looked_up(kAngles.t2, index), looked_up(kAngles.t1, index));
  const Singles t34 = multiply_add(d, looked_up(kAngles.t4, index), looked_up(kAngles.t3, index));
  const Singles t0 = looked_up(kAngles.t0, index);
  const Singles slope = multiply_add(d * d, t34, t12);
  const Singles rest = d + multiply_add(d, slope, multiply_add(q_low, slope, q_low));

  const SingleBits behind = bits_as<SingleBits>(x) & 0x80000000u;
  const SingleBits turned = is_steep ? behind ^ 0x80000000u : behind;
  const Singles turn = is_steep ? singles(kHalfPi1) : behind != 0 ? singles(2 * kHalfPi1) : Singles{};
  const Singles turn_low = is_steep ? singles(kHalfPi2) : behind != 0 ? singles(2 * kHalfPi2) : Singles{};
  const SinglePair sum = fast_two_sum(turn, bits_as<Singles>(bits_as<SingleBits>(t0) ^ turned));
  const Singles less = bits_as<Singles>(bits_as<SingleBits>(rest) ^ turned);
  const Singles angle = with_sign_of<float>(sum.high + (sum.low + (less + turn_low)), y);
  const auto is_right =
      (bits_as<SingleBits>(b) - (67u << 23) < (120u << 23)) & ((a > 0x1p-100f) | (a == 0.0f));
  return right_or_by_doubles(is_right, angle, [](Doubles a, Doubles b) { return atan2_of(a, b); }, y, x);
}

ANYDML_ISA_END
