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
  float most = -1;  // the sum up to which powers are computed so; less than any where they are not
  float per_bias = 0;
  float root = 0;   // of factor / Bias
  float twice = 0;  // 2 * Beta * factor / Bias / root
  std::array<float, 3> series{};
  std::array<float, 3> less{};
  float power = 1;  // that of Bias,
  float rest = 0;   // and what a single does not hold of it

  explicit LittlePowers(const LocalResponse& shape) {
    const auto is_within = [](double x, double least, double largest) { return least <= x && x <= largest; };
    const double ratio = shape.factor / shape.bias;
    if (!is_within(shape.beta, 0x1p-10, 1) || !is_within(shape.bias, 0x1p-30, 0x1p30) ||
        !is_within(ratio, 0, 0x1p60))
      return;
    most = static_cast<float>(std::min(0x1p-8 / ratio, 0x1p60));
    per_bias = static_cast<float>(ratio);
    root = static_cast<float>(std::sqrt(ratio));
    if (root > 0) twice = static_cast<float>(2 * shape.beta * ratio / root);
    const auto put = [](double e, auto& terms) {
      double term = 1;
      for (size_t k = 0; k < terms.size(); ++k) {
        term *= (e - static_cast<double>(k)) / static_cast<double>(k + 1);
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

  // p and q of a sum; for halves, whose last place is 2^13 of a single's, p of two terms.
  template <class T>
  ANYDML_INLINE Singles slope(Singles sum) const {
    return sum_of<std::is_same_v<T, Half> ? 2 : 3>(series, sum * per_bias);
  }
  ANYDML_INLINE Singles slope_of_less(Singles sum) const { return sum_of<3>(less, sum * per_bias); }

  // x * Bias^-Beta * (1 + p)
  template <class T>
  ANYDML_INLINE Singles times(Singles x, Singles p) const {
    if constexpr (std::is_same_v<T, Half>) {
      return multiply_add(x, p, x) * power;
    } else {
      const auto [high, low] = times_power(x);
      return high + multiply_add(high, p, low);
    }
  }
  // (x + more) * Bias^-Beta, of what is mostly less than x.
  template <class T>
  ANYDML_INLINE Singles times_sum(Singles x, Singles more) const {
    if constexpr (std::is_same_v<T, Half>) {
      return (x + more) * power;
    } else {
      const auto [high, low] = times_power(x);
      return high + multiply_add(more, singles(power), low);
    }
  }

 private:
  template <size_t kTerms>
  ANYDML_INLINE static Singles sum_of(const std::array<float, 3>& terms, Singles v) {
    Singles sum = singles(terms[kTerms - 1]);
    ANYDML_UNROLL(4)
    for (size_t k = 1; k < kTerms; ++k) sum = multiply_add(v, sum, singles(terms[kTerms - 1 - k]));
    return v * sum;
  }
  // In two singles.
  ANYDML_INLINE SinglePair times_power(Singles x) const {
    const Singles high = x * power;
    return {high, multiply_add(x, singles(rest), multiply_add(x, singles(power), -high))};
  }
};

ANYDML_ISA_END
