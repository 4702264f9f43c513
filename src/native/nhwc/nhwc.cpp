// What treats FLOAT32 channel by channel: pooling and CONVOLUTION where channels lie last,
// BATCH_NORMALIZATION.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "nhwc/dense.h"
#include "nhwc/fused_activation.h"
#include "nhwc/normalization.h"
#include "nhwc/operations.h"
#include "nhwc/windows.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// Arrays of the desc, each with a number for every spatial dimension.
struct Members {
  std::vector<int64_t> strides;
  std::vector<int64_t> taps;
  std::vector<int64_t> start;
  std::vector<int64_t> end;
  std::vector<int64_t> dilations = {1, 1};
};

Members window_members(const Attributes& attributes) {
  return {attributes.integers("Strides"), attributes.integers("WindowSize"),
          attributes.integers("StartPadding"), attributes.integers("EndPadding")};
}

constexpr int64_t kMostTaps = 64;
constexpr int64_t kFewElements = 1 << 13;

Sliding along(const Layout& in, const Layout& out, const Members& members, size_t i) {
  const size_t d = i + 2;
  const int64_t stride = members.strides.at(i);
  const int64_t taps = members.taps.at(i);
  const int64_t dilation = members.dilations.at(i);
  require(stride > 0 && taps > 0 && dilation > 0, "a window's numbers are at least 1");
  require(members.start.at(i) >= 0 && members.end.at(i) >= 0, "paddings are at least 0");
  return {in.sizes[d],    out.sizes[d], taps,          stride,        members.start[i],
          members.end[i], dilation,     in.strides[d], out.strides[d]};
}

// Why windows over these tensors have no kernel; empty where they have.
std::string declined(const Layout& in, const Layout& out) {
  require(in.sizes.size() == out.sizes.size(), "the ranks of input and output differ");
  if (in.type != DataType::kFloat32) return "no windows of " + std::string(name_of(in.type));
  if (in.sizes.size() != 4) return "windows along two dimensions alone";
  require(in.sizes[0] == out.sizes[0] && in.sizes[1] == out.sizes[1], "the sizes of input and output differ");
  const bool last = in.strides[1] == size_of(in.type) && out.strides[1] == size_of(out.type);
  if (!last || in.sizes[1] < 8) return "8 channels or more that lie last alone";
  return "";
}

std::string declined_dense([[maybe_unused]] const Layout& in, [[maybe_unused]] const Layout& out) {
#if defined(ANYDML_DENSE)
  require(in.sizes.size() == out.sizes.size(), "the ranks of input and output differ");
  if (in.type != DataType::kFloat32) return "no convolution of " + std::string(name_of(in.type));
  if (in.sizes.size() != 4) return "windows along two dimensions alone";
  require(in.sizes[0] == out.sizes[0], "the sizes of input and output differ");
  if (out.strides[1] != size_of(out.type) || out.sizes[1] < 8) return "8 results or more that lie last alone";
  return "";
#else
  return "a depthwise convolution alone, where no instruction multiplies and adds";
#endif
}

Sides sides_of(const Layout& in, const Layout& out, const Members& members) {
  return {in.sizes[0],
          in.strides[0],
          out.strides[0],
          in.sizes[1],
          along(in, out, members, 0),
          along(in, out, members, 1)};
}

std::string window_of(const std::vector<int64_t>& taps) {
  return ", window of " + std::to_string(taps[0]) + "x" + std::to_string(taps[1]) + ", channels last";
}

template <class Operation>
std::unique_ptr<Plan> windows(const Sides& sides, Operation operation, std::string description) {
  return std::make_unique<ChannelWindows<Operation>>(sides, std::move(operation), std::move(description));
}

}  // namespace

std::unique_ptr<Plan> make_max_pooling(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  reason = declined(in, out);
  if (reason.empty() && request.outputs.size() > 1 && request.outputs[1].present) reason = "no indices";
  if (!reason.empty()) return nullptr;
  Members members = window_members(request.attributes);
  if (request.attributes.has("Dilations")) members.dilations = request.attributes.integers("Dilations");
  return windows(sides_of(in, out, members), Largest{}, "maxima" + window_of(members.taps));
}

std::unique_ptr<Plan> make_average_pooling(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  reason = declined(in, out);
  if (!reason.empty()) return nullptr;
  const Members members = window_members(request.attributes);
  const Sides sides = sides_of(in, out, members);
  const Average average{sides.height, sides.width, request.attributes.flag("IncludePadding")};
  return windows(sides, average, "averages" + window_of(members.taps));
}

