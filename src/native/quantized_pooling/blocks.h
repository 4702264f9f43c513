// A separable box filter for small windows, blocked for the caches: strips of outputs in blocks, 16-bit sums.
//
// Padding is read as the input's zero point, which adds nothing to a sum, so that outputs differ only in what
// they divide by. Everything that does not depend on the data is made once, with the plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "quantized_pooling/block_plan.h"
#include "quantized_pooling/block_worker.h"
#include "quantized_pooling/geometry.h"

ANYDML_ISA_BEGIN
namespace {

class BlockPooling final : public Plan {
 public:
  static std::string declined(const Geometry& geometry) { return BlockPlan::declined(geometry); }

  BlockPooling(const Geometry& geometry, const std::string& description)
      : BlockPooling(BlockPlan(geometry), description) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(plan_.geometry.bytes());
    const int64_t units = plan_.geometry.channels.size * plan_.units_per_channel();
    const int64_t parts = std::min<int64_t>(threads, units);
    // One for all channels, where their quantisation does not differ.
    std::optional<BlockRequantizer> shared;
    if (plan_.geometry.same_quantization()) shared.emplace(plan_, plan_.geometry.quantization(inputs, 0));
    parallel_for(parts, threads, [&](int64_t i) {
      BlockWorker worker(plan_, inputs, outputs, shared ? &*shared : nullptr);
      worker.run(share_begin(i, parts, units), share_begin(i + 1, parts, units));
    });
  }

 private:
  BlockPooling(BlockPlan plan, const std::string& description)
      : Plan(description + (plan.non_temporal ? ", non-temporal stores" : "")), plan_(std::move(plan)) {}

  BlockPlan plan_;
};

}  // namespace
ANYDML_ISA_END
