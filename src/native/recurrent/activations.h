// Activations of gates: programs of pointwise instructions on singles, the same that the operators are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/encoded.h"
#include "pointwise/instructions.h"
#include "recurrent/tuning.h"

ANYDML_ISA_BEGIN

class GateActivation {
 public:
  // The first value is what enters the gate, the last one what leaves it.
  explicit GateActivation(const std::vector<int64_t>& words) {
    ValueProgram program(DataType::kFloat32, words);
    require(program.steps.size() <= kMost && program.is_known(), "the instructions of an activation");
    require(program.types.back() == DataType::kFloat32, "an activation gives no singles");
    if (program.steps.size() == 1 && static_cast<Opcode>(words[0]) == Opcode::COPY) return;
    program_ = std::move(program.steps);
  }

  // In place, of as many elements as make `count` a multiple of kGateStrip.
  void apply(float* values, int64_t count) const {
    if (program_.empty()) return;
    auto* bytes = reinterpret_cast<std::byte*>(values);
    if (program_.size() == 1) {
      program_[0].pass(program_[0].constants.data(), bytes, bytes, bytes, bytes, count);
      return;
    }
    alignas(64) std::byte results[kMost][kGateStrip * sizeof(double)];
    for (; count > 0; count -= kGateStrip, bytes += kGateStrip * sizeof(float)) {
      for (size_t i = 0; i < program_.size(); ++i) {
        const ValueProgram::Step& each = program_[i];
        const auto operand = [&](size_t k) {
          return each.operands[k] == 0 ? bytes : results[each.operands[k] - 1];
        };
        each.pass(each.constants.data(), operand(0), operand(1), operand(2), results[i],
                  std::min(count, kGateStrip));
      }
      std::memcpy(bytes, results[program_.size() - 1], kGateStrip * sizeof(float));
    }
  }

 private:
  static constexpr size_t kMost = 6;  // instructions

  std::vector<ValueProgram::Step> program_;
};

ANYDML_ISA_END
