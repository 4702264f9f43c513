// Sixteen elements as singles, in as many vectors as they take, and loops over lines of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "normalization/line.h"
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
ANYDML_INLINE Sixteen operator*(const Sixteen& a, const Sixteen& b) {
  return each_part([](Singles x, Singles y) ANYDML_INLINE_LAMBDA { return x * y; }, a, b);
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

// Vector i of one of a line's tensors, of which there are but some lanes: the others are elements of its
// neighbours, or copies of its last one.
template <class T>
ANYDML_INLINE Sixteen part_of_sixteen(const Line& line, int64_t i, size_t tensor = 0) {
  const Vectors& of = line.in[tensor];
  if (of.is_one) return sixteen(widen<T, float>(of.at + i * of.step));
  const std::byte* const at = of.at + i * of.step;
  if (line.back > 0) return load_sixteen<T>(at - line.back * static_cast<int64_t>(sizeof(T)));
  T some[kLanes];
  std::memcpy(some, at, static_cast<size_t>(line.lanes) * sizeof(T));
  for (int64_t k = line.lanes; k < kLanes; ++k) some[k] = some[line.lanes - 1];
  return load_sixteen<T>(reinterpret_cast<const std::byte*>(some));
}
// Writes the lanes that are the vector's own.
template <class T>
ANYDML_INLINE void put_own_part(const Line& line, int64_t i, const Sixteen& y) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  std::byte some[kLanes * sizeof(T)];
  store_sixteen<T>(some, y);
  std::memcpy(line.out + i * line.out_step, some + line.back * kItem,
              static_cast<size_t>(line.lanes * kItem));
}

// Writes result(x, at) for each vector x of the first tensor, at(k) being that of another. A row's part is
// read before anything is written, as the output may lie over the input.
template <class T, bool kColumns, class Result>
ANYDML_INLINE void map_sixteens(const Line& line, const Result& result) {
  const auto of_part = [&](int64_t i) ANYDML_INLINE_LAMBDA {
    return result(part_of_sixteen<T>(line, i),
                  [&](size_t k) ANYDML_INLINE_LAMBDA { return part_of_sixteen<T>(line, i, k); });
  };
  const bool has_last = !kColumns && line.whole < line.count;
  const Sixteen last = has_last ? of_part(line.whole) : Sixteen{};
  const std::byte* from = line.in[0].at;
  std::byte* to = line.out;
  const int64_t whole = line.whole;
  const int64_t step = line.in[0].step;
  const int64_t out_step = line.out_step;
  const int64_t ahead = line.ahead;
  for (int64_t i = 0; i < whole; ++i, from += step, to += out_step) {
    if constexpr (!kColumns) prefetch_line(from + ahead);
    store_sixteen<T>(to, result(load_sixteen<T>(from), [&](size_t k) ANYDML_INLINE_LAMBDA {
                       const Vectors& of = line.in[k];
                       const std::byte* const at = of.at + i * of.step;
                       return of.is_one ? sixteen(widen<T, float>(at)) : load_sixteen<T>(at);
                     }));
  }
  if (has_last) return put_own_part<T>(line, line.whole, last);
  for (int64_t i = whole; i < line.count; ++i) put_own_part<T>(line, i, of_part(i));
}

ANYDML_ISA_END
