// A reduction of whole planes, as for a global average: several planes are summed, and requantised, together.
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
#include "quantized_pooling/outputs.h"
#include "quantized_pooling/sums.h"
#include "quantized_pooling/tuning.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

class PlanePooling final : public Plan {
 public:
  // Why it declines; empty where every plane has one output, the average of some bytes.
  static std::string declined(const Geometry& g) {
    for (const Window& window : g.windows) {
      if (window.output != 1) return "planes have several outputs";
      if (window.taps(0).inside == 0) return "the window lies in padding";
    }
    return "";
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
    block_ =
        std::clamp(kPlaneBytes / (box_.run * box_.rows * box_.slices), int64_t{1}, RequantizeBatch::kMost);
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
  // Pools blocks of planes; the same ones of each batch follow each other, as they have their channels in
  // common.
  void pool(const void* const* inputs, void* const* outputs, int64_t begin, int64_t end) const {
    RequantizeBatch batch{};
    for (int64_t block = begin; block < end; ++block) {
      const int64_t o = block % outer_.size, i = block / outer_.size * block_;
      const int64_t count = std::min(block_, inner_.size - i);
      if (block == begin || (per_channel_ && (channels_are_outer_ || o == 0))) {
        for (int64_t k = 0; k < count; ++k) {
          const int64_t channel = channels_are_outer_ ? o : i + k;
          const Quantization quantization = geometry_.quantization(inputs, channel);
          batch.set_quantization(k, quantization);
          batch.set_counts(k, box_.inside, counted_, quantization);
        }
      }
      sum(static_cast<const std::byte*>(inputs[0]) + o * outer_.in, i, count, batch.sums);
      batch.requantize(count);
      auto* out = static_cast<std::byte*>(outputs[0]) + o * outer_.out + i * inner_.out;
      if (inner_.out == 1) {
        std::memcpy(out, batch.outputs, static_cast<size_t>(count));
      } else {
        for (int64_t k = 0; k < count; ++k) store(out + k * inner_.out, batch.outputs[k]);
      }
    }
  }

#if defined(ANYDML_SUMS_OF_8)
  // Planes that end within a line are too short for the hardware prefetcher.
  ANYDML_INLINE void prefetch(const std::byte* from) const {
    for (int64_t i = 0; i < kRunsAtOnce * box_.run; i += kLine) prefetch_line(from + i);
  }
#endif

  // Sums `count` planes from the one at `first` on.
  void sum(const std::byte* planes, int64_t first, int64_t count, double* sums) const {
    const uint8_t flip = geometry_.in.flip();
    int64_t k = 0;
#if defined(ANYDML_SUMS_OF_8)
    if (box_.is_run() && box_.run <= kShortPlane && inner_.in > 0) {
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
