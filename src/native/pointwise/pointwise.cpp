// Element-wise operators and activations, alone and fused in chains: programs of pointwise instructions.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "pointwise/operations.h"
#include "pointwise/plan.h"
#include "pointwise/tiles.h"
#include "pointwise/tuning.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN
namespace {

// Those of backends/native/pointwise_lowering.py, in the same order.
enum class Opcode : int64_t {
  kCopy,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kMax,
  kMin,
  kMean,
  kNegate,
  kAbs,
  kSqrt,
  kRecip,
  kClip,
  kClipFromAbove,
  kRelu,
  kParameterizedRelu,
  kLeakyRelu,
  kThresholdedRelu,
  kShrink,
  kLinear,
  kHardSigmoid,
  kSoftsign,
  kPow,
  kExp,
  kLog,
  kSigmoid,
  kTanh,
  kSoftplus,
  kElu,
  kScaledElu,
  kScaledTanh,
  kScaledSoftplus,
};

// Exponentials and logarithms alone take longer than memory.
constexpr int64_t cost_of(Opcode opcode) { return opcode >= Opcode::kPow ? kTranscendentalCost : 0; }

template <class Operation, class T>
constexpr Pass of_numbers = pass<Operation, T, T, T>;

template <class Operation>
Pass of_bits(DataType type) {
  switch (size_of(type)) {
    case 1:
      return of_numbers<Operation, uint8_t>;
    case 2:
      return of_numbers<Operation, uint16_t>;
    case 4:
      return of_numbers<Operation, uint32_t>;
    case 8:
      return of_numbers<Operation, uint64_t>;
    default:
      return nullptr;
  }
}

// Operations that single precision computes as exactly as the specification's wider numbers, halves being
// rounded from singles; and exponentials, within one unit in the last place.
template <class Operation>
Pass of_singles(DataType type) {
  if (type == DataType::kFloat16) return pass<Operation, Half, float, Half>;
  return type == DataType::kFloat32 ? of_numbers<Operation, float> : nullptr;
}
// Likewise with doubles, for programs that round later.
template <class Operation>
Pass of_floats(DataType type) {
  return type == DataType::kFloat64 ? of_numbers<Operation, double> : of_singles<Operation>(type);
}

// Operations that need double precision.
template <class Operation>
Pass of_wide(DataType type) {
  if (type == DataType::kFloat16) return pass<Operation, Half, double, Half>;
  if (type == DataType::kFloat32) return pass<Operation, float, double, float>;
  return type == DataType::kFloat64 ? of_numbers<Operation, double> : nullptr;
}

// Operations on elements and constants, which have more bits than halves.
template <class Operation>
Pass of_constants(DataType type) {
  return type == DataType::kFloat16 ? of_wide<Operation>(type) : of_floats<Operation>(type);
}

template <class Operation>
Pass of_signed(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return of_numbers<Operation, int8_t>;
    case DataType::kInt16:
      return of_numbers<Operation, int16_t>;
    case DataType::kInt32:
      return of_numbers<Operation, int32_t>;
    case DataType::kInt64:
      return of_numbers<Operation, int64_t>;
    default:
      return nullptr;
  }
}

template <class Operation>
Pass of_integers(DataType type) {
  switch (type) {
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32:
    case DataType::kUint64:
      return of_bits<Operation>(type);
    default:
      return of_signed<Operation>(type);
  }
}

bool is_float(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kFloat32 || type == DataType::kFloat64;
}

// Integer operations whose bits do not depend on signedness.
template <class Operation>
Pass of_any(DataType type) {
  return is_float(type) ? of_floats<Operation>(type) : of_bits<Operation>(type);
}

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

// The pass of an operation over elements of a type; null where there is none.
Pass find(Opcode opcode, DataType type) {
  const bool floats = is_float(type);
  switch (opcode) {
    case Opcode::kAdd:
      return of_any<Add>(type);
    case Opcode::kSubtract:
      return floats ? of_singles<Subtract>(type) : of_bits<Subtract>(type);
    case Opcode::kMultiply:
      return floats ? of_singles<Multiply>(type) : of_bits<Multiply>(type);
    case Opcode::kDivide:
      return floats ? of_singles<Divide>(type) : of_integers<Divide>(type);
    case Opcode::kRemainder:
      return floats ? of_singles<Remainder>(type) : of_integers<Remainder>(type);
    case Opcode::kMax:
      return floats ? of_singles<Larger>(type) : of_integers<Larger>(type);
    case Opcode::kMin:
      return floats ? of_singles<Smaller>(type) : of_integers<Smaller>(type);
    case Opcode::kMean:
      return floats ? of_singles<Mean>(type) : of_integers<IntegerMean>(type);
    case Opcode::kNegate:
      return of_any<Negate>(type);
    case Opcode::kAbs:
      return floats ? of_floats<Absolute>(type) : of_signed<Absolute>(type);
    case Opcode::kSqrt:
      return of_floats<SquareRoot>(type);
    case Opcode::kRecip:
      return of_floats<Reciprocal>(type);
    case Opcode::kClip:
      return floats ? of_floats<Clip>(type) : of_integers<Clip>(type);
    case Opcode::kClipFromAbove:
      return of_floats<ClipFromAbove>(type);
    case Opcode::kRelu:
      return floats ? of_floats<Relu>(type) : of_signed<Relu>(type);
    case Opcode::kParameterizedRelu:
      return floats ? of_singles<ParameterizedRelu>(type) : of_signed<ParameterizedRelu>(type);
    case Opcode::kLeakyRelu:
      return of_constants<LeakyRelu>(type);
    case Opcode::kThresholdedRelu:
      return of_floats<ThresholdedRelu>(type);
    case Opcode::kShrink:
      return of_constants<Shrink>(type);
    case Opcode::kLinear:
      return of_wide<Linear>(type);
    case Opcode::kHardSigmoid:
      return of_wide<HardSigmoid>(type);
    case Opcode::kSoftsign:
      return of_wide<Softsign>(type);
    case Opcode::kPow:
      return of_wide<Pow>(type);
    case Opcode::kExp:
      return of_floats<Exp>(type);
    case Opcode::kLog:
      return of_floats<Log>(type);
    case Opcode::kSigmoid:
      return of_floats<Sigmoid>(type);
    case Opcode::kTanh:
      return of_floats<Tanh>(type);
    case Opcode::kSoftplus:
      return of_floats<Softplus>(type);
    case Opcode::kScaledTanh:
      return of_wide<ScaledTanh>(type);
    case Opcode::kScaledSoftplus:
      return of_wide<ScaledSoftplus>(type);
    case Opcode::kElu:
      return of_floats<Elu>(type);
    case Opcode::kScaledElu:
      return of_floats<ScaledElu>(type);
    default:
      return nullptr;
  }
}

