// Points, which are tuples of indices: their offsets, block by block, and how threads share them.
//
// A point points to an element or a slice of one tensor, the input of a gather or the output of a scatter,
// and stands for one of another tensor, a gather's output or a scatter's updates, in which they are listed:
//   offset(p) = sum over loops d of p_d * pointed_d + sum over coordinates c of index(p, c) * step_c
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "movement/copy.h"
#include "movement/indices.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "simd/strided_copy.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// Bytes of indices that are read without a software prefetch.
constexpr int64_t kCachedIndices = 4 << 20;

// A loop over points, with its steps in bytes.
struct PointLoop {
  int64_t size;
  int64_t index;    // in the indices
  int64_t pointed;  // in the tensor that they point into
  int64_t listed;   // in the other one
  bool is_free;     // whether points of different steps never point to the same place
};

// A place in all three tensors.
struct Place {
  int64_t index = 0;
  int64_t pointed = 0;
  int64_t listed = 0;

  void add(const PointLoop& loop, int64_t step) {
    index += step * loop.index;
    pointed += step * loop.pointed;
    listed += step * loop.listed;
  }
};

bool continues(const PointLoop& outer, const PointLoop& inner) {
  return outer.is_free == inner.is_free && outer.index == inner.size * inner.index &&
         outer.pointed == inner.size * inner.pointed && outer.listed == inner.size * inner.listed;
}

// The fewest loops, in their order, in which the last of several points to one place counts.
std::vector<PointLoop> merged(const std::vector<PointLoop>& loops) {
  std::vector<PointLoop> kept;
  for (const PointLoop& inner : loops) {
    if (inner.size == 1) continue;
    if (!kept.empty() && continues(kept.back(), inner)) {
      const int64_t size = kept.back().size * inner.size;
      kept.back() = inner;
      kept.back().size = size;
    } else {
      kept.push_back(inner);
    }
  }
  return kept;
}

// Points that are looked at together: runs of them, each listed at the step of the innermost loop.
struct Block {
  int64_t runs;
  int64_t count;  // of a run
  int64_t listed;
  int64_t next_run;  // from where one is listed to the next
  int64_t pointed;   // where what they point to begins, without their indices

  // Of the indices, which are prefetched while others' points are copied, some at a time: null where they are
  // few, or do not follow each other.
  const std::byte* indices = nullptr;
  int64_t index = 0;

  ANYDML_INLINE void prefetch_indices_of(int64_t first, int64_t points) const {
    if (indices != nullptr) prefetch_indices(indices + first * index, points * index);
  }
};

class Points {
 public:
  Points(const std::vector<PointLoop>& loops, std::vector<Loop> axes, int64_t coordinate,
         IndexFunctions functions, int64_t slice)
      : loops_(merged(loops)),
        axes_(std::move(axes)),
        coordinate_(coordinate),
        functions_(functions),
        slice_(slice),
        most_(std::clamp<int64_t>(kTurnBytes / slice, 1, kIndicesAtOnce)) {
    for (const PointLoop& loop : loops_) {
      if (loop.index != 0) looked_at_.push_back({loop.size, loop.index, loop.index});
    }
    looked_at_ = fold(std::move(looked_at_));
    row_ = take_innermost(looked_at_);
    // Two loops at least, of which blocks are made.
    while (loops_.size() < 2) loops_.insert(loops_.begin(), PointLoop{1, 0, 0, 0, false});
    set_blocks();
  }

  int64_t count() const {
    int64_t points = 1;
    for (const PointLoop& loop : loops_) points *= loop.size;
    return points;
  }
  int64_t coordinates() const { return static_cast<int64_t>(axes_.size()); }
  int64_t listed_step() const { return inner().listed; }
  int64_t blocks() const { return outer_steps_ * groups_ * pieces_; }

  // Whether each dimension has all indices of its coordinate.
  bool are_right(const std::byte* indices) const {
    return have_indices(looked_at_, row_, axes_, coordinate_, functions_.are_indices, indices);
  }

