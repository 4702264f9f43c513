// Blocked broadcasting: loops over the elements of a tensor, along which a parameter belongs to a block of
// elements that follow each other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// Element i of a loop has the parameter at step * (i / repeat).
struct Blocks {
  int64_t step = 0;
  int64_t repeat = 1;
};

// Steps of reals and scales are in bytes; those of integers and zero points in bytes, or in halves of bytes
// where they have 4 bits.
struct BlockLoop {
  int64_t size;
  int64_t real;
  int64_t code;
  Blocks scale;
  Blocks zero;
};

// The blocks of two loops, one within the other, as those of a loop over both; false where they are none.
inline bool merge(Blocks outer, const Blocks& inner, int64_t inner_size, Blocks& both) {
  if (inner.step == 0) {
    both = {outer.step, outer.step == 0 ? 1 : outer.repeat * inner_size};
    return true;
  }
  both = inner;
  return outer.repeat == 1 && outer.step == inner_size / inner.repeat * inner.step;
}

// The fewest loops over the same elements in the same order; at least one.
inline std::vector<BlockLoop> merged(const std::vector<BlockLoop>& loops) {
  std::vector<BlockLoop> found;
  for (const BlockLoop& inner : loops) {
    if (inner.size == 1) continue;
    if (!found.empty()) {
      BlockLoop& outer = found.back();
      Blocks scale;
      Blocks zero;
      if (outer.real == inner.size * inner.real && outer.code == inner.size * inner.code &&
          merge(outer.scale, inner.scale, inner.size, scale) &&
          merge(outer.zero, inner.zero, inner.size, zero)) {
        outer = {outer.size * inner.size, inner.real, inner.code, scale, zero};
        continue;
      }
    }
    found.push_back(inner);
  }
  if (found.empty()) found.push_back({1, 0, 0, {}, {}});
  return found;
}

// Walks a nest of loops, with the offsets of all tensors.
class BlockCursor {
 public:
  static constexpr size_t kMostLoops = 8;

  BlockCursor(std::span<const BlockLoop> loops, int64_t step) : loops_(loops) {
    require(loops.size() <= kMostLoops, "more loops than a tensor has dimensions");
    for (size_t d = loops.size(); d-- > 0;) {
      const BlockLoop& loop = loops[d];
      const int64_t i = d == 0 ? step : step % loop.size;
      step /= loop.size;
      index_[d] = i;
      real_ += i * loop.real;
      code_ += i * loop.code;
      scale_ += i / loop.scale.repeat * loop.scale.step;
      zero_ += i / loop.zero.repeat * loop.zero.step;
    }
  }

  int64_t real() const { return real_; }
  int64_t code() const { return code_; }
  int64_t scale() const { return scale_; }
  int64_t zero() const { return zero_; }

  void advance() {
    for (size_t d = loops_.size(); d-- > 0;) {
      const BlockLoop& loop = loops_[d];
      real_ += loop.real;
      code_ += loop.code;
      if (++index_[d] < loop.size) {
        if (index_[d] % loop.scale.repeat == 0) scale_ += loop.scale.step;
        if (index_[d] % loop.zero.repeat == 0) zero_ += loop.zero.step;
        return;
      }
      real_ -= loop.size * loop.real;
      code_ -= loop.size * loop.code;
      scale_ -= (loop.size - 1) / loop.scale.repeat * loop.scale.step;
      zero_ -= (loop.size - 1) / loop.zero.repeat * loop.zero.step;
      index_[d] = 0;
    }
  }

 private:
  std::span<const BlockLoop> loops_;
  std::array<int64_t, kMostLoops> index_{};
  int64_t real_ = 0;
  int64_t code_ = 0;
  int64_t scale_ = 0;
  int64_t zero_ = 0;
};

// As many elements are written at once, and fewer than so many behind the last one.
constexpr int64_t kSpreadAtOnce = 16;

// to[i] = value for i < count, by whole vectors: what they write behind is not there yet.
ANYDML_INLINE void fill_forward(float* to, int64_t count, float value) {
  float lanes[kSpreadAtOnce];
  std::fill_n(lanes, kSpreadAtOnce, value);
  for (int64_t i = 0; i < count; i += kSpreadAtOnce) std::memcpy(to + i, lanes, sizeof(lanes));
}

// Writes the parameters of `count` elements of a loop from the first one on; value(offset) is one of them.
// Those that follow each other are kItem apart. Behind them there is room for kSpreadAtOnce.
template <int64_t kItem, class Value>
void spread(const Blocks& blocks, int64_t first, int64_t count, float* to, const Value& value) {
  if (blocks.step == 0) {
    fill_forward(to, count, value(0));
  } else if (blocks.repeat == 1 && blocks.step == kItem) {
    for (int64_t i = 0; i < count; ++i) to[i] = value((first + i) * kItem);
  } else if (blocks.repeat == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = value((first + i) * blocks.step);
  } else {
    int64_t block = first / blocks.repeat;
    int64_t left = blocks.repeat - first % blocks.repeat;
    for (const float* const end = to + count; to < end; ++block, left = blocks.repeat) {
      const int64_t size = std::min<int64_t>(left, end - to);
      fill_forward(to, size, value(block * blocks.step));
      to += size;
    }
  }
}

}  // namespace
ANYDML_ISA_END
