// A dense convolution by lines: windows are multiplied where they lie in the input, or in copies of its lines
// that have the padding of both sides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

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

inline void DenseConvolution::multiply_lines(const Weights& weights, const std::byte* from, const Ends& ends,
                                             int64_t image, Range range, Range columns, float* room) const {
  const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
  const std::byte* const picture = from + image * batch_in;
  const int64_t origin = height.origin(range.first);
  Lines lines{image,
              range,
              picture + origin * height.in_stride + width.origin(0) * width.in_stride,
              height.in_stride,
              {}};
  float* sums = room;
  if (is_copied_) {
    const int64_t end = height.origin(range.second - 1) + reach() + 1;
    copy_lines(picture, origin, end, reinterpret_cast<std::byte*>(room));
    lines.first = reinterpret_cast<const std::byte*>(room);
    lines.step = line_;
    sums += (end - origin) * line_ / kItem;
  }
  for (int64_t y = 0; y < height.taps; ++y) {
    for (int64_t x = 0; x < width.taps; x += together_)
      lines.offsets.push_back(y * height.dilation * lines.step + x * width.dilation * place_);
  }
  const bool is_at_once = parts_at_once() >= static_cast<int64_t>(lines.offsets.size());
  const int64_t some = is_at_once ? panels_at_once() : 1;
  for (int64_t panel = columns.first; panel < columns.second; panel += some) {
    const Range panels{panel, std::min(panel + some, columns.second)};
    multiply_panels(weights, from, ends, lines, panels, sums);
  }
}

// Lines of the input with what lies under the filter beside them, zeros for padding; those that there are.
inline void DenseConvolution::copy_lines(const std::byte* picture, int64_t begin, int64_t end,
                                         std::byte* to) const {
  const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
  const int64_t places = line_ / place_;
  const int64_t first = std::clamp<int64_t>(-width.origin(0), 0, places);
  const int64_t last = std::clamp<int64_t>(width.size - width.origin(0), first, places);
  for (int64_t i = begin; i < end; ++i, to += line_) {
    if (i < 0 || i >= height.size) continue;
    const std::byte* const line = picture + i * height.in_stride + width.origin(0) * width.in_stride;
    std::memset(to, 0, static_cast<size_t>(first * place_));
    const auto at = [&](int64_t x) { return reinterpret_cast<float*>(to + x * place_); };
    if (shape_.channel_in != shape_.item()) {
      for (int64_t c = 0; c < channels; ++c) {
        const std::byte* const plane = line + c * shape_.channel_in;
        for (int64_t x = first; x < last; ++x)
          at(x)[c] = load_float(shape_.is_half, plane + x * width.in_stride);
      }
    } else if (width.in_stride == channels * shape_.item() && place_ == channels * kItem) {
      read_run(shape_.is_half, line + first * width.in_stride, at(first), (last - first) * channels);
    } else {
      for (int64_t x = first; x < last; ++x)
        read_run(shape_.is_half, line + x * width.in_stride, at(x), channels);
    }
    std::memset(to + last * place_, 0, static_cast<size_t>((places - last) * place_));
  }
}

// Lines of results in some panels, or in one: as many parts of the depth at once, taps that follow each other
// in memory, as have weights that stay in the caches for all lines. A line's taps on padding above and below
// are left out, which adds zeros less.
inline void DenseConvolution::multiply_panels(const Weights& weights, const std::byte* from, const Ends& ends,
                                              const Lines& lines, Range panels, float* sums) const {
  const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
  const int64_t tiles = (width.places + kMostRows - 1) / kMostRows;
  const int64_t of_line = width.taps / together_;
  const int64_t parts = height.taps * of_line;
  const int64_t deep = together_ * channels;
  const int64_t at_once = parts_at_once();
  alignas(sizeof(Columns)) float results[kMostRows * kPanel + kLanesOf<float>];
  // Once where there are no taps: then results are their biases.
  for (int64_t first = 0; first == 0 || first < parts; first += at_once) {
    const int64_t last = std::min(first + at_once, parts);
    const int64_t many = (lines.range.second - lines.range.first) * tiles * (panels.second - panels.first);
    // The weights of the panels that come next, or of this one's next parts.
    const bool is_end = last == parts;
    const float* const filter = weights.filter.data();
    const float* const next = filter + (is_end ? panels.second : panels.first) * kPanel * depth_ +
                              (is_end ? 0 : last * deep * columns_of(panels.first));
    const int64_t next_parts = is_end ? at_once * (panels.second - panels.first) : at_once;
    const int64_t next_size = std::min(filter + weights.filter.size() - next, next_parts * deep * kPanel);
    Ahead ahead;
    ahead.add(next, next_size * kItem,
              next_size * kItem / (many * std::max<int64_t>(1, last - first) * deep) + 1);
    for (int64_t i = lines.range.first; i < lines.range.second; ++i) {
      const auto [top, bottom] = height.inside(i);
      const int64_t begin = std::clamp(top * of_line, first, last);
      const int64_t end = std::clamp(bottom * of_line, begin, last);
      const bool is_first = first <= top * of_line;
      const bool is_last = last >= bottom * of_line;
      if (begin == end && (top < bottom || first > 0)) continue;
      const int64_t below = (height.origin(i) - height.origin(lines.range.first)) * lines.step;
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t place = share_begin(t, tiles, width.places);
        const int64_t count = share_begin(t + 1, tiles, width.places) - place;
        Places places{ends, {}};
        const int64_t out = lines.image * batch_out + i * height.out_stride + place * width.out_stride;
        for (int64_t k = 0; k < count; ++k)
          places.offsets[static_cast<size_t>(k)] = out + k * width.out_stride;
        if (next_size <= 0) {
          ahead = Ahead();
          const int64_t behind = out + count * width.out_stride;
          ahead.add(ends.to + behind, count * std::abs(width.out_stride), kLine);
          if (ends.added != nullptr)
            ahead.add(ends.added + behind, count * std::abs(width.out_stride), kLine);
        }
        for (int64_t panel = panels.first; panel < panels.second; ++panel) {
          const int64_t columns = columns_of(panel);
          const Panel of{weights.filter.data() + panel * kPanel * depth_,
                         weights.bias.data() + panel * kPanel, columns};
          float* const kept = sums + ((i - lines.range.first) * width.places + place) * columns;
          DenseTile tile{lines.first + below + place * width.stride * place_,
                         width.stride * place_,
                         kItem,
                         deep,
                         reinterpret_cast<const std::byte*>(of.weights + begin * deep * columns),
                         columns * kItem,
                         is_first ? of.biases : kept,
                         is_first ? 0 : columns};
          tile.offsets = lines.offsets.data() + begin;
          tile.parts = end - begin;
          ahead.prefetch(tile);
          kMultiplyTile[columns == kPanel][static_cast<size_t>(count - 1)](tile, is_last ? results : kept);
          if (is_last) {
            const int64_t some = std::min(kPanel, shape_.results - panel * kPanel);
            if (has_padding_ && may_have_nan(results, count * columns)) {
              const int64_t row = (lines.image * height.places + i) * width.places + place;
              repair(of, from, row, count, some, results);
            }
            finish(places, panel * kPanel, some, results, count, columns);
          }
        }
      }
    }
  }
}

// Parts of the depth that are multiplied at once, of which a line has one or one for each tap.
inline int64_t DenseConvolution::parts_at_once() const {
  return std::max<int64_t>(1, kWeightsOfLines / (together_ * shape_.sides.channels * kPanel * kItem));
}

ANYDML_ISA_END
