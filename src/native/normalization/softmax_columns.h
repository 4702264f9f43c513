// SOFTMAX and LOG_SOFTMAX of columns in parts: online, below the largest element so far, of which few rows
// have a larger one. Powers are computed twice, as to write and read them would take longer.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "normalization/column_block.h"
#include "normalization/long_columns.h"
#include "normalization/powers.h"
#include "normalization/sixteen.h"
#include "normalization/softmax_lines.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/rounding.h"
#include "simd/bits_as.h"
#include "simd/half.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

struct SoftmaxColumns {
  // Whose states stay in the first cache beside some rows.
  static constexpr int64_t kMostLines = 32;

  bool is_logarithm;

  // Of sixteen columns: the largest elements, the sums of e^(x - most) of the others, and how many equal
  // them. `sum` has those of the others that are still scaled as powers below the largest elements are.
  struct State {
    std::array<float, kLanes> most;
    std::array<double, kLanes> others{};
    std::array<double, kLanes> equal{};
    std::array<double, kLanes> sum{};

    State() { most.fill(-std::numeric_limits<float>::infinity()); }
  };

  void add(State* states, const ColumnPart& part) const {
    part.for_rows(kRows, [&](const ColumnPart& some) {
      part.is_half ? add_rows<Half>(states, some) : add_rows<float>(states, some);
    });
  }

  static void merge(State& all, const State& part) {
    State scaled = part;
    settle(all);
    settle(scaled);
    rescale(all, scaled);
    rescale(scaled, all);
    for (size_t k = 0; k < kLanes; ++k) all.others[k] += scaled.others[k];
    for (size_t k = 0; k < kLanes; ++k) all.equal[k] += scaled.equal[k];
  }

  // Leaves what results are made with: shares, or logarithms. An infinite largest element leaves NaN.
  void finish(State& state) const {
    settle(state);
    std::array<double, kLanes>& of = state.others;
    for (size_t k = 0; k < kLanes; ++k) {
      const bool is_finite = std::fabs(state.most[k]) < std::numeric_limits<float>::infinity();
      of[k] = is_finite ? of[k] + (state.equal[k] - 1) : kNan;
    }
    if (is_logarithm) {
      for (double& each : of) each = logarithm_of(each);
      return;
    }
    put_wide(of.data(), each_of([](Doubles power, Doubles rest)
                                    ANYDML_INLINE_LAMBDA { return 1.0 / (power * (1.0 + rest)); },
                                units_of(state), wide_at(of.data())));
  }

  void map(const State* states, const ColumnPart& part) const {
    part.is_half ? map_rows<Half>(states, part) : map_rows<float>(states, part);
  }

 private:
  // Rows that are added at once; of their powers, halves' are first added in single precision, and singles'
  // in pairs.
  static constexpr int64_t kRows = 8;

  // An infinite largest element is taken as 0.
  static Sixteen finite(std::array<float, kLanes> most) {
    for (float& each : most) {
      if (!(std::fabs(each) < std::numeric_limits<float>::infinity())) each = 0;
    }
    return bits_as<Sixteen>(most);
  }
  static bool is_any_far(const Sixteen& most) { return std::ranges::any_of(numbers_of(most), is_far_from_0); }

  // The largest elements' scaled powers.
  static Wide units_of(const State& state) {
    const Sixteen most = finite(state.most);
    const BelowAll below(most);
    return is_any_far(most) ? below.exact<true>(most) : below.exact<false>(most);
  }
  static void settle(State& state) {
    put_wide(state.others.data(), wide_at(state.others.data()) +
                                      each_of([](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return a / b; },
                                              wide_at(state.sum.data()), units_of(state)));
    state.sum = {};
  }

