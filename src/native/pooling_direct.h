// Pooling window by window: where windows are large and few, and for whatever else the rows do not suit.
// Planes of one output each, as of a global average, are requantised many together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "isa.h"
#include "plan.h"
#include "pooling_geometry.h"
#include "pooling_sums.h"

ANYDML_ISA_BEGIN
namespace {

// As many outputs as are requantised together, with the bits of requantize(): all its operations are exact or
// correctly rounded, and the same for each output.
struct Averages {
  static constexpr int64_t kMost = 64;

  double sums[kMost];
  double input_scales[kMost];
  double divisors[kMost];  // count * output scale
  double zero_points[kMost];
  uint8_t outputs[kMost];

  void set(int64_t i, int64_t count, const Quantization& quantization) {
    input_scales[i] = quantization.input_scale;
    divisors[i] = static_cast<double>(count) * quantization.output_scale;
    zero_points[i] = static_cast<double>(quantization.output_zero_point);
  }

  void requantize(double lowest, double highest) {
    // So far from 0 every output is saturated, and from 2^52 on the doubles nearby are the integers.
    constexpr double kFar = 1024;
    constexpr double kRounder = 0x1.8p52;
    for (int64_t i = 0; i < kMost; ++i) {
      double q = (sums[i] * input_scales[i]) / divisors[i];
      q = q > -kFar ? q : -kFar;
      q = q < kFar ? q : kFar;
      q = (q + kRounder) - kRounder + zero_points[i];
      q = q > lowest ? q : lowest;
      q = q < highest ? q : highest;
      outputs[i] = static_cast<uint8_t>(static_cast<int32_t>(q));
    }
  }
};

class DirectPooling final : public Plan {
 public:
  DirectPooling(const Geometry& geometry, std::string description)
      : Plan(std::move(description)), geometry_(geometry) {
    for (size_t i = 0; i < 3; ++i) first_[i] = geometry.windows[i].taps(0);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t rows = geometry_.rows();
    const int threads = threads_for(geometry_.bytes());
    const int64_t parts = std::min<int64_t>(threads, rows);
    parallel_for(parts, threads, [&](int64_t i) {
      const auto share = [&](int64_t part) { return rows / parts * part + std::min(part, rows % parts); };
      if (of_planes()) return pool_planes(inputs, outputs, share(i), share(i + 1));
      int64_t channel = -1;
      Quantization quantization{};
      for_each_rows(geometry_, share(i), share(i + 1), [&](const Rows& r) {
        if (r.channel != channel) quantization = geometry_.quantization(inputs, channel = r.channel);
        pool(inputs, outputs, r, quantization);
      });
    });
  }

 private:
  // Whether every plane has one output, the average of some bytes.
  bool of_planes() const {
    const auto& [depth, height, width] = geometry_.windows;
    const auto& [d, h, w] = first_;
    return depth.output == 1 && height.output == 1 && width.output == 1 && d.inside > 0 && h.inside > 0 &&
           w.inside > 0;
  }

  // The planes [begin, end), in the order in which they lie in memory.
  void pool_planes(const void* const* inputs, void* const* outputs, int64_t begin, int64_t end) const {
    const Geometry& g = geometry_;
    const auto& [d, h, w] = first_;
    const bool channels_first = g.channels.in > g.batch.in;
    const Loop& outer = channels_first ? g.channels : g.batch;
    const Loop& inner = channels_first ? g.batch : g.channels;
    const int64_t counted = d.counted * h.counted * w.counted;
    const bool per_channel =
        (g.input_scale.step | g.input_zero_point.step | g.output_scale.step | g.output_zero_point.step) != 0;
    const Box box = box_of(d, h, w);
    Quantization quantization = g.quantization(inputs, 0);
    Averages averages{};
    for (int64_t i = 0; i < Averages::kMost; ++i) averages.set(i, counted, quantization);
    int64_t o = begin / inner.size, i = begin % inner.size;
    while (begin < end) {
      const int64_t count = std::min(end - begin, Averages::kMost);
      std::byte* places[Averages::kMost];
      for (int64_t k = 0; k < count; ++k) {
        if (per_channel) {
          averages.set(k, counted, quantization = g.quantization(inputs, channels_first ? o : i));
        }
        const auto* in = static_cast<const std::byte*>(inputs[0]) + o * outer.in + i * inner.in;
        averages.sums[k] = static_cast<double>(sum_of(in, box) - box.inside * quantization.input_zero_point);
        places[k] = static_cast<std::byte*>(outputs[0]) + o * outer.out + i * inner.out;
        if (++i == inner.size) i = 0, ++o;
      }
      averages.requantize(static_cast<double>(quantization.lowest),
                          static_cast<double>(quantization.highest));
      for (int64_t k = 0; k < count; ++k) store(places[k], averages.outputs[k]);
      begin += count;
    }
  }

