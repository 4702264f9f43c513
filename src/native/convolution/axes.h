// The spatial dimensions of a convolution, and what is read along them.
//
// A convolution has three of them here, those that a tensor has not being of size 1. Along each, at place o
// its tap k lies at o * stride - start + k * dilation, also where the convolution is a transposed one, which
// is several of them: one for each phase of its strides (sub-pixel convolution).
//
// Elements are read by way of planes, copies of what lies under a block of places, in which every tap is a
// shift: those along a dimension are divided into slices (polyphase decomposition), in which what belongs to
// neighbouring places lies side by side.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "nhwc/windows.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

struct SpatialAxis {
  Sliding along;
  // In bytes: of the filter where the first tap is, and from tap to tap; of the output where the first place
  // is, and of the input likewise.
  int64_t tap_first = 0;
  int64_t tap_step = 0;
  int64_t out_first = 0;
  int64_t in_first = 0;

  bool has_padding() const {
    const auto whole = std::pair{int64_t{0}, along.taps};
    return along.inside(0) != whole || along.inside(along.places - 1) != whole;
  }
};
using SpatialAxes = std::array<SpatialAxis, 3>;

// Without the taps that lie on padding at every place.
inline SpatialAxis trimmed(SpatialAxis axis) {
  Sliding& along = axis.along;
  const int64_t first = along.inside(along.places - 1).first;
  const int64_t last = std::max(first, along.inside(0).second);
  axis.tap_first += first * axis.tap_step;
  along.start -= first * along.dilation;
  along.taps = last - first;
  return axis;
}

// Of a transposed convolution along a dimension: each phase that has results. It adds w[k] * x[o] to the
// result at o * stride - start + k * dilation. So those results that lie a stride apart take the same taps,
// and are a forward convolution of stride 1 by these: nothing is added up in memory.
inline std::vector<SpatialAxis> phases_of(const SpatialAxis& whole) {
  const Sliding& along = whole.along;
  const int64_t divisor = std::gcd(along.stride, along.dilation);
  const int64_t apart = along.stride / divisor;
  std::vector<SpatialAxis> phases(static_cast<size_t>(std::min(along.stride, along.places)), whole);
  for (size_t remainder = 0; remainder < phases.size(); ++remainder) {
    SpatialAxis& phase = phases[remainder];
    const auto at = static_cast<int64_t>(remainder);
    phase.out_first += at * along.out_stride;
    phase.along.places = (along.places - 1 - at) / along.stride + 1;
    phase.along.taps = 0;
    phase.along.stride = 1;
    phase.along.start = 0;
    phase.along.end = 0;
    phase.along.dilation = along.dilation / divisor;
    phase.along.out_stride *= along.stride;
  }
  for (int64_t k = 0; k < std::min(apart, along.taps); ++k) {
    // The results that this tap reaches, and every one so many taps further.
    int64_t remainder = (k * along.dilation - along.start) % along.stride;
    if (remainder < 0) remainder += along.stride;
    if (remainder >= static_cast<int64_t>(phases.size())) continue;
    SpatialAxis& phase = phases[static_cast<size_t>(remainder)];
    phase.along.taps = (along.taps - 1 - k) / apart + 1;
    // In the order in which they lie on elements, the last one first.
    const int64_t last = k + (phase.along.taps - 1) * apart;
    phase.along.start = -(remainder + along.start - last * along.dilation) / along.stride;
    phase.tap_first += last * whole.tap_step;
    phase.tap_step *= -apart;
  }
  return phases;
}

// Places that follow each other in both tensors, of windows of one tap, become one dimension; and what has
// one place and one tap stands before the others. The order of the taps stays what it is.
inline SpatialAxes simplified(SpatialAxes axes) {
  for (size_t i = axes.size() - 1; i > 0; --i) {
    SpatialAxis& outer = axes[i - 1];
    SpatialAxis& inner = axes[i];
    const auto is_plain = [](const SpatialAxis& axis) { return axis.along.taps == 1 && !axis.has_padding(); };
    const int64_t step = inner.along.stride * inner.along.in_stride;
    const bool follow =
        outer.along.places == 1 || (outer.along.stride * outer.along.in_stride == inner.along.places * step &&
                                    outer.along.out_stride == inner.along.places * inner.along.out_stride);
    if (!is_plain(outer) || !is_plain(inner) || !follow) continue;
    SpatialAxis merged = inner;
    const int64_t places = outer.along.places * inner.along.places;
    merged.in_first += outer.in_first + outer.along.origin(0) * outer.along.in_stride +
                       inner.along.origin(0) * inner.along.in_stride;
    merged.tap_first += outer.tap_first;
    merged.out_first += outer.out_first;
    merged.along = {places, places, 1, 1, 0, 0, 1, step, inner.along.out_stride};
    inner = merged;
    outer = {{1, 1, 1, 1, 0, 0, 1, 0, 0}};
  }
  std::stable_partition(axes.begin(), axes.end(), [](const SpatialAxis& axis) {
    return axis.along.places == 1 && axis.along.taps == 1 && axis.along.size == 1;
  });
  return axes;
}

// What planes have along a dimension: slices of one length. Index i of a slice is the position that lies
// `origins` behind where the window of place i begins, so that a tap of place o is at o + its shift.
struct Slices {
  int64_t length = 1;
  std::vector<int64_t> origins;
  // Of each tap.
  std::vector<int64_t> slice;
  std::vector<int64_t> shift;

  int64_t count() const { return static_cast<int64_t>(origins.size()); }
  int64_t size() const { return count() * length; }
  int64_t most_shift(int64_t block) const { return length - block; }
};

// A slice for each phase of the stride, which its taps share.
inline Slices shared_slices(const Sliding& along, int64_t block) {
  Slices found;
  int64_t most = 0;
  for (int64_t k = 0; k < along.taps; ++k) {
    const int64_t phase = k * along.dilation % along.stride;
    const auto at = std::find(found.origins.begin(), found.origins.end(), phase);
    found.slice.push_back(at - found.origins.begin());
    if (at == found.origins.end()) found.origins.push_back(phase);
    found.shift.push_back(k * along.dilation / along.stride);
    most = std::max(most, found.shift.back());
  }
  found.length = block + most;
  return found;
}

// A slice for each tap, as im2col has it along this dimension.
inline Slices separate_slices(const Sliding& along, int64_t block) {
  Slices found;
  for (int64_t k = 0; k < along.taps; ++k) {
    found.origins.push_back(k * along.dilation);
    found.slice.push_back(k);
    found.shift.push_back(0);
  }
  found.length = block;
  return found;
}

ANYDML_ISA_END
