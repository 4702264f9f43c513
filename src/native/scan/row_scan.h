// The kernels of prefix scans along an axis whose elements are contiguous, upwards or downwards, and the
// table through which a plan calls them.
//
// Long rows are scanned a vector at a time, whose elements are combined among themselves first. Rows that are
// shorter than that pays, and rows that an input has across, are scanned in groups of kRowsPerGroup: tiles of
// their elements are transposed, so that a vector holds one element of each row, and transposed back. With
// t(s) the accumulator of row s,
//   y(s, i) = t(s) o x(s, i),   t'(s) = y(s, i)   (exclusive: y(s, i) = t(s)).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/float_product.h"
#include "scan/transposed_rows.h"
#include "scan/tuning.h"
#include "scan/vector_prefix.h"
#include "scan/vector_scan.h"
#include "simd/vector.h"
#include "stores/deferred_rows.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

static_assert(kRowsPerGroup * tuning::kVectorRowsFrom <= tuning::kBlock,
              "a group of short rows fits a block");

#if defined(ANYDML_VECTORS)

// `in` and `out` are the lowest addresses of a part's elements, and may be the same.
template <class T, class Operation, bool kDown>
class RowScan {
  static constexpr int64_t kSize = sizeof(T);
  using Scan =
      std::conditional_t<kIsBlockable<T, Operation>, VectorScan<T, Operation, kDown>, ProductScan<T, kDown>>;

 public:
  using Accumulator = AccumulatorOf<T>;
  using State = typename Scan::State;

  static constexpr int64_t kTile = TransposeTileScan<T, Operation, kDown>::kTile;

  static State identity() { return Scan::identity(); }
  static State reduce_block(const std::byte* in, int64_t size) { return Scan::reduce(in, size); }

  // Scans a block; `total` is the prefix before it, and becomes the one after it. The block at
  // `prefetch_from`, which is read next, is prefetched.
  static void scan_block(const std::byte* in, std::byte* out, int64_t size, State& total, bool exclusive,
                         const std::byte* prefetch_from, RealigningBuffer& buffer, StoreMode store_mode) {
    dispatch(store_mode, [&]<StoreMode kStoreMode> {
      if constexpr (kIsOrderSensitive<T, Operation>) {
        Scan::template scan_block<kStoreMode>(in, out, size, total, exclusive, prefetch_from, buffer);
      } else {
        Scan::template scan_rows<kStoreMode>(in, 0, out, 0, size, 1, total, exclusive, prefetch_from - in,
                                             buffer);
      }
    });
  }

  // Scans rows that are no longer than a block.
  static void scan_rows(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step, int64_t size,
                        int64_t rows, bool exclusive, RealigningBuffer& buffer, StoreMode store_mode) {
    State total = identity();
    const int64_t distance = kDown ? -kPrefetchDistance : kPrefetchDistance;
    dispatch(store_mode, [&]<StoreMode kStoreMode> {
      Scan::template scan_rows<kStoreMode>(in, in_step, out, out_step, size, rows, total, exclusive, distance,
                                           buffer);
    });
  }

  // Scans a group of kRowsPerGroup rows of `size` elements.
  ANYDML_NOINLINE static void scan_group(const std::byte* in, int64_t in_step, std::byte* out,
                                         int64_t out_step, int64_t size, bool exclusive,
                                         Accumulator* accumulators, Prefetcher prefetcher,
                                         StagedWriter& stage) {
    Tiles tiles(accumulators, exclusive);
    scan_tiles<kDown>(tiles, in, in_step, out, out_step, size, prefetcher, stage);
    tiles.store(accumulators);
    const int64_t done = size / kTile * kTile;
    if (done == size) return;
    const int64_t rest = Order::element(size, done, size - done);
    for (int64_t s = 0; s < kRowsPerGroup; ++s) {
      scan_row(in + s * in_step + rest, out + s * out_step + rest, size - done, exclusive, accumulators[s]);
    }
  }

