#include "core/layout.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>

namespace anydml {

int64_t size_of(DataType type) {
  switch (type) {
    case DataType::kUint8:
    case DataType::kInt8:
      return 1;
    case DataType::kFloat16:
    case DataType::kUint16:
    case DataType::kInt16:
      return 2;
    case DataType::kFloat32:
    case DataType::kUint32:
    case DataType::kInt32:
      return 4;
    case DataType::kFloat64:
    case DataType::kUint64:
    case DataType::kInt64:
      return 8;
    default:
      return 0;
  }
}

std::string_view name_of(DataType type) {
  constexpr std::string_view kNames[] = {"unknown", "float32", "float16", "uint32", "uint16",
                                         "uint8",   "int32",   "int16",   "int8",   "float64",
                                         "uint64",  "int64",   "uint4",   "int4"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : kNames[0];
}

const Layout& tensor(const std::vector<Layout>& layouts, size_t index) {
  const Layout& layout = layouts.at(index);
  require(layout.present, "a required tensor is absent");
  return layout;
}

std::vector<Loop> loops_over(const Layout& in, const Layout& out) {
  require(in.sizes == out.sizes, "the sizes of input and output differ");
  std::vector<Loop> loops;
  for (size_t d = 0; d < in.sizes.size(); ++d) loops.push_back({in.sizes[d], in.strides[d], out.strides[d]});
  return loops;
}

Loop take(std::vector<Loop>& loops, int64_t index) {
  const Loop taken = loops.at(static_cast<size_t>(index));
  loops.erase(loops.begin() + index);
  return taken;
}

std::vector<Loop> fold(std::vector<Loop> loops) {
  std::erase_if(loops, [](const Loop& loop) { return loop.size == 1; });
  std::ranges::stable_sort(loops, std::ranges::greater{},
                           [](const Loop& loop) { return std::abs(loop.out); });
  std::vector<Loop> folded;
  for (const Loop& inner : loops) {
    const bool continues = !folded.empty() && folded.back().in == inner.size * inner.in &&
                           folded.back().out == inner.size * inner.out;
    if (continues) {
      folded.back() = {folded.back().size * inner.size, inner.in, inner.out};
    } else {
      folded.push_back(inner);
    }
  }
  return folded;
}

Loop take_innermost(std::vector<Loop>& loops) {
  if (loops.empty()) return {1, 0, 0};
  const Loop innermost = loops.back();
  loops.pop_back();
  return innermost;
}

}  // namespace anydml
