// Whether a tensor's values lie within limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/kernel_plan.h"

namespace anydml {

// The least and the largest value. As doubles, which hold every limit.
using ValueLimits = std::optional<std::pair<double, double>>;

// Integers are compared as what they are, and floats as doubles.
template <class T>
using Comparable = std::conditional_t<std::is_integral_v<T>, T, double>;

// Without a branch for each: almost always all are.
template <class T>
bool are_between(const std::byte* at, int64_t count, int64_t step, Comparable<T> low, Comparable<T> high) {
  bool all = true;
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, at + i * step, sizeof value);
    all &= low <= value && value <= high;
  }
  return all;
}

template <class T>
bool are_within_as(const Layout& layout, const std::byte* at, size_t dimension, Comparable<T> low,
                   Comparable<T> high) {
  const size_t left = layout.sizes.size() - dimension;
  if (left == 0) return are_between<T>(at, 1, 0, low, high);
  const int64_t size = layout.sizes[dimension];
  const int64_t stride = layout.strides[dimension];
  if (left == 1) return are_between<T>(at, size, stride, low, high);
  for (int64_t i = 0; i < size; ++i) {
    if (!are_within_as<T>(layout, at + i * stride, dimension + 1, low, high)) return false;
  }
  return true;
}

// A limit as a value of an integer type, or the end of that which it is beyond.
template <class T>
Comparable<T> limit_as(double limit) {
  if constexpr (std::is_integral_v<T>) {
    if (limit <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (limit >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(limit);
  } else {
    return limit;
  }
}

template <class T>
bool are_within_as(const Layout& layout, const std::byte* at, const std::pair<double, double>& limits) {
  return are_within_as<T>(layout, at, 0, limit_as<T>(limits.first), limit_as<T>(limits.second));
}

// False too for types that no limits are known of.
inline bool are_within(const Layout& layout, const void* at, const std::pair<double, double>& limits) {
  const auto* const start = static_cast<const std::byte*>(at);
  switch (layout.type) {
    case DataType::kFloat32:
      return are_within_as<float>(layout, start, limits);
    case DataType::kInt32:
      return are_within_as<int32_t>(layout, start, limits);
    case DataType::kInt64:
      return are_within_as<int64_t>(layout, start, limits);
    case DataType::kUint32:
      return are_within_as<uint32_t>(layout, start, limits);
    case DataType::kUint64:
      return are_within_as<uint64_t>(layout, start, limits);
    default:
      return false;
  }
}

}  // namespace anydml
