// Exponentials, and functions that consist of them, in single precision, within 1 unit in the last place of
// the exact result.
//
// They consist of fused multiply-adds, additions, divisions and bit operations, and so have the same bits on
// every machine. The largest errors over all 2^32 singles, in units in the last place: exp_of 0.767,
// sigmoid_of 0.881, scaled_expm1_of 0.864 (times 1.758 0.898), softplus_of 0.950.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"

ANYDML_ISA_BEGIN

inline constexpr float kLn2High = 0x1.62e430p-1f;
inline constexpr float kLn2Low = -0x1.05c610p-29f;

using SingleBits = Lanes<uint32_t, sizeof(Singles) / sizeof(float)>;
using SingleIntegers = Lanes<int32_t, sizeof(Singles) / sizeof(float)>;

ANYDML_INLINE Singles to_singles(SingleIntegers v) {
#if defined(ANYDML_VECTORS)
  return __builtin_convertvector(v, Singles);
#else
  return static_cast<float>(v);
#endif
}

// A number and its rounding error.
struct SinglePair {
  Singles high;
  Singles low;
};

ANYDML_INLINE Singles singles(float value) { return Singles{} + value; }

// Whether all lanes are above one number and below another. A comparison of AVX-512 gives a mask, of which
// compilers would make a vector first.
ANYDML_INLINE bool all_between(Singles x, float above, float below) {
#if defined(ANYDML_ISA_AVX512)
  const auto is_above = _mm512_cmp_ps_mask((__m512)x, (__m512)singles(above), _CMP_GT_OQ);
  return _mm512_mask_cmp_ps_mask(is_above, (__m512)x, (__m512)singles(below), _CMP_LT_OQ) == kAllLanes;
#else
  return all_of<float>((x > above) & (x < below));
#endif
}

// What a function gives of doubles, rounded.
template <class Function, class... Numbers>
ANYDML_NOINLINE void by_doubles(const Function& function, float* y, const Numbers*... x) {
  for (size_t i = 0; i < sizeof(Singles) / sizeof(float); i += sizeof(Doubles) / sizeof(double)) {
    const Doubles result =
        function(load_numbers<float, double, Doubles>(reinterpret_cast<const std::byte*>(x + i))...);
    store_numbers<float, double>(reinterpret_cast<std::byte*>(y + i), result);
  }
}

// Results y of vectors x, taken from double precision in lanes where they are not right.
template <class Right, class Function, class... V>
ANYDML_INLINE Singles right_or_by_doubles(const Right& is_right, Singles y, const Function& function,
                                          const V&... x) {
  if (all_of<float>(is_right)) [[likely]]
    return y;
  using Numbers = std::array<float, sizeof(Singles) / sizeof(float)>;
  Numbers results;
  by_doubles(function, results.data(), bits_as<Numbers>(x).data()...);
  return is_right ? y : bits_as<Singles>(results);
}

// c0 + c1 * x + c2 * x^2 + ...: in pairs (Estrin's scheme), as one chain would be a long wait.
ANYDML_INLINE Singles polynomial(Singles, Singles, float c0) { return singles(c0); }
template <class... Rest>
ANYDML_INLINE Singles polynomial(Singles x, Singles x2, float c0, float c1, Rest... rest) {
  const Singles pair = multiply_add(x, singles(c1), singles(c0));
  if constexpr (sizeof...(rest) == 0) {
    return pair;
  } else {
    return multiply_add(polynomial(x, x2, rest...), x2, pair);
  }
}

// Dekker's fast two-sum of a larger number, or 0, and a smaller one.
ANYDML_INLINE SinglePair fast_two_sum(Singles larger, Singles smaller) {
  const Singles sum = larger + smaller;
  return {sum, smaller - (sum - larger)};
}

// e^x = 2^n * (1 + part)
struct SingleExponential {
  SingleBits n;  // its last 9 bits
  SinglePair part;

  // 2^(n + more)
  ANYDML_INLINE Singles scale(uint32_t more) const { return bits_as<Singles>((n + (127 + more)) << 23); }
};

// Added to a number and taken away it leaves the nearest integer, whose bits are the sum's last.
inline constexpr float kShift = 0x1.8p23f;

// (e^r - 1 - r) / r^2
ANYDML_INLINE Singles expm1_quotient(Singles r, Singles r2) {
  return polynomial(r, r2, 0x1p-1f, 0x1.555558p-3f, 0x1.555516p-5f, 0x1.110888p-7f, 0x1.6cf120p-10f,
                    0x1.b4033ep-13f);
}

