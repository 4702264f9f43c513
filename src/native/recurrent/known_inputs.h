// What is prepared of inputs that are known before a call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "dense/singles.h"
#include "platform/isa.h"
#include "recurrent/layer.h"
#include "recurrent/workspace.h"

ANYDML_ISA_BEGIN

struct KnownInputs {
  WorkDivision division;  // that the weights are packed for
  int64_t floats = 0;
  std::unique_ptr<const Singles64> memory;
  float* state = nullptr;  // R, packed, of one direction after the other
  float* input = nullptr;  // W
  std::array<std::unique_ptr<std::byte[]>, kMostInputs> copies;
};

// A packed copy of a tensor, whose strides become its own.
inline std::unique_ptr<std::byte[]> copied(LayerTensor& tensor, const void* from, int64_t item) {
  int64_t size = item;
  std::array<int64_t, 4> strides{};
  for (size_t d = 4; d-- > 0; size *= tensor.sizes[d]) strides[d] = size;
  std::unique_ptr<std::byte[]> copy(new std::byte[static_cast<size_t>(size)]);
  for (int64_t i = 0; i < size / item; ++i) {
    const auto* at = static_cast<const std::byte*>(from);
    for (size_t d = 0; d < 4; ++d) at += i * item / strides[d] % tensor.sizes[d] * tensor.strides[d];
    std::memcpy(copy.get() + i * item, at, static_cast<size_t>(item));
  }
  tensor.strides = strides;
  return copy;
}

ANYDML_ISA_END
