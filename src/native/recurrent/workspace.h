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

// A call: its memory, of which the weights of a direction and the states of sequences are shared.
struct RecurrentCall {
  std::array<const void*, kMostInputs> inputs{};
  void* const* outputs = nullptr;
  int64_t chunks = 1;
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

// Memory for parts of so many floats, each of which begins a line of the caches.
inline std::unique_ptr<float[]> lines_for(std::span<const std::pair<float**, int64_t>> parts) {
  constexpr int64_t kLine = 16;  // floats
  int64_t size = kLine;
  for (const auto& [to, count] : parts) size += (count + kLine - 1) / kLine * kLine;
  std::unique_ptr<float[]> memory(new float[static_cast<size_t>(size)]);
  float* at = memory.get();
  at += (64 - reinterpret_cast<uintptr_t>(at) % 64) % 64 / sizeof(float);
  for (const auto& [to, count] : parts) {
    *to = at;
    at += (count + kLine - 1) / kLine * kLine;
  }
  return memory;
}

ANYDML_ISA_END
