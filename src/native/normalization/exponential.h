// Exponentials of what is below the largest of a group, in double precision with fused multiply-adds, to
// within 2^-31 of the result.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS) && !defined(__aarch64__) && !defined(ANYDML_ISA_AVX2) && \
    !defined(ANYDML_ISA_AVX512)
// A sum and its rounding error (Knuth's two-sum).
struct DoublePair {
  Doubles sum;
  Doubles error;
};
ANYDML_INLINE DoublePair two_sum(Doubles x, Doubles y) {
  const Doubles sum = x + y;
  const Doubles added = sum - x;
  return {sum, (x - (sum - added)) + (y - added)};
}
#endif

// x * y + z, rounded once, of numbers whose products are neither too large nor too small by far.
ANYDML_INLINE Doubles fused_multiply_add(Doubles x, Doubles y, Doubles z) {
#if defined(ANYDML_ISA_AVX512)
  return (Doubles)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z);
#elif defined(ANYDML_ISA_AVX2)
  return (Doubles)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
#elif defined(ANYDML_VECTORS) && !defined(__aarch64__)
  // The product's error by Dekker's splitting; then all but the largest part is rounded to odd before it is
  // added (Boldo and Melquiond).
  constexpr double kSplit = 0x1p27 + 1;
  const Doubles product = x * y;
  const Doubles x_much = x * kSplit;
  const Doubles y_much = y * kSplit;
  const Doubles x_high = x_much - (x_much - x);
  const Doubles y_high = y_much - (y_much - y);
  const Doubles x_low = x - x_high;
  const Doubles y_low = y - y_high;
  const Doubles error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low;
  const DoublePair small = two_sum(z, error);
  const DoublePair large = two_sum(product, small.sum);
  const DoublePair rest = two_sum(small.error, large.error);
  const DoubleBits bits = bits_as<DoubleBits>(rest.sum);
  const auto away = (rest.error > 0.0) == (rest.sum > 0.0);
  const DoubleBits odd = (bits & 1) != 0 ? bits : away ? bits + 1 : bits - 1;
  const auto is_inexact = (rest.error > 0.0) | (rest.error < 0.0);
  return large.sum + bits_as<Doubles>(is_inexact ? odd : bits);
#elif defined(__aarch64__)
  const auto x2 = bits_as<std::array<float64x2_t, 2>>(x);
  const auto y2 = bits_as<std::array<float64x2_t, 2>>(y);
  auto z2 = bits_as<std::array<float64x2_t, 2>>(z);
  for (size_t i = 0; i < 2; ++i) z2[i] = vfmaq_f64(z2[i], x2[i], y2[i]);
  return bits_as<Doubles>(z2);
#else
  return std::fma(x, y, z);
#endif
}

// 2^t of t <= 0, as exp2_of, and exactly 0 where there are fewer than -1023: there all bits of 1 are taken
// away.
ANYDML_INLINE Doubles small_exp2_of(Doubles t) {
  t = lane_max<double>(Doubles{} - 1023.0, t);
  const auto fused = [](Doubles x, Doubles y, double z) { return fused_multiply_add(x, y, Doubles{} + z); };
  const auto constant = [](double x) { return Doubles{} + x; };
  const Doubles shifted = t + kRounds;
  const Doubles f = t - (shifted - kRounds);
  const Doubles f2 = f * f;
  // q as `exponential` has it.
  const Doubles q01 = fused(f, constant(0x1.ebfbe0460cc0bp-3), 0x1.62e42fefa39efp-1);
  const Doubles q23 = fused(f, constant(0x1.3b2a1b516ca7fp-7), 0x1.c6b08d884527ep-5);
  const Doubles q45 = fused(f, constant(0x1.44401fae30efep-13), 0x1.5d879e9962406p-10);
  const Doubles q456 = fused_multiply_add(f2, constant(0x1.00a594fd058bap-16), q45);
  const Doubles q = fused_multiply_add(q456, f2 * f2, fused_multiply_add(q23, f2, q01));
  return bits_as<Doubles>(bits_as<DoubleBits>(fused(f, q, 1)) + (bits_as<DoubleBits>(shifted) << 52));
}

ANYDML_ISA_END
