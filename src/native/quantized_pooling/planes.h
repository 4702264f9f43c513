// Pooling of planes of one output each, as for a global average: many are summed, and requantised, together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "quantized_pooling/box.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/lanes.h"
#include "quantized_pooling/sums.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// As many outputs as are requantised together, with the bits of requantize(): all its operations are exact or
// correctly rounded, and the same for each output.
struct Averages {
  static constexpr int64_t kMost = 64;

  double sums[kMost];
  double offsets[kMost];  // what the zero point has added to a sum
  double input_scales[kMost];
  double divisors[kMost];            // count * output scale
  double lows[kMost], highs[kMost];  // without the zero point
  uint8_t zero_points[kMost];
  uint8_t outputs[kMost];

  void set(int64_t i, int64_t inside, int64_t counted, const Quantization& z) {
    offsets[i] = static_cast<double>(inside * z.input_zero_point);
    input_scales[i] = z.input_scale;
    divisors[i] = static_cast<double>(counted) * z.output_scale;
    lows[i] = static_cast<double>(z.lowest - z.output_zero_point);
    highs[i] = static_cast<double>(z.highest - z.output_zero_point);
    zero_points[i] = static_cast<uint8_t>(z.output_zero_point);
  }

  void requantize(int64_t count) {
    using Doubles = Lanes<double, 4>;
    constexpr int64_t kAtOnce = 16;
    const int64_t end = (count + kAtOnce - 1) / kAtOnce * kAtOnce;
    // Leaves the nearest integer in a sum's low bits.
    const auto rounders = all_lanes<Doubles>(0x1.8p52);
    uint64_t rounded[kMost];
    for (int64_t i = 0; i < end; i += 4) {
      const auto at = [i](const double* values) { return load_lanes<Doubles>(values + i); };
      const Doubles q = ((at(sums) - at(offsets)) * at(input_scales)) / at(divisors);
      store_lanes(rounded + i, smaller(larger(q, at(lows)), at(highs)) + rounders);
    }
    for (int64_t i = 0; i < end; ++i) outputs[i] = static_cast<uint8_t>(rounded[i] + zero_points[i]);
  }
};

class PlanePooling final : public Plan {
 public:
  // Whether every plane has one output, the average of some bytes.
  static bool suits(const Geometry& g) {
    return std::all_of(g.windows.begin(), g.windows.end(),
                       [](const Window& window) { return window.output == 1 && window.taps(0).inside > 0; });
  }

  PlanePooling(const Geometry& geometry, std::string description)
      : Plan(std::move(description)),
        geometry_(geometry),
        box_(geometry.windows, geometry.windows[0].taps(0), geometry.windows[1].taps(0),
             geometry.windows[2].taps(0)),
        outer_(geometry.batch),
        inner_(geometry.channels) {
    for (const Window& window : geometry.windows) counted_ *= window.taps(0).counted;
    channels_are_outer_ = geometry.batch.size > 1 && geometry.channels.in > geometry.batch.in;
    if (channels_are_outer_) std::swap(outer_, inner_);
    per_channel_ = !geometry.same_quantization();
    if (!per_channel_ && outer_.in == inner_.size * inner_.in && outer_.out == inner_.size * inner_.out) {
      inner_.size *= std::exchange(outer_.size, 1);
    }
    prefetches_ = geometry.bytes() >= kStreamFrom;
    block_ = std::clamp(kBlockBytes / (box_.run * box_.rows * box_.slices), int64_t{1}, Averages::kMost);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t blocks = outer_.size * ((inner_.size - 1) / block_ + 1);
    const int threads = threads_for(geometry_.bytes());
    const int64_t parts = std::min<int64_t>(threads, blocks);
    parallel_for(parts, threads, [&](int64_t i) {
      pool(inputs, outputs, share_begin(i, parts, blocks), share_begin(i + 1, parts, blocks));
    });
  }

 private:
  // Blocks of planes, the same ones of each batch one after the other: these have their channels in common.
  void pool(const void* const* inputs, void* const* outputs, int64_t begin, int64_t end) const {
    Averages averages{};
    for (int64_t block = begin; block < end; ++block) {
      const int64_t o = block % outer_.size, i = block / outer_.size * block_;
      const int64_t count = std::min(block_, inner_.size - i);
      if (block == begin || (per_channel_ && (channels_are_outer_ || o == 0))) {
        for (int64_t k = 0; k < count; ++k) {
          const int64_t channel = channels_are_outer_ ? o : i + k;
          averages.set(k, box_.inside, counted_, geometry_.quantization(inputs, channel));
        }
      }
      sum(static_cast<const std::byte*>(inputs[0]) + o * outer_.in, i, count, averages.sums);
      averages.requantize(count);
      auto* out = static_cast<std::byte*>(outputs[0]) + o * outer_.out + i * inner_.out;
      if (inner_.out == 1) {
        std::memcpy(out, averages.outputs, static_cast<size_t>(count));
      } else {
        for (int64_t k = 0; k < count; ++k) store(out + k * inner_.out, averages.outputs[k]);
      }
    }
  }

#if defined(ANYDML_SUMS_OF_EIGHTS)
  // Of planes that end within a line, the processor's own prefetching is not enough.
  void prefetch(const std::byte* from) const {
    for (int64_t i = 0; i < kRunsAtOnce * box_.run; i += kLine) prefetch_line(from + i);
  }
#endif

  // Of `count` planes from the one at `first` on.
  void sum(const std::byte* planes, int64_t first, int64_t count, double* sums) const {
    const uint8_t flip = geometry_.in.flip();
    int64_t k = 0;
#if defined(ANYDML_SUMS_OF_EIGHTS)
    if (box_.is_run() && box_.run <= kShort && inner_.in > 0) {
      // Whole vectors may begin before a plane, but not before the first one.
      for (; k < count && (first + k) * inner_.in + box_.run < kByteVector; ++k) {
        sums[k] = static_cast<double>(box_.sum(planes + (first + k) * inner_.in, flip));
      }
      for (; k + kRunsAtOnce <= count; k += kRunsAtOnce) {
        if (prefetches_) prefetch(planes + box_.start + (first + k) * inner_.in + kPrefetchDistance);
        sum_runs(planes + box_.start + (first + k) * inner_.in, inner_.in, box_.run, flip, sums + k);
      }
    }
#endif
    for (; k < count; ++k) {
      sums[k] = static_cast<double>(box_.sum(planes + (first + k) * inner_.in, flip));
    }
  }

  static constexpr int64_t kBlockBytes = 16 << 10;
  static constexpr int64_t kShort = 1024;  // bytes, of which more take longer than what is done once for all

  Geometry geometry_;
  Box box_;
  int64_t counted_ = 1;
  Loop outer_, inner_;
  int64_t block_;  // planes, of inner_
  bool channels_are_outer_;
  bool per_channel_;
  bool prefetches_;
};

}  // namespace
ANYDML_ISA_END
