// What is computed element by element, of several inputs, in double precision: all inputs of a run are read
// before anything is written, so that outputs may lie over inputs that are laid out alike.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "normalization/activation.h"
#include "normalization/geometry.h"
#include "normalization/grouped_plan.h"
#include "normalization/runs.h"
#include "platform/isa.h"
#include "platform/parallel.h"

ANYDML_ISA_BEGIN

template <class Op>
class ElementsPlan final : public Plan {
 public:
  ElementsPlan(Op op, Geometry geometry, const Operands& operands, RunActivation activation,
               std::string description)
      : Plan(std::move(description)),
        op_(op),
        geometry_(std::move(geometry)),
        operands_(operands),
        activation_(activation),
        bytes_(operands.bytes(geometry_.elements())) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto constants = op_.constants(inputs);
    const int64_t pieces = geometry_.pieces();
    const int64_t runs = count_of(geometry_.kept) * pieces;
    const int threads = threads_for(bytes_);
    const int64_t calls = std::min(calls_for(bytes_, threads), runs);
    parallel_for(calls, threads, [&](int64_t call) {
      Buffers buffers(operands_);
      alignas(64) double results[Op::kOutputs][kRun];
      const int64_t begin = share_begin(call, calls, runs);
      const int64_t end = share_begin(call + 1, calls, runs);
      Walk walk(geometry_.kept, begin / pieces);
      int64_t piece = begin % pieces;
      const Axis& run = geometry_.run;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = piece * kRun;
        const int64_t count = std::min(kRun, run.size - first);
        const auto moved = [&](size_t k) { return walk.offset(k) + first * run.steps[k]; };
        for (size_t k = 0; k < Op::kInputs; ++k) {
          buffers.load(k, static_cast<const std::byte*>(inputs[k]) + moved(k), run.steps[k], count);
        }
        op_.compute(constants, buffers.runs(), count, results);
        activation_.apply(results[0], count);
        for (size_t k = 0; k < Op::kOutputs; ++k) {
          const size_t tensor = operands_.inputs + k;
          operands_.store(results[k], count, static_cast<std::byte*>(outputs[k]) + moved(tensor),
                          run.steps[tensor]);
        }
        if (++piece == pieces) {
          piece = 0;
          walk.advance();
        }
      }
    });
  }

 private:
  Op op_;
  Geometry geometry_;
  Operands operands_;
  RunActivation activation_;
  int64_t bytes_;
};

ANYDML_ISA_END
