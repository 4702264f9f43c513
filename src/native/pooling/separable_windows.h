// Pooling by separable windows without indices: columns first, then rows. The taps of each column of elements
// are combined by vectors where they lie, which takes the elements of rows apart by their place in a step on
// the way, and what is made of them is combined along the row.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pooling/channels.h"
#include "pooling/geometry.h"
#include "pooling/half_sums.h"
#include "pooling/roots.h"
#include "pooling/separable_geometry.h"
#include "pooling/windows.h"
#include "simd/strided_copy.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// Rows of places of some planes at once, in a buffer: what `Operation` makes of all taps.
template <class Operation>
class SeparableWindows : public SeparableGeometry {
 public:
  using T = typename Operation::Element;
  using Number = typename Operation::Number;
  using Combine = typename Operation::Combine;
  using Numbers = typename NumbersOf<Number>::type;
  static constexpr int64_t kItem = sizeof(T);
  static constexpr int64_t kEach = sizeof(Numbers) / sizeof(Number);
  static constexpr bool kHasIndices = false;

  SeparableWindows(Nest nest, Operation operation, bool is_of_channels)
      : SeparableGeometry(std::move(nest), is_of_channels, kBehind), operation_(operation) {
    const Range elements = elements_of(0);
    const int64_t run = is_of_channels ? at_once_ : elements.size();
    const int64_t step = is_of_channels ? nest_.outer[0].window.in_stride : row_.in_stride;
    is_paired_ = fits_pairs();
    int64_t bytes = row_.size * kItem;
    for (const Dimension& dimension : nest_.outer) bytes *= dimension.window.size;
    is_far_ = bytes >= kStreamFrom;
    is_in_place_ = slots_.stay() && step == kItem && run >= least();
  }

 private:
  static constexpr Number kStart = Combine::template kStart<Number>;
  // Vectors at once, and what they go over behind the last number.
  static constexpr int kMany = 4;
  static constexpr int64_t kBehind = kMany * kEach;
  // Elements of a row that are read where they are: shorter ones are copied to others before.
  static constexpr int64_t kFew = 2;
  static constexpr int64_t kLeast = kFew * kEach;
  // Averages of halves in pairs of singles; where a product and its sum are not rounded once, doubles are
  // faster.
  static constexpr bool kHasPairs =
      std::is_same_v<T, Half> && std::is_same_v<Combine, Sum> && HalfSums::kAreFast;
  static constexpr int64_t kPaired = HalfSums::kLanes;
  static constexpr int64_t kPairs = kMany * kEach / kPaired;

 public:
  struct Buffers {
    explicit Buffers(const SeparableWindows& plan)
        : slot(plan.of_slot() + kBehind),
          // What is between rows is never written.
          elements(static_cast<size_t>(slot * plan.slots_.count()), T(kStart)),
          columns(static_cast<size_t>(plan.phase_ * plan.row_.stride + kBehind), kStart),
          line(plan.row_.stride == 1 || plan.is_of_channels_ ? 0 : static_cast<size_t>(slot), kStart),
          numbers(static_cast<size_t>(plan.slot_ + kBehind)),
          results(std::is_same_v<T, Number> ? 0 : numbers.size()),
          pairs(plan.is_paired_ ? 2 * columns.size() : 0),
          slots(plan.slots_) {}

    int64_t slot;
    std::vector<T> elements;      // rows of them, where they are copied
    std::vector<Number> columns;  // what is made of their taps, by the place in a step
    std::vector<Number> line;     // the same in the order of elements
    std::vector<Number> numbers;
    std::vector<T> results;
    std::vector<float>
        pairs;       // what is made of columns where it is pairs: all of the first ones, then the others
    RowSlots slots;  // of elements
    std::array<const std::byte*, RowSlots::kMost> rows{};  // to be combined
    int64_t count = 0;
    bool is_begun = false;
    int64_t first = 0;  // place of the part of a row
    // Divisors of averages and their reciprocals, and what all of them have in common.
    std::vector<double> divisors;
    std::vector<double> reciprocals;
    std::vector<float> counts;  // the same for pairs
    std::vector<float> parts;
    double around = 0;
    bool are_powers = false;  // of 2, as which products with reciprocals are exact
  };

