// Sums and products of halves and constants in single precision, from which halves are rounded as from the
// exact ones: rounded to odd, or by interval arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/half_functions.h"
#include "pointwise/lanes.h"
#include "pointwise/operations.h"
#include "pointwise/rounding.h"

ANYDML_ISA_BEGIN

// Rounded to odd, a number that 24 bits do not hold is the odd one of its two neighbours, and so no tie
// between two halves, and on the same side of each as before. This takes a number and its rounding error.
ANYDML_INLINE Singles rounded_to_odd(Singles high, Singles low) {
  const SingleBits bits = bits_as<SingleBits>(high);
  const auto down = bits_as<SingleBits>(bits_as<SingleIntegers>(bits ^ bits_as<SingleBits>(low)) >> 31);
  // Values that are not finite have no error.
  const auto moves = ((low < 0.0f) | (low > 0.0f)) & ((bits & 1) == 0);
  return bits_as<Singles>(moves ? bits + (down | 1) : bits);
}

#if defined(ANYDML_ISA_AVX512)

// By directed rounding, which instructions have here: of a number rounded down and up the odd one, or both
// where they are one.
inline constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
inline constexpr int kUp = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
ANYDML_INLINE Singles odd_one(__m512 down, __m512 up) {
  return (bits_as<SingleBits>(down) & 1) != 0 ? (Singles)down : (Singles)up;
}
ANYDML_INLINE Singles sum_to_odd(Singles x, Singles y) {
  return odd_one(_mm512_maskz_add_round_ps(kAllLanes, (__m512)x, (__m512)y, kDown),
                 _mm512_maskz_add_round_ps(kAllLanes, (__m512)x, (__m512)y, kUp));
}
ANYDML_INLINE Singles product_to_odd(Singles x, Singles y) {
  return odd_one(_mm512_maskz_mul_round_ps(kAllLanes, (__m512)x, (__m512)y, kDown),
                 _mm512_maskz_mul_round_ps(kAllLanes, (__m512)x, (__m512)y, kUp));
}
template <int kMode>
ANYDML_INLINE Singles multiply_add_by(Singles x, Singles y, Singles z) {
  return (Singles)_mm512_fmadd_round_ps((__m512)x, (__m512)y, (__m512)z, kMode);
}
template <int kMode>
ANYDML_INLINE Singles product_by(Singles x, Singles y) {
  return (Singles)_mm512_maskz_mul_round_ps(kAllLanes, (__m512)x, (__m512)y, kMode);
}

#else

// By the error of an operation, which another one gives.
ANYDML_INLINE Singles sum_to_odd(Singles x, Singles y) {
  const Singles sum = x + y;
  const Singles added = sum - x;
  return rounded_to_odd(sum, (x - (sum - added)) + (y - added));  // Knuth's
}
ANYDML_INLINE Singles product_to_odd(Singles x, Singles y) {
  const Singles product = x * y;
  return rounded_to_odd(product, multiply_add(x, y, -product));
}

#endif

template <>
struct OfHalves<LeakyRelu> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles /*y*/) {
    return x >= 0.0f ? x : product_to_odd(x, singles(k[0]));
  }
};
// Products are rounded to odd here, too: of constants with few bits many are ties.
template <>
struct OfHalves<ScaledElu> {
  static constexpr float kError = 0x1p-23f;
  ANYDML_INLINE static auto is_exact(Singles x) { return x > 0.0f; }
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles /*y*/) {
    const Singles below = scaled_expm1_of(x, static_cast<double>(k[0]) * static_cast<double>(k[1]));
    return is_exact(x) ? product_to_odd(x, singles(k[1])) : below;
  }
};
template <>
struct OfHalves<Shrink> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles /*y*/) {
    const auto is_above = x > k[1];
    const Singles shrunk = sum_to_odd(x, is_above ? -singles(k[0]) : singles(k[0]));
    const Singles inner = x != x ? x : Singles{};
    return is_above | (x < -k[1]) ? shrunk : inner;
  }
};
#if defined(ANYDML_ISA_AVX512)
template <>
struct OfHalves<Linear> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles /*y*/) {
    const Singles down = multiply_add_by<kDown>(x, singles(k[0]), singles(k[1]));
    return odd_one((__m512)down, (__m512)multiply_add_by<kUp>(x, singles(k[0]), singles(k[1])));
  }
};
template <>
struct OfHalves<HardSigmoid> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles y) {
    const Singles y01 = OfHalves<Linear>::of(k, x, y);
    return lane_max<float>(Singles{}, lane_min<float>(singles(1), y01));
  }
};
// 1 / x by Newton's iteration: the product of a half and what lies between two halves is an integer below
// 2^23, so that none is as near to a tie as what is left of the error.
template <>
struct OfHalves<Reciprocal> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& /*k*/, Singles x, Singles /*y*/) {
    const auto near = (Singles)_mm512_maskz_rcp14_ps(kAllLanes, (__m512)x);
    const Singles rest = multiply_add(-x, near, singles(1));
    // NaN beside 0 and infinity, of which the first is right.
    return rest == rest ? multiply_add(rest, near, near) : near;
  }
};
#elif defined(ANYDML_VECTORS)
// In double precision, rounded to odd.
struct LinearToOdd {
  template <class T, class V>
  ANYDML_INLINE static V of(const Constants<T>& k, V x, V /*y*/) {
    return multiply_add_round_to_odd(x, V{} + k[0], V{} + k[1]);
  }
};
struct HardSigmoidToOdd {
  template <class T, class V>
  ANYDML_INLINE static V of(const Constants<T>& k, V x, V y) {
    const V y01 = LinearToOdd::of<T>(k, x, y);
    return lane_max<T>(V{}, lane_min<T>(V{} + T{1}, y01));
  }
};
#else
using LinearToOdd = Linear;
using HardSigmoidToOdd = HardSigmoid;
#endif

// x * (x * Alpha + Beta) in double precision, rounded to odd as x * Alpha * x + x * Beta, of which all
// products are exact, whatever the constants are; cut off by what x is multiplied by, rounded likewise.
struct HardSwishToOdd {
  template <class T, class V>
  ANYDML_INLINE static V of(const Constants<T>& k, V x, V /*y*/) {
    const V alphas = V{} + k[0];
    const V betas = V{} + k[1];
    const V y01 = multiply_add_round_to_odd(x, alphas, betas);
    const V between = with_sign_of<T>(multiply_add_round_to_odd(x * alphas, x, x * betas), x);
    const V above = y01 >= T{1} ? x : between;
    const V below = product_at_limit<T>(x, y01 < T{0} ? V{} : y01);
    return y01 > T{0} ? above : below;
  }
};

// By a product and its error: of constants with few bits many products are ties, which a test for these would
// find again and again.
template <>
struct OfHalves<HardSwish> {
  static constexpr float kError = 0;
  ANYDML_INLINE static Singles of(const Constants<float>& k, Singles x, Singles /*y*/) {
    const SinglePair y01 = hard_sigmoid_pair(k, x);
    const Singles product = x * y01.high;
    const Singles rest = multiply_add(x, y01.low, multiply_add(x, y01.high, -product));
    // More than a unit in the last place together, which the sum takes up. Zero keeps its sign.
    const SinglePair sum = fast_two_sum(product, rest);
    const Singles y = (rest < 0.0f) | (rest > 0.0f) ? rounded_to_odd(sum.high, sum.low) : product;
    const auto is_infinite = magnitude_of<float>(x) == std::numeric_limits<float>::infinity();
    return is_infinite & (y01.high == 0.0f) ? Singles{} : y;
  }
};

ANYDML_ISA_END
