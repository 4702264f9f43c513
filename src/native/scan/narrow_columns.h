// Prefix scans of so few adjacent columns that they do not fill a vector. Floats are scanned in pairs of
// rows,
//   L(i + 1) = L(i - 1) o (x(i) o x(i + 1)),
// as each L waits for the one before it, and for little else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
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

// Which outputs a thread writes, and its writers: narrow columns of integers, and those in rows with gaps, go
// through the stage; all others are stored from registers.
struct ColumnOutputs {
  ColumnOutputs(bool exclusive, bool non_temporal)
      : exclusive(exclusive), stage(non_temporal), buffer(non_temporal, false) {}

  bool exclusive;
  StagedWriter stage;
  RealigningBuffer buffer;
};

// Floats are scanned in pairs of rows.
template <class T>
inline constexpr int kRowsAtOnce = kIsFloat<T> ? 2 : 1;
template <class T>
constexpr int64_t rows_per_line(int columns) {
  return std::max<int64_t>(1, kLine / (columns * static_cast<int64_t>(sizeof(T))) / kRowsAtOnce<T>) *
         kRowsAtOnce<T>;
}

// Scans any number of columns as scalars, or reduces them. `before` is the prefix of the blocks before, or
// null; it is for sums of floats alone, as others go on from block to block.
template <class T, class Operation, bool kStores>
class ScalarColumns {
  using Accumulator = AccumulatorOf<T>;
  static constexpr int64_t kSize = sizeof(T);

 public:
  ANYDML_NOINLINE static void scan(const RowRange& range, int columns, Accumulator* accumulators,
                                   const Accumulator* before, bool exclusive, StagedWriter& stage) {
    constexpr int kRows = kRowsAtOnce<T>;
    for (int64_t i = 0; i < range.rows;) {
      const int64_t end = std::min(range.rows, i + rows_per_line<T>(columns));
      for (; i + kRows <= end; i += kRows)
        advance_rows<kRows>(range.part(i, end), columns, accumulators, before, exclusive);
      for (; i < end; ++i) advance_rows<1>(range.part(i, end), columns, accumulators, before, exclusive);
      stage.send_line();
    }
  }

 private:
  // Scans a row, or two, both of which are read before one is written.
  template <int kRows>
  ANYDML_INLINE static void advance_rows(const RowRange& range, int columns, Accumulator* accumulators,
                                         const Accumulator* before, bool exclusive) {
    for (int j = 0; j < columns; ++j) {
      const Accumulator until = accumulators[j];
      Accumulator x[kRows];
      for (int r = 0; r < kRows; ++r) x[r] = widen<T, Accumulator>(range.in + r * range.in_step + j * kSize);
      const Accumulator next = Operation::combine(until, x[0]);
      Accumulator last = next;
      if constexpr (kRows == 2) last = Operation::combine(until, Operation::combine(x[0], x[1]));
      accumulators[j] = last;
      if constexpr (kStores) {
        const auto put = [&](int r, Accumulator y) {
          if constexpr (kIsOrderSensitive<T, Operation>) {
            if (before != nullptr) y = Operation::combine(before[j], y);
          }
          narrow<T, Accumulator>(range.out + r * range.out_step + j * kSize, y);
        };
        put(0, exclusive ? until : next);
        if constexpr (kRows == 2) put(1, exclusive ? next : last);
      }
    }
  }
};

// The rows, from an even one to another, that a load may start at that reads so many bytes beyond the
// columns, as the bytes behind them belong to other rows.
inline std::pair<int64_t, int64_t> readable_rows(const RowRange& range, int64_t beyond) {
  const int64_t step = std::abs(range.in_step);
  if (step == 0) return {0, 0};
  const int64_t last = (beyond + step - 1) / step;
  if (range.in_step < 0) {
    const int64_t begin = std::min(range.rows, last + last % 2);
    return {begin, range.rows - (range.rows - begin) % 2};
  }
  const int64_t end = std::max<int64_t>(0, range.rows - last);
  return {0, end - end % 2};
}

// Reduces narrow columns in pairs of rows. Lanes beyond the columns have elements of later rows.
template <class T, class Operation>
class NarrowReduction {
 public:
  using Accumulator = AccumulatorOf<T>;

  ANYDML_NOINLINE static void reduce(const RowRange& range, int columns, Accumulator* totals,
                                     StagedWriter& none) {
    using Scalar = ScalarColumns<T, Operation, false>;
    const auto [begin, end] = readable_rows(range, (kVectors * kLanes - columns) * kSize);
    Scalar::scan(range.part(0, begin), columns, totals, nullptr, false, none);
    reduce_pairs(range.part(begin, end), columns, totals);
    Scalar::scan(range.part(end, range.rows), columns, totals, nullptr, false, none);
  }

