// Activations of gates: programs of pointwise instructions on singles, the same that the operators are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "recurrent/tuning.h"

ANYDML_ISA_BEGIN

class GateActivation {
 public:
  // Eight integers for each instruction: its number, the type of its result, operands, constants. The first
  // value is what enters the gate, the last one what leaves it.
  explicit GateActivation(const std::vector<int64_t>& words) {
    require(!words.empty() && words.size() % kWords == 0 && words.size() / kWords <= kMost,
            "the instructions of an activation");
    std::array<DataType, kMost + 1> types{DataType::kFloat32};
    for (size_t i = 0; i < words.size() / kWords; ++i) {
      const int64_t* const word = words.data() + i * kWords;
      Instruction each{nullptr, {}, {word[5], word[6], word[7]}};
      Types of_this{{}, static_cast<DataType>(word[1])};
      for (size_t k = 0; k < 3; ++k) {
        require(word[2 + k] >= 0 && word[2 + k] <= static_cast<int64_t>(i), "an operand is not there yet");
        each.operands[k] = static_cast<size_t>(word[2 + k]);
        of_this.operands[k] = types[each.operands[k]];
      }
      for (const auto find : {find_arithmetic, find_mixed, find_transcendental}) {
        if (each.pass == nullptr) each.pass = find(static_cast<Opcode>(word[0]), of_this);
      }
      require(each.pass != nullptr, "an activation has no instruction");
      types[i + 1] = of_this.out;
      program_.push_back(each);
    }
    require(types[program_.size()] == DataType::kFloat32, "an activation gives no singles");
    if (program_.size() == 1 && static_cast<Opcode>(words[0]) == Opcode::COPY) program_.clear();
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
        const Instruction& each = program_[i];
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
  static constexpr size_t kWords = 8;
  static constexpr size_t kMost = 6;  // instructions

  struct Instruction {
    Pass pass;
    std::array<size_t, 3> operands;
    std::array<int64_t, 3> constants;
  };

  std::vector<Instruction> program_;
};

ANYDML_ISA_END