  // What has a lower largest element, relative to the other's.
  static void rescale(State& state, const State& other) {
    std::array<double, kLanes> powers;
    bool has_lower = false;
    for (size_t k = 0; k < kLanes; ++k) {
      const bool is_lower = state.most[k] < other.most[k];
      has_lower = has_lower || is_lower;
      powers[k] = is_lower ? static_cast<double>(state.most[k]) - static_cast<double>(other.most[k]) : 0.0;
    }
    if (!has_lower) return;
    put_wide(powers.data(),
             each_of([](Doubles x) ANYDML_INLINE_LAMBDA { return exp_of(x); }, wide_at(powers.data())));
    for (size_t k = 0; k < kLanes; ++k) {
      if (!(state.most[k] < other.most[k])) continue;
      state.others[k] = (state.others[k] + state.equal[k]) * powers[k];
      state.equal[k] = 0;
      state.most[k] = other.most[k];
    }
  }

  // Sixteen elements of a row; lanes behind the last column are copies of it.
  template <class T>
  ANYDML_INLINE static Sixteen elements_at(const std::byte* from, int64_t columns) {
    if (columns >= kLanes) return load_sixteen<T>(from);
    T some[kLanes];
    std::memcpy(some, from, static_cast<size_t>(columns) * sizeof(T));
    std::fill(some + columns, some + kLanes, some[columns - 1]);
    return load_sixteen<T>(reinterpret_cast<const std::byte*>(some));
  }

  template <class T>
  static constexpr auto kPiece = kLanes * static_cast<int64_t>(sizeof(T));

  template <class T>
  static void add_rows(State* states, const ColumnPart& some) {
    const std::byte* at = some.in;
    const int64_t step = some.in_step;
    for (int64_t n = 0, left = some.columns; left > 0; ++n, left -= kLanes, at += kPiece<T>) {
      Sixteen x[kRows];
      for (int64_t r = 0; r < kRows; ++r) {
        // Rows that are not there have nothing that counts.
        x[r] = r < some.rows ? elements_at<T>(at + r * step, left) : sixteen(kLowest);
        prefetch_line(at + (r + kRows) * step);
      }
      add_elements<T>(states[n], x);
    }
  }

  static constexpr float kLowest = -std::numeric_limits<float>::infinity();

  template <class T>
  ANYDML_INLINE static void add_elements(State& state, const Sixteen* x) {
    Sixteen largest = sixteen(kLowest);
    for (int64_t r = 0; r < kRows; ++r) {
      largest =
          each_part([](Singles v, Singles most) ANYDML_INLINE_LAMBDA { return lane_max<float>(v, most); },
                    x[r], largest);
    }
    const Sixteen most = bits_as<Sixteen>(state.most);
    bool are_below = true;
    bool are_near = true;
    for (int64_t p = 0; p < kSingleParts; ++p) {
      are_below = are_below && all_of<float>(largest.parts[p] < most.parts[p]);
      if constexpr (std::is_same_v<T, float>) {
        are_near = are_near && all_of<float>(magnitude_of<float>(most.parts[p]) <= kNear);
      }
    }
    if (!are_below) [[unlikely]]
      return add_largest<T>(state, x, largest);
    if constexpr (std::is_same_v<T, float>) {
      if (!are_near) [[unlikely]]
        return add_below<T, true, false>(state, most, x);
    }
    add_below<T, false, false>(state, most, x);
  }

