// What local responses and their gradients are computed of, and the powers of their sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "normalization/quarter_powers.h"
#include "normalization/runs.h"
#include "normalization/sixteen.h"
#include "normalization/wide.h"
#include "normalization/window_sums.h"
#include "platform/isa.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

struct LocalResponse {
  bool is_across;
  int64_t before;
  int64_t after;
  double factor;  // Alpha / LocalSize
  double beta;
  double bias;
};

// Whether responses of halves are within single precision, and powers those that it has: what is raised is
// then between 2^-7 and 2^100, or not finite, as squares are below 2^32.
inline bool are_singles_enough(const LocalResponse& shape) {
  const double quarters = 4 * shape.beta;
  const bool has_power = 0 <= quarters && quarters < 64 && std::floor(quarters) == quarters;
  return has_power && 0x1p-7 <= shape.bias && shape.bias <= 0x1p60 && 0 <= shape.factor &&
         shape.factor <= 0x1p30;
}

ANYDML_INLINE bool are_between(const Sixteen& x, float above, float below) {
  bool are = true;
  for (int64_t p = 0; p < kSingleParts; ++p) are = are && all_between(x.parts[p], above, below);
  return are;
}

// The largest lane of sixteen singles or doubles at a time, NaN left out: beside one all others count.
template <class Number>
class Largest {
  using V = NumbersOf<Number>;

 public:
  ANYDML_INLINE Largest()
      : lanes_(for_parts([](V x) ANYDML_INLINE_LAMBDA { return x - std::numeric_limits<Number>::infinity(); },
                         Lanes16<Number>{})) {}
  ANYDML_INLINE void add(const Lanes16<Number>& x) {
    lanes_ = for_parts([](V a, V b) ANYDML_INLINE_LAMBDA { return lane_max<Number>(a, b); }, x, lanes_);
  }
  Number of_all() const {
    alignas(64) Number lanes[kLanes];
    put_lanes(lanes, lanes_);
    return *std::max_element(lanes, lanes + kLanes);
  }
  // Of singles: false, too, where a lane had nothing but NaN.
  ANYDML_INLINE bool is_below(float most) const {
    return are_between(lanes_, -std::numeric_limits<float>::infinity(), most);
  }

 private:
  Lanes16<Number> lanes_;
};

// Powers s^-Beta, s = Bias + factor * sum, and those divided by s for gradients: sixteen at a time, all in
// registers. Sums come before powers, as chains of both are longer than a processor sees ahead.
class PowersOfSums {
 public:
  PowersOfSums(const LocalResponse& shape, bool is_gradient)
      : shape_(shape),
        is_gradient_(is_gradient),
        quarters_(static_cast<uint32_t>(std::clamp(4 * shape.beta, 0.0, 64.0))),
        is_by_inverse_(is_by_inverse(-shape.beta) && shape.factor >= 0 &&
                       shape.bias >= std::numeric_limits<float>::min()) {}

  // Calls put(i, powers) for each sixteenth i below `count`, which is kRun at most, of sum(i) in double
  // precision. All lanes count, behind the last one too.
  template <class Sum, class Put>
  ANYDML_INLINE void for_doubles(int64_t count, const Sum& sum, const Put& put) const {
    alignas(64) double s[kRun + kLanes];
    const Wide bias = broadcast_wide(shape_.bias);
    const Wide factor = broadcast_wide(shape_.factor);
    Largest<double> most;
    for (int64_t i = 0; i < count; i += kLanes) {
      const Wide those = bias + factor * sum(i);
      put_wide(s + i, those);
      most.add(those);
    }
    alignas(64) double less[kRun + kLanes];
    put_powers(s, count, most.of_all(), less);
    for (int64_t i = 0; i < count; i += kLanes) put(i, Powers<Wide>{wide_at(s + i), wide_at(less + i)});
  }

  // Likewise in single precision, where that is enough.
  template <class Sum, class Put>
  ANYDML_INLINE void for_singles(int64_t count, const Sum& sum, const Put& put) const {
    alignas(64) float s[kRun + kLanes];
    const auto bias = static_cast<float>(shape_.bias);
    const auto factor = static_cast<float>(shape_.factor);
    for (int64_t i = 0; i < count; i += kLanes)
      put_lanes(s + i, each_part([&](Singles of) ANYDML_INLINE_LAMBDA { return singles(bias) + factor * of; },
                                 sum(i)));
    by_inverse(s, count, put);
  }

 private:
  // In the place of s; one function for all that sums are made of.
  ANYDML_NOINLINE void put_powers(double* s, int64_t count, double most, double* less) const {
    if (!is_by_inverse_ || most > kMostOfInverse)
      return raise(s, (count + kLanes - 1) / kLanes * kLanes, -shape_.beta, is_gradient_ ? less : nullptr);
    const bool is_gradient = is_gradient_;
    by_inverse(s, count, [&](int64_t i, const Powers<Wide>& powers) ANYDML_INLINE_LAMBDA {
      put_wide(s + i, powers.of);
      if (is_gradient) put_wide(less + i, powers.less);
    });
  }

  template <class S, class Put>
  ANYDML_INLINE void by_inverse(const S* s, int64_t count, const Put& put) const {
    if (quarters_ == ThreeQuarters{}) {
      for (int64_t i = 0; i < count; i += kLanes) put(i, powers_by_inverse(lanes_at(s + i), ThreeQuarters{}));
    } else {
      for (int64_t i = 0; i < count; i += kLanes) put(i, powers_by_inverse(lanes_at(s + i), quarters_));
    }
  }

  LocalResponse shape_;
  bool is_gradient_;
  uint32_t quarters_;  // 4 * Beta, where it counts
  bool is_by_inverse_;
};

ANYDML_ISA_END