  void pool(const void* const* inputs, void* const* outputs, const Rows& rows,
            const Quantization& quantization) const {
    const Geometry& g = geometry_;
    const auto& [depth, height, width] = g.windows;
    const auto* in =
        static_cast<const std::byte*>(inputs[0]) + rows.batch * g.batch.in + rows.channel * g.channels.in;
    auto* out = static_cast<std::byte*>(outputs[0]) + rows.batch * g.batch.out +
                rows.channel * g.channels.out + rows.depth * depth.out_stride;
    const Taps d = taps(0, rows.depth);
    for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
      const Taps h = taps(1, oh);
      for (int64_t ow = 0; ow < width.output; ++ow) {
        store(out + oh * height.out_stride + ow * width.out_stride,
              average(in, d, h, taps(2, ow), quantization));
      }
    }
  }

  // The first window's taps are kept: of a global average there is no other.
  Taps taps(size_t dimension, int64_t o) const {
    return o == 0 ? first_[dimension] : geometry_.windows[dimension].taps(o);
  }

  uint8_t average(const std::byte* in, const Taps& d, const Taps& h, const Taps& w,
                  const Quantization& quantization) const {
    const Box box = box_of(d, h, w);
    const int64_t sum = box.inside > 0 ? sum_of(in, box) : 0;
    return static_cast<uint8_t>(requantize(sum - box.inside * quantization.input_zero_point,
                                           d.counted * h.counted * w.counted, quantization));
  }

  // The elements of a window that lie inside the input. sum of (x - zero point) = sum of x - taps inside *
  // zero point: a tap on padding is a real 0 and adds none.
  struct Box {
    int64_t start;
    int64_t run, step;  // elements, and bytes from one to the next
    int64_t rows, slices;
    int64_t inside;   // taps
    int64_t repeats;  // taps that each element visited stands for
  };

  // Rows, and slices, that follow each other in memory without a gap are one run of bytes.
  Box box_of(const Taps& d, const Taps& h, const Taps& w) const {
    const auto& [depth, height, width] = geometry_.windows;
    const int64_t inside = d.inside * h.inside * w.inside;
    const int64_t visited = d.visited * h.visited * w.visited;
    Box box{.start = d.start + h.start + w.start,
            .run = w.visited,
            .step = w.visited == 1 ? 1 : width.tap_step,
            .rows = h.visited,
            .slices = d.visited,
            .inside = inside,
            .repeats = visited < inside ? inside / visited : 1};
    if (box.step == 1) {
      if (box.rows == 1 || height.tap_step == box.run) box.run *= std::exchange(box.rows, 1);
      if (box.rows == 1 && (box.slices == 1 || depth.tap_step == box.run)) {
        box.run *= std::exchange(box.slices, 1);
      }
    }
    return box;
  }

  int64_t sum_of(const std::byte* in, const Box& box) const {
    in += box.start;
    if (box.rows == 1 && box.slices == 1) return sum_run(in, box) * box.repeats;
    int64_t sum = 0;
    for (int64_t kd = 0; kd < box.slices; ++kd) {
      for (int64_t kh = 0; kh < box.rows; ++kh) {
        sum += sum_run(in + kd * geometry_.windows[0].tap_step + kh * geometry_.windows[1].tap_step, box);
      }
    }
    return sum * box.repeats;
  }

  int64_t sum_run(const std::byte* in, const Box& box) const {
    if (box.step == 1) return sum_bytes(in, box.run, geometry_.in.flip());
    int64_t sum = 0;
    for (int64_t k = 0; k < box.run; ++k) sum += load<uint8_t>(in + k * box.step) ^ geometry_.in.flip();
    return sum;
  }

  Geometry geometry_;
  Taps first_[3];
};

}  // namespace
ANYDML_ISA_END
