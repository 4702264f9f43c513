// Convolutions of tensors whose channels lie last, for the factory of all convolutions.
#pragma once

#include <memory>
#include <string>

#include "core/kernel_plan.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Null where there is none for these tensors.
std::unique_ptr<Plan> make_convolution_of_channels(const Request& request, std::string& reason);

ANYDML_ISA_END
