// Scans of so few columns side by side that they do not fill a vector. Floats go in pairs of rows,
//   L(i + 1) = L(i - 1) o (x(i) o x(i + 1)),
// as each L waits for the one before it, and for little else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "cumulative_stage.h"
#include "cumulative_tally.h"
#include "isa.h"
#include "memory.h"
#include "stream.h"
#include "vector.h"

ANYDML_ISA_BEGIN

enum class Output { kNone, kInclusive, kExclusive };

#if defined(ANYDML_VECTORS)

// `rows` steps along the axis, of columns that lie side by side.
struct Steps {
  int64_t rows;
  const std::byte* in;
  int64_t in_step;
  std::byte* out;
  int64_t out_step;

  Steps part(int64_t begin, int64_t end) const {
    return {end - begin, in + begin * in_step, in_step, out + begin * out_step, out_step};
  }
};

// Column by column, as many as there are. kCarried: with a tally of the blocks before.
template <class T, class Operation, Output kOutput, bool kCarried>
class SingleColumns {
  using Tally = TallyOf<T>;
  static constexpr int64_t kSize = sizeof(T);

 public:
  // Rows of floats are in pairs.
  static constexpr int kPair = kIsFloat<T> ? 2 : 1;

  static constexpr int64_t rows_per_line(int columns) {
    return std::max<int64_t>(1, kLine / (columns * kSize) / kPair) * kPair;
  }

  // One row, or two, which are both read before one is written.
  template <int kRows, class Wide, class Load, class Store>
  ANYDML_INLINE static void advance(Wide& tally, const Load& load, const Store& store) {
    Wide x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = load(r);
    const Wide next = Operation::combine(tally, x[0]);
    store(0, kOutput == Output::kExclusive ? tally : next);
    if constexpr (kRows == 1) {
      tally = next;
    } else {
      tally = Operation::combine(tally, Operation::combine(x[0], x[1]));
      store(1, kOutput == Output::kExclusive ? next : tally);
    }
  }

  ANYDML_INLINE static void scan(const Steps& steps, int columns, Tally* tallies, const Tally* before,
                                 Stage& stage) {
    for (int64_t i = 0; i < steps.rows;) {
      const int64_t end = std::min(steps.rows, i + rows_per_line(columns));
      for (; i + kPair <= end; i += kPair) advance_row<kPair>(steps.part(i, end), columns, tallies, before);
      for (; i < end; ++i) advance_row<1>(steps.part(i, end), columns, tallies, before);
      stage.send_line();
    }
  }

  // The same, compiled once for any number of columns: converting halves takes much code.
  ANYDML_APART static void scan_apart(const Steps& steps, int columns, Tally* tallies, const Tally* before,
                                      Stage& stage) {
    scan(steps, columns, tallies, before, stage);
  }

 private:
  template <int kRows>
  ANYDML_INLINE static void advance_row(const Steps& steps, int columns, Tally* tallies,
                                        const Tally* before) {
    for (int j = 0; j < columns; ++j) {
      advance<kRows>(
          tallies[j], [&](int r) { return widen<T, Tally>(steps.in + r * steps.in_step + j * kSize); },
          [&](int r, Tally y) {
            if constexpr (kCarried) y = Operation::combine(before[j], y);
            if constexpr (kOutput != Output::kNone) {
              narrow<T, Tally>(steps.out + r * steps.out_step + j * kSize, y);
            }
          });
    }
  }
};

// As many as the compiler knows: floats in one vector, integers in registers.
template <class T, class Operation, Output kOutput, int kColumns, bool kCarried>
class FewColumns {
 public:
  using Tally = TallyOf<T>;

  // Packed rows many at a time, so that the stage is asked once for all of them.
  ANYDML_APART static void scan(const Steps& steps, Tally* tallies, const Tally* before, Stage& stage) {
    FewColumns columns(tallies, before);
    const bool packed = steps.out_step == kRow;
    const int64_t batch = packed ? Stage::kMost / 4 / kRow : steps.rows;
    for (int64_t start = 0; start < steps.rows; start += batch) {
      Steps some = steps.part(start, std::min(start + batch, steps.rows));
      if (kOutput != Output::kNone && packed) some.out = stage.room(some.out, some.rows * kRow);
      if constexpr (kIsFloat<T>) {
        columns.scan_floats(some, stage);
      } else {
        columns.scan_integers(some, std::make_integer_sequence<int, kColumns>{}, stage);
      }
    }
    std::copy_n(columns.tallies_, kColumns, tallies);
  }

