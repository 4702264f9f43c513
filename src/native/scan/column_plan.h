// The plan of scans whose lines are adjacent in the output: strips of columns, one after the other on each
// thread, or one strip on all of them by a chained scan of its blocks. An input that has the columns across
// is packed tile by tile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "scan/accumulator.h"
#include "scan/carries.h"
#include "scan/chained_carry.h"
#include "scan/column_scan.h"
#include "scan/geometry.h"
#include "scan/policy.h"
#include "scan/tuning.h"
#include "simd/transpose.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, class Operation>
class ColumnPlan final : public Plan {
 public:
  ColumnPlan(const ScanProblem& problem, ScanPolicy policy, bool exclusive, std::string description)
      : ColumnPlan(problem.geometry, problem.bytes(), std::move(policy), exclusive, std::move(description)) {
    places_ = problem.carries;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + in_start_;
    auto* out = static_cast<std::byte*>(outputs[0]) + out_start_;
    const Carries<T, Operation> carries(places_, inputs, outputs[0]);
    const int threads = threads_for(2 * bytes_);
    const int64_t planes = planes_.outer_count() * planes_.inner.size;
    if constexpr (kIsBlockable<T, Operation>) {
      if (is_cut() && is_worth_sharing(bytes_, planes, threads)) {
        planes_.runs(0, planes, in, out, [&](const std::byte* from, std::byte* to, int64_t count) {
          for (int64_t p = 0; p < count; ++p) {
            scan_chained(from + p * planes_.inner.in, to + p * planes_.inner.out, carries, threads);
          }
        });
        return;
      }
    }
    const int64_t width = strip_width(planes, threads);
    // The first strip is wider where its outputs do not begin at a cache line, so that no two threads write
    // into one.
    const int64_t alignment_peel =
        policy_.algorithm == ScanAlgorithm::kColumnStrips ? to_next_line(out) / kSize : 0;
    // So is the last one where few columns are left, which a narrow strip would combine in another order.
    const int64_t least = Kernels::kNarrow;
    const int64_t strips = std::max<int64_t>(1, (columns_.size - alignment_peel - least + width) / width);
    const int64_t tasks = std::min(calls_for(2 * bytes_, threads), planes * strips);
    parallel_for(tasks, threads, [&](int64_t task) {
      ColumnOutputs outputs(exclusive_, policy_.non_temporal);
      int64_t begin = share_begin(task, tasks, planes * strips);
      const int64_t end = share_begin(task + 1, tasks, planes * strips);
      while (begin < end) {
        // Some strips of a plane, or as many whole planes as follow.
        const int64_t first = begin % strips;
        const int64_t whole = first > 0 ? 0 : (end - begin) / strips;
        const int64_t last = whole > 0 ? strips : std::min(strips, first + end - begin);
        const int64_t plane = begin / strips;
        planes_.runs(plane, plane + std::max<int64_t>(whole, 1), in, out,
                     [&](const std::byte* from, std::byte* to, int64_t count) {
                       for (int64_t i = 0; i < count; ++i) {
                         // Planes in the direction of the axis: hardware prefetchers follow one direction.
                         const int64_t p = axis_.out < 0 ? count - 1 - i : i;
                         for (int64_t strip = first; strip < last; ++strip) {
                           const int64_t start = strip > 0 ? strip * width + alignment_peel : 0;
                           const int64_t next =
                               strip + 1 < strips ? (strip + 1) * width + alignment_peel : columns_.size;
                           scan_strip(from + p * planes_.inner.in, to + p * planes_.inner.out, start,
                                      next - start, carries, outputs);
                         }
                       }
                     });
        begin += whole > 0 ? whole * strips : last - first;
      }
    });
  }

 private:
  using Kernels = ColumnScan<T, Operation>;
  using Kernel = typename Kernels::Kernel;
  using Accumulator = AccumulatorOf<T>;
  static constexpr int64_t kSize = sizeof(T);
  // The most columns of a strip.
  static constexpr int64_t kMostStreamed = tuning::kNonTemporalStripBytes / kSize;
  static constexpr int64_t kMostCached =
      std::min(tuning::kCachedStripColumns, tuning::kCachedStripBytes / kSize);
  // The unit of their width.
  static constexpr int64_t kNarrowest = tuning::kStripUnitBytes / static_cast<int64_t>(sizeof(Accumulator));
  // The most columns by which the first strip is wider, or the last.
  static constexpr int64_t kWider = kLine / kSize + tuning::kNarrowIntegerColumns;
  // A tile of the input.
  static constexpr int64_t kTileRows = tuning::kPackedTileColumnBytes / kSize;
  static constexpr int64_t kTileColumns = tuning::kPackedTileRowBytes / kSize;
  static constexpr int64_t kTileStep = tuning::kPackedTileRowBytes + kLine;
  static_assert(kTileColumns - kNarrowest + kWider <= kTileStep / kSize, "a strip fits a tile");
  static constexpr int64_t kMostBlocked = most_blocked_columns(kSize);

  ColumnPlan(ScanGeometry geometry, int64_t bytes, ScanPolicy policy, bool exclusive, std::string description)
      : Plan(std::move(description)),
        policy_(std::move(policy)),
        axis_(geometry.axis),
        in_start_(geometry.in_start),
        out_start_(geometry.out_start),
        bytes_(bytes),
        columns_(take_innermost(geometry.lines)),
        planes_(std::move(geometry.lines)),
        exclusive_(exclusive),
        scan_(Kernels::choose(policy_.algorithm, columns_.size)),
        reduce_(nullptr) {
    if constexpr (kIsBlockable<T, Operation>) reduce_ = Kernels::choose_reduction(policy_.algorithm);
  }

