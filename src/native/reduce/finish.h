// What accumulators become at the end, for each function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// Stores doubles, each rounded to an element of T.
template <class T, class Values>
void store_doubles(int64_t columns, std::byte* out, int64_t out_step, const Values& values) {
  constexpr int64_t kLanes = sizeof(Doubles) / sizeof(double);
  constexpr int64_t kSize = sizeof(T);
  for (int64_t i = 0; i < columns; i += kLanes) {
    const Doubles y = values(i);
    if (out_step == kSize && i + kLanes <= columns) {
      store_numbers<T, double>(out + i * kSize, y);
      continue;
    }
    std::byte each[sizeof(Doubles)];
    store_numbers<T, double>(each, y);
    for (int64_t k = 0; k < std::min(kLanes, columns - i); ++k) {
      std::memcpy(out + (i + k) * out_step, each + k * kSize, kSize);
    }
  }
}

// Arrays of accumulators are longer by a vector than there are columns.
template <class A>
ANYDML_INLINE Doubles doubles_at(const std::byte* array, int64_t i) {
  return load_numbers<A, double, Doubles>(array + i * static_cast<int64_t>(sizeof(A)));
}

template <class Op>
void finish_sum(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                int64_t out_step) {
  using T = typename Op::Element;
  using A = typename Op::Number;
  const auto count = static_cast<double>(parameters.elements);
  const auto sums = [&](int64_t i) { return doubles_at<A>(strip.arrays[0], i); };
  switch (parameters.finish) {
    case Finish::kAverage:
      return store_doubles<T>(columns, out, out_step, [&](int64_t i) { return sums(i) / count; });
    case Finish::kRoot:
      return store_doubles<T>(columns, out, out_step,
                              [&](int64_t i) { return square_root<double>(sums(i)); });
    case Finish::kLogarithm:
      return store_doubles<T>(columns, out, out_step, [&](int64_t i) { return log_of(sums(i)); });
    default:
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
  int64_t i = 0;
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = kLanesOf<A>;
  using V = Lanes<A, kLanesOf<A>>;
  using Mask = Lanes<SignedOf<A>, kLanesOf<A>>;
  const V masks = bits_as<V>(Mask{} + static_cast<SignedOf<A>>(parameters.mask));
  for (; out_step == kSize && i + kLanes <= columns; i += kLanes) {
    const V v = load_lanes_at<V>(strip.arrays[0] + i * static_cast<int64_t>(sizeof(A)));
    store_lanes<T, A>(out + i * kSize, flipped<A>(v, masks));
  }
#endif
  for (; i < columns; ++i) {
    const A value = load<A>(strip.arrays[0] + i * static_cast<int64_t>(sizeof(A)));
    narrow<T, A>(out + i * out_step, flipped<A>(value, mask));
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
