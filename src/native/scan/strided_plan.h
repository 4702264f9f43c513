// The scan of any layout: line by line, element by element, whatever the strides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "scan/accumulator.h"
#include "scan/geometry.h"
#include "scan/policy.h"
#include "scan/tuning.h"

ANYDML_ISA_BEGIN

template <class T, class Operation>
class StridedPlan final : public Plan {
 public:
  StridedPlan(const ScanProblem& problem, bool exclusive, std::string description)
      : Plan(std::move(description)),
        geometry_(problem.geometry),
        lines_(geometry_.lines),
        exclusive_(exclusive),
        bytes_(problem.bytes()) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    const int64_t rows = lines_.outer_count() * lines_.inner.size;
    const int threads = threads_for(2 * bytes_);
    const int64_t tasks = std::min(calls_for(2 * bytes_, threads), rows);
    parallel_for(tasks, threads, [&](int64_t task) {
      lines_.runs(share_begin(task, tasks, rows), share_begin(task + 1, tasks, rows), in, out,
                  [&](const std::byte* from, std::byte* to, int64_t count) { scan_run(from, to, count); });
    });
  }

 private:
  using Accumulator = AccumulatorOf<T>;

  // Scans lines side by side, so that adjacent elements are accessed together.
  void scan_run(const std::byte* in, std::byte* out, int64_t count) const {
    const Loop axis = geometry_.axis;
    const Loop line = lines_.inner;
    for (int64_t start = 0; start < count; start += tuning::kStridedLines) {
      const int64_t width = std::min(tuning::kStridedLines, count - start);
      Accumulator accumulators[tuning::kStridedLines];
      std::fill_n(accumulators, width, static_cast<Accumulator>(Operation::kIdentity));
      for (int64_t i = 0; i < axis.size; ++i) {
        const std::byte* from = in + start * line.in + i * axis.in;
        std::byte* to = out + start * line.out + i * axis.out;
        for (int64_t j = 0; j < width; ++j)
          advance_one<T, Operation>(accumulators[j], from + j * line.in, to + j * line.out, exclusive_);
      }
    }
  }

  ScanGeometry geometry_;
  Lines lines_;
  bool exclusive_;
  int64_t bytes_;
};

ANYDML_ISA_END
