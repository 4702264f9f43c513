// Scans along an axis whose elements lie next to each other in memory, in either direction.
//
// Rows go a vector at a time, whose elements are combined among themselves first. Of rows that are shorter,
// or lie across, kLines go abreast, whose elements are brought across into vectors and back. With t(s) the
// tally of line s,
//   y(s, i) = t(s) o x(s, i),   t'(s) = y(s, i)   (exclusive: y(s, i) = t(s)).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/float_product.h"
#include "scan/multi_vector_scan.h"
#include "scan/transposed_rows.h"
#include "scan/vector_prefix.h"
#include "simd/vector.h"
#include "stores/departure.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

// A block, the one that comes next and the stage of outputs share the first cache.
inline constexpr int64_t kBlock = 1024;
// Rows shorter than that go abreast.
inline constexpr int64_t kVectorsFrom = 16;
static_assert(kRowsPerGroup * kVectorsFrom <= kBlock, "as many rows as go abreast fit a block");

#if defined(ANYDML_VECTORS)

// So many squares ahead of neighbouring lines memory is asked for more of them.
inline constexpr int64_t kAheadAcross = 8;

// Walking up or down in memory. `in` and `out` are where a part's elements lie lowest, and may be the same.
template <class T, class Operation, bool kExclusive, bool kDown>
class RowScan {
  static constexpr int64_t kSize = sizeof(T);
  using Scan = std::conditional_t<kIsBlockable<T, Operation>, VectorScan<T, Operation, kExclusive, kDown>,
                                  ProductScan<T, kExclusive, kDown>>;

 public:
  using Accumulator = AccumulatorOf<T>;
  using State = typename Scan::State;

  static constexpr int64_t kSquare = TransposeTileScan<T, Operation, kExclusive, kDown>::kSquare;

  static State identity() { return Scan::identity(); }
  static State reduce_block(const std::byte* in, int64_t size) { return Scan::reduce(in, size); }

  // `tally` is that of the blocks before, and becomes that of those up to this one. Meanwhile memory brings
  // the block at `coming`, which is read next.
  static void scan_block(const std::byte* in, std::byte* out, int64_t size, State& accumulator,
                         const std::byte* prefetch_from, PendingStore& pending, StoreMode store_mode) {
    on(store_mode, [&]<StoreMode kMode> {
      Scan::template scan_block<kMode>(in, out, size, accumulator, prefetch_from, pending);
    });
  }

  // Rows that are no longer than a block.
  static void scan_rows(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step, int64_t size,
                        int64_t rows, PendingStore& pending, StoreMode store_mode) {
    on(store_mode, [&]<StoreMode kMode> {
      Scan::template scan_rows<kMode>(in, in_step, out, out_step, size, rows, pending);
    });
  }

  // kLines lines of `size` elements, in_step and out_step apart.
  ANYDML_NOINLINE static void scan_lines(const std::byte* in, int64_t in_step, std::byte* out,
                                         int64_t out_step, int64_t size, Accumulator* accumulators,
                                         Prefetcher prefetch_from, StagedWriter& stage) {
    Lines squares(accumulators);
    scan_squares<kDown>(squares, in, in_step, out, out_step, size, prefetch_from, stage);
    squares.store(accumulators);
    const int64_t done = size / kSquare * kSquare;
    if (done == size) return;
    const int64_t rest = At::element(size, done, size - done);
    for (int64_t s = 0; s < kRowsPerGroup; ++s) {
      scan_line(in + s * in_step + rest, out + s * out_step + rest, size - done, accumulators[s]);
    }
  }

  // The same of an input in which `lines` lines, a multiple of kLines, are neighbours, and their elements
  // in_step apart; `in` is the first that is traversed. With a departure, its lines leave meanwhile, and
  // memory brings as many elements that come later.
  ANYDML_NOINLINE static void scan_neighbours(const std::byte* in, int64_t in_step, std::byte* out,
                                              int64_t out_step, int64_t size, int64_t lines,
                                              Accumulator* accumulators, DeferredRows* departure) {
    for (int64_t r = 0; r < lines; r += kRowsPerGroup) {
      if (departure != nullptr) {
        if (r * kSize % kLine == 0) {
          for (int64_t k = 0; k < size; ++k)
            prefetch_line(in + (kAheadAcross * size + k) * in_step + r * kSize);
        }
        static_assert(kRowsPerGroup * kSquareBytes == 2 * kLine);
        departure->send_line();
        departure->send_line();
      }
      scan_eight(in + r * kSize, in_step, out + r * out_step, out_step, size, accumulators + r);
    }
  }

  // One line, one by one.
  static void scan_line(const std::byte* in, std::byte* out, int64_t size, Accumulator& accumulator) {
    for (int64_t i = 0; i < size; ++i)
      advance_one<T, Operation, kExclusive>(accumulator, in + At::element(size, i),
                                            out + At::element(size, i));
  }

 private:
  template <class Body>
  static void on(StoreMode store_mode, const Body& body) {
    switch (store_mode) {
      case StoreMode::kCached:
        return body.template operator()<StoreMode::kCached>();
      case StoreMode::kNonTemporal:
        return body.template operator()<StoreMode::kNonTemporal>();
      case StoreMode::kRealigned:
        if constexpr (kShifts) return body.template operator()<StoreMode::kRealigned>();
    }
  }

  // kLines neighbours.
  ANYDML_INLINE static void scan_eight(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step,
                                       int64_t size, Accumulator* accumulators) {
    int64_t done = 0;
    Lines squares(accumulators);
    for (; done + kSquare <= size; done += kSquare) {
      squares.scan_neighbours(in + done * in_step, in_step, out + At::element(size, done, kSquare), out_step);
    }
    squares.store(accumulators);
    for (; done < size; ++done) {
      for (int64_t s = 0; s < kRowsPerGroup; ++s) {
        advance_one<T, Operation, kExclusive>(accumulators[s], in + done * in_step + s * kSize,
                                              out + s * out_step + At::element(size, done));
      }
    }
  }

  using Lines = TransposeTileScan<T, Operation, kExclusive, kDown>;
  using At = IndexOrder<T, kDown>;
};

// The kernels of one way to walk. What calls them is compiled once for all.
template <class T, class Operation>
struct RowKernels {
  using Any = RowScan<T, Operation, false, false>;
  using State = typename Any::State;
  static constexpr int64_t kSquare = Any::kSquare;
  static State identity() { return Any::identity(); }

  decltype(&Any::reduce_block) reduce_block;
  decltype(&Any::scan_block) scan_block;
  decltype(&Any::scan_rows) scan_rows;
  decltype(&Any::scan_lines) scan_lines;
  decltype(&Any::scan_neighbours) scan_neighbours;
  decltype(&Any::scan_line) scan_line;

  static RowKernels choose(bool exclusive, bool down) {
    if (exclusive) return down ? of<true, true>() : of<true, false>();
    return down ? of<false, true>() : of<false, false>();
  }

 private:
  template <bool kExclusive, bool kDown>
  static RowKernels of() {
    using Scan = RowScan<T, Operation, kExclusive, kDown>;
    return {Scan::reduce_block, Scan::scan_block,      Scan::scan_rows,
            Scan::scan_lines,   Scan::scan_neighbours, Scan::scan_line};
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
