// The factory of CONVOLUTION: README.md tells which kernel runs when.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convolution/axes.h"
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

// What CONVOLUTION's desc says, of one to three spatial dimensions.
class Convolution {
 public:
  explicit Convolution(const Request& request)
      : in_(tensor(request.inputs, 0)),
        out_(tensor(request.outputs, 0)),
        filter_(tensor(request.inputs, 1)),
        bias_(request.inputs.at(2)),
        attributes_(request.attributes),
        is_forward_(attributes_.integer("Direction") == 0),
        groups_(attributes_.integer("GroupCount")) {
    const size_t rank = in_.sizes.size();
    require(rank >= 3 && rank <= 5 && out_.sizes.size() == rank && filter_.sizes.size() == rank,
            "the ranks of a convolution's tensors differ");
    require(in_.sizes[0] == out_.sizes[0], "the sizes of input and output differ");
    require(groups_ > 0 && in_.sizes[1] % groups_ == 0 && out_.sizes[1] % groups_ == 0, "groups are wrong");
    channels_ = in_.sizes[1] / groups_;
    results_ = out_.sizes[1] / groups_;
    require(filter_.type == in_.type && out_.type == in_.type &&
                filter_.sizes[0] == (is_forward_ ? out_.sizes[1] : in_.sizes[1]) &&
                filter_.sizes[1] == (is_forward_ ? channels_ : results_),
            "a filter is wrong");
    require(!bias_.present || (bias_.type == in_.type && bias_.sizes.at(1) == out_.sizes[1]),
            "a bias is wrong");
    for (const char* name : {"Strides", "Dilations", "StartPadding", "EndPadding", "OutputPadding"})
      require(attributes_.integers(name).size() == rank - 2, "a spatial dimension lacks a number");
  }

  std::unique_ptr<Plan> plan() const {
    const Fused none = *Fused::of(nullptr);
    const std::optional<Fused> fused = Fused::of(attributes_.activation("FusedActivation"));
    // From group to group a filter goes on by as many of its first dimension as a group has.
    const int64_t group = (is_forward_ ? results_ : channels_) * filter_.strides[0];
    const ConvolutionShape shape{
        .is_half = in_.type == DataType::kFloat16,
        .batch = in_.sizes[0],
        .batch_in = in_.strides[0],
        .batch_out = out_.strides[0],
        .groups = groups_,
        .group_in = channels_ * in_.strides[1],
        .group_filter = group,
        .channels = channels_,
        .channel_in = in_.strides[1],
        .channel_filter = filter_.strides[is_forward_ ? 1 : 0],
        .results = results_,
        .result_filter = filter_.strides[is_forward_ ? 0 : 1],
        .result_out = out_.strides[1],
        .has_bias = bias_.present,
        .bias_step = bias_.present ? bias_.strides[1] : 0,
        .fused = fused.value_or(none),
        .activation = fused ? RunActivation(Attributes()) : RunActivation(attributes_),
    };
    std::vector<SpatialAxes> parts = computed();
    const size_t count = parts.size();
    add_padding(parts);
    return std::make_unique<PlanesConvolution>(shape, parts, words(count));
  }

 private:
  size_t spatial() const { return in_.sizes.size() - 2; }

  // The number of the tensors' dimension, of a spatial dimension among three; less than 0 for none.
  int dimension(size_t d) const { return static_cast<int>(d + spatial()) - 3; }

  int64_t output_padding(size_t d) const {
    return dimension(d) < 0 ? 0 : attributes_.integers("OutputPadding")[static_cast<size_t>(dimension(d))];
  }

  SpatialAxis axis(size_t d) const {
    if (dimension(d) < 0) return {{1, 1, 1, 1, 0, 0, 1, 0, 0}};
    const auto i = static_cast<size_t>(dimension(d));
    const int64_t taps = filter_.sizes[i + 2];
    const int64_t places = out_.sizes[i + 2] - output_padding(d);
    SpatialAxis found{{in_.sizes[i + 2], places, taps, attributes_.integers("Strides")[i],
                       attributes_.integers("StartPadding")[i], 0, attributes_.integers("Dilations")[i],
                       in_.strides[i + 2], out_.strides[i + 2]}};
    require(found.along.stride > 0 && found.along.dilation > 0 && places > 0 && found.along.start >= 0,
            "a window's numbers are wrong");
    found.tap_step = filter_.strides[i + 2];
    // In mode CONVOLUTION a filter is counted from its end.
    if (attributes_.integer("Mode") == 0) {
      found.tap_first = (taps - 1) * found.tap_step;
      found.tap_step = -found.tap_step;
    }
    return found;
  }

  // The convolution itself, or the phases of a transposed one.
  std::vector<SpatialAxes> computed() const {
    std::array<std::vector<SpatialAxis>, 3> phases;
    for (size_t d = 0; d < 3; ++d)
      phases[d] = is_forward_ ? std::vector<SpatialAxis>{axis(d)} : phases_of(axis(d));
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
      if (output_padding(d) == 0) continue;
      SpatialAxes box{axis(0), axis(1), axis(2)};
      for (size_t k = 0; k < 3; ++k) {
        Sliding& along = box[k].along;
        along.taps = 0;
        if (k == d) {
          box[k].out_first = along.places * along.out_stride;
          along.places = output_padding(k);
        } else if (k < d) {
          along.places += output_padding(k);
        }
      }
      parts.push_back(box);
    }
  }

  std::string words(size_t parts) const {
    std::string found = is_forward_ ? "convolution, window of " : "transposed convolution, window of ";
    for (size_t i = 0; i < spatial(); ++i) {
      if (i > 0) found += "x";
      found += std::to_string(filter_.sizes[i + 2]);
    }
    found += ", by planes";
    if (parts > 1) found += ", in " + std::to_string(parts) + " phases";
    if (groups_ > 1) found += ", in " + std::to_string(groups_) + " groups";
    return found;
  }

  const Layout& in_;
  const Layout& out_;
  const Layout& filter_;
  const Layout& bias_;
  const Attributes& attributes_;
  bool is_forward_;
  int64_t groups_;
  // Of a group.
  int64_t channels_ = 1;
  int64_t results_ = 1;
};

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
  const Layout& out = tensor(request.outputs, 0);
  std::string declined;
  const bool is_small = out.sizes.size() == 4 && out.sizes[2] * out.sizes[3] <= kFewPlaces;
  const bool is_by_channel = is_small && request.attributes.integer("GroupCount") == in.sizes[1];
  if (in.sizes.size() == 4 && (lies_last(in) || lies_last(out) || is_by_channel)) {
    if (auto plan = make_convolution_of_channels(request, declined)) return plan;
  }
  return Convolution(request).plan();
}

ANYDML_ISA_END
