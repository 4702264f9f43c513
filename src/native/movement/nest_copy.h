// A strided copy by nested loops, in the order of the output: of rows of units, of elements that are
// repeated, or by a table of the input's offsets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "movement/copy.h"
#include "movement/policy.h"
#include "movement/rows.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

class NestCopy final : public Copy {
 public:
  NestCopy(MovementFacts facts, MovementAlgorithm algorithm, std::string name)
      : Copy(std::move(name), steps_of(facts.loops) * facts.unit), algorithm_(algorithm), unit_(facts.unit) {
    loops_ = std::move(facts.loops);
    may_stage_ = is_packed(loops_, unit_);
    block_ = block_of(loops_);
    if (algorithm_ == MovementAlgorithm::kOffsets) {
      tabulate();
    } else {
      columns_ = take_innermost(loops_);
    }
    rows_ = take_innermost(loops_);
    // One unit again and again does not come from the caches.
    repeats_one_ =
        algorithm_ == MovementAlgorithm::kRows && columns_.in == 0 && columns_.size * unit_ > kPortion;
    const int64_t portion = repeats_one_ ? kLongPortion : kPortion;
    width_ = std::min(columns_.size, portion / unit_);
    height_ =
        width_ < columns_.size ? 1 : std::clamp<int64_t>(portion / (columns_.size * unit_), 1, rows_.size);
    if (algorithm_ == MovementAlgorithm::kOffsets) {
      height_ = std::min(height_, std::max<int64_t>(1, kMostOffsets / columns_.size));
      extend_table();
    }
    loops_.push_back(blocks_of(rows_, height_));
    loops_.push_back(blocks_of(columns_, width_));
    copy_row_ = choose_copy_of_row(unit_, columns_.in, columns_.out);
    copy_at_ = choose_copy_at(unit_);
    repeat_each_ = choose_repeat_each(unit_);
  }

  int64_t parts() const override { return steps_of(loops_); }

  void run(int64_t first, int64_t last, const std::byte* in, std::byte* out,
           bool non_temporal) const override {
    non_temporal = non_temporal && may_stage_;
    if (non_temporal && repeats_one_) return repeat_portion(first, last, in, out);
    StagedWriter writer(non_temporal);
    for_each_portion(first, last, [&](int64_t rows, int64_t columns, const LoopCursor& at) {
      const int64_t size = rows * columns * unit_;
      copy_portion(rows, columns, in + at.in(), writer.reserve(out + at.out(), size));
      if (non_temporal && block_ > 0) prefetch_lines(in + at.out() + block_, size);
    });
  }

 private:
  template <class Body>
  void for_each_portion(int64_t first, int64_t last, const Body& body) const {
    const size_t innermost = loops_.size() - 1;
    LoopCursor at(loops_, first);
    for (int64_t part = first; part < last; ++part, at.advance()) {
      body(std::min(height_, rows_.size - at.index(innermost - 1) * height_),
           std::min(width_, columns_.size - at.index(innermost) * width_), at);
    }
  }

  void copy_portion(int64_t rows, int64_t columns, const std::byte* in, std::byte* out) const {
    switch (algorithm_) {
      case MovementAlgorithm::kOffsets:
        return copy_at_(offsets_.data(), rows * columns, unit_, in, out);
      case MovementAlgorithm::kRepeatEach:
        return repeat_each_(rows, columns, rows_.in, in, out);
      default:
        for (int64_t r = 0; r < rows; ++r) {
          copy_row_({columns, unit_, columns_.in, columns_.out}, in + r * rows_.in, out + r * rows_.out);
        }
    }
  }

  // One unit again and again: what is sent is put together once.
  void repeat_portion(int64_t first, int64_t last, const std::byte* in, std::byte* out) const {
    {
      LineWriter writer(out + LoopCursor(loops_, first).out());
      alignas(64) std::byte portion[kPortion];
      const std::byte* from = nullptr;
      for_each_portion(first, last, [&](int64_t, int64_t columns, const LoopCursor& at) {
        if (in + at.in() != from) {
          from = in + at.in();
          copy_row_({kPortion / unit_, unit_, 0, unit_}, from, portion);
        }
        const int64_t whole = kPortion / unit_ * unit_;
        for (int64_t left = columns * unit_; left > 0; left -= whole) {
          writer.append(portion, std::min(left, whole));
        }
      });
    }
    stream_fence();
  }

  // Takes the innermost loops together as one of offsets.
  void tabulate() {
    offsets_ = {0};
    int64_t units = 1;
    const int64_t most = std::min(kMostOffsets / 2, kPortion / unit_);
    while (!loops_.empty() && units * loops_.back().size <= most) {
      const Loop loop = take_innermost(loops_);
      units *= loop.size;
      std::vector<int64_t> offsets;
      for (int64_t i = 0; i < loop.size; ++i) {
        for (const int64_t offset : offsets_) offsets.push_back(i * loop.in + offset);
      }
      offsets_ = std::move(offsets);
    }
    columns_ = {units, 0, unit_};
  }

  // To as many rows as are copied together.
  void extend_table() {
    const std::vector<int64_t> row = offsets_;
    for (int64_t r = 1; r < height_; ++r) {
      for (const int64_t offset : row) offsets_.push_back(r * rows_.in + offset);
    }
  }

  MovementAlgorithm algorithm_;
  int64_t unit_;
  std::vector<Loop> loops_;  // over portions
  Loop rows_;
  Loop columns_;
  int64_t width_;   // columns of a portion
  int64_t height_;  // and its rows
  int64_t block_;
  bool may_stage_;
  bool repeats_one_;
  std::vector<int64_t> offsets_;
  CopyRuns copy_row_;
  CopyAt copy_at_;
  RepeatEach repeat_each_;
};

}  // namespace
ANYDML_ISA_END
