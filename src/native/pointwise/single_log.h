// Logarithms in single precision, within 1 unit in the last place of the exact result, and in two parts; with
// the same bits on every machine, as the functions of singles.h.
#pragma once

#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// Reciprocals of 1 + i / 16, of so few bits that a single's product with one, less 1, is a single; and minus
// their logarithms, the leading bits and the rest.
inline constexpr LookupTable kReciprocals = {
    0x1p+0f,    0x1.ep-1f,  0x1.c8p-1f, 0x1.bp-1f, 0x1.98p-1f, 0x1.88p-1f, 0x1.7p-1f, 0x1.6p-1f,
    0x1.58p-1f, 0x1.48p-1f, 0x1.38p-1f, 0x1.3p-1f, 0x1.28p-1f, 0x1.18p-1f, 0x1.1p-1f, 0x1.08p-1f};
inline constexpr LookupTable kLogarithms = {0x0p+0f,      0x1.086p-4f,  0x1.da7p-4f,  0x1.5bf8p-3f,
                                            0x1.d1p-3f,   0x1.1178p-2f, 0x1.522cp-2f, 0x1.7fbp-2f,
                                            0x1.973cp-2f, 0x1.c8p-2f,   0x1.fb34p-2f, 0x1.0ae8p-1f,
                                            0x1.188ep-1f, 0x1.3502p-1f, 0x1.43dap-1f, 0x1.5322p-1f};
inline constexpr LookupTable kLogarithmsLow = {
    0x0p+0f,          -0x1.9d2988p-18f, 0x1.3b1c22p-19f,  -0x1.fca55ep-18f, 0x1.bf932ap-18f, 0x1.d044fcp-19f,
    -0x1.1f8c76p-18f, -0x1.7109fap-20f, -0x1.cbcecap-18f, -0x1.8e2eaap-20f, 0x1.8af7a4p-18f, -0x1.23a5f6p-18f,
    0x1.c81e48p-18f,  0x1.15b3b2p-18f,  -0x1.a0db88p-26f, 0x1.c4d0d0p-18f};

// x = m * 2^k, m from 31/32 to 63/32, and m * r = 1 + f for the next of the reciprocals:
// ln x = k * ln 2 - ln r + ln(1 + f), of normal numbers above 0.
struct LogarithmParts {
  Singles whole;  // k * ln 2 - ln r, 0 or above |f|
  Singles low;    // what is left of that
  Singles f;      // below 0.0343
};
ANYDML_INLINE LogarithmParts logarithm_parts(Singles x) {
  const SingleBits bits = bits_as<SingleBits>(x);
  const SingleBits above = bits - 0x3f7c0000u;  // 1 - 1/64
  const Singles k = to_singles(bits_as<SingleIntegers>(above) >> 23);
  const SingleBits index = above >> 19;
  const auto m = bits_as<Singles>(bits - (above & 0xff800000u));
  const Singles f = multiply_add(m, looked_up(kReciprocals, index), singles(-1));  // exact
  // So few bits of ln 2 that sum and product are exact; the sum is 0, or above f.
  const Singles whole = multiply_add(k, singles(0x1.62e4p-1f), looked_up(kLogarithms, index));
  const Singles low = multiply_add(k, singles(0x1.7f7d1cp-20f), looked_up(kLogarithmsLow, index));
  return {whole, low, f};
}
ANYDML_INLINE auto is_normal_above_0(Singles x) { return bits_as<SingleBits>(x) - 0x00800000u < 0x7f000000u; }

// In two parts, within 2^-33: ln(1 + f) = f - f^2 / 2 + f^3 * p(f)
ANYDML_INLINE SinglePair log_pair_of_normal(Singles x) {
  const auto [whole, whole_low, f] = logarithm_parts(x);
  const SinglePair sum = fast_two_sum(whole, f);
  const Singles f2 = f * f;
  const Singles f2_low = multiply_add(f, f, -f2);
  const Singles high = multiply_add(f2, singles(-0.5f), sum.high);
  const Singles left = multiply_add(f2, singles(-0.5f), sum.high - high) + sum.low;
  const Singles p = polynomial(f, f2, 0x1.555552p-2f, -0x1.fffbaep-3f, 0x1.99f254p-3f, -0x1.684d3ep-3f);
  const Singles low = multiply_add(f2 * f, p, multiply_add(f2_low, singles(-0.5f), left + whole_low));
  return {high, low};
}

// Of subnormal numbers in double precision. Neither 0 nor what is not finite has a mantissa, and what is
// below 0 no logarithm.
ANYDML_INLINE Singles log_of(Singles x) {
  const LogarithmParts parts = logarithm_parts(x);
  const Singles f2 = parts.f * parts.f;
  const Singles p = polynomial(parts.f, f2, 0x1.555522p-2f, -0x1.002816p-2f, 0x1.9c92ccp-3f);
  const SinglePair sum = fast_two_sum(parts.whole, parts.f);
  const Singles rest = multiply_add(f2, singles(-0.5f), sum.low + parts.low);
  const Singles y = sum.high + multiply_add(f2 * parts.f, p, rest);
  if (all_of<float>(is_normal_above_0(x))) [[likely]]
    return y;
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Singles none = x == 0.0f ? singles(-kInfinite) : singles(std::numeric_limits<float>::quiet_NaN());
  const Singles of_all = (x > 0.0f) & (x < kInfinite) ? y : x == kInfinite ? x : none;
  const auto is_subnormal = (x > 0.0f) & (x < 0x1p-126f);
  return right_or_by_doubles(is_subnormal == 0, of_all, [](Doubles v) { return log_of(v); }, x);
}

ANYDML_ISA_END
