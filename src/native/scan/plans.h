// The plans of scans by rows and by columns. Each is compiled in a file of its own, as their kernels are most
// of what this family takes to compile.
#pragma once

#include <memory>
#include <string>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "scan/policy.h"

ANYDML_ISA_BEGIN

template <class T, class Operation>
std::unique_ptr<Plan> make_row_plan(const ScanProblem& problem, ScanPolicy policy, bool exclusive,
                                    std::string description);
template <class T, class Operation>
std::unique_ptr<Plan> make_column_plan(const ScanProblem& problem, ScanPolicy policy, bool exclusive,
                                       std::string description);

// Instantiates one of them for every type and operation.
#define ANYDML_INSTANTIATE_SCAN(make, Type, Operation) \
  template std::unique_ptr<Plan> make<Type, Operation>(const ScanProblem&, ScanPolicy, bool, std::string);
#define ANYDML_INSTANTIATE_SCANS(make)             \
  ANYDML_INSTANTIATE_SCAN(make, float, Sum)        \
  ANYDML_INSTANTIATE_SCAN(make, float, Product)    \
  ANYDML_INSTANTIATE_SCAN(make, Half, Sum)         \
  ANYDML_INSTANTIATE_SCAN(make, Half, Product)     \
  ANYDML_INSTANTIATE_SCAN(make, uint32_t, Sum)     \
  ANYDML_INSTANTIATE_SCAN(make, uint32_t, Product) \
  ANYDML_INSTANTIATE_SCAN(make, uint64_t, Sum)     \
  ANYDML_INSTANTIATE_SCAN(make, uint64_t, Product)

ANYDML_ISA_END
