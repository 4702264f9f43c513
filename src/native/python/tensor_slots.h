// The tensors of a plan, as Python tells of them, and the bytes that they touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "core/layout.h"

namespace anydml {

// (data type, sizes, strides in bytes), or None for an absent tensor.
using PythonLayout = std::optional<std::tuple<int, std::vector<int64_t>, std::vector<int64_t>>>;

// The bytes that a tensor touches, relative to its element [0, ..., 0]. In doubles, which cannot overflow and
// are exact as far as any memory reaches.
struct Extent {
  double low = 0;
  double high = 0;

  void add_dimension(int64_t size, int64_t stride) {
    const double reach = (static_cast<double>(size) - 1) * static_cast<double>(stride);
    (reach < 0 ? low : high) += reach;
  }
  bool covers(const Extent& other) const { return low <= other.low && other.high <= high; }
};

// Offsets within this many bytes leave int64 arithmetic room for a sum or two.
inline constexpr double kLargestExtent = 0x1p53;

struct Slot {
  Layout layout;
  Extent extent;
};

inline Layout to_layout(const PythonLayout& layout) {
  if (!layout) return {};
  const auto& [type, sizes, strides] = *layout;
  if (sizes.size() != strides.size()) throw std::invalid_argument("a layout has as many strides as sizes");
  for (const int64_t size : sizes) {
    if (size < 1) throw std::invalid_argument("a layout's sizes are at least 1");
  }
  return {static_cast<DataType>(type), sizes, strides, true};
}

inline Slot to_slot(const Layout& layout) {
  Extent extent{0, static_cast<double>(size_of(layout.type))};
  for (size_t d = 0; d < layout.sizes.size(); ++d) extent.add_dimension(layout.sizes[d], layout.strides[d]);
  return {layout, extent};
}

inline bool has_same_layout_as(const Layout& a, const Layout& b) {
  return a.type == b.type && a.sizes == b.sizes && a.strides == b.strides;
}

// Whether tensors at these addresses may share bytes.
inline bool overlap(const Slot& a, const void* a_at, const Slot& b, const void* b_at) {
  const auto x = static_cast<double>(reinterpret_cast<intptr_t>(a_at));
  const auto y = static_cast<double>(reinterpret_cast<intptr_t>(b_at));
  return x + a.extent.low < y + b.extent.high && y + b.extent.low < x + a.extent.high;
}

inline std::vector<Layout> to_layouts(const std::vector<PythonLayout>& layouts) {
  std::vector<Layout> converted;
  for (const PythonLayout& layout : layouts) converted.push_back(to_layout(layout));
  return converted;
}

inline std::vector<Slot> to_slots(const std::vector<Layout>& layouts) {
  std::vector<Slot> slots;
  for (const Layout& layout : layouts) slots.push_back(to_slot(layout));
  return slots;
}

}  // namespace anydml
