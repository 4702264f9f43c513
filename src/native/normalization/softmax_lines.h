// SOFTMAX, LOG_SOFTMAX and HARDMAX of lines, in single precision with pairs of numbers where rounding counts.
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
#include "normalization/runs.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

inline double first_of(Doubles x) {
  double first;
  std::memcpy(&first, &x, sizeof(first));
  return first;
}

using SixteenSingles = std::array<float, kLanes>;

ANYDML_INLINE Singles part_of(const SixteenSingles& numbers, int64_t part) {
  Singles x;
  std::memcpy(&x, numbers.data() + part * kSingleLanes, sizeof(x));
  return x;
}
ANYDML_INLINE void put_part_of(SixteenSingles& numbers, int64_t part, Singles x) {
  std::memcpy(numbers.data() + part * kSingleLanes, &x, sizeof(x));
}
inline Wide as_wide(const SixteenSingles& numbers) {
  return load_wide_lanes<float>(reinterpret_cast<const std::byte*>(numbers.data()));
}

// Vector i of a line's first tensor, which is not whole, in `room`, with the lowest value in lanes that are
// not there.
template <class T>
ANYDML_INLINE const std::byte* padded_at(const Line& line, int64_t i, T (&room)[kLanes]) {
  std::fill_n(room, kLanes, T(-std::numeric_limits<float>::infinity()));
  std::memcpy(room, line.in[0].at + i * line.in[0].step, static_cast<size_t>(line.lanes) * sizeof(T));
  return reinterpret_cast<const std::byte*>(room);
}

// Calls body(part, x) for each part of a vector.
template <class T, class Body>
ANYDML_INLINE void for_parts(const std::byte* at, const Body& body) {
  constexpr auto kStep = kSingleLanes * static_cast<int64_t>(sizeof(T));
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) body(p, load_numbers<T, float, Singles>(at + p * kStep));
}
// Calls body(i, part, x) for each part of each vector.
template <class T, class Body>
ANYDML_INLINE void for_singles(const Line& line, const Body& body) {
  const std::byte* at = line.in[0].at;
  const int64_t step = line.in[0].step;
  const int64_t whole = line.whole;
  for (int64_t i = 0; i < whole; ++i, at += step) {
    for_parts<T>(at, [&](int64_t p, Singles x) ANYDML_INLINE_LAMBDA { body(i, p, x); });
  }
  T room[kLanes];
  for (int64_t i = whole; i < line.count; ++i) {
    for_parts<T>(padded_at(line, i, room), [&](int64_t p, Singles x) ANYDML_INLINE_LAMBDA { body(i, p, x); });
  }
}

// The largest and the least of each column, or of the line in all lanes. Of a NaN and a number, the number.
struct Extremes {
  SixteenSingles most;
  SixteenSingles least;

  // Whether all that e^(x - most) shares out is far from the least numbers of single precision.
  // In rows all lanes are alike.
  template <bool kColumns>
  bool are_near() const {
    for (size_t k = 0; k < (kColumns ? kLanes : 1); ++k) {
      if (!(least[k] > most[k] - 60)) return false;
    }
    return true;
  }
  template <bool kColumns>
  bool are_far() const {
    const auto is_far = [](float x) { return !(std::fabs(x) <= kNear); };
    return kColumns ? std::ranges::any_of(most, is_far) : is_far(most[0]);
  }
};

template <class T, bool kColumns>
Extremes extremes_of(const Line& line) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  // Two, as one would wait for itself.
  Singles most[2][kSingleParts];
  Singles least[2][kSingleParts];
  for (size_t k = 0; k < 2; ++k) {
    std::fill_n(most[k], kSingleParts, Singles{} - kInfinite);
    std::fill_n(least[k], kSingleParts, Singles{} + kInfinite);
  }
  const auto add = [&](const std::byte* at, Singles(&largest)[kSingleParts], Singles(&smallest)[kSingleParts])
                       ANYDML_INLINE_LAMBDA {
                         for_parts<T>(at, [&](int64_t p, Singles x) ANYDML_INLINE_LAMBDA {
                           largest[p] = lane_max<float>(x, largest[p]);
                           smallest[p] = lane_min<float>(x, smallest[p]);
                         });
                       };
  const std::byte* at = line.in[0].at;
  const int64_t step = line.in[0].step;
  int64_t i = 0;
  for (; i + 2 <= line.whole; i += 2, at += 2 * step) {
    add(at, most[0], least[0]);
    add(at + step, most[1], least[1]);
  }
  if (i < line.whole) add(at, most[0], least[0]);
  T room[kLanes];
  for (i = line.whole; i < line.count; ++i) add(padded_at(line, i, room), most[0], least[0]);
  Extremes found;
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) {
    put_part_of(found.most, p, lane_max<float>(most[0][p], most[1][p]));
    put_part_of(found.least, p, lane_min<float>(least[0][p], least[1][p]));
  }
  if constexpr (!kColumns) {
    found.most.fill(static_cast<float>(joined(as_wide(found.most), lane_max<double, Doubles>)));
    found.least.fill(static_cast<float>(joined(as_wide(found.least), lane_min<double, Doubles>)));
  }
  return found;
}