  // What is made of the part's windows in planes from the one on that lies at `in`: in buffers.numbers, by
  // the steps of planes and places.
  void pool(const Part& part, int64_t planes, const std::byte* in, Buffers& buffers) const {
    if (buffers.first != part.first) {
      buffers.first = part.first;
      buffers.slots.forget();
      buffers.around = 0;
    }
    const bool is_in_place = is_in_place_ && (!is_of_channels_ || planes >= least());
    buffers.is_begun = false;
    add(1, part, planes, in + part.first * row_.stride * row_.in_stride, is_in_place, buffers);
    if constexpr (kHasPairs) {
      if (is_paired_ && buffers.count > 0) {
        columns_of_rows(planes, is_in_place, true, buffers);
        divide_by(part, buffers);
        if (average_pairs(numbers_of(planes), buffers)) return end_batch(buffers);
      }
    }
    combine_columns(planes, is_in_place, buffers);
    if (!buffers.is_begun) {
      std::ranges::fill(buffers.numbers, kStart);
      std::ranges::fill(buffers.results, T(kStart));
      return;
    }
    const bool is_of_line = !is_of_channels_ && row_.stride > 1 && !goes_apart();
    if (is_of_line) take_apart(planes, buffers);
    const int64_t count = numbers_of(planes);
    if constexpr (std::is_same_v<Combine, Sum>) {
      if (is_average()) {
        divide_by(part, buffers);
        return buffers.are_powers ? average<true>(count, buffers) : average<false>(count, buffers);
      }
    }
    combine_rows(count, buffers,
                 [&](int64_t i, Numbers x) { std::memcpy(buffers.numbers.data() + i, &x, sizeof(x)); });
  }

  // The same numbers as elements, rounded once.
  const std::byte* round(const Part& part, int64_t planes, Buffers& buffers) const {
    auto* const numbers = reinterpret_cast<std::byte*>(buffers.numbers.data());
    if constexpr (std::is_same_v<T, Number>) return numbers;
    auto* const to = reinterpret_cast<std::byte*>(buffers.results.data());
    if (is_average()) return to;
    const int64_t count = numbers_of(planes);
    // Of what is between places, too.
    operation_.finish(nest_, Part{part.place, 0, count}, buffers.numbers.data());
    for (int64_t i = 0; i < count; i += kEach) {
      const auto x =
          load_numbers<Number, Number, Numbers>(numbers + i * static_cast<int64_t>(sizeof(Number)));
      store_numbers<T, Number, Numbers>(to + i * kItem, x);
    }
    return to;
  }

  const Operation& operation() const { return operation_; }

 private:
  // By how many taps are counted.
  void divide_by(const Part& part, Buffers& buffers) const {
    const double around = Operation::counted_around(nest_, part);
    if (buffers.around == around) return;
    buffers.around = around;
    buffers.divisors.assign(static_cast<size_t>(slot_ + kBehind), 1);
    buffers.reciprocals.assign(static_cast<size_t>(slot_ + kBehind), 1);
    buffers.are_powers = true;
    for (int64_t i = 0; i < part.size; ++i) {
      const double divisor = around * nest_.row.counted[static_cast<size_t>(part.first + i)];
      const double reciprocal = 1 / divisor;
      buffers.are_powers &= std::has_single_bit(static_cast<uint64_t>(divisor));
      for (int64_t p = 0; p < at_once_; ++p) {
        const auto at = static_cast<size_t>(p * plane_step_ + i * place_step_);
        buffers.divisors[at] = divisor;
        buffers.reciprocals[at] = reciprocal;
      }
    }
    if (!is_paired_) return;
    buffers.counts.assign(buffers.divisors.begin(), buffers.divisors.end());
    buffers.parts.assign(buffers.reciprocals.begin(), buffers.reciprocals.end());
  }

