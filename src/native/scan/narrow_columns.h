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

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/packed_columns.h"
#include "scan/row_range.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// What one thread holds back of its outputs: in the stage, of a few columns of integers or in rows with gaps;
// else in the outlet.
struct ColumnOutputs {
  explicit ColumnOutputs(bool streams) : stage(streams), pending(streams, false) {}

  StagedWriter stage;
  PendingStore pending;
};

// Column by column, as many as there are. kCarried: with a tally of the blocks before.
template <class T, class Operation, Output kOutput, bool kCarried>
class SingleColumns {
  using Accumulator = AccumulatorOf<T>;
  static constexpr int64_t kSize = sizeof(T);

 public:
  // Rows of floats are in pairs.
  static constexpr int kRowUnroll = kIsFloat<T> ? 2 : 1;

  static constexpr int64_t rows_per_line(int columns) {
    return std::max<int64_t>(1, kLine / (columns * kSize) / kRowUnroll) * kRowUnroll;
  }

  // One row, or two, which are both read before one is written.
  template <int kRows, class Wide, class Load, class Store>
  ANYDML_INLINE static void advance(Wide& accumulator, const Load& load, const Store& store) {
    Wide x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = load(r);
    const Wide next = Operation::combine(accumulator, x[0]);
    store(0, kOutput == Output::kExclusive ? accumulator : next);
    if constexpr (kRows == 1) {
      accumulator = next;
    } else {
      accumulator = Operation::combine(accumulator, Operation::combine(x[0], x[1]));
      store(1, kOutput == Output::kExclusive ? next : accumulator);
    }
  }

  // Compiled once for any number of columns.
  ANYDML_NOINLINE static void scan(const RowRange& steps, int columns, Accumulator* accumulators,
                                   const Accumulator* before, StagedWriter& stage) {
    for (int64_t i = 0; i < steps.rows;) {
      const int64_t end = std::min(steps.rows, i + rows_per_line(columns));
      for (; i + kRowUnroll <= end; i += kRowUnroll)
        advance_row<kRowUnroll>(steps.part(i, end), columns, accumulators, before);
      for (; i < end; ++i) advance_row<1>(steps.part(i, end), columns, accumulators, before);
      stage.send_line();
    }
  }

 private:
  template <int kRows>
  ANYDML_INLINE static void advance_row(const RowRange& steps, int columns, Accumulator* accumulators,
                                        const Accumulator* before) {
    for (int j = 0; j < columns; ++j) {
      advance<kRows>(
          accumulators[j],
          [&](int r) { return widen<T, Accumulator>(steps.in + r * steps.in_step + j * kSize); },
          [&](int r, Accumulator y) {
            if constexpr (kCarried) y = Operation::combine(before[j], y);
            if constexpr (kOutput != Output::kNone) {
              narrow<T, Accumulator>(steps.out + r * steps.out_step + j * kSize, y);
            }
          });
    }
  }
};

// As many as the compiler knows: floats in one vector, unless rows are packed; integers in registers.
template <class T, class Operation, Output kOutput, int kColumns, bool kCarried>
class FewColumns {
 public:
  using Accumulator = AccumulatorOf<T>;

  ANYDML_NOINLINE static void scan(const RowRange& steps, Accumulator* accumulators,
                                   const Accumulator* before, ColumnOutputs& outputs) {
    if constexpr (kIsFloat<T>) {
      if (steps.in_step == steps.out_step && std::abs(steps.out_step) == kRow) {
        using Packed = PackedColumns<T, Operation, kOutput, kColumns, kCarried>;
        return Packed::scan(steps, accumulators, before, outputs.pending);
      }
    }
    FewColumns columns(accumulators, before);
    columns.scan_all(steps, outputs.stage);
    std::copy_n(columns.tallies_, kColumns, accumulators);
  }

 private:
  using V = Vector<Accumulator>;
  using Singly = SingleColumns<T, Operation, kOutput, kCarried>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int64_t kRow = kColumns * kSize;
  static constexpr int kRowUnroll = Singly::kRowUnroll;

  FewColumns(const Accumulator* accumulators, const Accumulator* before) {
    std::copy_n(accumulators, kColumns, tallies_);
    if constexpr (kCarried) std::copy_n(before, kColumns, before_);
  }

