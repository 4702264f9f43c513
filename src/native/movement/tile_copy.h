// A transposition by tiles: the input's lines run across the rows of the output, so that a tile has as many
// rows as a line or a few have elements, and is put together in the first cache.
#pragma once

#include <algorithm>
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
    if (has_whole_rows_) {
      height_ = std::clamp<int64_t>(kTileBytes / row, 1, rows_.size);
      width_ = strip_ = columns_.size;
    } else {
      height_ = std::clamp<int64_t>((unit_ <= 8 ? 1 : 2) * kTileRowBytes / unit_, 1,
                                    std::min(rows_.size, kMostTileRows));
      // Whole lines of the output, so that each tile begins at the same place of one.
      width_ = std::max<int64_t>(kTileBytes / (height_ * unit_) / kLine, 1) * kLine;
      width_ = std::min(width_, columns_.size);
      strip_ = row <= 2 * kStrip ? columns_.size : divided_up(kStrip, width_ * unit_) * width_;
      pitch_ = divided_up(width_ * unit_, kLine) * kLine + kLine + rows_.out % kLine;
    }
    may_stream_ = rows_follow_ || row >= kPortion;
    loops_.push_back(blocks_of(rows_, height_));
    loops_.push_back(blocks_of(columns_, strip_));
    if (has_whole_rows_ && rows_.in == unit_) interleave_ = choose_interleave(unit_, columns_.size);
    gather_ = choose_gather();
    copy_row_ = choose_copy_of_row(unit_, columns_.in, unit_);
    copy_column_ = choose_copy_of_row(unit_, rows_.in, 0);
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
  static constexpr int64_t kStoredPages = 64 << 10;  // 16 of 4 KiB
  static constexpr int64_t kCapacity = 2 * kTileBytes + kMostTileRows * 2 * kLine;
  struct Buffer {
    alignas(64) std::byte bytes[kCapacity];
    alignas(64) std::byte first_lines[kMostTileRows][kLine];
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

  void copy_panel(int64_t rows, int64_t columns, const std::byte* in, std::byte* out) const {
    if (has_whole_rows_) return gather(rows, columns, in, out, rows_.out, rows * rows_.in);
    if (!has_rows_apart(rows) || gathers_rows(rows, columns)) {
      for (int64_t c = 0; c < columns; c += width_) {
        const int64_t count = std::min(width_, columns - c);
        gather(rows, count, in + c * columns_.in, out + c * unit_, rows_.out, count * columns_.in);
      }
      return;
    }
    alignas(64) std::byte buffer[kCapacity];
    for (int64_t c = 0; c < columns; c += width_) {
      const int64_t count = std::min(width_, columns - c);
      gather(rows, count, in + c * columns_.in, buffer, pitch_, count * columns_.in);
      for (int64_t r = 0; r < rows; ++r) {
        copy_short(out + r * rows_.out + c * unit_, buffer + r * pitch_, count * unit_);
      }
    }
  }

  void stream(int64_t first, int64_t last, const std::byte* in, std::byte* out) const {
    const auto buffer = std::make_unique_for_overwrite<Buffer>();
    if (!has_whole_rows_) {
      for_each_panel(first, last, [&](int64_t rows, int64_t columns, const LoopCursor& at) {
        stream_panel(rows, columns, in + at.in(), out + at.out(), *buffer);
      });
      return;
    }
    std::optional<LineWriter> writer;
    const std::byte* next = nullptr;
    for_each_panel(first, last, [&](int64_t rows, int64_t columns, const LoopCursor& at) {
      std::byte* const to = out + at.out();
      gather(rows, columns, in + at.in(), buffer->bytes, rows_.out, rows * rows_.in);
      if (to != next) writer.emplace(to);
      writer->append(buffer->bytes, rows * rows_.out);
      next = to + rows * rows_.out;
    });
  }

  // A row of the buffer lies in lines as that of the output does. Of each tile whole lines are sent; what is
  // left of the last one is moved to where the next tile begins. The lines that two rows share are sent when
  // the first of them is complete.
  void stream_panel(int64_t rows, int64_t columns, const std::byte* in, std::byte* out,
                    Buffer& buffer) const {
    const bool joins = rows_follow_ && columns == columns_.size;
    const int64_t phase = (kLine - to_next_line(out)) % kLine;
    for (int64_t c = 0; c < columns; c += width_) {
      const int64_t count = std::min(width_, columns - c);
      if (c > 0) {
        for (int64_t r = 0; r < rows; ++r) {
          std::byte* const line = buffer.bytes + (phase + r * pitch_) / kLine * kLine;
          std::memcpy(line, line + width_ * unit_, kLine);
        }
      }
      gather(rows, count, in + c * columns_.in, buffer.bytes + phase, pitch_, count * columns_.in);
      const bool is_first = c == 0;
      const bool is_last = c + count == columns;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t begin = phase + r * pitch_;
        const int64_t end = begin + count * unit_;
        std::byte* const to = out + (r * rows_.out + c * unit_ - begin);  // of the buffer's first byte
        int64_t line = begin / kLine * kLine;
        if (is_first && begin > line) {
          if (joins && r > 0) {
            std::memcpy(buffer.first_lines[r], buffer.bytes + line, kLine);
          } else {
            copy_short(to + begin, buffer.bytes + begin, std::min(line + kLine, end) - begin);
          }
          line += kLine;
        }
        for (; line + kLine <= end; line += kLine) stream_line(to + line, buffer.bytes + line);
      }
      if (!is_last) continue;
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t begin = phase + r * pitch_;
        const int64_t end = begin + count * unit_;
        const int64_t line = end / kLine * kLine;
        if (line == end || (is_first && line < begin)) continue;
        std::byte* const to = out + (r * rows_.out + c * unit_ - begin);
        if (joins && r + 1 < rows) {
          std::memcpy(buffer.first_lines[r + 1], buffer.bytes + line, static_cast<size_t>(end - line));
          stream_line(to + line, buffer.first_lines[r + 1]);
        } else {
          copy_short(to + line, buffer.bytes + line, end - line);
        }
      }
    }
  }

  // Puts a tile together. `ahead` is the way to the next one in the input.
  void gather(int64_t rows, int64_t columns, const std::byte* in, std::byte* to, int64_t to_step,
              int64_t ahead) const {
    if (interleave_ != nullptr) return interleave_(rows, columns_.in, in, to);
    if (gather_ != nullptr) return gather_({in, rows_.in, columns_.in}, rows, columns, to, to_step, ahead);
    if (gathers_rows(rows, columns)) {
      for (int64_t r = 0; r < rows; ++r)
        copy_row_({columns, unit_, columns_.in, unit_}, in + r * rows_.in, to + r * to_step);
      return;
    }
    for (int64_t c = 0; c < columns; ++c, in += columns_.in, to += unit_) {
      prefetch_lines(in + ahead, rows * rows_.in);
      copy_column_({rows, unit_, rows_.in, to_step}, in, to);
    }
  }

  // Whether a tile is put together in a buffer: where lines of its rows would take each other's place in a
  // cache, or rows are in more pages than a processor keeps the addresses of for stores. On one thread of a
  // Xeon with AVX-512, 2026-11-26, odd sizes of 1 MiB: float32 took 104 us, and takes 86; int64 104 and 92;
  // float16 125 and 112. Of bytes, whose rows in a tile are short, it would take 200 in place of 131.
  bool has_rows_apart(int64_t rows) const {
    return rows_.out % kConflictingStep == 0 || (unit_ > 1 && rows * rows_.out > kStoredPages);
  }

  // Whether a tile is put together row by row.
  bool gathers_rows(int64_t rows, int64_t columns) const {
    return interleave_ == nullptr && gather_ == nullptr && rows < kShortRow / 2 && rows < columns;
  }

  // Null where squares of elements are of no use.
  GatherTile choose_gather() const {
    if (rows_.in != unit_ || rows_.size * unit_ < kFewestRowBytes) return nullptr;
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
  int64_t height_;     // rows of a panel,
  int64_t strip_;      // its columns,
  int64_t width_;      // and those of a tile
  int64_t pitch_ = 0;  // from a row of the buffer to the next
  Interleave interleave_ = nullptr;
  GatherTile gather_;
  CopyRuns copy_row_;
  CopyRuns copy_column_;
};

}  // namespace
ANYDML_ISA_END
