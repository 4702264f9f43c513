// The registry of kernels: by operator and by instruction set.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel_plan.h"

namespace anydml {

// A family's source, compiled for an instruction set, defines its factories in the namespace of that name.
#define ANYDML_KERNEL(name, factory) \
  std::unique_ptr<Plan> factory(const Request& request, std::string& reason);
namespace baseline {
#include "core/kernels.inc"
}
namespace avx2 {
#include "core/kernels.inc"
}
namespace avx512 {
#include "core/kernels.inc"
}
#undef ANYDML_KERNEL

// The operators that have a kernel on every instruction set, for some of their requests at least.
const std::vector<std::string_view>& kernel_names();

// The instruction sets that are compiled in and that this machine has, best first.
const std::vector<std::string_view>& instruction_sets();

// The instruction set to use: the one that the environment variable ANYDML_CPU names, else the best. Empty,
// with a reason, where this machine does not have the named one.
std::string_view chosen_instruction_set(std::string& reason);

// The plan of the operator's kernel for an instruction set of this machine. Null, with a reason, where there
// is none.
std::unique_ptr<Plan> make_plan(std::string_view instruction_set, std::string_view name,
                                const Request& request, std::string& reason);

}  // namespace anydml
