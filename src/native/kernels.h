// The kernels that there are.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "plan.h"

namespace anydml {

std::unique_ptr<Plan> make_cumulative_summation(const Request& request, std::string& reason);
std::unique_ptr<Plan> make_cumulative_product(const Request& request, std::string& reason);
std::unique_ptr<Plan> make_join(const Request& request, std::string& reason);
std::unique_ptr<Plan> make_quantized_linear_average_pooling(const Request& request, std::string& reason);

// Null where no kernel has that name.
const Kernel* find_kernel(std::string_view name);

}  // namespace anydml
