// Prefix scans of so few adjacent columns that they do not fill a vector. Floats are scanned in pairs of
// rows,
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
#include "scan/row_range.h"
#include "scan/tuning.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// A thread's writers: narrow columns of integers, and those in rows with gaps, go through the stage; all
// others are stored from registers.
struct ColumnOutputs {
  explicit ColumnOutputs(bool non_temporal) : stage(non_temporal), buffer(non_temporal, false) {}

  StagedWriter stage;
  RealigningBuffer buffer;
};

// Scans any number of columns as scalars. kCarried: with a prefix of the blocks before.
template <class T, class Operation, Output kOutput, bool kCarried>
class ScalarColumns {
  using Accumulator = AccumulatorOf<T>;
  static constexpr int64_t kSize = sizeof(T);

 public:
  // Floats are scanned in pairs of rows.
  static constexpr int kRowUnroll = kIsFloat<T> ? 2 : 1;

  static constexpr int64_t rows_per_line(int columns) {
    return std::max<int64_t>(1, kLine / (columns * kSize) / kRowUnroll) * kRowUnroll;
  }

  // Scans a row, or two, both of which are read before one is written.
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

  ANYDML_NOINLINE static void scan(const RowRange& range, int columns, Accumulator* accumulators,
                                   const Accumulator* before, StagedWriter& stage) {
    for (int64_t i = 0; i < range.rows;) {
      const int64_t end = std::min(range.rows, i + rows_per_line(columns));
      for (; i + kRowUnroll <= end; i += kRowUnroll)
        advance_row<kRowUnroll>(range.part(i, end), columns, accumulators, before);
      for (; i < end; ++i) advance_row<1>(range.part(i, end), columns, accumulators, before);
      stage.send_line();
    }
  }

 private:
  template <int kRows>
  ANYDML_INLINE static void advance_row(const RowRange& range, int columns, Accumulator* accumulators,
                                        const Accumulator* before) {
    for (int j = 0; j < columns; ++j) {
      advance<kRows>(
          accumulators[j],
          [&](int r) { return widen<T, Accumulator>(range.in + r * range.in_step + j * kSize); },
          [&](int r, Accumulator y) {
            if constexpr (kCarried) y = Operation::combine(before[j], y);
            if constexpr (kOutput != Output::kNone) {
              narrow<T, Accumulator>(range.out + r * range.out_step + j * kSize, y);
            }
          });
    }
  }
};

// Scans a number of columns that the compiler knows: floats in one vector, integers in scalar registers.
template <class T, class Operation, Output kOutput, int kColumns, bool kCarried>
class NarrowColumns {
 public:
  using Accumulator = AccumulatorOf<T>;

  ANYDML_NOINLINE static void scan(const RowRange& range, Accumulator* accumulators,
                                   const Accumulator* before, StagedWriter& stage) {
    NarrowColumns columns(accumulators, before);
    columns.scan_all(range, stage);
    std::copy_n(columns.accumulators_, kColumns, accumulators);
  }

 private:
  using V = Vector<Accumulator>;
  using Scalar = ScalarColumns<T, Operation, kOutput, kCarried>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int64_t kRow = kColumns * kSize;
  static constexpr int kRowUnroll = Scalar::kRowUnroll;

  NarrowColumns(const Accumulator* accumulators, const Accumulator* before) {
    std::copy_n(accumulators, kColumns, accumulators_);
    if constexpr (kCarried) std::copy_n(before, kColumns, before_);
  }

  // Scans packed outputs in batches of rows, so that the stage is asked once for all of them.
  void scan_all(const RowRange& range, StagedWriter& stage) {
    const bool packed = range.out_step == kRow;
    const int64_t batch =
        packed ? StagedWriter::kMost / tuning::kNarrowBatchDivisor / kRow / kRowUnroll * kRowUnroll
               : range.rows;
    for (int64_t start = 0; start < range.rows; start += batch) {
      RowRange some = range.part(start, std::min(start + batch, range.rows));
      if (kOutput != Output::kNone && packed) some.out = stage.reserve(some.out, some.rows * kRow);
      if constexpr (kIsFloat<T>) {
        scan_floats(some, stage);
      } else {
        scan_integers(some, std::make_integer_sequence<int, kColumns>{}, stage);
      }
    }
  }