  // Elements of a slot: of channels, with the places of a step apart already.
  int64_t of_slot() const { return is_of_channels_ ? phase_ * row_.stride : all_; }

  // Whether elements of planes are taken apart where their columns are combined.
  bool goes_apart() const { return row_.stride == 2 && slots_.stay(); }

  // The rows of what is under the windows' taps in the dimensions from the d-th one on.
  void add(size_t d, const Part& part, int64_t planes, const std::byte* from, bool is_in_place,
           Buffers& buffers) const {
    if (d == std::min(nest_.outer.size(), kMostOuter)) {
      if (buffers.count == slots_.count()) combine_columns(planes, is_in_place, buffers);
      const std::byte* const row = is_in_place ? from : copied(planes, from, buffers);
      buffers.rows[static_cast<size_t>(buffers.count++)] = row;
      return;
    }
    const Sliding& window = nest_.outer[d].window;
    const auto [first, last] = window.inside(part.place[d]);
    int64_t element = window.origin(part.place[d]) + first * window.dilation;
    for (int64_t k = first; k < last; ++k, element += window.dilation) {
      add(d + 1, part, planes, from + element * window.in_stride, is_in_place, buffers);
    }
  }

  // A copy of rows of elements that lie side by side.
  const std::byte* copied(int64_t planes, const std::byte* from, Buffers& buffers) const {
    const auto slot_at = [&](int64_t i) { return buffers.elements.data() + i * buffers.slot; };
    const int64_t slot =
        buffers.slots.of(from, [&](int64_t i) { copy(planes, from, buffers.first, slot_at(i)); });
    return reinterpret_cast<const std::byte*>(slot_at(slot));
  }
  void copy(int64_t planes, const std::byte* from, int64_t place, T* elements) const {
    const Range inside = elements_of(place);
    auto* const to = reinterpret_cast<std::byte*>(elements);
    if (is_of_channels_) {
      pad(inside, elements);
      from += (inside.begin - row_.start) * row_.in_stride;
      for (int64_t i = inside.begin; i < inside.end; ++i, from += row_.in_stride) {
        copy_short(to + offset_of(i, at_once_) * kItem, from, planes * kItem);
      }
      return;
    }
    for (int64_t p = 0; p < planes; ++p, from += nest_.outer[0].window.in_stride) {
      std::byte* const row = to + (p * pitch_ + inside.begin) * kItem;
      if (row_.in_stride == kItem) {
        copy_short(row, from, inside.size() * kItem);
      } else {
        for (int64_t i = 0; i < inside.size(); ++i) {
          store(row + i * kItem, load<T>(from + i * row_.in_stride));
        }
      }
    }
  }
  // Channels of elements that lie outside.
  template <class X>
  void pad(Range inside, X* to) const {
    const auto pad = [&](int64_t i) { std::fill_n(to + offset_of(i, at_once_), at_once_, X(kStart)); };
    for (int64_t i = 0; i < inside.begin; ++i) pad(i);
    for (int64_t i = inside.end; i < pitch_; ++i) pad(i);
  }

  // Of the rows that are there, one after the other.
  void combine_columns(int64_t planes, bool is_in_place, Buffers& buffers) const {
    if (buffers.count == 0) return;
    columns_of_rows(planes, is_in_place, false, buffers);
    buffers.is_begun = true;
    end_batch(buffers);
  }
  static void end_batch(Buffers& buffers) {
    buffers.count = 0;
    buffers.slots.end_batch();
  }

