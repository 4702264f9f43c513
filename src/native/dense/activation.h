// Activations on tiles of sums in single precision: the instructions of a pointwise program, each on the
// whole tile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/attributes.h"
#include "core/kernel_plan.h"
#include "core/layout.h"
#include "dense/tile.h"
#include "platform/isa.h"
#include "pointwise/encoded.h"
#include "pointwise/instructions.h"

ANYDML_ISA_BEGIN

class TileActivation {
 public:
  // None where the attributes have no Program.
  explicit TileActivation(const Attributes& attributes) {
    if (!attributes.has("Program")) return;
    ValueProgram program(DataType::kFloat32, attributes.integers("Program"));
    result_ = static_cast<size_t>(attributes.integers("Results").at(0));
    require(result_ < program.types.size(), "the result is not there");
    is_known_ = program.is_known() && program.types.size() <= kMostValues &&
                program.types[result_] == DataType::kFloat32;
    program_ = std::move(program.steps);
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
      for (const ValueProgram::Step& each : program_) {
        const auto& of = each.operands;
        each.pass(each.constants.data(), values[of[0]], values[of[1]], values[of[2]], values[++value], some);
      }
      std::memcpy(sums + begin, values[result_], size);
    }
  }

 private:
  static constexpr size_t kMostValues = 8;

  std::vector<ValueProgram::Step> program_;
  size_t result_ = 0;
  bool is_known_ = true;
};

ANYDML_ISA_END
