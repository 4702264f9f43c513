// Sixteen elements as singles, in as many vectors as they take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "normalization/powers.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN

inline double first_of(Doubles x) {
  double first;
  std::memcpy(&first, &x, sizeof(first));
  return first;
}

inline float first_of(Singles x) {
  float first;
  std::memcpy(&first, &x, sizeof(first));
  return first;
}

using SixteenSingles = std::array<float, kLanes>;

// The same numbers in vectors.
struct Sixteen {
  Singles parts[kSingleParts];
};
// The same function of each vector of some operands.
template <class Function, class... Operands>
ANYDML_INLINE Sixteen each_part(const Function& function, const Operands&... operands) {
  Sixteen y;
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) y.parts[p] = function(operands.parts[p]...);
  return y;
}
ANYDML_INLINE Sixteen sixteen(float value) {
  return each_part([&](Singles x) ANYDML_INLINE_LAMBDA { return x + value; }, Sixteen{});
}
template <class T>
ANYDML_INLINE Sixteen load_sixteen(const std::byte* from) {
  Sixteen y;
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) {
    y.parts[p] = load_numbers<T, float, Singles>(from + p * kSingleLanes * static_cast<int64_t>(sizeof(T)));
  }
  return y;
}
template <class T>
ANYDML_INLINE void store_sixteen(std::byte* to, const Sixteen& x) {
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) {
    store_numbers<T, float, Singles>(to + p * kSingleLanes * static_cast<int64_t>(sizeof(T)), x.parts[p]);
  }
}
ANYDML_INLINE SixteenSingles numbers_of(const Sixteen& x) { return bits_as<SixteenSingles>(x); }
// By way of memory, which takes fewer instructions than to take vectors apart.
ANYDML_INLINE Wide as_wide(const Sixteen& x) {
  const SixteenSingles numbers = numbers_of(x);
  return load_wide_lanes<float>(reinterpret_cast<const std::byte*>(numbers.data()));
}
ANYDML_INLINE Sixteen as_sixteen(const Wide& x) {
#if defined(ANYDML_VECTORS)
  // Not by way of memory, where a vector would be loaded of two that were just stored.
  constexpr int kAll = static_cast<int>(kSingleLanes);
  Sixteen y;
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) {
    const auto low = to_singles(x.parts[2 * p]);
    const auto high = to_singles(x.parts[2 * p + 1]);
    y.parts[p] = [&]<int... kLane>(std::integer_sequence<int, kLane...>) ANYDML_INLINE_LAMBDA {
      return __builtin_shufflevector(low, high, kLane...);
    }(std::make_integer_sequence<int, kAll>{});
  }
  return y;
#else
  SixteenSingles numbers;
  store_wide_lanes<float>(reinterpret_cast<std::byte*>(numbers.data()), x);
  return bits_as<Sixteen>(numbers);
#endif
}
ANYDML_INLINE Sixteen lane_numbers() {
  return bits_as<Sixteen>(SixteenSingles{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
}

ANYDML_ISA_END