using BelowAll = std::array<PowersBelow, kSingleParts>;

inline BelowAll below_all(const SixteenSingles& most) {
  return [&]<int... kPart>(std::integer_sequence<int, kPart...>) {
    return BelowAll{PowersBelow(part_of(most, kPart))...};
  }(std::make_integer_sequence<int, static_cast<int>(kSingleParts)>{});
}

template <bool kIsFar>
Wide powers_of(const BelowAll& below, const SixteenSingles& x) {
  SixteenSingles high;
  SixteenSingles low;
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) {
    const SinglePair power = below[static_cast<size_t>(p)].template of<kIsFar>(part_of(x, p));
    put_part_of(high, p, power.high);
    put_part_of(low, p, power.low);
  }
  return as_wide(high) + as_wide(low);
}

// A sum of each lane.
struct LaneSums {
  Singles of[kSingleParts];

  // With more in the lanes of one part.
  ANYDML_INLINE LaneSums plus(int64_t part, Singles more) const {
    LaneSums y = *this;
    y.of[part] = y.of[part] + more;
    return y;
  }
};

// Sums of powers, of those of all elements, or of those of all but the largest, whose number is apart.
struct PowerSums {
  Wide powers{};
  Wide equal{};
};

template <class T, bool kIsFar, bool kIsApart>
PowerSums add_powers(const Line& line, const BelowAll& below, const SixteenSingles& most) {
  float* const highs = reinterpret_cast<float*>(line.room) + kLanes;
  float* const lows = highs + line.count * kLanes;
  std::fill_n(highs - kLanes, kLanes, 0.0F);
  Wide sum{};
  LaneSums low_sums{};
  LaneSums equal{};
  for_singles<T>(line, [&](int64_t i, int64_t p, Singles x) ANYDML_INLINE_LAMBDA {
    SinglePair power = below[static_cast<size_t>(p)].template of<kIsFar>(x);
    if constexpr (kIsApart) {
      const auto is_most = x == part_of(most, p);
      power = {is_most ? Singles{} : power.high, is_most ? Singles{} : power.low};
      equal = equal.plus(p, is_most ? singles(1) : Singles{});
    }
    low_sums = low_sums.plus(p, power.low);
    float* const to = highs + i * kLanes + p * kSingleLanes;
    std::memcpy(to, &power.high, sizeof(Singles));
    if constexpr (!kIsApart) std::memcpy(lows + (to - highs), &power.low, sizeof(Singles));
    // Those before, as what was just stored would be waited for.
    if (p == 0) sum = sum + load_wide_lanes<float>(reinterpret_cast<std::byte*>(to - kLanes));
  });
  sum = sum + load_wide_lanes<float>(reinterpret_cast<std::byte*>(highs + (line.count - 1) * kLanes));
  SixteenSingles lanes;
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) put_part_of(lanes, p, low_sums.of[p]);
  PowerSums sums{sum + as_wide(lanes), {}};
#pragma GCC unroll 16
  for (int64_t p = 0; p < kSingleParts; ++p) put_part_of(lanes, p, equal.of[p]);
  sums.equal = as_wide(lanes);
  return sums;
}

// Shares of powers, by a factor of each lane.
struct Shares {
  std::array<double, kLanes> exact;
  std::array<SinglePair, kSingleParts> parts;

  explicit Shares(const Wide& share) {
    put_wide(exact.data(), share);
    SixteenSingles high;
    SixteenSingles low;
    for (size_t k = 0; k < kLanes; ++k) {
      high[k] = static_cast<float>(exact[k]);
      low[k] = static_cast<float>(exact[k] - static_cast<double>(high[k]));
    }
    for (int64_t p = 0; p < kSingleParts; ++p) {
      parts[static_cast<size_t>(p)] = {part_of(high, p), part_of(low, p)};
    }
  }

