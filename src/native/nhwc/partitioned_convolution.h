// Convolutions that are several products of matrices: one for each group of channels, and of a transposed
// convolution one for each phase of its strides, as sub-pixel convolution has it.
//
// Along a dimension, a transposed convolution adds w[k] * x[o] to the result at o * s - p + k * d. So those
// results that lie s apart take the same taps, and are a forward convolution of stride 1 by these: nothing is
// added up in memory, and no zero between elements is multiplied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "dense/singles.h"
#include "nhwc/dense.h"
#include "nhwc/tuning.h"
#include "nhwc/windows.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"

ANYDML_ISA_BEGIN

// The results of a transposed convolution that lie a stride apart.
struct Phase {
  Sliding along;
  // The filter's that they take, in the order in which they lie on elements.
  std::vector<int64_t> taps;
  // Of the first of them.
  int64_t first;
};

// Those phases along a dimension that have results. `along` is the transposed convolution itself: its size is
// the input's, its places are the output's, and its strides in bytes are those of both.
inline std::vector<Phase> phases_of(const Sliding& along) {
  std::vector<Phase> phases;
  for (int64_t remainder = 0; remainder < along.stride && remainder < along.places; ++remainder) {
    // Results j = remainder + i * stride, and those taps for which j + start - k * dilation is a multiple of
    // it.
    const int64_t shifted = remainder + along.start;
    std::vector<int64_t> taps;
    for (int64_t k = along.taps - 1; k >= 0; --k) {
      if ((shifted - k * along.dilation) % along.stride == 0) taps.push_back(k);
    }
    Sliding phase = along;
    phase.places = (along.places - 1 - remainder) / along.stride + 1;
    phase.taps = static_cast<int64_t>(taps.size());
    phase.stride = 1;
    phase.start = taps.empty() ? 0 : -(shifted - taps.front() * along.dilation) / along.stride;
    phase.end = 0;
    phase.dilation = along.dilation / std::gcd(along.stride, along.dilation);
    phase.out_stride = along.out_stride * along.stride;
    phases.push_back({phase, std::move(taps), remainder});
  }
  return phases;
}

// Plans that read and write parts of the same tensors, one after the other.
class PartitionedConvolution final : public Plan {
 public:
  // Bytes from where each tensor begins: of input, filter, bias and output.
  struct Part {
    std::shared_ptr<const DenseConvolution> plan;
    int64_t input;
    int64_t filter;
    int64_t bias;
    int64_t output;
  };

  PartitionedConvolution(std::vector<Part> parts, std::string description)
      : Plan(std::move(description)), parts_(std::move(parts)) {}

  // The tasks of all parts are shared out at once: of each part alone they may be too few for the threads.
  // Parts write next to each other, so that tasks of the same places follow each other, and are mostly one
  // thread's; but where weights are many, tasks of the same weights do.
  void run(const void* const* inputs, void* const* outputs) const override {
    const auto count = static_cast<int64_t>(parts_.size());
    int64_t work = 0;
    int64_t bytes = 0;
    for (const Part& part : parts_) {
      work += part.plan->work();
      bytes += part.plan->weights_bytes();
    }
    const int threads = threads_for(work);
    const int64_t wanted = (DenseConvolution::tasks_of(threads) + count - 1) / count;
    std::vector<PartTasks> all;
    std::vector<Task> tasks;
    int64_t room = 0;
    for (const Part& part : parts_) {
      const DenseConvolution::Division division = part.plan->divided(wanted);
      for (int64_t i = 0; i < division.tasks(); ++i) tasks.push_back({i, all.size()});
      all.push_back({&part, division, part.plan->weights(Addresses(part, inputs).inputs)});
      room = std::max(room, division.room);
    }
    if (bytes <= kWeightsOfParts) std::sort(tasks.begin(), tasks.end());
    const auto last = static_cast<int64_t>(tasks.size());
    const Scratch rooms(std::min<int64_t>(threads, last) * room * 4);
    parallel_for(last, threads, [&](int64_t i, int worker) {
      const auto [task, number] = tasks[static_cast<size_t>(i)];
      const PartTasks& some = all[number];
      some.part->plan->compute(
          some.division, *some.weights, static_cast<const std::byte*>(inputs[0]) + some.part->input,
          static_cast<std::byte*>(outputs[0]) + some.part->output, task, rooms.floats() + worker * room);
    });
  }

  bool has_prepack() const override { return true; }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    std::vector<Part> known = parts_;
    for (Part& part : known) {
      part.plan = part.plan->prepacked(Addresses(part, inputs).inputs);
      if (part.plan == nullptr) return nullptr;
    }
    return std::make_unique<PartitionedConvolution>(std::move(known), description());
  }

  int64_t prepack_bytes() const override {
    int64_t bytes = 0;
    for (const Part& part : parts_) bytes += part.plan->prepack_bytes();
    return bytes;
  }

 private:
  // Of what a part reads; null stays null.
  struct Addresses {
    const void* inputs[3];

    Addresses(const Part& part, const void* const* whole)
        : inputs{moved(whole[0], part.input), moved(whole[1], part.filter), moved(whole[2], part.bias)} {}

    static const void* moved(const void* from, int64_t bytes) {
      return from == nullptr ? nullptr : static_cast<const std::byte*>(from) + bytes;
    }
  };

  // One of a part's, and the part's number.
  using Task = std::pair<int64_t, size_t>;
  // A part with its division.
  struct PartTasks {
    const Part* part;
    DenseConvolution::Division division;
    std::shared_ptr<const DenseConvolution::Weights> weights;
  };

  std::vector<Part> parts_;
};

ANYDML_ISA_END
