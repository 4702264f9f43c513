// What accumulators become at the end, for each function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "reduce/kernel.h"
#include "reduce/lanes.h"
#include "reduce/operations.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Stores numbers of A, each rounded to an element of T. All NaNs are the same: which one an addition gives
// depends on the order that a compiler chose for its operands.
template <class T, class A, class V, class Values>
void store_all(int64_t columns, std::byte* out, int64_t out_step, const Values& values) {
  constexpr int64_t kLanes = sizeof(V) / sizeof(A);
  constexpr int64_t kSize = sizeof(T);
  const V nan = V{} + std::numeric_limits<A>::quiet_NaN();
  for (int64_t i = 0; i < columns; i += kLanes) {
    const V number = values(i);
    const V y = number == number ? number : nan;
    if (out_step == kSize && i + kLanes <= columns) {
      store_numbers<T, A>(out + i * kSize, y);
      continue;
    }
    std::byte each[sizeof(V)];
    store_numbers<T, A>(each, y);
    for (int64_t k = 0; k < std::min(kLanes, columns - i); ++k) {
      std::memcpy(out + (i + k) * out_step, each + k * kSize, kSize);
    }
  }
}
template <class T, class Values>
void store_doubles(int64_t columns, std::byte* out, int64_t out_step, const Values& values) {
  store_all<T, double, Doubles>(columns, out, out_step, values);
}

// Arrays of accumulators are longer by a vector than there are columns.
template <class A>
ANYDML_INLINE Doubles doubles_at(const std::byte* array, int64_t i) {
  return load_numbers<A, double, Doubles>(array + i * static_cast<int64_t>(sizeof(A)));
}

// x / y in single precision, rounded to odd, from which halves are rounded as from the quotient: the
// remainder of the nearest one, which is exact, tells on which side it is.
ANYDML_INLINE Singles divide_round_to_odd(Singles x, Singles y) {
  using Bits = Lanes<uint32_t, static_cast<int>(sizeof(Singles) / sizeof(float))>;
  const Singles quotient = x / y;
  const Singles rest = multiply_add(-quotient, y, x);
  const Bits bits = bits_as<Bits>(quotient);
  const auto away = (rest > 0.0f) == (quotient > 0.0f);
  const Bits odd = (bits & 1) != 0 ? bits : away ? bits + 1 : bits - 1;
  return bits_as<Singles>((rest > 0.0f) | (rest < 0.0f) ? odd : bits);
}

template <class Op>
void finish_sum(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                int64_t out_step) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  const auto count = static_cast<double>(parameters.elements);
  const auto sums = [&](int64_t i) { return doubles_at<A>(strip.arrays[0], i); };
  // Halves are rounded from singles as from doubles: roots too, as singles have twice as many digits and two
  // more.
  const auto singles = [&](int64_t i) {
    return load_numbers<float, float, Singles>(strip.arrays[0] + i * static_cast<int64_t>(sizeof(float)));
  };
  const auto store_singles = [&](const auto& values) {
    store_all<T, float, Singles>(columns, out, out_step, values);
  };
  constexpr bool kHalves = std::is_same_v<T, Half>;
  switch (parameters.finish) {
    case Finish::kAverage:
      if constexpr (kHalves) {
        if (parameters.elements <= 1 << 24) {
          const Singles counts = Singles{} + static_cast<float>(parameters.elements);
          return store_singles([&](int64_t i) { return divide_round_to_odd(singles(i), counts); });
        }
      }
      return store_doubles<T>(columns, out, out_step, [&](int64_t i) { return sums(i) / count; });
    case Finish::kRoot:
      if constexpr (kHalves) {
        return store_singles([&](int64_t i) { return square_root<float>(singles(i)); });
      }
      return store_doubles<T>(columns, out, out_step,
                              [&](int64_t i) { return square_root<double>(sums(i)); });
    case Finish::kLogarithm:
      return store_doubles<T>(columns, out, out_step, [&](int64_t i) { return log_of(sums(i)); });
    default:
      if constexpr (kHalves) return store_singles(singles);
      return store_doubles<T>(columns, out, out_step, sums);
  }
}

template <class Op>
void finish_values(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                   int64_t out_step) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  constexpr int64_t kSize = sizeof(T);
  const A mask = bits_as<A>(static_cast<SignedOf<A>>(parameters.mask));
  const auto element = [](auto number, auto flips) {
    if constexpr (requires { Op::kLeast; }) return Op::element(number, flips);
    return number;
  };
  int64_t i = 0;
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = kLanesOf<A>;
  using V = Lanes<A, kLanesOf<A>>;
  using Mask = Lanes<SignedOf<A>, kLanesOf<A>>;
  const V masks = bits_as<V>(Mask{} + static_cast<SignedOf<A>>(parameters.mask));
  for (; out_step == kSize && i + kLanes <= columns; i += kLanes) {
    const V v = load_lanes_at<V>(strip.arrays[0] + i * static_cast<int64_t>(sizeof(A)));
    store_lanes<T, A>(out + i * kSize, element(v, masks));
  }
#endif
  for (; i < columns; ++i) {
    const A value = load<A>(strip.arrays[0] + i * static_cast<int64_t>(sizeof(A)));
    narrow<T, A>(out + i * out_step, element(value, mask));
  }
}

// m * 2^e, beyond whose limits every element is infinite, or 0.
template <class Op>
void finish_product(const ReduceParameters&, const Strip& strip, int64_t columns, std::byte* out,
                    int64_t out_step) {
  store_doubles<typename Op::Element>(columns, out, out_step, [&](int64_t i) {
    auto state = Op::template load<Doubles>(strip, i);
    Op::settle(state);
    using Exponents = Lanes<int64_t, sizeof(Doubles) / sizeof(double)>;
    constexpr int64_t kMost = 600;
    auto e = bits_as<Exponents>(state.e);
    e = e > kMost ? Exponents{} + kMost : e < -kMost ? Exponents{} - kMost : e;
    return state.m * bits_as<Doubles>((e + 1023) << 52);
  });
}

// m + ln(1 + rest), over all but one of the largest, m.
template <class Op>
void finish_exponentials(const ReduceParameters&, const Strip& strip, int64_t columns, std::byte* out,
                         int64_t out_step) {
  store_doubles<typename Op::Element>(columns, out, out_step, [&](int64_t i) {
    const auto state = Op::template load<Doubles>(strip, i);
    const Doubles rest = state.sum + (state.count - 1.0);
    const Doubles logarithm = rest < 1.0 ? log1p_of(rest) : log_of(rest + 1.0);
    return state.largest + logarithm;
  });
}

}  // namespace
ANYDML_ISA_END