  // Whether columns are cut into blocks.
  bool is_cut() const { return policy_.tile < axis_.size; }

  // The width of the strips: as many as are within the limit and keep all threads busy, equally wide, of
  // whole cache lines. Where threads write the same rows in their second caches, strips are as narrow as
  // possible: beyond the end of a longer row a processor prefetches lines that another thread is about to
  // write, out of that one's cache, and all take several times as long.
  int64_t strip_width(int64_t planes, int threads) const {
    if (policy_.algorithm != ScanAlgorithm::kColumnStrips) return columns_.size;
    const auto parts = [](int64_t size, int64_t part) { return (size + part - 1) / part; };
    const bool shares = planes < threads;
    if (shares && !policy_.non_temporal && bytes_ <= threads * tuning::kSecondCacheBytes) return kNarrowest;
    const int64_t wanted = shares ? parts(columns_.size, threads) : columns_.size;
    const int64_t most = policy_.packs_input    ? kTileColumns - kNarrowest
                         : policy_.non_temporal ? kMostStreamed
                                                : kMostCached;
    return parts(parts(wanted, parts(wanted, most)), kNarrowest) * kNarrowest;
  }

  void scan_strip(const std::byte* in, std::byte* out, int64_t start, int64_t width,
                  const Carries<T, Operation>& carries, ColumnOutputs& outputs) const {
    alignas(64) Accumulator accumulators[kMostStreamed + kWider];
    Accumulator before[kMostBlocked];
    const int64_t block = kIsOrderSensitive<T, Operation> ? policy_.tile : axis_.size;
    const bool blocked = block < axis_.size;
    in += start * columns_.in;
    out += start * kSize;
    if (!carries.are_there() || blocked) clear(accumulators, width);
    if (carries.are_there()) {
      carries.at(out, width, blocked ? before : accumulators);
    } else if (blocked) {
      clear(before, width);
    }
    for (int64_t i = 0; i < axis_.size; i += block) {
      scan_range(scan_, in, out, i, std::min(block, axis_.size - i), width, accumulators,
                 blocked ? before : nullptr, outputs);
      if (!blocked) continue;
      combine(before, accumulators, width);
      clear(accumulators, width);
    }
  }

  // Scans `rows` rows from the i-th on, which it packs first where the input has the columns across.
  ANYDML_NOINLINE void scan_range(Kernel kernel, const std::byte* in, std::byte* out, int64_t i, int64_t rows,
                                  int64_t width, Accumulator* accumulators, const Accumulator* before,
                                  ColumnOutputs& outputs) const {
    in += i * axis_.in;
    out += i * axis_.out;
    if (!policy_.packs_input)
      return kernel({rows, in, axis_.in, out, axis_.out}, width, accumulators, before, outputs);
    alignas(64) std::byte tile[kTileRows * kTileStep];
    const int64_t ahead =
        outputs.buffer.is_non_temporal() ? tuning::kPackedTilesAhead * kTileRows * kSize : 0;
    for (int64_t row = 0; row < rows; row += kTileRows) {
      const int64_t count = std::min(kTileRows, rows - row);
      const Tile from{in + row * axis_.in, axis_.in, columns_.in};
      gather_tile<BitsOf<T>>(from, count, width, tile, kTileStep, ahead);
      kernel({count, tile, kTileStep, out + row * axis_.out, axis_.out}, width, accumulators, before,
             outputs);
    }
  }

  // Scans one plane on several threads.
  void scan_chained(const std::byte* in, std::byte* out, const Carries<T, Operation>& carries,
                    int threads) const {
    const int64_t width = columns_.size;
    const int64_t blocks = (axis_.size + policy_.tile - 1) / policy_.tile;
    const auto rows = [&](int64_t block) {
      return std::min(policy_.tile, axis_.size - block * policy_.tile);
    };
    std::vector<Accumulator> first(static_cast<size_t>(width));
    carries.at(out, width, first.data());
    chained_scan(
        blocks, width, first, in == out, threads,
        [&](int64_t block, Accumulator* totals) {
          ColumnOutputs none(false, false);
          clear(totals, width);
          scan_range(reduce_, in, out, block * policy_.tile, rows(block), width, totals, nullptr, none);
        },
        [&](Accumulator* before, const Accumulator* totals) { combine(before, totals, width); },
        [&](int64_t block, Accumulator* before, const Accumulator*) {
          ColumnOutputs outputs(exclusive_, policy_.non_temporal);
          const auto scan = [&](Accumulator* accumulators) {
            scan_range(scan_, in, out, block * policy_.tile, rows(block), width, accumulators, before,
                       outputs);
          };
          if constexpr (kIsOrderSensitive<T, Operation>) {
            Accumulator accumulators[kMostBlocked];
            clear(accumulators, width);
            scan(accumulators);
            combine(before, accumulators, width);
          } else {
            scan(before);
          }
        });
  }

  static void clear(Accumulator* accumulators, int64_t width) {
    std::fill_n(accumulators, width, static_cast<Accumulator>(Operation::kIdentity));
  }
  static void combine(Accumulator* before, const Accumulator* totals, int64_t width) {
    for (int64_t j = 0; j < width; ++j) before[j] = Operation::combine(before[j], totals[j]);
  }

  ScanPolicy policy_;
  Loop axis_;
  int64_t in_start_;
  int64_t out_start_;
  int64_t bytes_;
  Loop columns_;
  Lines planes_;
  bool exclusive_;
  Kernel scan_;
  Kernel reduce_;
  CarryPlaces places_;
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
