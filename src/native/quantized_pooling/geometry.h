// The geometry of an average pooling: windows, the tensors' strides, and the formula of an output.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "quantized_pooling/tuning.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// The most taps whose sum of bytes fits so many bits.
constexpr int64_t most_taps(int bits) { return ((int64_t{1} << bits) - 1) / 255; }

// The taps of one window along one dimension.
struct Taps {
  int64_t first;    // the element that the first tap inside the input reads
  int64_t start;    // its distance in bytes from the dimension's first element
  int64_t inside;   // taps inside the input
  int64_t visited;  // those that are elements of their own: 1 where the dimension is broadcast
  int64_t counted;  // taps that the average divides by
};

// A sliding window along one spatial dimension.
struct Window {
  int64_t input;
  int64_t output;
  int64_t stride;
  int64_t size;
  int64_t start_padding;
  int64_t end_padding;
  int64_t dilation;
  bool include_padding;
  int64_t in_stride;
  int64_t out_stride;
  int64_t tap_step;

  // Tap k of output o lies at o * stride - start_padding + k * dilation. Sizes, paddings and dilations go up
  // to 2^32 - 1, so the taps inside are found by arithmetic and padding is never walked.
  Taps taps(int64_t o) const {
    const int64_t origin = o * stride - start_padding;
    const int64_t before = taps_before(0 - origin);
    const int64_t inside = taps_before(input - origin) - before;
    // A tap beyond the padded extent, which a ceiling size makes possible, is never counted.
    const int64_t counted = include_padding ? taps_before(input + end_padding - origin) : inside;
    const int64_t first = inside > 0 ? origin + before * dilation : 0;
    return {first, first * in_stride, inside, in_stride == 0 ? std::min<int64_t>(inside, 1) : inside,
            counted};
  }

  int64_t extent() const { return (size - 1) * dilation + 1; }
  // The most taps of a window inside the input.
  int64_t taps_inside() const { return std::min(size, (input - 1) / dilation + 1); }
  // Whether wide windows that do not overlap, or a single one, leave nothing to share between outputs.
  bool sums_each_alone() const { return output == 1 || (size >= kWideWindow && stride >= size); }
  // The range of outputs all of whose taps count.
  std::pair<int64_t, int64_t> interior() const {
    const int64_t before = include_padding ? 0 : start_padding;
    const int64_t after = include_padding ? end_padding : 0;
    const int64_t begin = std::min((before + stride - 1) / stride, output);
    const int64_t room = start_padding + input + after - extent();
    const int64_t end = room < 0 ? 0 : std::min(room / stride + 1, output);
    return {begin, std::max(begin, end)};
  }
  // The outputs some of whose taps do not count.
  int64_t border_outputs() const {
    const auto [begin, end] = interior();
    return output - (end - begin);
  }

 private:
  // How many of the taps lie less than `distance` after the first: min(ceil(distance / dilation), size).
  int64_t taps_before(int64_t distance) const {
    if (distance <= 0) return 0;
    return std::min(dilation == 1 ? distance : (distance - 1) / dilation + 1, size);
  }
};

// Outputs along a dimension that divide by equally many taps.
struct Segment {
  int64_t begin;
  int64_t end;
  int64_t counted;
};

inline std::vector<Segment> segments_of(const Window& window) {
  const auto [begin, end] = window.interior();
  std::vector<Segment> segments;
  const auto append = [&](int64_t from, int64_t to, int64_t counted) {
    if (from == to) return;
    if (!segments.empty() && segments.back().counted == counted) {
      segments.back().end = to;
    } else {
      segments.push_back({from, to, counted});
    }
  };
  for (int64_t o = 0; o < begin; ++o) append(o, o + 1, window.taps(o).counted);
  append(begin, end, window.size);
  for (int64_t o = end; o < window.output; ++o) append(o, o + 1, window.taps(o).counted);
  return segments;
}

// A scale or zero point: one value per channel, or one for all with a step of 0. An absent one is 0.
struct PerChannel {
  size_t input;
  int64_t step;

  template <class T>
  T at(const void* const* inputs, int64_t channel) const {
    const auto* values = static_cast<const std::byte*>(inputs[input]);
    return values == nullptr ? T{0} : load<T>(values + channel * step);
  }
};

// Bytes are taken as unsigned: a signed one has its top bit flipped, which adds 128 to it, and to its zero
// point.
struct ByteType {
  bool is_signed;

