// GELU in single precision, within 1 unit in the last place of the exact result; with the same bits on every
// machine, as the functions of singles.h.
#pragma once

#include <cstdint>

#include "platform/isa.h"
#include "pointwise/error_function.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// The tail of the normal distribution is e^(-a^2 / 2) * M(a). For each quarter of an octave of a + 1 there is
// a polynomial, M(a) = m0 + d * (m1 + d * (m2 + ...)), d = a - c. The centres c are those next to the middle
// of which M(c) is a single almost exactly, so that m0 has no rounding error.
struct TailTables {
  LookupTable c = {0x1.3ff1b8p+0f, 0x1.bffd44p+0f, 0x1.1ff024p+1f, 0x1.600268p+1f,
                   0x1.bffd08p+1f, 0x1.1ff76p+2f,  0x1.6016ecp+2f, 0x1.a007bcp+2f,
                   0x1.00051cp+3f, 0x1.3ff586p+3f, 0x1.7fff9ap+3f, 0x1.c00794p+3f,
                   0x1.000122p-3f, 0x1.8014bcp-2f, 0x1.3fe8ep-1f,  0x1.bff496p-1f};
  LookupTable m0 = {0x1.d8a57ep-3f, 0x1.7b5c6p-3f,  0x1.3abb6p-3f,  0x1.0bb7e4p-3f,
                    0x1.b39984p-4f, 0x1.5b645ep-4f, 0x1.200dfap-4f, 0x1.eb9d3ep-5f,
                    0x1.9261a6p-5f, 0x1.43adfp-5f,  0x1.0e7e14p-5f, 0x1.d07fe6p-6f,
                    0x1.d0aefap-2f, 0x1.84b1b4p-2f, 0x1.4b26fcp-2f, 0x1.1e7fb2p-2f};
  LookupTable m1 = {-0x1.c4a85p-4f,  -0x1.325618p-4f, -0x1.b42836p-5f, -0x1.4327acp-5f,
                    -0x1.b6086ap-6f, -0x1.1bf1dep-6f, -0x1.8aea18p-7f, -0x1.21a476p-7f,
                    -0x1.86a95cp-8f, -0x1.fc1328p-9f, -0x1.63d082p-9f, -0x1.06c4fcp-9f,
                    -0x1.5e6e32p-2f, -0x1.06b9dp-2f,  -0x1.9335d6p-3f, -0x1.3bb5f6p-3f};
  LookupTable m2 = {0x1.7b91dcp-5f,  0x1.bd4ab8p-6f, 0x1.15c912p-6f,  0x1.6c58c6p-7f,
                    0x1.a2a5aap-8f,  0x1.bfdd7cp-9f, 0x1.07b5bap-9f,  0x1.4e93d4p-10f,
                    0x1.7610aep-11f, 0x1.8b17ap-12f, 0x1.d0fcccp-13f, 0x1.27d94cp-13f,
                    0x1.a4e102p-3f,  0x1.2226b2p-3f, 0x1.9a5e8ap-4f,  0x1.28c73ap-4f};
  LookupTable m3 = {-0x1.1f4722p-6f,  -0x1.296532p-7f,  -0x1.49e706p-8f,  -0x1.83856p-9f,
                    -0x1.7e800cp-10f, -0x1.55d7e6p-11f, -0x1.57aecep-12f, -0x1.7b4664p-13f,
                    -0x1.616086p-14f, -0x1.3075a6p-15f, -0x1.2ddebap-16f, -0x1.4b7d5p-17f,
                    -0x1.b02aeep-4f,  -0x1.15c236p-4f,  -0x1.6eaa8ap-5f,  -0x1.efaa42p-6f};
  LookupTable m4 = {0x1.9013c8p-8f,  0x1.72245cp-9f,  0x1.710102p-10f, 0x1.87ae66p-11f,
                    0x1.4fbap-12f,   0x1.fa7158p-14f, 0x1.b5c9fp-15f,  0x1.a656fcp-16f,
                    0x1.49a476p-17f, 0x1.d12e06p-19f, 0x1.857e9ep-20f, 0x1.71aacep-21f,
                    0x1.89df02p-5f,  0x1.dc2bccp-6f,  0x1.27ccc2p-6f,  0x1.78a71ep-7f};
  LookupTable m5 = {-0x1.0668bep-9f,  -0x1.b4f8cp-11f,  -0x1.8a70d6p-12f, -0x1.7b6c98p-13f,
                    -0x1.211dcp-14f,  -0x1.72322ap-16f, -0x1.137342p-17f, -0x1.d07c36p-19f,
                    -0x1.36b4eap-20f, -0x1.65f51ep-22f, -0x1.f88654p-24f, -0x1.9c9464p-25f,
                    -0x1.46a612p-6f,  -0x1.71e46ap-7f,  -0x1.bad5a6p-8f,  -0x1.0d7feep-8f};
  LookupTable m6 = {0x1.3ffb96p-11f, 0x1.e3c4a2p-13f, 0x1.8ed72cp-14f, 0x1.5f89a4p-15f,
                    0x1.d6fc7p-17f,  0x1.038638p-18f, 0x1.4f6212p-20f, 0x1.f0608p-22f,
                    0x1.1a154ap-23f, 0x1.0c8922p-25f, 0x1.40f09p-27f,  0x1.c6da18p-29f,
                    0x1.f18db2p-8f,  0x1.06b86cp-8f,  0x1.357dd8p-9f,  0x1.724224p-10f};
};
inline constexpr TailTables kTail;

