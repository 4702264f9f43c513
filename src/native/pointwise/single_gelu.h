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
  LookupTable m1 = {-0x1.f38ee6p-4f, -0x1.4d80c8p-4f, -0x1.d81e22p-5f, -0x1.58a74ap-5f,
                    -0x1.cb9222p-6f, -0x1.29107cp-6f, -0x1.a066a2p-7f, -0x1.2a86b2p-7f,
                    -0x1.8f4ff8p-8f, -0x1.023f1cp-8f, -0x1.67c3eap-9f, -0x1.0a9556p-9f,
                    -0x1.988454p-2f, -0x1.2fdb54p-2f, -0x1.cd63e2p-3f, -0x1.63c0e2p-3f};
  LookupTable m2 = {0x1.b1a37cp-5f,  0x1.f482bep-6f, 0x1.36473cp-6f,  0x1.8f118ap-7f,
                    0x1.c074fap-8f,  0x1.de33b8p-9f, 0x1.1cf682p-9f,  0x1.5dc9ccp-10f,
                    0x1.8263bap-11f, 0x1.94dcbp-12f, 0x1.d8b438p-13f, 0x1.2e480ap-13f,
                    0x1.000044p-2f,  0x1.5e51cep-3f, 0x1.e9caap-4f,   0x1.5bcf0cp-4f};
  LookupTable m3 = {-0x1.522b9cp-6f,  -0x1.57cea8p-7f,  -0x1.7affbep-8f,  -0x1.b2d926p-9f,
                    -0x1.a1b278p-10f, -0x1.7414fcp-11f, -0x1.7c30a4p-12f, -0x1.91fe6ap-13f,
                    -0x1.70c6dep-14f, -0x1.3a71dap-15f, -0x1.34854ap-16f, -0x1.5512dcp-17f,
                    -0x1.1068dap-3f,  -0x1.5ba1d2p-4f,  -0x1.c58016p-5f,  -0x1.2c5aeep-5f};
  LookupTable m4 = {0x1.e38f1cp-8f,  0x1.b6d1acp-9f,  0x1.b2ffbap-10f, 0x1.c1c2d6p-11f,
                    0x1.7519e4p-12f, 0x1.18a8b4p-13f, 0x1.ef549p-15f,  0x1.c592ecp-16f,
                    0x1.5b527ep-17f, 0x1.e4209ep-19f, 0x1.8fe11cp-20f, 0x1.7f0ad6p-21f,
                    0x1.01d74ep-4f,  0x1.3374e4p-5f,  0x1.79661cp-6f,  0x1.d652b8p-7f};
  LookupTable m5 = {-0x1.44c202p-9f,  -0x1.097288p-10f, -0x1.dc56dap-12f, -0x1.bd0a14p-13f,
                    -0x1.470fc8p-14f, -0x1.a18c92p-16f, -0x1.3ea658p-17f, -0x1.fc613ap-19f,
                    -0x1.4adb4cp-20f, -0x1.77cdep-22f,  -0x1.04c7fp-23f,  -0x1.b107eep-25f,
                    -0x1.e37292p-6f,  -0x1.f61d3ep-7f,  -0x1.21ae58p-7f,  -0x1.52a77p-8f};
  LookupTable m6 = {0x1.a102fp-11f,  0x1.34157ep-12f, 0x1.e3d07p-14f,  0x1.7b4722p-15f,
                    0x1.184e08p-16f, 0x1.2d14fcp-18f, 0x1.86ccdep-20f, 0x1.17d52cp-21f,
                    0x1.36dd54p-23f, 0x1.1ef502p-25f, 0x1.668828p-27f, 0x1.dc7434p-29f,
                    0x1.15c082p-6f,  0x1.907114p-8f,  0x1.bc1606p-9f,  0x1.b39224p-10f};
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

// tail(a) * a = -factor * power * (1 + part) * (m0 + d * slope), for a to 12.5.
struct TailParts {
  Singles factor;
  Singles power;
  Singles part;
  Singles m0;
  Singles d;
  Singles slope;
};
ANYDML_INLINE TailParts tail_parts(Singles a) {
  const SingleBits index = bits_as<SingleBits>(a + 1.125f) >> 21;
  const Singles d = a - looked_up(kTail.c, index);
  const Singles d2 = d * d;
  const Singles m12 = multiply_add(d, looked_up(kTail.m2, index), looked_up(kTail.m1, index));
  const Singles m34 = multiply_add(d, looked_up(kTail.m4, index), looked_up(kTail.m3, index));
  const Singles m56 = multiply_add(d, looked_up(kTail.m6, index), looked_up(kTail.m5, index));
  const Singles slope = multiply_add(multiply_add(m56, d2, m34), d2, m12);
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
  return {a * bits_as<Singles>((bits & ~15u) << 19),
          looked_up(kPowers.power, bits),
          r * multiply_add(r, q, singles(-0.5f)),
          m0,
          d,
          slope};
}

// max(x, 0) - a * tail(a), a = |x|. Where the tail is next to the least single or below, in double precision.
ANYDML_INLINE Singles gelu_of(Singles x) {
  constexpr float kLeast = -12.5;
  const auto [factor, power, part, m0, d, slope] =
      tail_parts(lane_min<float>(singles(-kLeast), magnitude_of<float>(x)));
  const Singles product = power * m0;  // exact
  const Singles product_low = power * multiply_add(d, slope, part * multiply_add(d, slope, m0));
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