 private:
  using V = Vector<Tally>;
  using Singly = SingleColumns<T, Operation, kOutput, kCarried>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Tally);
  static constexpr int64_t kRow = kColumns * kSize;
  static constexpr int kPair = Singly::kPair;
  static constexpr bool kPairsFit = 2 * kColumns <= kLanes;

  FewColumns(const Tally* tallies, const Tally* before) {
    std::copy_n(tallies, kColumns, tallies_);
    if constexpr (kCarried) std::copy_n(before, kColumns, before_);
  }

  // Without a loop over the columns, or compilers would keep tallies in memory; a row is read before it is
  // written, so that they see vectors.
  template <int... kColumn>
  void scan_integers(const Steps& steps, std::integer_sequence<int, kColumn...>, Stage& stage) {
    T tally[] = {tallies_[kColumn]...};
    auto [rows, in, in_step, out, out_step] = steps;
    for (int64_t i = 0; i < rows;) {
      const int64_t end = std::min(rows, i + Singly::rows_per_line(kColumns));
      for (; i < end; ++i, in += in_step, out += out_step) {
        const T x[] = {load<T>(in + kColumn * kSize)...};
        if constexpr (kOutput == Output::kExclusive) (store(out + kColumn * kSize, tally[kColumn]), ...);
        ((tally[kColumn] = Operation::combine(tally[kColumn], x[kColumn])), ...);
        if constexpr (kOutput == Output::kInclusive) (store(out + kColumn * kSize, tally[kColumn]), ...);
      }
      stage.send_line();
    }
    ((tallies_[kColumn] = tally[kColumn]), ...);
  }

  void scan_floats(const Steps& steps, Stage& stage) {
    const auto [begin, end] = readable_rows(steps);
    scan_edge(steps.part(0, begin), stage);
    scan_readable(steps.part(begin, end), stage);
    scan_edge(steps.part(end, steps.rows), stage);
  }

  void scan_readable(const Steps& steps, Stage& stage) {
    const bool packed = steps.in_step == steps.out_step && std::abs(steps.out_step) == kRow;
    if constexpr (kPairsFit) {
      if (packed && steps.out_step < 0) return scan_as_pairs<true>(steps, stage);
      if (packed) return scan_as_pairs<false>(steps, stage);
    }
    if (packed && steps.out_step > 0 && stage.streams()) return scan_as_vectors<true>(steps, stage);
    scan_as_vectors<false>(steps, stage);
  }

  // Rows, from an even one to another, of which a whole vector may be read: what lies behind them belongs to
  // other rows.
  static std::pair<int64_t, int64_t> readable_rows(const Steps& steps) {
    const int64_t step = std::abs(steps.in_step);
    if (step == 0) return {0, 0};
    constexpr int64_t kBeyond = (kLanes - kColumns) * kSize;
    const int64_t last = (kBeyond + step - 1) / step;
    if (steps.in_step < 0) {
      const int64_t begin = std::min(steps.rows, last + last % 2);
      return {begin, steps.rows - (steps.rows - begin) % 2};
    }
    const int64_t end = std::max<int64_t>(0, steps.rows - last);
    return {0, end - end % 2};
  }

  void scan_edge(const Steps& steps, Stage& stage) {
    if constexpr (std::is_same_v<T, Half>) {
      Singly::scan_apart(steps, kColumns, tallies_, before_, stage);
    } else {
      Singly::scan(steps, kColumns, tallies_, before_, stage);
    }
  }

  // A row's columns in one vector, with some of what lies behind them. kStaged: rows are packed, and the next
  // one is written over what this one writes too much.
  template <bool kStaged>
  void scan_as_vectors(const Steps& steps, Stage& stage) {
    const int64_t in_step = kStaged ? kRow : steps.in_step;
    const int64_t out_step = kStaged ? kRow : steps.out_step;
    V tally = load_vector<V>(reinterpret_cast<const std::byte*>(tallies_));
    const V before = load_vector<V>(reinterpret_cast<const std::byte*>(before_));
    const std::byte* from = steps.in;
    std::byte* to = steps.out;
    const auto load = [&](int r) { return load_wide<T, Tally>(from + r * in_step); };
    const auto store = [&](int r, V y) {
      if constexpr (kCarried) y = Operation::combine(before, y);
      if constexpr (kOutput == Output::kNone) return;
      if constexpr (kStaged) {
        store_wide<T, Tally>(to + r * out_step, y);
      } else {
        store_first<kRow>(to + r * out_step, narrow_row<T, Vector<uint16_t, 8>>(y));
      }
    };
    for (int64_t i = 0; i < steps.rows;) {
      const int64_t end = std::min(steps.rows, i + Singly::rows_per_line(kColumns));
      for (; i < end; i += kPair, from += kPair * in_step, to += kPair * out_step) {
        Singly::template advance<kPair>(tally, load, store);
      }
      stage.send_line();
    }
    store_vector(reinterpret_cast<std::byte*>(tallies_), tally);
  }

  // Two rows that lie side by side, in the lanes of one vector.
  template <bool kDown>
  class RowPair {
   public:
    // Where the first row on the walk begins, and the second.
    static constexpr int kFirst = kDown ? kColumns : 0;
    static constexpr int kSecond = kDown ? 0 : kColumns;

    // What is in the lowest lanes, twice; and the second row.
    ANYDML_INLINE static V twice(V row) { return twice<0>(row, kAll); }
    ANYDML_INLINE static V second_twice(V pair) { return twice<kSecond>(pair, kAll); }
    // The first row of one, and as the second the first of the other.
    ANYDML_INLINE static V moved_on(V before, V pair) { return moved_on(before, pair, kAll); }

   private:
    static constexpr auto kAll = std::make_integer_sequence<int, static_cast<int>(kLanes)>{};

    template <int kFrom, int... kLane>
    ANYDML_INLINE static V twice(V v, std::integer_sequence<int, kLane...>) {
      return __builtin_shufflevector(v, v, (kFrom + kLane % kColumns)...);
    }
    template <int... kLane>
    ANYDML_INLINE static V moved_on(V before, V v, std::integer_sequence<int, kLane...>) {
      constexpr auto from = [](int i) {
        const bool second = i >= kSecond && i < kSecond + kColumns;
        return second ? static_cast<int>(kLanes) + kFirst + i % kColumns : i;
      };
      return __builtin_shufflevector(before, v, from(kLane)...);
    }
  };

  // With p what a pair's rows come to among themselves,
  //   p = (x(i), x(i) o x(i + 1)),   y = (L, L) o p,   L' = L o p(i + 1).
  template <bool kDown>
  void scan_as_pairs(const Steps& steps, Stage& stage) {
    using Pair = RowPair<kDown>;
    constexpr int64_t kStep = (kDown ? -kPair : kPair) * kRow;
    const V identity = broadcast(static_cast<Tally>(Operation::kIdentity));
    V tally = Pair::twice(load_vector<V>(reinterpret_cast<const std::byte*>(tallies_)));
    const V before = Pair::twice(load_vector<V>(reinterpret_cast<const std::byte*>(before_)));
    const std::byte* from = steps.in - (kDown ? kRow : 0);
    std::byte* to = steps.out - (kDown ? kRow : 0);
    for (int64_t i = 0; i < steps.rows;) {
      const int64_t end = std::min(steps.rows, i + Singly::rows_per_line(kColumns));
      for (; i < end; i += kPair, from += kStep, to += kStep) {
        const V x = load_wide<T, Tally>(from);
        const V p = Operation::combine(Pair::moved_on(identity, x), x);
        V y = Operation::combine(tally, p);
        if constexpr (kOutput == Output::kExclusive) y = Pair::moved_on(tally, y);
        if constexpr (kCarried) y = Operation::combine(before, y);
        if constexpr (kOutput != Output::kNone) {
          store_first<2 * kRow>(to, narrow_row<T, Vector<uint16_t, 8>>(y));
        }
        tally = Operation::combine(tally, Pair::second_twice(p));
      }
      stage.send_line();
    }
    store_vector(reinterpret_cast<std::byte*>(tallies_), tally);
  }

  // What is beyond the columns, no output is made of.
  Tally tallies_[std::max<int64_t>(kColumns, kLanes)] = {};
  Tally before_[std::max<int64_t>(kColumns, kLanes)] = {};
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
