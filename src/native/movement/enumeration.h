// Elements that are computed from their numbers, in row-major order, whatever the strides of the output.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "movement/copy.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

class Enumeration {
 public:
  explicit Enumeration(const Layout& out) : item_(size_of(out.type)) {
    for (size_t d = 0; d < out.sizes.size(); ++d) {
      const Loop inner{out.sizes[d], 0, out.strides[d]};
      if (inner.size == 1) continue;
      if (!loops_.empty() && loops_.back().out == inner.size * inner.out) {
        loops_.back() = {loops_.back().size * inner.size, 0, inner.out};
      } else {
        loops_.push_back(inner);
      }
    }
    bytes_ = steps_of(loops_) * item_;
    if (loops_.empty()) loops_.push_back({1, 0, item_});
    row_ = take_innermost(loops_);
    per_row_ = divided_up(row_.size, kPart);
    copy_ = choose_copy_of_elements(item_);
  }

  int64_t count() const { return bytes_ / item_; }

  // Calls fill(first, count, to), which writes the elements of so many numbers from the first one on, one
  // behind the other.
  template <class Fill>
  void write(std::byte* out, const Fill& fill) const {
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(loops_) * per_row_;
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      const bool is_packed = row_.out == item_;
      StagedWriter writer(is_packed && bytes_ >= kStreamFrom);
      const int64_t end = share_begin(call + 1, calls, parts);
      for (int64_t part = share_begin(call, calls, parts); part < end; ++part) {
        const int64_t row = part / per_row_;
        const int64_t begin = part % per_row_ * kPart;
        const int64_t count = std::min(kPart, row_.size - begin);
        std::byte* const to = out + LoopCursor(loops_, row).out() + begin * row_.out;
        const int64_t first = row * row_.size + begin;
        if (is_packed) {
          fill(first, count, writer.reserve(to, count * item_));
        } else {
          std::byte numbers[kPart * 8];
          fill(first, count, numbers);
          copy_({count, item_, row_.out}, numbers, to);
        }
      }
    });
  }

 private:
  // Elements that are made together.
  static constexpr int64_t kPart = 512;

  int64_t item_;
  std::vector<Loop> loops_;  // over rows
  Loop row_;
  int64_t per_row_;  // parts
  int64_t bytes_;
  CopyElements copy_;
};

}  // namespace
ANYDML_ISA_END
