// Powers and roots of natural exponents, by products and Newton's method, whose bits are the same everywhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/precise_pow.h"
#include "pooling/geometry.h"

ANYDML_ISA_BEGIN
namespace {

// |x|^p, in place: by squaring from the exponent's highest bit on, so that nothing on the way is larger, or
// nearer to 0, than the power. A relative error of p units becomes one unit in the root.
ANYDML_NOINLINE inline void raise(double* numbers, int64_t count, int64_t p) {
  if (p == 1) {
    for (int64_t i = 0; i < count; ++i) numbers[i] = std::fabs(numbers[i]);
    return;
  }
  if (p == 2) {
    for (int64_t i = 0; i < count; ++i) numbers[i] *= numbers[i];
    return;
  }
  double bases[kSpan];
  for (int64_t i = 0; i < count; ++i) bases[i] = numbers[i] = std::fabs(numbers[i]);
  int bit = 62;
  while ((p >> bit & 1) == 0) --bit;
  while (bit-- > 0) {
    for (int64_t i = 0; i < count; ++i) numbers[i] *= numbers[i];
    if ((p >> bit & 1) == 0) continue;
    for (int64_t i = 0; i < count; ++i) numbers[i] *= bases[i];
  }
}

// The same of some numbers in registers.
ANYDML_INLINE Doubles power_of(Doubles x, int64_t p) {
  const Doubles base = magnitude_of<double>(x);
  Doubles power = base;
  int bit = static_cast<int>(std::bit_width(static_cast<uint64_t>(p))) - 1;
  while (bit-- > 0) {
    power = power * power;
    if ((p >> bit & 1) != 0) power = power * base;
  }
  return power;
}

// Newton's method for a p-th root of numbers of 1 and more but less than 2^p, from an estimate on:
// y + y * (m / y^p - 1) / p
inline Doubles near_roots_of(Doubles m, int64_t p) {
  const auto order = static_cast<double>(p);
  const Doubles y = constant_pow_of(m, 1.0 / order);
  Doubles power = y;
  for (int64_t i = 1; i < p; ++i) power *= y;
  return y + y * ((m / power - 1.0) / order);
}

// x^(1/p), in place: with x = 2^(k * p) * m, 1 <= m < 2^p, it is 2^k times the root of m.
ANYDML_NOINLINE inline void take_roots(double* numbers, int64_t count, int64_t p) {
  if (p == 1) return;
  constexpr int64_t kLanes = sizeof(Doubles) / sizeof(double);
  if (p == 2) {
    // By vectors, as compilers ask a scalar root for errno.
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      Doubles some;
      std::memcpy(&some, numbers + i, sizeof(some));
      some = square_root<double>(some);
      std::memcpy(numbers + i, &some, sizeof(some));
    }
    for (; i < count; ++i) numbers[i] = std::sqrt(numbers[i]);
    return;
  }
  constexpr int64_t kMost = 64;  // of larger ones the root is near 1
  const auto order = static_cast<int>(std::min(p, kMost));
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t size = std::min(kLanes, count - i);
    double lanes[kLanes];
    int exponents[kLanes]{};
    std::fill_n(lanes, kLanes, 1.0);
    for (int64_t j = 0; j < size; ++j) {
      const double x = numbers[i + j];
      if (!(x > 0) || x == std::numeric_limits<double>::infinity()) continue;
      if (p > kMost) {
        numbers[i + j] = precise_pow_of(x, 1.0 / static_cast<double>(p));
        continue;
      }
      exponents[j] = static_cast<int>(floored(std::ilogb(x), order));
      lanes[j] = std::ldexp(x, -exponents[j] * order);
    }
    if (p > kMost) continue;
    Doubles m;
    std::memcpy(&m, lanes, sizeof(m));
    const Doubles roots = near_roots_of(m, p);
    std::memcpy(lanes, &roots, sizeof(roots));
    for (int64_t j = 0; j < size; ++j) {
      // 0, infinity and NaN are roots of themselves.
      const double x = numbers[i + j];
      if (x > 0 && x < std::numeric_limits<double>::infinity()) {
        numbers[i + j] = std::ldexp(lanes[j], exponents[j]);
      }
    }
  }
}

}  // namespace
ANYDML_ISA_END
