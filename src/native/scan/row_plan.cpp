// Scans by rows of every type and operation.
#include "scan/row_plan.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/plans.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, class Operation>
std::unique_ptr<Plan> make_row_plan(const ScanProblem& problem, ScanPolicy policy, bool exclusive,
                                    std::string description) {
  return std::make_unique<RowPlan<T, Operation>>(problem, std::move(policy), exclusive,
                                                 std::move(description));
}

ANYDML_INSTANTIATE_SCANS(make_row_plan)

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
