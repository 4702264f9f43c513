// LOCAL_RESPONSE_NORMALIZATION and its gradients, by sums around each element.
#include "normalization/local_response.h"

#include <cstdint>
#include <memory>
#include <string>

#include "core/layout.h"
#include "core/registry.h"
#include "normalization/local_blocks.h"
#include "normalization/local_channel_gradients.h"
#include "normalization/local_channel_responses.h"
#include "normalization/local_channels.h"
#include "normalization/local_series.h"
#include "normalization/runs.h"
#include "platform/isa.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN
namespace {

std::unique_ptr<Plan> local_response(const Request& request, bool is_gradient, std::string& reason) {
  const DataType type = tensor(request.outputs, 0).type;
  if (store_of(type) == nullptr) {
    reason = "no normalization of " + std::string(name_of(type));
    return nullptr;
  }
  const Attributes& attributes = request.attributes;
  const int64_t size = attributes.integer("LocalSize");
  const LocalResponse shape{attributes.flag("CrossChannel"),
                            (size - 1) / 2,
                            size / 2,
                            attributes.real("Alpha") / static_cast<double>(size),
                            attributes.real("Beta"),
                            attributes.real("Bias")};
  const bool is_half = type == DataType::kFloat16;
  if (LittlePowers(shape).most >= 0 && shape.is_across && size < kFewTaps) {
    if (is_half) return std::make_unique<LocalChannelsPlan<Half>>(request, shape, is_gradient);
    return std::make_unique<LocalChannelsPlan<float>>(request, shape, is_gradient);
  }
  if (is_half && !is_gradient && are_singles_enough(shape))
    return std::make_unique<LocalBlocksPlan<float>>(request, shape, is_gradient);
  return std::make_unique<LocalBlocksPlan<double>>(request, shape, is_gradient);
}

}  // namespace

std::unique_ptr<Plan> make_local_response_normalization(const Request& request, std::string& reason) {
  return local_response(request, false, reason);
}

std::unique_ptr<Plan> make_local_response_normalization_grad(const Request& request, std::string& reason) {
  return local_response(request, true, reason);
}

ANYDML_ISA_END
