// What tiles prefetch while they multiply.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "dense/tile.h"
#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// What comes next, some bytes after others, prefetched while tiles are multiplied: memory behind the second
// cache is slow.
class Ahead {
 public:
  // The line of every `step` bytes for each of a tile's depth.
  void add(const void* from, int64_t size, int64_t step) {
    parts_[count_++] = {static_cast<const std::byte*>(from), size, std::min(step, kLine)};
  }
  void prefetch(DenseTile& tile) {
    for (Part& part : parts_) {
      if (part.size <= 0) continue;
      tile.ahead = part.from;
      tile.ahead_step = part.step;
      part.from += tile.parts * tile.depth * part.step;
      part.size -= tile.parts * tile.depth * part.step;
      return;
    }
  }

 private:
  struct Part {
    const std::byte* from;
    int64_t size;
    int64_t step;
  };
  std::array<Part, 3> parts_{};
  size_t count_ = 0;
};

ANYDML_ISA_END
