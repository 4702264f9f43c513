// Planes: copies of what lies under a block of places, as floats, with zeros for padding.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "convolution/axes.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/half.h"
#include "simd/strided_copy.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// A block of places.
struct PlaceBlock {
  std::array<int64_t, 3> first;
  std::array<int64_t, 3> size;
};

inline void widen_run(const std::byte* from, float* to, int64_t count) {
  int64_t i = 0;
#if defined(ANYDML_VECTORS)
  constexpr int64_t kLanes = kLanesOf<float>;
  for (; i + kLanes <= count; i += kLanes)
    store_vector(reinterpret_cast<std::byte*>(to + i), load_wide<Half, float>(from + i * 2));
  if (0 < i && i < count) {
    // The last ones with some that are done.
    i = count - kLanes;
    store_vector(reinterpret_cast<std::byte*>(to + i), load_wide<Half, float>(from + i * 2));
    return;
  }
#endif
  for (; i < count; ++i) to[i] = static_cast<float>(load<Half>(from + i * 2));
}

inline void widen_every_second(const std::byte* from, float* to, int64_t count) {
  int64_t i = 0;
#if defined(ANYDML_VECTORS)
  for (; i + 8 < count; i += 8) {
    const auto all = load_vector<Vector<uint16_t, 16>>(from + i * 4);
    const auto some = __builtin_shufflevector(all, all, 0, 2, 4, 6, 8, 10, 12, 14);
    store_vector(reinterpret_cast<std::byte*>(to + i), widen_row<Half, Vector<float>>(some));
  }
  if (0 < i && i < count) {
    // The last ones with some that are done, and with what lies before each, as nothing may be behind the
    // last.
    i = count - 8;
    const auto all = load_vector<Vector<uint16_t, 16>>(from + i * 4 - 2);
    const auto some = __builtin_shufflevector(all, all, 1, 3, 5, 7, 9, 11, 13, 15);
    store_vector(reinterpret_cast<std::byte*>(to + i), widen_row<Half, Vector<float>>(some));
    return;
  }
#endif
  for (; i < count; ++i) to[i] = static_cast<float>(load<Half>(from + i * 4));
}

// Elements that lie a step apart; of every second one the others are read too.
inline void copy_apart(const std::byte* from, int64_t step, float* to, int64_t count) {
  int64_t i = 0;
#if defined(ANYDML_VECTORS)
  if (step == 2 * static_cast<int64_t>(sizeof(float))) {
    using V = Vector<float, 8>;
    for (; i + 8 < count; i += 8) {
      const V low = load_vector<V>(from + i * step);
      const V high = load_vector<V>(from + i * step + sizeof(V));
      store_vector(reinterpret_cast<std::byte*>(to + i),
                   __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14));
    }
    if (0 < i && i < count) {
      // As above.
      i = count - 8;
      const V low = load_vector<V>(from + i * step - 4);
      const V high = load_vector<V>(from + i * step - 4 + sizeof(V));
      store_vector(reinterpret_cast<std::byte*>(to + i),
                   __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15));
      return;
    }
  }
#endif
  for (; i < count; ++i) to[i] = load<float>(from + i * step);
}

// Zeros, by whole vectors, of which the last may reach behind: a call of memset takes longer than most rows'
// padding.
inline void clear_run(float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += kLanesOf<float>)
    store_lanes<float, float>(reinterpret_cast<std::byte*>(to + i), Lanes<float, kLanesOf<float>>{});
}

// Of some channels, in bytes from channel to channel of the input, and floats of the planes.
class PlaneWriter {
 public:
  // `longest` are the sizes of whole blocks; those at the end may be smaller.
  PlaneWriter(bool is_half, int64_t channels, int64_t channel_in, int64_t plane,
              const std::array<int64_t, 3>& longest)
      : is_half_(is_half), channels_(channels), channel_in_(channel_in), plane_(plane), longest_(longest) {}

  // `from` is the first element of an image's group. Where padding is there already, as of a block before
  // that has it at the same places, it is left.
  void write(const SpatialAxes& axes, const std::array<Slices, 3>& slices, const PlaceBlock& block,
             const std::byte* from, float* to, bool is_padded) const {
    const auto& [depth, height, width] = slices;
    std::array<int64_t, 3> used;
    for (size_t d = 0; d < 3; ++d) used[d] = block.size[d] + slices[d].length - longest_[d];
    int64_t place = 0;
    const int64_t image = depth.length * height.length * width.length;
    for (const int64_t z_origin : depth.origins) {
      for (const int64_t y_origin : height.origins) {
        for (const int64_t x_origin : width.origins) {
          for (int64_t z = 0; z < used[0]; ++z) {
            const std::byte* const slab = at(axes[0], block.first[0] + z, z_origin, from);
            for (int64_t y = 0; y < used[1]; ++y) {
              const std::byte* const line =
                  slab == nullptr ? nullptr : at(axes[1], block.first[1] + y, y_origin, slab);
              row(axes[2].along, block.first[2], x_origin, used[2], line,
                  to + place + (z * height.length + y) * width.length, is_padded);
            }
          }
          place += image;
        }
      }
    }
    // What vectors read behind.
    for (int64_t c = 0; c < channels_ && !is_padded; ++c) {
      float* const behind = to + (c + 1) * plane_ - kLanesOf<float>;
      clear_run(to + c * plane_ + place, plane_ - place - kLanesOf<float>);
      clear_run(behind, kLanesOf<float>);
    }
  }

