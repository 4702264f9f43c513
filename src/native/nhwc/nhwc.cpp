// The factories of operators on images of FLOAT32: pooling, CONVOLUTION and normalisation. README.md tells
// which path runs when.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convolution/desc.h"
#include "core/layout.h"
#include "core/registry.h"
#include "nhwc/channel_normalizations.h"
#include "nhwc/convolutions.h"
#include "nhwc/dense.h"
#include "nhwc/fused_activation.h"
#include "nhwc/lines.h"
#include "nhwc/mean_variance.h"
#include "nhwc/normalization.h"
#include "nhwc/operations.h"
#include "nhwc/partitioned_convolution.h"
#include "nhwc/pooling.h"
#include "nhwc/relayout.h"
#include "nhwc/tuning.h"
#include "nhwc/windows.h"
#include "platform/isa.h"
#include "platform/parallel.h"

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
  Members members{attributes.integers("Strides"), attributes.integers("WindowSize"),
                  attributes.integers("StartPadding"), attributes.integers("EndPadding")};
  if (attributes.has("Dilations")) members.dilations = attributes.integers("Dilations");
  return members;
}

// Products of matrices that one convolution may be.
constexpr int64_t kMostParts = 256;

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

bool has_channels_last(const Layout& layout) {
  return layout.sizes[1] == 1 || layout.strides[1] == size_of(layout.type);
}

// Why windows over these tensors have no kernel; empty where they have.
std::string declined(const Layout& in, const Layout& out) {
  require(in.sizes.size() == out.sizes.size(), "the ranks of input and output differ");
  if (in.type != DataType::kFloat32) return "no windows of " + std::string(name_of(in.type));
  if (in.sizes.size() != 4) return "windows along two dimensions alone";
  require(in.sizes[0] == out.sizes[0], "the sizes of input and output differ");
  return "";
}

// Halves are converted for each tap: of more, rows that are converted once take less time.
bool has_few_taps(const Request& request) {
  constexpr int64_t kFew = 9;
  int64_t taps = 1;
  for (const int64_t each : request.attributes.integers("WindowSize")) taps *= std::min(each, kFew + 1);
  return taps <= kFew;
}

// Whether channels are pooled together: enough of them, which lie last, or whose rows are too narrow to be
// pooled one by one.
bool is_pooled_by_channel(const Request& request, bool takes_halves) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  if (in.type == DataType::kFloat16) {
    if (!takes_halves || in.sizes.size() != 4 || !has_few_taps(request)) return false;
  } else if (!declined(in, out).empty()) {
    return false;
  }
  require(in.sizes[1] == out.sizes[1], "the sizes of input and output differ");
  const bool is_narrow = 1 < out.sizes[3] && out.sizes[3] < kNarrowRow;
  const bool in_last = has_channels_last(in);
  const bool out_last = has_channels_last(out);
  return in.sizes[1] >= 8 && ((in_last && out_last) || (is_narrow && (in_last || out_last)));
}

// The most images of a batch that divide it, and of which both tensors have kCopiedAtOnce elements for each
// thread; or one.
int64_t images_at_once(const Layout& in, const Layout& out) {
  double each = 0;
  for (const Layout* const layout : {&in, &out}) {
    double elements = 1;
    for (size_t d = 1; d < layout->sizes.size(); ++d) elements *= static_cast<double>(layout->sizes[d]);
    each += elements;
  }
  int64_t images = in.sizes[0];
  const double all = static_cast<double>(images) * each;
  const int threads = threads_for(static_cast<int64_t>(std::min(all * size_of(in.type), 0x1p62)));
  const double most = static_cast<double>(threads) * kCopiedAtOnce;
  if (all <= most) return images;
  images = std::max<int64_t>(1, static_cast<int64_t>(most / each));
  while (in.sizes[0] % images != 0) --images;
  return images;
}

