// Prefix scans along an axis of which several lines are adjacent in memory: a strip of columns is scanned row
// by row, with a vector of accumulators for each vector of columns. With L(j) the accumulator of column j in
// its block and C(j) the prefix of the blocks before,
//   L'(j) = L(j) o x(i, j),   y(i, j) = C(j) o L'(j)   (exclusive: C(j) o L(j)),
//   and at the end of a block, C'(j) = C(j) o L(j).
// A strip that is not cut into blocks has no C. Where it is cut, no block's L depends on C, so that one
// thread that carries C along and several that first reduce their blocks to L get the same bits. Integers
// give the same bits in any order, and have no C: a block's L begins with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/narrow_columns.h"
#include "scan/packed_columns.h"
#include "scan/policy.h"
#include "scan/row_range.h"
#include "scan/streamed_columns.h"
#include "scan/tuning.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, class Operation>
class ColumnScan {
 public:
  using Accumulator = AccumulatorOf<T>;

  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  // Fewer columns than that have kernels of their own.
  static constexpr int kNarrow = narrow_columns(kIsFloat<T>, sizeof(Accumulator));
  static_assert(kNarrow >= (kIsFloat<T> ? kLanes : 1) && kLanes <= tuning::kNarrowIntegerColumns);

  using Kernel = void (*)(const RowRange& range, int64_t width, Accumulator* accumulators,
                          const Accumulator* before, ColumnOutputs& outputs);

  // The kernel of an algorithm for strips of `width` columns, which is of no concern to kernels that take any
  // number. Each brings `accumulators`, which is L, on; `before` is C, or null where there is none.
  static Kernel choose(ScanAlgorithm algorithm, int64_t width) {
    if (!is_narrow(algorithm)) return scan_columns;
    if constexpr (kCompact) return scan_scalars;
    return [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
      if constexpr (kIsFloat<T>) {
        static constexpr Kernel kPacked[] = {scan_packed<kIndex + 1>...};
        if (algorithm == ScanAlgorithm::kPackedColumns) return kPacked[width - 1];
      }
      static constexpr Kernel kNarrowOnes[] = {scan_narrow<kIndex + 1>...};
      return kNarrowOnes[width - 1];
    }(std::make_integer_sequence<int, kNarrow - 1>{});
  }
  // That of a reduction, which has no outputs.
  static Kernel choose_reduction(ScanAlgorithm algorithm) {
    return is_narrow(algorithm) ? reduce_narrow : reduce_columns;
  }

 private:
  using V = Vector<Accumulator>;
  static constexpr int64_t kSize = sizeof(T);

  static bool is_narrow(ScanAlgorithm algorithm) {
    return algorithm == ScanAlgorithm::kPackedColumns || algorithm == ScanAlgorithm::kNarrowColumns;
  }

  template <int kColumns>
  static void scan_packed(const RowRange& range, int64_t, Accumulator* accumulators,
                          const Accumulator* before, ColumnOutputs& outputs) {
    PackedColumns<T, Operation, kColumns>::scan(range, accumulators, before, outputs.exclusive,
                                                outputs.buffer);
  }
  template <int kColumns>
  static void scan_narrow(const RowRange& range, int64_t, Accumulator* accumulators,
                          const Accumulator* before, ColumnOutputs& outputs) {
    NarrowColumns<T, Operation, kColumns>::scan(range, accumulators, before, outputs.exclusive,
                                                outputs.stage);
  }
  static void scan_scalars(const RowRange& range, int64_t width, Accumulator* accumulators,
                           const Accumulator* before, ColumnOutputs& outputs) {
    ScalarColumns<T, Operation, true>::scan(range, static_cast<int>(width), accumulators, before,
                                            outputs.exclusive, outputs.stage);
  }
  static void reduce_narrow(const RowRange& range, int64_t width, Accumulator* accumulators,
                            const Accumulator*, ColumnOutputs& outputs) {
    const auto columns = static_cast<int>(width);
    if constexpr (kCompact) {
      ScalarColumns<T, Operation, false>::scan(range, columns, accumulators, nullptr, false, outputs.stage);
    } else {
      NarrowReduction<T, Operation>::reduce(range, columns, accumulators, outputs.stage);
    }
  }
  static void reduce_columns(const RowRange& range, int64_t width, Accumulator* accumulators,
                             const Accumulator*, ColumnOutputs&) {
    scan_rows<false, false, false>(range, width, accumulators, nullptr);
  }
  static void scan_columns(const RowRange& range, int64_t width, Accumulator* accumulators,
                           const Accumulator* before, ColumnOutputs& outputs) {
    if constexpr (kIsOrderSensitive<T, Operation>) {
      if (before != nullptr) return scan_strip<true>(range, width, accumulators, before, outputs);
    }
    scan_strip<false>(range, width, accumulators, before, outputs);
  }