// An instruction as it comes from Python.
using EncodedInstruction = std::array<int64_t, 7>;

std::vector<EncodedInstruction> decoded(const std::vector<int64_t>& program) {
  const size_t size = std::tuple_size_v<EncodedInstruction>;
  require(!program.empty() && program.size() % size == 0, "a program has no instruction, or a part of one");
  std::vector<EncodedInstruction> instructions(program.size() / size);
  for (size_t i = 0; i < program.size(); ++i) instructions[i / size][i % size] = program[i];
  return instructions;
}

// Register allocation: inputs and the result have registers of their own; an intermediate result takes the
// first register that holds no live value. Operands count as live, as they may be of another size.
class RegisterAllocation {
 public:
  RegisterAllocation(size_t inputs, std::span<const EncodedInstruction> program) : inputs_(inputs) {
    last_.resize(inputs + program.size(), 0);
    for (size_t i = 0; i < program.size(); ++i) {
      for (const int64_t operand : {program[i][2], program[i][3]}) {
        require(operand >= 0 && operand < static_cast<int64_t>(inputs + i), "an operand is not there yet");
        last_[static_cast<size_t>(operand)] = i;
      }
    }
    for (size_t k = 0; k < inputs; ++k) registers_.push_back(static_cast<int>(k));
  }

  int of(int64_t value) const { return registers_[static_cast<size_t>(value)]; }

  // Allocates the register of the i-th instruction's result.
  int add(size_t i) {
    int candidate_register = static_cast<int>(inputs_);
    if (i + 1 < last_.size() - inputs_) {
      const auto is_needed = [&](int candidate) {
        for (size_t value = inputs_; value < registers_.size(); ++value) {
          if (registers_[value] == candidate && last_[value] >= i) return true;
        }
        return false;
      };
      do ++candidate_register;
      while (is_needed(candidate_register));
    }
    registers_.push_back(candidate_register);
    return candidate_register;
  }

 private:
  size_t inputs_;
  std::vector<size_t> last_;
  std::vector<int> registers_;
};

}  // namespace

// The attribute "Program" has seven integers for each instruction: its opcode, the type of its result, two
// operands, of which the second is the first where it has one, and three constants, of floats by a double's
// bits. Operands are numbers of values: the inputs, then what each instruction gives; the last gives the
// output.
std::unique_ptr<Plan> make_element_wise(const Request& request, std::string& reason) {
  const Layout& output = tensor(request.outputs, 0);
  const size_t inputs = request.inputs.size();
  if (inputs >= kMostTensors) {
    reason = "more than " + std::to_string(kMostTensors - 1) + " inputs";
    return nullptr;
  }
  std::vector<DataType> types;
  for (size_t k = 0; k < inputs; ++k) {
    require(tensor(request.inputs, k).sizes == output.sizes, "the sizes of input and output differ");
    types.push_back(request.inputs[k].type);
  }
  const std::vector<EncodedInstruction> instructions = decoded(request.attributes.integers("Program"));
  RegisterAllocation registers(inputs, instructions);
  std::vector<Instruction> program;
  int64_t cost = 0;
  for (const EncodedInstruction& each : instructions) {
    const auto opcode = static_cast<Opcode>(each[0]);
    const auto out = static_cast<DataType>(each[1]);
    const DataType type = types[static_cast<size_t>(each[2])];
    require(type == types[static_cast<size_t>(each[3])], "the types of operands differ");
    const bool copies = opcode == Opcode::kCopy;
    const Pass pass = copies ? conversion(type, out) : type == out ? find(opcode, type) : nullptr;
    if (pass == nullptr) {
      reason = "no instruction for " + std::string(name_of(type));
      return nullptr;
    }
    const int x = registers.of(each[2]);
    const int y = registers.of(each[3]);
    const int to = registers.add(program.size());
    if (to >= kMostRegisters) {
      reason = "more intermediate results at a time than there are registers for";
      return nullptr;
    }
    program.push_back({pass, x, y, to, {each[4], each[5], each[6]}});
    types.push_back(out);
    cost += cost_of(opcode);
  }
  require(types.back() == output.type, "a program's result is of another type");
  int64_t widest = 1;
  for (const DataType type : types) widest = std::max(widest, size_of(type));
  Tiles tiles(request.inputs, output, widest);
  std::string description = tiles.describe();
  return std::make_unique<ElementPlan>(std::move(tiles), inputs, std::move(program), cost,
                                       std::move(description));
}

ANYDML_ISA_END
