// What a movement consists of: copies into one output each, which threads share by parts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "movement/tuning.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// Parts follow the order of the output. Immutable, as plans are.
class Copy {
 public:
  Copy(std::string name, int64_t bytes) : name_(std::move(name)), bytes_(bytes) {}
  virtual ~Copy() = default;
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  virtual int64_t parts() const = 0;
  // Copies the parts [first, last).
  virtual void run(int64_t first, int64_t last, const std::byte* in, std::byte* out,
                   bool non_temporal) const = 0;

  // Whether copies of several outputs are likely to read the same lines of the input.
  virtual bool shares_lines() const { return true; }

  const std::string& name() const { return name_; }
  // Of the output.
  int64_t bytes() const { return bytes_; }

 private:
  std::string name_;
  int64_t bytes_;
};

inline int64_t steps_of(std::span<const Loop> loops) {
  int64_t steps = 1;
  for (const Loop& loop : loops) steps *= loop.size;
  return steps;
}

inline int64_t divided_up(int64_t size, int64_t by) { return (size + by - 1) / by; }

// A loop over the blocks of `block` steps of another one.
inline Loop blocks_of(const Loop& loop, int64_t block) {
  return {divided_up(loop.size, block), loop.in * block, loop.out * block};
}

// Whether the output's bytes follow each other in the order of the loops, which are around a unit.
inline bool is_packed(std::span<const Loop> loops, int64_t unit) {
  for (size_t d = loops.size(); d-- > 0; unit *= loops[d].size) {
    if (loops[d].out != unit) return false;
  }
  return true;
}

// The bytes of the blocks within which the order is another one than in the input, where blocks have the same
// places in both tensors and fit the second cache: the next one is prefetched from its begin to its end, as
// memory is read fastest. Else 0.
inline int64_t block_of(std::span<const Loop> loops) {
  const auto inner = std::ranges::find_if(loops, [](const Loop& loop) { return loop.in != loop.out; });
  if (inner == loops.begin() || inner == loops.end()) return 0;
  const int64_t block = (inner - 1)->out;
  return kFewestBlockBytes <= block && block <= kTurnBytes ? block : 0;
}

inline bool is_element(int64_t unit) { return unit <= 16 && (unit & (unit - 1)) == 0; }

// A place in a nest of loops, of which the last one is the fastest.
class LoopCursor {
 public:
  static constexpr size_t kMostLoops = 32;

  LoopCursor(std::span<const Loop> loops, int64_t step) : loops_(loops) {
    for (size_t d = loops.size(); d-- > 0;) {
      index_[d] = d == 0 ? step : step % loops[d].size;
      step /= loops[d].size;
      in_ += index_[d] * loops[d].in;
      out_ += index_[d] * loops[d].out;
    }
  }

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  int64_t index(size_t loop) const { return index_[loop]; }

  void advance() {
    for (size_t d = loops_.size(); d-- > 0;) {
      const Loop& loop = loops_[d];
      in_ += loop.in;
      out_ += loop.out;
      if (++index_[d] < loop.size) return;
      in_ -= loop.size * loop.in;
      out_ -= loop.size * loop.out;
      index_[d] = 0;
    }
  }

 private:
  std::span<const Loop> loops_;
  std::array<int64_t, kMostLoops> index_{};
  int64_t in_ = 0;
  int64_t out_ = 0;
};

}  // namespace
ANYDML_ISA_END
