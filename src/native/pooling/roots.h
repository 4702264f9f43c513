// Powers and roots of natural exponents, by products and Newton's method, whose bits are the same everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "platform/isa.h"
#include "pointwise/math.h"
#include "pointwise/precise_pow.h"
#include "pooling/geometry.h"

ANYDML_ISA_BEGIN
namespace {

// |x|^p, in place: by squaring from the exponent's highest bit on, so that nothing on the way is larger, or
// nearer to 0, than the power. A relative error of p units becomes one unit in the root.
inline void raise(double* numbers, int64_t count, int64_t p) {
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

inline double root_of(double x, int64_t p) {
  if (p == 1) return x;
  if (p == 2) return std::sqrt(x);
  if (!(x > 0) || x == std::numeric_limits<double>::infinity()) return x;
  // Of so many the root is near 1.
  constexpr int64_t kMost = 64;
  if (p > kMost) return precise_pow_of(x, 1.0 / static_cast<double>(p));
  // x = 2^(k * p) * m, 1 <= m < 2^p; Newton: y + y * (m / y^p - 1) / p
  const auto exponent = static_cast<int>(floored(std::ilogb(x), p));
  const double m = std::ldexp(x, -exponent * static_cast<int>(p));
  const Doubles near = constant_pow_of(Doubles{} + m, 1.0 / static_cast<double>(p));
  double y = 0;
  std::memcpy(&y, &near, sizeof(y));
  double power = y;
  for (int64_t i = 1; i < p; ++i) power *= y;
  y += y * ((m / power - 1.0) / static_cast<double>(p));
  return std::ldexp(y, exponent);
}

}  // namespace
ANYDML_ISA_END
