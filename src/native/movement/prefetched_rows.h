// Copies of rows in any order, with a software prefetch: the hardware follows no order of indices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "movement/rows.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// Whether rows of a table of so many bytes are prefetched.
inline bool are_prefetched(int64_t unit, int64_t table) {
  return unit >= kPrefetchedRow && table > kCachedTable;
}

// Copies the rows [begin, begin + size) of `count` ones, whose offsets are known.
inline void copy_prefetched(CopyAt copy_at, const int64_t* offsets, int64_t count, int64_t begin,
                            int64_t size, int64_t unit, const std::byte* in, std::byte* to) {
  constexpr int64_t kRowsAtOnce = 8;
  for (int64_t i = 0; i < size; i += kRowsAtOnce) {
    const int64_t first = begin + i;
    const int64_t last = std::min(first + kRowsAhead + kRowsAtOnce, count);
    for (int64_t row = first + kRowsAhead; row < last; ++row) prefetch_lines(in + offsets[row], unit);
    copy_at(offsets + first, std::min(kRowsAtOnce, size - i), unit, in, to + i * unit);
  }
}

// From how many bytes on rows are copied one by one. Past the caches their lines are sent as they are: rows
// of 384 to 1000 bytes take 1.2 to 1.3 copies, and 1.3 to 1.7 by way of a buffer; those of 256 as much or
// more (2026-11-26, one thread of a Xeon).
constexpr int64_t kStreamedRow = 384;
inline int64_t long_row(bool non_temporal) { return non_temporal ? kStreamedRow : kLongRow; }

// Copies of long rows, or pieces of them, by a thread.
class LongRows {
 public:
  explicit LongRows(bool non_temporal) : non_temporal_(non_temporal) {}
  LongRows(const LongRows&) = delete;
  LongRows& operator=(const LongRows&) = delete;
  ~LongRows() {
    lines_.reset();
    if (non_temporal_) stream_fence();
  }

  // Copies `size` bytes at each of the offsets; rows are `step` apart in the output.
  void copy(const int64_t* offsets, int64_t count, int64_t size, int64_t step, const std::byte* in,
            std::byte* out) {
    for (int64_t i = 0; i < count; ++i, out += step) {
      const std::byte* const from = in + offsets[i];
      if (!non_temporal_) {
        std::memcpy(out, from, static_cast<size_t>(size));
        continue;
      }
      const int64_t ahead = size < kLongPortion ? i + kBytesAhead / size + 1 : i + 1;
      const std::byte* const later = ahead < count ? in + offsets[ahead] : from;
      prefetch_line(later + size - 1);
      if (out != next_) lines_.emplace(out);
      lines_->append(from, size, later);
      next_ = out + size;
    }
  }

 private:
  bool non_temporal_;
  std::optional<LineWriter> lines_;
  const std::byte* next_ = nullptr;
};

}  // namespace
ANYDML_ISA_END