  // Packed outputs many rows at a time, so that the stage is asked once for all of them.
  void scan_all(const RowRange& steps, StagedWriter& stage) {
    const bool packed = steps.out_step == kRow;
    const int64_t batch = packed ? StagedWriter::kMost / 4 / kRow / kRowUnroll * kRowUnroll : steps.rows;
    for (int64_t start = 0; start < steps.rows; start += batch) {
      RowRange some = steps.part(start, std::min(start + batch, steps.rows));
      if (kOutput != Output::kNone && packed) some.out = stage.reserve(some.out, some.rows * kRow);
      if constexpr (kIsFloat<T>) {
        scan_floats(some, stage);
      } else {
        scan_integers(some, std::make_integer_sequence<int, kColumns>{}, stage);
      }
    }
  }

  // Without a loop over the columns, or compilers would keep tallies in memory; a row is read before it is
  // written, so that they see vectors.
  template <int... kColumn>
  void scan_integers(const RowRange& steps, std::integer_sequence<int, kColumn...>, StagedWriter& stage) {
    T accumulator[] = {tallies_[kColumn]...};
    auto [rows, in, in_step, out, out_step] = steps;
    for (int64_t i = 0; i < rows;) {
      const int64_t end = std::min(rows, i + Singly::rows_per_line(kColumns));
      prefetch_line(prefetch_address(in, in_step < 0));
#pragma GCC unroll 4
      for (; i < end; ++i, in += in_step, out += out_step) {
        const T x[] = {load<T>(in + kColumn * kSize)...};
        if constexpr (kOutput == Output::kExclusive)
          (store(out + kColumn * kSize, accumulator[kColumn]), ...);
        ((accumulator[kColumn] = Operation::combine(accumulator[kColumn], x[kColumn])), ...);
        // Compilers see no further than here, and so multiply one by one, which many processors do in a third
        // of the time that vectors take, where each product waits for the one before it.
        if constexpr (std::is_same_v<Operation, Product>)
          (([&] { asm("" : "+r"(accumulator[kColumn])); }()), ...);
        if constexpr (kOutput == Output::kInclusive)
          (store(out + kColumn * kSize, accumulator[kColumn]), ...);
      }
      stage.send_line();
    }
    ((tallies_[kColumn] = accumulator[kColumn]), ...);
  }

  void scan_floats(const RowRange& steps, StagedWriter& stage) {
    const auto [begin, end] = readable_rows(steps);
    Singly::scan(steps.part(0, begin), kColumns, tallies_, before_, stage);
    scan_as_vectors(steps.part(begin, end), stage);
    Singly::scan(steps.part(end, steps.rows), kColumns, tallies_, before_, stage);
  }

  // Rows, from an even one to another, of which a whole vector may be read: what lies behind them belongs to
  // other rows.
  static std::pair<int64_t, int64_t> readable_rows(const RowRange& steps) {
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

  // A row's columns in one vector, with some of what lies behind them.
  void scan_as_vectors(const RowRange& steps, StagedWriter& stage) {
    V accumulator = load_vector<V>(reinterpret_cast<const std::byte*>(tallies_));
    const V before = load_vector<V>(reinterpret_cast<const std::byte*>(before_));
    const std::byte* from = steps.in;
    std::byte* to = steps.out;
    const auto load = [&](int r) { return load_wide<T, Accumulator>(from + r * steps.in_step); };
    const auto store = [&](int r, V y) {
      if constexpr (kCarried) y = Operation::combine(before, y);
      if constexpr (kOutput == Output::kNone) return;
      store_first<kRow>(to + r * steps.out_step, narrow_row<T, Vector<uint16_t, 8>>(y));
    };
    for (int64_t i = 0; i < steps.rows;) {
      const int64_t end = std::min(steps.rows, i + Singly::rows_per_line(kColumns));
      for (; i < end;
           i += kRowUnroll, from += kRowUnroll * steps.in_step, to += kRowUnroll * steps.out_step) {
        Singly::template advance<kRowUnroll>(accumulator, load, store);
      }
      stage.send_line();
    }
    store_vector(reinterpret_cast<std::byte*>(tallies_), accumulator);
  }

  // What is beyond the columns, no output is made of.
  Accumulator tallies_[std::max<int64_t>(kColumns, kLanes)] = {};
  Accumulator before_[std::max<int64_t>(kColumns, kLanes)] = {};
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
