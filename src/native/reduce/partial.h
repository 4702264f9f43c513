// Partial results: the accumulators of a part of what is reduced, as they are, for a caller that combines
// those of several parts. An output of FLOAT64, which no desc has, asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "reduce/kernel.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Stores the numbers of each accumulator side by side: floats as doubles, all others bit for bit.
inline void store_partials(const ReduceKernel& kernel, const Strip& strip, int64_t columns, std::byte* out,
                           int64_t out_step) {
  for (int64_t i = 0; i < columns; ++i) {
    for (int64_t k = 0; k < 3 && kernel.sizes[k] > 0; ++k) {
      const std::byte* const number = strip.arrays[k] + i * kernel.sizes[k];
      std::byte* const to = out + i * out_step + k * 8;
      if (kernel.sizes[k] == 8) {
        std::memcpy(to, number, 8);
      } else {
        store(to, static_cast<double>(load<float>(number)));
      }
    }
  }
}

ANYDML_ISA_END
