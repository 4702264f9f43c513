// The memory of accumulators: of a thread's strip, and of the results of chunks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "platform/isa.h"
#include "reduce/kernel.h"
#include "reduce/tuning.h"

ANYDML_ISA_BEGIN

// A vector more than there are columns may be read from an array, and of fewer columns than a vector has
// lanes one that ends with them, which is written back.
inline constexpr int64_t kPadding = tuning::kLeastBytes;
inline constexpr int64_t kMostNumberSize = 8;
// 64 lines that are cells.
inline constexpr int64_t kMostTileBytes = std::max(tuning::kTileBytes, 64 * tuning::kMostCellBytes);

constexpr int64_t aligned(int64_t bytes) { return (bytes + kPadding - 1) / kPadding * kPadding; }

// Arrays of accumulators.
template <int64_t kBytes>
class StripMemory {
 public:
  // Of so many columns.
  Strip strip(const ReduceKernel& kernel, int64_t columns) {
    std::byte* at = memory_ + kPadding;
    const auto array = [&](int64_t size) {
      std::byte* const begin = at;
      if (size > 0) at += aligned(columns * size) + kPadding;
      return begin;
    };
    const int64_t recent = kernel.has_indices() ? kernel.sizes[0] : 0;
    return {{array(kernel.sizes[0]), array(kernel.sizes[1]), array(kernel.sizes[2])},
            {array(recent), array(recent)}};
  }

 private:
  alignas(kPadding) std::byte memory_[kBytes + 11 * kPadding];
};
using WholeStripMemory = StripMemory<tuning::kStripBytes>;
using BatchMemory = StripMemory<tuning::kBatchLines * 4 * kMostNumberSize>;

// The accumulators of all chunks.
class Partials {
 public:
  Partials(const ReduceKernel& kernel, int64_t columns, int64_t count)
      : second_(aligned(columns * kernel.sizes[0])),
        third_(second_ + aligned(columns * kernel.sizes[1])),
        bytes_(third_ + aligned(columns * kernel.sizes[2])),
        memory_(new std::byte[static_cast<size_t>(count * bytes_)]) {}

  Strip at(int64_t i) const {
    std::byte* const first = memory_.get() + i * bytes_;
    return {{first, first + second_, first + third_}, {first, first}};
  }

 private:
  int64_t second_;
  int64_t third_;
  int64_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
};

ANYDML_ISA_END
