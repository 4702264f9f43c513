// Powers that become integers: in double-double arithmetic, as a power next to an integer is truncated to
// that integer or to the one below it. Within 2^-90 of the result before it is rounded to a double.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// An unevaluated sum, low being less than the last place of high.
struct DoublePair {
  double high;
  double low;
};

// Knuth's two-sum, and Dekker's product by Veltkamp's splitting: sum and product with their rounding errors.
inline DoublePair two_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}
inline DoublePair two_product(double a, double b) {
  constexpr double kSplit = 0x1p27 + 1;
  const double product = a * b;
  const double a_high = a * kSplit - (a * kSplit - a);
  const double b_high = b * kSplit - (b * kSplit - b);
  const double a_low = a - a_high;
  const double b_low = b - b_high;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}
inline DoublePair sum_of(DoublePair a, DoublePair b) {
  const DoublePair high = two_sum(a.high, b.high);
  return two_sum(high.high, high.low + (a.low + b.low));
}
inline DoublePair product_of(DoublePair a, DoublePair b) {
  const DoublePair high = two_product(a.high, b.high);
  return two_sum(high.high, high.low + (a.high * b.low + a.low * b.high));
}
inline DoublePair quotient_of(DoublePair a, DoublePair b) {
  const double first = a.high / b.high;
  const DoublePair rest = sum_of(a, product_of({-first, 0}, b));
  return two_sum(first, rest.high / b.high);
}

inline constexpr DoublePair kLn2Pair{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// x = m * 2^k, sqrt(1/2) <= m < sqrt(2); ln x = k * ln 2 + 2 * (s + s^3 / 3 + s^5 / 5 + ...), s = (m - 1) /
// (m + 1)
inline DoublePair log_pair_of(double x) {
  int k = 0;
  double m = std::frexp(x, &k);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --k;
  }
  const DoublePair s = quotient_of(two_sum(m, -1.0), two_sum(m, 1.0));
  const DoublePair z = product_of(s, s);
  // The terms from s^21 on are less than 2^-50 of the sum.
  double tail = 0;
  for (int i = 33; i >= 21; i -= 2) tail = tail * z.high + 1.0 / i;
  DoublePair sum{tail, 0};
  for (int i = 19; i >= 1; i -= 2) sum = sum_of(product_of(sum, z), quotient_of({1, 0}, {double(i), 0}));
  const DoublePair log_m = product_of(sum, {2 * s.high, 2 * s.low});
  return sum_of(product_of({double(k), 0}, kLn2Pair), log_m);
}

// e^t = 2^n * e^r; e^r - 1 by its series at r / 64, squared six times: (1 + p)^2 - 1 = 2p + p^2
inline double exp_of_pair(DoublePair t) {
  const double n = std::rint(t.high / kLn2Pair.high);
  const DoublePair r = sum_of(t, product_of({-n, 0}, kLn2Pair));
  const DoublePair part{r.high / 64, r.low / 64};
  DoublePair p{0, 0};
  for (int i = 11; i >= 1; --i) p = quotient_of(product_of(sum_of(p, {1, 0}), part), {double(i), 0});
  for (int i = 0; i < 6; ++i) p = sum_of({2 * p.high, 2 * p.low}, product_of(p, p));
  const DoublePair power = sum_of({1, 0}, p);
  return std::ldexp(power.high, static_cast<int>(n));
}

// x^e as the C library has it, but infinity from 2^100 on and 0 up to 2^-100.
inline double precise_pow_of(double x, double e) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double magnitude = std::fabs(x);
  if (e == 0 || x == 1) return 1;
  if (x != x || e != e) return kNone;
  const bool is_whole = std::rint(e) == e;
  if (x < 0 && !is_whole && magnitude < kInfinite) return kNone;
  const double sign = std::signbit(x) && is_whole && std::fmod(e, 2) != 0 ? -1 : 1;
  if (magnitude == 1) return sign;
  if (magnitude == 0 || magnitude == kInfinite) return sign * ((magnitude == 0) == (e < 0) ? kInfinite : 0);
  // By the exponents alone: 2^(k - 1) <= |x| < 2^k.
  constexpr double kMost = 100;
  int k = 0;
  std::frexp(magnitude, &k);
  const double least = e * (e > 0 ? k - 1 : k);
  const double most = e * (e > 0 ? k : k - 1);
  if (least > kMost || most < -kMost) return sign * (most > 0 ? kInfinite : 0);
  const DoublePair log = product_of(log_pair_of(magnitude), {e, 0});
  if (!(std::fabs(log.high) < kMost * kLn2Pair.high)) return sign * (log.high > 0 ? kInfinite : 0);
  return sign * exp_of_pair(log);
}

ANYDML_ISA_END
