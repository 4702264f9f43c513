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
  // `outputs` are the values that are stored, in the order of the outputs; values that are one for all
  // elements are computed before all others, and have registers of their own.
  RegisterAllocation(size_t inputs, std::span<const EncodedInstruction> program,
                     std::span<const int64_t> outputs, const std::vector<bool>& are_one)
      : inputs_(inputs), outputs_(outputs), next_(inputs + outputs.size()) {
    last_.resize(inputs + program.size(), 0);
    for (size_t i = 0; i < program.size(); ++i) {
      for (const int64_t operand : operands_of(program[i])) last_[static_cast<size_t>(operand)] = i;
    }
    for (size_t k = 0; k < inputs; ++k) registers_.push_back(static_cast<int>(k));
    registers_.resize(last_.size(), kNone);
    for (size_t value = inputs; value < last_.size(); ++value) {
      if (are_one[value]) registers_[value] = static_cast<int>(next_++);
    }
  }

  int of(int64_t value) const { return registers_[static_cast<size_t>(value)]; }

  // Allocates the register of the i-th instruction's result.
  int add(size_t i) {
    int& found = registers_[inputs_ + i];
    if (found != kNone) return found;
    const auto output = std::ranges::find(outputs_, static_cast<int64_t>(inputs_ + i));
    if (output != outputs_.end()) {
      found = static_cast<int>(inputs_ + static_cast<size_t>(output - outputs_.begin()));
      return found;
    }
    const auto is_needed = [&](int candidate) {
      for (size_t value = inputs_; value < inputs_ + i; ++value) {
        if (registers_[value] == candidate && last_[value] >= i) return true;
      }
      return false;
    };
    auto candidate = static_cast<int>(next_);
    while (is_needed(candidate)) ++candidate;
    found = candidate;
    return candidate;
  }

 private:
  static constexpr int kNone = -1;

  size_t inputs_;
  std::span<const int64_t> outputs_;
  size_t next_;  // the first register of the others
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

void check_operands(size_t inputs, std::span<const EncodedInstruction> program) {
  for (size_t i = 0; i < program.size(); ++i) {
    for (const int64_t operand : operands_of(program[i]))
      require(operand >= 0 && operand < static_cast<int64_t>(inputs + i), "an operand is not there yet");
  }
}

bool is_one_element(const Layout& each) {
  for (size_t d = 0; d < each.sizes.size(); ++d) {
    if (each.sizes[d] != 1 && each.strides[d] != 0) return false;
  }
  return true;
}

// Which operands are one for all elements, where an instruction then reads one element of each that may be
// so.
std::array<bool, 3> read_once(const EncodedInstruction& instruction, const std::vector<bool>& uniform) {
  std::array<bool, 3> found{};
  for (size_t i = 0; i < found.size(); ++i) {
    if (!reads_one(static_cast<Opcode>(instruction[0]), i)) continue;
    if (!uniform[static_cast<size_t>(operands_of(instruction)[i])]) return {};
    found[i] = true;
  }
  return found;
}

// Loop-invariant code motion: the values that are one for all elements, and of which no more is ever read.
// `uniform` has whether values are one, of the inputs at first.
std::vector<bool> find_invariants(std::vector<bool>& uniform, std::span<const EncodedInstruction> program,
                                  std::span<const int64_t> outputs) {
  const size_t inputs = uniform.size();
  for (const EncodedInstruction& each : program) {
    bool all = true;
    for (const int64_t operand : operands_of(each)) all = all && uniform[static_cast<size_t>(operand)];
    uniform.push_back(all);
  }
  std::vector<bool> found = uniform;
  for (const int64_t output : outputs) found[static_cast<size_t>(output)] = false;
  for (bool changes = true; changes;) {
    changes = false;
    const auto exclude = [&](size_t value) {
      changes = changes || found[value];
      found[value] = false;
    };
    for (size_t i = program.size(); i-- > 0;) {
      const auto once = read_once(program[i], uniform);
      for (size_t k = 0; k < once.size(); ++k) {
        const auto operand = static_cast<size_t>(operands_of(program[i])[k]);
        if (found[inputs + i]) {
          if (!found[operand]) exclude(inputs + i);
        } else if (!once[k]) {
          exclude(operand);
        }
      }
    }
  }
  return found;
}

// Whether a program is a function of one byte, whose results are bytes.
bool is_of_bytes(const Tiles& tiles, const std::vector<bool>& once) {
  const size_t inputs = once.size();
  if (std::ranges::count(once, false) != 1 || tiles.tensors() != inputs + 1) return false;
  const auto element = static_cast<size_t>(std::ranges::find(once, false) - once.begin());
  return tiles.item(element) == 1 && tiles.item(inputs) == 1;
}

// How elements are looked up where that takes less time than a program of so many instructions.
LookUp look_up_for(int64_t elements, size_t instructions, int64_t cost) {
  if (elements < kTableFrom) return nullptr;
  const LookUp quick = quick_look_up();
  if (cost > 0) return quick != nullptr ? quick : look_up_one_by_one;
  return instructions > 1 ? quick : nullptr;
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
  for (const int64_t result : results) {
    require(
        result >= static_cast<int64_t>(inputs) && result < static_cast<int64_t>(inputs + instructions.size()),
        "a program's result is not there");
  }
  check_operands(inputs, instructions);
  std::vector<bool> uniform;
  for (size_t k = 0; k < inputs; ++k) uniform.push_back(is_one_element(tensors[k]));
  const std::vector<bool> invariant = find_invariants(uniform, instructions, results);
  RegisterAllocation registers(inputs, instructions, results, invariant);
  std::vector<Instruction> before;
  std::vector<Instruction> program;
  int64_t cost = 0;
  for (const EncodedInstruction& each : instructions) {
    const auto opcode = static_cast<Opcode>(each[0]);
    Types of_this{{}, static_cast<DataType>(each[1]), read_once(each, uniform)};
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
    instruction.out = registers.add(before.size() + program.size());
    if (instruction.out >= kMostRegisters) {
      reason = "more intermediate results at a time than there are registers for";
      return nullptr;
    }
    (invariant[types.size()] ? before : program).push_back(instruction);
    cost += invariant[types.size()] ? 0 : cost_of(opcode);
    types.push_back(of_this.out);
  }
  require(results.size() == request.outputs.size(), "a program has other results than outputs");
  for (size_t k = 0; k < results.size(); ++k) {
    const auto value = static_cast<size_t>(results[k]);
    require(types[value] == request.outputs[k].type, "a program's result is of another type");
  }
  int64_t widest = 1;
  for (size_t value = 0; value < types.size(); ++value)
    widest = std::max(widest, invariant[value] ? 1 : size_of(types[value]));
  Tiles tiles(tensors, inputs, widest);
  std::string description = tiles.describe();
  const std::vector<bool> once(invariant.begin(), invariant.begin() + static_cast<std::ptrdiff_t>(inputs));
  LookUp look_up = nullptr;
  if (is_of_bytes(tiles, once)) look_up = look_up_for(tiles.elements(), program.size(), cost);
  if (look_up != nullptr) {
    description += ", by a table";
    cost = look_up == look_up_one_by_one ? kLookUpCost : 0;
  }
  return std::make_unique<ElementPlan>(std::move(tiles), std::move(sources), once, std::move(before),
                                       std::move(program), cost, look_up, std::move(description));
}

ANYDML_ISA_END
