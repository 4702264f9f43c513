// The left matrix of a convolution (im2col): what lies under the filter at each place, a row for each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "convolution/weights.h"
#include "nhwc/windows.h"
#include "platform/isa.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Of a result of a convolution, in the order of the rows.
struct ResultPlace {
  int64_t image, y, x;

  ResultPlace(const Sides& sides, int64_t row)
      : image(row / sides.width.places / sides.height.places),
        y(row / sides.width.places % sides.height.places),
        x(row % sides.width.places) {}

  void move(const Sides& sides) {
    if (++x < sides.width.places) return;
    x = 0;
    if (++y < sides.height.places) return;
    y = 0;
    ++image;
  }
  int64_t out(const Sides& sides) const {
    return image * sides.batch_out + y * sides.height.out_stride + x * sides.width.out_stride;
  }
};

// Elements side by side, as singles.
inline void read_run(bool is_half, const std::byte* from, float* to, int64_t count) {
  if (is_half) return widen_run(from, to, count);
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

struct Gathering {
  const Sides& sides;
  bool is_half;
  int64_t channel_in;
  // Elements from row to row, and bytes from place to place in the input.
  int64_t row;
  int64_t step;

  int64_t item() const { return is_half ? 2 : 4; }

  // What lies under the filter at some places, a row for each, zeros for padding.
  void gather(const std::byte* from, int64_t begin, int64_t end, float* to) const {
    const auto& [batch, batch_in, batch_out, channels, height, width] = sides;
    ResultPlace place(sides, begin);
    for (int64_t number = begin; number < end;) {
      // Of places side by side.
      const int64_t count = std::min(end - number, width.places - place.x);
      const auto [top, bottom] = height.inside(place.y);
      const std::byte* const image = from + place.image * batch_in;
      for (int64_t y = 0; y < height.taps; ++y) {
        const int64_t line = height.origin(place.y) + y * height.dilation;
        float* const part = to + y * width.taps * channels;
        if (y < top || y >= bottom) {
          for (int64_t i = 0; i < count; ++i) {
            std::fill_n(part + i * row, width.taps * channels, 0.0f);
          }
        } else if (channel_in == item()) {
          gather_channels(image + line * height.in_stride, place.x, count, part);
        } else {
          gather_places(image + line * height.in_stride, place.x, count, part);
        }
      }
      number += count;
      to += count * row;
      place = ResultPlace(sides, number);
    }
  }

  // Where channels follow each other.
  void gather_channels(const std::byte* line, int64_t place, int64_t count, float* to) const {
    const int64_t channels = sides.channels;
    const Sliding& width = sides.width;
    const bool is_line = width.dilation == 1 && width.in_stride == channels * item();
    for (int64_t i = 0; i < count; ++i, to += row) {
      const auto [first, last] = width.inside(place + i);
      const std::byte* const at = line + width.origin(place + i) * width.in_stride;
      std::fill_n(to, first * channels, 0.0f);
      const int64_t some = is_line ? last - first : 1;
      for (int64_t x = first; x < last; x += some) {
        read_run(is_half, at + x * width.dilation * width.in_stride, to + x * channels, some * channels);
      }
      std::fill_n(to + last * channels, (width.taps - last) * channels, 0.0f);
    }
  }

  // Where they do not: one tap and channel of all places after the other, as channels may be few.
  void gather_places(const std::byte* line, int64_t place, int64_t count, float* to) const {
    const Sliding& width = sides.width;
    for (int64_t x = 0; x < width.taps; ++x) {
      const int64_t first = width.origin(place) + x * width.dilation;
      // Those before which, and at which, the tap lies on an element: 0 <= first + i * stride < size.
      const int64_t begin = std::clamp<int64_t>((width.stride - 1 - first) / width.stride, 0, count);
      const int64_t end =
          std::clamp<int64_t>((width.size - first + width.stride - 1) / width.stride, begin, count);
      for (int64_t c = 0; c < sides.channels; ++c, ++to) {
        const std::byte* const from = line + first * width.in_stride + c * channel_in;
        for (int64_t i = 0; i < begin; ++i) to[i * row] = 0;
        for (int64_t i = begin; i < end; ++i) to[i * row] = load_float(is_half, from + i * step);
        for (int64_t i = end; i < count; ++i) to[i * row] = 0;
      }
    }
  }
};

ANYDML_ISA_END