  // Rounded once to T; what is next to the least numbers from double precision.
  template <class T, bool kMayBeLeast>
  ANYDML_INLINE Singles of(const SinglePair& power, int64_t p) const {
    const SinglePair& share = parts[static_cast<size_t>(p)];
    if constexpr (std::is_same_v<T, Half>) {
      return product_to_odd(power, share);
    } else {
      const Singles y = product_of(power, share);
      constexpr uint32_t kFrom = 0x0d800000;  // 2^-100
      if (!kMayBeLeast || !has_any((bits_as<SingleBits>(y) - 1 < kFrom - 1) & (power.high > 0.0F))) return y;
      return near_least(y, power, exact.data() + p * kSingleLanes);
    }
  }

 private:
  static Singles near_least(Singles y, const SinglePair& power, const double* share) {
    float lanes[kSingleLanes], high[kSingleLanes], low[kSingleLanes];
    std::memcpy(lanes, &y, sizeof(y));
    std::memcpy(high, &power.high, sizeof(high));
    std::memcpy(low, &power.low, sizeof(low));
    for (int64_t k = 0; k < kSingleLanes; ++k) {
      const double exact = static_cast<double>(high[k]) + static_cast<double>(low[k]);
      if (lanes[k] < 0x1p-100F) lanes[k] = static_cast<float>(exact * share[k]);
    }
    std::memcpy(&y, lanes, sizeof(y));
    return y;
  }
};

// y = e^(x - most) / sum, or x - most - ln(sum). With the logarithm, elements that equal the largest are
// counted apart, as in `Softmax`.
struct SoftmaxLine {
  static constexpr bool kNeedsRoom = true;

  bool is_logarithm;

  template <class T, bool kColumns>
  void compute(const Line& line) const {
    const Extremes extremes = extremes_of<T, kColumns>(line);
    // Infinities among the elements leave nothing, nor does NaN, of which the sum is one.
    const Wide none = each_of(
        [](Doubles x) ANYDML_INLINE_LAMBDA {
          return magnitude_of<double>(x) < std::numeric_limits<double>::infinity() ? Doubles{}
                                                                                   : Doubles{} + kNan;
        },
        as_wide(extremes.most));
    if (!std::is_same_v<T, Half> && extremes.are_far<kColumns>()) {
      compute<T, kColumns, true>(line, extremes, none);
    } else {
      compute<T, kColumns, false>(line, extremes, none);
    }
  }

  // By the sum of all powers but one of the largest, relative to that.
  template <class T, bool kColumns>
  static void take_logarithms(const Line& line, const Wide& most, const Wide& rest) {
    const auto logarithm_of = [](Doubles x)
                                  ANYDML_INLINE_LAMBDA { return x <= 1.0 ? log1p_of(x) : log_of(1.0 + x); };
    Wide logarithm;
    if constexpr (kColumns) {
      logarithm = each_of(logarithm_of, rest);
    } else {
      logarithm = broadcast_wide(first_of(logarithm_of(rest.parts[0])));
    }
    Line own = line;
    if constexpr (kColumns) own.back = 0;  // as lanes of sums are where the line's are
    map_line<T, kColumns>(
        own, [&](int64_t, const Wide& x, const auto&) ANYDML_INLINE_LAMBDA { return x - most - logarithm; });
  }

 private:
  template <class T, bool kColumns, bool kIsFar>
  void compute(const Line& line, const Extremes& extremes, const Wide& none) const {
    const BelowAll below = below_all(extremes.most);
    if (is_logarithm) {
      PowerSums sums = add_powers<T, kIsFar, true>(line, below, extremes.most);
      const Wide of_most = powers_of<kIsFar>(below, extremes.most);
      sums.powers = each_of([](Doubles a, Doubles b) { return a / b; },
                            added_lanes<kColumns>(sums.powers + none), of_most);
      take_logarithms<T, kColumns>(line, as_wide(extremes.most),
                                   sums.powers + (added_lanes<kColumns>(sums.equal) - broadcast_wide(1)));
      return;
    }
    const PowerSums sums = add_powers<T, kIsFar, false>(line, below, extremes.most);
    const Wide share = each_of([](Doubles x) ANYDML_INLINE_LAMBDA { return 1.0 / x; },
                               added_lanes<kColumns>(sums.powers + none));
    if (std::is_same_v<T, Half> || extremes.are_near<kColumns>()) {
      take_shares<T, false>(line, share);
    } else {
      take_shares<T, true>(line, share);
    }
  }

