// SWISH in single precision, within 1 unit in the last place of the exact result; with the same bits on every
// machine, as the functions of singles.h.
#pragma once

#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// x / (1 + y), y = e^-t of t = x * k in two parts, for k from 2^-16 to 2^16: the quotient with a step of
// Newton's method, so that it is rounded about once. Where y is next to the largest single or beyond, and
// where x is not finite, in double precision.
ANYDML_INLINE Singles swish_of(Singles x, float k) {
  constexpr float kLeast = -86;
  const Singles t = x * k;
  const PowerAndPart e = power_and_part<127>(-lane_min<float>(singles(60), t));
  const Singles power = e.power * bits_as<Singles>((e.bits & ~15u) << 19);  // exact
  const Singles y = multiply_add(power, e.part, power);
  Singles y_low = multiply_add(power, e.part, power - y);
  if (k != 1.0f) {
    const Singles t_low =
        lane_max<float>(singles(-1), lane_min<float>(singles(1), multiply_add(x, singles(k), -t)));
    y_low = multiply_add(-t_low, y, y_low);
  }
  const SinglePair sum = fast_two_sum(lane_max<float>(singles(1), y), lane_min<float>(singles(1), y));
  const Singles rough = 1.0f / sum.high;
  const Singles quotient = x * rough;
  // The sign of 0 is that of x.
  const Singles more = multiply_add(quotient, sum.low + y_low, multiply_add(quotient, sum.high, -x));
  const Singles finite = multiply_add(-more, rough, quotient);
  if (all_between(t, kLeast, std::numeric_limits<float>::infinity())) [[likely]]
    return finite;
  const auto is_right = (t > kLeast) & (finite == finite);
  const auto of_doubles = [k](Doubles a) {
    const auto is_0 = (magnitude_of<double>(a) == kInfinity) & (a * k < 0.0);
    return is_0 ? Doubles{} : swish_of(a, k);
  };
  return right_or_by_doubles(is_right, finite, of_doubles, x);
}

ANYDML_ISA_END