  void columns_of_rows(int64_t planes, bool is_in_place, bool are_pairs, Buffers& buffers) const {
    const auto [begin, end] = elements_of(buffers.first);
    const bool is_apart = !is_of_channels_ && goes_apart();
    Number* const columns = buffers.columns.data();
    Number* const to = is_of_channels_ || row_.stride == 1 || is_apart ? columns : buffers.line.data();
    const auto run = [&](int64_t from, int64_t count, int64_t at) {
      if constexpr (kHasPairs) {
        float* const pairs = buffers.pairs.data();
        if (are_pairs && is_apart) {
          return columns_of<true, true>(buffers, is_in_place, from, count, pairs, at);
        }
        if (are_pairs) return columns_of<false, true>(buffers, is_in_place, from, count, pairs, at);
      }
      if (is_apart) return columns_of<true, false>(buffers, is_in_place, from, count, to, at);
      columns_of<false, false>(buffers, is_in_place, from, count, to, at);
    };
    if (!is_in_place) {
      run(0, is_of_channels_ ? of_slot() : planes * pitch_ + (row_.taps - 1) * row_.dilation, 0);
    } else if (is_of_channels_) {
      pad({begin, end}, columns);
      if (are_pairs) {
        pad({begin, end}, buffers.pairs.data());
        pad({begin, end}, buffers.pairs.data() + buffers.columns.size());
      }
      int64_t from = (begin - row_.start) * row_.in_stride;
      if (row_.stride == 1 && row_.in_stride == planes * kItem && planes == at_once_) {
        run(from, (end - begin) * planes, begin * planes);
      } else {
        for (int64_t i = begin; i < end; ++i, from += row_.in_stride) {
          run(from, planes, offset_of(i, at_once_));
        }
      }
    } else {
      for (int64_t p = 0; p < planes; ++p) {
        run(p * nest_.outer[0].window.in_stride, end - begin, p * pitch_ + begin);
      }
    }
  }

  // Columns of some elements of the rows: to where the first one's result belongs and the next ones, or of
  // those with an odd place to the second phase. What is read where it is has nothing behind it, so that the
  // last ones are made twice.
  template <bool kApart, bool kArePairs, class To>
  ANYDML_NOINLINE void columns_of(const Buffers& buffers, bool is_in_place, int64_t from, int64_t count,
                                  To* to, int64_t at) const {
    const auto run = [&]<int kVectors>() {
      constexpr int64_t kCount = kVectors * kEach;
      const int64_t last = is_in_place ? count - kCount : count;
      for (int64_t begin = 0; begin < count; begin += kCount) {
        const int64_t i = std::min(begin, last);
        if constexpr (kArePairs) {
          some_pairs<kApart>(buffers, from + i * kItem, to, at + i);
        } else {
          some_columns<kVectors, kApart>(buffers, from + i * kItem, to, at + i);
        }
      }
    };
    if constexpr (kArePairs) {
      run.template operator()<kMany>();
    } else if (!is_in_place || count >= kMany * kEach) {
      run.template operator()<kMany>();
    } else {
      run.template operator()<kFew>();
    }
  }

