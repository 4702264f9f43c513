// GELU in single precision, within 1 unit in the last place of the exact result; with the same bits on every
// machine, as the functions of singles.h.
#pragma once

#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/error_function.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// The tail of the normal distribution is e^(-a^2 / 2) * M(a). For each quarter of an octave of a + 9/8 there
// is a polynomial, M(a) = m0 + d * (m1 + d * (m2 + ...)), d = a - c. The first centre c is 0; the others are
// those next to the middle of which M(c) has almost exactly 12 bits, so that its product with a power of
// kPowers is a single. What is left of their logarithms is times -2.
struct TailTables {
  LookupTable c = {0x1.225cap+0f,  0x1.a288fp+0f,  0x1.10436ep+1f, 0x1.519412p+1f,
                   0x1.b343b2p+1f, 0x1.18b59ep+2f, 0x1.560ecep+2f, 0x1.9961eep+2f,
                   0x1.fa36fep+2f, 0x1.3d43d2p+3f, 0x1.7dd756p+3f, 0x1.bcc3c8p+3f,
                   0x0p+0f,        0x1.f830c8p-3f, 0x1.fb0962p-2f, 0x1.802e72p-1f};
  LookupTable m0 = {0x1.f42p-3f, 0x1.8dcp-3f, 0x1.48ap-3f, 0x1.152p-3f, 0x1.becp-4f, 0x1.63ap-4f,
                    0x1.28p-4f,  0x1.f34p-5f, 0x1.96ep-5f, 0x1.466p-5f, 0x1.1p-5f,   0x1.d3ep-6f,
                    0x1p-1f,     0x1.a92p-2f, 0x1.672p-2f, 0x1.336p-2f};
  LookupTable m1 = {-0x1.f38ee4p-4f, -0x1.4d80c8p-4f, -0x1.d81e22p-5f, -0x1.58a74cp-5f,
                    -0x1.cb921ep-6f, -0x1.29107ap-6f, -0x1.a066a2p-7f, -0x1.2a86b2p-7f,
                    -0x1.8f4ff2p-8f, -0x1.023f1ap-8f, -0x1.67c3e8p-9f, -0x1.0a9556p-9f,
                    -0x1.988454p-2f, -0x1.2fdb52p-2f, -0x1.cd63e2p-3f, -0x1.63c0e2p-3f};
  LookupTable m2 = {0x1.b1a392p-5f,  0x1.f482dp-6f,   0x1.364734p-6f,  0x1.8f1146p-7f,
                    0x1.c074f8p-8f,  0x1.de33bcp-9f,  0x1.1cf69p-9f,   0x1.5dc9d4p-10f,
                    0x1.8263bcp-11f, 0x1.94dc9ap-12f, 0x1.d8b482p-13f, 0x1.2e4808p-13f,
                    0x1p-2f,         0x1.5e51c8p-3f,  0x1.e9cab2p-4f,  0x1.5bcf06p-4f};
  LookupTable m3 = {-0x1.522d02p-6f,  -0x1.57d06p-7f,   -0x1.7b00aap-8f,  -0x1.b2d45ep-9f,
                    -0x1.a1b6a4p-10f, -0x1.74182p-11f,  -0x1.7c30d8p-12f, -0x1.92015ep-13f,
                    -0x1.70ccfcp-14f, -0x1.3a74d6p-15f, -0x1.34893ap-16f, -0x1.55153ep-17f,
                    -0x1.10580ap-3f,  -0x1.5ba538p-4f,  -0x1.c58058p-5f,  -0x1.2c59c4p-5f};
  LookupTable m4 = {0x1.e36978p-8f,  0x1.b6b336p-9f,  0x1.b31ad8p-10f, 0x1.c2a48ap-11f,
                    0x1.7516dp-12f,  0x1.18a426p-13f, 0x1.ef296p-15f,  0x1.c5744ap-16f,
                    0x1.5b4d66p-17f, 0x1.e43f5p-19f,  0x1.8f6496p-20f, 0x1.7f126ap-21f,
                    0x1.ffe7c6p-5f,  0x1.338e7ep-5f,  0x1.792e1p-6f,   0x1.d67436p-7f};
  LookupTable m5 = {-0x1.4423bp-9f,   -0x1.08bcb6p-10f, -0x1.dba64ep-12f, -0x1.c1750cp-13f,
                    -0x1.46320ep-14f, -0x1.a05362p-16f, -0x1.3ea362p-17f, -0x1.fa117ap-19f,
                    -0x1.49a078p-20f, -0x1.76affap-22f, -0x1.02f916p-23f, -0x1.af4934p-25f,
                    -0x1.b0cb82p-6f,  -0x1.f10f6ep-7f,  -0x1.21accp-7f,   -0x1.544f3ep-8f};
  LookupTable m6 = {0x1.af5568p-11f, 0x1.3ff202p-12f, 0x1.d0821p-14f,  0x1.a864ap-16f,
                    0x1.19c904p-16f, 0x1.2f34c6p-18f, 0x1.95b4dp-20f,  0x1.246b6ap-21f,
                    0x1.389a66p-23f, 0x1.1a5d2ap-25f, 0x1.96513cp-27f, 0x1.d85cbcp-29f,
                    0x1.2a2d66p-7f,  0x1.66c2cep-8f,  0x1.05bbp-8f,    0x1.83b0ep-10f};
  LookupTable left = {0,
                      0x1.40ea36p-12f,
                      -0x1.51eb06p-12f,
                      -0x1.ae102ap-13f,
                      -0x1.ab493p-12f,
                      -0x1.0bd64ap-12f,
                      0x1.ca8cep-15f,
                      0x1.6e6bdp-12f,
                      -0x1.c00c4p-13f,
                      0x1.3ef782p-12f,
                      -0x1.29552p-12f,
                      -0x1.696bfcp-13f,
                      -0x1.7b9c1cp-13f,
                      0x1.c81dd6p-14f,
                      -0x1.b1d1bap-16f,
                      -0x1.6ed6bap-13f};
};
inline constexpr TailTables kTail;

