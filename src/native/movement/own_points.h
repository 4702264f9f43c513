// Which of all points a thread copies, where several share a scatter by ranges of the output.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "movement/tuning.h"
#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// The offsets that a thread writes to.
struct Range {
  int64_t first;
  int64_t size;

  bool has(int64_t offset) const {
    return static_cast<uint64_t>(offset - first) < static_cast<uint64_t>(size);
  }
};

// The points that fall into a thread's own range, in their order: where each points to, and where it is
// listed. They are taken out of all without branches, some hundred of them before any is copied, so that only
// their own lines are prefetched.
class OwnPoints {
 public:
  explicit OwnPoints(Range range) : range_(range) {}

  // Of at most kIndicesAtOnce points.
  void add(std::span<const int64_t> offsets, int64_t listed, int64_t step) {
    int64_t count = count_;
    for (const int64_t offset : offsets) {
      to_[static_cast<size_t>(count)] = offset;
      from_[static_cast<size_t>(count)] = listed;
      count += range_.has(offset) ? 1 : 0;
      listed += step;
    }
    count_ = count;
  }
  bool is_full() const { return count_ >= kIndicesAtOnce; }

  template <class Copy>
  void copy_all(int64_t unit, const std::byte* from, std::byte* to, const Copy& copy) {
    for (int64_t i = 0; i < count_; ++i) {
      if (const auto ahead = static_cast<size_t>(i + kRowsAhead); unit > 0 && i + kRowsAhead < count_) {
        prefetch_lines(from + from_[ahead], unit);
        prefetch_lines(to + to_[ahead], unit);
      }
      copy(from + from_[static_cast<size_t>(i)], to + to_[static_cast<size_t>(i)]);
    }
    count_ = 0;
  }

 private:
  Range range_;
  int64_t count_ = 0;
  // One more, which is written whatever the range has.
  std::array<int64_t, 2 * kIndicesAtOnce + 1> to_;
  std::array<int64_t, 2 * kIndicesAtOnce + 1> from_;
};

}  // namespace
ANYDML_ISA_END
