// Sixteen elements as doubles, in as many vectors as they take: the lanes that lines are gone along.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "normalization/statistics.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kDoubleLanes = sizeof(Doubles) / sizeof(double);
inline constexpr int64_t kParts = kLanes / kDoubleLanes;

struct Wide {
  Doubles parts[kParts];
};

// For lambdas that are called in several loops, of which a compiler would rather make functions.
#if defined(__GNUC__)
#define ANYDML_INLINE_LAMBDA __attribute__((always_inline))
#else
#define ANYDML_INLINE_LAMBDA
#endif

// The same function of each vector of some operands.
template <class Function, class... Operands>
ANYDML_INLINE Wide each_of(const Function& function, const Operands&... operands) {
  Wide y;
  ANYDML_UNROLL(16)
  for (int64_t p = 0; p < kParts; ++p) y.parts[p] = function(operands.parts[p]...);
  return y;
}
ANYDML_INLINE Wide broadcast_wide(double x) {
  Wide y;
  ANYDML_UNROLL(16)
  for (int64_t p = 0; p < kParts; ++p) y.parts[p] = Doubles{} + x;
  return y;
}
ANYDML_INLINE Wide operator+(const Wide& a, const Wide& b) {
  return each_of([](Doubles x, Doubles y) { return x + y; }, a, b);
}
ANYDML_INLINE Wide operator-(const Wide& a, const Wide& b) {
  return each_of([](Doubles x, Doubles y) { return x - y; }, a, b);
}
ANYDML_INLINE Wide operator*(const Wide& a, const Wide& b) {
  return each_of([](Doubles x, Doubles y) { return x * y; }, a, b);
}

ANYDML_INLINE Wide wide_at(const double* from) {
  Wide y;
  ANYDML_UNROLL(16)
  for (int64_t p = 0; p < kParts; ++p) std::memcpy(&y.parts[p], from + p * kDoubleLanes, sizeof(Doubles));
  return y;
}
ANYDML_INLINE void put_wide(double* to, const Wide& x) {
  // One by one, as both would go through memory.
  ANYDML_UNROLL(16)
  for (int64_t p = 0; p < kParts; ++p) std::memcpy(to + p * kDoubleLanes, &x.parts[p], sizeof(Doubles));
}

template <class T>
ANYDML_INLINE Wide load_wide_lanes(const std::byte* from) {
  Wide y;
  ANYDML_UNROLL(16)
  for (int64_t p = 0; p < kParts; ++p) {
    y.parts[p] = load_numbers<T, double, Doubles>(from + p * kDoubleLanes * static_cast<int64_t>(sizeof(T)));
  }
  return y;
}
template <class T>
ANYDML_INLINE void store_wide_lanes(std::byte* to, const Wide& x) {
  ANYDML_UNROLL(16)
  for (int64_t p = 0; p < kParts; ++p) {
    store_numbers<T, double>(to + p * kDoubleLanes * static_cast<int64_t>(sizeof(T)), x.parts[p]);
  }
}

// The lanes from `begin` to before `end`, and 0 in the others.
ANYDML_INLINE Wide some_lanes(const Wide& x, int64_t begin, int64_t end) {
  alignas(64) static constexpr std::array<double, kLanes> kNumbers{0, 1, 2,  3,  4,  5,  6,  7,
                                                                   8, 9, 10, 11, 12, 13, 14, 15};
  const auto first = static_cast<double>(begin);
  const auto last = static_cast<double>(end);
  return each_of([&](Doubles v, Doubles lane) { return (lane >= first) & (lane < last) ? v : Doubles{}; }, x,
                 wide_at(kNumbers.data()));
}

// Lanes of a vector joined with those kHalf behind them, and so on.
template <int kHalf, class Join>
ANYDML_INLINE Doubles joined_within(Doubles x, const Join& join) {
#if defined(ANYDML_VECTORS)
  if constexpr (kHalf > 0) {
    constexpr int kAll = static_cast<int>(kDoubleLanes);
    const Doubles behind = [&]<int... kLane>(std::integer_sequence<int, kLane...>) {
      return __builtin_shufflevector(x, x, ((kLane + kHalf) % kAll)...);
    }(std::make_integer_sequence<int, kAll>{});
    return joined_within<kHalf / 2>(join(x, behind), join);
  }
#endif
  return x;
}

// All lanes joined, by halves: in the first one.
template <class Join>
ANYDML_INLINE double joined(Wide x, const Join& join) {
  ANYDML_UNROLL(4)
  for (int64_t half = kParts / 2; half > 0; half /= 2) {
    ANYDML_UNROLL(16)
    for (int64_t p = 0; p < half; ++p) x.parts[p] = join(x.parts[p], x.parts[p + half]);
  }
  const Doubles all = joined_within<static_cast<int>(kDoubleLanes / 2)>(x.parts[0], join);
  double first;
  std::memcpy(&first, &all, sizeof(first));
  return first;
}

ANYDML_ISA_END