 private:
  using V = Vector<Accumulator>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int64_t kVectors =
      kIsFloat<T> ? 1 : (tuning::kNarrowIntegerColumns - 1 + kLanes - 1) / kLanes;

  static void reduce_pairs(const RowRange& range, int columns, Accumulator* totals) {
    V accumulators[kVectors] = {};
    std::byte* const lanes = reinterpret_cast<std::byte*>(accumulators);
    const size_t size = static_cast<size_t>(columns) * sizeof(Accumulator);
    std::memcpy(lanes, totals, size);
    auto [rows, in, in_step, out, out_step] = range;
    for (; rows > 0; rows -= 2, in += 2 * in_step) {
#pragma GCC unroll 2
      for (int k = 0; k < kVectors; ++k) {
        const V x = load_wide<T, Accumulator>(in + k * kLanes * kSize);
        const V next = load_wide<T, Accumulator>(in + in_step + k * kLanes * kSize);
        accumulators[k] = Operation::combine(accumulators[k], Operation::combine(x, next));
      }
    }
    std::memcpy(totals, lanes, size);
  }
};

// Scans a number of columns that the compiler knows: floats in one vector, integers in scalar registers.
template <class T, class Operation, int kColumns>
class NarrowColumns {
 public:
  using Accumulator = AccumulatorOf<T>;

  // `before` is the prefix of the blocks before, or null.
  ANYDML_NOINLINE static void scan(const RowRange& range, Accumulator* accumulators,
                                   const Accumulator* before, bool exclusive, StagedWriter& stage) {
    NarrowColumns columns(accumulators, before);
    columns.scan_all(range, exclusive, stage);
    std::copy_n(columns.accumulators_, kColumns, accumulators);
  }

 private:
  using V = Vector<Accumulator>;
  using Scalar = ScalarColumns<T, Operation, true>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int64_t kRow = kColumns * kSize;

  NarrowColumns(const Accumulator* accumulators, const Accumulator* before) {
    std::copy_n(accumulators, kColumns, accumulators_);
    std::fill_n(before_, kPlaces, kNeutral<Accumulator, Operation>);
    if (before != nullptr) std::copy_n(before, kColumns, before_);
  }

  // Scans packed outputs in batches of rows, so that the stage is asked once for all of them.
  void scan_all(const RowRange& range, bool exclusive, StagedWriter& stage) {
    const bool packed = range.out_step == kRow;
    const int64_t batch =
        packed ? StagedWriter::kMost / tuning::kNarrowBatchDivisor / kRow / kRowsAtOnce<T> * kRowsAtOnce<T>
               : range.rows;
    for (int64_t start = 0; start < range.rows; start += batch) {
      RowRange some = range.part(start, std::min(start + batch, range.rows));
      if (packed) some.out = stage.reserve(some.out, some.rows * kRow);
      if constexpr (kIsFloat<T>) {
        scan_floats(some, exclusive, stage);
      } else {
        if (exclusive) {
          scan_exclusively(some, stage);
        } else {
          scan_integers(some, kAll, stage);
        }
      }
    }
  }

  // The outputs of an exclusive scan are those of an inclusive one, a row further on. What that would write
  // over before it is read is copied first.
  ANYDML_NOINLINE void scan_exclusively(const RowRange& range, StagedWriter& stage) {
    const auto low = [&](const std::byte* first, int64_t step) {
      return reinterpret_cast<uintptr_t>(first + (step < 0 ? (range.rows - 1) * step : 0));
    };
    const auto size = [&](int64_t step) {
      return static_cast<uintptr_t>((range.rows - 1) * std::abs(step) + kRow);
    };
    const uintptr_t in = low(range.in, range.in_step);
    const uintptr_t out = low(range.out, range.out_step);
    const bool copies = in < out + size(range.out_step) && out < in + size(range.in_step);
    constexpr int64_t kCopiedRows = 4096 / kRow;
    std::byte copied[kCopiedRows * kRow];
    const int64_t at_once = copies ? kCopiedRows : range.rows;
    for (int64_t start = 0; start < range.rows; start += at_once) {
      RowRange some = range.part(start, std::min(start + at_once, range.rows));
      if (copies) {
        for (int64_t r = 0; r < some.rows; ++r)
          std::memcpy(copied + r * kRow, some.in + r * some.in_step, kRow);
        some.in = copied;
        some.in_step = kRow;
      }
      const int64_t last = some.rows - 1;
      const std::byte* const from = some.in + last * some.in_step;
      std::memcpy(some.out, accumulators_, kRow);
      scan_integers({last, some.in, some.in_step, some.out + some.out_step, some.out_step}, kAll, stage);
      for (int j = 0; j < kColumns; ++j)
        accumulators_[j] = Operation::combine(accumulators_[j], load<T>(from + j * kSize));
    }
  }

