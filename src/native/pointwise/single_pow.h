// Powers in single precision, within 1 unit in the last place of the exact result; with the same bits on
// every machine, as those of singles.h. Those that singles can hold are exact: what is rounded is within a
// quarter of a unit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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

ANYDML_NOINLINE inline void pow_by_doubles(const float* x, const float* e, float* y) {
  for (size_t i = 0; i < sizeof(Singles) / sizeof(float); i += sizeof(Doubles) / sizeof(double)) {
    const auto a = load_numbers<float, double, Doubles>(reinterpret_cast<const std::byte*>(x + i));
    const auto b = load_numbers<float, double, Doubles>(reinterpret_cast<const std::byte*>(e + i));
    store_numbers<float, double>(reinterpret_cast<std::byte*>(y + i), pow_of(a, b));
  }
}

// Numbers that are not above 0, subnormal ones, and what is not finite go by double precision.
ANYDML_INLINE Singles pow_of(Singles x, Singles e) {
  const Singles y = pow_of_normal(x, e);
  const auto is_right = is_normal_above_0(x) & (y == y);
  if (all_of<float>(is_right)) [[likely]]
    return y;
  using Numbers = std::array<float, sizeof(Singles) / sizeof(float)>;
  const auto xs = bits_as<Numbers>(x);
  const auto es = bits_as<Numbers>(e);
  Numbers ys;
  pow_by_doubles(xs.data(), es.data(), ys.data());
  return is_right ? y : bits_as<Singles>(ys);
}

ANYDML_ISA_END
