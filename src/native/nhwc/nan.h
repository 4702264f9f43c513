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

// Of a count that is a multiple of a vector's lanes.
inline bool has_nan(const float* sums, int64_t count) {
#if defined(ANYDML_VECTORS)
  Vector<int32_t> found{};
  for (int64_t i = 0; i < count; i += kLanesOf<float>) {
    const auto lanes = load_vector<Vector<float>>(reinterpret_cast<const std::byte*>(sums + i));
    found |= lanes != lanes;
  }
  const auto all = bits_as<std::array<uint64_t, sizeof(found) / 8>>(found);
  return std::any_of(all.begin(), all.end(), [](uint64_t each) { return each != 0; });
#else
  return std::any_of(sums, sums + count, [](float each) { return each != each; });
#endif
}

ANYDML_ISA_END