// Those that treat each channel by itself, and those that have all channels in every result.
std::unique_ptr<Plan> make_convolution(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& filter = tensor(request.inputs, 1);
  const Layout& bias = request.inputs.at(2);
  const Layout& out = tensor(request.outputs, 0);
  const Attributes& attributes = request.attributes;
  const bool turned = attributes.integer("Mode") == 0;
  const bool forward = attributes.integer("Direction") == 0;
  const int64_t groups = attributes.integer("GroupCount");
  const bool depthwise = groups > 1 && groups == in.sizes.at(1) && groups == out.sizes.at(1);
  if (!forward || !(depthwise || groups == 1)) {
    reason = "a forward convolution of one group, or of one for each channel, alone";
    return nullptr;
  }
  reason = depthwise ? declined(in, out) : declined_dense(in, out);
  const std::optional<Fused> fused = Fused::of(attributes.activation("FusedActivation"));
  if (reason.empty() && !fused) reason = "no activation but RELU and CLIP";
  if (!reason.empty()) return nullptr;
  const int64_t results = out.sizes[1];
  require(filter.type == in.type && filter.sizes.at(0) == results &&
              filter.sizes.at(1) == in.sizes[1] / groups && filter.sizes.size() == 4,
          "a filter is wrong");
  require(!bias.present || (bias.type == in.type && bias.sizes.at(1) == results), "a bias is wrong");
  for (const int64_t padding : attributes.integers("OutputPadding")) {
    if (padding > 0) reason = "no OutputPadding";
  }
  const std::vector<int64_t> taps(filter.sizes.begin() + 2, filter.sizes.end());
  if (taps[0] > kMostTaps || taps[1] > kMostTaps) reason = "a filter of more than 64 taps along a dimension";
  if (!reason.empty()) return nullptr;
  std::vector<int64_t> offsets;
  for (int64_t y = 0; y < taps[0]; ++y) {
    for (int64_t x = 0; x < taps[1]; ++x) {
      const int64_t row = turned ? taps[0] - 1 - y : y;
      const int64_t column = turned ? taps[1] - 1 - x : x;
      offsets.push_back(row * filter.strides[2] + column * filter.strides[3]);
    }
  }
  const Members members{attributes.integers("Strides"), taps, attributes.integers("StartPadding"),
                        attributes.integers("EndPadding"), attributes.integers("Dilations")};
  const int64_t bias_step = bias.present ? bias.strides[1] : 0;
#if defined(ANYDML_DENSE)
  if (!depthwise) {
    return std::make_unique<DenseConvolution>(
        DenseShape{sides_of(in, out, members), in.strides[1], results, offsets, filter.strides[1],
                   filter.strides[0], bias.present, bias_step, *fused},
        "convolution" + window_of(taps));
  }
#endif
  const Weighted weighted{groups, taps[0] * taps[1], filter.strides[0], offsets, bias.present, bias_step,
                          *fused};
  return windows(sides_of(in, out, members), weighted, "depthwise convolution" + window_of(taps));
}

// By numbers that each channel has once.
std::unique_ptr<Plan> make_batch_normalization(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  if (in.type != DataType::kFloat32) reason = "no normalization of " + std::string(name_of(in.type));
  if (in.sizes.size() < 2) reason = "two dimensions or more alone";
  if (!reason.empty()) return nullptr;
  ChannelNormalization<float>::Parameters parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Layout& each = tensor(request.inputs, i + 1);
    require(each.type == in.type && each.sizes.size() == in.sizes.size(), "a parameter is wrong");
    for (size_t d = 0; d < each.sizes.size(); ++d) {
      require(each.sizes[d] == 1 || each.sizes[d] == in.sizes[d], "a parameter does not broadcast");
      if (each.sizes[d] > 1 && d != 1) reason = "parameters that each channel has once alone";
    }
    parameters[i] = each.sizes[1] == 1 ? 0 : each.strides[1];
  }
  const std::optional<Fused> fused = Fused::of(request.attributes.activation("FusedActivation"));
  if (!fused) reason = "no activation but RELU and CLIP";
  if (!reason.empty()) return nullptr;
  std::vector<Loop> loops = loops_over(in, out);
  const Loop channels = take(loops, 1);
  const ChannelRows rows{channels, fold(std::move(loops))};
  if (!rows.suits()) {
    reason = "neither the channels nor the places of an image follow each other in memory";
    return nullptr;
  }
  const double epsilon = request.attributes.real("Epsilon");
  // Of so few, the wider type takes no time.
  if (rows.elements() < kFewElements) {
    return std::make_unique<ChannelNormalization<double>>(rows, parameters, epsilon, *fused);
  }
  return std::make_unique<ChannelNormalization<float>>(rows, parameters, epsilon, *fused);
}

ANYDML_ISA_END