// The plan of tensors that lie with their channels last, where asked for, and copies from and to those that
// are given; of some images at a time, where these do not depend on each other.
std::unique_ptr<Plan> relaid(const Request& request, Factory make, bool input, bool output,
                             std::string& reason, bool is_spread, bool by_images = false) {
  Request laid = request;
  if (by_images) {
    laid.inputs[0].sizes[0] = images_at_once(request.inputs[0], request.outputs[0]);
    laid.outputs[0].sizes[0] = laid.inputs[0].sizes[0];
  }
  if (input) laid.inputs[0] = channels_last(laid.inputs[0], is_spread);
  if (output) laid.outputs[0] = channels_last(laid.outputs[0], is_spread);
  std::shared_ptr<const Plan> inner = make(laid, reason);
  if (inner == nullptr) return nullptr;
  return std::make_unique<RelayoutPlan>(std::move(inner), request.inputs.size(),
                                        RelayoutPlan::Tensors{request.inputs[0], laid.inputs[0]},
                                        RelayoutPlan::Tensors{request.outputs[0], laid.outputs[0]});
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

constexpr const char* kApart = "neither the channels nor the places of an image follow each other in memory";
constexpr const char* kOfChannels = "parameters that each channel has once alone";

// Whether each channel has one number of a parameter that broadcasts.
bool is_of_channels(const Layout& parameter, const Layout& in) {
  bool found = true;
  for (size_t d = 0; d < parameter.sizes.size(); ++d) {
    require(parameter.sizes[d] == 1 || parameter.sizes[d] == in.sizes[d], "a parameter does not broadcast");
    found = found && (parameter.sizes[d] == 1 || d == 1);
  }
  return found;
}

// A convolution of two spatial dimensions, by channels.
class Convolution : private ConvolutionDesc {
 public:
  using ConvolutionDesc::added;
  using ConvolutionDesc::ConvolutionDesc;
  using ConvolutionDesc::in;
  using ConvolutionDesc::out;

  // Whether each channel is treated by itself, and there are enough of them for vectors.
  bool is_depthwise() const { return is_forward && groups >= 8 && channels == 1 && results == 1; }

  std::string declined() const {
    if (!fused) return "no activation but RELU and CLIP";
    if (output_padding(0) > 0 || output_padding(1) > 0) return "no OutputPadding";
    if (added != nullptr &&
        (groups > 1 || !is_forward || in.type != DataType::kFloat32 || !added_lies_alike()))
      return "no addition but to the singles of one group, of a tensor that lies as they do";
    if (is_depthwise()) return "";
    if (groups > 1 && results < kGroupColumns) return "groups of fewer than 8 results";
    return "";
  }

  std::unique_ptr<Plan> plan(std::string& reason) const {
    const Sides sides{in.sizes[0], in.strides[0], out.strides[0], in.sizes[1], along(0), along(1)};
    const std::string window = window_of({taps(0), taps(1)});
    if (is_depthwise()) {
      // A vector of channels at a time, or a short one where there are fewer.
      constexpr auto kWhole = static_cast<int64_t>(sizeof(Singles) / sizeof(float));
      return groups >= kWhole ? by_channel<Singles>(sides, window) : by_channel<FewSingles>(sides, window);
    }
    const std::string description = (added != nullptr ? "convolution and addition" : "convolution") + window;
    if (is_forward && groups == 1) return dense(sides, offsets(all(0), all(1)), description);
    std::vector<Phase> rows{{sides.height, all(0), 0}};
    std::vector<Phase> columns{{sides.width, all(1), 0}};
    if (!is_forward) {
      rows = phases_of(sides.height);
      columns = phases_of(sides.width);
    }
    const auto count = static_cast<int64_t>(rows.size() * columns.size());
    if (count > kMostParts / groups) {
      reason = "groups and strides that make more than 256 products";
      return nullptr;
    }
    std::vector<PartitionedConvolution::Part> parts;
    for (const Phase& row : rows) {
      for (const Phase& column : columns) {
        Sides part = sides;
        part.channels = channels;
        part.height = row.along;
        part.width = column.along;
        const std::shared_ptr<const DenseConvolution> plan =
            dense(part, offsets(row.taps, column.taps), description);
        const int64_t place = row.first * out.strides[2] + column.first * out.strides[3];
        for (int64_t group = 0; group < groups; ++group) {
          parts.push_back({plan, group * channels * in.strides[1], group * filter_of_group(),
                           group * results * bias_step(), place + group * results * out.strides[1]});
        }
      }
    }
    std::string words = is_forward ? description : "transposed " + description;
    if (count > 1) words += ", in " + std::to_string(count) + " phases";
    if (groups > 1) words += ", in " + std::to_string(groups) + " groups";
    return std::make_unique<PartitionedConvolution>(std::move(parts), std::move(words));
  }

 private:
  template <class V>
  std::unique_ptr<Plan> by_channel(const Sides& sides, const std::string& window) const {
    const Weighted<V> weighted{groups,
                               spread_step(groups, 4),
                               taps(0) * taps(1),
                               filter.strides[0],
                               offsets(all(0), all(1)),
                               bias.present,
                               bias_step(),
                               *fused};
    return windows(sides, weighted, "depthwise convolution" + window);
  }

  int64_t taps(size_t i) const { return filter.sizes[i + 2]; }

  // The taps along a spatial dimension.
  std::vector<int64_t> all(size_t i) const {
    std::vector<int64_t> found(static_cast<size_t>(taps(i)));
    std::iota(found.begin(), found.end(), int64_t{0});
    return found;
  }

  // Of some taps the bytes from where the filter begins.
  std::vector<int64_t> offsets(const std::vector<int64_t>& rows, const std::vector<int64_t>& columns) const {
    const auto offset = [&](size_t i, int64_t tap) {
      return (is_flipped ? taps(i) - 1 - tap : tap) * filter.strides[i + 2];
    };
    std::vector<int64_t> found;
    for (const int64_t row : rows) {
      for (const int64_t column : columns) found.push_back(offset(0, row) + offset(1, column));
    }
    return found;
  }

  std::unique_ptr<DenseConvolution> dense(const Sides& sides, std::vector<int64_t> offsets,
                                          const std::string& description) const {
    const int64_t channel_in = in.sizes[1] == 1 ? size_of(in.type) : in.strides[1];
    return std::make_unique<DenseConvolution>(
        DenseShape{in.type == DataType::kFloat16, sides, channel_in, results, std::move(offsets),
                   filter_of_channel(), filter_of_result(), bias.present, bias_step(), *fused,
                   added != nullptr},
        description);
  }
};

}  // namespace

