// Division of counts.
#pragma once

#include <cstdint>

namespace anydml {

// How many parts of at most so many items there are.
constexpr int64_t divided_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

}  // namespace anydml
