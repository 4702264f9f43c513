// Pooling window by window: where windows are large and few, and for whatever else the rows do not suit.
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
      int64_t channel = -1;
      Quantization quantization{};
      for_each_rows(geometry_, share(i), share(i + 1), [&](const Rows& r) {
        if (r.channel != channel) quantization = geometry_.quantization(inputs, channel = r.channel);
        pool(inputs, outputs, r, quantization);
      });
    });
  }

 private:
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

  // sum of (x - zero point) = sum of x - taps inside * zero point: a tap on padding is a real 0 and adds
  // none.
  uint8_t average(const std::byte* in, const Taps& d, const Taps& h, const Taps& w,
                  const Quantization& quantization) const {
    const int64_t inside = d.inside * h.inside * w.inside;
    const int64_t visited = d.visited * h.visited * w.visited;
    int64_t sum = inside > 0 ? sum_window(in + d.start + h.start + w.start, d, h, w) : 0;
    // Every element visited stands for equally many taps.
    if (visited < inside) sum *= inside / visited;
    return static_cast<uint8_t>(requantize(sum - inside * quantization.input_zero_point,
                                           d.counted * h.counted * w.counted, quantization));
  }

  // Rows, and slices, that follow each other in memory without a gap are one run of bytes.
  int64_t sum_window(const std::byte* in, const Taps& d, const Taps& h, const Taps& w) const {
    const auto& [depth, height, width] = geometry_.windows;
    int64_t run = w.visited, rows = h.visited, slices = d.visited;
    const int64_t step = run == 1 ? 1 : width.tap_step;
    if (step == 1) {
      if (rows == 1 || height.tap_step == run) run *= std::exchange(rows, 1);
      if (rows == 1 && (slices == 1 || depth.tap_step == run)) run *= std::exchange(slices, 1);
    }
    int64_t sum = 0;
    for (int64_t kd = 0; kd < slices; ++kd) {
      for (int64_t kh = 0; kh < rows; ++kh) {
        sum += sum_run(in + kd * depth.tap_step + kh * height.tap_step, run, step);
      }
    }
    return sum;
  }

  int64_t sum_run(const std::byte* in, int64_t count, int64_t step) const {
    if (step == 1) return sum_bytes(in, count, geometry_.in.flip());
    int64_t sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += load<uint8_t>(in + k * step) ^ geometry_.in.flip();
    return sum;
  }

  Geometry geometry_;
  Taps first_[3];
};

}  // namespace
ANYDML_ISA_END