  // Scans columns that fill a vector. Non-temporal stores write short packed rows as one stream, long rows
  // line by line. kCarried: with a prefix of the blocks before, which only sums of floats have.
  template <bool kCarried>
  static void scan_strip(const RowRange& range, int64_t width, Accumulator* accumulators,
                         const Accumulator* before, ColumnOutputs& outputs) {
    const bool exclusive = outputs.exclusive;
    if constexpr (!kCompact) {
      const int64_t size = width * kSize;
      if (outputs.buffer.is_non_temporal()) {
        if (range.out_step == size && size <= tuning::kMostPackedRow) {
          using Streamed = StreamedColumns<T, Operation, kCarried>;
          if (Streamed::scan(range, width, accumulators, before, exclusive, outputs.buffer)) return;
        } else if (size >= tuning::kStreamedRowFrom && is_aligned(range)) {
          return stream_rows<kCarried>(range, width, accumulators, before, exclusive);
        }
      }
      if (on_few_vectors<kLanes>(width, [&]<int kVectors>(std::integral_constant<int, kVectors>) {
            scan_vectors<kVectors, kCarried>(range, width, accumulators, before, exclusive);
          }))
        return;
    }
    if (exclusive) {
      scan_rows<true, true, kCarried>(range, width, accumulators, before);
    } else {
      scan_rows<true, false, kCarried>(range, width, accumulators, before);
    }
  }

  // Keeps the accumulators of so few vectors in registers, for which all loops over them are unrolled. The
  // last vector may overlap the one before it; the lanes that they share have the same values in both. What
  // is stored for a row is what its scan begins with, or, inclusive, what that of the row after it begins
  // with.
  template <int kVectors, bool kCarried>
  ANYDML_NOINLINE static void scan_vectors(const RowRange& range, int64_t width, Accumulator* accumulators,
                                           const Accumulator* before, bool exclusive) {
    const int64_t last = width - kLanes;
    const auto column = [&](int k) { return k < kVectors - 1 ? k * kLanes : last; };
    V accumulator[kVectors];
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) accumulator[k] = load_accumulators(accumulators + column(k));
    auto [rows, in, in_step, out, out_step] = range;
    if (!exclusive) {
#pragma GCC unroll 8
      for (int k = 0; k < kVectors; ++k) {
        const V x = load_wide<T, Accumulator>(in + column(k) * kSize);
        accumulator[k] = Operation::combine(accumulator[k], x);
      }
      in += in_step;
      --rows;
    }
    for (; rows > 0; --rows, in += in_step, out += out_step) {
      const V last_x = load_wide<T, Accumulator>(in + last * kSize);
#pragma GCC unroll 8
      for (int k = 0; k < kVectors; ++k) {
        const int64_t j = column(k);
        const V x = k < kVectors - 1 ? load_wide<T, Accumulator>(in + j * kSize) : last_x;
        store_wide<T, Accumulator>(out + j * kSize, outputs_of<kCarried>(accumulator[k], before, j));
        accumulator[k] = Operation::combine(accumulator[k], x);
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) {
      const int64_t j = column(k);
      if (!exclusive)
        store_wide<T, Accumulator>(out + j * kSize, outputs_of<kCarried>(accumulator[k], before, j));
      store_vector(reinterpret_cast<std::byte*>(accumulators + j), accumulator[k]);
    }
  }

  // The outputs of columns from the j-th on, whose block comes to `accumulator`.
  template <bool kCarried>
  ANYDML_INLINE static V outputs_of(V accumulator, const Accumulator* before, int64_t j) {
    if constexpr (kCarried) return Operation::combine(load_accumulators(before + j), accumulator);
    return accumulator;
  }

  // Brings a vector of accumulators, from column j on, on by a row, and returns the outputs.
  template <bool kCarried>
  ANYDML_INLINE static V advance(V& accumulator, V x, const Accumulator* before, int64_t j, bool exclusive) {
    const V next = Operation::combine(accumulator, x);
    const V y = outputs_of<kCarried>(exclusive ? accumulator : next, before, j);
    accumulator = next;
    return y;
  }

  // Scans long rows one cache line of outputs at a time, which is stored at once. At the ends of a row it
  // stores the part of the line that is the row's own.
  template <bool kCarried>
  ANYDML_NOINLINE static void stream_rows(const RowRange& range, int64_t width, Accumulator* accumulators,
                                          const Accumulator* before, bool exclusive) {
    const std::byte* in = range.in;
    std::byte* out = range.out;
    for (int64_t r = 0; r < range.rows; ++r, in += range.in_step, out += range.out_step) {
      const int64_t head = to_next_line(out) / kSize;
      const int64_t tail = (width - head) % kColumns;
      stream_edge<kCarried>(in, out, accumulators, before, exclusive, 0, head);
      const int64_t last = width - kColumns;
      stream_edge<kCarried>(in + last * kSize, out + last * kSize, accumulators + last,
                            kCarried ? before + last : nullptr, exclusive, kColumns - tail, tail);
      for (int64_t j = head; j < width - tail; j += kColumns) {
        prefetch_line(in + range.in_step + j * kSize);
        advance_line<kCarried>(in + j * kSize, accumulators + j, kCarried ? before + j : nullptr, exclusive,
                               [&](int64_t at, auto y) { stream_vector(out + j * kSize + at, y); });
      }
    }
  }

