// The description of a movement: for each dimension of the output, where its elements come from.
//
// A dimension is made of segments, one behind the other, each a run of the input at some step, which may be 0
// or negative, or a constant; a group of segments may be repeated, each time some steps further in the input.
// An element is at the sum of the offsets that its place has in each dimension; where it is a constant in one
// of them, it is one. An output has one view, or several that are a part of it each.
// backends/native/movement_lowering.py writes the descriptions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// Offsets and steps are in bytes of the input.
struct Segment {
  int64_t size;
  bool is_constant;
  int64_t in;
  int64_t in_step;
};

struct SegmentGroup {
  int64_t repeats;
  int64_t in_step;  // from one repetition to the next
  std::vector<Segment> segments;

  // Of one repetition.
  int64_t size() const {
    int64_t size = 0;
    for (const Segment& segment : segments) size += segment.size;
    return size;
  }
};

struct SegmentedDimension {
  int64_t out_step;
  std::vector<SegmentGroup> groups;

  int64_t size() const {
    int64_t size = 0;
    for (const SegmentGroup& group : groups) size += group.repeats * group.size();
    return size;
  }
  bool is_plain() const {
    return groups.size() == 1 && groups[0].repeats == 1 && groups[0].segments.size() == 1;
  }
  const Segment& only() const { return groups[0].segments[0]; }
  bool is_constant() const { return is_plain() && only().is_constant; }
};

using View = std::vector<SegmentedDimension>;

// A view, the output that it is of, and where it begins there, in bytes.
struct PlacedView {
  size_t output;
  int64_t out;
  View view;
};

inline double elements_of(const View& view) {
  double elements = 1;
  for (const SegmentedDimension& dimension : view) elements *= static_cast<double>(dimension.size());
  return elements;
}

// Merges dimensions that are one in the memory of both tensors, and takes those that are a run of bytes as
// the unit.
inline View fold(View view, int64_t element, int64_t& unit) {
  unit = element;
  std::erase_if(view, [](const SegmentedDimension& each) {
    return each.is_plain() && each.size() == 1 && each.only().in == 0 && !each.is_constant();
  });
  const auto is_run = [&unit](const SegmentedDimension& each) {
    return each.is_plain() && !each.is_constant() && each.only().in == 0 && each.out_step == unit &&
           each.only().in_step == unit;
  };
  while (view.size() > 1 && is_run(view.back())) {
    unit *= view.back().size();
    view.pop_back();
  }
  for (size_t d = view.size() - 1; d-- > 0;) {
    SegmentedDimension& outer = view[d];
    const SegmentedDimension& inner = view[d + 1];
    if (!outer.is_plain() || !inner.is_plain() || outer.is_constant() || inner.is_constant()) continue;
    const int64_t size = inner.size();
    if (outer.out_step != size * inner.out_step || outer.only().in_step != size * inner.only().in_step)
      continue;
    Segment& only = outer.groups[0].segments[0];
    outer.out_step = inner.out_step;
    only = {only.size * size, false, only.in + inner.only().in, inner.only().in_step};
    view.erase(view.begin() + static_cast<std::ptrdiff_t>(d) + 1);
  }
  return view;
}

// Reads views from a list of integers, which it checks.
class ViewReader {
 public:
  explicit ViewReader(const std::vector<int64_t>& words) : words_(words) {}

  bool is_at_end() const { return at_ == words_.size(); }

  PlacedView next() {
    PlacedView placed{static_cast<size_t>(word()), word(), View(count())};
    View& view = placed.view;
    for (SegmentedDimension& dimension : view) {
      dimension.out_step = word();
      dimension.groups.resize(count());
      for (SegmentGroup& group : dimension.groups) {
        group.repeats = size();
        group.in_step = word();
        group.segments.resize(count());
        for (Segment& segment : group.segments) segment = {size(), word() != 0, word(), word()};
      }
    }
    return placed;
  }

 private:
  int64_t word() {
    require(at_ < words_.size(), "a view ends too soon");
    return words_[at_++];
  }
  size_t count() {
    const int64_t count = word();
    require(count >= 1 && count <= static_cast<int64_t>(words_.size()), "a view has parts of no number");
    return static_cast<size_t>(count);
  }
  int64_t size() {
    const int64_t size = word();
    require(size >= 1, "a view has a part of no size");
    return size;
  }

  const std::vector<int64_t>& words_;
  size_t at_ = 0;
};

// First and last byte that something reaches, relative to a tensor's first element.
struct Reach {
  double low = 0;
  double high = 0;

  void add(double low_end, double high_end) {
    low += std::min(low_end, high_end);
    high += std::max(low_end, high_end);
  }
  void add_steps(int64_t size, int64_t step) {
    add(0, (static_cast<double>(size) - 1) * static_cast<double>(step));
  }
  bool is_within(const Reach& other) const { return other.low <= low && high <= other.high; }
};

inline Reach reach_of(const Layout& layout) {
  Reach reach;
  for (size_t d = 0; d < layout.sizes.size(); ++d) reach.add_steps(layout.sizes[d], layout.strides[d]);
  return reach;
}

// That a view stays within the tensors' memory. `in` is null where all is constant.
inline void check_view(const PlacedView& placed, const Layout* in, const Layout& out) {
  Reach read;
  Reach written;
  const auto begin = static_cast<double>(placed.out);
  written.add(begin, begin);
  bool reads = true;
  for (const SegmentedDimension& dimension : placed.view) {
    written.add_steps(dimension.size(), dimension.out_step);
    Reach found{0x1p62, -0x1p62};
    for (const SegmentGroup& group : dimension.groups) {
      for (const Segment& segment : group.segments) {
        if (segment.is_constant) continue;
        Reach each;
        each.add(static_cast<double>(segment.in), static_cast<double>(segment.in));
        each.add_steps(segment.size, segment.in_step);
        each.add_steps(group.repeats, group.in_step);
        found = {std::min(found.low, each.low), std::max(found.high, each.high)};
      }
    }
    if (found.low > found.high) {
      reads = false;
    } else {
      read.add(found.low, found.high);
    }
  }
  require(written.is_within(reach_of(out)), "a view leaves the output");
  require(!reads || (in != nullptr && read.is_within(reach_of(*in))), "a view leaves the input");
}

}  // namespace
ANYDML_ISA_END
