// SOFTMAX and LOG_SOFTMAX of columns in parts: online, scaled below the largest element when one was far
// above the scale, which is seldom. Powers are computed twice, as to write and read them would take longer.
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

  static constexpr float kLowest = -std::numeric_limits<float>::infinity();

  bool is_logarithm;

  // Of sixteen columns: the largest elements, the sums of e^(x - most) of the others, and how many equal
  // them. While elements are added, `sum` has those of the others, as powers that below() scales, below or
  // above the largest elements when it was made, by as much as `limit` allows.
  struct State {
    std::array<float, kLanes> most;
    std::array<float, kLanes> limit;
    std::array<double, kLanes> others{};
    std::array<double, kLanes> equal{};
    std::array<double, kLanes> sum{};
    // As numbers, since a vector's memory is not aligned to more than these.
    std::array<float, sizeof(BelowAll) / sizeof(float)> scale;
    bool is_far = false;  // whether an element is taken from others before their powers

    State() {
      put_scale(Sixteen{});
      most.fill(kLowest);
      limit.fill(kLowest);
    }
    ANYDML_INLINE BelowAll below() const { return bits_as<BelowAll>(scale); }
    void put_scale(const Sixteen& largest) { scale = bits_as<decltype(scale)>(BelowAll(largest)); }
  };

  void add(State* states, const ColumnPart& part) const {
    part.for_rows(kRows, [&](const ColumnPart& some) {
      part.is_half ? add_rows<Half>(states, some) : add_rows<float>(states, some);
    });
  }

  // When all is added.
  static void close(State& state) { settle(state); }

  static void merge(State& all, const State& part) {
    State scaled = part;
    rescale(all, scaled);
    rescale(scaled, all);
    for (size_t k = 0; k < kLanes; ++k) all.others[k] += scaled.others[k];
    for (size_t k = 0; k < kLanes; ++k) all.equal[k] += scaled.equal[k];
  }

  // Leaves what results are made with: shares, or logarithms. An infinite largest element leaves NaN.
  void finish(State& state) const {
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

  // The largest elements' powers, scaled below themselves, or as those that were added.
  static Wide units_of(const State& state) {
    const Sixteen most = finite(state.most);
    const BelowAll below(most);
    return is_any_far(most) ? below.exact<true>(most) : below.exact<false>(most);
  }
  static Wide largest_powers(const State& state) {
    const Sixteen most = finite(state.most);
    return state.is_far ? state.below().exact<true>(most) : state.below().exact<false>(most);
  }
  static void settle(State& state) {
    put_wide(state.others.data(), wide_at(state.others.data()) +
                                      each_of([](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return a / b; },
                                              wide_at(state.sum.data()), largest_powers(state)));
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
      const bool is_line = n * kPiece<T> % kLine == 0;
      for (int64_t r = 0; r < kRows; ++r) {
        // Rows that are not there have nothing that counts.
        x[r] = r < some.rows ? elements_at<T>(at + r * step, left) : sixteen(kLowest);
        if (is_line) prefetch_line(at + (r + kRows) * step);
      }
      add_elements<T>(states[n], x);
    }
  }

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
    for (int64_t p = 0; p < kSingleParts; ++p) {
      are_below = are_below && all_of<float>(largest.parts[p] < most.parts[p]);
    }
    if (!are_below) [[unlikely]]
      return add_largest<T>(state, x, largest);
    if constexpr (std::is_same_v<T, float>) {
      if (state.is_far) [[unlikely]]
        return add_below<T, true, false>(state, x);
    }
    add_below<T, false, false>(state, x);
  }

  // Adds the powers of the elements, of which some are the largest where kHasLargest.
  template <class T, bool kIsFar, bool kHasLargest>
  ANYDML_INLINE static void add_below(State& state, const Sixteen* x) {
    const auto most = bits_as<Sixteen>(state.most);
    Wide sum = wide_at(state.sum.data());
    Sixteen equal{};
    const BelowAll below = state.below();
    const auto plus = [](Singles a, Singles b) ANYDML_INLINE_LAMBDA { return a + b; };
    const auto power = [&](int64_t r) ANYDML_INLINE_LAMBDA {
      const Sixteen own = below.template of<T, kIsFar>(x[r]);
      if constexpr (!kHasLargest) return own;
      equal = each_part([](Singles v, Singles m, Singles count)
                            ANYDML_INLINE_LAMBDA { return v == m ? count + 1.0F : count; },
                        x[r], most, equal);
      return each_part([](Singles v, Singles m, Singles lower)
                           ANYDML_INLINE_LAMBDA { return v == m ? Singles{} : lower; },
                       x[r], most, own);
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
    const auto limit = bits_as<Sixteen>(state.limit);
    bool are_within = true;
    for (int64_t p = 0; p < kSingleParts; ++p) {
      are_within = are_within && all_of<float>(largest.parts[p] <= limit.parts[p]);
    }
    are_within ? raise(state, largest) : scale_anew(state, largest);
    if constexpr (std::is_same_v<T, float>) {
      if (state.is_far) return add_below<T, true, true>(state, x);
    }
    add_below<T, false, true>(state, x);
  }

  // To larger elements. Those before are others now.
  static void raise(State& state, const Sixteen& largest) {
    const Wide was = as_wide(bits_as<Sixteen>(state.most));
    const Wide is = as_wide(largest);
    const Wide equal = wide_at(state.equal.data());
    const Wide sum = wide_at(state.sum.data());
    put_wide(state.sum.data(), each_of([](Doubles a, Doubles b, Doubles all, Doubles count, Doubles power)
                                           ANYDML_INLINE_LAMBDA { return a > b ? all + count * power : all; },
                                       is, was, sum, equal, largest_powers(state)));
    put_wide(state.equal.data(), each_of([](Doubles a, Doubles b, Doubles count)
                                             ANYDML_INLINE_LAMBDA { return a > b ? Doubles{} : count; },
                                         is, was, equal));
    state.most =
        numbers_of(each_part([](Singles a, Singles b) ANYDML_INLINE_LAMBDA { return lane_max<float>(a, b); },
                             largest, bits_as<Sixteen>(state.most)));
  }

  // Likewise, and scales what is added from now on below these.
  static void scale_anew(State& state, const Sixteen& largest) {
    // Of which singles hold the sum of eight powers.
    constexpr float kAbove = 16;
    State next;
    next.most = numbers_of(largest);
    settle(state);
    rescale(state, next);
    const Sixteen most = finite(state.most);
    state.put_scale(most);
    state.is_far = is_any_far(most);
    for (size_t k = 0; k < kLanes; ++k) {
      const float own = state.most[k];
      state.limit[k] = is_far_from_0(own) ? own : std::min(own + kAbove, kNear);
    }
    put_wide(state.sum.data(), wide_at(state.others.data()) * largest_powers(state));
    state.others = {};
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
