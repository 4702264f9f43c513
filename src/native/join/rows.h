// JOIN by rows: concatenation into an output whose rows are contiguous.
//
// The bytes of all rows are numbered as if rows followed each other, and cut into equal parts, one for each
// thread, wherever that is in a row or a run. JoinPolicy says how a part is written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "join/interleave.h"
#include "join/policy.h"
#include "join/row_pieces.h"
#include "join/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"
#include "stores/row_writers.h"

ANYDML_ISA_BEGIN
namespace {

class RowJoin final : public Plan {
 public:
  RowJoin(Rows rows, JoinPolicy policy, const std::string& description)
      : Plan(description + ", " + policy.words),
        rows_(std::move(rows)),
        policy_(std::move(policy)),
        copy_elements_(choose_copy_of_elements(rows_.element_size)),
        pitch_(JoinPolicy::pitch(rows_)),
        out_step_(rows_.pieces[0].rows.empty() ? 0 : rows_.pieces[0].rows.back().out),
        pieces_ahead_(static_cast<size_t>(std::max<int64_t>(1, kPrefetchedRunBytes / rows_.run()))) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(2 * rows_.bytes());
    const size_t pieces = rows_.pieces.size();
    const int64_t block_step = (policy_.block / kPage + 1) * kPage;
    std::unique_ptr<std::byte[]> memory;
    std::byte* blocks = nullptr;
    if (policy_.staged) {
      memory = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>((threads + 1) * block_step));
      const auto address = reinterpret_cast<uintptr_t>(memory.get());
      blocks = memory.get() + (kBlockInPage - address) % kPage;
    }
    const auto places = std::make_unique_for_overwrite<InputRows[]>(static_cast<size_t>(threads) * pieces);
    const int64_t calls = calls_for(2 * rows_.bytes(), threads);
    parallel_for(calls, threads, [&](int64_t part, int worker) {
      const Job job{inputs, out, blocks == nullptr ? nullptr : blocks + worker * block_step,
                    places.get() + static_cast<size_t>(worker) * pieces};
      const int64_t begin = start_of(part, calls, out);
      const int64_t end = start_of(part + 1, calls, out);
      if (policy_.algorithm == JoinAlgorithm::kAppend) {
        append(job, begin, end);
      } else if (policy_.algorithm == JoinAlgorithm::kTile) {
        write_by_tiles(job, begin, end);
      } else {
        write(job, begin, end);
      }
      if (policy_.non_temporal) stream_fence();
    });
  }

 private:
  // The arguments of one thread.
  struct Job {
    const void* const* inputs;
    std::byte* out;
    std::byte* block;
    InputRows* places;
  };

  // Threads' parts begin with a line, or with an element in an output whose elements lie across lines.
  int64_t start_of(int64_t part, int64_t parts, const std::byte* out) const {
    if (part == 0 || part == parts) return part == 0 ? 0 : rows_.bytes();
    const int64_t lines = rows_.bytes() / kLine;
    const int64_t skew = to_next_line(out);
    return std::min(lines * part / parts * kLine + (skew % rows_.element_size == 0 ? skew : 0),
                    rows_.bytes());
  }

  // Appends the bytes [begin, end) of the rows run by run.
  void append(const Job& job, int64_t begin, int64_t end) const {
    RowWriters streams(job.out + begin);
    int64_t row = begin / rows_.size;
    int64_t from = begin % rows_.size;
    while (begin < end) {
      const int64_t count =
          from == 0 && policy_.interleaved_rows > 1 ? interleaved_rows(row, end - begin) : 1;
      if (count > 1) {
        append_rows(job, streams, row, count);
        begin += count * rows_.size;
      } else {
        const int64_t to = std::min(rows_.size, from + end - begin);
        append_row(job, streams.first(), row, from, to);
        begin += to - from;
      }
      row += count;
      from = 0;
    }
  }

  int64_t interleaved_rows(int64_t row, int64_t bytes) const {
    return std::min(
        {policy_.interleaved_rows, bytes / rows_.size, rows_.neighbours - row % rows_.neighbours});
  }

  void append_row(const Job& job, LineWriter& stream, int64_t row, int64_t from, int64_t to) const {
    for_each_run(job, row, from, to, [&](size_t i, int64_t first, int64_t last, const std::byte* in) {
      prefetch_run(job, row, i + pieces_ahead_);
      stream.append(in + first, last - first);
    });
  }

  void append_rows(const Job& job, RowWriters& streams, int64_t row, int64_t count) const {
    streams.begin(count, job.out + row * rows_.size, rows_.size);
    for_each_run(job, row, 0, rows_.size, [&](size_t i, int64_t, int64_t size, const std::byte* in) {
      const int64_t step = rows_.pieces[i].rows.back().in;
      const auto [ahead, ahead_step] = runs_after(job, row, i, count);
      for (int64_t r = 0; r < count; ++r) {
        streams.append(r, in + r * step, size, ahead != nullptr ? ahead + r * ahead_step : nullptr);
      }
    });
    streams.end(count);
  }

  // Writes the bytes [begin, end) of the rows block by block (loop blocking), so that a line of the output is
  // in the cache while several inputs fill it, and a line of an input while several rows take from it.
  void write(const Job& job, int64_t begin, int64_t end) const {
    const bool whole_rows = policy_.block % rows_.size == 0;
    for (int64_t next; begin < end; begin = next) {
      const int64_t from = whole_rows ? begin % rows_.size : 0;
      next = std::min(end, begin + (from > 0 ? rows_.size - from : policy_.block));
      if (policy_.staged) {
        assemble(job, {job.block, begin}, begin, next);
        stream_copy(job.out + begin, job.block, next - begin);
      } else {
        assemble(job, {nullptr, 0}, begin, next);
      }
    }
  }

  // Writes the bytes [begin, end) of the rows, those that are whole by tiles of some inputs and some rows.
  void write_by_tiles(const Job& job, int64_t begin, int64_t end) const {
    RowWriters streams(job.out + begin);
    for (int64_t next; begin < end; begin = next) {
      const int64_t row = begin / rows_.size;
      const int64_t neighbours = rows_.neighbours - row % rows_.neighbours;
      const int64_t rows = std::min({(end - begin) / rows_.size, neighbours, RowWriters::kMost});
      if (begin % rows_.size == 0 && rows > 1) {
        write_tiles(job, streams, row, rows);
        next = begin + rows * rows_.size;
      } else {
        next = std::min({end, (row + 1) * rows_.size, begin + policy_.block});
        assemble(job, {job.block, begin}, begin, next);
        streams.first().append(job.block, next - begin);
      }
    }
  }

  void write_tiles(const Job& job, RowWriters& streams, int64_t row, int64_t count) const {
    const std::span<const InputRows> in = places_of(job, row, count);
    Prefetcher prefetcher(in, count * kTileWidth);
    streams.begin(count, job.out + row * rows_.size, rows_.size);
    for (size_t first = 0, last; first < in.size(); first = last) {
      const int64_t begin = rows_.pieces[first].begin;
      for (last = first + 1; last < in.size() && rows_.pieces[last].begin - begin < kTileWidth;) ++last;
      const int64_t width = rows_.pieces[last - 1].end - begin;
      for (int64_t r = 0; r < count; r += kTileRows) {
        const int64_t rows = std::min(kTileRows, count - r);
        for (size_t i = first; i < last; ++i) {
          const RowPiece& piece = rows_.pieces[i];
          const int64_t in_step = piece.rows.back().in;
          prefetcher.advance(rows * piece.size());
          piece.copy_runs({rows, piece.size(), in_step, pitch_}, in[i].begin + r * in_step,
                          job.block + (piece.begin - begin));
        }
        for (int64_t i = 0; i < rows; ++i) {
          streams.append(r + i, job.block + i * pitch_, width, nullptr);
        }
      }
    }
    streams.end(count);
  }

  // The target of a copy: a block that holds the bytes of rows from `first` on, or else the output itself.
  struct Target {
    std::byte* block;
    int64_t first;
  };

  void assemble(const Job& job, const Target& target, int64_t begin, int64_t end) const {
    while (begin < end) {
      const int64_t row = begin / rows_.size;
      const int64_t from = begin % rows_.size;
      const int64_t whole = from > 0 ? 0 : (end - begin) / rows_.size;
      if (whole > 1) {
        const int64_t count = std::min(whole, rows_.neighbours - row % rows_.neighbours);
        copy_rows(job, target, row, count);
        begin += count * rows_.size;
      } else {
        const int64_t to = std::min(rows_.size, from + end - begin);
        copy_part(job, target, row, from, to);
        begin += to - from;
      }
    }
  }

  std::byte* place_in(const Job& job, const Target& target, int64_t row, int64_t offset) const {
    if (target.block != nullptr) return target.block + (row * rows_.size + offset - target.first);
    const int64_t start = rows_.contiguous ? row * rows_.size : offsets_at(rows_.pieces[0].rows, row).out;
    return job.out + (start + offset);
  }

  // Copies neighbouring rows with vectors as far as these reach, and the rest one input after the other.
  void copy_rows(const Job& job, const Target& target, int64_t row, int64_t count) const {
    std::byte* const to = place_in(job, target, row, 0);
    const int64_t out_step = target.block != nullptr ? rows_.size : out_step_;
    const std::span<const InputRows> in = places_of(job, row, count);
    const int64_t readable = rows_.neighbours - row % rows_.neighbours;
    int64_t rows = 0;
    if (policy_.algorithm == JoinAlgorithm::kShuffle) {
      rows = policy_.interleave.copy(in, count, readable, to);
    } else if (policy_.lane > 0) {
      rows = transpose_lanes(in, count, to, out_step);
    }
    if (rows == count) return;
    Prefetcher prefetcher(rows == 0 && !policy_.runs_are_long ? in : in.first(0));
    for (size_t i = 0; i < in.size(); ++i) {
      const RowPiece& piece = rows_.pieces[i];
      const int64_t in_step = piece.rows.empty() ? 0 : piece.rows.back().in;
      if (policy_.staged && in.size() <= kFewInputs) prefetch_next_block(in[i]);
      prefetcher.advance(in[i].bytes);
      copy_runs(piece, {count - rows, piece.size(), in_step, out_step}, readable - rows,
                in[i].begin + rows * in_step, to + (piece.begin + rows * out_step));
    }
  }

  // Prefetches what the next block takes of an input.
  ANYDML_INLINE static void prefetch_next_block(const InputRows& in) {
    for (int64_t i = in.bytes; i < 2 * in.bytes; i += kLine) prefetch_line(in.begin + i);
  }

  std::span<const InputRows> places_of(const Job& job, int64_t row, int64_t count) const {
    for (size_t i = 0; i < rows_.pieces.size(); ++i) {
      const RowPiece& piece = rows_.pieces[i];
      const bool follow = !piece.rows.empty() && piece.rows.back().in == piece.size();
      job.places[i] = {place_of_run(job, i, row), piece.packed && follow ? count * piece.size() : 0};
    }
    return {job.places, rows_.pieces.size()};
  }

  const std::byte* place_of_run(const Job& job, size_t piece, int64_t row) const {
    return static_cast<const std::byte*>(job.inputs[piece]) + offsets_at(rows_.pieces[piece].rows, row).in;
  }

  int64_t transpose_lanes(std::span<const InputRows> in, int64_t count, std::byte* to,
                          int64_t out_step) const {
#if defined(__GNUC__)
    if (policy_.lane == 1) return transpose_inputs<uint8_t>(in, count, to, out_step);
    if (policy_.lane == 2) return transpose_inputs<uint16_t>(in, count, to, out_step);
    if (policy_.lane == 4) return transpose_inputs<uint32_t>(in, count, to, out_step);
#endif
    return 0;
  }

  // Copies runs of one size. The input has bytes of `readable` rows from `in` on. Where the next inputs
  // overwrite them, a run is copied with some bytes after it, so that it takes few whole vectors.
  void copy_runs(const RowPiece& piece, Runs runs, int64_t readable, const std::byte* in,
                 std::byte* out) const {
    if (!piece.packed) {
      for (int64_t i = 0; i < runs.count; ++i) {
        copy_run(piece, 0, runs.size, in + i * runs.in_step, out + i * runs.out_step);
      }
      return;
    }
    if (piece.wide > 0 && runs.in_step == runs.size) {
      const int64_t last = readable * runs.size - piece.wide;
      const int64_t count = last < 0 ? 0 : std::min(runs.count, last / runs.size + 1);
      piece.copy_wide({count, piece.wide, runs.size, runs.out_step}, in, out);
      in += count * runs.in_step;
      out += count * runs.out_step;
      runs.count -= count;
    }
    piece.copy_runs(runs, in, out);
  }

  // Copies the bytes [from, to) of a row.
  void copy_part(const Job& job, const Target& target, int64_t row, int64_t from, int64_t to) const {
    std::byte* out = place_in(job, target, row, from);
    for_each_run(job, row, from, to, [&](size_t i, int64_t first, int64_t last, const std::byte* in) {
      prefetch_run(job, row, i + pieces_ahead_);
      copy_run(rows_.pieces[i], first, last, in, out);
      out += last - first;
    });
  }

  // Calls body(i, first, last, in) for the bytes [from, to) of a row, which are [first, last) of the run of
  // input i at `in`.
  template <class Body>
  void for_each_run(const Job& job, int64_t row, int64_t from, int64_t to, const Body& body) const {
    const auto start = std::ranges::upper_bound(rows_.pieces, from, {}, &RowPiece::end);
    for (auto i = static_cast<size_t>(start - rows_.pieces.begin()); from < to; ++i) {
      const RowPiece& piece = rows_.pieces[i];
      const int64_t end = std::min(to, piece.end);
      body(i, from - piece.begin, end - piece.begin, place_of_run(job, i, row));
      from = end;
    }
  }

  // The first of the runs that are copied after those of input i in `count` rows, and the step between them.
  std::pair<const std::byte*, int64_t> runs_after(const Job& job, int64_t row, size_t i,
                                                  int64_t count) const {
    if (++i == rows_.pieces.size()) {
      i = 0;
      row += count;
    }
    if (row + count > rows_.count) return {nullptr, 0};
    return {place_of_run(job, i, row), rows_.pieces[i].rows.back().in};
  }

  // Prefetches the first lines of a run, maybe of the next row. The hardware prefetches the rest, and all
  // runs of a few inputs.
  ANYDML_INLINE void prefetch_run(const Job& job, int64_t row, size_t piece) const {
    const size_t pieces = rows_.pieces.size();
    if (pieces <= kFewInputs) return;
    if (piece >= pieces) {
      piece -= pieces;
      if (++row == rows_.count || piece >= pieces) return;
    }
    const std::byte* const begin = place_of_run(job, piece, row);
    const int64_t bytes = std::min(rows_.pieces[piece].size(), kPrefetchedRunBytes);
    for (int64_t i = 0; i < bytes; i += kLine) prefetch_line(begin + i);
  }

  // Copies the bytes [first, last) of a run that begins at `in`.
  void copy_run(const RowPiece& piece, int64_t first, int64_t last, const std::byte* in,
                std::byte* out) const {
    if (!piece.packed) {
      const int64_t unit = rows_.element_size;
      copy_nest(piece.nest, piece.elements, copy_elements_, first / unit, last / unit, in, out);
    } else if (policy_.runs_are_long) {
      std::memcpy(out, in + first, static_cast<size_t>(last - first));
    } else {
      copy_short(out, in + first, last - first);
    }
  }

  Rows rows_;
  JoinPolicy policy_;
  CopyElements copy_elements_;
  int64_t pitch_;        // from a row of a tile to the next
  int64_t out_step_;     // from a row to its neighbour, in the output
  size_t pieces_ahead_;  // pieces between the run that is copied and the one that is prefetched
};

}  // namespace
ANYDML_ISA_END
