// Instructions that take longer than memory: exponentials, logarithms, powers.
#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "pointwise/passes.h"

ANYDML_ISA_BEGIN

Pass find_transcendental(Opcode opcode, const Types& types) {
  const DataType type = types.only();
  switch (opcode) {
    case Opcode::POW:
      return of_wide<Pow>(type);
    case Opcode::EXP:
      return of_floats<Exp>(type);
    case Opcode::LOG:
      return of_floats<Log>(type);
    case Opcode::SIGMOID:
      return of_floats<Sigmoid>(type);
    case Opcode::TANH:
      return of_floats<Tanh>(type);
    case Opcode::SOFTPLUS:
      return of_floats<Softplus>(type);
    case Opcode::ELU:
      return of_floats<Elu>(type);
    case Opcode::SCALED_ELU:
      return of_floats<ScaledElu>(type);
    case Opcode::SCALED_TANH:
      return of_wide<ScaledTanh>(type);
    case Opcode::SCALED_SOFTPLUS:
      return of_wide<ScaledSoftplus>(type);
    default:
      return nullptr;
  }
}

ANYDML_ISA_END
