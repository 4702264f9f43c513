// Direct pooling: each window is summed by itself, where windows share little.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "quantized_pooling/box.h"
#include "quantized_pooling/geometry.h"

ANYDML_ISA_BEGIN
namespace {

class DirectPooling final : public Plan {
 public:
  DirectPooling(const Geometry& geometry, std::string description)
      : Plan(std::move(description)), geometry_(geometry) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t rows = geometry_.rows();
    const int threads = threads_for(geometry_.bytes());
    const int64_t parts = std::min<int64_t>(threads, rows);
    parallel_for(parts, threads, [&](int64_t i) {
      int64_t channel = -1;
      Quantization quantization{};
      for_each_row_range(geometry_, share_begin(i, parts, rows), share_begin(i + 1, parts, rows),
                         [&](const RowRange& r) {
                           if (r.channel != channel) {
                             quantization = geometry_.quantization(inputs, channel = r.channel);
                           }
                           pool(inputs, outputs, r, quantization);
                         });
    });
  }

 private:
  void pool(const void* const* inputs, void* const* outputs, const RowRange& rows,
            const Quantization& quantization) const {
    const Geometry& g = geometry_;
    const auto& [depth, height, width] = g.windows;
    const auto* in =
        static_cast<const std::byte*>(inputs[0]) + rows.batch * g.batch.in + rows.channel * g.channels.in;
    auto* out = static_cast<std::byte*>(outputs[0]) + rows.batch * g.batch.out +
                rows.channel * g.channels.out + rows.depth * depth.out_stride;
    const Taps d = depth.taps(rows.depth);
    for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
      const Taps h = height.taps(oh);
      for (int64_t ow = 0; ow < width.output; ++ow) {
        store(out + oh * height.out_stride + ow * width.out_stride,
              average(in, d, h, width.taps(ow), quantization));
      }
    }
  }

  uint8_t average(const std::byte* in, const Taps& d, const Taps& h, const Taps& w,
                  const Quantization& quantization) const {
    const Box box(geometry_.windows, d, h, w);
    const int64_t sum = box.inside > 0 ? box.sum(in, geometry_.in.flip()) : 0;
    return static_cast<uint8_t>(requantize(sum - box.inside * quantization.input_zero_point,
                                           d.counted * h.counted * w.counted, quantization));
  }

  Geometry geometry_;
};

}  // namespace
ANYDML_ISA_END
