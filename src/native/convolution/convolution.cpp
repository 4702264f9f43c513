// The factory of CONVOLUTION: README.md tells which kernel runs when.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "convolution/axes.h"
#include "convolution/desc.h"
#include "convolution/part.h"
#include "convolution/planes_convolution.h"
#include "convolution/tuning.h"
#include "core/layout.h"
#include "core/registry.h"
#include "nhwc/convolutions.h"
#include "nhwc/fused_activation.h"
#include "normalization/activation.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// A convolution of one to three spatial dimensions, by planes.
class Convolution : private ConvolutionDesc {
 public:
  using ConvolutionDesc::ConvolutionDesc;

  std::unique_ptr<Plan> plan() const {
    const Fused none = *Fused::of(nullptr);
    const ConvolutionShape shape{
        .is_half = in.type == DataType::kFloat16,
        .batch = in.sizes[0],
        .batch_in = in.strides[0],
        .batch_out = out.strides[0],
        .groups = groups,
        .group_in = channels * in.strides[1],
        .group_filter = filter_of_group(),
        .channels = channels,
        .channel_in = in.strides[1],
        .channel_filter = filter_of_channel(),
        .results = results,
        .result_filter = filter_of_result(),
        .result_out = out.strides[1],
        .has_bias = bias.present,
        .bias_step = bias_step(),
        .fused = fused.value_or(none),
        .activation = fused ? RunActivation(Attributes()) : RunActivation(attributes),
    };
    std::vector<SpatialAxes> parts = computed();
    const size_t count = parts.size();
    add_padding(parts);
    return std::make_unique<PlanesConvolution>(shape, parts, words(count));
  }

 private:
  // The number among the spatial dimensions of one of three; less than 0 for none.
  int spatial_of(size_t d) const { return static_cast<int>(d + spatial()) - 3; }

  int64_t padding_behind(size_t d) const {
    return spatial_of(d) < 0 ? 0 : output_padding(static_cast<size_t>(spatial_of(d)));
  }

  SpatialAxis axis(size_t d) const {
    if (spatial_of(d) < 0) return {{1, 1, 1, 1, 0, 0, 1, 0, 0}};
    const auto i = static_cast<size_t>(spatial_of(d));
    SpatialAxis found{along(i)};
    found.tap_step = filter.strides[i + 2];
    if (is_flipped) {
      found.tap_first = (found.along.taps - 1) * found.tap_step;
      found.tap_step = -found.tap_step;
    }
    return found;
  }

  // The convolution itself, or the phases of a transposed one.
  std::vector<SpatialAxes> computed() const {
    std::array<std::vector<SpatialAxis>, 3> phases;
    for (size_t d = 0; d < 3; ++d)
      phases[d] = is_forward ? std::vector<SpatialAxis>{axis(d)} : phases_of(axis(d));
    std::vector<SpatialAxes> parts;
    for (const SpatialAxis& z : phases[0]) {
      for (const SpatialAxis& y : phases[1]) {
        for (const SpatialAxis& x : phases[2])
          parts.push_back(simplified({trimmed(z), trimmed(y), trimmed(x)}));
      }
    }
    return parts;
  }

  // Boxes of places behind the result along each dimension, of all places before it along those that follow.
  void add_padding(std::vector<SpatialAxes>& parts) const {
    for (size_t d = 0; d < 3; ++d) {
      if (padding_behind(d) == 0) continue;
      SpatialAxes box{axis(0), axis(1), axis(2)};
      for (size_t k = 0; k < 3; ++k) {
        Sliding& along = box[k].along;
        along.taps = 0;
        if (k == d) {
          box[k].out_first = along.places * along.out_stride;
          along.places = padding_behind(k);
        } else if (k < d) {
          along.places += padding_behind(k);
        }
      }
      parts.push_back(box);
    }
  }

  std::string words(size_t parts) const {
    std::string found = is_forward ? "convolution, window of " : "transposed convolution, window of ";
    for (size_t i = 0; i < spatial(); ++i) {
      if (i > 0) found += "x";
      found += std::to_string(filter.sizes[i + 2]);
    }
    found += ", by planes";
    if (parts > 1) found += ", in " + std::to_string(parts) + " phases";
    if (groups > 1) found += ", in " + std::to_string(groups) + " groups";
    return found;
  }
};

// Products of matrices, where the weights are known and packed once; by planes, which read weights where they
// are, where these come with each call.
class ByKnownWeights final : public Plan {
 public:
  ByKnownWeights(std::unique_ptr<Plan> products, std::unique_ptr<Plan> planes)
      : Plan(products->description() + ", by planes where weights are not known"),
        products_(std::move(products)),
        planes_(std::move(planes)) {}

  void run(const void* const* inputs, void* const* outputs) const override { planes_->run(inputs, outputs); }
  bool has_prepack() const override { return true; }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    return products_->prepack(inputs);
  }

 private:
  std::unique_ptr<Plan> products_;
  std::unique_ptr<Plan> planes_;
};

// Whether weights that are packed are multiplied too seldom for that to pay.
bool has_few_places(const Request& request) {
  const Layout& out = tensor(request.outputs, 0);
  if (request.attributes.integer("GroupCount") != 1 || request.attributes.integer("Direction") != 0)
    return false;
  const int64_t places = out.sizes[2] * out.sizes[3];
  return out.sizes[0] * ((places + kColumnLanes - 1) / kColumnLanes) < kVectorsWorthPacking;
}