// max(x, 0) - a * tail(a), a = |x|: exponential, M and their product each have their rounding errors beside
// them. Where the tail is next to the least single or below, in double precision.
ANYDML_INLINE Singles gelu_of(Singles x) {
  constexpr float kLeast = -13;
  const Singles a = lane_min<float>(singles(-kLeast), magnitude_of<float>(x));
  const SingleBits index = bits_as<SingleBits>(a + 1.0f) >> 21;
  const Singles d = a - looked_up(kTail.c, index);
  const Singles d2 = d * d;
  const Singles m12 = multiply_add(d, looked_up(kTail.m2, index), looked_up(kTail.m1, index));
  const Singles m34 = multiply_add(d, looked_up(kTail.m4, index), looked_up(kTail.m3, index));
  const Singles m56 = multiply_add(d, looked_up(kTail.m6, index), looked_up(kTail.m5, index));
  const Singles slope = multiply_add(multiply_add(m56, d2, m34), d2, m12);
  const Singles m0 = looked_up(kTail.m0, index);
  const Singles m = multiply_add(d, slope, m0);
  const Singles m_low = multiply_add(d, slope, m0 - m);

  const Singles half = a * -0.5f;
  const Singles t = a * half;
  const Singles t_low = multiply_add(a, half, -t);
  const SingleExponential e = single_exponential(t);
  const Singles part_low = multiply_add(t_low, e.part.high, e.part.low + t_low);

  // (1 + part) * m
  const Singles product = multiply_add(m, e.part.high, m);
  const Singles product_left = multiply_add(m, e.part.high, m - product);
  const Singles product_low =
      multiply_add(part_low, m, multiply_add(m_low, e.part.high, m_low)) + product_left;
  const Singles factor = -a * e.scale(0);
  const Singles positive = x < 0.0f ? Singles{} : x;
  const Singles high = multiply_add(factor, product, positive);
  const Singles left = multiply_add(factor, product, positive - high);
  const Singles rest = high + multiply_add(factor, product_low, left);
  // Which has the sign of 0 as well.
  const auto y = bits_as<Singles>(bits_as<SingleBits>(rest) | (bits_as<SingleBits>(x) & 0x80000000u));
  const auto is_right = (x > kLeast) & (y == y);
  const auto of_doubles = [](Doubles v) { return v == -kInfinity ? Doubles{} : gelu_of(v); };
  return right_or_by_doubles(is_right, y, of_doubles, x);
}

ANYDML_ISA_END
