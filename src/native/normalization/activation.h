// Activations that are applied to what is not rounded yet: an instruction of pointwise programs on doubles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attributes.h"
#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/encoded.h"
#include "pointwise/instructions.h"

ANYDML_ISA_BEGIN

class RunActivation {
 public:
  // None where the attributes have no Program. That is one instruction.
  explicit RunActivation(const Attributes& attributes) {
    if (!attributes.has("Program")) return;
    const std::vector<int64_t>& words = attributes.integers("Program");
    const ValueProgram program(DataType::kFloat64, words);
    require(program.steps.size() == 1, "an activation is one instruction");
    if (static_cast<Opcode>(words[0]) == Opcode::COPY) return;
    require(program.is_known() && program.types.back() == DataType::kFloat64,
            "an activation has no instruction");
    pass_ = program.steps[0].pass;
    constants_ = program.steps[0].constants;
  }

  bool has_program() const { return pass_ != nullptr; }

  // In a buffer that has as many elements as the instruction makes of `count`.
  void apply(double* run, int64_t count) const {
    if (pass_ == nullptr) return;
    auto* const bytes = reinterpret_cast<std::byte*>(run);
    pass_(constants_.data(), bytes, bytes, bytes, bytes, count);
  }

 private:
  Pass pass_ = nullptr;
  std::array<int64_t, 3> constants_{};
};

ANYDML_ISA_END
