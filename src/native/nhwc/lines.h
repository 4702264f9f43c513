// A dense convolution by lines: windows are multiplied where they lie in the input, or in copies of its lines
// that have the padding of both sides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "dense/ahead.h"
#include "dense/tile.h"
#include "nhwc/dense.h"
#include "nhwc/nan.h"
#include "nhwc/tuning.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

inline DenseConvolution::Division DenseConvolution::divided_lines(int64_t parts, int64_t wanted) const {
  const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
  // More where the weights, which each block reads, are many.
  const int64_t bytes = std::clamp(depth_ * shape_.results * kItem / 4, kLinesBytes, kMostLinesBytes);
  const int64_t at_once = std::max<int64_t>(1, (bytes / line_ - reach() - 1) / height.stride + 1);
  const int64_t blocks =
      std::min(height.places, std::max((height.places + at_once - 1) / at_once, wanted / batch));
  const int64_t lines = (height.places + blocks - 1) / blocks;
  const int64_t copied = is_copied_ ? ((lines - 1) * height.stride + reach() + 1) * line_ / kItem : 0;
  // With room for what is read with the last.
  return {batch * blocks, parts, copied + lines * width.places * kPanel + kLanesOf<float>};
}

inline void DenseConvolution::multiply_lines(const Weights& weights, const std::byte* from, std::byte* to,
                                             int64_t image, Range lines, Range columns, float* room) const {
  const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
  const std::byte* const picture = from + image * batch_in;
  const int64_t origin = height.origin(lines.first);
  const std::byte* first = picture + origin * height.in_stride + width.origin(0) * width.in_stride;
  int64_t line = height.in_stride;
  float* sums = room;
  if (is_copied_) {
    const int64_t end = height.origin(lines.second - 1) + reach() + 1;
    copy_lines(picture, origin, end, reinterpret_cast<std::byte*>(room));
    first = reinterpret_cast<const std::byte*>(room);
    line = line_;
    sums += (end - origin) * line_ / kItem;
  }
  for (int64_t panel = columns.first; panel < columns.second; ++panel) {
    add_lines(weights, first, line, lines, panel, sums);
    finish_lines(weights, from, to, image, lines, panel, sums);
  }
}

// Lines of the input with what lies under the filter beside them, zeros for padding; those that there are.
inline void DenseConvolution::copy_lines(const std::byte* picture, int64_t begin, int64_t end,
                                         std::byte* to) const {
  const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
  const auto own = static_cast<size_t>(channels * kItem);
  const int64_t places = line_ / place_;
  const int64_t first = std::clamp<int64_t>(-width.origin(0), 0, places);
  const int64_t last = std::clamp<int64_t>(width.size - width.origin(0), first, places);
  for (int64_t i = begin; i < end; ++i, to += line_) {
    if (i < 0 || i >= height.size) continue;
    const std::byte* const line = picture + i * height.in_stride + width.origin(0) * width.in_stride;
    std::memset(to, 0, static_cast<size_t>(first * place_));
    if (place_ == width.in_stride && place_ == channels * kItem) {
      std::memcpy(to + first * place_, line + first * place_, static_cast<size_t>((last - first) * place_));
    } else {
      for (int64_t x = first; x < last; ++x) {
        std::memcpy(to + x * place_, line + x * width.in_stride, own);
      }
    }
    std::memset(to + last * place_, 0, static_cast<size_t>((places - last) * place_));
  }
}

// The sums of lines of results in a panel, taps that follow each other at once: their weights stay in the
// caches for all lines. A line's taps on padding above and below are left out, which adds zeros less.
inline void DenseConvolution::add_lines(const Weights& weights, const std::byte* first, int64_t line,
                                        Range lines, int64_t panel, float* sums) const {
  const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
  const bool is_whole = vectors() - panel * 2 > 1;
  const int64_t columns = is_whole ? kPanel : kLanes;
  const float* const biases = weights.bias.data() + panel * kPanel;
  const float* of_taps = weights.filter.data() + panel * kPanel * depth_;
  const int64_t tiles = (width.places + kMostRows - 1) / kMostRows;
  DenseTile tile{nullptr, width.stride * place_, kItem,  together_ * channels,
                 nullptr, columns * kItem,       biases, 0};
  for (int64_t y = 0; y < height.taps; ++y) {
    for (int64_t x = 0; x < width.taps; x += together_, of_taps += together_ * channels * columns) {
      tile.weights = reinterpret_cast<const std::byte*>(of_taps);
      const int64_t some = together_ * channels * columns;
      const bool is_last = of_taps + some == weights.filter.data() + weights.filter.size();
      Ahead ahead;
      const int64_t slots = (lines.second - lines.first) * tiles * tile.depth;
      if (!is_last) ahead.add(of_taps + some, some * kItem, some * kItem / slots + 1);
      for (int64_t i = lines.first; i < lines.second; ++i) {
        const auto [top, bottom] = height.inside(i);
        if (y < top || y >= bottom) continue;
        const int64_t below = height.origin(i) - height.origin(lines.first) + y * height.dilation;
        const std::byte* const from = first + below * line + x * width.dilation * place_;
        const bool is_first = y == top && x == 0;
        tile.start_step = is_first ? 0 : columns;
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t place = share_begin(t, tiles, width.places);
          const int64_t count = share_begin(t + 1, tiles, width.places) - place;
          float* const to = sums + ((i - lines.first) * width.places + place) * columns;
          tile.from = from + place * tile.row_step;
          tile.start = is_first ? biases : to;
          ahead.prefetch(tile);
          kMultiplyTile[is_whole][static_cast<size_t>(count - 1)](tile, to);
        }
      }
    }
  }
}

inline void DenseConvolution::finish_lines(const Weights& weights, const std::byte* from, std::byte* to,
                                           int64_t image, Range lines, int64_t panel, float* sums) const {
  const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
  const int64_t columns = vectors() - panel * 2 > 1 ? kPanel : kLanes;
  const float* const biases = weights.bias.data() + panel * kPanel;
  const Panel of{weights.filter.data() + panel * kPanel * depth_, biases, columns};
  Places places{};
  const int64_t some = std::min(kPanel, shape_.results - panel * kPanel);
  for (int64_t i = lines.first; i < lines.second; ++i) {
    const auto [top, bottom] = height.inside(i);
    std::byte* const line = to + image * batch_out + i * height.out_stride;
    for (int64_t x = 0; x < width.places; x += kMostRows) {
      const int64_t count = std::min<int64_t>(kMostRows, width.places - x);
      float* const results = sums + ((i - lines.first) * width.places + x) * columns;
      for (int64_t k = 0; k < count; ++k) {
        places.to[static_cast<size_t>(k)] = line + (x + k) * width.out_stride;
        if (top >= bottom) std::copy_n(biases, columns, results + k * columns);
      }
      if (has_padding_ && has_nan(results, count * columns)) {
        const int64_t row = (image * height.places + i) * width.places + x;
        repair(of, from, row, count, some, results);
      }
      finish(places, panel * kPanel, some, results, count, columns);
    }
  }
}

ANYDML_ISA_END
