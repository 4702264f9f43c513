// What scans go through: the axis, and the lines along it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

// The axis in the order of traversal, and the lines along it, which are independent of each other.
struct ScanGeometry {
  Loop axis;
  int64_t in_start;
  int64_t out_start;
  std::vector<Loop> lines;
};

// The lines, counted through.
struct Lines {
  std::vector<Loop> outer;
  Loop inner;

  explicit Lines(std::vector<Loop> lines) : outer(std::move(lines)), inner(take_innermost(outer)) {}

  int64_t outer_count() const {
    int64_t count = 1;
    for (const Loop& loop : outer) count *= loop.size;
    return count;
  }

  // Calls body(in, out) with where the inner loop numbered i starts.
  template <class Body>
  void at(int64_t i, const std::byte* in, std::byte* out, const Body& body) const {
    for (auto loop = outer.rbegin(); loop != outer.rend(); ++loop) {
      in += i % loop->size * loop->in;
      out += i % loop->size * loop->out;
      i /= loop->size;
    }
    body(in, out);
  }

  // Calls body(in, out, count) for every run of lines, `count` steps of the inner loop, among those from
  // `begin` to `end`.
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

template <class T>
int64_t bytes_of(const ScanGeometry& geometry) {
  int64_t bytes = geometry.axis.size * static_cast<int64_t>(sizeof(T));
  for (const Loop& line : geometry.lines) bytes *= line.size;
  return bytes;
}

ANYDML_ISA_END
