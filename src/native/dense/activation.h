// Activations on tiles of sums in single precision: the instructions of a pointwise program, each on the
// whole tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/attributes.h"
#include "core/layout.h"
#include "dense/tile.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"

ANYDML_ISA_BEGIN

class TileActivation {
 public:
  // None where the attributes have no Program: of each instruction the number, the type, operands and
  // constants; values are numbered, the sum first.
  explicit TileActivation(const Attributes& attributes) {
    if (!attributes.has("Program")) return;
    constexpr size_t kWords = 8;
    const std::vector<int64_t>& words = attributes.integers("Program");
    std::vector<DataType> types{DataType::kFloat32};
    for (size_t at = 0; at + kWords <= words.size(); at += kWords) {
      const auto opcode = static_cast<Opcode>(words[at]);
      Instruction made{nullptr, {}, {words[at + 5], words[at + 6], words[at + 7]}};
      Types all{{}, static_cast<DataType>(words[at + 1])};
      for (size_t i = 0; i < made.operands.size(); ++i) {
        made.operands[i] = static_cast<size_t>(words[at + 2 + i]);
        require(made.operands[i] < types.size(), "an operand is not there yet");
        all.operands[i] = types[made.operands[i]];
      }
      for (const auto find : {find_arithmetic, find_mixed, find_transcendental}) {
        if (made.pass == nullptr) made.pass = find(opcode, all);
      }
      is_known_ = is_known_ && made.pass != nullptr;
      types.push_back(all.out);
      program_.push_back(made);
    }
    result_ = static_cast<size_t>(attributes.integers("Results").at(0));
    require(result_ < types.size(), "the result is not there");
    is_known_ = is_known_ && types.size() <= kMostValues && types[result_] == DataType::kFloat32;
  }

  // Whether there are instructions, and loops for all of them.
  bool is_known() const { return is_known_; }
  bool is_none() const { return program_.empty(); }

  ANYDML_NOINLINE void apply(float* sums, int64_t count) const {
    constexpr int64_t kMost = int64_t{kMostRows} * kPanel;
    alignas(64) std::byte values[kMostValues][kMost * sizeof(double) + kWholeElements * sizeof(double)];
    for (int64_t begin = 0; begin < count; begin += kMost) {
      const int64_t some = std::min(kMost, count - begin);
      const auto size = static_cast<size_t>(some) * sizeof(float);
      std::memset(values[0] + size, 0, kWholeElements * sizeof(float));
      std::memcpy(values[0], sums + begin, size);
      size_t value = 0;
      for (const Instruction& each : program_) {
        const auto& of = each.operands;
        each.pass(each.constants.data(), values[of[0]], values[of[1]], values[of[2]], values[++value], some);
      }
      std::memcpy(sums + begin, values[result_], size);
    }
  }

 private:
  static constexpr size_t kMostValues = 8;
  struct Instruction {
    Pass pass;
    std::array<size_t, 3> operands;
    std::array<int64_t, 3> constants;
  };

  std::vector<Instruction> program_;
  size_t result_ = 0;
  bool is_known_ = true;
};

ANYDML_ISA_END
