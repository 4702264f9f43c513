// Normalisations of floats whose parameters and statistics are those of channels, for who has kernels for
// the rest. Null, with a reason, where they are not.
#pragma once

#include <memory>
#include <string>

#include "core/kernel_plan.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

std::unique_ptr<Plan> make_channel_batch_normalization(const Request& request, std::string& reason);
std::unique_ptr<Plan> make_channel_batch_normalization_training(const Request& request, std::string& reason);
std::unique_ptr<Plan> make_channel_mean_variance_normalization(const Request& request, std::string& reason);

ANYDML_ISA_END
