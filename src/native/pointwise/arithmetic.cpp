// Instructions on elements of one type: arithmetic, comparisons with constants, bits; and conversions between
// floats.
#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "pointwise/narrow_division.h"
#include "pointwise/passes.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN
namespace {

Pass conversion(DataType from, DataType to) {
  if (from == to) return of_bits<Copy>(from);
  const auto is = [&](DataType a, DataType b) { return from == a && to == b; };
  if (is(DataType::kFloat16, DataType::kFloat32)) return pass<Copy, Half, float, float>;
  if (is(DataType::kFloat32, DataType::kFloat16)) return pass<Copy, float, float, Half>;
  if (is(DataType::kFloat16, DataType::kFloat64)) return pass<Copy, Half, double, double>;
  if (is(DataType::kFloat64, DataType::kFloat16)) return pass<Copy, double, double, Half>;
  if (is(DataType::kFloat32, DataType::kFloat64)) return pass<Copy, float, double, double>;
  if (is(DataType::kFloat64, DataType::kFloat32)) return pass<Copy, double, double, float>;
  return nullptr;
}

Pass find_of_floats(Opcode opcode, DataType type) {
  switch (opcode) {
    case Opcode::ADD:
      return of_floats<Add>(type);
    case Opcode::SUBTRACT:
      return of_floats<Subtract>(type);
    case Opcode::MULTIPLY:
      return of_floats<Multiply>(type);
    case Opcode::DIVIDE:
      return of_singles<Divide>(type);
    case Opcode::REMAINDER:
      return of_wide<Remainder>(type);
    case Opcode::MODULUS_FLOOR:
      return of_wide<ModulusFloor>(type);
    case Opcode::MAX:
      return of_singles<Larger>(type);
    case Opcode::MIN:
      return of_singles<Smaller>(type);
    case Opcode::MEAN:
      return of_singles<Mean>(type);
    case Opcode::DIFFERENCE_SQUARE:
      return difference_square(type);
    case Opcode::NEGATE:
      return of_floats<Negate>(type);
    case Opcode::ABS:
      return of_floats<Absolute>(type);
    case Opcode::SIGN:
      return of_floats<Sign>(type);
    case Opcode::SQRT:
      return of_floats<SquareRoot>(type);
    case Opcode::RECIP:
      return reciprocal(type);
    case Opcode::CEIL:
      return of_floats<Ceil>(type);
    case Opcode::FLOOR:
      return of_floats<Floor>(type);
    case Opcode::TRUNCATE:
      return of_floats<Truncate>(type);
    case Opcode::ROUND_EVEN:
      return of_floats<RoundEven>(type);
    case Opcode::ROUND_AWAY:
      return of_floats<RoundAway>(type);
    case Opcode::CLIP:
      return of_floats<Clip>(type);
    case Opcode::CLIP_FROM_ABOVE:
      return of_floats<ClipFromAbove>(type);
    case Opcode::CLIP_GRAD:
      return of_constants<ClipGrad>(type);
    case Opcode::RELU:
      return of_floats<Relu>(type);
    case Opcode::RELU_GRAD:
      return of_singles<ReluGrad>(type);
    case Opcode::PARAMETERIZED_RELU:
      return of_singles<ParameterizedRelu>(type);
    case Opcode::LEAKY_RELU:
      return of_functions<LeakyRelu>(type);
    case Opcode::THRESHOLDED_RELU:
      return of_floats<ThresholdedRelu>(type);
    case Opcode::SHRINK:
      return of_functions<Shrink>(type);
    case Opcode::LINEAR:
      return linear(type);
    case Opcode::HARD_SIGMOID:
      return hard_sigmoid(type);
    case Opcode::HARD_SWISH:
      return hard_swish(type);
    case Opcode::SOFTSIGN:
      return of_functions<Softsign>(type);
    default:
      return nullptr;
  }
}

Pass find_of_integers(Opcode opcode, DataType type) {
  switch (opcode) {
    case Opcode::ADD:
      return of_bits<Add>(type);
    case Opcode::SUBTRACT:
      return of_bits<Subtract>(type);
    case Opcode::MULTIPLY:
      return of_bits<Multiply>(type);
    case Opcode::DIVIDE:
      return of_integers<DivideBySize>(type);
    case Opcode::REMAINDER:
      return of_integers<RemainderBySize>(type);
    case Opcode::MODULUS_FLOOR:
      return of_integers<ModulusFloorBySize>(type);
    case Opcode::MAX:
      return of_integers<Larger>(type);
    case Opcode::MIN:
      return of_integers<Smaller>(type);
    case Opcode::MEAN:
      return of_integers<IntegerMean>(type);
    case Opcode::DIFFERENCE_SQUARE:
      return of_bits<DifferenceSquare>(type);
    case Opcode::NEGATE:
      return of_bits<Negate>(type);
    case Opcode::ABS:
      return of_signed<Absolute>(type);
    case Opcode::SIGN:
      return of_integers<Sign>(type);
    case Opcode::CLIP:
      return of_integers<Clip>(type);
    case Opcode::CLIP_GRAD:
      return of_integers<ClipGrad>(type);
    case Opcode::RELU:
      return of_signed<Relu>(type);
    case Opcode::RELU_GRAD:
      return of_integers<ReluGrad>(type);
    case Opcode::PARAMETERIZED_RELU:
      return of_signed<ParameterizedRelu>(type);
    case Opcode::SHRINK:
      return of_integers<IntegerShrink>(type);
    case Opcode::LOGICAL_AND:
      return of_bits<LogicalAnd>(type);
    case Opcode::LOGICAL_OR:
      return of_bits<LogicalOr>(type);
    case Opcode::LOGICAL_XOR:
      return of_bits<LogicalXor>(type);
    case Opcode::LOGICAL_NOT:
      return of_bits<LogicalNot>(type);
    default:
      return nullptr;
  }
}

// Of the elements of any type, as they lie in memory.
Pass find_of_bits(Opcode opcode, DataType type) {
  switch (opcode) {
    case Opcode::BIT_AND:
      return of_bits<BitAnd>(type);
    case Opcode::BIT_OR:
      return of_bits<BitOr>(type);
    case Opcode::BIT_XOR:
      return of_bits<BitXor>(type);
    case Opcode::BIT_NOT:
      return of_bits<BitNot>(type);
    case Opcode::BIT_SHIFT_LEFT:
      return of_bits<ShiftLeft>(type);
    case Opcode::BIT_SHIFT_RIGHT:
      return of_bits<ShiftRight>(type);
    default:
      return nullptr;
  }
}

}  // namespace

Pass find_arithmetic(Opcode opcode, const Types& types) {
  if (opcode == Opcode::COPY) return conversion(types.operands[0], types.out);
  const DataType type = types.only();
  if (const Pass found = find_of_bits(opcode, type)) return found;
  return is_float(type) ? find_of_floats(opcode, type) : find_of_integers(opcode, type);
}

ANYDML_ISA_END
