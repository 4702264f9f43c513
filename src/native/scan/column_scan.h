// Scans along an axis of which several lines lie side by side in memory: a strip of columns goes along the
// axis together. With L(j) the tally of column j in its block and C(j) that of the blocks before,
//   L'(j) = L(j) o x(i, j),   y(i, j) = C(j) o L'(j)   (exclusive: C(j) o L(j)),
//   and where a block ends, C'(j) = C(j) o L(j).
// A strip that is not cut into blocks has no C. Where it is, no block's L depends on C, so that one thread
// that carries C along and several that first reduce blocks to L get the same bits. Integers have them in any
// order, and so no C: a block's L begins with it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/narrow_columns.h"
#include "scan/row_range.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// Fewer columns than that are told to the compiler, which then keeps their tallies in registers.
inline constexpr int kFewColumns = 8;

template <class T, class Operation, Output kOutput>
class ColumnScan {
 public:
  using Accumulator = AccumulatorOf<T>;

  // Fewer columns go by themselves. Floats that fill a vector go as vectors.
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int kFewest = kIsFloat<T> ? static_cast<int>(kLanes) : kFewColumns;
  static_assert(kFewest <= kFewColumns, "every strip holds a vector, or is of few columns");

  // `before` is C, or null where there is none; `tallies` is L, brought up to date.
  static void scan(const RowRange& steps, int64_t width, Accumulator* accumulators, const Accumulator* before,
                   ColumnOutputs& outputs) {
    if constexpr (kIsOrderSensitive<T, Operation> && kOutput != Output::kNone) {
      if (before != nullptr) return scan_carried<true>(steps, width, accumulators, before, outputs);
    }
    scan_carried<false>(steps, width, accumulators, before, outputs);
  }

 private:
  using V = Vector<Accumulator>;
  static constexpr int64_t kSize = sizeof(T);
  // What is not written in longer pieces leaves in the ordinary way.
  static constexpr int64_t kWorthStreaming = 512;
  // Packed rows that are longer leave line by line.
  static constexpr int64_t kMostAsOne = 2 << 10;

  template <bool kCarried>
  static void scan_carried(const RowRange& steps, int64_t width, Accumulator* accumulators,
                           const Accumulator* before, ColumnOutputs& outputs) {
    const auto few = [&]<int... kFewer>(std::integer_sequence<int, kFewer...>) {
      return ((width == kFewer + 1 && (FewColumns<T, Operation, kOutput, kFewer + 1, kCarried>::scan(
                                           steps, accumulators, before, outputs),
                                       true)) ||
              ...);
    };
    if (!few(std::make_integer_sequence<int, kFewest - 1>{})) {
      scan_strip<kCarried>(steps, width, accumulators, before, outputs.pending);
    }
  }

  // Short packed rows leave as one; long ones as lines.
  template <bool kCarried>
  static void scan_strip(const RowRange& steps, int64_t width, Accumulator* accumulators,
                         const Accumulator* before, PendingStore& pending) {
    const int64_t size = width * kSize;
    if (kOutput != Output::kNone && pending.streams()) {
      if (steps.out_step == size && size <= kMostAsOne) {
        const StoreMode store_mode = pending.store_mode(steps.out, size);
        if (store_mode == StoreMode::kNonTemporal) {
          return stream_packed<kCarried, StoreMode::kNonTemporal>(steps, width, accumulators, before,
                                                                  pending);
        }
        if constexpr (kShifts) {
          if (store_mode == StoreMode::kRealigned) {
            return stream_packed<kCarried, StoreMode::kRealigned>(steps, width, accumulators, before,
                                                                  pending);
          }
        }
      } else if (size >= kWorthStreaming && is_aligned(steps)) {
        return stream_rows<kCarried>(steps, width, accumulators, before);
      }
    }
    if (!on_few(width, [&]<int kVectors>(std::integral_constant<int, kVectors>) {
          scan_vectors<kVectors, kCarried>(steps, width, accumulators, before);
        })) {
      scan_rows<kCarried>(steps, width, accumulators, before);
    }
  }

  template <bool kCarried, StoreMode kMode>
  static void stream_packed(const RowRange& steps, int64_t width, Accumulator* accumulators,
                            const Accumulator* before, PendingStore& pending) {
    const int64_t begun = begins_amid<kMode>(steps, pending) ? 1 : 0;
    stream_more<kCarried, kMode, true>(steps.part(0, begun), width, accumulators, before, pending);
    const RowRange rest = steps.part(begun, steps.rows);
    if (!on_few(width, [&]<int kVectors>(std::integral_constant<int, kVectors>) {
          stream_vectors<kVectors, kCarried, kMode>(rest, width, accumulators, before, pending);
        })) {
      stream_more<kCarried, kMode, false>(rest, width, accumulators, before, pending);
    }
  }

