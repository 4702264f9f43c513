// SOFTMAX and LOG_SOFTMAX of lines: powers and results in single precision, sums in double precision.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "normalization/line.h"
#include "normalization/powers.h"
#include "normalization/sixteen.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN

// In rows with the lowest value in lanes that are not the vector's own.
template <class T, bool kColumns>
ANYDML_INLINE Sixteen own_part(const Line& line, int64_t i) {
  const Sixteen x = part_of_sixteen<T>(line, i);
  if constexpr (kColumns) return x;
  const auto begin = static_cast<float>(line.back);
  const auto end = static_cast<float>(line.back + line.lanes);
  return each_part(
      [&](Singles v, Singles lane) ANYDML_INLINE_LAMBDA {
        return (lane >= begin) & (lane < end) ? v : singles(-std::numeric_limits<float>::infinity());
      },
      x, lane_numbers());
}
// Calls body(i, x) for each vector.
template <class T, bool kColumns, class Body>
ANYDML_INLINE void for_sixteens(const Line& line, const Body& body) {
  const std::byte* at = line.in[0].at;
  const int64_t step = line.in[0].step;
  const int64_t whole = line.whole;
  for (int64_t i = 0; i < whole; ++i, at += step) body(i, load_sixteen<T>(at));
  for (int64_t i = whole; i < line.count; ++i) body(i, own_part<T, kColumns>(line, i));
}

// All lanes joined, by halves, in each lane.
template <int kHalf, class Join>
ANYDML_INLINE Singles joined_singles(Singles x, const Join& join) {
#if defined(ANYDML_VECTORS)
  if constexpr (kHalf > 0) {
    constexpr int kAll = static_cast<int>(kSingleLanes);
    return joined_singles<kHalf / 2>(join(x, shuffled(x, x, [](int lane) { return (lane + kHalf) % kAll; })),
                                     join);
  }
#endif
  return x;
}

// The largest of each column, or of the line in all lanes. Of a NaN and a number, the number.
template <class T, bool kColumns>
ANYDML_INLINE Sixteen largest_of(const Line& line) {
  constexpr size_t kChains = 4;  // as one would wait for itself
  const auto larger = [](Singles x, Singles y) ANYDML_INLINE_LAMBDA { return lane_max<float>(x, y); };
  Sixteen most[kChains];
  std::fill_n(most, kChains, sixteen(-std::numeric_limits<float>::infinity()));
  const std::byte* at = line.in[0].at;
  const int64_t step = line.in[0].step;
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kChains) <= line.whole; i += kChains) {
#pragma GCC unroll 4
    for (size_t k = 0; k < kChains; ++k, at += step)
      most[k] = each_part(larger, load_sixteen<T>(at), most[k]);
  }
  for (; i < line.whole; ++i, at += step) most[0] = each_part(larger, load_sixteen<T>(at), most[0]);
  for (; i < line.count; ++i) most[1] = each_part(larger, part_of_sixteen<T>(line, i), most[1]);
  Sixteen all = each_part(larger, each_part(larger, most[0], most[1]), each_part(larger, most[2], most[3]));
  if constexpr (kColumns) return all;
#pragma GCC unroll 4
  for (int64_t half = kSingleParts / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (int64_t p = 0; p < half; ++p) all.parts[p] = larger(all.parts[p], all.parts[p + half]);
  }
  const Singles one = joined_singles<static_cast<int>(kSingleLanes / 2)>(all.parts[0], larger);
  return each_part([&](Singles) ANYDML_INLINE_LAMBDA { return one; }, all);
}

struct BelowAll {
  PowersBelow parts[kSingleParts];

  BelowAll() = default;
  explicit BelowAll(const Sixteen& most) : BelowAll(most, std::make_index_sequence<kSingleParts>{}) {}

  // Of halves as exact as these need.
  template <class T, bool kIsFar>
  ANYDML_INLINE Sixteen of(const Sixteen& x) const {
    Sixteen y;
#pragma GCC unroll 16
    for (int64_t p = 0; p < kSingleParts; ++p) {
      if constexpr (std::is_same_v<T, Half>) {
        y.parts[p] = parts[p].of_halves(x.parts[p]);
      } else {
        y.parts[p] = parts[p].template of<kIsFar>(x.parts[p]);
      }
    }
    return y;
  }
  // As numbers of double precision, whose rounding errors are taken along.
  template <bool kIsFar>
  Wide exact(const Sixteen& x) const {
    Sixteen high;
    Sixteen low;
#pragma GCC unroll 16
    for (int64_t p = 0; p < kSingleParts; ++p) {
      const SinglePair power = parts[p].template pair_of<kIsFar>(x.parts[p]);
      high.parts[p] = power.high;
      low.parts[p] = power.low;
    }
    return as_wide(high) + as_wide(low);
  }

 private:
  template <size_t... kPart>
  BelowAll(const Sixteen& most, std::index_sequence<kPart...>) : parts{PowersBelow(most.parts[kPart])...} {}
};

// Whether a largest element is so far from 0 that it is taken away from all.
inline bool is_far_from_0(float most) { return !(std::fabs(most) <= kNear); }

