// Powers in single precision, within 1 unit in the last place of the exact result; with the same bits on
// every machine, as those of singles.h. Those that singles can hold are exact: what is rounded is within a
// quarter of a unit.
#pragma once

#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/rounding.h"
#include "pointwise/single_log.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// x^e = e^(e * ln x), of normal numbers x above 0; NaN where e is not finite, but for what overflows as well.
ANYDML_INLINE Singles pow_of_normal(Singles x, Singles e) {
  const SinglePair log = log_pair_of_normal(x);
  const Singles product = e * log.high;
  const Singles t = lane_max<float>(singles(-105), lane_min<float>(singles(90), product));
  // Of a product beyond these it is what is left, and is as large.
  const Singles rest = multiply_add(e, log.low, multiply_add(e, log.high, -t));
  return exp_of_sum(t, lane_max<float>(singles(-1), lane_min<float>(singles(1), rest)));
}

// Of subnormal numbers, and of what is not finite, in double precision; in the place of these, and of 0, 1 is
// computed meanwhile, as what underflows takes long. A number below 0 gives the sign of an odd e, and NaN
// where e is no integer.
ANYDML_INLINE Singles pow_of(Singles x, Singles e) {
  const Singles magnitude = magnitude_of<float>(x);
  const auto is_normal = is_normal_above_0(magnitude);
  const Singles power = pow_of_normal(is_normal ? magnitude : singles(1), e);
  if (all_of<float>(is_normal & (power == power) & (x > 0.0f))) [[likely]]
    return power;
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Singles half = e * 0.5f;
  const auto is_whole = rounded_to_even<float>(e) == e;
  const auto is_odd = is_whole & (rounded_to_even<float>(half) != half);
  const Singles of_0 = e > 0.0f ? Singles{} : e < 0.0f ? singles(kInfinite) : singles(1);
  const Singles unsigned_y = x == 0.0f ? of_0 : power;
  const Singles signed_y = is_odd ? with_sign_of<float>(unsigned_y, x) : unsigned_y;
  const Singles y =
      (x < 0.0f) & (is_whole == 0) ? singles(std::numeric_limits<float>::quiet_NaN()) : signed_y;
  const auto is_right = (is_normal | (x == 0.0f)) & (power == power);
  return right_or_by_doubles(is_right, y, [](Doubles a, Doubles b) { return pow_of(a, b); }, x, e);
}

ANYDML_ISA_END