// tail(a) * a = -factor * power * (1 + part) * (m0 + slope), for a to 12.5.
struct TailParts {
  Singles factor;
  Singles power;
  Singles part;
  Singles m0;
  Singles slope;
};
ANYDML_INLINE TailParts tail_parts(Singles a) {
  const SingleBits index = bits_as<SingleBits>(a + 1.125f) >> 21;
  const Singles d = a - looked_up(kTail.c, index);
  const Singles d2 = d * d;
  const Singles m12 = multiply_add(d, looked_up(kTail.m2, index), looked_up(kTail.m1, index));
  const Singles m34 = multiply_add(d, looked_up(kTail.m4, index), looked_up(kTail.m3, index));
  const Singles m56 = multiply_add(d, looked_up(kTail.m6, index), looked_up(kTail.m5, index));
  const Singles slope = d * multiply_add(multiply_add(m56, d2, m34), d2, m12);
  const Singles m0 = looked_up(kTail.m0, index);

  // -a^2 / 2 = n * ln 2 / 16 - r / 2. The last four bits of n choose a power, and those before are an
  // exponent, to which that of 1 and the bit of a sign are added.
  constexpr float kShiftToScale = kShift + (256 + 127) * 16;
  const Singles shifted = multiply_add(a, a * -0x1.715476p+3f, singles(kShiftToScale));
  const Singles n = shifted - kShiftToScale;
  const auto bits = bits_as<SingleBits>(shifted);
  const Singles most = multiply_add(a, a, n * 0x1.62ep-4f);
  const Singles r = most + multiply_add(n, singles(0x1.0bfbe8p-18f), looked_up(kTail.left, bits));
  const Singles q = multiply_add(r, singles(-0x1.5557ecp-6f), singles(0x1.000228p-3f));
  return {a * bits_as<Singles>((bits & ~15u) << 19), looked_up(kPowers.power, bits),
          r * multiply_add(r, q, singles(-0.5f)), m0, slope};
}

// max(x, 0) - a * tail(a), a = |x|. Where the tail is next to the least single or below, in double precision.
ANYDML_INLINE Singles gelu_of(Singles x) {
  constexpr float kLeast = -12.5;
  const auto [factor, power, part, m0, slope] =
      tail_parts(lane_min<float>(singles(-kLeast), magnitude_of<float>(x)));
  const Singles product = power * m0;  // exact
  const Singles product_low = power * multiply_add(part, m0 + slope, slope);
  const Singles positive = lane_max<float>(Singles{}, x);
  const Singles high = multiply_add(factor, product, positive);
  const Singles left = multiply_add(factor, product, positive - high);
  const Singles rest = high + multiply_add(factor, product_low, left);
  // Which has the sign of 0 as well.
  const auto y = bits_as<Singles>(bits_as<SingleBits>(rest) | (bits_as<SingleBits>(x) & 0x80000000u));
  if (all_between(x, kLeast, std::numeric_limits<float>::infinity())) [[likely]]
    return y;
  const auto is_right = (x > kLeast) & (y == y);
  const auto of_doubles = [](Doubles v) { return v == -kInfinity ? Doubles{} : gelu_of(v); };
  return right_or_by_doubles(is_right, y, of_doubles, x);
}

ANYDML_ISA_END
