// From layouts to loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/cold.h"
#include "core/kernel_plan.h"

namespace anydml {

// 0 for a type whose elements are not whole bytes.
int64_t size_of(DataType type);

inline bool is_float(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kFloat32 || type == DataType::kFloat64;
}

// As in the header, in lower case: "float32".
ANYDML_COLD std::string_view name_of(DataType type);

// Guards memory, not the user: the Python side has validated every request and words its errors better.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

// The tensor at that place, which must be present.
ANYDML_COLD const Layout& tensor(const std::vector<Layout>& layouts, size_t index);

// One dimension that two tensors share: its size, and its stride in bytes in each.
struct Loop {
  int64_t size;
  int64_t in;
  int64_t out;
};

ANYDML_COLD std::vector<Loop> loops_over(const Layout& in, const Layout& out);

// Removes that loop and returns it.
ANYDML_COLD Loop take(std::vector<Loop>& loops, int64_t index);

// The fewest loops that visit the same pairs of elements, the output's smallest stride innermost. The order
// of the visits changes.
ANYDML_COLD std::vector<Loop> fold(std::vector<Loop> loops);

// The innermost of folded loops, removed; a loop of one step if there is none.
ANYDML_COLD Loop take_innermost(std::vector<Loop>& loops);

// Calls body(in, out) for every step of the nest.
template <class Body>
void for_each(std::span<const Loop> loops, const std::byte* in, std::byte* out, const Body& body) {
  if (loops.empty()) return body(in, out);
  const Loop loop = loops.front();
  for (int64_t i = 0; i < loop.size; ++i) {
    for_each(loops.subspan(1), in + i * loop.in, out + i * loop.out, body);
  }
}

}  // namespace anydml
