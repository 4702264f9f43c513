// The loops of a reduction: rows, which are reduced, by columns, which are kept, and the loops around them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Of loops that are reduced, `out` is the step of the index, which is never below 0.
struct ReduceGeometry {
  int64_t in_start = 0;
  int64_t out_start = 0;
  std::vector<Loop> planes;  // kept
  Loop columns{1, 0, 0};
  std::vector<Loop> outer;  // reduced
  Loop rows{1, 0, 0};
  Loop cells{1, 0, 0};   // kept, between the rows, where columns lie further apart
  Loop beside{1, 0, 0};  // kept, planes whose columns have their accumulators behind each other
};

inline int64_t count_of(const std::vector<Loop>& loops) {
  int64_t count = 1;
  for (const Loop& loop : loops) count *= loop.size;
  return count;
}

// The step that the i-th of the steps of nested loops has.
struct Offsets {
  int64_t in;
  int64_t out;
};
inline Offsets offsets_at(const std::vector<Loop>& loops, int64_t i) {
  Offsets offsets{0, 0};
  if (loops.empty()) return offsets;
  for (size_t k = loops.size() - 1; k > 0; --k) {
    offsets.in += i % loops[k].size * loops[k].in;
    offsets.out += i % loops[k].size * loops[k].out;
    i /= loops[k].size;
  }
  offsets.in += i * loops[0].in;
  offsets.out += i * loops[0].out;
  return offsets;
}

// The place of the loop whose elements are nearest to each other; those that repeat one element come last.
inline int64_t nearest(const std::vector<Loop>& loops) {
  const auto distance = [](const Loop& loop) { return static_cast<uint64_t>(std::abs(loop.in)) - 1; };
  return std::ranges::min_element(loops, {}, distance) - loops.begin();
}

// Whether rows come in the order of their indices, so that the first of equal elements is the one that is met
// first.
inline bool indices_are_in_order(const ReduceGeometry& geometry) {
  int64_t inner = geometry.rows.size * geometry.rows.out;
  for (auto loop = geometry.outer.rbegin(); loop != geometry.outer.rend(); ++loop) {
    if (loop->out < inner) return false;
    inner = loop->size * loop->out;
  }
  return true;
}

// Without indices loops run upwards in the input. With them they run in the order of the indices, which count
// from the end where the last of equal elements is looked for.
inline ReduceGeometry geometry_of(const Layout& in, const Layout& out, const std::vector<int64_t>& axes,
                                  bool has_indices, bool from_the_end) {
  ReduceGeometry geometry;
  std::vector<Loop> reduced;
  int64_t index_step = 1;
  for (auto d = static_cast<int64_t>(in.sizes.size()); d-- > 0;) {
    const auto at = static_cast<size_t>(d);
    Loop loop{in.sizes[at], in.strides[at], out.strides[at]};
    const bool is_reduced = std::ranges::find(axes, d) != axes.end();
    require(out.sizes[at] == (is_reduced ? 1 : loop.size),
            "the sizes of the output are not those of the input");
    if (is_reduced) loop.out = has_indices ? index_step : loop.in;
    if (is_reduced) index_step *= loop.size;
    if (is_reduced && has_indices ? from_the_end : loop.in < 0) {
      geometry.in_start += (loop.size - 1) * loop.in;
      loop.in = -loop.in;
      if (!is_reduced) geometry.out_start += (loop.size - 1) * loop.out;
      if (!is_reduced || !has_indices) loop.out = -loop.out;
    }
    std::vector<Loop>& loops = is_reduced ? reduced : geometry.planes;
    loops.insert(loops.begin(), loop);
  }
  geometry.planes = fold(std::move(geometry.planes));
  geometry.outer = fold(std::move(reduced));
  if (!geometry.planes.empty()) geometry.columns = take(geometry.planes, nearest(geometry.planes));
  if (!geometry.outer.empty()) geometry.rows = take(geometry.outer, nearest(geometry.outer));
  return geometry;
}

ANYDML_ISA_END