  // Of kept powers. Shares next to the least numbers are rounded once from double precision.
  template <class T, bool kMayBeLeast>
  static void take_shares(const Line& line, const Wide& share) {
    const float* const highs = reinterpret_cast<float*>(line.room) + kLanes;
    const float* const lows = highs + line.count * kLanes;
    const Shares shares(share);
    const auto result = [&](int64_t at, int64_t p) ANYDML_INLINE_LAMBDA {
      SinglePair power;
      std::memcpy(&power.high, highs + at, sizeof(Singles));
      std::memcpy(&power.low, lows + at, sizeof(Singles));
      return shares.of<T, kMayBeLeast>(power, p);
    };
    constexpr auto kStep = kSingleLanes * static_cast<int64_t>(sizeof(T));
    const auto put = [&](int64_t i, std::byte* to) ANYDML_INLINE_LAMBDA {
#pragma GCC unroll 16
      for (int64_t p = 0; p < kSingleParts; ++p) {
        store_numbers<T, float, Singles>(to + p * kStep, result(i * kLanes + p * kSingleLanes, p));
      }
    };
    std::byte* to = line.out;
    const int64_t step = line.out_step;
    const int64_t whole = line.whole;
    for (int64_t i = 0; i < whole; ++i, to += step) put(i, to);
    for (int64_t i = whole; i < line.count; ++i, to += step) {
      std::byte some[kLanes * sizeof(T)];
      put(i, some);
      std::memcpy(to, some, static_cast<size_t>(line.lanes) * sizeof(T));
    }
  }
};

// 1 for the first of the largest numbers of a group, 0 for all others; the first element, where none is a
// number.
struct HardmaxLine {
  static constexpr bool kNeedsRoom = false;

  // Of a line in rows: the first of its largest numbers, and where it is, -1 where there is no number.
  struct Found {
    float most;
    int64_t place;
  };
  template <class T>
  static Found first_of(const Line& line) {
    const Lanes lanes = lanes_of<T>(line);
    Found found{lanes.most[0], lanes.vector[0] * kLanes};
    for (size_t k = 1; k < kLanes; ++k) {
      const auto place = static_cast<int64_t>(lanes.vector[k] * kLanes + k);
      const bool is_before = lanes.most[k] == found.most && place < found.place;
      if (lanes.most[k] > found.most || is_before) found = {lanes.most[k], place};
    }
    return {found.most, place_of<T>(line, kItem<T>, 0, found.most, found.place)};
  }

  template <class T, bool kColumns>
  void compute(const Line& line) const {
    const T one(1.0F);
    if constexpr (kColumns) {
      const Lanes lanes = lanes_of<T>(line);
      std::array<int64_t, kLanes> places;
      for (int64_t k = 0; k < line.lanes; ++k) {
        const auto lane = static_cast<size_t>(k);
        places[lane] = place_of<T>(line, line.in[0].step, k, lanes.most[lane], lanes.vector[lane]);
      }
      for (int64_t i = 0; i < line.count; ++i) {
        std::memset(line.out + i * line.out_step, 0, static_cast<size_t>(line.lanes) * sizeof(T));
      }
      for (int64_t k = 0; k < line.lanes; ++k) {
        const int64_t place = std::max<int64_t>(0, places[static_cast<size_t>(k)]);
        store(line.out + place * line.out_step + k * kItem<T>, one);
      }
    } else {
      const int64_t place = std::max<int64_t>(0, first_of<T>(line).place);
      std::memset(line.out, 0, static_cast<size_t>(line.elements) * sizeof(T));
      store(line.out + place * kItem<T>, one);
    }
  }

 private:
  template <class T>
  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));

  // The largest of each lane, and the first vector that has it.
  struct Lanes {
    SixteenSingles most;
    std::array<uint32_t, kLanes> vector;
  };
  template <class T>
  static Lanes lanes_of(const Line& line) {
    Singles most[kSingleParts];
    SingleBits first[kSingleParts]{};
    std::fill_n(most, kSingleParts, Singles{} - std::numeric_limits<float>::infinity());
    for_singles<T>(line, [&](int64_t i, int64_t p, Singles x) ANYDML_INLINE_LAMBDA {
      const auto is_larger = x > most[p];
      most[p] = is_larger ? x : most[p];
      first[p] = is_larger ? SingleBits{} + static_cast<uint32_t>(i) : first[p];
    });
    Lanes found;
#pragma GCC unroll 16
    for (int64_t p = 0; p < kSingleParts; ++p) {
      put_part_of(found.most, p, most[p]);
      std::memcpy(found.vector.data() + p * kSingleLanes, &first[p], sizeof(first[p]));
    }
    return found;
  }

  // Where nothing is larger than the lowest number, that of the first number.
  template <class T>
  static int64_t place_of(const Line& line, int64_t step, int64_t lane, float most, int64_t place) {
    if (most > -std::numeric_limits<float>::infinity()) return place;
    for (int64_t i = 0; i < line.elements; ++i) {
      const auto x = widen<T, float>(line.in[0].at + i * step + lane * kItem<T>);
      if (x == x) return i;
    }
    return -1;
  }
};

ANYDML_ISA_END
