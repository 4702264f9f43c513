// JOIN into an output whose rows have no gaps.
//
// A row is what lies between one step of the dimensions before the axis and the next: a run of each input,
// one behind the other. The bytes of all rows are numbered as if rows followed each other, and cut into equal
// parts, one for each thread, wherever that is in a row or a run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "isa.h"
#include "join_copy.h"
#include "join_interleave.h"
#include "layout.h"
#include "parallel.h"
#include "plan.h"
#include "stream.h"

ANYDML_ISA_BEGIN
namespace {

// An input's run [begin, end) of every row, in bytes.
struct RowPiece {
  int64_t begin;
  int64_t end;
  std::vector<Loop> rows;  // the dimensions before the axis
  bool packed;             // whether the run has no gaps in the input either
  std::vector<Loop> nest;  // where it has: its elements, as loops around a loop
  Loop elements;
  CopyRuns copy_runs;
  int64_t wide = 0;  // a size that takes fewer instructions, and still ends in the row; or 0
  CopyRuns copy_wide = nullptr;

  int64_t size() const { return end - begin; }
};

struct Rows {
  int64_t count;
  int64_t size;        // of a row, in bytes
  int64_t neighbours;  // so many rows are one step each from the one before, in every tensor
  bool contiguous;     // whether they all follow each other in the output without a gap
  int64_t element_size;
  std::vector<RowPiece> pieces;

  // From here on a run is worth a copy of its own; shorter ones go into a block together.
  static constexpr int64_t kLongRun = 2048;

  int64_t bytes() const { return count * size; }
  int64_t run() const { return size / static_cast<int64_t>(pieces.size()); }  // the average
  bool runs_are_long() const { return run() >= kLongRun; }
  int64_t longest() const { return std::ranges::max_element(pieces, {}, &RowPiece::size)->size(); }
  bool packed() const {
    return std::ranges::all_of(pieces, [](const RowPiece& piece) { return piece.packed; });
  }
};

// How rows are put together, and why.
struct Approach {
  explicit Approach(const Rows& rows) {
    const auto inputs = static_cast<int64_t>(rows.pieces.size());
    const bool packed = rows.packed();
    is_long = rows.runs_are_long();
    streams = rows.contiguous && rows.bytes() >= kStreamFrom;
    appends = streams && packed && rows.run() >= (inputs > kForeseen ? kWorthAppending : kWorthForeseen);
    gathers = streams && !appends;
    choose_vectors(rows);
    const int64_t pays = std::max(inputs * kBytesOfAnInput, kPeriods * interleave.rows() * rows.size);
    const int64_t wanted = gathers ? std::clamp(pays, kSmallestBlock, kLargestBlock) : kLargestBlock;
    tiled = gathers && packed && rows.run() >= kWorthTiling && rows.longest() <= kTileWidth &&
            rows.size >= 4 * kTileWidth;
    if (tiled) {
      block = kTileRows * (kTileWidth + rows.longest());
      words = ", tile by tile";
      return;
    }
    int64_t at_once = wanted / rows.size;
    if (at_once > kVector) at_once = at_once / kVector * kVector;
    block = at_once > 0 ? at_once * rows.size : kSmallestBlock;
    words = lane > 0                         ? ", transposed in squares"
            : interleave.pays()              ? ", interleaved by shuffles"
            : appends || (is_long && packed) ? ", long runs, each copied on its own"
                                             : ", block by block";
  }

  bool is_long;   // every run is worth a copy of its own
  bool streams;   // the output goes around the caches
  bool appends;   // run by run
  bool gathers;   // first into a block of the thread's own, and from there to the output
  bool tiled;     // rows of some inputs at a time
  int64_t block;  // in bytes: some whole rows, or a part of one
  Interleave interleave;
  int64_t lane = 0;  // with many inputs whose runs are of 1, 2 or 4 bytes: their size
  const char* words;

  // Of a tile: from each of its inputs it takes so many rows together, and more inputs would be more pages.
  static constexpr int64_t kTileRows = 64;
  static constexpr int64_t kTileWidth = 1 << 10;

