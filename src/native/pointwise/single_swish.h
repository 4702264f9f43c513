// SWISH in single precision, within 1 unit in the last place of the exact result; with the same bits on every
// machine, as the functions of singles.h.
#pragma once

#include <cstdint>

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
  // -t = n * ln 2 - r, as in single_exponential.
  const Singles v = lane_min<float>(singles(60), t);
  const Singles shifted = multiply_add(v + 0.059f, singles(-0x1.715476p+0f), singles(kShift));
  const Singles n = shifted - kShift;
  const Singles most = multiply_add(n, singles(kLn2High), v);  // exact
  const Singles r = multiply_add(n, singles(kLn2Low), most);
  const Singles r2 = r * r;
  const Singles q = expm1_quotient(-r, r2);
  const Singles part = multiply_add(q, r2, -r);
  const Singles part_low = multiply_add(q, r2, -(r + part));
  const auto scale = bits_as<Singles>((bits_as<SingleBits>(shifted) + 127) << 23);
  const Singles y = multiply_add(scale, part, scale);
  Singles y_low = multiply_add(scale, part_low, multiply_add(scale, part, scale - y));
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
  const auto is_right = (t > kLeast) & (finite == finite);
  const auto of_doubles = [k](Doubles a) {
    const auto is_0 = (magnitude_of<double>(a) == kInfinity) & (a * k < 0.0);
    return is_0 ? Doubles{} : swish_of(a, k);
  };
  return right_or_by_doubles(is_right, finite, of_doubles, x);
}

ANYDML_ISA_END
