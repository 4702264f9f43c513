// Whether there is a NaN among sums, of which products with padding may have made it: zeros by weights that
// are not finite.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/bits_as.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// Whether there may be a NaN, of a count that is a multiple of a vector's lanes: a NaN makes a NaN of any
// sum, as only infinities that cancel do besides.
inline bool may_have_nan(const float* sums, int64_t count) {
#if defined(ANYDML_VECTORS)
  Vector<float> total{};
  for (int64_t i = 0; i < count; i += kLanesOf<float>)
    total += load_vector<Vector<float>>(reinterpret_cast<const std::byte*>(sums + i));
  const auto all = bits_as<std::array<uint64_t, sizeof(total) / 8>>(total != total);
  return std::any_of(all.begin(), all.end(), [](uint64_t each) { return each != 0; });
#else
  return std::any_of(sums, sums + count, [](float each) { return each != each; });
#endif
}

ANYDML_ISA_END
