// Cases of pointwise programs.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "case.h"

namespace {

enum class Opcode : int64_t {
#define ANYDML_OPCODE(name) name,
#include "pointwise/opcodes.inc"
#undef ANYDML_OPCODE
};

// An instruction is its opcode, the type of its result, three operands and three constants, here doubles.
struct Instruction {
  Opcode opcode;
  int64_t x;
  int64_t y;
  double first = 0;
  double second = 0;
  int64_t z = 0;
  DataType type = DataType::kUnknown;  // the output's
};

Case element_wise(DataType type, std::vector<int64_t> sizes, size_t inputs,
                  const std::vector<Instruction>& program, DataType output = DataType::kUnknown) {
  const Layout layout = packed(type, sizes);
  std::vector<int64_t> words;
  for (const Instruction& each : program) {
    const std::array<int64_t, kInstructionWords> instruction = {
        static_cast<int64_t>(each.opcode),
        static_cast<int64_t>(each.type == DataType::kUnknown ? type : each.type),
        each.x,
        each.y,
        each.z,
        std::bit_cast<int64_t>(each.first),
        std::bit_cast<int64_t>(each.second),
        0};
    words.insert(words.end(), instruction.begin(), instruction.end());
  }
  const auto last = static_cast<int64_t>(inputs + program.size() - 1);
  return {"ELEMENT_WISE",
          {std::vector<Layout>(inputs, layout),
           {packed(output == DataType::kUnknown ? type : output, sizes)},
           attributes({{"Program", std::move(words)}, {"Results", {last}}})}};
}

}  // namespace
