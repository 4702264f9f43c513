// A transposition by tiles: the input's lines run across the rows of the output, so that a tile has as many
// rows as a line or a few have elements, and is put together in the first cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "movement/copy.h"
#include "movement/policy.h"
#include "movement/rows.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "simd/transpose.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"
#include "stores/row_writers.h"

ANYDML_ISA_BEGIN
namespace {

using GatherTile = void (*)(Tile tile, int64_t rows, int64_t columns, std::byte* to, int64_t to_step,
                            int64_t ahead);

class TileCopy final : public Copy {
 public:
  TileCopy(MovementFacts facts, std::string name)
      : Copy(std::move(name), steps_of(facts.loops) * facts.unit), unit_(facts.unit) {
    const int64_t nearest = facts.nearest_loop();
    loops_ = std::move(facts.loops);
    columns_ = take_innermost(loops_);
    rows_ = take(loops_, nearest);
    const int64_t row = columns_.size * unit_;
    rows_follow_ = rows_.out == row;
    has_whole_rows_ = rows_follow_ && row <= kWholeRow;
    const int64_t lines = std::max<int64_t>(1, kLine / unit_);
    if (has_whole_rows_) {
      height_ = std::min(rows_.size, std::max(kTileBytes / row / lines * lines, int64_t{1}));
      width_ = strip_ = columns_.size;
    } else {
      height_ = std::min(rows_.size, kTileRows);
      width_ = std::clamp<int64_t>(kTileBytes / (height_ * unit_) / lines * lines, 1, columns_.size);
      strip_ = row <= 2 * kStrip ? columns_.size : kStrip / (width_ * unit_) * width_;
      strip_ = std::max(strip_, width_);
    }
    may_stream_ = rows_follow_ || row >= kPortion;
    loops_.push_back(blocks_of(rows_, height_));
    loops_.push_back(blocks_of(columns_, strip_));
    gather_ = choose_gather();
    copy_row_ = choose_copy_of_row(unit_, columns_.in, columns_.out);
  }

  int64_t parts() const override { return steps_of(loops_); }

  void run(int64_t first, int64_t last, const std::byte* in, std::byte* out,
           bool non_temporal) const override {
    if (!non_temporal || !may_stream_) {
      for_each_panel(first, last, [&](int64_t rows, int64_t columns, const LoopCursor& at) {
        copy_panel(rows, columns, in + at.in(), out + at.out());
      });
      return;
    }
    stream(first, last, in, out);
    stream_fence();
  }

 private:
  // From a row of the buffer to the next: equal places of rows lie in different sets of a cache.
  static constexpr int64_t kGap = kLine;
  struct Buffer {
    alignas(64) std::byte bytes[kTileBytes + kTileRows * kGap];
  };

  template <class Body>
  void for_each_panel(int64_t first, int64_t last, const Body& body) const {
    const size_t innermost = loops_.size() - 1;
    LoopCursor at(loops_, first);
    for (int64_t part = first; part < last; ++part, at.advance()) {
      body(std::min(height_, rows_.size - at.index(innermost - 1) * height_),
           std::min(strip_, columns_.size - at.index(innermost) * strip_), at);
    }
  }

  // Calls body(row, bytes, to) for each row of each tile of a panel, where `bytes` of it are at `from`.
  template <class Body>
  void for_each_row(int64_t rows, int64_t columns, const std::byte* in, std::byte* buffer,
                    const Body& body) const {
    const int64_t pitch = width_ * unit_ + kGap;
    for (int64_t c = 0; c < columns; c += width_) {
      const int64_t count = std::min(width_, columns - c);
      gather(rows, count, in + c * columns_.in, buffer, pitch);
      for (int64_t r = 0; r < rows; ++r) body(r, c * unit_, buffer + r * pitch, count * unit_);
    }
  }

  void copy_panel(int64_t rows, int64_t columns, const std::byte* in, std::byte* out) const {
    if (has_whole_rows_) return gather(rows, columns, in, out, rows_.out);
    Buffer buffer;
    for_each_row(rows, columns, in, buffer.bytes,
                 [&](int64_t r, int64_t begin, const std::byte* from, int64_t size) {
                   copy_short(out + r * rows_.out + begin, from, size);
                 });
  }

  void stream(int64_t first, int64_t last, const std::byte* in, std::byte* out) const {
    const auto buffer = std::make_unique_for_overwrite<Buffer>();
    if (has_whole_rows_) {
      std::optional<LineWriter> writer;
      const std::byte* next = nullptr;
      for_each_panel(first, last, [&](int64_t rows, int64_t columns, const LoopCursor& at) {
        std::byte* const to = out + at.out();
        gather(rows, columns, in + at.in(), buffer->bytes, rows_.out);
        if (to != next) writer.emplace(to);
        writer->append(buffer->bytes, rows * rows_.out);
        next = to + rows * rows_.out;
      });
    } else if (rows_follow_ && strip_ == columns_.size) {
      std::optional<RowWriters> writers;
      const std::byte* next = nullptr;
      for_each_panel(first, last, [&](int64_t rows, int64_t columns, const LoopCursor& at) {
        std::byte* const to = out + at.out();
        if (to != next) writers.emplace(to);
        writers->begin(rows, to, rows_.out);
        for_each_row(rows, columns, in + at.in(), buffer->bytes,
                     [&](int64_t r, int64_t, const std::byte* from, int64_t size) {
                       writers->append(r, from, size, nullptr);
                     });
        writers->end(rows);
        next = to + rows * rows_.out;
      });
    } else {
      for_each_panel(first, last, [&](int64_t rows, int64_t columns, const LoopCursor& at) {
        std::array<LineWriter, kTileRows> writers;
        for (int64_t r = 0; r < rows; ++r)
          writers[static_cast<size_t>(r)].start(out + at.out() + r * rows_.out);
        for_each_row(rows, columns, in + at.in(), buffer->bytes,
                     [&](int64_t r, int64_t, const std::byte* from, int64_t size) {
                       writers[static_cast<size_t>(r)].append(from, size);
                     });
      });
    }
  }

  void gather(int64_t rows, int64_t columns, const std::byte* in, std::byte* to, int64_t to_step) const {
    if (gather_ != nullptr) {
      return gather_({in, rows_.in, columns_.in}, rows, columns, to, to_step, columns * columns_.in);
    }
    for (int64_t r = 0; r < rows; ++r)
      copy_row_({columns, unit_, columns_.in, unit_}, in + r * rows_.in, to + r * to_step);
  }

  // Null where squares of elements are of no use.
  GatherTile choose_gather() const {
    if (rows_.in != unit_ && columns_.size >= kShortRow) return nullptr;
    switch (unit_) {
      case 1:
        return gather_tile<uint8_t>;
      case 2:
        return gather_tile<uint16_t>;
      case 4:
        return gather_tile<uint32_t>;
      case 8:
        return gather_tile<uint64_t>;
      default:
        return nullptr;
    }
  }

  int64_t unit_;
  std::vector<Loop> loops_;  // over panels
  Loop rows_;
  Loop columns_;
  bool rows_follow_;     // in the output
  bool has_whole_rows_;  // in a tile
  bool may_stream_;
  int64_t height_;  // rows of a panel,
  int64_t strip_;   // its columns,
  int64_t width_;   // and those of a tile
  GatherTile gather_;
  CopyRuns copy_row_;
};

}  // namespace
ANYDML_ISA_END