  // The columns are a parameter pack, as compilers would keep the accumulators of a loop in memory. A row is
  // read before it is written, so that compilers find vectors.
  template <int... kColumn>
  ANYDML_NOINLINE void scan_integers(const RowRange& range, std::integer_sequence<int, kColumn...>,
                                     StagedWriter& stage) {
    T accumulator[] = {accumulators_[kColumn]...};
    auto [rows, in, in_step, out, out_step] = range;
    for (int64_t i = 0; i < rows;) {
      const int64_t end = std::min(rows, i + rows_per_line<T>(kColumns));
      prefetch_line(prefetch_address(in, in_step < 0));
#pragma GCC unroll 4
      for (; i < end; ++i, in += in_step, out += out_step) {
        const T x[] = {load<T>(in + kColumn * kSize)...};
        ((accumulator[kColumn] = Operation::combine(accumulator[kColumn], x[kColumn])), ...);
        if constexpr (std::is_same_v<Operation, Product>) (hide(accumulator[kColumn]), ...);
        (store(out + kColumn * kSize, accumulator[kColumn]), ...);
      }
      stage.send_line();
    }
    ((accumulators_[kColumn] = accumulator[kColumn]), ...);
  }
  static constexpr std::make_integer_sequence<int, kColumns> kAll{};

  // Empty assembly hides a product from the compiler, which then multiplies scalars: where each product waits
  // for the one before it, many processors do so in a third of the time that vectors take.
  [[gnu::always_inline]] static void hide(T& value) { asm("" : "+r"(value)); }

  void scan_floats(const RowRange& range, bool exclusive, StagedWriter& stage) {
    const auto [begin, end] = readable_rows(range, (kLanes - kColumns) * kSize);
    Scalar::scan(range.part(0, begin), kColumns, accumulators_, before_, exclusive, stage);
    if (begin < end) scan_pairs(range.part(begin, end), exclusive, stage);
    Scalar::scan(range.part(end, range.rows), kColumns, accumulators_, before_, exclusive, stage);
  }

  // Scans a row's columns in one vector, whose other lanes have elements of later rows.
  void scan_pairs(const RowRange& range, bool exclusive, StagedWriter& stage) {
    V accumulator = load_vector<V>(reinterpret_cast<const std::byte*>(accumulators_));
    const V before = load_vector<V>(reinterpret_cast<const std::byte*>(before_));
    auto [rows, in, in_step, out, out_step] = range;
    const auto put = [&](std::byte* to, V y) {
      if constexpr (kIsOrderSensitive<T, Operation>) y = Operation::combine(before, y);
      store_first<kRow>(to, narrow_row<T, Vector<uint16_t, 8>>(y));
    };
    // What is stored for a row is what its scan begins with; where the scan is inclusive, what that of the
    // row after it begins with: so both kinds are one loop, which reads a row before the outputs of the one
    // before are stored.
    if (!exclusive) {
      const V x = load_wide<T, Accumulator>(in);
      const V next = load_wide<T, Accumulator>(in + in_step);
      put(out, Operation::combine(accumulator, x));
      accumulator = Operation::combine(accumulator, Operation::combine(x, next));
      in += 2 * in_step;
      out += out_step;
      rows -= 2;
    }
    for (int64_t i = 0; i < rows;) {
      const int64_t end = std::min(rows, i + rows_per_line<T>(kColumns));
      for (; i < end; i += 2, in += 2 * in_step, out += 2 * out_step) {
        const V x = load_wide<T, Accumulator>(in);
        const V next = load_wide<T, Accumulator>(in + in_step);
        put(out, accumulator);
        put(out + out_step, Operation::combine(accumulator, x));
        accumulator = Operation::combine(accumulator, Operation::combine(x, next));
      }
      stage.send_line();
    }
    if (!exclusive) put(out, accumulator);
    store_vector(reinterpret_cast<std::byte*>(accumulators_), accumulator);
  }

  // No output depends on the lanes beyond the columns.
  static constexpr int64_t kPlaces = std::max<int64_t>(kColumns, kLanes);
  Accumulator accumulators_[kPlaces] = {};
  Accumulator before_[kPlaces];
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
