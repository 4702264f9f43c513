// The filter and the bias of a convolution, as its kernel reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "convolution/axes.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/half.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

inline float load_float(bool is_half, const std::byte* from) {
  return is_half ? static_cast<float>(load<Half>(from)) : load<float>(from);
}

// Where the weights of a result are: those of its taps in their order, and of each tap those of the channels.
struct FilterRow {
  SpatialAxes axes;
  int64_t channels;
  int64_t channel_step;  // in bytes

  int64_t taps() const { return axes[0].along.taps * axes[1].along.taps * axes[2].along.taps; }
  int64_t size() const { return taps() * channels; }
  int64_t first() const { return axes[0].tap_first + axes[1].tap_first + axes[2].tap_first; }

  // The bytes from one to the next, where these are the same throughout; else 0.
  int64_t step() const {
    int64_t step = channel_step;
    int64_t count = channels;
    for (size_t d = axes.size(); d-- > 0;) {
      const int64_t taps = axes[d].along.taps;
      if (taps == 1) continue;
      if (count == 1) {
        step = axes[d].tap_step;
      } else if (axes[d].tap_step != step * count) {
        return 0;
      }
      count *= taps;
    }
    return step;
  }

  void pack(bool is_half, const std::byte* filter, float* to) const {
    // Rows of taps that follow each other are one.
    const bool is_one = axes[1].tap_step == axes[2].along.taps * axes[2].tap_step;
    const int64_t columns = axes[2].along.taps * (is_one ? axes[1].along.taps : 1);
    for (int64_t z = 0; z < axes[0].along.taps; ++z) {
      for (int64_t y = 0; y < (is_one ? 1 : axes[1].along.taps); ++y) {
        const std::byte* const from = filter + first() + z * axes[0].tap_step + y * axes[1].tap_step;
        if (!is_half) {
          gather_tile<uint32_t>({from, axes[2].tap_step, channel_step}, columns, channels,
                                reinterpret_cast<std::byte*>(to), channels * 4);
          to += columns * channels;
          continue;
        }
        for (int64_t x = 0; x < columns; ++x) {
          for (int64_t c = 0; c < channels; ++c)
            *to++ = load_float(is_half, from + x * axes[2].tap_step + c * channel_step);
        }
      }
    }
  }
};

struct PackedWeights {
  std::vector<float> filter;  // empty where it is read where it is
  std::vector<float> biases;  // of all results
};

ANYDML_ISA_END