 private:
  // Null for padding.
  static const std::byte* at(const SpatialAxis& axis, int64_t index, int64_t origin, const std::byte* from) {
    const int64_t position = axis.along.origin(index) + origin;
    if (position < 0 || position >= axis.along.size) return nullptr;
    return from + position * axis.along.in_stride;
  }

  // Of each channel so many elements that belong to neighbouring places. What is cleared behind them is
  // written after them: rows follow each other in a plane, which has more room at its end.
  void row(const Sliding& along, int64_t first, int64_t origin, int64_t count, const std::byte* line,
           float* to, bool is_padded) const {
    const int64_t stride = along.stride;
    const int64_t position = along.origin(first) + origin;
    // Those before which, and at which, there are elements: 0 <= position + i * stride < size.
    const int64_t begin =
        line == nullptr ? count : std::clamp<int64_t>((stride - 1 - position) / stride, 0, count);
    const int64_t end =
        line == nullptr ? count
                        : std::clamp<int64_t>((along.size - position + stride - 1) / stride, begin, count);
    if (!is_padded && (begin > 0 || end < count)) {
      const int64_t channels = channels_;
      float* plane = to;
      for (int64_t c = 0; c < channels; ++c, plane += plane_) {
        clear_run(plane, begin);
        clear_run(plane + end, count - end);
      }
    }
    if (begin == end) return;
    const std::byte* const elements = line + (position + begin * stride) * along.in_stride;
    copy(elements, stride * along.in_stride, end - begin, to + begin);
  }

  void copy(const std::byte* from, int64_t step, int64_t count, float* to) const {
    if (is_half_) {
      copy_halves(from, step, count, to);
    } else if (step == 4) {
      const int64_t channels = channels_;
      const int64_t plane = plane_ * 4;
      const int64_t channel_in = channel_in_;
      auto* at = reinterpret_cast<std::byte*>(to);
      for (int64_t c = 0; c < channels; ++c, at += plane, from += channel_in) copy_short(at, from, count * 4);
    } else if (channel_in_ == 4 && channels_ > 1) {
      gather_tile<uint32_t>({from, channel_in_, step}, channels_, count, reinterpret_cast<std::byte*>(to),
                            plane_ * 4);
    } else {
      for (int64_t c = 0; c < channels_; ++c)
        copy_apart(from + c * channel_in_, step, to + c * plane_, count);
    }
  }

  void copy_halves(const std::byte* from, int64_t step, int64_t count, float* to) const {
    if (step == 2) {
      for (int64_t c = 0; c < channels_; ++c) widen_run(from + c * channel_in_, to + c * plane_, count);
      return;
    }
    if (step == 4) {
      for (int64_t c = 0; c < channels_; ++c)
        widen_every_second(from + c * channel_in_, to + c * plane_, count);
      return;
    }
    if (0 < step && step <= kNearHalves * 2) {
      // All of a run become floats, of which some are taken.
      constexpr int64_t kSome = 64;
      alignas(64) float floats[kSome * kNearHalves];
      for (int64_t c = 0; c < channels_; ++c) {
        for (int64_t i = 0; i < count; i += kSome) {
          const int64_t some = std::min(kSome, count - i);
          widen_run(from + c * channel_in_ + i * step, floats, (some - 1) * (step / 2) + 1);
          copy_apart(reinterpret_cast<const std::byte*>(floats), step * 2, to + c * plane_ + i, some);
        }
      }
      return;
    }
    // Some channels of some places at a time.
    constexpr int64_t kSide = 64;
    alignas(64) std::byte halves[kSide * kSide * 2];
    for (int64_t c = 0; c < channels_; c += kSide) {
      const int64_t channels = std::min(kSide, channels_ - c);
      for (int64_t i = 0; i < count; i += kSide) {
        const int64_t places = std::min(kSide, count - i);
        gather_tile<uint16_t>({from + c * channel_in_ + i * step, channel_in_, step}, channels, places,
                              halves, kSide * 2);
        for (int64_t k = 0; k < channels; ++k)
          widen_run(halves + k * kSide * 2, to + (c + k) * plane_ + i, places);
      }
    }
  }

  // Halves apart up to which those between them are converted, too.
  static constexpr int64_t kNearHalves = 4;

  bool is_half_;
  int64_t channels_;
  int64_t channel_in_;
  int64_t plane_;
  std::array<int64_t, 3> longest_;
};

ANYDML_ISA_END