  // The columns are a parameter pack, as compilers would keep the accumulators of a loop in memory. A row is
  // read before it is written, so that compilers find vectors.
  template <int... kColumn>
  void scan_integers(const RowRange& range, std::integer_sequence<int, kColumn...>, StagedWriter& stage) {
    T accumulator[] = {accumulators_[kColumn]...};
    auto [rows, in, in_step, out, out_step] = range;
    for (int64_t i = 0; i < rows;) {
      const int64_t end = std::min(rows, i + Scalar::rows_per_line(kColumns));
      prefetch_line(prefetch_address(in, in_step < 0));
#pragma GCC unroll 4
      for (; i < end; ++i, in += in_step, out += out_step) {
        const T x[] = {load<T>(in + kColumn * kSize)...};
        if constexpr (kOutput == Output::kExclusive)
          (store(out + kColumn * kSize, accumulator[kColumn]), ...);
        ((accumulator[kColumn] = Operation::combine(accumulator[kColumn], x[kColumn])), ...);
        if constexpr (std::is_same_v<Operation, Product>) (hide(accumulator[kColumn]), ...);
        if constexpr (kOutput == Output::kInclusive)
          (store(out + kColumn * kSize, accumulator[kColumn]), ...);
      }
      stage.send_line();
    }
    ((accumulators_[kColumn] = accumulator[kColumn]), ...);
  }

  // Empty assembly hides a product from the compiler, which then multiplies scalars: where each product waits
  // for the one before it, many processors do so in a third of the time that vectors take.
  [[gnu::always_inline]] static void hide(T& value) { asm("" : "+r"(value)); }

  void scan_floats(const RowRange& range, StagedWriter& stage) {
    const auto [begin, end] = readable_rows(range);
    Scalar::scan(range.part(0, begin), kColumns, accumulators_, before_, stage);
    scan_vector_rows(range.part(begin, end), stage);
    Scalar::scan(range.part(end, range.rows), kColumns, accumulators_, before_, stage);
  }

  // The rows, from an even one to another, that a load of a whole vector may start at, as the bytes behind
  // them belong to other rows.
  static std::pair<int64_t, int64_t> readable_rows(const RowRange& range) {
    const int64_t step = std::abs(range.in_step);
    if (step == 0) return {0, 0};
    constexpr int64_t kBeyond = (kLanes - kColumns) * kSize;
    const int64_t last = (kBeyond + step - 1) / step;
    if (range.in_step < 0) {
      const int64_t begin = std::min(range.rows, last + last % 2);
      return {begin, range.rows - (range.rows - begin) % 2};
    }
    const int64_t end = std::max<int64_t>(0, range.rows - last);
    return {0, end - end % 2};
  }

  // Scans a row's columns in one vector, whose other lanes have elements of later rows.
  void scan_vector_rows(const RowRange& range, StagedWriter& stage) {
    V accumulator = load_vector<V>(reinterpret_cast<const std::byte*>(accumulators_));
    const V before = load_vector<V>(reinterpret_cast<const std::byte*>(before_));
    const std::byte* from = range.in;
    std::byte* to = range.out;
    const auto load = [&](int r) { return load_wide<T, Accumulator>(from + r * range.in_step); };
    const auto store = [&](int r, V y) {
      if constexpr (kCarried) y = Operation::combine(before, y);
      if constexpr (kOutput == Output::kNone) return;
      store_first<kRow>(to + r * range.out_step, narrow_row<T, Vector<uint16_t, 8>>(y));
    };
    for (int64_t i = 0; i < range.rows;) {
      const int64_t end = std::min(range.rows, i + Scalar::rows_per_line(kColumns));
      for (; i < end;
           i += kRowUnroll, from += kRowUnroll * range.in_step, to += kRowUnroll * range.out_step) {
        Scalar::template advance<kRowUnroll>(accumulator, load, store);
      }
      stage.send_line();
    }
    store_vector(reinterpret_cast<std::byte*>(accumulators_), accumulator);
  }

  // No output depends on the lanes beyond the columns.
  Accumulator accumulators_[std::max<int64_t>(kColumns, kLanes)] = {};
  Accumulator before_[std::max<int64_t>(kColumns, kLanes)] = {};
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
