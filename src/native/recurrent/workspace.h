// A call of a recurrent layer: the addresses of its tensors, and its memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "platform/isa.h"
#include "recurrent/layer.h"

ANYDML_ISA_BEGIN

// How a call is divided among threads: into chunks of units, and, where threads do not meet, into groups of
// sequences, each of which goes through all chunks.
struct WorkDivision {
  int64_t chunks = 1;
  int64_t groups = 1;
};

// A call: its memory, of which the weights of a direction and the states of sequences are shared.
struct RecurrentCall {
  std::array<const void*, kMostInputs> inputs{};
  void* const* outputs = nullptr;
  WorkDivision division;
  int64_t batch = 0;    // sequences at a time
  int64_t steps = 0;    // that are computed ahead
  int state_level = 0;  // of the panels of R, and of W
  int input_level = 0;
  float* weights = nullptr;
  float* input_weights = nullptr;
  float* input_bias = nullptr;
  float* state_bias = nullptr;
  float* peepholes = nullptr;
  float* sums = nullptr;      // by step and sequence; units of a chunk lie together, gate by gate
  std::array<float*, 2> h{};  // of the step before, and of this one
  float* c = nullptr;
  float* reset = nullptr;
  float* rows = nullptr;
  float* panels = nullptr;

  const std::byte* in(const LayerTensor& place) const {
    return static_cast<const std::byte*>(inputs[static_cast<size_t>(place.tensor)]);
  }
  std::byte* out(const LayerTensor& place) const {
    return static_cast<std::byte*>(outputs[static_cast<size_t>(place.tensor)]);
  }
};

// The memory of some parts, in floats: each begins a line of the caches.
inline constexpr int64_t kFloatsOfLine = 16;
using MemoryParts = std::span<const std::pair<float**, int64_t>>;

inline int64_t whole_lines(int64_t floats) {
  return (floats + kFloatsOfLine - 1) / kFloatsOfLine * kFloatsOfLine;
}

inline int64_t floats_of(MemoryParts parts) {
  int64_t floats = 0;
  for (const auto& [to, count] : parts) floats += whole_lines(count);
  return floats;
}

inline void set_parts(MemoryParts parts, float* at) {
  for (const auto& [to, count] : parts) {
    *to = at;
    at += whole_lines(count);
  }
}

ANYDML_ISA_END