  // Scans `count` columns of a line, from the i-th on.
  template <bool kCarried>
  ANYDML_NOINLINE static void stream_edge(const std::byte* in, std::byte* out, Accumulator* accumulators,
                                          const Accumulator* before, bool exclusive, int64_t i,
                                          int64_t count) {
    if (count == 0) return;
    Accumulator next[kColumns];
    std::byte line[kLine];
    std::copy_n(accumulators, kColumns, next);
    advance_line<kCarried>(in, next, before, exclusive,
                           [&](int64_t at, auto y) { store_vector(line + at, y); });
    std::copy_n(next + i, count, accumulators + i);
    std::memcpy(out + i * kSize, line + i * kSize, static_cast<size_t>(count * kSize));
  }

  // Calls put(at, y) for each vector of a line's outputs.
  template <bool kCarried, class Put>
  ANYDML_INLINE static void advance_line(const std::byte* in, Accumulator* accumulators,
                                         const Accumulator* before, bool exclusive, const Put& put) {
    for (int64_t at = 0; at < kLine; at += kVectorBytes) {
      V y[kWides];
      for (int64_t k = 0; k < kWides; ++k) {
        const int64_t j = at / kSize + k * kLanes;
        V accumulator = load_accumulators(accumulators + j);
        y[k] =
            advance<kCarried>(accumulator, load_wide<T, Accumulator>(in + j * kSize), before, j, exclusive);
        store_vector(reinterpret_cast<std::byte*>(accumulators + j), accumulator);
      }
      put(at, narrow_vector<T, Accumulator>(y));
    }
  }

  static bool is_aligned(const RowRange& range) {
    return (reinterpret_cast<uintptr_t>(range.out) | static_cast<uintptr_t>(range.out_step)) % kSize == 0;
  }

  // The columns of a line of outputs, and the vectors of accumulators that give one vector of outputs.
  static constexpr int64_t kColumns = kLine / kSize;
  static constexpr int64_t kWides = sizeof(Accumulator) / kSize;
  // The vectors of accumulators that give a line of outputs.
  static constexpr int64_t kPerLine = kLine / (kLanes * kSize);

  // (A branch for exclusive outputs cost a tenth of the time here.) Scans several rows at a time, so that
  // each accumulator stays in a register for as many.
  template <bool kStores, bool kExclusive, bool kCarried>
  ANYDML_NOINLINE static void scan_rows(const RowRange& range, int64_t width, Accumulator* accumulators,
                                        const Accumulator* before) {
    RowRange left = range;
    const auto go = [&]<int64_t kRows>(std::integral_constant<int64_t, kRows>) {
      while (left.rows >= kRows) {
        advance_rows<kStores, kExclusive, kCarried, kRows>(left, width, accumulators, before);
        left.rows -= kRows;
        left.in += kRows * left.in_step;
        left.out += kRows * left.out_step;
      }
    };
    go(std::integral_constant<int64_t, tuning::kRowUnroll>{});
    go(std::integral_constant<int64_t, 1>{});
  }

  // The last vector may overlap the one before it. So it loads its input and its accumulators first, and
  // stores the same values into the lanes that the two share.
  template <bool kStores, bool kExclusive, bool kCarried, int64_t kRows>
  ANYDML_INLINE static void advance_rows(const RowRange& range, int64_t width, Accumulator* accumulators,
                                         const Accumulator* before) {
    const auto store_outputs = [](std::byte* out, V y) {
      if constexpr (kStores) store_wide<T, Accumulator>(out, y);
    };
    const int64_t last = width - kLanes;
    V last_accumulator = load_accumulators(accumulators + last);
    V last_x[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      last_x[r] = load_wide<T, Accumulator>(range.in + r * range.in_step + last * kSize);
    }
    const std::byte* const prefetch_from = range.in + kRows * range.in_step;
    int64_t j = 0;
    const auto advance_vector = [&] {
      V accumulator = load_accumulators(accumulators + j);
      for (int64_t r = 0; r < kRows; ++r) {
        const V x = load_wide<T, Accumulator>(range.in + r * range.in_step + j * kSize);
        store_outputs(range.out + r * range.out_step + j * kSize,
                      advance<kCarried>(accumulator, x, before, j, kExclusive));
      }
      store_vector(reinterpret_cast<std::byte*>(accumulators + j), accumulator);
      j += kLanes;
    };
    while (j + kPerLine * kLanes <= last) {
      for (int64_t r = 0; r < kRows; ++r) prefetch_line(prefetch_from + r * range.in_step + j * kSize);
      for (int64_t k = 0; k < kPerLine; ++k) advance_vector();
    }
    while (j < last) advance_vector();
    for (int64_t r = 0; r < kRows; ++r) {
      store_outputs(range.out + r * range.out_step + last * kSize,
                    advance<kCarried>(last_accumulator, last_x[r], before, last, kExclusive));
    }
    store_vector(reinterpret_cast<std::byte*>(accumulators + last), last_accumulator);
  }

  static V load_accumulators(const Accumulator* accumulators) {
    return load_vector<V>(reinterpret_cast<const std::byte*>(accumulators));
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