  // Adds the powers of the elements, of which some are the largest where kHasLargest.
  template <class T, bool kIsFar, bool kHasLargest>
  ANYDML_INLINE static void add_below(State& state, const Sixteen& most, const Sixteen* x) {
    const BelowAll below(most);
    const auto all = bits_as<Sixteen>(state.most);
    Wide sum = wide_at(state.sum.data());
    Sixteen equal{};
    const auto plus = [](Singles a, Singles b) ANYDML_INLINE_LAMBDA { return a + b; };
    const auto power = [&](int64_t r) ANYDML_INLINE_LAMBDA {
      const Sixteen own = below.template of<T, kIsFar>(x[r]);
      if constexpr (!kHasLargest) return own;
      equal = each_part([](Singles v, Singles m, Singles count)
                            ANYDML_INLINE_LAMBDA { return v == m ? count + 1.0F : count; },
                        x[r], all, equal);
      return each_part([](Singles v, Singles m, Singles own_power)
                           ANYDML_INLINE_LAMBDA { return v == m ? Singles{} : own_power; },
                       x[r], all, own);
    };
    const auto pair = [&](int64_t r) ANYDML_INLINE_LAMBDA { return each_part(plus, power(r), power(r + 1)); };
    if constexpr (std::is_same_v<T, Half>) {
      sum = sum +
            as_wide(each_part(plus, each_part(plus, pair(0), pair(2)), each_part(plus, pair(4), pair(6))));
    } else {
      for (int64_t r = 0; r < kRows; r += 2) sum = sum + as_wide(pair(r));
    }
    put_wide(state.sum.data(), sum);
    if constexpr (kHasLargest) {
      put_wide(state.equal.data(), wide_at(state.equal.data()) + as_wide(equal));
    }
  }

  // Where some are as large as the largest so far, or larger.
  template <class T>
  ANYDML_NOINLINE static void add_largest(State& state, const Sixteen* x, const Sixteen& largest) {
    State next;
    next.most = numbers_of(each_part([](Singles v, Singles most)
                                         ANYDML_INLINE_LAMBDA { return lane_max<float>(v, most); },
                                     largest, bits_as<Sixteen>(state.most)));
    if constexpr (std::is_same_v<T, float>) {
      if (is_any_far(finite(state.most)) || is_any_far(finite(next.most))) {
        settle(state);
        rescale(state, next);
        const Sixteen most = finite(state.most);
        return is_any_far(most) ? add_below<T, true, true>(state, most, x)
                                : add_below<T, false, true>(state, most, x);
      }
    }
    raise(state, next.most);
    add_below<T, false, true>(state, finite(state.most), x);
  }

  // To larger elements, none of them far from 0: with powers of those before, which are others now, all that
  // was added is scaled by a power of two.
  static void raise(State& state, const SixteenSingles& to) {
    const Sixteen before = finite(state.most);
    const BelowAll below(before);
    const BelowAll below_next(finite(to));
    const Wide of_before = below.exact<false>(before);
    // The exponents of scaled powers, in eighths.
    const SixteenSingles eighths =
        numbers_of(each_part([](const PowersBelow& next, const PowersBelow& own)
                                 ANYDML_INLINE_LAMBDA { return next.shift - own.shift; },
                             below_next, below));
    std::array<double, kLanes> factors;
    for (size_t k = 0; k < kLanes; ++k) {
      constexpr int64_t kBias = 1023;
      // Where there was no number, there is nothing to scale.
      const int64_t exponent = std::clamp<int64_t>(static_cast<int32_t>(eighths[k]) / 8, 1 - kBias, 0);
      factors[k] = bits_as<double>((exponent + kBias) << 52);
    }
    const Wide sum = wide_at(state.sum.data());
    const Wide equal = wide_at(state.equal.data());
    const Wide factor = wide_at(factors.data());
    const Wide most = as_wide(bits_as<Sixteen>(state.most));
    const Wide largest = as_wide(bits_as<Sixteen>(to));
    put_wide(state.sum.data(),
             each_of(
                 [](Doubles is, Doubles was, Doubles all, Doubles count, Doubles power, Doubles by)
                     ANYDML_INLINE_LAMBDA {
                       const Doubles more = was == static_cast<double>(kLowest) ? Doubles{} : count * power;
                       return is > was ? (all + more) * by : all;
                     },
                 largest, most, sum, equal, of_before, factor));
    put_wide(state.equal.data(), each_of([](Doubles is, Doubles was, Doubles count)
                                             ANYDML_INLINE_LAMBDA { return is > was ? Doubles{} : count; },
                                         largest, most, equal));
    state.most = to;
  }

