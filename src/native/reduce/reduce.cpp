// Reductions: REDUCE, ARGMIN and ARGMAX. README.md says which code runs when.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "reduce/geometry.h"
#include "reduce/kernel.h"
#include "reduce/plan.h"
#include "reduce/policy.h"
#include "reduce/reduction.h"
#include "reduce/tuning.h"

ANYDML_ISA_BEGIN
namespace {

// The values of DML_REDUCE_FUNCTION.
enum class Function : int64_t {
  kArgMax,
  kArgMin,
  kAverage,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kMax,
  kMin,
  kMultiply,
  kSum,
  kSumSquare,
};
constexpr const char* kNames[] = {"argmax",      "argmin", "average", "L1",       "L2",  "log sum",
                                  "log sum exp", "max",    "min",     "multiply", "sum", "sum square"};

bool is_index(Function function) { return function <= Function::kArgMin; }

const ReduceKernel* kernel_of(Function function, DataType type) {
  switch (function) {
    case Function::kArgMax:
    case Function::kArgMin:
      return largest_index_kernel(type);
    case Function::kL1:
      return sum_kernel(type, Term::kMagnitude);
    case Function::kL2:
    case Function::kSumSquare:
      return sum_kernel(type, Term::kSquare);
    case Function::kLogSumExp:
      return exponential_sum_kernel(type);
    case Function::kMax:
    case Function::kMin:
      return largest_kernel(type);
    case Function::kMultiply:
      return product_kernel(type);
    default:
      return sum_kernel(type, Term::kValue);
  }
}

Finish finish_of(Function function) {
  switch (function) {
    case Function::kAverage:
      return Finish::kAverage;
    case Function::kL2:
      return Finish::kRoot;
    case Function::kLogSum:
      return Finish::kLogarithm;
    default:
      return Finish::kNone;
  }
}

// The smallest number is the largest with its sign changed, or all bits of an integer; unsigned integers have
// the order of signed ones where their first bit is changed.
uint64_t mask_of(Function function, DataType type) {
  const bool is_float = type == DataType::kFloat32 || type == DataType::kFloat16;
  const bool is_smallest = function == Function::kMin || function == Function::kArgMin;
  if (!is_smallest && function != Function::kMax && function != Function::kArgMax) return 0;
  if (is_float) return is_smallest ? uint64_t{1} << (8 * size_of(type) - 1) : 0;
  const bool is_unsigned = type == DataType::kUint8 || type == DataType::kUint16 ||
                           type == DataType::kUint32 || type == DataType::kUint64;
  const uint64_t sign = uint64_t{1} << (8 * size_of(type) - 1);
  return (is_unsigned ? sign : 0) ^ (is_smallest ? ~uint64_t{0} : 0);
}

std::unique_ptr<Plan> make(const Request& request, Function function, bool from_the_end,
                           std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  require(in.sizes.size() == out.sizes.size(), "the dimensions of input and output differ");
  const bool is_extreme = function == Function::kMax || function == Function::kMin;
  const bool is_partial = !is_extreme && out.type == DataType::kFloat64 &&
                          (in.type == DataType::kFloat32 || in.type == DataType::kFloat16);
  require(is_index(function) || in.type == out.type || is_partial, "the types of input and output differ");
  const ReduceKernel* const kernel = kernel_of(function, in.type);
  if (kernel == nullptr) {
    reason =
        "no " + std::string(kNames[static_cast<size_t>(function)]) + " of " + std::string(name_of(in.type));
    return nullptr;
  }
  const bool needs_largest = is_index(function) || function == Function::kLogSumExp;
  const ReduceKernel* const largest = needs_largest ? largest_kernel(in.type) : nullptr;
  // Exponentials are summed in doubles, beside which the vectors of the largest elements have more lanes.
  const int64_t least_number =
      largest == nullptr ? kernel->sizes[0] : std::min(kernel->sizes[0], largest->sizes[0]);
  ReduceProblem problem{
      geometry_of(in, out, request.attributes.integers("Axes"), is_index(function), from_the_end),
      kernel->element_size,
      kernel->sizes[0],
      least_number,
      kernel->strip_columns(),
      is_index(function) ? tuning::kTransposedIndexBytes : tuning::kTransposedBytes,
      is_index(function) ? kernel->most_rows : std::numeric_limits<int64_t>::max(),
      is_index(function),
      kernel->sizes[2] != 0};
  ReduceParameters parameters;
  parameters.mask = mask_of(function, in.type);
  parameters.finish = is_partial ? Finish::kPartial : finish_of(function);
  parameters.elements = problem.reduced_rows();
  parameters.from_the_end = from_the_end;
  parameters.index_size = size_of(out.type);
  std::string description = "reduce " + std::string(name_of(in.type)) + " " +
                            kNames[static_cast<size_t>(function)] + ", " +
                            std::to_string(problem.reduced_rows()) + " to 1, " +
                            std::to_string(problem.outputs()) + (problem.outputs() == 1 ? " time" : " times");
  ReducePolicy policy = choose_policy(problem, kernel->bytes());
  description += ": " + policy.text(problem);
  return std::make_unique<ReducePlan>(std::move(problem), std::move(policy), *kernel, largest, parameters,
                                      std::move(description));
}

}  // namespace

std::unique_ptr<Plan> make_reduce(const Request& request, std::string& reason) {
  return make(request, static_cast<Function>(request.attributes.integer("Function")), false, reason);
}

std::unique_ptr<Plan> make_argmin(const Request& request, std::string& reason) {
  return make(request, Function::kArgMin, request.attributes.flag("AxisDirection"), reason);
}

std::unique_ptr<Plan> make_argmax(const Request& request, std::string& reason) {
  return make(request, Function::kArgMax, request.attributes.flag("AxisDirection"), reason);
}

ANYDML_ISA_END
