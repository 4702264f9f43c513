// Loops over tensors of any strides: along some axes is summed, the others are kept. One of them is gone
// along in runs, as buffers hold them; where it is summed, a run is of one group, and where it is kept, each
// element of a run is of a group of its own, a column.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "core/cold.h"
#include "core/layout.h"
#include "normalization/runs.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

inline constexpr size_t kMostTensors = 8;
// In bytes, of each tensor; 0 where it broadcasts.
using Steps = std::array<int64_t, kMostTensors>;

struct Axis {
  int64_t size = 1;
  Steps steps{};
  bool is_summed = false;
  // Of an element's number in its group, in row-major order.
  int64_t number = 0;
};

inline int64_t count_of(std::span<const Axis> axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

// A place in a nest of axes, of which the last one is the fastest.
class Walk {
 public:
  static constexpr size_t kMostAxes = 16;

  Walk(std::span<const Axis> axes, int64_t place) : axes_(axes) {
    for (size_t d = axes.size(); d-- > 0; place /= axes[d].size) {
      index_[d] = place % axes[d].size;
      move(axes[d], index_[d]);
    }
  }

  int64_t offset(size_t tensor) const { return offsets_[tensor]; }
  int64_t number() const { return number_; }

  void advance() {
    for (size_t d = axes_.size(); d-- > 0;) {
      move(axes_[d], 1);
      if (++index_[d] < axes_[d].size) return;
      move(axes_[d], -axes_[d].size);
      index_[d] = 0;
    }
  }

 private:
  void move(const Axis& axis, int64_t by) {
    for (size_t k = 0; k < kMostTensors; ++k) offsets_[k] += by * axis.steps[k];
    number_ += by * axis.number;
  }

  std::span<const Axis> axes_;
  std::array<int64_t, kMostAxes> index_{};
  Steps offsets_{};
  int64_t number_ = 0;
};

struct Geometry {
  std::vector<Axis> kept;
  std::vector<Axis> summed;
  Axis run;

  bool by_columns() const { return !run.is_summed; }
  int64_t pieces() const { return (run.size + kRun - 1) / kRun; }
  // What has states of its own: a group, or columns side by side.
  int64_t tiles() const { return count_of(kept) * (by_columns() ? pieces() : 1); }
  // The runs of a tile.
  int64_t units() const { return count_of(summed) * (by_columns() ? 1 : pieces()); }
  int64_t longest() const { return std::min(run.size, kRun); }
  int64_t elements() const { return count_of(kept) * count_of(summed) * run.size; }
};

// Runs shorter than this leave vectors empty, and are gone along another axis where one is long.
inline constexpr int64_t kShortRun = 32;

// Merges axes that are one in all tensors, and chooses that of runs: mostly the one along which the elements
// of tensor `guide` lie closest.
ANYDML_COLD inline Geometry geometry_of(std::vector<Axis> axes, size_t guide, int64_t shortest = kShortRun) {
  std::erase_if(axes, [](const Axis& axis) { return axis.size == 1; });
  std::ranges::stable_sort(axes, [&](const Axis& a, const Axis& b) {
    return std::abs(a.steps[guide]) > std::abs(b.steps[guide]);
  });
  std::vector<Axis> merged;
  for (const Axis& inner : axes) {
    const auto continues = [&](const Axis& outer) {
      for (size_t k = 0; k < kMostTensors; ++k) {
        if (outer.steps[k] != inner.size * inner.steps[k]) return false;
      }
      return outer.is_summed == inner.is_summed && outer.number == inner.size * inner.number;
    };
    if (!merged.empty() && continues(merged.back())) {
      const int64_t size = merged.back().size * inner.size;
      merged.back() = inner;
      merged.back().size = size;
    } else {
      merged.push_back(inner);
    }
  }
  Geometry geometry;
  if (merged.empty()) return geometry;
  size_t chosen = merged.size() - 1;
  for (size_t d = merged.size(); d-- > 0 && merged[chosen].size < shortest;) {
    if (merged[d].size >= shortest) chosen = d;
  }
  geometry.run = merged[chosen];
  merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(chosen));
  for (const Axis& axis : merged) (axis.is_summed ? geometry.summed : geometry.kept).push_back(axis);
  return geometry;
}

// The axes of an operator whose tensors, inputs first, have the sizes of the elements or 1.
ANYDML_COLD inline std::vector<Axis> axes_of(const std::vector<Layout>& inputs,
                                             const std::vector<Layout>& outputs,
                                             const std::vector<bool>& summed) {
  const std::vector<int64_t>& sizes = tensor(outputs, 0).sizes;
  require(inputs.size() + outputs.size() <= kMostTensors && sizes.size() <= Walk::kMostAxes, "too much");
  std::vector<Axis> axes(sizes.size());
  int64_t number = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    axes[d].size = sizes[d];
    axes[d].is_summed = summed[d];
    axes[d].number = summed[d] ? number : 0;
    number *= summed[d] ? sizes[d] : 1;
  }
  const auto add = [&](const Layout& layout, size_t k) {
    if (!layout.present) return;
    require(layout.sizes.size() == sizes.size(), "the dimensions of tensors differ");
    for (size_t d = 0; d < sizes.size(); ++d) {
      require(layout.sizes[d] == sizes[d] || layout.sizes[d] == 1, "a tensor does not broadcast");
      axes[d].steps[k] = layout.sizes[d] == 1 ? 0 : layout.strides[d];
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) add(inputs[i], i);
  for (size_t i = 0; i < outputs.size(); ++i) add(outputs[i], inputs.size() + i);
  return axes;
}

ANYDML_ISA_END