// x = n * ln 2 + r; part = e^r - 1 = r + r^2 * q(r). It is from -1/4 to 1/2, rather than from 1/sqrt(2) - 1
// to sqrt(2) - 1, as its rounding counts for more where e^r is below 1.
ANYDML_INLINE SingleExponential single_exponential(Singles x) {
  const Singles shifted = multiply_add(x - 0.059f, singles(0x1.715476p+0f), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles most = multiply_add(n, singles(-kLn2High), x);  // exact
  const Singles r = multiply_add(n, singles(-kLn2Low), most);
  const Singles r_low = multiply_add(n, singles(-kLn2Low), most - r);
  const Singles r2 = r * r;
  const Singles q = expm1_quotient(r, r2);
  const Singles part = multiply_add(q, r2, r);
  return {bits_as<SingleBits>(shifted), {part, multiply_add(q, r2, r - part) + r_low}};
}

// y * 2^n of y from 1/2 to 2, rounded where it is subnormal: elsewhere than with AVX-512 in two factors, as
// 2^n may be too large, or not large enough, for a single. Of n there are the bits of its sum with 1.5 *
// 2^23.
ANYDML_INLINE Singles scaled_by_power(Singles y, SingleBits n) {
  const Singles power = bits_as<Singles>(n) - kShift;
#if defined(ANYDML_ISA_AVX512)
  return (Singles)_mm512_maskz_scalef_ps(kAllLanes, (__m512)y, (__m512)power);
#else
  const Singles last = power < 0.0f ? singles(0x1p-64f) : singles(0x1p+64f);
  return y * bits_as<Singles>((n << 23) + (254u << 23) - bits_as<SingleBits>(last)) * last;
#endif
}

// Powers of 2^(1/16), rounded to 12 bits, and the logarithms of what that takes away.
struct PowerTables {
  LookupTable power = {0x1p+0f,     0x1.0b6p+0f, 0x1.172p+0f, 0x1.238p+0f, 0x1.306p+0f, 0x1.3dep+0f,
                       0x1.4cp+0f,  0x1.5acp+0f, 0x1.6ap+0f,  0x1.7a2p+0f, 0x1.8acp+0f, 0x1.9c4p+0f,
                       0x1.ae8p+0f, 0x1.c1ap+0f, 0x1.d58p+0f, 0x1.ea4p+0f};
  LookupTable left = {0,
                      -0x1.40ea36p-13f,
                      0x1.51eb06p-13f,
                      0x1.ae102ap-14f,
                      0x1.ab493p-13f,
                      0x1.0bd64ap-13f,
                      -0x1.ca8cep-16f,
                      -0x1.6e6bdp-13f,
                      0x1.c00c4p-14f,
                      -0x1.3ef782p-13f,
                      0x1.29552p-13f,
                      0x1.696bfcp-14f,
                      0x1.7b9c1cp-14f,
                      -0x1.c81dd6p-15f,
                      0x1.b1d1bap-17f,
                      0x1.6ed6bap-14f};
};
inline constexpr PowerTables kPowers;

// e^x = 2^floor(n / 16) * power * (1 + part), by n * ln 2 / 16 next to x. The part is so small that it has no
// rounding error that counts.
struct PowerAndPart {
  Singles n;
  SingleBits bits;  // n's last ones, to which 16 * more is added
  Singles power;
  Singles part;
};
template <int kMore>
ANYDML_INLINE PowerAndPart power_and_part(Singles x) {
  constexpr float kShiftAndMore = kShift + 16 * kMore;
  const Singles shifted = multiply_add(x, singles(0x1.715476p+4f), singles(kShiftAndMore));
  const Singles n = shifted - kShiftAndMore;
  const auto bits = bits_as<SingleBits>(shifted);
  const Singles most = multiply_add(n, singles(-0x1.62e430p-5f), x);  // exact
  const Singles r = most + multiply_add(n, singles(0x1.05c610p-33f), looked_up(kPowers.left, bits));
  const Singles q = multiply_add(r, singles(0x1.55572ap-3f), singles(0x1.00023p-1f));
  return {n, bits, looked_up(kPowers.power, bits), multiply_add(q, r * r, r)};
}

ANYDML_INLINE Singles exp_of(Singles x) {
  const auto e = power_and_part<0>(lane_max<float>(singles(-105), lane_min<float>(singles(90), x)));
  const Singles y = multiply_add(e.power, e.part, e.power);
#if defined(ANYDML_ISA_AVX512)
  // Which rounds the exponent down.
  return (Singles)_mm512_maskz_scalef_ps(kAllLanes, (__m512)y, (__m512)(e.n * 0x1p-4f));
#else
  constexpr uint32_t kShiftBits = 0x4b400000;
  const auto whole = bits_as<SingleIntegers>(e.bits - kShiftBits) >> 4;
  return scaled_by_power(y, bits_as<SingleBits>(whole) + kShiftBits);
#endif
}

// Likewise e^(x + low) of an x from -105 to 90, |low| being at most 1.
ANYDML_INLINE Singles exp_of_sum(Singles x, Singles low) {
  const Singles shifted = multiply_add(x - 0.059f, singles(0x1.715476p+0f), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles most = multiply_add(n, singles(-kLn2High), x);  // exact
  const SinglePair r = fast_two_sum(most, multiply_add(n, singles(-kLn2Low), low));
  const Singles r2 = r.high * r.high;
  return scaled_by_power((r.high + multiply_add(expm1_quotient(r.high, r2), r2, r.low)) + 1.0f,
                         bits_as<SingleBits>(shifted));
}

// k * (e^x - 1) for x <= 0: e^x - 1 = 2^n * part + (2^n - 1)
ANYDML_INLINE Singles scaled_expm1_of(Singles x, double k) {
  const auto e = single_exponential(lane_max<float>(singles(-20), lane_min<float>(Singles{}, x)));
  const Singles scale = e.scale(0);
  const Singles less = scale - 1.0f;
  const Singles high = multiply_add(scale, e.part.high, less);
  const Singles low = multiply_add(scale, e.part.low, multiply_add(scale, e.part.high, less - high));
  const auto k_high = static_cast<float>(k);
  const auto k_low = static_cast<float>(k - k_high);
  return multiply_add(high, singles(k_high), multiply_add(high, singles(k_low), low * k_high));
}

// 1 / (high + low), with a step of Newton's method
ANYDML_INLINE Singles reciprocal_of(Singles high, Singles low) {
  const Singles rough = 1.0f / high;
  const Singles left = multiply_add(-low, rough, multiply_add(-high, rough, singles(1)));
  return multiply_add(rough, left, rough);
}

// With y = e^|x|: 1 / (1 + y), or what that is less than 1. Both 1 and y are times 2^-64, which y at its
// largest needs.
ANYDML_INLINE Singles sigmoid_of(Singles x) {
  const auto e = single_exponential(lane_min<float>(singles(105), magnitude_of<float>(x)));
  const Singles scale = e.scale(static_cast<uint32_t>(-64));
  const Singles y = multiply_add(scale, e.part.high, scale);
  const Singles y_low = multiply_add(scale, e.part.high, scale - y);
  const Singles sum = y + 0x1p-64f;
  const Singles low = (0x1p-64f - (sum - y)) + y_low;
  const Singles w = reciprocal_of(sum, low) * 0x1p-64f;
  return x < 0.0f ? w : 1.0f - w;
}

// a / (1 + a), the quotient with a step of Newton's method, so that it is rounded about once; beyond 2^100
// it is 1.
ANYDML_INLINE Singles softsign_of(Singles x) {
  const Singles a = lane_min<float>(singles(0x1p100f), magnitude_of<float>(x));
  const SinglePair sum = fast_two_sum(lane_max<float>(a, singles(1)), lane_min<float>(a, singles(1)));
  const Singles rough = 1.0f / sum.high;
  const Singles quotient = a * rough;
  const Singles left = multiply_add(-quotient, sum.low, multiply_add(-quotient, sum.high, a));
  return with_sign_of<float>(multiply_add(left, rough, quotient), x);
}

// ln(1 + f) - f = -f^2 / 2 + f^3 * p(f), for f from sqrt(1/2) - 1 to 1/2; with what is left of f.
ANYDML_INLINE Singles log1p_rest(Singles f, Singles f_low) {
  const Singles f2 = f * f;
  const Singles p =
      polynomial(f, f2, 0x1.55554cp-2f, -0x1.0000b6p-2f, 0x1.99a2f6p-3f, -0x1.55130ep-3f, 0x1.232528p-3f,
                 -0x1.02cd9ep-3f, 0x1.f0d48cp-4f, -0x1.ac4decp-4f, 0x1.89b9bap-5f);
  return multiply_add(f2 * f, p, multiply_add(f2, singles(-0.5f), f_low));
}

// max(x, 0) + ln(1 + y), y = e^-|x|; from y = 1/2 on ln(1 + y) = ln 2 + ln(1 + (y - 1) / 2).
ANYDML_INLINE Singles softplus_of(Singles x) {
  const auto e = single_exponential(lane_max<float>(singles(-105), -magnitude_of<float>(x)));
  // Times 2^64, as what is left of rounding would be too small.
  const Singles scale = e.scale(64);
  const Singles scaled = multiply_add(scale, e.part.high, scale);
  const Singles y = scaled * 0x1p-64f;
  const Singles y_low =
      multiply_add(scale, e.part.low, multiply_add(scale, e.part.high, scale - scaled)) * 0x1p-64f;
  const auto is_large = y >= 0.5f;
  const Singles f = is_large ? multiply_add(y, singles(0.5f), singles(-0.5f)) : y;
  // The rounding error of y is scaled by the logarithm's slope, roughly.
  const Singles rest = log1p_rest(f, multiply_add(y_low * y, singles(-0.5f), y_low));
  const SinglePair whole = fast_two_sum(is_large ? singles(kLn2High) : Singles{}, x < 0.0f ? Singles{} : x);
  const SinglePair sum = fast_two_sum(whole.high, f);
  const Singles low = is_large ? whole.low + kLn2Low : whole.low;
  // Infinity has no rounding error.
  return x > 32.0f ? x : sum.high + (low + (sum.low + rest));
}

ANYDML_ISA_END