  // Scans `rows` rows, a multiple of kRowsPerGroup, of an input in which neighbouring rows are contiguous and
  // the elements of a row are in_step bytes apart. `in` is the first element that is traversed. With
  // `deferred`, its lines are sent meanwhile, and as many elements that come later are prefetched.
  ANYDML_NOINLINE static void scan_neighbours(const std::byte* in, int64_t in_step, std::byte* out,
                                              int64_t out_step, int64_t size, int64_t rows, bool exclusive,
                                              Accumulator* accumulators, DeferredRows* deferred) {
    for (int64_t r = 0; r < rows; r += kRowsPerGroup) {
      if (deferred != nullptr) {
        if (r * kSize % kLine == 0) {
          for (int64_t k = 0; k < size; ++k)
            prefetch_line(in + (tuning::kTransposePrefetchTiles * size + k) * in_step + r * kSize);
        }
        static_assert(kRowsPerGroup * kSquareBytes == 2 * kLine);
        deferred->send_line();
        deferred->send_line();
      }
      scan_neighbour_group(in + r * kSize, in_step, out + r * out_step, out_step, size, exclusive,
                           accumulators + r);
    }
  }

  // Scans one row, element by element.
  static void scan_row(const std::byte* in, std::byte* out, int64_t size, bool exclusive,
                       Accumulator& accumulator) {
    for (int64_t i = 0; i < size; ++i)
      advance_one<T, Operation>(accumulator, in + Order::element(size, i), out + Order::element(size, i),
                                exclusive);
  }

 private:
  template <class Body>
  static void dispatch(StoreMode store_mode, const Body& body) {
    switch (store_mode) {
      case StoreMode::kCached:
        return body.template operator()<StoreMode::kCached>();
      case StoreMode::kNonTemporal:
      case StoreMode::kRealigned:
        if constexpr (!kCompact) return body.template operator()<kStreamed>();
    }
  }

  ANYDML_INLINE static void scan_neighbour_group(const std::byte* in, int64_t in_step, std::byte* out,
                                                 int64_t out_step, int64_t size, bool exclusive,
                                                 Accumulator* accumulators) {
    int64_t done = 0;
    Tiles tiles(accumulators, exclusive);
    for (; done + kTile <= size; done += kTile) {
      tiles.scan_neighbours(in + done * in_step, in_step, out + Order::element(size, done, kTile), out_step);
    }
    tiles.store(accumulators);
    for (; done < size; ++done) {
      for (int64_t s = 0; s < kRowsPerGroup; ++s) {
        advance_one<T, Operation>(accumulators[s], in + done * in_step + s * kSize,
                                  out + s * out_step + Order::element(size, done), exclusive);
      }
    }
  }

  using Tiles = TransposeTileScan<T, Operation, kDown>;
  using Order = IndexOrder<T, kDown>;
};

// The kernels of one direction. The plan that calls them is compiled once for both.
template <class T, class Operation>
struct RowKernels {
  using Any = RowScan<T, Operation, false>;
  using State = typename Any::State;
  static constexpr int64_t kTile = Any::kTile;
  static State identity() { return Any::identity(); }

  decltype(&Any::reduce_block) reduce_block;
  decltype(&Any::scan_block) scan_block;
  decltype(&Any::scan_rows) scan_rows;
  decltype(&Any::scan_group) scan_group;
  decltype(&Any::scan_neighbours) scan_neighbours;
  decltype(&Any::scan_row) scan_row;

  static RowKernels choose(bool down) { return down ? of<true>() : of<false>(); }

 private:
  template <bool kDown>
  static RowKernels of() {
    using Scan = RowScan<T, Operation, kDown>;
    return {Scan::reduce_block, Scan::scan_block,      Scan::scan_rows,
            Scan::scan_group,   Scan::scan_neighbours, Scan::scan_row};
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