  // The offsets that the points of a block point to.
  Block resolve(int64_t block, const std::byte* indices, int64_t* offsets) const {
    const int64_t begin = block % pieces_ * at_once_;
    const int64_t first = block / pieces_ % groups_ * runs_at_once_;
    Place at = outer_place(block / (pieces_ * groups_));
    at.add(middle(), first);
    at.add(inner(), begin);
    const int64_t start = at.pointed + next_ * begin / inner().size;
    const int64_t count = std::min(at_once_, inner().size - begin);
    const int64_t runs = std::min(runs_at_once_, middle().size - first);
    const bool are_short = runs > 1 && count < kShortRun;
    if (are_short) start_runs(at, runs, count, offsets);
    for (size_t c = 0; c < axes_.size(); ++c) {
      const std::byte* const from = coordinate_of(indices, c) + at.index;
      if (c == 0 && !are_short) {
        for (int64_t run = 0; run < runs; ++run) {
          functions_.set_offsets({0, inner().index, inner().pointed}, count, axes_[c],
                                 at.pointed + run * middle().pointed, from + run * middle().index,
                                 offsets + run * count);
        }
        continue;
      }
      if (indices_follow_) {
        functions_.add_offsets({0, inner().index, 0}, runs * count, axes_[c], from, offsets);
        continue;
      }
      for (int64_t run = 0; run < runs; ++run) {
        functions_.add_offsets({0, inner().index, 0}, count, axes_[c], from + run * middle().index,
                               offsets + run * count);
      }
    }
    const std::byte* const ahead = prefetches_indices_ ? indices + at.index : nullptr;
    if (are_listed_as_one_) return {1, runs * count, at.listed, 0, start, ahead, inner().index};
    return {runs, count, at.listed, middle().listed, start, ahead, inner().index};
  }

  // Loop tiling: where rows of indices point into columns of a table that is larger than a cache, a stripe of
  // some columns is gone through at a time, in a table of its own, whose rows follow each other, so that they
  // do not fall into few sets of a cache. The points of different stripes never meet.
  bool has_stripes() const { return width_ > 0; }
  int64_t stripes() const { return outer_steps_ * stripes_of_rows(); }
  int64_t stripe_bytes() const { return axes_.front().size * width_ * slice_; }

  // The points of a stripe, which point into its own table, and that table's rows in the tensor.
  Points stripe(int64_t number, Runs& rows, int64_t& first_row) const {
    const int64_t first = number % stripes_of_rows() * width_;
    Points those = part(innermost(), first, std::min(first + width_, inner().size));
    const Place at = those.outer_place(number / stripes_of_rows());
    const int64_t row = those.inner().size * slice_;
    rows = {axes_.front().size, row, axes_.front().in, row};
    first_row = at.pointed;
    those.origin_ = {at.index, 0, at.listed};
    those.loops_.erase(those.loops_.begin(), those.loops_.end() - 2);
    those.axes_.front().in = row;
    those.set_blocks();
    return those;
  }

  // Whether each row of points points into a part of the tensor of its own, which is prefetched.
  bool have_rows() const { return next_ > 0; }
  // Prefetches what the next rows of points point to, in proportion to how many these are, where each row has
  // a part of the tensor for itself, one behind the other: the hardware follows no order of indices.
  ANYDML_INLINE void prefetch_next(const Block& block, const std::byte* pointed) const {
    if (next_ == 0) return;
    const std::byte* const from = pointed + block.pointed + next_ * runs_at_once_;
    const int64_t size = next_ * block.runs * block.count / inner().size;
    for (int64_t i = 0; i < size; i += kLine) prefetch_line(from + i);
  }

  // The outermost loop that is free, and of which each of so many threads has enough for itself; -1 where
  // there is none.
  int64_t free_loop(int64_t threads) const {
    const auto found = std::ranges::find_if(loops_, [&](const PointLoop& loop) {
      return loop.is_free && loop.size / threads * std::abs(loop.pointed) >= kOwnColumns;
    });
    return found == loops_.end() ? -1 : found - loops_.begin();
  }

  int64_t size_of_loop(int64_t loop) const { return loops_[static_cast<size_t>(loop)].size; }