std::unique_ptr<Plan> max_pooling_of_channels(const Request& request, std::string& reason) {
  if (!is_pooled_by_channel(request, true)) return nullptr;
  if (request.outputs.size() > 1 && request.outputs[1].present) return nullptr;
  const Layout& in = request.inputs[0];
  const Layout& out = request.outputs[0];
  if (!has_channels_last(in) || !has_channels_last(out)) {
    return relaid(request, max_pooling_of_channels, !has_channels_last(in), !has_channels_last(out), reason,
                  true);
  }
  const Members members = window_members(request.attributes);
  const Sides sides = sides_of(in, out, members);
  const std::string description = "maxima" + window_of(members.taps);
  if (in.type == DataType::kFloat16) return windows(sides, Largest<Half>{}, description);
  return windows(sides, Largest<float>{}, description);
}

std::unique_ptr<Plan> average_pooling_of_channels(const Request& request, std::string& reason) {
  if (!is_pooled_by_channel(request, false)) return nullptr;
  const Layout& in = request.inputs[0];
  const Layout& out = request.outputs[0];
  if (!has_channels_last(in) || !has_channels_last(out)) {
    return relaid(request, average_pooling_of_channels, !has_channels_last(in), !has_channels_last(out),
                  reason, true);
  }
  const Members members = window_members(request.attributes);
  const Sides sides = sides_of(in, out, members);
  const Average average{sides.height, sides.width, request.attributes.flag("IncludePadding")};
  return windows(sides, average, "averages" + window_of(members.taps));
}

std::unique_ptr<Plan> make_convolution_of_channels(const Request& request, std::string& reason) {
  const Layout& input = tensor(request.inputs, 0);
  const Layout& output = tensor(request.outputs, 0);
  const bool is_half = input.type == DataType::kFloat16;
  if (is_half) {
    const bool is_one = request.attributes.integer("GroupCount") == 1;
    if (!is_one || request.attributes.integer("Direction") != 0) reason = "no halves but of one group";
  } else {
    reason = declined(input, output);
  }
  if (!reason.empty()) return nullptr;
  const Convolution convolution(request);
  reason = convolution.declined();
  if (!reason.empty()) return nullptr;
  // Few channels of an input are read where they are.
  const bool reads_last = has_channels_last(convolution.in) ||
                          (!convolution.is_depthwise() && convolution.in.sizes[1] < kCopiedChannels);
  const bool writes_last = has_channels_last(convolution.out);
  if (convolution.added != nullptr && (!reads_last || !writes_last)) {
    reason = "no addition but where channels lie last";
    return nullptr;
  }
  if (!reads_last || !writes_last)
    return relaid(request, make_convolution_of_channels, !reads_last, !writes_last, reason,
                  convolution.is_depthwise(), true);
  return convolution.plan(reason);
}

