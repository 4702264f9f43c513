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

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "join/copy.h"
#include "join/interleave.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "stores/nontemporal.h"
#include "stores/row_streams.h"

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
struct JoinPolicy {
  explicit JoinPolicy(const Rows& rows) {
    const auto inputs = static_cast<int64_t>(rows.pieces.size());
    const bool packed = rows.packed();
    is_long = rows.runs_are_long();
    streams = rows.contiguous && rows.bytes() >= kStreamFrom;
    appends = streams && packed &&
              rows.run() >= (inputs > kHardwarePrefetchStreams ? kWorthAppending : kWorthForeseen);
    gathers = streams && !appends;
    if (appends && inputs >= kHardwarePrefetchStreams && rows.run() >= kWorthRowsAbreast) {
      abreast = std::clamp<int64_t>(kBytesAbreast / rows.run(), 1, kMostRowsAbreast);
    }
    choose_vectors(rows);
    tiled = gathers && packed && lane == 0 && inputs > kHardwarePrefetchStreams &&
            rows.longest() <= kTileWidth && rows.run() >= kWorthTiling && rows.size >= kWorthTilingRows;
    block = tiled ? kTileRows * pitch(rows) : block_of(rows);
    words = lane > 0                         ? ", transposed in squares"
            : interleave.pays()              ? ", interleaved by shuffles"
            : tiled                          ? ", tile by tile"
            : appends || (is_long && packed) ? ", long runs, each copied on its own"
                                             : ", block by block";
  }

  bool is_long;         // every run is worth a copy of its own
  bool streams;         // the output goes around the caches
  bool appends;         // run by run,
  int64_t abreast = 1;  // of so many rows at a time, as an input's runs in these are read without a break
  bool gathers;         // first into a block of the thread's own, and from there to the output
  bool tiled;           // rows of some inputs at a time
  int64_t block;        // in bytes: some whole rows, or a part of one
  Interleave interleave;
  int64_t lane = 0;  // with many inputs whose runs are of 1, 2 or 4 bytes: their size
  const char* words;

  // A tile stays in the nearest cache.
  static constexpr int64_t kTileRows = 16;
  static constexpr int64_t kTileWidth = 1 << 10;

  // From a tile's row to the next, whose last run begins within the width. An odd number of lines, for an
  // even one leaves rows fewer places there.
  static int64_t pitch(const Rows& rows) { return (((kTileWidth + rows.longest()) / kLine + 1) | 1) * kLine; }

 private:
  // Shorter runs cost less in blocks, and leave no lines of the inputs half read. Of so many inputs a
  // processor foresees what is read next, run by run.
  static constexpr int64_t kWorthAppending = 256;
  static constexpr int64_t kWorthForeseen = 192;
  static constexpr int64_t kHardwarePrefetchStreams = 16;
  // Runs, and rows, from which on tiles take less time than blocks.
  static constexpr int64_t kWorthTiling = 8;
  static constexpr int64_t kWorthTilingRows = 4 << 10;
  // Runs from which on a stream for each row pays, and what an input has for all of them.
  static constexpr int64_t kWorthRowsAbreast = 768;
  static constexpr int64_t kBytesAbreast = 16 << 10;
  static constexpr int64_t kMostRowsAbreast = 16;

  // Of the output: what is being put together stays in the first cache, with what it is made of. With many
  // inputs, in the second: from each it takes many lines together, as memory is read at its speed only where
  // it is foreseen. Where nothing is put together first, as much as that holds, or of long runs, all of it:
  // the longer an input's turn, the better it is foreseen.
  static constexpr int64_t kSmallestBlock = 4 << 10;
  static constexpr int64_t kLargestBlock = 256 << 10;
  static constexpr int64_t kBlockOfLongRuns = 1 << 20;
  static constexpr int64_t kBytesOfAnInput = 2048;
  static constexpr int64_t kPeriods = 32;  // that make up for the start of each shuffle

  int64_t block_of(const Rows& rows) const {
    const auto inputs = static_cast<int64_t>(rows.pieces.size());
    const int64_t pays = std::max(inputs * kBytesOfAnInput, kPeriods * interleave.rows() * rows.size);
    const int64_t wanted = gathers   ? std::clamp(pays, kSmallestBlock, kLargestBlock)
                           : is_long ? kBlockOfLongRuns
                                     : kLargestBlock;
    int64_t at_once = wanted / rows.size;
    const int64_t vector = interleave.vector();
    if (at_once > vector) at_once = at_once / vector * vector;
    return at_once > 0 ? at_once * rows.size : gathers ? kSmallestBlock : wanted;
  }

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
    const bool lanes = equal && (size == 1 || size == 2 || size == 4) && rows.size > kVector / 2;
    // Of a square's width or more, rows are transposed in less time than they are shuffled.
    if (!lanes || rows.size <= interleave.vector() / 2) interleave = Interleave(std::move(sizes));
    if (lanes && !interleave.pays()) lane = size;
  }
};

