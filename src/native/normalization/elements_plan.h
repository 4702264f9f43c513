// What is computed element by element, of several inputs, in double precision: all inputs of a run are read
// before anything is written, so that outputs may lie over inputs that are laid out alike.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "normalization/activation.h"
#include "normalization/geometry.h"
#include "normalization/operands.h"
#include "normalization/runs.h"
#include "normalization/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/half.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

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
        bytes_(operands.bytes(geometry_.elements())) {
    if constexpr (requires { Op::kAtOnce; }) {
      const auto& steps = geometry_.run.steps;
      is_packed_ =
          geometry_.kept.empty() && !activation_.has_program() &&
          std::all_of(steps.begin(), steps.begin() + Op::kInputs,
                      [&](int64_t step) { return step == operands_.item; }) &&
          std::all_of(steps.begin() + operands_.inputs, steps.begin() + operands_.inputs + Op::kOutputs,
                      [&](int64_t step) { return step == operands_.item; });
    }
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto constants = op_.constants(inputs);
    if constexpr (requires { Op::kAtOnce; }) {
      if (is_packed_ && operands_.item == sizeof(float)) return run_packed<float>(constants, inputs, outputs);
      if (is_packed_) return run_packed<Half>(constants, inputs, outputs);
    }
    const int64_t pieces = geometry_.pieces();
    const int64_t runs = count_of(geometry_.kept) * pieces;
    const int64_t work = std::max(bytes_, geometry_.elements() * kBufferWork);
    const int threads = threads_for(work);
    const int64_t calls = std::min(calls_for(work, threads), runs);
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
  // All tensors in one order without gaps: without buffers of doubles. Large outputs that lie over no input
  // are written past the caches.
  template <class T, class Constants>
  void run_packed(const Constants& constants, const void* const* inputs, void* const* outputs) const {
    constexpr int64_t kChunk = 1 << 10;
    constexpr auto kItem = static_cast<int64_t>(sizeof(T));
    const int64_t elements = geometry_.elements();
    bool is_streamed = elements * kItem >= kStreamFrom;
    for (size_t k = 0; k < Op::kInputs; ++k) {
      for (size_t j = 0; j < Op::kOutputs; ++j) is_streamed &= inputs[k] != outputs[j];
    }
    const int threads = threads_for(bytes_);
    const int64_t chunks = (elements + kChunk - 1) / kChunk;
    const int64_t calls = std::min(calls_for(bytes_, threads), chunks);
    parallel_for(calls, threads, [&](int64_t call) {
      const Op op = op_;  // which no store can change
      std::array<LineWriter, Op::kOutputs> writers;
      alignas(64) std::byte room[Op::kOutputs][kChunk * kItem];
      const int64_t end = std::min(share_begin(call + 1, calls, chunks) * kChunk, elements);
      int64_t begin = share_begin(call, calls, chunks) * kChunk;
      for (size_t k = 0; k < Op::kOutputs; ++k) {
        writers[k].start(static_cast<std::byte*>(outputs[k]) + begin * kItem);
      }
      for (; begin < end; begin += kChunk) {
        const int64_t count = std::min(kChunk, end - begin);
        const int64_t whole = count / Op::kAtOnce * Op::kAtOnce;
        std::array<const std::byte*, Op::kInputs> in;
        std::array<std::byte*, Op::kOutputs> out;
        const auto start_at = [&](int64_t i, bool is_in_room) {
          for (size_t k = 0; k < Op::kInputs; ++k) {
            in[k] = static_cast<const std::byte*>(inputs[k]) + (begin + i) * kItem;
          }
          for (size_t k = 0; k < Op::kOutputs; ++k) {
            out[k] =
                is_in_room ? room[k] + i * kItem : static_cast<std::byte*>(outputs[k]) + (begin + i) * kItem;
          }
        };
        start_at(0, is_streamed);
        for (int64_t i = 0; i < whole; i += Op::kAtOnce) {
          op.template compute_packed<T>(constants, in, out);
          for (const std::byte*& each : in) each += Op::kAtOnce * kItem;
          for (std::byte*& each : out) each += Op::kAtOnce * kItem;
        }
        if (whole < count) {
          const auto rest = static_cast<size_t>((count - whole) * kItem);
          std::byte some[Op::kInputs][Op::kAtOnce * sizeof(T)]{};
          start_at(whole, is_streamed);
          const auto to = out;
          for (size_t k = 0; k < Op::kInputs; ++k) {
            std::memcpy(some[k], in[k], rest);
            in[k] = some[k];
            if (k < Op::kOutputs) out[k] = some[k];
          }
          op.template compute_packed<T>(constants, in, out);
          for (size_t k = 0; k < Op::kOutputs; ++k) std::memcpy(to[k], some[k], rest);
        }
        for (size_t k = 0; is_streamed && k < Op::kOutputs; ++k) writers[k].append(room[k], count * kItem);
      }
      if (is_streamed) stream_fence();
    });
  }

  Op op_;
  Geometry geometry_;
  Operands operands_;
  RunActivation activation_;
  int64_t bytes_;
  bool is_packed_ = false;
};

ANYDML_ISA_END