  // Whether the first row begins amid others' bytes; the next ones do not.
  template <StoreMode kMode>
  static bool begins_amid(const RowRange& steps, PendingStore& pending) {
    RealigningStore<kMode, false> outputs(pending);
    outputs.begin(steps.out, steps.rows * steps.out_step);
    return outputs.at_shared_granule();
  }

  // Calls body with the number of vectors, where they are few; returns whether they are.
  template <class Body>
  static bool on_few(int64_t width, const Body& body) {
    const int64_t count = (width + kLanes - 1) / kLanes;
    return [&]<int... kFewer>(std::integer_sequence<int, kFewer...>) {
      return ((count == kFewer + 1 && (body(std::integral_constant<int, kFewer + 1>{}), true)) || ...);
    }(std::make_integer_sequence<int, kFewVectors>{});
  }

  // So few vectors that their tallies stay in registers, for which no loop over them may be left. The last
  // may overlap the one before it: what the two share is the same in both.
  static constexpr int kFewVectors = 8;
  template <int kVectors, bool kCarried>
  ANYDML_NOINLINE static void scan_vectors(const RowRange& steps, int64_t width, Accumulator* accumulators,
                                           const Accumulator* before) {
    const int64_t last = width - kLanes;
    const auto column = [&](int k) { return k < kVectors - 1 ? k * kLanes : last; };
    V accumulator[kVectors];
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) accumulator[k] = load_tallies(accumulators + column(k));
    auto [rows, in, in_step, out, out_step] = steps;
    for (int64_t r = 0; r < rows; ++r, in += in_step, out += out_step) {
      const V last_x = load_wide<T, Accumulator>(in + last * kSize);
      for (int k = 0; k < kVectors; ++k) {
        const int64_t j = column(k);
        const V x = k < kVectors - 1 ? load_wide<T, Accumulator>(in + j * kSize) : last_x;
        store_outputs(out + j * kSize, advance<kCarried>(accumulator[k], x, before, j));
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k)
      store_vector(reinterpret_cast<std::byte*>(accumulators + column(k)), accumulator[k]);
  }

  // Where the last vector of a row overlaps the one before it, what is its own leaves.
  struct RowEnd {
    explicit RowEnd(int64_t width)
        : size((width - 1) % kLanes * kSize + kSize), own(kPiece - (size - 1) % kPiece - 1) {}

    int64_t size;  // bytes
    ByteRealigner own;
  };

  // kFirst: perhaps amid others' bytes.
  template <bool kFirst, class Outputs>
  ANYDML_INLINE static void put_whole(Outputs& outputs, Piece piece) {
    if constexpr (kFirst) {
      outputs.put_part(nullptr, piece, kPiece);
    } else {
      outputs.put_piece(nullptr, piece);
    }
  }
  template <bool kFirst, class Outputs>
  ANYDML_INLINE static void put_all(Outputs& outputs, V y) {
    for (const Piece piece : pieces_of<T, false>(y)) put_whole<kFirst>(outputs, piece);
  }
  template <bool kFirst, class Outputs>
  ANYDML_INLINE static void put_end(Outputs& outputs, V y, const RowEnd& end) {
    const auto pieces = pieces_of<T, false>(y);
    int64_t size = end.size;
    if (size > kPiece) {
      put_whole<kFirst>(outputs, end.own.of(pieces.front(), pieces.back()));
      size -= kPiece;
    }
    const Piece last = end.own.of(pieces.back(), pieces.back());
    if (size == kPiece) {
      put_whole<kFirst>(outputs, last);
    } else {
      outputs.put_part(nullptr, last, size);
    }
  }

  // How far from a packed row the one lies that is read kAhead bytes later.
  static int64_t row_ahead(const RowRange& steps, int64_t width) {
    return kPrefetchDistance / (width * kSize) * steps.in_step;
  }