// By numbers that vary along one dimension, mostly the channels.
std::unique_ptr<Plan> make_channel_batch_normalization(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  if (in.type != DataType::kFloat32) reason = "no normalization of " + std::string(name_of(in.type));
  if (in.sizes.size() < 2) reason = "two dimensions or more alone";
  if (!reason.empty()) return nullptr;
  ChannelNormalization<float>::Parameters parameters;
  std::optional<size_t> varies;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Layout& each = tensor(request.inputs, i + 1);
    require(each.type == in.type && each.sizes.size() == in.sizes.size(), "a parameter is wrong");
    for (size_t d = 0; d < each.sizes.size(); ++d) {
      require(each.sizes[d] == 1 || each.sizes[d] == in.sizes[d], "a parameter does not broadcast");
      if (each.sizes[d] == 1) continue;
      if (varies.value_or(d) != d) reason = "parameters that vary along one dimension alone";
      varies = d;
    }
  }
  const size_t axis = varies.value_or(1);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Layout& each = request.inputs[i + 1];
    parameters[i] = each.sizes[axis] == 1 ? 0 : each.strides[axis];
  }
  const std::optional<Fused> fused = Fused::of(request.attributes.activation("FusedActivation"));
  if (!fused) reason = "no activation but RELU and CLIP";
  if (!reason.empty()) return nullptr;
  std::vector<Loop> loops = loops_over(in, out);
  const Loop channels = take(loops, static_cast<int64_t>(axis));
  const ChannelRows rows{channels, fold(std::move(loops)), size_of(in.type)};
  if (!rows.suits()) {
    reason = kApart;
    return nullptr;
  }
  const double epsilon = request.attributes.real("Epsilon");
  // Of so few, the wider type takes no time.
  if (rows.elements() < kFewElements) {
    return std::make_unique<ChannelNormalization<double>>(rows, parameters, epsilon, *fused);
  }
  return std::make_unique<ChannelNormalization<float>>(rows, parameters, epsilon, *fused);
}

namespace {

// By the statistics of each channel, or of all of them; of each image, or of all of them.
std::unique_ptr<Plan> by_statistics(const Request& request, const std::vector<bool>& along,
                                    MeanVariance shape, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  const size_t rank = in.sizes.size();
  if (in.type != DataType::kFloat32 && in.type != DataType::kFloat16) {
    reason = "no normalization of " + std::string(name_of(in.type));
  }
  if (std::find(along.begin() + 2, along.end(), false) != along.end()) {
    reason = "statistics along all places of an image alone";
  }
  const std::optional<Fused> fused = Fused::of(request.attributes.activation("FusedActivation"));
  if (!fused) reason = "no activation but RELU and CLIP";
  if (!reason.empty()) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    const Layout& each = request.inputs.at(i + 1);
    if (!each.present) continue;
    require(each.type == in.type && each.sizes.size() == rank, "a parameter is wrong");
    if (!is_of_channels(each, in)) reason = kOfChannels;
    (i == 0 ? shape.has_scale : shape.has_bias) = true;
    (i == 0 ? shape.scale_step : shape.bias_step) = each.sizes[1] == 1 ? 0 : each.strides[1];
  }
  if (!reason.empty()) return nullptr;
  std::vector<Loop> loops = loops_over(in, out);
  const Loop channels = take(loops, 1);
  shape.batch = along[0] ? Loop{1, 0, 0} : take(loops, 0);
  shape.across_channels = along[1];
  const ChannelRows rows{channels, fold(std::move(loops)), size_of(in.type)};
  if (!rows.suits()) {
    reason = kApart;
    return nullptr;
  }
  if (in.type == DataType::kFloat16) {
    return std::make_unique<MeanVarianceNormalization<Half>>(shape, rows, *fused);
  }
  return std::make_unique<MeanVarianceNormalization<float>>(shape, rows, *fused);
}

}  // namespace

std::unique_ptr<Plan> make_channel_mean_variance_normalization(const Request& request, std::string& reason) {
  const Attributes& attributes = request.attributes;
  const size_t rank = tensor(request.inputs, 0).sizes.size();
  if (rank < 3) {
    reason = "three dimensions or more alone";
    return nullptr;
  }
  std::vector<bool> along(rank, true);
  if (attributes.has("Axes")) {
    along.assign(rank, false);
    for (const int64_t axis : attributes.integers("Axes")) along.at(static_cast<size_t>(axis)) = true;
  } else {
    along[0] = false;
    along[1] = attributes.flag("CrossChannel");
  }
  MeanVariance shape{};
  shape.normalizes_variance = attributes.flag("NormalizeVariance");
  shape.epsilon = attributes.real("Epsilon");
  return by_statistics(request, along, shape, reason);
}

std::unique_ptr<Plan> make_channel_batch_normalization_training(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& mean = tensor(request.outputs, 1);
  const Layout& variance = tensor(request.outputs, 2);
  const size_t rank = in.sizes.size();
  for (const Layout* each : {&mean, &variance}) {
    require(each->type == in.type && each->sizes.size() == rank, "a statistic is wrong");
    if (rank < 3 || !is_of_channels(*each, in) || each->sizes[1] != in.sizes[1]) reason = kOfChannels;
  }
  if (request.inputs.size() > 3 && request.inputs[3].present) reason = "nothing that is added";
  if (!reason.empty()) return nullptr;
  std::vector<bool> along(rank, true);
  along[1] = false;
  MeanVariance shape{};
  shape.normalizes_variance = true;
  shape.epsilon = request.attributes.real("Epsilon");
  shape.gives_statistics = true;
  shape.statistics_steps = {mean.strides[1], variance.strides[1]};
  return by_statistics(request, along, shape, reason);
}

ANYDML_ISA_END
