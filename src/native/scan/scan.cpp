// Prefix scans: CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT. README.md says which code runs when.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/carried_products.h"
#include "scan/geometry.h"
#include "scan/plans.h"
#include "scan/policy.h"
#include "scan/strided_plan.h"
#include "simd/half.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

ScanGeometry geometry_of(const Layout& in, const Layout& out, int64_t axis_index, bool decreasing) {
  std::vector<Loop> loops = loops_over(in, out);
  Loop axis = take(loops, axis_index);
  int64_t in_start = 0;
  int64_t out_start = 0;
  if (decreasing) {
    in_start = (axis.size - 1) * axis.in;
    out_start = (axis.size - 1) * axis.out;
    axis = {axis.size, -axis.in, -axis.out};
  }
  return {axis, in_start, out_start, fold(std::move(loops))};
}

std::string describe(const char* operation, DataType type, const ScanGeometry& geometry, bool decreasing,
                     bool exclusive) {
  int64_t rows = 1;
  for (const Loop& loop : geometry.lines) rows *= loop.size;
  return "scan " + std::string(name_of(type)) + " " + operation + (exclusive ? ", exclusive" : "") +
         (decreasing ? ", decreasing" : "") + ", axis of " + std::to_string(geometry.axis.size) + ", " +
         std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

template <class T, class Operation>
std::unique_ptr<Plan> make_scan(ScanGeometry geometry, const CarryPlaces& carries, bool exclusive,
                                std::string description, std::string& reason) {
  const ScanProblem problem{std::move(geometry),        sizeof(T), sizeof(AccumulatorOf<T>), kIsFloat<T>,
                            kIsBlockable<T, Operation>, carries};
  ScanPolicy policy = choose_policy(problem);
  description += ": " + policy.text();
#if defined(ANYDML_VECTORS)
  if (is_by_rows(policy.algorithm)) {
    return make_row_plan<T, Operation>(problem, std::move(policy), exclusive, std::move(description));
  }
  if constexpr (!kIsBlockable<T, Operation>) {
    if (carries.row != 0)
      return std::make_unique<CarriedProductPlan<T>>(problem, exclusive, std::move(description));
  }
  if (is_by_columns(policy.algorithm)) {
    return make_column_plan<T, Operation>(problem, std::move(policy), exclusive, std::move(description));
  }
#endif
  if (carries.row != 0) {
    reason = "no scan with carries of these strides";
    return nullptr;
  }
  return std::make_unique<StridedPlan<T, Operation>>(problem, exclusive, std::move(description));
}

template <class Operation>
std::unique_ptr<Plan> make_cumulative(const Request& request, const char* exclusive_attribute,
                                      std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  require(in.type == out.type, "the types of input and output differ");
  const int64_t axis = request.attributes.integer("Axis");
  const bool decreasing = request.attributes.flag("AxisDirection");
  const bool exclusive = request.attributes.flag(exclusive_attribute);
  const CarryPlaces carries = request.inputs.size() > 1 ? CarryPlaces::of(out, axis) : CarryPlaces{};

  ScanGeometry geometry = geometry_of(in, out, axis, decreasing);
  std::string description = describe(Operation::kName, in.type, geometry, decreasing, exclusive);
  switch (in.type) {
    case DataType::kFloat32:
      return make_scan<float, Operation>(std::move(geometry), carries, exclusive, std::move(description),
                                         reason);
    case DataType::kFloat16:
      return make_scan<Half, Operation>(std::move(geometry), carries, exclusive, std::move(description),
                                        reason);
    case DataType::kInt32:
    case DataType::kUint32:
      return make_scan<uint32_t, Operation>(std::move(geometry), carries, exclusive, std::move(description),
                                            reason);
    case DataType::kInt64:
    case DataType::kUint64:
      return make_scan<uint64_t, Operation>(std::move(geometry), carries, exclusive, std::move(description),
                                            reason);
    default:
      reason = "no scan of " + std::string(name_of(in.type));
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Plan> make_cumulative_summation(const Request& request, std::string& reason) {
  return make_cumulative<Sum>(request, "HasExclusiveSum", reason);
}

std::unique_ptr<Plan> make_cumulative_product(const Request& request, std::string& reason) {
  return make_cumulative<Product>(request, "HasExclusiveProduct", reason);
}

ANYDML_ISA_END
