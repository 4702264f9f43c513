// Pooling over channels that lie last.
#pragma once

#include <memory>
#include <string>

#include "core/kernel_plan.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Null for what is pooled in another order.
std::unique_ptr<Plan> average_pooling_of_channels(const Request& request, std::string& reason);
std::unique_ptr<Plan> max_pooling_of_channels(const Request& request, std::string& reason);

ANYDML_ISA_END
