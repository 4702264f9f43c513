// Powers of doubles whose exponents are mostly quarters of integers, as LOCAL_RESPONSE_NORMALIZATION has
// them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "normalization/wide.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN

// x^e of positive numbers by square roots and products, `quarters` being |4 * e|.
ANYDML_INLINE Doubles power_by_roots(Doubles x, double e, uint32_t quarters) {
  Doubles power = Doubles{} + 1.0;
  const Doubles root = square_root<double>(x);
  if ((quarters & 1) != 0) power = square_root<double>(root);
  if ((quarters & 2) != 0) power = power * root;
  for (uint32_t n = quarters >> 2; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = power * x;
    x = x * x;
  }
  return e < 0 ? 1.0 / power : power;
}

// x^(-1/4) of normal numbers within some units of the last place, without roots or quotients: an estimate by
// the exponent, whose r = 1 - x * y^4 is below 1/8, and twice y * (1 - r)^(-1/4) as a polynomial.
ANYDML_INLINE Doubles inverse_fourth_root(Doubles x) {
  auto y = bits_as<Doubles>(uint64_t{0x4feb020c49ba5e00} - (bits_as<DoubleBits>(x) >> 2));
  const auto rest = [&] {
    const Doubles square = y * y;
    return 1.0 - x * square * square;
  };
  Doubles r = rest();
  y = y *
      (0.9999971943160056 + r * (0.24999056736249392 + r * (0.15771693436109735 + r * 0.11913766908048185)));
  r = rest();
  return y + y * (r * (0.25 + r * 0.15625));
}

// x^(-quarters / 4)
ANYDML_INLINE Doubles power_by_inverse(Doubles x, uint32_t quarters) {
  const Doubles root = inverse_fourth_root(x);
  const Doubles square = root * root;
  Doubles power = (quarters & 1) != 0 ? root : Doubles{} + 1.0;
  if ((quarters & 2) != 0) power = power * square;
  x = square * square;
  for (uint32_t n = quarters >> 2; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = power * x;
    x = x * x;
  }
  return power;
}

// x^e of positive numbers, and x^(e - 1) where it is wanted: by roots and products, which are exact to the
// last bits, where 4 * e is an integer of few bits. `are_normal` are numbers that are neither 0 nor next to
// it.
inline void raise(double* run, int64_t count, double e, bool are_normal, double* less) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const auto put = [&](const auto& power) {
    for (int64_t i = 0; i < count; i += kDoubleLanes) {
      Doubles x;
      std::memcpy(&x, run + i, sizeof(x));
      const Doubles y = power(x);
      std::memcpy(run + i, &y, sizeof(y));
      if (less == nullptr) continue;
      x = y / x;
      std::memcpy(less + i, &x, sizeof(x));
    }
  };
  const double quarters = std::fabs(4 * e);
  if (!(quarters < 64 && std::floor(quarters) == quarters)) {
    // The exponential reaches no infinity, and no 0, of double precision.
    const double of_zero = e < 0 ? kInfinite : 0.0;
    const double of_infinity = e < 0 ? 0.0 : kInfinite;
    return put([&](Doubles x) {
      const Doubles power = constant_pow_of(x, e);
      const Doubles finite = x == kInfinite ? Doubles{} + of_infinity : power;
      return x == 0.0 ? Doubles{} + of_zero : finite;
    });
  }
  const auto rest = static_cast<uint32_t>(quarters);
  if (e > 0 || rest % 4 == 0 || !are_normal) {
    return put([&](Doubles x) { return power_by_roots(x, e, rest); });
  }
  put([&](Doubles x) {
    const Doubles power = power_by_inverse(x, rest);
    return x == kInfinite ? Doubles{} : power;
  });
}

ANYDML_ISA_END
