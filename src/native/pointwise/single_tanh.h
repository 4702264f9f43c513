// The hyperbolic tangent in single precision, within 1 unit in the last place of the exact result; with the
// same bits on every machine, as the functions of singles.h.
#pragma once

#include <cstdint>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// From 5/8 to 10 a polynomial for each quarter of an octave, found by the last bit of the exponent's and two
// of the mantissa's: tanh a = t0 + d * (t1 + d * (t2 + ...)), d = a - c. The centres c are those next to the
// middle of which tanh c is a single almost exactly, so that t0 has no rounding error.
struct TanhTables {
  LookupTable c = {0x1.21307ap+1f, 0x1.5f7744p+1f, 0x1.a05aeap+1f, 0x1.e01726p+1f,
                   0x1.1fe142p+2f, 0x1.5fe8bep+2f, 0x1.9fef28p+2f, 0x1.e434ep+2f,
                   0x1.154246p+3f, 0x1.5e60e4p-1f, 0x1.a0e78p-1f,  0x1.e14c36p-1f,
                   0x1.20155cp+0f, 0x1.61b4e4p+0f, 0x1.9e3648p+0f, 0x1.e1ceap+0f};
  LookupTable t0 = {0x1.f4f44cp-1f, 0x1.fbcc22p-1f, 0x1.fe78a6p-1f, 0x1.ff6f4cp-1f,
                    0x1.ffdf88p-1f, 0x1.fffb9cp-1f, 0x1.ffff68p-1f, 0x1.ffffeep-1f,
                    0x1.fffffep-1f, 0x1.304be6p-1f, 0x1.58082p-1f,  0x1.787122p-1f,
                    0x1.9e6b72p-1f, 0x1.c33ce2p-1f, 0x1.d9428cp-1f, 0x1.e8cb26p-1f};
  LookupTable t1 = {0x1.5da68p-5f,   0x1.0bdcep-6f,   0x1.86c484p-8f,  0x1.213f24p-9f,
                    0x1.03b8cp-11f,  0x1.190002p-14f, 0x1.300142p-17f, 0x1.20128cp-20f,
                    0x1.fd4e46p-24f, 0x1.4b25d4p-1f,  0x1.18d514p-1f,  0x1.d6737ap-2f,
                    0x1.61204ep-2f,  0x1.c940d8p-3f,  0x1.2a320cp-3f,  0x1.6ae378p-4f};
  LookupTable t2 = {-0x1.5618d4p-5f,  -0x1.09a624p-6f,  -0x1.8592d2p-8f,  -0x1.20e7e4p-9f,
                    -0x1.03551ap-11f, -0x1.18a2c8p-14f, -0x1.2f9e6ep-17f, -0x1.1fbf72p-20f,
                    -0x1.009166p-23f, -0x1.899f12p-2f,  -0x1.79673ep-2f,  -0x1.59e4c8p-2f,
                    -0x1.1dd3bep-2f,  -0x1.92fd94p-3f,  -0x1.13a236p-3f,  -0x1.5a70dcp-4f};
  LookupTable t3 = {0x1.b44fd2p-6f,  0x1.5c696ap-7f,  0x1.02262ap-8f,  0x1.805a78p-10f,
                    0x1.59bf8ep-12f, 0x1.7649dap-15f, 0x1.94f1f4p-18f, 0x1.7cacfcp-21f,
                    0x1.67fc8ap-24f, 0x1.a553bcp-7f,  0x1.0990c6p-4f,  0x1.85ff2ep-4f,
                    0x1.c69298p-4f,  0x1.95857ep-4f,  0x1.36bef6p-4f,  0x1.a38d22p-5f};
  LookupTable t4 = {-0x1.8fcd54p-7f,  -0x1.53fa94p-8f,  -0x1.01db44p-9f,  -0x1.830d3cp-11f,
                    -0x1.6a086p-13f,  -0x1.886222p-16f, -0x1.a89be2p-19f, -0x1.8ec97ap-22f,
                    -0x1.6141e2p-25f, 0x1.ed31c6p-4f,   0x1.44e83cp-4f,   0x1.5da1fcp-5f,
                    0x1.da5208p-9f,   -0x1.5f1642p-6f,  -0x1.9c7e9p-6f,   -0x1.52ef36p-6f};
  LookupTable t5 = {0x1.04ffaap-8f,  0x1.f57558p-10f, 0x1.943ec2p-11f, 0x1.32f7c6p-12f,
                    0x1.1e4f0cp-14f, 0x1.373b46p-17f, 0x1.512fc8p-20f, 0x1.71a1a8p-23f,
                    0x1.4f67f6p-27f, -0x1.ea90a4p-5f, -0x1.1086a6p-4f, -0x1.b47e4ap-5f,
                    -0x1.067e32p-5f, -0x1.37ff0ap-7f, 0x1.787ee8p-10f, 0x1.2f292cp-8f};
};
inline constexpr TanhTables kTanh;

// Below 5/8 tanh a = a + a^3 * g(a^2)
ANYDML_INLINE Singles tanh_of(Singles x) {
  // Beyond 9.02 it is next to 1.
  const Singles a = lane_min<float>(singles(9.5f), magnitude_of<float>(x));
  const SingleBits index = bits_as<SingleBits>(a) >> 21;
  const Singles d = a - looked_up(kTanh.c, index);
  const Singles t12 = multiply_add(d, looked_up(kTanh.t2, index), looked_up(kTanh.t1, index));
  const Singles t34 = multiply_add(d, looked_up(kTanh.t4, index), looked_up(kTanh.t3, index));
  const Singles d2 = d * d;
  const Singles t345 = multiply_add(d2, looked_up(kTanh.t5, index), t34);
  const Singles far = multiply_add(d, multiply_add(d2, t345, t12), looked_up(kTanh.t0, index));
  const Singles a2 = a * a;
  const Singles g = polynomial(a2, a2 * a2, -0x1.555536p-2f, 0x1.1107aep-3f, -0x1.b84b26p-5f, 0x1.527aa2p-6f,
                               -0x1.77307ap-8f);
  const Singles near = multiply_add(a2 * a, g, a);
  const Singles y = a < 0.625f ? near : far;
  return bits_as<Singles>(bits_as<SingleBits>(y) | (bits_as<SingleBits>(x) & 0x80000000u));
}

ANYDML_ISA_END
