// Element-wise operators and activations, alone and fused in chains: programs of pointwise instructions.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "pointwise/encoded.h"
#include "pointwise/instructions.h"
#include "pointwise/plan.h"
#include "pointwise/tiles.h"
#include "pointwise/tuning.h"

ANYDML_ISA_BEGIN
namespace {

// Exponentials and logarithms alone take longer than memory.
constexpr int64_t cost_of(Opcode opcode) { return opcode >= Opcode::INTEGER_POW ? kTranscendentalCost : 0; }

// Linear scan register allocation: inputs and outputs have registers of their own; an intermediate result
// takes the first register that holds no live value. Operands count as live, as they may be of another size.
class RegisterAllocation {
 public:
  // `outputs` are the values that are stored, in the order of the outputs.
  RegisterAllocation(size_t inputs, std::span<const EncodedInstruction> program,
                     std::span<const int64_t> outputs)
      : inputs_(inputs), outputs_(outputs) {
    last_.resize(inputs + program.size(), 0);
    for (size_t i = 0; i < program.size(); ++i) {
      for (const int64_t operand : operands_of(program[i])) {
        require(operand >= 0 && operand < static_cast<int64_t>(inputs + i), "an operand is not there yet");
        last_[static_cast<size_t>(operand)] = i;
      }
    }
    for (size_t k = 0; k < inputs; ++k) registers_.push_back(static_cast<int>(k));
  }

  int of(int64_t value) const { return registers_[static_cast<size_t>(value)]; }

  // Allocates the register of the i-th instruction's result.
  int add(size_t i) {
    const auto output = std::ranges::find(outputs_, static_cast<int64_t>(inputs_ + i));
    if (output != outputs_.end()) {
      registers_.push_back(static_cast<int>(inputs_ + static_cast<size_t>(output - outputs_.begin())));
      return registers_.back();
    }
    const auto is_needed = [&](int candidate) {
      for (size_t value = inputs_; value < registers_.size(); ++value) {
        if (registers_[value] == candidate && last_[value] >= i) return true;
      }
      return false;
    };
    auto candidate = static_cast<int>(inputs_ + outputs_.size());
    while (is_needed(candidate)) ++candidate;
    registers_.push_back(candidate);
    return candidate;
  }

 private:
  size_t inputs_;
  std::span<const int64_t> outputs_;
  std::vector<size_t> last_;
  std::vector<int> registers_;
};

// A tensor of one element is as large as any other.
Layout broadcast(Layout each, const Layout& output) {
  if (std::ranges::all_of(each.sizes, [](int64_t size) { return size == 1; })) {
    each.sizes = output.sizes;
    each.strides.assign(output.sizes.size(), 0);
  }
  return each;
}

}  // namespace

// The attribute "Program" has the instructions (encoded.h), on the inputs that are present; "Results" has the
// values that the outputs are.
std::unique_ptr<Plan> make_element_wise(const Request& request, std::string& reason) {
  const Layout& output = tensor(request.outputs, 0);
  std::vector<size_t> sources;
  std::vector<Layout> tensors;
  for (size_t k = 0; k < request.inputs.size(); ++k) {
    if (!request.inputs[k].present) continue;
    sources.push_back(k);
    tensors.push_back(broadcast(request.inputs[k], output));
  }
  const size_t inputs = sources.size();
  tensors.insert(tensors.end(), request.outputs.begin(), request.outputs.end());
  if (tensors.size() > kMostTensors) {
    reason = "more than " + std::to_string(kMostTensors) + " tensors";
    return nullptr;
  }
  std::vector<DataType> types;
  for (size_t k = 0; k < tensors.size(); ++k) {
    require(tensor(tensors, k).sizes == output.sizes, "the sizes of tensors differ");
    if (k < inputs) types.push_back(tensors[k].type);
  }
  const std::vector<EncodedInstruction> instructions = decoded(request.attributes.integers("Program"));
  const std::vector<int64_t> results = request.attributes.integers("Results");
  RegisterAllocation registers(inputs, instructions, results);
  std::vector<Instruction> program;
  int64_t cost = 0;
  for (const EncodedInstruction& each : instructions) {
    const auto opcode = static_cast<Opcode>(each[0]);
    Types of_this{{}, static_cast<DataType>(each[1])};
    Instruction instruction{nullptr, {}, 0, {each[5], each[6], each[7]}};
    const auto operands = operands_of(each);
    for (size_t i = 0; i < operands.size(); ++i) {
      of_this.operands[i] = types[static_cast<size_t>(operands[i])];
      instruction.operands[i] = registers.of(operands[i]);
    }
    instruction.pass = find_pass(opcode, of_this);
    if (instruction.pass == nullptr) {
      reason = "no instruction for " + std::string(name_of(of_this.operands[0]));
      return nullptr;
    }
    instruction.out = registers.add(program.size());
    if (instruction.out >= kMostRegisters) {
      reason = "more intermediate results at a time than there are registers for";
      return nullptr;
    }
    program.push_back(instruction);
    types.push_back(of_this.out);
    cost += cost_of(opcode);
  }
  require(results.size() == request.outputs.size(), "a program has other results than outputs");
  for (size_t k = 0; k < results.size(); ++k) {
    const auto value = static_cast<size_t>(results[k]);
    require(value >= inputs && value < types.size() && types[value] == request.outputs[k].type,
            "a program's result is of another type");
  }
  int64_t widest = 1;
  for (const DataType type : types) widest = std::max(widest, size_of(type));
  Tiles tiles(tensors, inputs, widest);
  std::string description = tiles.describe();
  return std::make_unique<ElementPlan>(std::move(tiles), std::move(sources), std::move(program), cost,
                                       std::move(description));
}

ANYDML_ISA_END
