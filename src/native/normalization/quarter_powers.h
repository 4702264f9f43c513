// Powers of doubles whose exponents are mostly quarters of integers, as LOCAL_RESPONSE_NORMALIZATION has
// them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "normalization/sixteen.h"
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

// x^(-1/4) within 2^-18: an estimate by the exponent, whose r = 1 - x * y^4 is below 1/8, and
// y * (1 - r)^(-1/4) as a polynomial.
ANYDML_INLINE Singles estimated_inverse_fourth_root(Singles x) {
  const auto y = bits_as<Singles>(uint32_t{0x4f581062} - (bits_as<SingleBits>(x) >> 2));
  const Singles square = y * y;
  const Singles r = multiply_add(-x * square, square, singles(1.0F));
  const Singles upper = multiply_add(r, singles(0.11913767F), singles(0.15771693F));
  return y * multiply_add(r, multiply_add(r, upper, singles(0.24999057F)), singles(0.9999972F));
}

// x^(-1/4) of singles: that estimate by the first term of r once more.
ANYDML_INLINE Sixteen inverse_fourth_root(const Sixteen& x) {
  return each_part(
      [](Singles v) ANYDML_INLINE_LAMBDA {
        const Singles y = estimated_inverse_fourth_root(v);
        const Singles square = y * y;
        const Singles r = multiply_add(-v * square, square, singles(1.0F));
        return multiply_add(y * singles(0.25F), r, y);
      },
      x);
}

// The exponent -3/4, as responses mostly have it: known to the compiler, which otherwise keeps powers in
// memory.
struct ThreeQuarters {
  constexpr operator uint32_t() const { return 3; }
};

// x^(-quarters / 4), of an x's fourth root's inverse.
template <class Numbers, class Quarters>
ANYDML_INLINE Numbers power_of_inverse(const Numbers& root, const Numbers& one, Quarters quarters) {
  const Numbers square = root * root;
  if constexpr (std::is_same_v<Quarters, ThreeQuarters>) return root * square;
  Numbers power = (quarters & 1) != 0 ? root : one;
  if ((quarters & 2) != 0) power = power * square;
  Numbers x = square * square;
  for (uint32_t n = quarters >> 2; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = power * x;
    x = x * x;
  }
  return power;
}

// Sixteen powers, and those divided by their base.
template <class Numbers>
struct Powers {
  Numbers of;
  Numbers less;
};

// x^(-quarters / 4) of singles from 2^-7 on; 0 of infinity.
template <class Quarters>
ANYDML_INLINE Powers<Sixteen> powers_by_inverse(const Sixteen& x, Quarters quarters) {
  constexpr float kMost = 0x1p120F;
  const Sixteen power = power_of_inverse(inverse_fourth_root(x), sixteen(1), quarters);
  const auto finite = [&](Singles v, Singles y)
                          ANYDML_INLINE_LAMBDA { return v > kMost && quarters != 0 ? Singles{} : y; };
  return {each_part(finite, x, power), {}};
}
// The same of doubles that are normal ones of single precision, within some units of the last place, without
// roots or quotients: y^quarters of that estimate y, times (1 - r)^(-quarters / 4) as a polynomial,
// r = 1 - x * y^4 being below 2^-15. Divided by x they are y^(quarters + 4) * (1 - r)^(-quarters / 4 - 1).
template <class Quarters>
ANYDML_INLINE Powers<Wide> powers_by_inverse(const Wide& x, Quarters quarters) {
  const Wide y = as_wide(each_part(
      [](Singles v) ANYDML_INLINE_LAMBDA { return estimated_inverse_fourth_root(v); }, as_sixteen(x)));
  const Wide estimate = power_of_inverse(y, broadcast_wide(1), quarters);
  const Wide fourth = y * y * (y * y);
  const Wide r = broadcast_wide(1) - x * fourth;
  const auto corrected = [&](const Wide& power, double e) ANYDML_INLINE_LAMBDA {
    return each_of([&](Doubles of, Doubles rest)
                       ANYDML_INLINE_LAMBDA { return of + of * rest * (e + rest * (e * (e + 1) / 2)); },
                   power, r);
  };
  const double e = quarters / 4.0;
  return {corrected(estimate, e), corrected(estimate * fourth, e + 1)};
}
inline constexpr double kMostOfInverse = 0x1p120;

// Whether x^e is computed so, x being such numbers: where 4 * e is a negative integer of few bits, so that
// what follows in the polynomial is below 2^-42, and roots would be taken.
inline bool is_by_inverse(double e) {
  const double quarters = -4 * e;
  return 0 < quarters && quarters < 16 && std::floor(quarters) == quarters && std::fmod(quarters, 4) != 0;
}

// x^e of positive numbers, in their place, and x^(e - 1) where it is wanted: by roots and products, which are
// exact to the last bits, where 4 * e is an integer of few bits. Up to 15 numbers behind the last one change
// too.
inline void raise(double* run, int64_t count, double e, double* less) {
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
  put([&](Doubles x) { return power_by_roots(x, e, static_cast<uint32_t>(quarters)); });
}

ANYDML_ISA_END
