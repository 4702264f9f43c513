// Whether a tensor's values lie within limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "core/kernel_plan.h"

namespace anydml {

// The least and the largest value. As doubles, which hold every limit; that integers are rounded to them
// changes no comparison with one.
using ValueLimits = std::optional<std::pair<double, double>>;

template <class T>
bool are_within_as(const Layout& layout, const std::byte* at, size_t dimension,
                   const std::pair<double, double>& limits) {
  if (dimension == layout.sizes.size()) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return limits.first <= static_cast<double>(value) && static_cast<double>(value) <= limits.second;
  }
  for (int64_t i = 0; i < layout.sizes[dimension]; ++i) {
    if (!are_within_as<T>(layout, at + i * layout.strides[dimension], dimension + 1, limits)) return false;
  }
  return true;
}

// False too for types that no limits are known of.
inline bool are_within(const Layout& layout, const void* at, const std::pair<double, double>& limits) {
  const auto* const start = static_cast<const std::byte*>(at);
  switch (layout.type) {
    case DataType::kFloat32:
      return are_within_as<float>(layout, start, 0, limits);
    case DataType::kInt32:
      return are_within_as<int32_t>(layout, start, 0, limits);
    case DataType::kInt64:
      return are_within_as<int64_t>(layout, start, 0, limits);
    case DataType::kUint32:
      return are_within_as<uint32_t>(layout, start, 0, limits);
    case DataType::kUint64:
      return are_within_as<uint64_t>(layout, start, 0, limits);
    default:
      return false;
  }
}

}  // namespace anydml