  // Writes result(n, x) for the elements of each row.
  template <class T, class Result>
  static void for_results(const ColumnPart& part, const Result& result) {
    alignas(64) std::byte row[kMostLines * kPiece<float>];
    const std::byte* from = part.in;
    std::byte* to = part.out;
    constexpr int64_t kAhead = 4;
    for (int64_t r = 0; r < part.rows; ++r, from += part.in_step, to += part.out_step) {
      std::byte* const at = part.is_streamed ? row : to;
      const int64_t whole = part.columns / kLanes;
      for (int64_t n = 0; n < whole; ++n) {
        prefetch_line(from + n * kPiece<T> + kAhead * part.in_step);
        store_sixteen<T>(at + n * kPiece<T>, result(n, load_sixteen<T>(from + n * kPiece<T>)));
      }
      if (const int64_t rest = part.columns % kLanes; rest > 0) {
        std::byte some[kPiece<T>];
        store_sixteen<T>(some, result(whole, elements_at<T>(from + whole * kPiece<T>, rest)));
        std::memcpy(at + whole * kPiece<T>, some, static_cast<size_t>(rest) * sizeof(T));
      }
      if (part.is_streamed) stream_copy(to, row, part.columns * static_cast<int64_t>(sizeof(T)));
    }
  }

  template <class T>
  void map_rows(const State* states, const ColumnPart& part) const {
    const int64_t lines = part.lines();
    if (is_logarithm) return map_logarithms<T>(states, part);
    if constexpr (std::is_same_v<T, float>) {
      if (std::any_of(states, states + lines, [](const State& s) { return is_any_far(finite(s.most)); })) {
        return map_shares<T, true>(states, part);
      }
    }
    map_shares<T, false>(states, part);
  }

  template <class T, bool kIsFar>
  static void map_shares(const State* states, const ColumnPart& part) {
    struct Factors {
      BelowAll below;
      Shares shares;
    };
    Factors of[kMostLines];
    for (int64_t n = 0; n < part.lines(); ++n) {
      of[n] = {BelowAll(finite(states[n].most)), Shares(wide_at(states[n].others.data()))};
    }
    for_results<T>(part, [&of](int64_t n, const Sixteen& x) ANYDML_INLINE_LAMBDA {
      const Sixteen powers = of[n].below.template of<T, kIsFar>(x);
      if constexpr (std::is_same_v<T, Half>) return powers * of[n].shares.high;
      return of[n].shares.of(powers);
    });
  }

  template <class T>
  static void map_logarithms(const State* states, const ColumnPart& part) {
    Logarithms of[kMostLines];
    struct Shift {
      Sixteen high;
      Sixteen low;
    };
    Shift shifts[kMostLines];
    bool are_near = true;
    for (int64_t n = 0; n < part.lines(); ++n) {
      const State& state = states[n];
      const bool is_near =
          std::ranges::all_of(state.others, [](double x) { return x >= Logarithms::kLeast; }) &&
          std::ranges::all_of(state.most, [](float x) { return std::fabs(x) <= Logarithms::kMost; });
      of[n] = {as_wide(finite(state.most)), wide_at(state.others.data()), is_near};
      shifts[n] = {of[n].high, of[n].low};
      are_near = are_near && is_near;
    }
    // Side by side where nothing else is needed.
    if (are_near) {
      return for_results<T>(part, [&shifts](int64_t n, const Sixteen& x) ANYDML_INLINE_LAMBDA {
        return each_part([](Singles v, Singles h, Singles l) ANYDML_INLINE_LAMBDA { return (v - h) - l; }, x,
                         shifts[n].high, shifts[n].low);
      });
    }
    for_results<T>(part, [&of](int64_t n, const Sixteen& x) ANYDML_INLINE_LAMBDA {
      return of[n].is_near ? of[n].rest_of(x) : as_sixteen(as_wide(x) - of[n].most - of[n].logarithm);
    });
  }
};

ANYDML_ISA_END
