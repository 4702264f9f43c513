// Sums of windows along an axis.
//
// Sums of long windows take log2(size) additions each: sums of 1, 2, 4... elements are put together. They are
// no differences of running sums, so that what is small survives beside what is large, and NaN stays where it
// is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "normalization/sixteen.h"
#include "normalization/wide.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

template <class Number>
using NumbersOf = std::conditional_t<std::is_same_v<Number, double>, Doubles, Singles>;

// Sixteen numbers in registers.
template <class Number>
using Lanes16 = std::conditional_t<std::is_same_v<Number, double>, Wide, Sixteen>;
ANYDML_INLINE Wide lanes_at(const double* from) { return wide_at(from); }
ANYDML_INLINE Sixteen lanes_at(const float* from) {
  return load_sixteen<float>(reinterpret_cast<const std::byte*>(from));
}
ANYDML_INLINE void put_lanes(double* to, const Wide& x) { put_wide(to, x); }
ANYDML_INLINE void put_lanes(float* to, const Sixteen& x) {
  store_sixteen<float>(reinterpret_cast<std::byte*>(to), x);
}
// The same function of the vectors of some operands.
template <class Function, class... Operands>
ANYDML_INLINE Wide for_parts(const Function& function, const Wide& first, const Operands&... others) {
  return each_of(function, first, others...);
}
template <class Function, class... Operands>
ANYDML_INLINE Sixteen for_parts(const Function& function, const Sixteen& first, const Operands&... others) {
  return each_part(function, first, others...);
}

// Sums of windows of numbers `columns` apart, or of their squares, as they are asked for: of one number each
// where they were added before.
template <class Number>
struct WindowSums {
  using V = NumbersOf<Number>;

  const Number* from;  // of the first window
  int64_t columns;
  int64_t window;
  bool are_squared;

  // Up to kSumsAtOnce sums more are written than there are.
  void put(int64_t begin, int64_t end, Number* to) const {
    are_squared ? add_taps([](V x) ANYDML_INLINE_LAMBDA { return x * x; }, begin, end, to)
                : add_taps([](V x) ANYDML_INLINE_LAMBDA { return x; }, begin, end, to);
  }

  // Of sixteen windows; of a number of elements that a compiler may know.
  ANYDML_INLINE Lanes16<Number> at(int64_t i) const { return at(i, window); }
  template <class Count>
  ANYDML_INLINE Lanes16<Number> at(int64_t i, Count count) const {
    return are_squared ? added_taps([](V x) ANYDML_INLINE_LAMBDA { return x * x; }, from + i, count)
                       : added_taps([](V x) ANYDML_INLINE_LAMBDA { return x; }, from + i, count);
  }

  static constexpr int64_t kLanesOfV = sizeof(V) / sizeof(Number);
  static constexpr int64_t kVectors = 2 * kLanes / kLanesOfV;
  static constexpr int64_t kSumsAtOnce = kVectors * kLanesOfV;

 private:
  template <class Function, class Count>
  ANYDML_INLINE Lanes16<Number> added_taps(const Function& function, const Number* at, Count count) const {
    Lanes16<Number> sums = for_parts(function, lanes_at(at));
    const auto add = [&](int64_t k) ANYDML_INLINE_LAMBDA {
      sums = for_parts([&](V sum, V x) ANYDML_INLINE_LAMBDA { return sum + function(x); }, sums,
                       lanes_at(at + k * columns));
    };
    if constexpr (std::is_same_v<Count, int64_t>) {
      for (int64_t k = 1; k < count; ++k) add(k);
    } else {
      [&]<int... kTap>(std::integer_sequence<int, kTap...>)
          ANYDML_INLINE_LAMBDA { (add(kTap + 1), ...); }(std::make_integer_sequence<int, Count::value - 1>{});
    }
    return sums;
  }
  template <class Function>
  ANYDML_INLINE void add_taps(const Function& function, int64_t begin, int64_t end, Number* to) const {
    for (int64_t i = begin; i < end; i += kSumsAtOnce, to += kSumsAtOnce) {
      const Number* at = from + i;
      V sums[kVectors]{};
      for (int64_t k = 0; k < window; ++k, at += columns) {
        ANYDML_UNROLL(16)
        for (int64_t v = 0; v < kVectors; ++v) {
          V x;
          std::memcpy(&x, at + v * kLanesOfV, sizeof(x));
          sums[v] = sums[v] + function(x);
        }
      }
      // One by one, as all would go through memory.
      ANYDML_UNROLL(16)
      for (int64_t v = 0; v < kVectors; ++v) std::memcpy(to + v * kLanesOfV, &sums[v], sizeof(V));
    }
  }
};

// Windows below which are added where they lie.
inline constexpr int64_t kFewTaps = 8;

// The sums of rows of `columns` numbers each from `before` each to `after`; there are zeros around all rows.
template <class Number>
WindowSums<Number> sums_around(const Number* numbers, bool of_squares, int64_t all, int64_t columns,
                               int64_t before, int64_t after, std::array<std::vector<Number>, 2>& room) {
  const int64_t window = before + 1 + after;
  const int64_t first = before * columns;
  if (window < kFewTaps) return {numbers - first, columns, window, of_squares};
  const int64_t padded = first + all + after * columns;
  room[0].resize(static_cast<size_t>(padded));
  Number* const sums = room[0].data();
  numbers -= first;
  for (int64_t i = 0; i < padded; ++i) sums[i] = of_squares ? numbers[i] * numbers[i] : numbers[i];
  room[1].assign(static_cast<size_t>(all + WindowSums<Number>::kSumsAtOnce), Number{0});
  Number* const rows = room[1].data();
  int64_t done = 0;
  for (int64_t length = 1; done < window; length *= 2) {
    if ((window & length) != 0) {
      const Number* const from = sums + done * columns;
      for (int64_t i = 0; i < all; ++i) rows[i] += from[i];
      done += length;
    }
    if (done == window) break;
    // In place, as what is added lies behind; there are fewer sums of twice as many.
    const int64_t count = padded - (2 * length - 1) * columns;
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[i + length * columns];
  }
  return {rows, columns, 1, false};
}

ANYDML_ISA_END
