// A parallel counting sort of points by where in the output they point to, so that threads share a scatter of
// points of which several may point to the same place: each thread sorts some of them that are listed one
// behind the other, and then each takes parts of the output, of which it goes through what all have sorted in
// the order in which it was listed.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>

#include "movement/points.h"
#include "movement/tuning.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// Points that each thread sorts at a time, in blocks. A sort takes about 3 ns for each, a scatter of elements
// 1 to 2 in the caches, and 10 to 40 past them (2026-11-26, one thread of a Xeon): the threads from which on
// they are sorted at all, and the bytes of what is scattered to from which on two threads are enough.
constexpr int64_t kSortedBlocks = 16;
constexpr int kSortingThreads = 5;
constexpr int64_t kSortedTable = 4 << 20;

// The offsets that points may point to, in parts of a power of two of bytes.
class OutputParts {
 public:
  static constexpr int64_t kMost = 64;

  // At least one offset.
  OutputParts(int64_t first, int64_t size) : first_(first) {
    const auto most = static_cast<uint64_t>(size - 1);
    shift_ = std::max(static_cast<int>(std::bit_width(most / kMost)), kFewestBits);
    count_ = static_cast<int64_t>(most >> shift_) + 1;
  }

  int64_t count() const { return count_; }
  size_t of(int64_t offset) const { return static_cast<size_t>(offset - first_) >> shift_; }
  int64_t begin(int64_t part) const { return first_ + (part << shift_); }
  // Of parts of less than 4 GiB.
  uint32_t within(int64_t offset) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(offset - first_) & ((uint64_t{1} << shift_) - 1));
  }

 private:
  // Pages, of which few threads share lines.
  static constexpr int kFewestBits = 12;

  int64_t first_;
  int64_t count_;
  int shift_;
};

// Where a point points to, and where it is listed.
struct SortedPoint {
  int64_t to;
  int64_t from;
};

// Those of some blocks, by parts.
class SortedPoints {
 public:
  void reserve(int64_t blocks) {
    const auto most = static_cast<size_t>(blocks * kIndicesAtOnce);
    listed_ = std::make_unique_for_overwrite<SortedPoint[]>(most);
    sorted_ = std::make_unique_for_overwrite<SortedPoint[]>(most);
  }

  // Indices are read once: who changes them meanwhile changes no count.
  void sort(const Points& points, const OutputParts& parts, int64_t first, int64_t last,
            const std::byte* indices) {
    int64_t offsets[kIndicesAtOnce];
    std::array<int64_t, OutputParts::kMost> counts{};
    const int64_t step = points.listed_step();
    size_t count = 0;
    for (int64_t number = first; number < last; ++number) {
      const Block block = points.resolve(number, indices, offsets);
      for (int64_t run = 0; run < block.runs; ++run) {
        int64_t from = block.listed + run * block.next_run;
        for (int64_t i = run * block.count; i < (run + 1) * block.count; ++i, from += step) {
          listed_[count++] = {offsets[i], from};
          ++counts[parts.of(offsets[i])];
        }
      }
    }
    std::array<int64_t, OutputParts::kMost> next;
    std::exclusive_scan(counts.begin(), counts.end(), next.begin(), int64_t{0});
    std::copy(next.begin(), next.end(), begins_.begin());
    begins_.back() = static_cast<int64_t>(count);
    for (size_t i = 0; i < count; ++i) {
      sorted_[static_cast<size_t>(next[parts.of(listed_[i].to)]++)] = listed_[i];
    }
  }

  std::span<const SortedPoint> of_part(int64_t part) const {
    const auto p = static_cast<size_t>(part);
    return {sorted_.get() + begins_[p], sorted_.get() + begins_[p + 1]};
  }

 private:
  std::unique_ptr<SortedPoint[]> listed_;
  std::unique_ptr<SortedPoint[]> sorted_;
  std::array<int64_t, OutputParts::kMost + 1> begins_{};
};

}  // namespace
ANYDML_ISA_END
