// Windows over tensors of any strides. Batch and channels are dimensions like the spatial ones, along which a
// window of one tap slides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "nhwc/windows.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// Of a row-major nest: steps are those of elements of what is pooled in one tensor, and of places in another.
struct Dimension {
  Sliding window;
  int64_t index_step;           // of indices, which count elements row-major
  std::vector<double> counted;  // taps that an average is divided by, for each place
  int64_t other = 0;            // from place to place in a second tensor of places

  bool slides() const {
    return window.taps != 1 || window.stride != 1 || window.start != 0 || window.size != window.places;
  }

  // Whether an only window holds each element once.
  bool is_whole() const {
    const auto [first, last] = window.inside(0);
    return window.places == 1 && last - first == window.size && (window.dilation == 1 || window.size == 1);
  }

  // Whether some tap lies on an element, at each place.
  bool has_elements() const {
    for (int64_t place = 0; place < window.places; ++place) {
      if (!has_elements(place)) return false;
    }
    return true;
  }
  bool has_elements(int64_t place) const {
    const auto [first, last] = window.inside(place);
    return first < last;
  }
};

// The dimensions of a pooled tensor in which elements and places have the strides of two layouts.
inline std::vector<Dimension> dimensions_of(const Attributes& attributes, const Layout& elements,
                                            const Layout& places, bool counts_padding) {
  const auto member = [&](const char* name, size_t d, int64_t otherwise) {
    return attributes.has(name) ? attributes.integers(name).at(d) : otherwise;
  };
  require(elements.sizes.size() == places.sizes.size() && elements.sizes.size() > 2, "ranks of pooling");
  std::vector<Dimension> found;
  int64_t index_step = 1;
  for (size_t d = elements.sizes.size(); d-- > 0;) {
    const int64_t size = elements.sizes[d];
    Sliding window{size, places.sizes[d], 1, 1, 0, 0, 1, elements.strides[d], places.strides[d]};
    if (d > 1) {
      window.taps = member("WindowSize", d - 2, 1);
      window.stride = member("Strides", d - 2, 1);
      window.start = member("StartPadding", d - 2, 0);
      window.end = member("EndPadding", d - 2, 0);
      window.dilation = member("Dilations", d - 2, 1);
      require(window.taps > 0 && window.stride > 0 && window.dilation > 0,
              "a window's numbers are at least 1");
      require(window.start >= 0 && window.end >= 0, "paddings are at least 0");
    } else {
      require(window.size == window.places, "batch and channels of pooling");
    }
    Dimension dimension{window, index_step, {}, 0};
    for (int64_t place = 0; place < window.places; ++place) {
      // Nothing counted is a sum of 0, and stays it.
      dimension.counted.push_back(
          static_cast<double>(std::max<int64_t>(1, window.counted(place, counts_padding))));
    }
    found.push_back(std::move(dimension));
    index_step *= size;
  }
  std::ranges::reverse(found);
  return found;
}

// Neighbours as one, where no window slides along either, or an only window holds all of both.
inline std::vector<Dimension> merged(std::vector<Dimension> dimensions) {
  // One of a single element has nothing to say, whatever its strides are.
  for (size_t d = dimensions.size(); d-- > 0 && dimensions.size() > 2;) {
    if (dimensions[d].window.size == 1 && !dimensions[d].slides()) {
      dimensions.erase(dimensions.begin() + static_cast<std::ptrdiff_t>(d));
    }
  }
  std::vector<Dimension> kept;
  for (Dimension& inner : dimensions) {
    if (!kept.empty()) {
      Dimension& outer = kept.back();
      Sliding& window = outer.window;
      const bool is_whole = outer.is_whole() && inner.is_whole();
      const bool is_still = !outer.slides() && !inner.slides();
      const bool follows = window.in_stride == inner.window.size * inner.window.in_stride;
      const bool places_follow = window.out_stride == inner.window.places * inner.window.out_stride &&
                                 outer.other == inner.window.places * inner.other;
      if (follows && (is_whole || (is_still && places_follow))) {
        const int64_t size = window.size * inner.window.size;
        const int64_t count = is_whole ? 1 : size;
        const double counted = outer.counted[0] * inner.counted[0];
        outer = {
            {size, count, is_whole ? size : 1, 1, 0, 0, 1, inner.window.in_stride, inner.window.out_stride},
            inner.index_step,
            std::vector<double>(static_cast<size_t>(count), counted),
            inner.other};
        continue;
      }
    }
    kept.push_back(std::move(inner));
  }
  return kept;
}

// A nest whose rows lie along one dimension: the last one, or one along which no window slides, where that is
// the one whose elements follow each other.
struct Nest {
  std::vector<Dimension> outer;
  Dimension row;

  // Whatever the strides, along the last dimension.
  explicit Nest(std::vector<Dimension> dimensions) : row(std::move(dimensions.back())) {
    dimensions.pop_back();
    outer = std::move(dimensions);
  }

  Nest(std::vector<Dimension> dimensions, int64_t item) {
    const auto step = [](const Dimension& d) { return std::abs(d.window.in_stride); };
    size_t chosen = dimensions.size() - 1;
    for (size_t d = 0; d + 1 < dimensions.size(); ++d) {
      const bool is_packed = step(dimensions[d]) == item && dimensions[d].window.size > 1;
      if (!dimensions[d].slides() && is_packed && step(dimensions.back()) != item) chosen = d;
    }
    row = std::move(dimensions[chosen]);
    dimensions.erase(dimensions.begin() + static_cast<std::ptrdiff_t>(chosen));
    outer = std::move(dimensions);
  }
};

// Elements of a row that are computed together, and those that are read for them at once.
constexpr int64_t kPart = 512;
constexpr int64_t kSpan = 2048;
constexpr size_t kMostOuter = 4;

// A part of a row: its places in the dimensions around it, and there its first one.
struct Part {
  std::array<int64_t, kMostOuter> place;
  int64_t first;
  int64_t size;
};

inline int64_t floored(int64_t x, int64_t by) {
  if (by == 1) return x;  // a division takes as long as a few neighbouring places
  return x >= 0 ? x / by : -((by - 1 - x) / by);
}
inline int64_t raised(int64_t x, int64_t by) { return -floored(-x, by); }

// A range of rows or columns.
struct Range {
  int64_t begin;
  int64_t end;

  int64_t size() const { return end - begin; }
  bool holds(int64_t i) const { return begin <= i && i < end; }
};

// The windows that reach from `elements.begin` to the last of `elements`, or over some.
inline Range reaching(const Sliding& window, const Range& elements) {
  const int64_t far = (window.taps - 1) * window.dilation;
  return {std::max<int64_t>(0, raised(elements.begin + window.start - far, window.stride)),
          std::min(window.places, floored(elements.end - 1 + window.start, window.stride) + 1)};
}

}  // namespace
ANYDML_ISA_END
