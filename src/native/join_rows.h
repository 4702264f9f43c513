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
#include <string>
#include <tuple>
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
  bool runs_are_long() const { return size >= kLongRun * static_cast<int64_t>(pieces.size()); }
  bool packed() const {
    return std::ranges::all_of(pieces, [](const RowPiece& piece) { return piece.packed; });
  }
};

class RowJoin final : public Plan {
 public:
  RowJoin(Rows rows, std::string description)
      : Plan(std::move(description)),
        rows_(std::move(rows)),
        copy_elements_(choose_copy_of_elements(rows_.element_size)),
        block_(choose_block(static_cast<int64_t>(rows_.pieces.size()))),
        long_(rows_.runs_are_long()),
        streams_(rows_.contiguous && rows_.bytes() >= kStreamFrom),
        gathers_(streams_ && !(long_ && rows_.packed())),
        out_step_(rows_.pieces[0].rows.empty() ? 0 : rows_.pieces[0].rows.back().out) {
    choose_vectors();
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(2 * rows_.bytes());
    std::unique_ptr<std::byte[]> blocks;
    if (gathers_) blocks = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(threads * block_));
    parallel_for(threads, threads, [&](int64_t part) {
      const int64_t begin = start_of(part, threads, out);
      const int64_t end = start_of(part + 1, threads, out);
      if (gathers_) {
        gather(inputs, out, begin, end, blocks.get() + part * block_);
      } else {
        write(inputs, out, begin, end);
      }
      if (streams_) stream_fence();
    });
  }

 private:
  // Of the output: what is being put together stays in the first cache, with what it is made of. With many
  // inputs, in the second: from each it takes several lines together, or memory would be read line by line.
  static constexpr int64_t kSmallestBlock = 16 << 10;
  static constexpr int64_t kLargestBlock = 256 << 10;
  static constexpr int64_t kBytesOfAnInput = 512;

  static int64_t choose_block(int64_t inputs) {
    return std::clamp(inputs * kBytesOfAnInput, kSmallestBlock, kLargestBlock) / kLine * kLine;
  }

  // Where bytes of rows go: into a block that holds those from `first` on, or, without one, to their place.
  struct Target {
    std::byte* out;
    std::byte* block;
    int64_t first;
  };

  // Parts begin with a line, or, in an output whose elements lie across lines, with an element.
  int64_t start_of(int64_t part, int64_t parts, const std::byte* out) const {
    if (part == 0 || part == parts) return part == 0 ? 0 : rows_.bytes();
    const int64_t lines = rows_.bytes() / kLine;
    const int64_t skew = to_next_line(out);
    return std::min(lines * part / parts * kLine + (skew % rows_.element_size == 0 ? skew : 0),
                    rows_.bytes());
  }

  // Puts the output together block by block, and streams each.
  void gather(const void* const* inputs, std::byte* out, int64_t begin, int64_t end, std::byte* block) const {
    for (int64_t next; begin < end; begin = next) {
      next = std::min(end, begin + block_ - (kLine - to_next_line(out + begin)) % kLine);
      if (next % rows_.element_size != 0) next = std::min(end, begin + block_);
      assemble(inputs, {out, block, begin}, begin, next);
      stream_copy(out + begin, block, next - begin);
    }
  }

  // Writes the output in its place; short runs block by block, so that its lines are in the cache while
  // several inputs fill them.
  void write(const void* const* inputs, std::byte* out, int64_t begin, int64_t end) const {
    for (int64_t next; begin < end; begin = next) {
      next = long_ ? end : std::min(end, begin + block_);
      assemble(inputs, {out, nullptr, 0}, begin, next);
    }
  }

  // The bytes [begin, end) of the rows.
  void assemble(const void* const* inputs, const Target& target, int64_t begin, int64_t end) const {
    while (begin < end) {
      const int64_t row = begin / rows_.size;
      const int64_t from = begin % rows_.size;
      const int64_t whole = from > 0 ? 0 : (end - begin) / rows_.size;
      if (whole > 1 && !long_) {
        const int64_t count = std::min(whole, rows_.neighbours - row % rows_.neighbours);
        copy_rows(inputs, target, row, count);
        begin += count * rows_.size;
      } else {
        const int64_t to = std::min(rows_.size, from + end - begin);
        copy_part(inputs, target, row, from, to);
        begin += to - from;
      }
    }
  }

  std::byte* place_in(const Target& target, int64_t row, int64_t offset) const {
    if (target.block != nullptr) return target.block + (row * rows_.size + offset - target.first);
    const int64_t start = rows_.contiguous ? row * rows_.size : place_of(rows_.pieces[0].rows, row).out;
    return target.out + (start + offset);
  }

  // Neighbouring rows, with vectors as far as these reach, the rest one input after the other.
  void copy_rows(const void* const* inputs, const Target& target, int64_t row, int64_t count) const {
    std::byte* const to = place_in(target, row, 0);
    const int64_t out_step = target.block != nullptr ? rows_.size : out_step_;
    std::vector<const std::byte*> from;
    int64_t rows = 0;
    int64_t pieces = 0;
    if (interleave_.pays() && out_step == rows_.size) {
      from = places_of(inputs, row);
      rows = interleave_.copy(from, count, rows_.neighbours - row % rows_.neighbours, to);
      pieces = static_cast<int64_t>(rows_.pieces.size());
    } else if (lane_ > 0) {
      from = places_of(inputs, row);
      std::tie(rows, pieces) = transpose_lanes(from, count, to, out_step);
    }
    for (int64_t i = 0; i < static_cast<int64_t>(rows_.pieces.size()); ++i) {
      const RowPiece& piece = rows_.pieces[static_cast<size_t>(i)];
      const auto* in = static_cast<const std::byte*>(inputs[i]) + place_of(piece.rows, row).in;
      const int64_t done = i < pieces ? rows : 0;
      if (done == count) continue;
      const int64_t in_step = piece.rows.empty() ? 0 : piece.rows.back().in;
      copy_runs(piece, {count - done, piece.end - piece.begin, in_step, out_step}, in + done * in_step,
                to + (piece.begin + done * out_step));
    }
  }

  std::vector<const std::byte*> places_of(const void* const* inputs, int64_t row) const {
    std::vector<const std::byte*> places;
    places.reserve(rows_.pieces.size());
    for (const RowPiece& piece : rows_.pieces) {
      places.push_back(static_cast<const std::byte*>(*inputs++) + place_of(piece.rows, row).in);
    }
    return places;
  }

  std::pair<int64_t, int64_t> transpose_lanes(const std::vector<const std::byte*>& from, int64_t count,
                                              std::byte* to, int64_t out_step) const {
#if defined(__GNUC__)
    if (lane_ == 1) return transpose<uint8_t>(from, count, to, out_step);
    if (lane_ == 2) return transpose<uint16_t>(from, count, to, out_step);
    if (lane_ == 4) return transpose<uint32_t>(from, count, to, out_step);
#endif
    return {0, 0};
  }

  void copy_runs(const RowPiece& piece, const Runs& runs, const std::byte* in, std::byte* out) const {
    if (piece.packed) return piece.copy_runs(runs, in, out);
    for (int64_t i = 0; i < runs.count; ++i) {
      copy_run(piece, 0, runs.size, in + i * runs.in_step, out + i * runs.out_step);
    }
  }

  // Whether every row follows the one before in all inputs.
  bool inputs_follow() const {
    return rows_.packed() && std::ranges::all_of(rows_.pieces, [](const RowPiece& piece) {
             return !piece.rows.empty() && piece.rows.back().in == piece.end - piece.begin;
           });
  }

  void choose_vectors() {
    if (!inputs_follow()) return;
    std::vector<int64_t> sizes;
    for (const RowPiece& piece : rows_.pieces) sizes.push_back(piece.end - piece.begin);
    const int64_t size = sizes.front();
    const bool equal = std::ranges::all_of(sizes, [size](int64_t each) { return each == size; });
    const bool lanes = size == 1 || size == 2 || size == 4;
    if (equal && lanes && static_cast<int64_t>(sizes.size()) * size >= kVector) {
      lane_ = size;
    } else {
      interleave_ = Interleave(std::move(sizes));
    }
  }

  // The bytes [from, to) of a row.
  void copy_part(const void* const* inputs, const Target& target, int64_t row, int64_t from,
                 int64_t to) const {
    std::byte* out = place_in(target, row, from);
    auto piece = std::ranges::upper_bound(rows_.pieces, from, {}, &RowPiece::end);
    for (; from < to; ++piece) {
      const auto* in = static_cast<const std::byte*>(inputs[piece - rows_.pieces.begin()]);
      const int64_t end = std::min(to, piece->end);
      copy_run(*piece, from - piece->begin, end - piece->begin, in + place_of(piece->rows, row).in, out);
      out += end - from;
      from = end;
    }
  }

  // The bytes [first, last) of a run that begins at `in`.
  void copy_run(const RowPiece& piece, int64_t first, int64_t last, const std::byte* in,
                std::byte* out) const {
    if (!piece.packed) {
      const int64_t unit = rows_.element_size;
      copy_nest(piece.nest, piece.elements, copy_elements_, first / unit, last / unit, in, out);
    } else if (streams_ && !gathers_) {
      stream_copy(out, in + first, last - first);
    } else if (long_) {
      std::memcpy(out, in + first, static_cast<size_t>(last - first));
    } else {
      copy_short(out, in + first, last - first);
    }
  }

  Rows rows_;
  CopyElements copy_elements_;
  int64_t block_;
  bool long_;
  bool streams_;
  bool gathers_;
  int64_t out_step_;       // from a row to its neighbour, in the output
  Interleave interleave_;  // for few inputs with very short runs
  int64_t lane_ = 0;       // for many: the size of their runs
};

}  // namespace
ANYDML_ISA_END