  uint8_t flip() const { return is_signed ? 0x80 : 0; }
  int64_t unsigned_at(const PerChannel& values, const void* const* inputs, int64_t channel) const {
    return static_cast<uint8_t>(values.at<uint8_t>(inputs, channel) ^ flip());
  }
  int64_t value_at(const PerChannel& values, const void* const* inputs, int64_t channel) const {
    return unsigned_at(values, inputs, channel) - (is_signed ? 128 : 0);
  }
};

struct Quantization {
  double input_scale;
  double output_scale;
  int64_t input_zero_point;  // of unsigned bytes
  int64_t output_zero_point;
  int64_t lowest;  // of the output type
  int64_t highest;

  bool operator==(const Quantization&) const = default;
};

struct Geometry {
  Loop batch;
  Loop channels;
  std::array<Window, 3> windows;  // depth, height, width
  ByteType in, out;
  PerChannel input_scale, input_zero_point, output_scale, output_zero_point;

  Quantization quantization(const void* const* inputs, int64_t channel) const {
    // An absent zero point is 0, as a value and not as a byte.
    const bool centered = inputs[input_zero_point.input] == nullptr;
    const int64_t zero = in.is_signed && centered ? 128 : in.unsigned_at(input_zero_point, inputs, channel);
    const bool is_scale = inputs[output_zero_point.input] == nullptr;
    const int64_t lowest = out.is_signed ? -128 : 0;
    return {.input_scale = input_scale.at<float>(inputs, channel),
            .output_scale = output_scale.at<float>(inputs, channel),
            .input_zero_point = zero,
            .output_zero_point = is_scale ? 0 : out.value_at(output_zero_point, inputs, channel),
            .lowest = lowest,
            .highest = lowest + 255};
  }
  bool same_quantization() const {
    return channels.size == 1 || (input_scale.step == 0 && input_zero_point.step == 0 &&
                                  output_scale.step == 0 && output_zero_point.step == 0);
  }
  int64_t window_taps() const { return windows[0].size * windows[1].size * windows[2].size; }
  int64_t taps_inside() const {
    return windows[0].taps_inside() * windows[1].taps_inside() * windows[2].taps_inside();
  }
  int64_t rows() const { return channels.size * batch.size * windows[0].output * windows[1].output; }
  // Bytes read and written, about; a product of the sizes of a broadcast input may be any number.
  int64_t bytes() const {
    double read = 1, written = 1;
    for (const Window& window : windows) {
      read *= static_cast<double>(window.input);
      written *= static_cast<double>(window.output);
    }
    const double planes = static_cast<double>(channels.size) * static_cast<double>(batch.size);
    return static_cast<int64_t>(std::min(planes * (read + written), 0x1p62));
  }
};

// q = round((sum * input_scale) / (count * output_scale)) + output_zero_point, even at ties, saturated
inline int64_t requantize(int64_t sum, int64_t count, const Quantization& quantization) {
  auto q = static_cast<double>(quantization.output_zero_point);
  if (count > 0) {
    q += std::nearbyint((static_cast<double>(sum) * quantization.input_scale) /
                        (static_cast<double>(count) * quantization.output_scale));
  }
  // A NaN, which no valid scale gives, must not reach the cast: the first comparison makes it the lowest.
  const auto lowest = static_cast<double>(quantization.lowest);
  const auto highest = static_cast<double>(quantization.highest);
  q = q > lowest ? q : lowest;
  return static_cast<int64_t>(q < highest ? q : highest);
}

// Consecutive rows of outputs of one plane: those at `depth`, from `begin` to before `end`.
struct RowRange {
  int64_t channel;
  int64_t batch;
  int64_t depth;
  int64_t begin;
  int64_t end;
};

// Calls body(rows) for all rows of outputs in the range, counted with channels outermost, so that what
// depends on the channel alone is made once for a batch.
template <class Body>
void for_each_row_range(const Geometry& geometry, int64_t begin, int64_t end, const Body& body) {
  const int64_t height = geometry.windows[1].output;
  const int64_t depth = geometry.windows[0].output;
  const int64_t slice = begin / height;
  const int64_t plane = slice / depth;
  RowRange rows{plane / geometry.batch.size, plane % geometry.batch.size, slice % depth, begin % height, 0};
  while (begin < end) {
    rows.end = std::min(height, rows.begin + (end - begin));
    body(rows);
    begin += rows.end - rows.begin;
    rows.begin = 0;
    if (++rows.depth < depth) continue;
    rows.depth = 0;
    if (++rows.batch < geometry.batch.size) continue;
    rows.batch = 0;
    ++rows.channel;
  }
}

}  // namespace
ANYDML_ISA_END
