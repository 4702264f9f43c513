// Powers of local responses by the binomial series, in single precision, where a window adds little to Bias,
// as it mostly does.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "normalization/local_response.h"
#include "normalization/quarter_powers.h"
#include "normalization/sixteen.h"
#include "platform/isa.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN

// (Bias + factor * sum)^-Beta = Bias^-Beta * (1 + p(v)), v = sum * factor / Bias, p being the binomial
// series. Of v below 2^-8 a single is enough: what it is rounded by moves the power by 2^-30 of it, and so
// does what follows in the series. For gradients powers divided by their base are Bias^(-Beta - 1) * (1 +
// q(v)).
struct LittlePowers {
  float most = -1;        // the sum up to which powers are computed so; less than any where they are not
  float minus_twice = 0;  // -2 * Beta * factor / Bias
  std::array<float, 3> series{};  // terms of p(v) as powers of the sum,
  std::array<float, 3> less{};    // and those of q(v)
  float power = 1;                // that of Bias,
  float rest = 0;                 // and what a single does not hold of it

  explicit LittlePowers(const LocalResponse& shape) {
    const auto is_within = [](double x, double least, double largest) { return least <= x && x <= largest; };
    const double ratio = shape.factor / shape.bias;
    // Of what is larger nothing is little, and of less than that, but 0, singles would not hold the terms.
    if (!is_within(shape.beta, 0x1p-10, 1) || !is_within(shape.bias, 0x1p-30, 0x1p30) ||
        !(ratio == 0 || is_within(ratio, 0x1p-36, 1)))
      return;
    most = static_cast<float>(std::min(0x1p-8 / ratio, 0x1p60));
    minus_twice = static_cast<float>(-2 * shape.beta * ratio);
    const auto put = [&](double e, auto& terms) {
      double term = 1;
      for (size_t k = 0; k < terms.size(); ++k) {
        term *= (e - static_cast<double>(k)) / static_cast<double>(k + 1) * ratio;
        terms[k] = static_cast<float>(term);
      }
    };
    put(-shape.beta, series);
    put(-shape.beta - 1, less);
    alignas(64) std::array<double, kLanes> raised{shape.bias};
    raise(raised.data(), 1, -shape.beta, nullptr);
    power = static_cast<float>(raised[0]);
    rest = static_cast<float>(raised[0] - power);
  }
};

// Those powers, of which compilers would make vectors again for each one.
template <class T>
class LittlePowersOf {
 public:
  explicit LittlePowersOf(const LittlePowers& little)
      : minus_twice_(singles(little.minus_twice)),
        power_(singles(little.power)),
        rest_(singles(little.rest)) {
    for (size_t k = 0; k < kTerms; ++k) {
      series_[k] = singles(little.series[k]);
      less_[k] = singles(little.less[k]);
    }
  }

  // p and q of a sum; for halves, whose last place is 2^13 of a single's, p of two terms.
  ANYDML_INLINE Singles slope(Singles sum) const {
    return sum_of<std::is_same_v<T, Half> ? 2 : kTerms>(series_, sum);
  }
  ANYDML_INLINE Singles slope_of_less(Singles sum) const { return sum_of<kTerms>(less_, sum); }

  // x * Bias^-Beta * (1 + p)
  ANYDML_INLINE Singles times(Singles x, Singles p) const {
    if constexpr (std::is_same_v<T, Half>) {
      return multiply_add(x, p, x) * power_;
    } else {
      const auto [high, low] = times_power(x);
      return high + multiply_add(high, p, low);
    }
  }
  // (dy + (dy * p - twice * x * sum)) * Bias^-Beta, of which dy is mostly most.
  ANYDML_INLINE Singles gradient(Singles x, Singles dy, Singles p, Singles sum) const {
    const Singles more = multiply_add(dy, p, x * minus_twice_ * sum);
    if constexpr (std::is_same_v<T, Half>) {
      return (dy + more) * power_;
    } else {
      const auto [high, low] = times_power(dy);
      return high + multiply_add(more, power_, low);
    }
  }

 private:
  static constexpr size_t kTerms = 3;

  template <size_t kCount>
  ANYDML_INLINE static Singles sum_of(const Singles (&terms)[kTerms], Singles x) {
    Singles sum = terms[kCount - 1];
    ANYDML_UNROLL(4)
    for (size_t k = 1; k < kCount; ++k) sum = multiply_add(x, sum, terms[kCount - 1 - k]);
    return x * sum;
  }
  // In two singles.
  ANYDML_INLINE SinglePair times_power(Singles x) const {
    const Singles high = x * power_;
    return {high, multiply_add(x, rest_, multiply_add(x, power_, -high))};
  }

  Singles minus_twice_;
  Singles series_[kTerms];
  Singles less_[kTerms];
  Singles power_;
  Singles rest_;
};

ANYDML_ISA_END