inline constexpr auto added = [](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return a + b; };

// Sums of powers in double precision, of all elements, or of those below the largest. Powers are kept in the
// line's room.
template <class T, bool kColumns, bool kIsFar, class Of = T>
Wide add_powers(const Line& line, const BelowAll& below) {
  auto* const kept = reinterpret_cast<std::byte*>(line.room + kLanes);
  constexpr auto kStep = static_cast<int64_t>(kLanes * sizeof(float));
  std::memset(kept - kStep, 0, kStep);
  Wide sum{};
  RowStream* const stream = line.stream;
  const std::byte* const ahead = line.in[0].at + line.ahead;
  for_sixteens<T, kColumns>(line, [&](int64_t i, const Sixteen& x) ANYDML_INLINE_LAMBDA {
    // While there is something to compute.
    if (stream == nullptr) {
      __builtin_prefetch(line.out + i * line.out_step, 1);
    } else {
      send_vector<T>(stream, i);
      prefetch_line(ahead + i * line.in[0].step);
    }
    store_sixteen<float>(kept + i * kStep, below.template of<Of, kIsFar>(x));
    // Those before, as what was just stored would be waited for.
    sum = sum + load_wide_lanes<float>(kept + (i - 1) * kStep);
  });
  return sum + load_wide_lanes<float>(kept + (line.count - 1) * kStep);
}
// Likewise of elements below the largest; and how many are not.
template <class T, bool kColumns, bool kIsFar, class Of = T>
std::array<Wide, 2> add_lower_powers(const Line& line, const BelowAll& below, const Sixteen& most) {
  Wide sum{};
  Sixteen equal{};
  for_sixteens<T, kColumns>(line, [&](int64_t, const Sixteen& x) ANYDML_INLINE_LAMBDA {
    sum = sum + as_wide(each_part([](Singles v, Singles m, Singles power)
                                      ANYDML_INLINE_LAMBDA { return v == m ? Singles{} : power; },
                                  x, most, below.template of<Of, kIsFar>(x)));
    equal = each_part([](Singles v, Singles m, Singles all)
                          ANYDML_INLINE_LAMBDA { return v == m ? all + 1.0F : all; },
                      x, most, equal);
  });
  return {sum, as_wide(equal)};
}

// ln(1 + rest)
ANYDML_INLINE double logarithm_of(double rest) {
  const Doubles all = Doubles{} + rest;
  return first_of(rest <= 1 ? log1p_of(all) : log_of(1.0 + all));
}

// What is left of x when the largest element of its line and a logarithm are taken away: in two steps of
// single precision, or in double precision where the largest is far from 0 or the logarithm next to it.
struct Logarithms {
  static constexpr double kLeast = 0x1p-12;
  static constexpr double kMost = 64;

  Wide most;
  Wide logarithm;
  Sixteen high;  // of their sum
  Sixteen low;
  bool is_near;

  Logarithms() = default;
  Logarithms(const Wide& largest, const Wide& logarithms, bool near)
      : most(largest), logarithm(logarithms), is_near(near) {
    const Wide sum = most + logarithm;
    high = as_sixteen(sum);
    low = as_sixteen(sum - as_wide(high));
  }
  Logarithms(double largest, double logarithm)
      : most(broadcast_wide(largest)),
        logarithm(broadcast_wide(logarithm)),
        is_near(logarithm >= kLeast && std::fabs(largest) <= kMost) {
    const double sum = largest + logarithm;
    const auto rounded = static_cast<float>(sum);
    high = sixteen(rounded);
    low = sixteen(static_cast<float>(sum - static_cast<double>(rounded)));
  }

  // In single precision.
  ANYDML_INLINE Sixteen rest_of(const Sixteen& x) const {
    return each_part([](Singles v, Singles h, Singles l) ANYDML_INLINE_LAMBDA { return (v - h) - l; }, x,
                     high, low);
  }

  template <class T, bool kColumns>
  void take(const Line& line) const {
    if (!is_near) {
      return map_line<T, kColumns>(line, [&](int64_t, const Wide& x, const auto&)
                                             ANYDML_INLINE_LAMBDA { return x - most - logarithm; });
    }
    map_sixteens<T, kColumns>(line,
                              [&](const Sixteen& x, const auto&) ANYDML_INLINE_LAMBDA { return rest_of(x); });
  }
};

// Powers times shares of them, whose rounding errors are taken along.
struct Shares {
  Sixteen high;
  Sixteen low;

  Shares() = default;
  explicit Shares(const Wide& share) : high(as_sixteen(share)), low(as_sixteen(share - as_wide(high))) {}
  explicit Shares(double share)
      : high(sixteen(static_cast<float>(share))),
        low(sixteen(static_cast<float>(share - static_cast<double>(static_cast<float>(share))))) {}

  ANYDML_INLINE Sixteen of(const Sixteen& powers) const {
    return each_part([](Singles power, Singles h, Singles l)
                         ANYDML_INLINE_LAMBDA { return multiply_add(power, h, power * l); },
                     powers, high, low);
  }

