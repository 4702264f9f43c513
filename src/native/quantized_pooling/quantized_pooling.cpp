// QUANTIZED_LINEAR_AVERAGE_POOLING: a box filter over bytes, exact and requantised.
#include <array>
#include <limits>

#include "core/layout.h"
#include "core/registry.h"
#include "platform/isa.h"
#include "quantized_pooling/blocks.h"
#include "quantized_pooling/direct.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/planes.h"
#include "quantized_pooling/policy.h"
#include "quantized_pooling/prefix.h"
#include "quantized_pooling/rows.h"

ANYDML_ISA_BEGIN
namespace {

constexpr Window kUnitWindow{.input = 1,
                             .output = 1,
                             .stride = 1,
                             .size = 1,
                             .start_padding = 0,
                             .end_padding = 0,
                             .dilation = 1,
                             .include_padding = false,
                             .in_stride = 0,
                             .out_stride = 0,
                             .tap_step = 0};

int64_t checked(int64_t value, int64_t lowest) {
  require(lowest <= value && value <= std::numeric_limits<uint32_t>::max(),
          "a pooling attribute is out of range");
  return value;
}

Window window_of(const Request& request, size_t spatial) {
  const Layout& in = request.inputs[0];
  const Layout& out = request.outputs[0];
  const size_t d = spatial + 2;
  const auto attribute = [&](const char* name, int64_t lowest) {
    return checked(request.attributes.integers(name).at(spatial), lowest);
  };
  Window window{.input = in.sizes[d],
                .output = out.sizes[d],
                .stride = attribute("Strides", 1),
                .size = attribute("WindowSize", 1),
                .start_padding = attribute("StartPadding", 0),
                .end_padding = attribute("EndPadding", 0),
                .dilation = attribute("Dilations", 1),
                .include_padding = request.attributes.flag("IncludePadding"),
                .in_stride = in.strides[d],
                .out_stride = out.strides[d],
                .tap_step = 0};
  // A step is taken only between two taps inside; where there cannot be two, it might overflow.
  if (window.dilation < window.input) window.tap_step = window.dilation * window.in_stride;
  const int64_t padded = window.start_padding + window.input + window.end_padding;
  require(window.output - 2 <= padded / window.stride, "a window starts beyond the padded input");
  return window;
}

PerChannel per_channel(const Request& request, size_t input, DataType type) {
  const Layout& layout = request.inputs.at(input);
  if (!layout.present) return {input, 0};
  const int64_t channels = request.inputs[0].sizes[1];
  require(layout.type == type, "the type of a scale or zero point is wrong");
  require(layout.sizes.at(1) == 1 || layout.sizes[1] == channels, "a scale or zero point is not per channel");
  return {input, layout.sizes[1] == 1 ? 0 : layout.strides[1]};
}

Geometry geometry_of(const Request& request) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  const size_t rank = in.sizes.size();
  require(rank == 4 || rank == 5, "pooling takes 4 or 5 dimensions");
  require(out.sizes.size() == rank && in.sizes[0] == out.sizes[0] && in.sizes[1] == out.sizes[1],
          "the sizes of input and output differ");
  tensor(request.inputs, 1);
  tensor(request.inputs, 3);
  const bool deep = rank == 5;
  return {.batch = {in.sizes[0], in.strides[0], out.strides[0]},
          .channels = {in.sizes[1], in.strides[1], out.strides[1]},
          .windows = {deep ? window_of(request, 0) : kUnitWindow, window_of(request, deep ? 1 : 0),
                      window_of(request, deep ? 2 : 1)},
          .in = {in.type == DataType::kInt8},
          .out = {out.type == DataType::kInt8},
          .input_scale = per_channel(request, 1, DataType::kFloat32),
          .input_zero_point = per_channel(request, 2, in.type),
          .output_scale = per_channel(request, 3, DataType::kFloat32),
          .output_zero_point = per_channel(request, 4, out.type)};
}

// Up to so many taps a sum of bytes is exact in a double.
constexpr int64_t kMostTaps = int64_t{1} << 45;

bool countable(const std::array<Window, 3>& windows) {
  int64_t taps = 1;
  for (const Window& window : windows) {
    if (taps > kMostTaps / window.size) return false;
    taps *= window.size;
  }
  return true;
}

std::string describe(const Request& request) {
  std::string window;
  for (const int64_t size : request.attributes.integers("WindowSize")) {
    if (!window.empty()) window += 'x';
    window += std::to_string(size);
  }
  return "average pooling " + std::string(name_of(request.inputs[0].type)) + " to " +
         std::string(name_of(request.outputs[0].type)) + ", window of " + window;
}

std::unique_ptr<Plan> make_pooling(const Geometry& geometry, const std::string& description) {
  const PoolingPolicy policy(geometry);
  const std::string words = description + ", " + policy.words;
  switch (policy.algorithm) {
    case PoolingAlgorithm::kBlocks:
      return std::make_unique<BlockPooling>(geometry, words);
    case PoolingAlgorithm::kPlanes:
      return std::make_unique<PlanePooling>(geometry, words);
    case PoolingAlgorithm::kRows:
      return std::make_unique<RowPooling>(geometry, words);
    case PoolingAlgorithm::kPrefix:
      if (policy.wide_sums) return std::make_unique<PrefixPooling<uint64_t>>(geometry, words);
      return std::make_unique<PrefixPooling<uint32_t>>(geometry, words);
    default:
      return std::make_unique<DirectPooling>(geometry, words);
  }
}

bool is_byte(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

}  // namespace

std::unique_ptr<Plan> make_quantized_linear_average_pooling(const Request& request, std::string& reason) {
  const Geometry geometry = geometry_of(request);
  const DataType in = request.inputs[0].type;
  const DataType out = request.outputs[0].type;
  if (!is_byte(in) || !is_byte(out)) {
    reason = "no pooling of " + std::string(name_of(in)) + " to " + std::string(name_of(out));
    return nullptr;
  }
  if (!countable(geometry.windows)) {
    reason = "a window has more than 2^45 taps";
    return nullptr;
  }
  return make_pooling(geometry, describe(request));
}

ANYDML_ISA_END
