// A strided copy of long runs of bytes, one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "movement/copy.h"
#include "movement/policy.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "simd/strided_copy.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

class RunCopy final : public Copy {
 public:
  RunCopy(MovementFacts facts, std::string name)
      : Copy(std::move(name), steps_of(facts.loops) * facts.unit),
        size_(facts.unit),
        loops_(std::move(facts.loops)),
        is_packed_(anydml::ANYDML_ISA::is_packed(loops_, size_)),
        block_(block_of(loops_)),
        pieces_(divided_up(size_, kLongPortion)),
        copy_(choose_copy_of_runs(size_)) {
    outer_ = loops_;
    rows_ = take_innermost(outer_);
  }

  // Pieces of runs.
  int64_t parts() const override { return steps_of(loops_) * pieces_; }
  bool shares_lines() const override { return false; }

  void run(int64_t first, int64_t last, const std::byte* in, std::byte* out,
           bool non_temporal) const override {
    if (non_temporal && is_packed_) {
      append(first, last, in, out);
      stream_fence();
    } else if (pieces_ > 1) {
      for_each_piece(first, last, [&](int64_t begin, int64_t size, const LoopCursor& at) {
        std::memcpy(out + at.out() + begin, in + at.in() + begin, static_cast<size_t>(size));
      });
    } else {
      while (first < last) {
        const int64_t row = first % rows_.size;
        const int64_t count = std::min(rows_.size - row, last - first);
        const LoopCursor at(outer_, first / rows_.size);
        copy_({count, size_, rows_.in, rows_.out}, in + at.in() + row * rows_.in,
              out + at.out() + row * rows_.out);
        first += count;
      }
    }
  }

 private:
  template <class Body>
  void for_each_piece(int64_t first, int64_t last, const Body& body) const {
    LoopCursor at(loops_, first / pieces_);
    int64_t piece = first % pieces_;
    for (int64_t part = first; part < last; ++part) {
      body(piece * kLongPortion, std::min(kLongPortion, size_ - piece * kLongPortion), at);
      if (++piece < pieces_) continue;
      piece = 0;
      at.advance();
    }
  }

  void append(int64_t first, int64_t last, const std::byte* in, std::byte* out) const {
    LineWriter writer(out + LoopCursor(loops_, first / pieces_).out() + first % pieces_ * kLongPortion);
    LoopCursor ahead(loops_, first / pieces_ + std::max<int64_t>(1, kBytesAhead / size_));
    for_each_piece(first, last, [&](int64_t begin, int64_t size, const LoopCursor& at) {
      const std::byte* const from = in + at.in() + begin;
      const std::byte* next = size > kBytesAhead ? from + kBytesAhead : in + ahead.in();
      if (block_ > 0) next = in + at.out() + block_;
      // Where it begins within a line, it ends in one more than are sent.
      if (to_next_line(next) > 0) prefetch_line(next + size - 1);
      writer.append(from, size, next);
      ahead.advance();
    });
  }

  int64_t size_;  // of a run
  std::vector<Loop> loops_;
  std::vector<Loop> outer_;  // all but the innermost:
  Loop rows_;
  bool is_packed_;
  int64_t block_;
  int64_t pieces_;  // of a run
  CopyRuns copy_;
};

}  // namespace
ANYDML_ISA_END