  // Those of the steps [first, last) of a loop.
  Points part(int64_t loop, int64_t first, int64_t last) const {
    Points those = *this;
    PointLoop& cut = those.loops_[static_cast<size_t>(loop)];
    those.origin_.add(cut, first);
    cut.size = last - first;
    those.set_blocks();
    return those;
  }

 private:
  int64_t stripes_of_rows() const { return divided_up(inner().size, width_); }
  // Where a step of all loops but the last two begins.
  Place outer_place(int64_t step) const {
    Place at = origin_;
    for (size_t d = loops_.size() - 2; d-- > 0; step /= loops_[d].size) {
      at.add(loops_[d], step % loops_[d].size);
    }
    return at;
  }
  // Offsets without those of the indices, of many short runs: twice as many each time.
  void start_runs(const Place& at, int64_t runs, int64_t count, int64_t* offsets) const {
    for (int64_t i = 0; i < count; ++i) offsets[i] = at.pointed + i * inner().pointed;
    for (int64_t done = 1; done < runs; done *= 2) {
      const int64_t more = std::min(done, runs - done) * count;
      for (int64_t i = 0; i < more; ++i) offsets[done * count + i] = offsets[i] + done * middle().pointed;
    }
  }
  int64_t innermost() const { return static_cast<int64_t>(loops_.size()) - 1; }
  const PointLoop& inner() const { return loops_.back(); }
  const PointLoop& middle() const { return loops_[loops_.size() - 2]; }
  const std::byte* coordinate_of(const std::byte* indices, size_t c) const {
    return indices + static_cast<int64_t>(c) * coordinate_;
  }

  // A block is a piece of a run of the innermost loop, or several short runs.
  void set_blocks() {
    at_once_ = std::min(most_, inner().size);
    are_listed_as_one_ = middle().listed == inner().size * inner().listed;
    indices_follow_ = middle().index == inner().size * inner().index;
    runs_at_once_ = std::clamp<int64_t>(most_ / inner().size, 1, middle().size);
    pieces_ = divided_up(inner().size, at_once_);
    groups_ = divided_up(middle().size, runs_at_once_);
    outer_steps_ = count() / (inner().size * middle().size);
    width_ = columns_of_stripe();
    prefetches_indices_ = 0 < inner().index && inner().index <= kLine &&
                          (indices_follow_ || middle().size == 1) &&
                          count() * inner().index >= kCachedIndices;
    const int64_t row = axes_.front().size * axes_.front().in;
    const bool has_rows = axes_.size() == 1 && inner().pointed == 0 && middle().pointed == row;
    next_ = has_rows && 0 < row && row <= kTurnBytes ? row : 0;
  }

  // 0 where there is nothing to gain.
  int64_t columns_of_stripe() const {
    const Loop& axis = axes_.front();
    const bool are_columns = inner().is_free && !middle().is_free && axes_.size() == 1 &&
                             inner().pointed == slice_ && middle().size * 2 >= axis.size;
    if (!are_columns || axis.size * std::abs(axis.in) <= kColumnsBytes) return 0;
    if (axis.size * kLine > kMostColumnsBytes) return 0;
    const int64_t lines = std::max<int64_t>(kColumnsBytes / axis.size / kLine, 1);
    const int64_t columns = lines * kLine / slice_;
    return 0 < columns && columns < inner().size ? columns : 0;
  }

  std::vector<PointLoop> loops_;
  std::vector<Loop> axes_;  // sizes, and steps in the tensor that is pointed into
  int64_t coordinate_;      // the step from one to the next
  IndexFunctions functions_;
  int64_t slice_;  // bytes that a point stands for
  int64_t most_;   // points of a block
  std::vector<Loop>
      looked_at_;  // loops over the indices of a coordinate in any order, but for the innermost:
  Loop row_;
  Place origin_;
  int64_t at_once_ = 1;
  int64_t runs_at_once_ = 1;
  int64_t pieces_ = 1;
  int64_t groups_ = 1;
  int64_t outer_steps_ = 1;
  int64_t width_ = 0;  // columns of a stripe
  int64_t next_ = 0;   // bytes of what a row points into, where they are prefetched
  bool are_listed_as_one_ = false;
  bool indices_follow_ = false;
  bool prefetches_indices_ = false;
};

}  // namespace
ANYDML_ISA_END