  // Packed rows, straight from registers.
  template <int kVectors, bool kCarried, StoreMode kMode>
  ANYDML_NOINLINE static void stream_vectors(const RowRange& steps, int64_t width, Accumulator* accumulators,
                                             const Accumulator* before, PendingStore& pending) {
    const int64_t last = width - kLanes;
    const auto column = [&](int k) { return k < kVectors - 1 ? k * kLanes : last; };
    V accumulator[kVectors];
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) accumulator[k] = load_tallies(accumulators + column(k));
    const RowEnd end(width);
    RealigningStore<kMode, false> outputs(pending);
    const std::byte* in = steps.in;
    const int64_t ahead = row_ahead(steps, width);
    for (int64_t r = 0; r < steps.rows; ++r, in += steps.in_step) {
      for (int64_t at = 0; at < kVectors * kPiece; at += kLine) prefetch_line(in + ahead + at);
      V y[kVectors];
#pragma GCC unroll 8
      for (int k = 0; k < kVectors; ++k) {
        const int64_t j = column(k);
        y[k] = advance<kCarried>(accumulator[k], load_wide<T, Accumulator>(in + j * kSize), before, j);
      }
#pragma GCC unroll 8
      for (int k = 0; k < kVectors - 1; ++k) put_all<false>(outputs, y[k]);
      put_end<false>(outputs, y[kVectors - 1], end);
    }
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k)
      store_vector(reinterpret_cast<std::byte*>(accumulators + column(k)), accumulator[k]);
  }

  // More vectors than that. The last one takes what it needs first, and keeps its tallies, some of which the
  // one before it has too: what two stores wrote, a load waits for.
  template <bool kCarried, StoreMode kMode, bool kFirst>
  ANYDML_NOINLINE static void stream_more(const RowRange& steps, int64_t width, Accumulator* accumulators,
                                          const Accumulator* before, PendingStore& pending) {
    const int64_t last = width - kLanes;
    const RowEnd end(width);
    RealigningStore<kMode, false> outputs(pending);
    const std::byte* in = steps.in;
    V last_tally = load_tallies(accumulators + last);
    const int64_t ahead = row_ahead(steps, width);
    for (int64_t r = 0; r < steps.rows; ++r, in += steps.in_step) {
      for (int64_t at = 0; at < width * kSize; at += kLine) prefetch_line(in + ahead + at);
      const V last_x = load_wide<T, Accumulator>(in + last * kSize);
      for (int64_t j = 0; j < last; j += kLanes) {
        V accumulator = load_tallies(accumulators + j);
        const V y = advance<kCarried>(accumulator, load_wide<T, Accumulator>(in + j * kSize), before, j);
        store_vector(reinterpret_cast<std::byte*>(accumulators + j), accumulator);
        put_all<kFirst>(outputs, y);
      }
      put_end<kFirst>(outputs, advance<kCarried>(last_tally, last_x, before, last), end);
    }
    store_vector(reinterpret_cast<std::byte*>(accumulators + last), last_tally);
  }

  // What a vector of columns, from the j-th on, gives; its tallies go on.
  template <bool kCarried>
  ANYDML_INLINE static V advance(V& accumulator, V x, const Accumulator* before, int64_t j) {
    const V next = Operation::combine(accumulator, x);
    V y = kOutput == Output::kExclusive ? accumulator : next;
    if constexpr (kCarried) y = Operation::combine(load_tallies(before + j), y);
    accumulator = next;
    return y;
  }

  // A line of columns at a time, on the output's lines, so that none is put together first. At a row's ends
  // it takes as much of a line as belongs to the row.
  template <bool kCarried>
  ANYDML_NOINLINE static void stream_rows(const RowRange& steps, int64_t width, Accumulator* accumulators,
                                          const Accumulator* before) {
    const std::byte* in = steps.in;
    std::byte* out = steps.out;
    for (int64_t r = 0; r < steps.rows; ++r, in += steps.in_step, out += steps.out_step) {
      const int64_t head = to_next_line(out) / kSize;
      const int64_t tail = (width - head) % kColumns;
      stream_edge<kCarried>(in, out, accumulators, before, 0, head);
      const int64_t last = width - kColumns;
      stream_edge<kCarried>(in + last * kSize, out + last * kSize, accumulators + last,
                            kCarried ? before + last : nullptr, kColumns - tail, tail);
      for (int64_t j = head; j < width - tail; j += kColumns) {
        prefetch_line(in + steps.in_step + j * kSize);
        advance_line<kCarried>(in + j * kSize, accumulators + j, kCarried ? before + j : nullptr,
                               [&](int64_t at, auto y) { stream_vector(out + j * kSize + at, y); });
      }
    }
  }

  // `count` columns of a line of them, from the i-th on.
  template <bool kCarried>
  ANYDML_NOINLINE static void stream_edge(const std::byte* in, std::byte* out, Accumulator* accumulators,
                                          const Accumulator* before, int64_t i, int64_t count) {
    if (count == 0) return;
    Accumulator next[kColumns];
    std::byte line[kLine];
    std::copy_n(accumulators, kColumns, next);
    advance_line<kCarried>(in, next, before, [&](int64_t at, auto y) { store_vector(line + at, y); });
    std::copy_n(next + i, count, accumulators + i);
    std::memcpy(out + i * kSize, line + i * kSize, static_cast<size_t>(count * kSize));
  }

  // Calls put(at, y) for each vector of a line's outputs.
  template <bool kCarried, class Put>
  ANYDML_INLINE static void advance_line(const std::byte* in, Accumulator* accumulators,
                                         const Accumulator* before, const Put& put) {
    for (int64_t at = 0; at < kLine; at += kVectorBytes) {
      V y[kWides];
      for (int64_t k = 0; k < kWides; ++k) {
        const int64_t j = at / kSize + k * kLanes;
        V accumulator = load_tallies(accumulators + j);
        y[k] = advance<kCarried>(accumulator, load_wide<T, Accumulator>(in + j * kSize), before, j);
        store_vector(reinterpret_cast<std::byte*>(accumulators + j), accumulator);
      }
      put(at, narrow_vector<T, Accumulator>(y));
    }
  }

  static bool is_aligned(const RowRange& steps) {
    return (reinterpret_cast<uintptr_t>(steps.out) | static_cast<uintptr_t>(steps.out_step)) % kSize == 0;
  }

  // Columns whose outputs fill a line, and vectors of tallies whose outputs fill one.
  static constexpr int64_t kColumns = kLine / kSize;
  static constexpr int64_t kWides = sizeof(Accumulator) / kSize;
  // Vectors whose outputs fill a line.
  static constexpr int64_t kPerLine = kLine / (kLanes * kSize);

  // Several rows at a time, so that tallies stay in registers for as long.
  template <bool kCarried>
  ANYDML_NOINLINE static void scan_rows(const RowRange& steps, int64_t width, Accumulator* accumulators,
                                        const Accumulator* before) {
    constexpr int64_t kAtOnce = 4;
    RowRange left = steps;
    const auto go = [&]<int64_t kRows>(std::integral_constant<int64_t, kRows>) {
      while (left.rows >= kRows) {
        advance_rows<kCarried, kRows>(left, width, accumulators, before);
        left.rows -= kRows;
        left.in += kRows * left.in_step;
        left.out += kRows * left.out_step;
      }
    };
    go(std::integral_constant<int64_t, kAtOnce>{});
    go(std::integral_constant<int64_t, 1>{});
  }

  // The last vector may overlap the one before it. So it takes what it needs first, and leaves the tallies
  // that the two share as they were.
  template <bool kCarried, int64_t kRows>
  ANYDML_INLINE static void advance_rows(const RowRange& steps, int64_t width, Accumulator* accumulators,
                                         const Accumulator* before) {
    const int64_t last = width - kLanes;
    V last_tally = load_tallies(accumulators + last);
    V last_x[kRows];
    for (int64_t r = 0; r < kRows; ++r) {
      last_x[r] = load_wide<T, Accumulator>(steps.in + r * steps.in_step + last * kSize);
    }
    const std::byte* const prefetch_from = steps.in + kRows * steps.in_step;
    int64_t j = 0;
    const auto advance_vector = [&] {
      V accumulator = load_tallies(accumulators + j);
      for (int64_t r = 0; r < kRows; ++r) {
        const V x = load_wide<T, Accumulator>(steps.in + r * steps.in_step + j * kSize);
        store_outputs(steps.out + r * steps.out_step + j * kSize,
                      advance<kCarried>(accumulator, x, before, j));
      }
      store_vector(reinterpret_cast<std::byte*>(accumulators + j), accumulator);
      j += kLanes;
    };
    while (j + kPerLine * kLanes <= last) {
      for (int64_t r = 0; r < kRows; ++r) prefetch_line(prefetch_from + r * steps.in_step + j * kSize);
      for (int64_t k = 0; k < kPerLine; ++k) advance_vector();
    }
    while (j < last) advance_vector();
    for (int64_t r = 0; r < kRows; ++r) {
      store_outputs(steps.out + r * steps.out_step + last * kSize,
                    advance<kCarried>(last_tally, last_x[r], before, last));
    }
    store_vector(reinterpret_cast<std::byte*>(accumulators + last), last_tally);
  }

  static V load_tallies(const Accumulator* accumulators) {
    return load_vector<V>(reinterpret_cast<const std::byte*>(accumulators));
  }

  static void store_outputs(std::byte* out, V y) {
    if constexpr (kOutput != Output::kNone) store_wide<T, Accumulator>(out, y);
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