  // Of a line's kept powers.
  template <class T>
  void take(const Line& line) const {
    constexpr auto kStep = static_cast<int64_t>(kLanes * sizeof(float));
    const auto* kept = reinterpret_cast<const std::byte*>(line.room + kLanes);
    std::byte* to = line.out;
    const int64_t step = line.out_step;
    const int64_t whole = line.whole;
    for (int64_t i = 0; i < whole; ++i, to += step, kept += kStep) {
      store_sixteen<T>(to, of(load_sixteen<float>(kept)));
    }
    for (int64_t i = whole; i < line.count; ++i, kept += kStep) {
      put_own_part<T>(line, i, of(load_sixteen<float>(kept)));
    }
  }
};

// y = e^(x - most) / sum, or x - most - ln(sum)
struct SoftmaxLine {
  static constexpr bool kNeedsRoom = true;

  bool is_logarithm;

  // Of columns.
  template <class T, bool kColumns>
  void compute(const Line& line) const {
    static_assert(kColumns);
    const Sixteen most = largest_of<T, true>(line);
    if (line.is_of_halves) return compute_columns<T, false, Half>(line, most);
    const bool is_far = !std::is_same_v<T, Half> && std::ranges::any_of(numbers_of(most), is_far_from_0);
    is_far ? compute_columns<T, true>(line, most) : compute_columns<T, false>(line, most);
  }

  // Of a row: its powers, of which the results are to be made with this number, and the largest element.
  struct Row {
    double most;
    double number;
  };
  template <class T>
  Row start(const Line& line) const {
    const Sixteen all = largest_of<T, false>(line);
    const float most = numbers_of(all)[0];
    return !std::is_same_v<T, Half> && is_far_from_0(most) ? start_row<T, true>(line, all, most)
                                                           : start_row<T, false>(line, all, most);
  }
  template <class T>
  void finish(const Line& line, const Row& row) const {
    is_logarithm ? Logarithms(row.most, row.number).template take<T, false>(line)
                 : Shares(row.number).template take<T>(line);
  }

 private:
  static constexpr double kLeastRest = 0x1p-20;

  template <class T, bool kIsFar>
  Row start_row(const Line& line, const Sixteen& all, float most) const {
    const BelowAll below(all);
    double sum = joined(add_powers<T, false, kIsFar>(line, below), added);
    // Infinities among the elements leave nothing, nor does NaN, of which the sum is one.
    if (!(std::fabs(most) < std::numeric_limits<float>::infinity())) sum = kNan;
    if (!is_logarithm) return {most, 1 / sum};
    // The sum of all powers but one of the largest, relative to that: what is next to 0 is added anew, as it
    // would be lost beside the largest.
    const SinglePair pair = below.parts[0].template pair_of<kIsFar>(all.parts[0]);
    const double of_most = first_of(pair.high) + static_cast<double>(first_of(pair.low));
    double rest = (sum - static_cast<double>(first_of(below.template of<T, kIsFar>(all).parts[0]))) / of_most;
    if (rest < kLeastRest) [[unlikely]] {
      const auto [lower, equal] = add_lower_powers<T, false, kIsFar>(line, below, all);
      rest = joined(lower, added) / of_most + (joined(equal, added) - 1);
    }
    return {most, logarithm_of(rest)};
  }

  // By powers as exact as elements of a type need.
  template <class T, bool kIsFar, class Of = T>
  void compute_columns(const Line& line, const Sixteen& most) const {
    const BelowAll below(most);
    const Wide none = as_wide(each_part(
        [](Singles x) ANYDML_INLINE_LAMBDA {
          return magnitude_of<float>(x) < std::numeric_limits<float>::infinity()
                     ? Singles{}
                     : singles(std::numeric_limits<float>::quiet_NaN());
        },
        most));
    const Wide sum = add_powers<T, true, kIsFar, Of>(line, below) + none;
    if (!is_logarithm) {
      return Shares(each_of([](Doubles x) ANYDML_INLINE_LAMBDA { return 1.0 / x; }, sum))
          .template take<T>(line);
    }
    const auto quotient = [](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return a / b; };
    const Wide of_most = below.template exact<kIsFar>(most);
    Wide rest = each_of(quotient, sum - as_wide(below.template of<Of, kIsFar>(most)), of_most);
    std::array<double, kLanes> rests;
    put_wide(rests.data(), rest);
    if (std::ranges::any_of(rests, [](double x) { return x < kLeastRest; })) {
      const auto [lower, equal] = add_lower_powers<T, true, kIsFar, Of>(line, below, most);
      rest = each_of(quotient, lower, of_most) + (equal - broadcast_wide(1));
      put_wide(rests.data(), rest);
    }
    const bool is_near =
        std::ranges::all_of(rests, [](double x) { return x >= Logarithms::kLeast; }) &&
        std::ranges::all_of(numbers_of(most), [](float x) { return std::fabs(x) <= Logarithms::kMost; });
    const Wide logarithm = each_of(
        [](Doubles x) ANYDML_INLINE_LAMBDA { return x <= 1.0 ? log1p_of(x) : log_of(1.0 + x); }, rest);
    Logarithms(as_wide(most), logarithm, is_near).template take<T, true>(line);
  }
};

ANYDML_ISA_END
