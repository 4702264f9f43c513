// Strips of columns. An input whose columns do not lie as the output's do is brought into that order tile by
// tile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "scan/accumulator.h"
#include "scan/chained_carry.h"
#include "scan/column_scan.h"
#include "scan/geometry.h"
#include "simd/transpose.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, class Operation>
class ColumnPlan final : public Plan {
 public:
  ColumnPlan(ScanGeometry geometry, bool exclusive, std::string description)
      : Plan(std::move(description)),
        axis_(geometry.axis),
        in_start_(geometry.in_start),
        out_start_(geometry.out_start),
        bytes_(bytes_of<T>(geometry)),
        columns_(take_innermost(geometry.lines)),
        planes_(std::move(geometry.lines)),
        block_(block_of(axis_.size, columns_.size, planes_.outer_count() * planes_.inner.size)),
        scan_(exclusive ? ColumnScan<T, Operation, Output::kExclusive>::scan
                        : ColumnScan<T, Operation, Output::kInclusive>::scan) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + in_start_;
    auto* out = static_cast<std::byte*>(outputs[0]) + out_start_;
    const bool streams = bytes_ >= kStreamFrom;
    const int threads = threads_for(2 * bytes_);
    const int64_t planes = planes_.outer_count() * planes_.inner.size;
    if constexpr (kIsBlockable<T, Operation>) {
      if (block_ < axis_.size && threads > 1 && planes < 4 * threads && planes % threads != 0) {
        planes_.runs(0, planes, in, out, [&](const std::byte* from, std::byte* to, int64_t count) {
          for (int64_t p = 0; p < count; ++p) {
            scan_long(from + p * planes_.inner.in, to + p * planes_.inner.out, threads, streams);
          }
        });
        return;
      }
    }
    const int64_t width = strip_width(planes, threads, streams);
    // The first strip is wider where its outputs do not begin with a line: no two threads write into one.
    const int64_t alignment_peel = columns_.size > kMostBlocked ? to_next_line(out) / kSize : 0;
    // So is the last one where few columns are left, which as a strip would be combined in another order.
    const int64_t least = ColumnScan<T, Operation, Output::kNone>::kFewest;
    const int64_t strips = std::max<int64_t>(1, (columns_.size - alignment_peel - least + width) / width);
    const int64_t tasks = std::min<int64_t>(threads, planes * strips);
    parallel_for(tasks, threads, [&](int64_t task) {
      ColumnOutputs held(streams);
      int64_t begin = share_begin(task, tasks, planes * strips);
      const int64_t end = share_begin(task + 1, tasks, planes * strips);
      while (begin < end) {
        // Strips of a plane, or as many whole planes as follow.
        const int64_t first = begin % strips;
        const int64_t whole = first > 0 ? 0 : (end - begin) / strips;
        const int64_t last = whole > 0 ? strips : std::min(strips, first + end - begin);
        const int64_t plane = begin / strips;
        planes_.runs(plane, plane + std::max<int64_t>(whole, 1), in, out,
                     [&](const std::byte* from, std::byte* to, int64_t count) {
                       for (int64_t i = 0; i < count; ++i) {
                         // Planes as the axis goes: memory foresees one way alone.
                         const int64_t p = axis_.out < 0 ? count - 1 - i : i;
                         for (int64_t strip = first; strip < last; ++strip) {
                           const int64_t start = strip > 0 ? strip * width + alignment_peel : 0;
                           const int64_t next =
                               strip + 1 < strips ? (strip + 1) * width + alignment_peel : columns_.size;
                           scan_strip(from + p * planes_.inner.in, to + p * planes_.inner.out, start,
                                      next - start, held);
                         }
                       }
                     });
        begin += whole > 0 ? whole * strips : last - first;
      }
    });
  }

 private:
  using Reduction = ColumnScan<T, Operation, Output::kNone>;
  using Kernel = decltype(&Reduction::scan);
  using Accumulator = AccumulatorOf<T>;
  static constexpr int64_t kSize = sizeof(T);
  // Memory reads and writes rows of strips that wide nearly as fast as it copies; a quarter of that takes
  // half as long again, and 512 bytes twice as long.
  static constexpr int64_t kMostStreamed = (16 << 10) / kSize;
  static constexpr int64_t kMostCached = std::min<int64_t>(2048, (8 << 10) / kSize);
  // Strips are as many of those wide, whose tallies stay in registers: two lines, or four where tallies are
  // no wider than elements.
  static constexpr int64_t kNarrowest = 256 / sizeof(Accumulator);
  // By as many at most the first strip is wider, or the last.
  static constexpr int64_t kWider = kLine / kSize + kFewColumns;
  // Input and output of that many bytes each fit a thread's second cache, as far as one counts on that.
  static constexpr int64_t kNear = 1 << 20;
  // A tile of the input, 64 KiB and a line for each row, so that columns do not fall into one set of the
  // cache.
  static constexpr int64_t kTileRows = 256 / kSize;
  static constexpr int64_t kTileColumns = 1024 / kSize;
  static constexpr int64_t kTileStep = 1024 + kLine;
  static_assert(kTileColumns - kNarrowest + kWider <= kTileStep / kSize, "a strip fits a tile");
  // Memory is asked for tiles so much earlier than they are gathered: a column's part is too short for
  // processors to foresee the next.
  static constexpr int64_t kTilesAhead = 2;
  // A strip of them is cut into blocks, which several threads may scan: so many columns at most, and so many
  // bytes to a block, that a thread finds in its second cache what it has reduced.
  static constexpr int64_t kMostBlocked = std::min<int64_t>(256, kTileColumns);
  static constexpr int64_t kBlockBytes = 64 << 10;
  // So many planes keep threads busy without being cut. Halves are: sums of blocks are more accurate.
  static constexpr int64_t kManyPlanes = 512;

  // Steps of a block, all where there are no blocks.
  static int64_t block_of(int64_t size, int64_t columns, int64_t planes) {
    if (columns > kMostBlocked || !kIsBlockable<T, Operation>) return size;
    if (planes >= kManyPlanes && sizeof(Accumulator) > sizeof(float)) return size;
    return std::min(size, kBlockBytes / (columns * kSize));
  }

  bool gathers() const { return columns_.in != kSize; }

  // Whole lines of the cache: as many strips, equally wide, as are within the limit and keep all threads
  // busy. Where threads write the same rows in their second caches, strips are the narrowest: beyond the end
  // of a longer row a processor fetches what another thread is about to write, out of that one's cache, and
  // all take several times as long.
  int64_t strip_width(int64_t planes, int threads, bool streams) const {
    if (columns_.size <= kMostBlocked) return columns_.size;
    const auto parts = [](int64_t size, int64_t part) { return (size + part - 1) / part; };
    const bool shares = planes < threads;
    if (shares && !streams && bytes_ <= threads * kNear) return kNarrowest;
    const int64_t wanted = shares ? parts(columns_.size, threads) : columns_.size;
    const int64_t most = gathers() ? kTileColumns - kNarrowest : streams ? kMostStreamed : kMostCached;
    return parts(parts(wanted, parts(wanted, most)), kNarrowest) * kNarrowest;
  }

  void scan_strip(const std::byte* in, std::byte* out, int64_t start, int64_t width,
                  ColumnOutputs& held) const {
    alignas(64) Accumulator accumulators[kMostStreamed + kWider];
    Accumulator before[kMostBlocked];
    const int64_t block = kIsOrderSensitive<T, Operation> ? block_ : axis_.size;
    const bool blocked = block < axis_.size;
    in += start * columns_.in;
    out += start * kSize;
    clear(accumulators, width);
    if (blocked) clear(before, width);
    for (int64_t i = 0; i < axis_.size; i += block) {
      scan_steps(scan_, in, out, i, std::min(block, axis_.size - i), width, accumulators,
                 blocked ? before : nullptr, held);
      if (!blocked) continue;
      combine(before, accumulators, width);
      clear(accumulators, width);
    }
  }

  // `rows` steps from the i-th on.
  void scan_steps(Kernel kernel, const std::byte* in, std::byte* out, int64_t i, int64_t rows, int64_t width,
                  Accumulator* accumulators, const Accumulator* before, ColumnOutputs& held) const {
    in += i * axis_.in;
    out += i * axis_.out;
    if (!gathers()) return kernel({rows, in, axis_.in, out, axis_.out}, width, accumulators, before, held);
    alignas(64) std::byte tile[kTileRows * kTileStep];
    const int64_t ahead = held.pending.streams() ? kTilesAhead * kTileRows * kSize : 0;
    for (int64_t row = 0; row < rows; row += kTileRows) {
      const int64_t count = std::min(kTileRows, rows - row);
      const Tile from{in + row * axis_.in, axis_.in, columns_.in};
      gather_tile<BitsOf<T>>(from, count, width, tile, kTileStep, ahead);
      kernel({count, tile, kTileStep, out + row * axis_.out, axis_.out}, width, accumulators, before, held);
    }
  }

  void scan_long(const std::byte* in, std::byte* out, int threads, bool streams) const {
    struct Accumulators {
      Accumulator of[kMostBlocked];
    };
    const int64_t width = columns_.size;
    const int64_t blocks = (axis_.size + block_ - 1) / block_;
    const auto rows = [&](int64_t block) { return std::min(block_, axis_.size - block * block_); };
    Accumulators identity;
    clear(identity.of, width);
    chained_scan<Accumulators>(
        blocks, threads, identity,
        [&](int64_t block) {
          ColumnOutputs nothing(false);
          Accumulators totals = identity;
          scan_steps(Reduction::scan, in, out, block * block_, rows(block), width, totals.of, nullptr,
                     nothing);
          return totals;
        },
        [&](Accumulators& accumulator, const Accumulators& totals) {
          combine(accumulator.of, totals.of, width);
        },
        [&](int64_t block, Accumulators& accumulator, const Accumulators*) {
          ColumnOutputs held(streams);
          Accumulators accumulators = kIsOrderSensitive<T, Operation> ? identity : accumulator;
          scan_steps(scan_, in, out, block * block_, rows(block), width, accumulators.of, accumulator.of,
                     held);
          if constexpr (kIsOrderSensitive<T, Operation>) {
            combine(accumulator.of, accumulators.of, width);
          } else {
            accumulator = accumulators;
          }
        });
  }

  static void clear(Accumulator* accumulators, int64_t width) {
    std::fill_n(accumulators, width, static_cast<Accumulator>(Operation::kIdentity));
  }
  static void combine(Accumulator* before, const Accumulator* totals, int64_t width) {
    for (int64_t j = 0; j < width; ++j) before[j] = Operation::combine(before[j], totals[j]);
  }

  Loop axis_;
  int64_t in_start_;
  int64_t out_start_;
  int64_t bytes_;
  Loop columns_;
  Lines planes_;
  int64_t block_;
  Kernel scan_;
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
