// Activations that are applied to what is not rounded yet: an instruction of pointwise programs on doubles.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attributes.h"
#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"

ANYDML_ISA_BEGIN

class RunActivation {
 public:
  // None where the attributes have no Program. That is one instruction: its number, type, operands,
  // constants.
  explicit RunActivation(const Attributes& attributes) {
    if (!attributes.has("Program")) return;
    const std::vector<int64_t>& words = attributes.integers("Program");
    require(words.size() == 8, "an activation is one instruction");
    const auto opcode = static_cast<Opcode>(words[0]);
    if (opcode == Opcode::COPY) return;
    constexpr DataType kDouble = DataType::kFloat64;
    const Types types{{kDouble, kDouble, kDouble}, kDouble};
    pass_ = find_arithmetic(opcode, types);
    if (pass_ == nullptr) pass_ = find_transcendental(opcode, types);
    require(pass_ != nullptr, "an activation has no instruction");
    for (size_t i = 0; i < constants_.size(); ++i) constants_[i] = words[5 + i];
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
