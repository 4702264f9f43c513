#include "kernels.h"

#include <algorithm>
#include <iterator>

namespace anydml {
namespace {

constexpr Kernel kKernels[] = {
    {"JOIN", make_join},
    {"CUMULATIVE_SUMMATION", make_cumulative_summation},
    {"CUMULATIVE_PRODUCT", make_cumulative_product},
    {"QUANTIZED_LINEAR_AVERAGE_POOLING", make_quantized_linear_average_pooling},
};

}  // namespace

const Kernel* find_kernel(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kKernels), std::end(kKernels), [&](const Kernel& k) { return k.name == name; });
  return found == std::end(kKernels) ? nullptr : found;
}

}  // namespace anydml
