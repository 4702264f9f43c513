// The error function, and GELU, of halves in single precision, rounded right.
#pragma once

#include <limits>

#include "platform/isa.h"
#include "pointwise/half_functions.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pointwise/single_gelu.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// From 0 to 2.66, beyond which it is next to 1, a polynomial next to each multiple of 11 / 64:
// erf a = t0 + d * (t1 + d * (t2 + ...)), d = a - n * 11 / 64.
struct ErrorTables {
  LookupTable t0 = {0,
                    0x1.89500ep-3f,
                    0x1.7e1594p-2f,
                    0x1.117894p-1f,
                    0x1.569244p-1f,
                    0x1.8d30dep-1f,
                    0x1.b5e63p-1f,
                    0x1.d281c4p-1f,
                    0x1.e5768cp-1f,
                    0x1.f14e82p-1f,
                    0x1.f848acp-1f,
                    0x1.fc28d8p-1f,
                    0x1.fe308p-1f,
                    0x1.ff312p-1f,
                    0x1.ffa8ap-1f,
                    0x1.ffdd18p-1f};
  LookupTable t1 = {0x1.20dd74p+0f, 0x1.1874c4p+0f, 0x1.00abcp+0f,  0x1.bada58p-1f,
                    0x1.68200ap-1f, 0x1.140ce8p-1f, 0x1.8eed84p-2f, 0x1.0fb69ep-2f,
                    0x1.5ce5dcp-3f, 0x1.a64e12p-4f, 0x1.e1d4a4p-5f, 0x1.031a6ap-5f,
                    0x1.06ad26p-6f, 0x1.f60a6cp-8f, 0x1.c43cb8p-9f, 0x1.80005ap-10f};
  LookupTable t2 = {0x1.2af52ap-16f, -0x1.8197b6p-3f, -0x1.60eac6p-2f, -0x1.c8b0bep-2f,
                    -0x1.ef2bf6p-2f, -0x1.da762ap-2f, -0x1.9b64eap-2f, -0x1.46e7b2p-2f,
                    -0x1.dfbc1ep-3f, -0x1.46a08cp-3f, -0x1.9e1334p-4f, -0x1.e9def2p-5f,
                    -0x1.0ee374p-5f, -0x1.187132p-6f, -0x1.100e68p-7f, -0x1.ef051cp-9f};
  LookupTable t3 = {-0x1.823736p-2f, -0x1.5ef2aap-2f, -0x1.04d592p-2f, -0x1.147188p-3f,
                    -0x1.b0b84cp-7f, 0x1.5cad2ap-4f,  0x1.2a6e1ep-3f,  0x1.56441cp-3f,
                    0x1.42e0a2p-3f,  0x1.0a43f8p-3f,  0x1.8a55aep-4f,  0x1.09fb52p-4f,
                    0x1.49ac9p-5f,   0x1.798edep-6f,  0x1.91180ap-7f,  0x1.8c5ed4p-8f};
  LookupTable t4 = {0x1.3cd85ap-6f,  0x1.6fb03p-4f,   0x1.42e1e8p-3f,  0x1.7696e6p-3f,
                    0x1.52aff4p-3f,  0x1.e1da0ep-4f,  0x1.e087b4p-5f,  0x1.801f1cp-8f,
                    -0x1.ef5edep-6f, -0x1.8331b2p-5f, -0x1.9079fcp-5f, -0x1.526cc4p-5f,
                    -0x1.f17fbap-6f, -0x1.46fe28p-6f, -0x1.862a4ep-7f, -0x1.aa6c36p-8f};
};
inline constexpr ErrorTables kErrorFunction;
template <>
struct OfHalves<Erf> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1.5f8p-10f, 1}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles a = lane_min<float>(singles(2.65f), magnitude_of<float>(x));
    const Singles shifted = multiply_add(a, singles(64.0f / 11), singles(kShift));
    const auto index = bits_as<SingleBits>(shifted);
    const Singles d = multiply_add(shifted - kShift, singles(-11.0f / 64), a);
    const Singles t34 =
        multiply_add(d, looked_up(kErrorFunction.t4, index), looked_up(kErrorFunction.t3, index));
    const Singles t12 =
        multiply_add(d, looked_up(kErrorFunction.t2, index), looked_up(kErrorFunction.t1, index));
    const Singles slope = multiply_add(d * d, t34, t12);
    const Singles y = multiply_add(d, slope, looked_up(kErrorFunction.t0, index));
    return with_sign_of<float>(untied(y, a, kTies), x);
  }
};

// As gelu_of
template <>
struct OfHalves<Gelu> {
  static constexpr float kError = 0;
  static constexpr Tie kTies[] = {{0x1p-24f, 1}, {0x1.5fp-10f, ~0u}, {-0x1.5fp-10f, 1}};
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const auto [factor, power, part, m0, d, slope] =
        tail_parts(lane_min<float>(singles(12.5f), magnitude_of<float>(x)));
    const Singles m = multiply_add(d, slope, m0);
    const Singles y = multiply_add(factor, power * multiply_add(part, m, m), lane_max<float>(Singles{}, x));
    return x == -std::numeric_limits<float>::infinity() ? Singles{} : untied(y, x, kTies);
  }
};

ANYDML_ISA_END
