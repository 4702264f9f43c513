// CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT.
#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <type_traits>

#include "half.h"
#include "isa.h"
#include "kernels.h"
#include "layout.h"
#include "memory.h"

ANYDML_ISA_BEGIN
namespace {

struct Sum {
  static constexpr const char* kName = "sum";
  static constexpr int kIdentity = 0;
  template <class T>
  static T combine(T tally, T x) {
    return tally + x;
  }
};

struct Product {
  static constexpr const char* kName = "product";
  static constexpr int kIdentity = 1;
  template <class T>
  static T combine(T tally, T x) {
    return tally * x;
  }
};

// Floats are tallied wide and rounded once per output; unsigned integers wrap, and give signed ones' bits
// too.
template <class T>
using TallyOf =
    std::conditional_t<std::same_as<T, float>, double, std::conditional_t<std::same_as<T, Half>, float, T>>;

// The axis in the order of traversal, and the lines along it, which are independent of each other.
struct Geometry {
  Loop axis;
  int64_t in_start;
  int64_t out_start;
  std::vector<Loop> lines;
};

template <class T, class Operation, bool kExclusive>
class Scan final : public Plan {
 public:
  Scan(Geometry geometry, std::string description)
      : Plan(std::move(description)), geometry_(std::move(geometry)) {
    auto& lines = geometry_.lines;
    abreast_ = !lines.empty() && std::abs(lines.back().out) < std::abs(geometry_.axis.out);
    if (abreast_) row_ = take_innermost(lines);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    for_each(geometry_.lines, in, out, [this](const std::byte* from, std::byte* to) {
      abreast_ ? scan_abreast(from, to) : scan_line(from, to);
    });
  }

 private:
  using Tally = TallyOf<T>;
  using Packed = std::integral_constant<int64_t, sizeof(T)>;
  static constexpr auto kIdentity = static_cast<Tally>(Operation::kIdentity);
  static constexpr int64_t kStrip = 256;

  // next = tally + x, or tally * x; y = next, or, exclusive, tally. x is read before y is written, as the two
  // may be one.
  static void advance(Tally& tally, const std::byte* x, std::byte* y) {
    const Tally next = Operation::combine(tally, static_cast<Tally>(load<T>(x)));
    store(y, static_cast<T>(kExclusive ? tally : next));
    tally = next;
  }

  void scan_line(const std::byte* in, std::byte* out) const {
    const Loop axis = geometry_.axis;
    Tally tally = kIdentity;
    for (int64_t i = 0; i < axis.size; ++i) advance(tally, in + i * axis.in, out + i * axis.out);
  }

  // Where neighbours lie in different lines, a strip of lines goes along the axis together.
  void scan_abreast(const std::byte* in, std::byte* out) const {
    for (int64_t start = 0; start < row_.size; start += kStrip) {
      const int64_t width = std::min(kStrip, row_.size - start);
      scan_strip(width, in + start * row_.in, out + start * row_.out);
    }
  }

  void scan_strip(int64_t width, const std::byte* in, std::byte* out) const {
    const Loop axis = geometry_.axis;
    Tally tallies[kStrip];
    std::fill_n(tallies, width, kIdentity);
    const bool packed = row_.in == Packed::value && row_.out == Packed::value;
    for (int64_t i = 0; i < axis.size; ++i) {
      const std::byte* from = in + i * axis.in;
      std::byte* to = out + i * axis.out;
      packed ? advance_row(tallies, width, from, to, Packed{}, Packed{})
             : advance_row(tallies, width, from, to, row_.in, row_.out);
    }
  }

  // Steps known to the compiler let it vectorise.
  template <class Step>
  static void advance_row(Tally* tallies, int64_t width, const std::byte* in, std::byte* out, Step in_step,
                          Step out_step) {
    for (int64_t j = 0; j < width; ++j) advance(tallies[j], in + j * in_step, out + j * out_step);
  }

  Geometry geometry_;
  bool abreast_;
  Loop row_{};
};

Geometry geometry_of(const Layout& in, const Layout& out, int64_t axis_index, bool decreasing) {
  std::vector<Loop> loops = loops_over(in, out);
  Loop axis = take(loops, axis_index);
  int64_t in_start = 0;
  int64_t out_start = 0;
  if (decreasing) {
    in_start = (axis.size - 1) * axis.in;
    out_start = (axis.size - 1) * axis.out;
    axis = {axis.size, -axis.in, -axis.out};
  }
  return {axis, in_start, out_start, fold(std::move(loops))};
}

std::string describe(const char* operation, DataType type, const Geometry& geometry, bool decreasing,
                     bool exclusive) {
  int64_t rows = 1;
  for (const Loop& loop : geometry.lines) rows *= loop.size;
  return "scan " + std::string(name_of(type)) + " " + operation + (exclusive ? ", exclusive" : "") +
         (decreasing ? ", decreasing" : "") + ", axis of " + std::to_string(geometry.axis.size) + ", " +
         std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

template <class T, class Operation>
std::unique_ptr<Plan> make_scan(Geometry geometry, std::string description, bool exclusive) {
  if (exclusive) {
    return std::make_unique<Scan<T, Operation, true>>(std::move(geometry), std::move(description));
  }
  return std::make_unique<Scan<T, Operation, false>>(std::move(geometry), std::move(description));
}

template <class Operation>
std::unique_ptr<Plan> make_cumulative(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  require(in.type == out.type, "the types of input and output differ");
  const int64_t axis = request.attributes.at(0).at(0);
  const bool decreasing = request.attributes.at(1).at(0) != 0;
  const bool exclusive = request.attributes.at(2).at(0) != 0;

  Geometry geometry = geometry_of(in, out, axis, decreasing);
  std::string description = describe(Operation::kName, in.type, geometry, decreasing, exclusive);
  switch (in.type) {
    case DataType::kFloat32:
      return make_scan<float, Operation>(std::move(geometry), std::move(description), exclusive);
    case DataType::kFloat16:
      return make_scan<Half, Operation>(std::move(geometry), std::move(description), exclusive);
    case DataType::kInt32:
    case DataType::kUint32:
      return make_scan<uint32_t, Operation>(std::move(geometry), std::move(description), exclusive);
    case DataType::kInt64:
    case DataType::kUint64:
      return make_scan<uint64_t, Operation>(std::move(geometry), std::move(description), exclusive);
    default:
      reason = "no scan of " + std::string(name_of(in.type));
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Plan> make_cumulative_summation(const Request& request, std::string& reason) {
  return make_cumulative<Sum>(request, reason);
}

std::unique_ptr<Plan> make_cumulative_product(const Request& request, std::string& reason) {
  return make_cumulative<Product>(request, reason);
}

ANYDML_ISA_END
