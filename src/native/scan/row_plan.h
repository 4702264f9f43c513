// Rows of neighbours: several at once on each thread, or a long one on all of them. An input whose rows do
// not lie as the output's do is read across several of them, or brought into order block by block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "scan/accumulator.h"
#include "scan/chained_carry.h"
#include "scan/geometry.h"
#include "scan/row_scan.h"
#include "simd/transpose.h"
#include "simd/vector.h"
#include "stores/departure.h"
#include "stores/realigning_store.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, class Operation>
class RowPlan final : public Plan {
 public:
  RowPlan(ScanGeometry geometry, bool exclusive, std::string description)
      : Plan(std::move(description)),
        geometry_(nearest_last(std::move(geometry))),
        lines_(geometry_.lines),
        down_(geometry_.axis.out < 0),
        kernels_(Kernels::choose(exclusive, down_)) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    const int64_t bytes = bytes_of<T>(geometry_);
    const bool streams = bytes >= kStreamFrom;
    const int threads = threads_for(2 * bytes);
    const int64_t rows = lines_.outer_count() * lines_.inner.size;
    const int64_t size = geometry_.axis.size;
    if (threads > 1 && may_be_shared(rows) && rows < 4 * threads && rows % threads != 0) {
      lines_.runs(0, rows, in, out, [&](const std::byte* from, std::byte* to, int64_t count) {
        for (int64_t r = 0; r < count; ++r) {
          scan_long(from + r * lines_.inner.in, to + r * lines_.inner.out, threads, streams);
        }
      });
      return;
    }
    const int64_t tasks = std::min<int64_t>(threads, rows);
    parallel_for(tasks, threads, [&](int64_t task) {
      StagedWriter stage(streams);
      PendingStore pending(streams, down_);
      lines_.runs(share_begin(task, tasks, rows), share_begin(task + 1, tasks, rows), in, out,
                  [&](const std::byte* from, std::byte* to, int64_t count) {
                    if (needs_transpose()) {
                      scan_across(from, to, count, stage);
                    } else if (size < kVectorsFrom) {
                      scan_short_rows(from, to, count, stage);
                    } else if (size <= kBlock && !gathers()) {
                      scan_as_vectors(from, to, count, pending);
                    } else {
                      scan_rows(from, to, count, may_be_shared(rows), pending);
                    }
                  });
    });
  }

 private:
  using Kernels = RowKernels<T, Operation>;
  using Accumulator = AccumulatorOf<T>;
  using State = typename Kernels::State;
  static constexpr int64_t kSize = sizeof(T);
  // In blocks: what a thread reads to reduce, or tallies, it finds in its second cache to scan.
  static constexpr int64_t kChunk = (64 << 10) / (kBlock * kSize);
  // A piece of rows that are read across, which fits the second cache: memory reads so many bytes of the
  // input at a stretch, and writes so many of the output.
  static constexpr int64_t kAcross = std::min<int64_t>(1024 / kSize, 256);
  static constexpr int64_t kAlong = 512 / kSize;
  static constexpr int64_t kPieceStep = 512 + kLine;

  bool gathers() const { return geometry_.axis.in != geometry_.axis.out; }
  bool needs_transpose() const { return gathers() && lines_.inner.size >= kRowsPerGroup; }

  // Whether there are rows too few for every thread of a large machine, which may share each one then.
  bool may_be_shared(int64_t rows) const {
    return !needs_transpose() && rows < 512 && geometry_.axis.size > 8 * kBlock;
  }

  // The lines nearest to each other in an input that is read across.
  static ScanGeometry nearest_last(ScanGeometry geometry) {
    const auto nearest =
        std::ranges::min_element(geometry.lines, {}, [](const Loop& line) { return std::abs(line.in); });
    if (geometry.axis.in != geometry.axis.out && nearest != geometry.lines.end()) {
      std::rotate(nearest, nearest + 1, geometry.lines.end());
    }
    return geometry;
  }

  // Where the part of `count` elements from the i-th traversed on lies lowest, from where the first lies.
  int64_t lowest(int64_t i, int64_t count) const { return down_ ? -(i + count - 1) * kSize : i * kSize; }

  // `count` elements of the input from the i-th traversed on, of lines `row_step` apart, as they lie in the
  // output.
  Tile tile_of(const std::byte* in, int64_t row_step, int64_t i, int64_t count) const {
    const int64_t step = geometry_.axis.in;
    return {in + (down_ ? i + count - 1 : i) * step, row_step, down_ ? -step : step};
  }

  // Rows in the order in which they lie along the walk, which leads down their elements too.
  Loop along_walk(int64_t count, const std::byte*& in, std::byte*& out) const {
    const auto [lines, in_step, out_step] = lines_.inner;
    if (!down_) return {count, in_step, out_step};
    in += (count - 1) * in_step;
    out += (count - 1) * out_step;
    return {count, -in_step, -out_step};
  }

  // Where the walk begins through a part of that many elements that lies from `part` on.
  const std::byte* begin_of(const std::byte* part, int64_t size) const {
    return down_ ? part + size * kSize : part;
  }
  // Where a part of that many elements that follows another one lies lowest.
  const std::byte* next_to(const std::byte* part, int64_t size) const {
    return down_ ? part - size * kSize : part + size * kSize;
  }

  // Of the block that starts with the i-th element; 0 beyond the axis.
  int64_t block_size(int64_t i) const { return std::clamp<int64_t>(geometry_.axis.size - i, 0, kBlock); }

  // A block, before which a piece may be read, as LineRest does.
  struct PackBuffer {
    alignas(64) std::byte before[kLine];
    std::byte block[kBlock * kSize];
  };

  // The block that starts with the i-th element traversed, in `gathered` where the input's lies otherwise.
  const std::byte* block_of(const std::byte* in, int64_t i, PackBuffer& gathered) const {
    const int64_t size = block_size(i);
    if (!gathers()) return in + lowest(i, size);
    gather_tile<BitsOf<T>>(tile_of(in, 0, i, size), 1, size, gathered.block, 0);
    return gathered.block;
  }

  // The block that starts with the i-th element of a row, on from `carry`. With `total`, the next one goes
  // on from what the block was reduced to, as if another thread scanned this one.
  void scan_block(const std::byte* from, std::byte* out, int64_t i, State& carry, const State* total,
                  const std::byte* prefetch_from, PendingStore& pending) const {
    const int64_t size = block_size(i);
    std::byte* const to = out + lowest(i, size);
    State running = carry;
    kernels_.scan_block(from, to, size, running, prefetch_from, pending,
                        pending.store_mode(begin_of(to, size), 0));
    carry = total != nullptr ? Operation::combine(carry, *total) : running;
  }

  // A block that nobody has reduced. Most kernels total it while they scan; those that do not reduce it
  // before where the row may be shared, for the same bits however it is.
  void scan_block_at_once(const std::byte* from, std::byte* out, int64_t i, State& carry, bool shared,
                          PendingStore& pending) const {
    const int64_t size = block_size(i);
    const bool reduces = shared && !kIsBlockable<T, Operation>;
    const State total = reduces ? kernels_.reduce_block(from, size) : Kernels::identity();
    scan_block(from, out, i, carry, reduces ? &total : nullptr, next_to(from, size), pending);
  }

  void scan_rows(const std::byte* in, std::byte* out, int64_t count, bool shared,
                 PendingStore& pending) const {
    const Loop rows = along_walk(count, in, out);
    PackBuffer gathered;
    for (int64_t r = 0; r < count; ++r) {
      State carry = Kernels::identity();
      for (int64_t i = 0; i < geometry_.axis.size; i += kBlock) {
        const std::byte* const from = block_of(in + r * rows.in, i, gathered);
        scan_block_at_once(from, out + r * rows.out, i, carry, shared, pending);
      }
    }
  }

  void scan_as_vectors(const std::byte* in, std::byte* out, int64_t count, PendingStore& pending) const {
    const int64_t size = geometry_.axis.size;
    const Loop rows = along_walk(count, in, out);
    out += lowest(0, size);
    kernels_.scan_rows(in + lowest(0, size), rows.in, out, rows.out, size, count, pending,
                       pending.store_mode(begin_of(out, size), rows.out));
  }

  // Packed ones many at a time.
  void scan_short_rows(const std::byte* in, std::byte* out, int64_t count, StagedWriter& stage) const {
    const int64_t size = geometry_.axis.size;
    const int64_t in_step = lines_.inner.in;
    const int64_t out_step = lines_.inner.out;
    const bool packed = out_step == size * kSize;
    const int64_t batch = packed ? kBlock / size / kRowsPerGroup * kRowsPerGroup : 1;
    PackBuffer gathered;
    for (int64_t start = 0; start < count; start += batch) {
      const int64_t rows = std::min(batch, count - start);
      std::byte* const to = stage.reserve(out + start * out_step + lowest(0, size), rows * size * kSize);
      const std::byte* const from = in + start * in_step;
      int64_t r = 0;
      for (; !gathers() && r + kRowsPerGroup <= rows; r += kRowsPerGroup) {
        Accumulator accumulators[kRowsPerGroup];
        std::fill_n(accumulators, kRowsPerGroup, static_cast<Accumulator>(Operation::kIdentity));
        const std::byte* const lines = from + r * in_step + lowest(0, size);
        kernels_.scan_lines(lines, in_step, to + r * out_step, out_step, size, accumulators,
                            Prefetcher(lines + kRowsPerGroup * in_step), stage);
      }
      for (; r < rows; ++r) {
        auto accumulator = static_cast<Accumulator>(Operation::kIdentity);
        kernels_.scan_line(block_of(from + r * in_step, 0, gathered), to + r * size * kSize, size,
                           accumulator);
      }
    }
  }

  void scan_across(const std::byte* in, std::byte* out, int64_t count, StagedWriter& stage) const {
    const int64_t size = geometry_.axis.size;
    const auto [lines, in_step, out_step] = lines_.inner;
    // Pieces begin with a line of the output's where rows are whole lines apart.
    const int64_t skew = down_ ? 0 : to_next_line(out) / kSize;
    alignas(64) std::byte pieces[2][kAcross * kPieceStep];
    bool side = false;
    DeferredRows departure;
    for (int64_t start = 0; start < count; start += kAcross) {
      const int64_t rows = std::min(kAcross, count - start);
      Accumulator accumulators[kAcross];
      std::fill_n(accumulators, rows, static_cast<Accumulator>(Operation::kIdentity));
      for (int64_t i = 0, next; i < size; i = next) {
        next = std::min(size, i == 0 && skew > 0 ? skew : i + kAlong);
        int64_t r = 0;
        if (in_step == kSize) {
          r = rows / kRowsPerGroup * kRowsPerGroup;
          scan_beside(in + start * in_step, out + start * out_step, i, next - i, r, accumulators,
                      stage.streams() ? pieces[side] : nullptr, departure);
          side = !side;
        }
        for (; r < rows; r += kRowsPerGroup) {
          scan_piece(in + (start + r) * in_step, out + (start + r) * out_step, i, next - i,
                     std::min(kRowsPerGroup, rows - r), accumulators + r, stage);
        }
      }
    }
  }

  // Some elements from the i-th on, of lines that are neighbours in the input: a square of each before the
  // next, so that memory reads rows as long as there are lines, to a piece that departs while the next one is
  // computed. Without one, in the caches, where an output's lines may fall into one set, a few lines after
  // the others.
  void scan_beside(const std::byte* in, std::byte* out, int64_t i, int64_t size, int64_t lines,
                   Accumulator* accumulators, std::byte* piece, DeferredRows& departure) const {
    const int64_t out_step = lines_.inner.out;
    const int64_t along = geometry_.axis.in;
    std::byte* const to = out + lowest(i, size);
    std::byte* const at = piece != nullptr ? piece : to;
    const int64_t step = piece != nullptr ? kPieceStep : out_step;
    const int64_t at_once = piece != nullptr ? Kernels::kSquare : size;
    for (int64_t done = 0, count; done < size; done += count) {
      count = std::min(at_once, size - done);
      const std::byte* const from = in + (i + done) * along;
      const int64_t place = (down_ ? size - done - count : done) * kSize;
      kernels_.scan_neighbours(from, along, at + place, step, count, lines, accumulators,
                               piece != nullptr ? &departure : nullptr);
    }
    if (piece != nullptr) departure.begin(piece, kPieceStep, to, out_step, lines, size * kSize);
  }

  // Some elements from the i-th on, of `lines` lines.
  void scan_piece(const std::byte* in, std::byte* out, int64_t i, int64_t size, int64_t lines,
                  Accumulator* accumulators, StagedWriter& stage) const {
    const auto [all_lines, in_step, out_step] = lines_.inner;
    alignas(64) std::byte piece[kRowsPerGroup * kPieceStep];
    std::byte* to = out + lowest(i, size);
    gather_tile<BitsOf<T>>(tile_of(in, in_step, i, size), lines, size, piece, kPieceStep);
    std::byte* const at = stage.streams() ? piece : to;
    const int64_t step = stage.streams() ? kPieceStep : out_step;
    if (lines == kRowsPerGroup) {
      kernels_.scan_lines(piece, kPieceStep, at, step, size, accumulators, Prefetcher(piece), stage);
    } else {
      for (int64_t s = 0; s < lines; ++s)
        kernels_.scan_line(piece + s * kPieceStep, at + s * step, size, accumulators[s]);
    }
    if (!stage.streams()) return;
    for (int64_t s = 0; s < lines; ++s) stream_copy(to + s * out_step, piece + s * kPieceStep, size * kSize);
  }

  struct Chunk {
    State blocks[kChunk];
  };

  void scan_long(const std::byte* in, std::byte* out, int threads, bool streams) const {
    const int64_t blocks = (geometry_.axis.size + kBlock - 1) / kBlock;
    const int64_t chunk_size = kChunk * kBlock;
    chained_scan<Chunk>((blocks + kChunk - 1) / kChunk, threads, Kernels::identity(),
                        [&](int64_t chunk) { return reduce_chunk(in, chunk * chunk_size); },
                        [](State& accumulator, const Chunk& chunk) {
                          for (const State& total : chunk.blocks)
                            accumulator = Operation::combine(accumulator, total);
                        },
                        [&](int64_t chunk, State& carry, const Chunk* totals) {
                          PendingStore pending(streams, down_);
                          scan_chunk(in, out, chunk * chunk_size, carry, totals, pending);
                        });
  }

  Chunk reduce_chunk(const std::byte* in, int64_t start) const {
    PackBuffer gathered;
    Chunk chunk;
    for (int64_t b = 0; b < kChunk; ++b) {
      const int64_t i = start + b * kBlock;
      const int64_t size = block_size(i);
      chunk.blocks[b] = kernels_.reduce_block(size > 0 ? block_of(in, i, gathered) : in, size);
    }
    return chunk;
  }

  void scan_chunk(const std::byte* in, std::byte* out, int64_t start, State& carry, const Chunk* chunk,
                  PendingStore& pending) const {
    PackBuffer gathered;
    for (int64_t b = 0; b < kChunk; ++b) {
      const int64_t i = start + b * kBlock;
      const int64_t size = block_size(i);
      if (size == 0) return;
      const std::byte* const from = block_of(in, i, gathered);
      if (chunk != nullptr) {
        // About what is taken next: others take some meanwhile.
        constexpr int64_t kAway = kMaxReducedAhead * kChunk * kBlock;
        const std::byte* const prefetch_from = gathers() ? from : in + lowest(i + kAway, size);
        scan_block(from, out, i, carry, &chunk->blocks[b], prefetch_from, pending);
      } else {
        scan_block_at_once(from, out, i, carry, true, pending);
      }
    }
  }

  ScanGeometry geometry_;
  Lines lines_;
  bool down_;
  Kernels kernels_;
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
