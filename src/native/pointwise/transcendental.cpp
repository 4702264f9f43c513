// Instructions that take longer than memory: exponentials, logarithms, powers.
#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "pointwise/passes.h"

ANYDML_ISA_BEGIN
namespace {

// By squaring in double precision where that is few multiplications.
void constant_pow_of_singles(const int64_t* constants, const std::byte* x, const std::byte* y,
                             const std::byte* z, std::byte* out, int64_t count) {
  const bool is_short = has_short_power(bits_as<double>(constants[0]));
  return is_short ? pass<ConstantPow, float, double, float>(constants, x, y, z, out, count)
                  : pass<ConstantPow, float, float, float>(constants, x, y, z, out, count);
}

}  // namespace

Pass find_transcendental(Opcode opcode, const Types& types) {
  const DataType type = types.only();
  switch (opcode) {
    case Opcode::POW:
      return of_constants<Pow>(type);
    case Opcode::EXP:
      return of_functions<Exp>(type);
    case Opcode::LOG:
      return of_functions<Log>(type);
    case Opcode::SIGMOID:
      return of_functions<Sigmoid>(type);
    case Opcode::TANH:
      return of_functions<Tanh>(type);
    case Opcode::SOFTPLUS:
      return of_functions<Softplus>(type);
    case Opcode::ELU:
      return of_functions<Elu>(type);
    case Opcode::SCALED_ELU:
      return of_functions<ScaledElu>(type);
    case Opcode::SCALED_TANH:
      return of_wide<ScaledTanh>(type);
    case Opcode::SCALED_SOFTPLUS:
      return of_wide<ScaledSoftplus>(type);
    case Opcode::CONSTANT_POW:
      return type == DataType::kFloat32 ? constant_pow_of_singles : of_wide<ConstantPow>(type);
    case Opcode::CELU:
      return of_wide<Celu>(type);
    case Opcode::SWISH:
      return of_functions<Swish>(type);
    case Opcode::GELU:
      return of_functions<Gelu>(type);
    case Opcode::ERF:
      return of_functions<Erf>(type);
    case Opcode::SIN:
      return of_functions<Sin>(type);
    case Opcode::COS:
      return of_functions<Cos>(type);
    case Opcode::TAN:
      return of_functions<Tan>(type);
    case Opcode::ASIN:
      return of_functions<Asin>(type);
    case Opcode::ACOS:
      return of_functions<Acos>(type);
    case Opcode::ATAN:
      return of_functions<Atan>(type);
    case Opcode::ATAN_YX:
      return of_functions<AtanYx>(type);
    case Opcode::SINH:
      return of_functions<Sinh>(type);
    case Opcode::COSH:
      return of_functions<Cosh>(type);
    case Opcode::ASINH:
      return of_functions<Asinh>(type);
    case Opcode::ACOSH:
      return of_functions<Acosh>(type);
    case Opcode::ATANH:
      return of_functions_of_halves<Atanh>(type);
    default:
      return nullptr;
  }
}

ANYDML_ISA_END
