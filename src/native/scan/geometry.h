// The loops of a scan: the axis, and the lines along it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

// The axis in the order of traversal, and the loops over the independent lines along it.
struct ScanGeometry {
  Loop axis;
  int64_t in_start;
  int64_t out_start;
  std::vector<Loop> lines;
};

// The loop over the lines that are nearest to each other in the input, which rows that the input has across
// are read by.
inline std::vector<Loop>::const_iterator nearest_line(const ScanGeometry& geometry) {
  return std::ranges::min_element(geometry.lines, {}, [](const Loop& line) { return std::abs(line.in); });
}

// The lines, numbered.
struct Lines {
  std::vector<Loop> outer;
  Loop inner;

  explicit Lines(std::vector<Loop> lines) : outer(std::move(lines)), inner(take_innermost(outer)) {}

  int64_t outer_count() const {
    int64_t count = 1;
    for (const Loop& loop : outer) count *= loop.size;
    return count;
  }

  // Calls body(in, out) with the addresses at which the inner loop numbered i starts.
  template <class Body>
  void at(int64_t i, const std::byte* in, std::byte* out, const Body& body) const {
    for (auto loop = outer.rbegin(); loop != outer.rend(); ++loop) {
      in += i % loop->size * loop->in;
      out += i % loop->size * loop->out;
      i /= loop->size;
    }
    body(in, out);
  }

  // Calls body(in, out, count) for every run of lines from `begin` to `end`, each of which is `count` steps
  // of the inner loop.
  template <class Body>
  void runs(int64_t begin, int64_t end, const std::byte* in, std::byte* out, const Body& body) const {
    while (begin < end) {
      const int64_t skipped = begin % inner.size;
      const int64_t count = std::min(inner.size - skipped, end - begin);
      at(begin / inner.size, in, out, [&](const std::byte* from, std::byte* to) {
        body(from + skipped * inner.in, to + skipped * inner.out, count);
      });
      begin += count;
    }
  }
};

ANYDML_ISA_END
