// The instructions of pointwise programs: which there are, and the loops over strips of elements that run
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/kernel_plan.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

enum class Opcode : int64_t {
#define ANYDML_OPCODE(name) name,
#include "pointwise/opcodes.inc"
#undef ANYDML_OPCODE
};

// The number of elements that every loop rounds its count up to: two vectors of bytes.
inline constexpr int64_t kWholeElements = 64;

// An instruction on `count` elements, or as many more as make that a multiple of kWholeElements. An operation
// of fewer operands has its first in the place of the others.
using Pass = void (*)(const int64_t* constants, const std::byte* x, const std::byte* y, const std::byte* z,
                      std::byte* out, int64_t count);

// The types of an instruction's operands and of its result.
struct Types {
  std::array<DataType, 3> operands;
  DataType out;
  // Which operands are one element for all results, of which reads_one holds.
  std::array<bool, 3> are_one{};

  // The one type of operands and result; kUnknown where there are several.
  DataType only() const {
    for (const DataType each : operands) {
      if (each != out) return DataType::kUnknown;
    }
    return out;
  }
};

// The loop of an instruction on elements of those types; null where there is none. Each file of instructions
// knows some of them.
Pass find_arithmetic(Opcode opcode, const Types& types);
Pass find_mixed(Opcode opcode, const Types& types);
Pass find_quantization(Opcode opcode, const Types& types);
Pass find_transcendental(Opcode opcode, const Types& types);

// Whether an instruction reads no more than the first element of an operand that is one for all results.
constexpr bool reads_one(Opcode opcode, size_t operand) {
  switch (opcode) {
    case Opcode::QUANTIZE_LINEAR:
    case Opcode::DEQUANTIZE_LINEAR:
      return operand > 0;
    case Opcode::LINEAR_QUANTIZATION:
    case Opcode::SUM_QUANTIZATION:
      return true;
    case Opcode::QUANTIZED_LINEAR_ADD:
      return operand == 2;
    default:
      return false;
  }
}

ANYDML_ISA_END
