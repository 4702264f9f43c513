// The filter and the bias of a convolution, as its kernel reads them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "convolution/axes.h"
#include "convolution/planes.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

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

  // `room` is for size() floats.
  void pack(bool is_half, const std::byte* filter, float* to, float* room) const {
    const std::byte* from = filter + first();
    const int64_t item = is_half ? 2 : 4;
    if (step() == item) return read_run(is_half, from, to);
    SpatialAxes strides = axes;
    int64_t channel = channel_step;
    // What lies side by side is read in memory's order first, from the lowest address on, and becomes floats.
    if (std::abs(channel) * (channels - 1) + span(0) + span(1) + span(2) == item * (size() - 1)) {
      const auto lowest = [&] {
        int64_t bytes = std::min<int64_t>(0, channel) * (channels - 1);
        for (const SpatialAxis& axis : strides)
          bytes += std::min<int64_t>(0, axis.tap_step) * (axis.along.taps - 1);
        return bytes;
      };
      read_run(is_half, from + lowest(), room);
      for (SpatialAxis& axis : strides) axis.tap_step *= 4 / item;
      channel *= 4 / item;
      return pack_taps<float>(strides, channel, reinterpret_cast<const std::byte*>(room) - lowest(), to);
    }
    if (is_half) return pack_taps<Half>(strides, channel, from, to);
    pack_taps<float>(strides, channel, from, to);
  }

 private:
  void read_run(bool is_half, const std::byte* from, float* to) const {
    if (is_half) return widen_run(from, to, size());
    std::memcpy(to, from, static_cast<size_t>(size() * 4));
  }

  int64_t span(size_t d) const { return std::abs(axes[d].tap_step) * (axes[d].along.taps - 1); }

#if defined(ANYDML_ISA_AVX512)
  static __m512i lanes_apart(int step) {
    constexpr int kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    __m512i lanes;
    std::memcpy(&lanes, kLanes, sizeof(lanes));
    return (__m512i)((Vector<int32_t, 16>)lanes * step);
  }
#endif

  template <class T>
  void pack_taps(const SpatialAxes& strides, int64_t channel, const std::byte* from, float* to) const {
    for (int64_t z = 0; z < strides[0].along.taps; ++z) {
      for (int64_t y = 0; y < strides[1].along.taps; ++y) {
        for (int64_t x = 0; x < strides[2].along.taps; ++x) {
          const std::byte* at =
              from + z * strides[0].tap_step + y * strides[1].tap_step + x * strides[2].tap_step;
          int64_t c = 0;
#if defined(ANYDML_ISA_AVX512)
          if (std::is_same_v<T, float> && std::abs(channel) < int64_t{1} << 26) {
            for (; c + 16 <= channels; c += 16) {
              const __m512 some =
                  _mm512_mask_i32gather_ps(_mm512_setzero_ps(), kAllLanes,
                                           lanes_apart(static_cast<int>(channel)), at + c * channel, 1);
              std::memcpy(to + c, &some, sizeof(some));
            }
          }
#endif
          for (; c < channels; ++c) to[c] = static_cast<float>(load<T>(at + c * channel));
          to += channels;
        }
      }
    }
  }
};

struct PackedWeights {
  std::unique_ptr<float[]> filter;  // null where it is read where it is
  std::vector<float> biases;        // of all results
};

ANYDML_ISA_END
