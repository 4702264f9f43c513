// Where the operands of attention lie, and what they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/kernel_plan.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

struct Sizes {
  int64_t batch, queries, keys, past, query_heads, heads, size, value_size;

  int64_t shared() const { return query_heads / heads; }
  int64_t total() const { return past + keys; }
};

// Where elements of a tensor lie: those of four dimensions, which differ from tensor to tensor.
struct Place {
  int64_t tensor = -1;  // its number among inputs, or outputs; -1 where there is none
  int64_t offset = 0;
  std::array<int64_t, 4> strides{};

  bool is_there() const { return tensor >= 0; }
  int64_t at(int64_t i, int64_t j, int64_t k) const {
    return offset + i * strides[0] + j * strides[1] + k * strides[2];
  }
};

struct Attention {
  Sizes sizes;
  double scale;
  double filter;  // what is added to masked scores
  // By sequence, head, position and element.
  Place query, key, value, past_key, past_value, output, present_key, present_value;
  std::array<int64_t, 2> present_lengths;
  Place bias;            // the last stride is that of its elements
  Place mask, relative;  // by sequence, head, query and key
  Place ends, starts;    // of what is not masked, by sequence
  Place lengths;         // by sequence
  DataType length_type;
};

template <class T>
const std::byte* bytes_of(const T* const* tensors, const Place& place) {
  return static_cast<const std::byte*>(tensors[static_cast<size_t>(place.tensor)]);
}

ANYDML_ISA_END
