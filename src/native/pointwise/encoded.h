// Pointwise programs as they come from Python: eight integers for each instruction, its opcode, the type of
// its result, three operands, of which those that it does not have are the first, and three constants, of
// floats by a double's bits. Operands are numbers of values: what goes in, then what each instruction gives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"

ANYDML_ISA_BEGIN

using EncodedInstruction = std::array<int64_t, 8>;

inline std::span<const int64_t, 3> operands_of(const EncodedInstruction& instruction) {
  return std::span(instruction).subspan<2, 3>();
}

inline std::vector<EncodedInstruction> decoded(const std::vector<int64_t>& program) {
  const size_t size = std::tuple_size_v<EncodedInstruction>;
  require(!program.empty() && program.size() % size == 0, "a program has no instruction, or a part of one");
  std::vector<EncodedInstruction> instructions(program.size() / size);
  for (size_t i = 0; i < program.size(); ++i) instructions[i / size][i % size] = program[i];
  return instructions;
}

inline Pass find_pass(Opcode opcode, const Types& types) {
  for (const auto file : {find_arithmetic, find_mixed, find_quantization, find_transcendental}) {
    if (const Pass found = file(opcode, types)) return found;
  }
  return nullptr;
}

// A program on one value, such as an activation.
struct ValueProgram {
  struct Step {
    Pass pass;  // null where there is no loop for it
    std::array<size_t, 3> operands;
    std::array<int64_t, 3> constants;
  };

  std::vector<DataType> types;  // of the values
  std::vector<Step> steps;

  ValueProgram(DataType first, const std::vector<int64_t>& program) : types{first} {
    for (const EncodedInstruction& each : decoded(program)) {
      Step step{nullptr, {}, {each[5], each[6], each[7]}};
      Types of_this{{}, static_cast<DataType>(each[1])};
      for (size_t i = 0; i < step.operands.size(); ++i) {
        const int64_t operand = operands_of(each)[i];
        require(operand >= 0 && operand < static_cast<int64_t>(types.size()), "an operand is not there yet");
        step.operands[i] = static_cast<size_t>(operand);
        of_this.operands[i] = types[step.operands[i]];
      }
      step.pass = find_pass(static_cast<Opcode>(each[0]), of_this);
      steps.push_back(step);
      types.push_back(of_this.out);
    }
  }

  bool is_known() const {
    for (const Step& each : steps) {
      if (each.pass == nullptr) return false;
    }
    return true;
  }
};

ANYDML_ISA_END
