// The plan of scans whose outputs are contiguous along the axis: each thread scans several rows, or all of
// them share a long one by a chained scan. An input that has the rows across is transposed tile by tile, or
// packed block by block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "scan/accumulator.h"
#include "scan/carries.h"
#include "scan/chained_carry.h"
#include "scan/geometry.h"
#include "scan/lane_rows.h"
#include "scan/policy.h"
#include "scan/row_scan.h"
#include "scan/square_rows.h"
#include "scan/tuning.h"
#include "simd/transpose.h"
#include "simd/vector.h"
#include "stores/deferred_rows.h"
#include "stores/realigning_store.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, class Operation>
class RowPlan final : public Plan {
 public:
  RowPlan(const ScanProblem& problem, ScanPolicy policy, bool exclusive, std::string description)
      : Plan(std::move(description)),
        policy_(std::move(policy)),
        bytes_(problem.bytes()),
        geometry_(nearest_last(problem.geometry)),
        lines_(geometry_.lines),
        down_(geometry_.axis.out < 0),
        places_(problem.carries),
        exclusive_(exclusive),
        kernels_(Kernels::choose(down_)) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    const Carries<T, Operation> carries(places_, inputs, outputs[0]);
    const int threads = threads_for(2 * bytes_);
    const int64_t rows = lines_.outer_count() * lines_.inner.size;
    if (is_chained() && is_worth_sharing(bytes_, rows, threads)) {
      lines_.runs(0, rows, in, out, [&](const std::byte* from, std::byte* to, int64_t count) {
        for (int64_t r = 0; r < count; ++r) {
          scan_chained(from + r * lines_.inner.in, to + r * lines_.inner.out, carries, threads);
        }
      });
      return;
    }
    const int64_t tasks = std::min(calls_for(2 * bytes_, threads), rows);
    parallel_for(tasks, threads, [&](int64_t task) {
      StagedWriter stage(policy_.non_temporal);
      RealigningBuffer buffer(policy_.non_temporal, down_);
      lines_.runs(share_begin(task, tasks, rows), share_begin(task + 1, tasks, rows), in, out,
                  [&](const std::byte* from, std::byte* to, int64_t count) {
                    switch (policy_.algorithm) {
                      case ScanAlgorithm::kTransposedRows:
                        return scan_transposed(from, to, count, stage);
                      case ScanAlgorithm::kShortRows:
                        return scan_short_rows(from, to, count, stage);
                      case ScanAlgorithm::kVectorRows:
                        return scan_vector_rows(from, to, count, buffer);
                      default:
                        return scan_blocked_rows(from, to, count, carries, buffer);
                    }
                  });
    });
  }

 private:
  using Kernels = RowKernels<T, Operation>;
  using Accumulator = AccumulatorOf<T>;
  using State = typename Kernels::State;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kBlock = tuning::kBlock;
  // The blocks of a chunk.
  static constexpr int64_t kChunk = tuning::kChunkBytes / (kBlock * kSize);
  // A tile of rows that the input has across. Its rows are a cache line further apart, so that they do not
  // compete for a set of the first cache.
  static constexpr int64_t kTileRows =
      std::min(tuning::kTransposeReadBytes / kSize, tuning::kTransposeMostRows);
  static constexpr int64_t kTileColumns = tuning::kTransposeWriteBytes / kSize;
  static constexpr int64_t kTileStep = tuning::kTransposeWriteBytes + kLine;

  bool is_chained() const { return policy_.algorithm == ScanAlgorithm::kChainedRows; }

  // Puts the loop over lines that are nearest to each other in the input last, where the input has the rows
  // across.
  static ScanGeometry nearest_last(ScanGeometry geometry) {
    const auto nearest = geometry.lines.begin() + (nearest_line(geometry) - geometry.lines.cbegin());
    if (geometry.axis.in != geometry.axis.out && nearest != geometry.lines.end()) {
      std::rotate(nearest, nearest + 1, geometry.lines.end());
    }
    return geometry;
  }

  // The offset of the lowest of the `count` elements from the i-th traversed on, from the first one.
  int64_t lowest(int64_t i, int64_t count) const { return down_ ? -(i + count - 1) * kSize : i * kSize; }

  // `count` elements of the input from the i-th traversed on, of lines `row_step` bytes apart, in the order
  // of the output.
  Tile tile_of(const std::byte* in, int64_t row_step, int64_t i, int64_t count) const {
    const int64_t step = geometry_.axis.in;
    return {in + (down_ ? i + count - 1 : i) * step, row_step, down_ ? -step : step};
  }

  // The rows in the direction in which their elements are traversed: memory is slow in both directions at
  // once.
  Loop in_order(int64_t count, const std::byte*& in, std::byte*& out) const {
    const auto [lines, in_step, out_step] = lines_.inner;
    if (!down_) return {count, in_step, out_step};
    in += (count - 1) * in_step;
    out += (count - 1) * out_step;
    return {count, -in_step, -out_step};
  }

  // The address at which the traversal of a part of `size` elements begins, whose lowest address is `part`.
  const std::byte* begin_of(const std::byte* part, int64_t size) const {
    return down_ ? part + size * kSize : part;
  }
  // The lowest address of a part of `size` elements that is traversed after another one.
  const std::byte* next_to(const std::byte* part, int64_t size) const {
    return down_ ? part - size * kSize : part + size * kSize;
  }

  // The size of the block that begins with the i-th element; 0 beyond the axis.
  int64_t block_size(int64_t i) const { return std::clamp<int64_t>(geometry_.axis.size - i, 0, kBlock); }

  // A packed block of the input, before which a granule may be read, as PartialLine does.
  struct PackBuffer {
    alignas(64) std::byte before[kLine];
    std::byte block[kBlock * kSize];
  };

  // The block that begins with the i-th element traversed, packed where the input is not.
  const std::byte* block_of(const std::byte* in, int64_t i, PackBuffer& packed) const {
    const int64_t size = block_size(i);
    if (!policy_.packs_input) return in + lowest(i, size);
    gather_tile<BitsOf<T>>(tile_of(in, 0, i, size), 1, size, packed.block, 0);
    return packed.block;
  }

  // Scans the block that begins with the i-th element of a row, from `carry` on. With `total`, to which the
  // block was reduced, `carry` goes on by that, as it does where another thread scans the next block.
  void scan_block(const std::byte* from, std::byte* out, int64_t i, State& carry, const State* total,
                  const std::byte* prefetch_from, RealigningBuffer& buffer) const {
    const int64_t size = block_size(i);
    std::byte* const to = out + lowest(i, size);
    State running = carry;
    kernels_.scan_block(from, to, size, running, exclusive_, prefetch_from, buffer,
                        buffer.mode_for(begin_of(to, size), 0));
    carry = total != nullptr ? Operation::combine(carry, *total) : running;
  }

  // Scans a block that was not reduced. Most kernels reduce it while they scan. Products of floats are
  // reduced before where threads may share the row, so that the bits do not depend on whether they do.
  void scan_block_at_once(const std::byte* from, std::byte* out, int64_t i, State& carry, bool chained,
                          RealigningBuffer& buffer) const {
    const int64_t size = block_size(i);
    const bool reduces = chained && !kIsBlockable<T, Operation>;
    const State total = reduces ? kernels_.reduce_block(from, size) : Kernels::identity();
    scan_block(from, out, i, carry, reduces ? &total : nullptr, next_to(from, size), buffer);
  }

  void scan_blocked_rows(const std::byte* in, std::byte* out, int64_t count,
                         const Carries<T, Operation>& carries, RealigningBuffer& buffer) const {
    const Loop rows = in_order(count, in, out);
    PackBuffer packed;
    for (int64_t r = 0; r < count; ++r) {
      State carry = carries.at(out + r * rows.out);
      for (int64_t i = 0; i < geometry_.axis.size; i += kBlock) {
        if (i % (64 * kBlock) == 0 && is_cancelled()) return;
        const std::byte* const from = block_of(in + r * rows.in, i, packed);
        scan_block_at_once(from, out + r * rows.out, i, carry, is_chained(), buffer);
      }
    }
  }

  void scan_vector_rows(const std::byte* in, std::byte* out, int64_t count, RealigningBuffer& buffer) const {
    const int64_t size = geometry_.axis.size;
    const Loop rows = in_order(count, in, out);
    out += lowest(0, size);
    kernels_.scan_rows(in + lowest(0, size), rows.in, out, rows.out, size, count, exclusive_, buffer,
                       buffer.mode_for(begin_of(out, size), rows.out));
  }

  // Scans short rows in groups; packed rows many at a time, so that the stage is asked once for all of them.
  void scan_short_rows(const std::byte* in, std::byte* out, int64_t count, StagedWriter& stage) const {
    const int64_t size = geometry_.axis.size;
    const int64_t in_step = lines_.inner.in;
    const int64_t out_step = lines_.inner.out;
    const bool packed = out_step == size * kSize;
    int64_t batch = packed ? kBlock / size / kRowsPerGroup * kRowsPerGroup : 1;
#if defined(ANYDML_ISA_AVX512)
    const LaneRows<T, Operation> lane_rows(size, exclusive_, down_);
    const bool in_squares = packed && !policy_.packs_input && SquareRows<T, Operation>::has(size);
    const int64_t at_once = in_squares ? SquareRows<T, Operation>::kRows
                            : packed && in_step == out_step && !policy_.packs_input && size > 1
                                ? lane_rows.rows_at_once()
                                : 0;
    if (at_once > 0) batch = kBlock / size / at_once * at_once;
#endif
    PackBuffer buffer;
    for (int64_t start = 0; start < count; start += batch) {
      const int64_t rows = std::min(batch, count - start);
      std::byte* const to = stage.reserve(out + start * out_step + lowest(0, size), rows * size * kSize);
      const std::byte* const from = in + start * in_step;
      int64_t r = 0;
#if defined(ANYDML_ISA_AVX512)
      if (at_once > 0) {
        r = rows / at_once * at_once;
        const std::byte* const lines = from + lowest(0, size);
        if constexpr (std::is_same_v<T, Half>) {
          if (in_squares)
            SquareRows<T, Operation>::scan(lines, in_step, to, out_step, r, size, exclusive_, down_, stage);
        }
        if (!in_squares) lane_rows.scan(lines, to, r, stage);
      }
#endif
      for (; !policy_.packs_input && r + kRowsPerGroup <= rows; r += kRowsPerGroup) {
        Accumulator accumulators[kRowsPerGroup];
        std::fill_n(accumulators, kRowsPerGroup, static_cast<Accumulator>(Operation::kIdentity));
        const std::byte* const lines = from + r * in_step + lowest(0, size);
        kernels_.scan_group(lines, in_step, to + r * out_step, out_step, size, exclusive_, accumulators,
                            Prefetcher(lines + kRowsPerGroup * in_step), stage);
      }
      for (; r < rows; ++r) {
        auto accumulator = static_cast<Accumulator>(Operation::kIdentity);
        kernels_.scan_row(block_of(from + r * in_step, 0, buffer), to + r * size * kSize, size, exclusive_,
                          accumulator);
      }
    }
  }

  void scan_transposed(const std::byte* in, std::byte* out, int64_t count, StagedWriter& stage) const {
    const int64_t size = geometry_.axis.size;
    const auto [lines, in_step, out_step] = lines_.inner;
    // Tiles begin at a cache line of the output where rows are whole lines apart.
    const int64_t skew = down_ ? 0 : to_next_line(out) / kSize;
    alignas(64) std::byte tiles[2][kTileRows * kTileStep];
    bool side = false;
    DeferredRows deferred;
    for (int64_t start = 0; start < count; start += kTileRows) {
      const int64_t rows = std::min(kTileRows, count - start);
      Accumulator accumulators[kTileRows];
      std::fill_n(accumulators, rows, static_cast<Accumulator>(Operation::kIdentity));
      for (int64_t i = 0, next; i < size; i = next) {
        next = std::min(size, i == 0 && skew > 0 ? skew : i + kTileColumns);
        int64_t r = 0;
        if (in_step == kSize) {
          r = rows / kRowsPerGroup * kRowsPerGroup;
          scan_neighbours(in + start * in_step, out + start * out_step, i, next - i, r, accumulators,
                          policy_.non_temporal ? tiles[side] : nullptr, deferred);
          side = !side;
        }
        for (; r < rows; r += kRowsPerGroup) {
          scan_tile(in + (start + r) * in_step, out + (start + r) * out_step, i, next - i,
                    std::min(kRowsPerGroup, rows - r), accumulators + r, stage);
        }
      }
    }
  }

  // Scans `size` elements from the i-th on of rows whose neighbours are contiguous in the input. With `tile`,
  // one square tile of each row comes before the next one, so that memory reads as much at a stretch as there
  // are rows, and the outputs are written to `tile`, which is sent while the next tile is computed. Without
  // it, in the caches, a few rows come after the others, as the rows of the output may compete for a set of
  // the cache.
  void scan_neighbours(const std::byte* in, std::byte* out, int64_t i, int64_t size, int64_t lines,
                       Accumulator* accumulators, std::byte* tile, DeferredRows& deferred) const {
    const int64_t out_step = lines_.inner.out;
    const int64_t along = geometry_.axis.in;
    std::byte* const to = out + lowest(i, size);
    std::byte* const at = tile != nullptr ? tile : to;
    const int64_t step = tile != nullptr ? kTileStep : out_step;
    const int64_t at_once = tile != nullptr ? Kernels::kTile : size;
    for (int64_t done = 0, count; done < size; done += count) {
      count = std::min(at_once, size - done);
      const std::byte* const from = in + (i + done) * along;
      const int64_t place = (down_ ? size - done - count : done) * kSize;
      kernels_.scan_neighbours(from, along, at + place, step, count, lines, exclusive_, accumulators,
                               tile != nullptr ? &deferred : nullptr);
    }
    if (tile != nullptr) deferred.begin(tile, kTileStep, to, out_step, lines, size * kSize);
  }

  // Scans `size` elements from the i-th on of a few rows, which it packs first.
  void scan_tile(const std::byte* in, std::byte* out, int64_t i, int64_t size, int64_t lines,
                 Accumulator* accumulators, StagedWriter& stage) const {
    const auto [all_lines, in_step, out_step] = lines_.inner;
    alignas(64) std::byte tile[kRowsPerGroup * kTileStep];
    std::byte* to = out + lowest(i, size);
    gather_tile<BitsOf<T>>(tile_of(in, in_step, i, size), lines, size, tile, kTileStep);
    std::byte* const at = policy_.non_temporal ? tile : to;
    const int64_t step = policy_.non_temporal ? kTileStep : out_step;
    if (lines == kRowsPerGroup) {
      kernels_.scan_group(tile, kTileStep, at, step, size, exclusive_, accumulators, Prefetcher(tile), stage);
    } else {
      for (int64_t s = 0; s < lines; ++s)
        kernels_.scan_row(tile + s * kTileStep, at + s * step, size, exclusive_, accumulators[s]);
    }
    if (!policy_.non_temporal) return;
    for (int64_t s = 0; s < lines; ++s) stream_copy(to + s * out_step, tile + s * kTileStep, size * kSize);
  }

  // Scans one row on several threads.
  void scan_chained(const std::byte* in, std::byte* out, const Carries<T, Operation>& carries,
                    int threads) const {
    const int64_t blocks = (geometry_.axis.size + kBlock - 1) / kBlock;
    const int64_t chunk_size = kChunk * kBlock;
    chained_scan((blocks + kChunk - 1) / kChunk, kChunk, std::vector{carries.at(out)}, in == out, threads,
                 [&](int64_t chunk, State* totals) { reduce_chunk(in, chunk * chunk_size, totals); },
                 [](State* accumulator, const State* totals) {
                   for (int64_t b = 0; b < kChunk; ++b)
                     *accumulator = Operation::combine(*accumulator, totals[b]);
                 },
                 [&](int64_t chunk, State* carry, const State* totals) {
                   RealigningBuffer buffer(policy_.non_temporal, down_);
                   scan_chunk(in, out, chunk * chunk_size, *carry, totals, buffer);
                 });
  }

  ANYDML_NOINLINE void reduce_chunk(const std::byte* in, int64_t start, State* totals) const {
    PackBuffer packed;
    for (int64_t b = 0; b < kChunk; ++b) {
      const int64_t i = start + b * kBlock;
      const int64_t size = block_size(i);
      totals[b] = kernels_.reduce_block(size > 0 ? block_of(in, i, packed) : in, size);
    }
  }

  ANYDML_NOINLINE void scan_chunk(const std::byte* in, std::byte* out, int64_t start, State& carry,
                                  const State* totals, RealigningBuffer& buffer) const {
    PackBuffer packed;
    for (int64_t b = 0; b < kChunk; ++b) {
      const int64_t i = start + b * kBlock;
      const int64_t size = block_size(i);
      if (size == 0) return;
      const std::byte* const from = block_of(in, i, packed);
      if (totals != nullptr) {
        // About the chunk that is taken next, as other threads take some meanwhile.
        constexpr int64_t kAway = kMaxReducedAhead * kChunk * kBlock;
        const std::byte* const prefetch_from = policy_.packs_input ? from : in + lowest(i + kAway, size);
        scan_block(from, out, i, carry, totals + b, prefetch_from, buffer);
      } else {
        scan_block_at_once(from, out, i, carry, true, buffer);
      }
    }
  }

  ScanPolicy policy_;
  int64_t bytes_;
  ScanGeometry geometry_;
  Lines lines_;
  bool down_;
  CarryPlaces places_;
  bool exclusive_;
  Kernels kernels_;
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
