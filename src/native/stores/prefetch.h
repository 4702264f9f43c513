// Prefetches into the first cache, of what is read soon.
#pragma once

#include <cstddef>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// An address that is not mapped does no harm.
ANYDML_INLINE void prefetch_near([[maybe_unused]] const std::byte* from) {
#if defined(__GNUC__)
  __builtin_prefetch(from, 0, 3);
#endif
}

ANYDML_ISA_END