// Where channels lie last in the input or the output alone: whether groups of one tap leave many lanes of
// their last results' vector without one, or add up so few channels that tiles are stored more often than
// multiplied: on planes, places fill the vectors.
bool is_for_planes(const Request& request) {
  const int64_t groups = request.attributes.integer("GroupCount");
  const Layout& filter = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  if (groups == 1 || filter.sizes[1] == 1 || request.attributes.integer("Direction") != 0) return false;
  if (filter.sizes[2] * filter.sizes[3] > 1 || out.sizes[2] * out.sizes[3] <= kFewPlaces) return false;
  const int64_t results = out.sizes[1] / groups;
  const int64_t lanes = (results + kColumnLanes - 1) / kColumnLanes * kColumnLanes;
  return filter.sizes[1] < kFewChannels || (lanes - results) * kLanesWorthPlanes > lanes;
}

// Whether channels of their own are faster last, with copies to there and back: where places are few, or
// windows have so many taps that reading places across lines, as they lie on planes, takes longer than that.
bool is_faster_by_channel(const Layout& filter, const Layout& out) {
  const int64_t places = out.sizes[2] * out.sizes[3];
  return places <= kFewPlaces || (places <= kSomePlaces && filter.sizes[2] * filter.sizes[3] >= kManyTaps);
}

// Whether planes are worth copies to and from channels last, as each element takes part in many
// products, and the copies stay near: more readily where few places leave lanes of planes without one, or
// where results of a transposed convolution, of one tap each, lie apart on planes.
bool is_worth_copies(const Request& request) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& filter = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  if (in.sizes.size() != 4 || request.attributes.integer("GroupCount") != 1) return false;
  const bool is_transposed = request.attributes.integer("Direction") != 0;
  const std::vector<int64_t> strides = request.attributes.integers("Strides");
  if (is_transposed && (filter.sizes[2] > strides[0] || filter.sizes[3] > strides[1])) return false;
  const auto count = [](const Layout& layout) {
    double all = 1;
    for (size_t d = 1; d < layout.sizes.size(); ++d) all *= static_cast<double>(layout.sizes[d]);
    return all;
  };
  // Of an image, as there are copies of some at a time.
  const double copied = count(in) + count(out);
  if (copied > kCopiedElements) return false;
  if (is_transposed) return count(out) * static_cast<double>(in.sizes[1]) > kProductsWorthNeighbours * copied;
  const auto places = static_cast<double>(out.sizes[2] * out.sizes[3]);
  const auto lanes = std::ceil(places / kColumnLanes) * kColumnLanes;
  return count(out) * count(filter) * lanes > kProductsWorthCopies * copied * places;
}

// A convolution along one dimension as one along two, of which the first has one place.
Request along_two(Request request) {
  for (std::vector<Layout>* const side : {&request.inputs, &request.outputs}) {
    for (Layout& each : *side) {
      if (!each.present) continue;
      each.sizes.insert(each.sizes.begin() + 2, 1);
      each.strides.insert(each.strides.begin() + 2, each.strides.back());
    }
  }
  std::vector<NamedAttribute> attributes = request.attributes.all();
  for (auto& [name, values] : attributes) {
    const bool is_padding = name == "StartPadding" || name == "EndPadding" || name == "OutputPadding";
    if (!is_padding && name != "Strides" && name != "Dilations") continue;
    auto& numbers = std::get<std::vector<int64_t>>(values);
    numbers.insert(numbers.begin(), is_padding ? 0 : 1);
  }
  request.attributes = Attributes(std::move(attributes));
  return request;
}

bool lies_last(const Layout& layout) {
  return layout.sizes[1] > 1 && layout.strides[1] == size_of(layout.type);
}

}  // namespace

std::unique_ptr<Plan> make_convolution(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  if (in.type != DataType::kFloat32 && in.type != DataType::kFloat16) {
    reason = "no convolution of " + std::string(name_of(in.type));
    return nullptr;
  }
  // Of singles, another kernel applies an activation in place.
  if (in.type == DataType::kFloat32 && !Fused::of(request.attributes.activation("FusedActivation"))) {
    reason = "no activation but RELU and CLIP";
    return nullptr;
  }
  const Request plane = in.sizes.size() == 3 ? along_two(request) : request;
  const Layout& out = tensor(plane.outputs, 0);
  if (request.inputs.size() > 3 && request.inputs[3].present) {
    return make_convolution_of_channels(plane, reason);
  }
  std::string declined;
  const bool is_by_channel = out.sizes.size() == 4 &&
                             request.attributes.integer("GroupCount") == in.sizes[1] &&
                             is_faster_by_channel(tensor(plane.inputs, 1), out);
  const bool are_last = lies_last(in) && lies_last(out);
  const bool is_last =
      out.sizes.size() == 4 && (lies_last(in) || lies_last(out) || is_by_channel || is_worth_copies(plane));
  if (is_last && (are_last || !is_for_planes(plane))) {
    auto plan = make_convolution_of_channels(plane, declined);
    if (plan != nullptr && plan->has_prepack() && has_few_places(plane))
      return std::make_unique<ByKnownWeights>(std::move(plan), Convolution(request).plan());
    if (plan != nullptr) return plan;
  }
  return Convolution(request).plan();
}

ANYDML_ISA_END
