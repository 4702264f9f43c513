// Functions that are computed of halves otherwise than of singles: by fewer operations, as a larger error
// does not matter, or in single precision where singles need double precision.
#pragma once

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
        most(std::abs(factor) < 0x1p-60 ? 0x1p60f : static_cast<float>(60 / std::abs(factor))) {}
};
ANYDML_INLINE Singles exp2_of_product(Singles x, const Factor& factor) {
  const Singles v = lane_max<float>(singles(-factor.most), lane_min<float>(singles(factor.most), x));
  constexpr float kShift = 0x1.8p23f;
  const Singles shifted = multiply_add(v, singles(factor.high), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles f = multiply_add(v, singles(factor.low), multiply_add(v, singles(factor.high), -n));
  const Singles power = polynomial(f, f * f, 1.0f, 0x1.62e42ap-1f, 0x1.ebf9c2p-3f, 0x1.c6b6d8p-5f,
                                   0x1.3ce8aep-7f, 0x1.5bda5cp-10f);
  return bits_as<Singles>(bits_as<SingleBits>(power) + (bits_as<SingleBits>(shifted) << 23));
}

template <>
struct OfHalves<Exp> {
  static constexpr float kError = 0x1p-21f;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    return exp2_of_product(x, Factor(kLog2E));
  }
};
template <>
struct OfHalves<Sigmoid> {
  static constexpr float kError = 0x1p-21f;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    return 1.0f / (exp2_of_product(x, Factor(-kLog2E)) + 1.0f);
  }
};
template <>
struct OfHalves<Swish> {
  static constexpr float kError = 0x1p-21f;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles /*y*/) {
    const Singles sigmoid = 1.0f / (exp2_of_product(x, Factor(static_cast<double>(k[0]) * -kLog2E)) + 1.0f);
    // So small that no product is a half, and 0 at infinity.
    return product_at_limit<float>(x, sigmoid < 0x1p-50f ? Singles{} : sigmoid);
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

// As log_of, but that halves are no subnormal singles, and that rounding counts for less.
template <>
struct OfHalves<Log> {
  static constexpr float kError = 0x1p-21f;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    constexpr uint32_t kLeast = 0x3f3504f3;  // sqrt(1/2)
    const SingleBits above = bits_as<SingleBits>(x) - kLeast;
    const Singles f = bits_as<Singles>((above & 0x7fffff) + kLeast) - 1.0f;
    const SingleBits exponent = ((above + (128u << 23)) >> 23) | (150u << 23);
    const Singles k = bits_as<Singles>(exponent) - (0x1p23f + 128);
    const Singles y = multiply_add(k, singles(0x1.62e4p-1f), f) + log1p_rest(f, k * 0x1.7f7d1cp-20f);
    const Singles none = x == 0.0f ? singles(-kInfinite) : singles(std::numeric_limits<float>::quiet_NaN());
    return (x > 0.0f) & (x < kInfinite) ? y : x == kInfinite ? x : none;
  }
};

// Rounded once before it is cut off, so that the error is relative.
template <>
struct OfHalves<HardSigmoid> {
  static constexpr float kError = 0x1p-22f;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles /*y*/) {
    const Singles y01 = multiply_add(x, singles(k[0]), singles(k[1]));
    const Singles most1 = y01 > 1.0f ? singles(1) : y01;
    return most1 < 0.0f ? Singles{} : most1;
  }
};
template <>
struct OfHalves<HardSwish> {
  static constexpr float kError = 0x1p-22f;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles y) {
    return product_at_limit<float>(x, OfHalves<HardSigmoid>::of(k, x, y));
  }
};
template <>
struct OfHalves<Softsign> {
  static constexpr float kError = 0x1p-22f;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles y) {
    return Softsign::of<float>(k, x, y);
  }
};

// As gelu_of, whose square is exact of a half.
template <>
struct OfHalves<Gelu> {
  static constexpr float kError = 0x1p-20f;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const Singles a = magnitude_of<float>(x);
    const Singles t = 3.5f / (a + 3.5f);
    const Singles p = polynomial(t, t * t, 0x1.d2de78p-4f, 0x1.d3167ap-4f, 0x1.aa135ap-4f, 0x1.74bba2p-4f,
                                 0x1.27ed22p-5f, 0x1.d6e27ap-4f, -0x1.8467e2p-3f, 0x1.48ec16p-2f,
                                 -0x1.896354p-2f, 0x1.025418p-2f, -0x1.5feffep-4f, 0x1.8d7adap-7f);
    const auto e = single_exponential(lane_max<float>(singles(-60), (x * x) * -0.5f));
    const Singles scale = e.scale(0);
    const Singles tail = multiply_add(scale, e.part.high, scale) * (t * p);
    const Singles y = x * (x < 0.0f ? tail : 1.0f - tail);
    return x == -std::numeric_limits<float>::infinity() ? Singles{} : y;
  }
};

ANYDML_ISA_END
