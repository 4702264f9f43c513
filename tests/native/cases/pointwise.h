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

// A sum of quantised numbers.
Case quantized_sum(std::vector<int64_t> sizes, DataType a, DataType b, DataType out) {
  const std::vector<int64_t> ones(sizes.size(), 1);
  const Layout scale = packed(DataType::kFloat32, ones);
  const auto real = static_cast<int64_t>(DataType::kFloat32);
  const auto word = [](Opcode opcode) { return static_cast<int64_t>(opcode); };
  return {"ELEMENT_WISE",
          {{packed(a, sizes), scale, packed(a, ones), packed(b, sizes), scale, packed(b, ones), scale,
            packed(out, ones)},
           {packed(out, sizes)},
           attributes({{"Program",
                        {word(Opcode::LINEAR_QUANTIZATION),
                         real,
                         1,
                         2,
                         1,
                         0,
                         0,
                         0,
                         word(Opcode::LINEAR_QUANTIZATION),
                         real,
                         4,
                         5,
                         4,
                         0,
                         0,
                         0,
                         word(Opcode::LINEAR_QUANTIZATION),
                         real,
                         6,
                         7,
                         6,
                         0,
                         0,
                         0,
                         word(Opcode::SUM_QUANTIZATION),
                         real,
                         8,
                         9,
                         10,
                         0,
                         0,
                         0,
                         word(Opcode::QUANTIZED_LINEAR_ADD),
                         static_cast<int64_t>(out),
                         0,
                         3,
                         11,
                         0,
                         0,
                         0}},
                       {"Results", {12}}})}};
}

}  // namespace
