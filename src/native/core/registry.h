// The kernels that there are, for each instruction set.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel_plan.h"

namespace anydml {

// A family's file, compiled for an instruction set, defines its factories in the namespace of that name.
#define ANYDML_FACTORIES(isa)                                                                               \
  namespace isa {                                                                                           \
  std::unique_ptr<Plan> make_average_pooling(const Request& request, std::string& reason);                  \
  std::unique_ptr<Plan> make_batch_normalization(const Request& request, std::string& reason);              \
  std::unique_ptr<Plan> make_convolution(const Request& request, std::string& reason);                      \
  std::unique_ptr<Plan> make_cumulative_summation(const Request& request, std::string& reason);             \
  std::unique_ptr<Plan> make_cumulative_product(const Request& request, std::string& reason);               \
  std::unique_ptr<Plan> make_element_wise(const Request& request, std::string& reason);                     \
  std::unique_ptr<Plan> make_join(const Request& request, std::string& reason);                             \
  std::unique_ptr<Plan> make_max_pooling(const Request& request, std::string& reason);                      \
  std::unique_ptr<Plan> make_quantized_linear_average_pooling(const Request& request, std::string& reason); \
  }
ANYDML_FACTORIES(baseline)
ANYDML_FACTORIES(avx2)
ANYDML_FACTORIES(avx512)
#undef ANYDML_FACTORIES

// The instruction sets compiled in that this machine has, best first.
const std::vector<std::string_view>& instruction_sets();

// The one of those to use: which the environment's ANYDML_CPU names, else the best. Empty, and then a reason,
// where this machine does not have it.
std::string_view chosen_instruction_set(std::string& reason);

// The plan of the operator's kernel for an instruction set of this machine. Null, and then a reason, where
// there is none.
std::unique_ptr<Plan> make_plan(std::string_view instruction_set, std::string_view name,
                                const Request& request, std::string& reason);

}  // namespace anydml