 private:
  // Shorter runs cost less in blocks, and leave no lines of the inputs half read. Of so many inputs a
  // processor foresees what is read next, run by run.
  static constexpr int64_t kWorthAppending = 256;
  static constexpr int64_t kWorthForeseen = 128;
  static constexpr int64_t kForeseen = 16;
  static constexpr int64_t kWorthTiling = 64;

  // Of the output: what is being put together stays in the first cache, with what it is made of. With many
  // inputs, in the second: from each it takes many lines together, as memory is read at its speed only where
  // it is foreseen. Where nothing is put together first, as much as that holds: the longer an input's turn,
  // the better it is foreseen.
  static constexpr int64_t kSmallestBlock = 4 << 10;
  static constexpr int64_t kLargestBlock = 256 << 10;
  static constexpr int64_t kBytesOfAnInput = 2048;
  static constexpr int64_t kPeriods = 32;  // that make up for the start of each shuffle

  void choose_vectors(const Rows& rows) {
    // Every row has to follow the one before in all inputs.
    const bool follow = rows.packed() && std::ranges::all_of(rows.pieces, [](const RowPiece& piece) {
                          return !piece.rows.empty() && piece.rows.back().in == piece.size();
                        });
    if (!follow || rows.pieces[0].rows.back().out != rows.size) return;
    std::vector<int64_t> sizes;
    for (const RowPiece& piece : rows.pieces) sizes.push_back(piece.size());
    const int64_t size = sizes.front();
    const bool equal = std::ranges::all_of(sizes, [size](int64_t each) { return each == size; });
    const bool lanes = size == 1 || size == 2 || size == 4;
    if (equal && lanes && static_cast<int64_t>(sizes.size()) * size > kVector / 2) {
      lane = size;
    } else {
      interleave = Interleave(std::move(sizes));
    }
  }
};

class RowJoin final : public Plan {
 public:
  RowJoin(Rows rows, Approach approach, const std::string& description)
      : Plan(description + approach.words),
        rows_(std::move(rows)),
        approach_(std::move(approach)),
        copy_elements_(choose_copy_of_elements(rows_.element_size)),
        out_step_(rows_.pieces[0].rows.empty() ? 0 : rows_.pieces[0].rows.back().out),
        pieces_ahead_(static_cast<size_t>(std::max<int64_t>(1, kBytesAhead / rows_.run()))) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(2 * rows_.bytes());
    const size_t pieces = rows_.pieces.size();
    std::unique_ptr<std::byte[]> blocks;
    if (approach_.gathers) {
      blocks = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(threads * approach_.block));
    }
    std::unique_ptr<InputRows[]> places;
    if (!approach_.is_long) {
      places = std::make_unique_for_overwrite<InputRows[]>(static_cast<size_t>(threads) * pieces);
    }
    parallel_for(threads, threads, [&](int64_t part) {
      const Job job{inputs, out, blocks.get() + part * approach_.block,
                    places.get() + static_cast<size_t>(part) * pieces};
      const int64_t begin = start_of(part, threads, out);
      const int64_t end = start_of(part + 1, threads, out);
      if (approach_.appends) {
        append(job, begin, end);
      } else if (approach_.tiled) {
        write_by_tiles(job, begin, end);
      } else {
        write(job, begin, end);
      }
      if (approach_.streams) stream_fence();
    });
  }

 private:
  static constexpr int64_t kBytesAhead = 2048;
  static constexpr size_t kFewInputs = 8;

  // What one thread works with.
  struct Job {
    const void* const* inputs;
    std::byte* out;
    std::byte* block;
    InputRows* places;
  };

  // Parts begin with a line, or, in an output whose elements lie across lines, with an element.
  int64_t start_of(int64_t part, int64_t parts, const std::byte* out) const {
    if (part == 0 || part == parts) return part == 0 ? 0 : rows_.bytes();
    const int64_t lines = rows_.bytes() / kLine;
    const int64_t skew = to_next_line(out);
    return std::min(lines * part / parts * kLine + (skew % rows_.element_size == 0 ? skew : 0),
                    rows_.bytes());
  }

  // The bytes [begin, end) of the rows, streamed run by run.
  void append(const Job& job, int64_t begin, int64_t end) const {
    LineStream stream(job.out + begin);
    int64_t from = begin % rows_.size;
    for (int64_t row = begin / rows_.size; begin < end; ++row, from = 0) {
      const int64_t to = std::min(rows_.size, from + end - begin);
      for_each_run(job, row, from, to,
                   [&](const RowPiece&, int64_t first, int64_t last, const std::byte* in) {
                     stream.append(in + first, last - first);
                   });
      begin += to - from;
    }
  }

  // The bytes [begin, end) of the rows. Short runs block by block, so that a line of the output is in the
  // cache while several inputs fill it, and lines of the inputs while several rows take from them.
  void write(const Job& job, int64_t begin, int64_t end) const {
    const bool whole_rows = approach_.block % rows_.size == 0;
    for (int64_t next; begin < end; begin = next) {
      const int64_t from = whole_rows ? begin % rows_.size : 0;
      next = std::min(end, begin + (from > 0 ? rows_.size - from : approach_.block));
      if (approach_.gathers) {
        assemble(job, {job.block, begin}, begin, next);
        stream_copy(job.out + begin, job.block, next - begin);
      } else {
        assemble(job, {nullptr, 0}, begin, next);
      }
    }
  }

  // The bytes [begin, end) of the rows, with tiles of some inputs by some rows where there are whole ones.
  void write_by_tiles(const Job& job, int64_t begin, int64_t end) const {
    for (int64_t next; begin < end; begin = next) {
      const int64_t row = begin / rows_.size;
      const int64_t rows = std::min((end - begin) / rows_.size, rows_.neighbours - row % rows_.neighbours);
      if (begin % rows_.size == 0 && rows > 1) {
        const int64_t count = std::min(rows, Approach::kTileRows);
        write_tiles(job, row, count);
        next = begin + count * rows_.size;
      } else {
        next = std::min(end, (row + 1) * rows_.size);
        write(job, begin, next);
      }
    }
  }

  void write_tiles(const Job& job, int64_t row, int64_t count) const {
    const std::span<const InputRows> in = places_of(job, row, count);
    Ahead ahead(in);
    for (size_t first = 0, last; first < in.size(); first = last) {
      const int64_t begin = rows_.pieces[first].begin;
      for (last = first + 1; last < in.size() && rows_.pieces[last].begin - begin < Approach::kTileWidth;)
        ++last;
      const int64_t width = rows_.pieces[last - 1].end - begin;
      for (size_t i = first; i < last; ++i) {
        const RowPiece& piece = rows_.pieces[i];
        ahead.turn_of(i);
        const int64_t in_step = piece.rows.back().in;
        piece.copy_runs({count, piece.size(), in_step, width}, in[i].begin,
                        job.block + (piece.begin - begin));
      }
      for (int64_t r = 0; r < count; ++r) {
        stream_copy(job.out + ((row + r) * rows_.size + begin), job.block + r * width, width);
      }
    }
  }

  // Where bytes of rows go: into a block that holds those from `first` on, or, without one, to their place.
  struct Target {
    std::byte* block;
    int64_t first;
  };

  void assemble(const Job& job, const Target& target, int64_t begin, int64_t end) const {
    while (begin < end) {
      const int64_t row = begin / rows_.size;
      const int64_t from = begin % rows_.size;
      const int64_t whole = from > 0 ? 0 : (end - begin) / rows_.size;
      if (whole > 1 && !approach_.is_long) {
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
    const int64_t start = rows_.contiguous ? row * rows_.size : place_of(rows_.pieces[0].rows, row).out;
    return job.out + (start + offset);
  }

  // Neighbouring rows, with vectors as far as these reach, the rest one input after the other.
  void copy_rows(const Job& job, const Target& target, int64_t row, int64_t count) const {
    std::byte* const to = place_in(job, target, row, 0);
    const int64_t out_step = target.block != nullptr ? rows_.size : out_step_;
    const std::span<const InputRows> in = places_of(job, row, count);
    const int64_t readable = rows_.neighbours - row % rows_.neighbours;
    int64_t rows = 0;
    if (approach_.interleave.pays()) {
      rows = approach_.interleave.copy(in, count, readable, to);
    } else if (approach_.lane > 0) {
      rows = transpose_lanes(in, count, to, out_step);
    }
    if (rows == count) return;
    Ahead ahead(rows == 0 ? in : in.first(0));
    for (size_t i = 0; i < in.size(); ++i) {
      const RowPiece& piece = rows_.pieces[i];
      ahead.turn_of(i);
      const int64_t in_step = piece.rows.empty() ? 0 : piece.rows.back().in;
      copy_runs(piece, {count - rows, piece.size(), in_step, out_step}, readable - rows,
                in[i].begin + rows * in_step, to + (piece.begin + rows * out_step));
    }
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
    return static_cast<const std::byte*>(job.inputs[piece]) + place_of(rows_.pieces[piece].rows, row).in;
  }

  int64_t transpose_lanes(std::span<const InputRows> in, int64_t count, std::byte* to,
                          int64_t out_step) const {
#if defined(__GNUC__)
    if (approach_.lane == 1) return transpose_inputs<uint8_t>(in, count, to, out_step);
    if (approach_.lane == 2) return transpose_inputs<uint16_t>(in, count, to, out_step);
    if (approach_.lane == 4) return transpose_inputs<uint32_t>(in, count, to, out_step);
#endif
    return 0;
  }

  // Runs of one size; of `readable` rows the input has bytes, from `in` on. Where the next inputs overwrite
  // it, each run is copied with some of what is behind it, as few whole vectors.
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

  // The bytes [from, to) of a row.
  void copy_part(const Job& job, const Target& target, int64_t row, int64_t from, int64_t to) const {
    std::byte* out = place_in(job, target, row, from);
    for_each_run(job, row, from, to,
                 [&](const RowPiece& piece, int64_t first, int64_t last, const std::byte* in) {
                   copy_run(piece, first, last, in, out);
                   out += last - first;
                 });
  }

  // Calls body(piece, first, last, in) for the bytes [from, to) of a row, which are [first, last) of runs at
  // `in`.
  template <class Body>
  void for_each_run(const Job& job, int64_t row, int64_t from, int64_t to, const Body& body) const {
    const auto start = std::ranges::upper_bound(rows_.pieces, from, {}, &RowPiece::end);
    for (auto i = static_cast<size_t>(start - rows_.pieces.begin()); from < to; ++i) {
      const RowPiece& piece = rows_.pieces[i];
      const int64_t end = std::min(to, piece.end);
      ask_for(job, row, i + pieces_ahead_);
      body(piece, from - piece.begin, end - piece.begin, place_of_run(job, i, row));
      from = end;
    }
  }

  // Asks memory for the first lines of a run, maybe of the next row; the rest is foreseen, as are the runs of
  // a few inputs.
  void ask_for(const Job& job, int64_t row, size_t piece) const {
    const size_t pieces = rows_.pieces.size();
    if (pieces <= kFewInputs) return;
    if (piece >= pieces) {
      piece -= pieces;
      if (++row == rows_.count || piece >= pieces) return;
    }
    const std::byte* const begin = place_of_run(job, piece, row);
    const int64_t bytes = std::min(rows_.pieces[piece].size(), kBytesAhead);
    for (int64_t i = 0; i < bytes; i += kLine) prefetch_line(begin + i);
  }

  // The bytes [first, last) of a run that begins at `in`.
  void copy_run(const RowPiece& piece, int64_t first, int64_t last, const std::byte* in,
                std::byte* out) const {
    if (!piece.packed) {
      const int64_t unit = rows_.element_size;
      copy_nest(piece.nest, piece.elements, copy_elements_, first / unit, last / unit, in, out);
    } else if (approach_.is_long) {
      std::memcpy(out, in + first, static_cast<size_t>(last - first));
    } else {
      copy_short(out, in + first, last - first);
    }
  }

  Rows rows_;
  Approach approach_;
  CopyElements copy_elements_;
  int64_t out_step_;     // from a row to its neighbour, in the output
  size_t pieces_ahead_;  // of the one whose run is copied
};

}  // namespace
ANYDML_ISA_END