class RowJoin final : public Plan {
 public:
  RowJoin(Rows rows, JoinPolicy policy, const std::string& description)
      : Plan(description + policy.words),
        rows_(std::move(rows)),
        policy_(std::move(policy)),
        copy_elements_(choose_copy_of_elements(rows_.element_size)),
        pitch_(JoinPolicy::pitch(rows_)),
        out_step_(rows_.pieces[0].rows.empty() ? 0 : rows_.pieces[0].rows.back().out),
        pieces_ahead_(static_cast<size_t>(std::max<int64_t>(1, kBytesAhead / rows_.run()))) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(2 * rows_.bytes());
    const size_t pieces = rows_.pieces.size();
    const int64_t block_step = (policy_.block / kPage + 1) * kPage;
    std::unique_ptr<std::byte[]> memory;
    std::byte* blocks = nullptr;
    if (policy_.gathers) {
      memory = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>((threads + 1) * block_step));
      const auto address = reinterpret_cast<uintptr_t>(memory.get());
      blocks = memory.get() + (kInPage - address) % kPage;
    }
    const auto places = std::make_unique_for_overwrite<InputRows[]>(static_cast<size_t>(threads) * pieces);
    parallel_for(threads, threads, [&](int64_t part) {
      const Job job{inputs, out, blocks == nullptr ? nullptr : blocks + part * block_step,
                    places.get() + static_cast<size_t>(part) * pieces};
      const int64_t begin = start_of(part, threads, out);
      const int64_t end = start_of(part + 1, threads, out);
      if (policy_.appends) {
        append(job, begin, end);
      } else if (policy_.tiled) {
        write_by_tiles(job, begin, end);
      } else {
        write(job, begin, end);
      }
      if (policy_.streams) stream_fence();
    });
  }

 private:
  // Where in a page a block begins: one that begins anywhere, and so mostly lies across pages and its vectors
  // across lines, takes up to twice the time. With neither the page nor the lines where large arrays begin.
  static constexpr int64_t kPage = 4096;
  static constexpr uintptr_t kInPage = 2 * kLine;
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
    RowWriters streams(job.out + begin);
    int64_t row = begin / rows_.size;
    int64_t from = begin % rows_.size;
    while (begin < end) {
      const int64_t count = from == 0 && policy_.abreast > 1 ? rows_abreast(row, end - begin) : 1;
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

  int64_t rows_abreast(int64_t row, int64_t bytes) const {
    return std::min({policy_.abreast, bytes / rows_.size, rows_.neighbours - row % rows_.neighbours});
  }

  void append_row(const Job& job, LineWriter& stream, int64_t row, int64_t from, int64_t to) const {
    for_each_run(job, row, from, to, [&](size_t i, int64_t first, int64_t last, const std::byte* in) {
      ask_for(job, row, i + pieces_ahead_);
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

  // The bytes [begin, end) of the rows. Short runs block by block, so that a line of the output is in the
  // cache while several inputs fill it, and lines of the inputs while several rows take from them.
  void write(const Job& job, int64_t begin, int64_t end) const {
    const bool whole_rows = policy_.block % rows_.size == 0;
    for (int64_t next; begin < end; begin = next) {
      const int64_t from = whole_rows ? begin % rows_.size : 0;
      next = std::min(end, begin + (from > 0 ? rows_.size - from : policy_.block));
      if (policy_.gathers) {
        assemble(job, {job.block, begin}, begin, next);
        stream_copy(job.out + begin, job.block, next - begin);
      } else {
        assemble(job, {nullptr, 0}, begin, next);
      }
    }
  }

  // The bytes [begin, end) of the rows, with tiles of some inputs by some rows where there are whole ones.
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
    Prefetcher prefetcher(in, count * JoinPolicy::kTileWidth);
    streams.begin(count, job.out + row * rows_.size, rows_.size);
    for (size_t first = 0, last; first < in.size(); first = last) {
      const int64_t begin = rows_.pieces[first].begin;
      for (last = first + 1; last < in.size() && rows_.pieces[last].begin - begin < JoinPolicy::kTileWidth;)
        ++last;
      const int64_t width = rows_.pieces[last - 1].end - begin;
      for (int64_t r = 0; r < count; r += JoinPolicy::kTileRows) {
        const int64_t rows = std::min(JoinPolicy::kTileRows, count - r);
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
    if (policy_.interleave.pays()) {
      rows = policy_.interleave.copy(in, count, readable, to);
    } else if (policy_.lane > 0) {
      rows = transpose_lanes(in, count, to, out_step);
    }
    if (rows == count) return;
    Prefetcher prefetcher(rows == 0 && !policy_.is_long ? in : in.first(0));
    for (size_t i = 0; i < in.size(); ++i) {
      const RowPiece& piece = rows_.pieces[i];
      const int64_t in_step = piece.rows.empty() ? 0 : piece.rows.back().in;
      if (policy_.gathers && in.size() <= kFewInputs) ask_for_more(in[i]);
      prefetcher.advance(in[i].bytes);
      copy_runs(piece, {count - rows, piece.size(), in_step, out_step}, readable - rows,
                in[i].begin + rows * in_step, to + (piece.begin + rows * out_step));
    }
  }

  // Asks memory for what the next block takes of an input.
  static void ask_for_more(const InputRows& in) {
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
    return static_cast<const std::byte*>(job.inputs[piece]) + place_of(rows_.pieces[piece].rows, row).in;
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
    for_each_run(job, row, from, to, [&](size_t i, int64_t first, int64_t last, const std::byte* in) {
      ask_for(job, row, i + pieces_ahead_);
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

  // Where the runs begin that are copied after those of input i in some rows, and how far apart these are.
  std::pair<const std::byte*, int64_t> runs_after(const Job& job, int64_t row, size_t i,
                                                  int64_t count) const {
    if (++i == rows_.pieces.size()) {
      i = 0;
      row += count;
    }
    if (row + count > rows_.count) return {nullptr, 0};
    return {place_of_run(job, i, row), rows_.pieces[i].rows.back().in};
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
    } else if (policy_.is_long) {
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
  size_t pieces_ahead_;  // of the one whose run is copied
};

}  // namespace
ANYDML_ISA_END