  // One row after the other; before them what there is already, if it has been begun.
  template <int kVectors, bool kApart>
  ANYDML_INLINE void some_columns(const Buffers& buffers, int64_t from, Number* to, int64_t at) const {
    Numbers all[kVectors];
    const int64_t p = power();
    const std::byte* const* const rows = buffers.rows.data();
    const auto number = [&](int64_t r, int v) {
      Numbers x = load_numbers<T, Number, Numbers>(rows[r] + from + v * kEach * kItem);
      if constexpr (std::is_same_v<Combine, Sum>) {
        if (p == 2) return Numbers(x * x);
        if (p != 0) return power_of(x, p);
      }
      return x;
    };
    // A sum begins with the first row, as 0 comes before those of columns.
    constexpr bool kIsSum = std::is_same_v<Combine, Sum>;
    const bool is_begun = !kApart && buffers.is_begun;
    // One by one, as all would go through memory.
    ANYDML_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      if (is_begun) {
        std::memcpy(&all[v], to + at + v * kEach, sizeof(Numbers));
      } else {
        all[v] = kIsSum ? number(0, v) : Numbers{} + kStart;
      }
    }
    for (int64_t r = kIsSum && !is_begun ? 1 : 0; r < buffers.count; ++r) {
      if (is_far_) {
        prefetch_line(rows[r] + from + kAhead);
        if constexpr (kVectors * kEach * kItem > kLine) prefetch_line(rows[r] + from + kAhead + kLine);
      }
      ANYDML_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) all[v] = combined(all[v], number(r, v));
    }
    if constexpr (kApart) {
      Number* const even = to + at % 2 * phase_ + at / 2;
      Number* const odd = to + (at + 1) % 2 * phase_ + (at + 1) / 2;
      ANYDML_UNROLL(2)
      for (int v = 0; v < kVectors; v += 2) {
        const Numbers evens = every_second<0>(all[v], all[v + 1]);
        const Numbers odds = every_second<1>(all[v], all[v + 1]);
        std::memcpy(even + v / 2 * kEach, &evens, sizeof(evens));
        std::memcpy(odd + v / 2 * kEach, &odds, sizeof(odds));
      }
    } else {
      ANYDML_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) std::memcpy(to + at + v * kEach, &all[v], sizeof(Numbers));
    }
  }

  template <bool kApart>
  ANYDML_INLINE void some_pairs(const Buffers& buffers, int64_t from, float* to, int64_t at) const {
    HalfColumns all[kPairs];
    const std::byte* const* const rows = buffers.rows.data();
    const auto element = [&](int64_t r, int64_t v) {
      return load_numbers<T, float, Singles>(rows[r] + from + v * kPaired * kItem);
    };
    ANYDML_UNROLL(4)
    for (int64_t v = 0; v < kPairs; ++v) all[v].begin(element(0, v));
    for (int64_t r = 1; r < buffers.count; ++r) {
      if (is_far_) prefetch_line(rows[r] + from + kAhead);
      ANYDML_UNROLL(4)
      for (int64_t v = 0; v < kPairs; ++v) all[v].add(element(r, v));
    }
    const auto step = static_cast<int64_t>(buffers.columns.size());
    ANYDML_UNROLL(2)
    for (int64_t v = 0; v < kPairs; v += kApart ? 2 : 1) {
      const HalfSums first = all[v].sums();
      if constexpr (kApart) {
        const HalfSums second = all[v + 1].sums();
        // A shift and a mask of what is not negative.
        const auto place = static_cast<uint64_t>(at);
        float* const steps = to + place / 2 + v / 2 * kPaired;
        float* const even = place % 2 == 0 ? steps : steps + phase_;
        float* const odd = place % 2 == 0 ? steps + phase_ : steps + 1;
        HalfSums::store(even, every_second<0>(first.high, second.high));
        HalfSums::store(even + step, every_second<0>(first.low, second.low));
        HalfSums::store(odd, every_second<1>(first.high, second.high));
        HalfSums::store(odd + step, every_second<1>(first.low, second.low));
      } else {
        HalfSums::store(to + at + v * kPaired, first.high);
        HalfSums::store(to + at + v * kPaired + step, first.low);
      }
    }
  }

  ANYDML_INLINE static Numbers combined(Numbers all, Numbers x) {
    if constexpr (std::is_same_v<Combine, QuickMaximum>) return lane_max<Number>(x, all);
    return Combine::of(all, x);
  }

  int64_t power() const {
    if constexpr (std::is_same_v<Combine, Sum>) return operation_.p;
    return 0;
  }

  template <int kFirst, class V>
  ANYDML_INLINE static V every_second(V a, V b) {
#if defined(ANYDML_VECTORS)
    return [&]<int... kLane>(std::integer_sequence<int, kLane...>) {
      return __builtin_shufflevector(a, b, (2 * kLane + kFirst)...);
    }(std::make_integer_sequence<int, static_cast<int>(sizeof(V) / sizeof(a[0]))>{});
#else
    return kFirst == 0 ? a : b;
#endif
  }

  void take_apart(int64_t planes, Buffers& buffers) const {
    const int64_t count = planes * pitch_ + (row_.taps - 1) * row_.dilation;
    const Number* const line = buffers.line.data();
    for (int64_t i = 0; i < std::min(row_.stride, count); ++i) {
      Number* const to = buffers.columns.data() + i * phase_;
      const int64_t size = divided_up(count - i, row_.stride);
      for (int64_t j = 0; j < size; ++j) to[j] = line[i + j * row_.stride];
    }
  }

  // Taps of what has been made of columns, one after the other: put(i, x) takes the i-th number and the next
  // ones.
  template <class Put>
  ANYDML_INLINE void combine_rows(int64_t count, const Buffers& buffers, const Put& put) const {
    const Number* const columns = buffers.columns.data();
    for (int64_t i = 0; i < count; i += kMany * kEach) {
      Numbers all[kMany];
      ANYDML_UNROLL(4)
      for (int v = 0; v < kMany; ++v) all[v] = Numbers{} + kStart;
      for (const int64_t tap : taps_) {
        ANYDML_UNROLL(4)
        for (int v = 0; v < kMany; ++v) {
          Numbers x;
          std::memcpy(&x, columns + tap + i + v * kEach, sizeof(x));
          all[v] = combined(all[v], x);
        }
      }
      ANYDML_UNROLL(4)
      for (int v = 0; v < kMany; ++v) put(i + v * kEach, all[v]);
    }
  }

  template <bool kArePowers>
  void average(int64_t count, Buffers& buffers) const {
    auto* const to = reinterpret_cast<std::byte*>(buffers.results.data());
    combine_rows(count, buffers, [&](int64_t i, Doubles x) {
      Doubles divisor, reciprocal;
      std::memcpy(&reciprocal, buffers.reciprocals.data() + i, sizeof(reciprocal));
      if constexpr (kArePowers) {
        x = x * reciprocal;
      } else {
        std::memcpy(&divisor, buffers.divisors.data() + i, sizeof(divisor));
        x = Quotient(divisor, reciprocal).of(x);
      }
      store_numbers<T, double, Doubles>(to + i * kItem, x);
    });
  }

  // Whether all elements are finite: else nothing is known.
  bool average_pairs(int64_t count, Buffers& buffers) const {
    auto* const to = reinterpret_cast<std::byte*>(buffers.results.data());
    const float* const pairs = buffers.pairs.data();
    const auto step = static_cast<int64_t>(buffers.columns.size());
    Singles left{};
    for (int64_t i = 0; i < count; i += kPaired) {
      const auto at = [&](int64_t tap) {
        const float* const from = pairs + tap + i;
        return HalfSums{HalfSums::load(from), HalfSums::load(from + step)};
      };
      HalfSums all = at(0);
      for (size_t k = 1; k < taps_.size(); ++k) all.add(at(taps_[k]));
      const auto counts = HalfSums::load(buffers.counts.data() + i);
      const auto parts = HalfSums::load(buffers.parts.data() + i);
      store_numbers<T, float, Singles>(to + i * kItem, all.over(counts, parts, left));
    }
    float lanes[kPaired];
    std::memcpy(lanes, &left, sizeof(left));
    return std::ranges::all_of(lanes, [](float lane) { return lane == lane; });
  }

  bool fits_pairs() const {
    if (!kHasPairs || !is_average() || !slots_.stay()) return false;
    return HalfColumns::hold(nest_) && (is_of_channels_ || row_.stride <= 2);
  }

  // Elements of a row that are read where they are.
  int64_t least() const { return is_paired_ ? kMany * kEach : kLeast; }

  bool is_average() const {
    if constexpr (std::is_same_v<Combine, Sum>) return operation_.is_average();
    return false;
  }

  Operation operation_;
  bool is_far_ = false;       // whether elements are past the caches
  bool is_paired_ = false;    // whether sums are pairs of singles
  bool is_in_place_ = false;  // whether rows are read where they are
};

}  // namespace
ANYDML_ISA_END
