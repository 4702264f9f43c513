// What CONVOLUTION's desc says, read and checked once for all of its kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/layout.h"
#include "nhwc/fused_activation.h"
#include "nhwc/windows.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

struct ConvolutionDesc {
  const Layout& in;
  const Layout& out;
  const Layout& filter;
  const Layout& bias;
  const Layout* added;  // to results, before an activation; null for none
  const Attributes& attributes;
  bool is_forward;
  bool is_flipped;  // in mode CONVOLUTION a filter is counted from its end
  int64_t groups;
  // Of a group.
  int64_t channels = 1;
  int64_t results = 1;
  std::optional<Fused> fused;  // none where the activation is another one

  explicit ConvolutionDesc(const Request& request)
      : in(tensor(request.inputs, 0)),
        out(tensor(request.outputs, 0)),
        filter(tensor(request.inputs, 1)),
        bias(request.inputs.at(2)),
        added(request.inputs.size() > 3 && request.inputs[3].present ? &request.inputs[3] : nullptr),
        attributes(request.attributes),
        is_forward(attributes.integer("Direction") == 0),
        is_flipped(attributes.integer("Mode") == 0),
        groups(attributes.integer("GroupCount")),
        fused(Fused::of(attributes.activation("FusedActivation"))) {
    const size_t rank = in.sizes.size();
    require(rank >= 3 && rank <= 5 && out.sizes.size() == rank && filter.sizes.size() == rank,
            "the ranks of a convolution's tensors differ");
    require(in.sizes[0] == out.sizes[0], "the sizes of input and output differ");
    require(groups > 0 && in.sizes[1] % groups == 0 && out.sizes[1] % groups == 0, "groups are wrong");
    channels = in.sizes[1] / groups;
    results = out.sizes[1] / groups;
    require(filter.type == in.type && out.type == in.type &&
                filter.sizes[0] == (is_forward ? out.sizes[1] : in.sizes[1]) &&
                filter.sizes[1] == (is_forward ? channels : results),
            "a filter is wrong");
    require(!bias.present || (bias.type == in.type && bias.sizes.at(1) == out.sizes[1]), "a bias is wrong");
    require(added == nullptr || (added->type == out.type && added->sizes == out.sizes),
            "what is added differs from the output");
    for (const char* name : {"Strides", "Dilations", "StartPadding", "EndPadding", "OutputPadding"})
      require(attributes.integers(name).size() == spatial(), "a spatial dimension lacks a number");
  }

  bool added_lies_alike() const {
    for (size_t d = 0; d < out.sizes.size(); ++d) {
      if (out.sizes[d] > 1 && added->strides[d] != out.strides[d]) return false;
    }
    return true;
  }
  size_t spatial() const { return in.sizes.size() - 2; }
  int64_t output_padding(size_t i) const { return attributes.integers("OutputPadding")[i]; }
  int64_t bias_step() const { return bias.present ? bias.strides[1] : 0; }
  int64_t filter_of_channel() const { return filter.strides[is_forward ? 1 : 0]; }
  int64_t filter_of_result() const { return filter.strides[is_forward ? 0 : 1]; }
  // From group to group a filter goes on by as many of its first dimension as a group has.
  int64_t filter_of_group() const { return filter.sizes[0] / groups * filter.strides[0]; }

  // A window along a spatial dimension, without what OutputPadding adds.
  Sliding along(size_t i) const {
    const Sliding found{in.sizes[i + 2],
                        out.sizes[i + 2] - output_padding(i),
                        filter.sizes[i + 2],
                        attributes.integers("Strides")[i],
                        attributes.integers("StartPadding")[i],
                        attributes.integers("EndPadding")[i],
                        attributes.integers("Dilations")[i],
                        in.strides[i + 2],
                        out.strides[i + 2]};
    require(found.stride > 0 && found.dilation > 0 && found.places > 0 && found.start >= 0 && found.end >= 0,
            "a window's numbers are wrong");
    return found;
  }
};

ANYDML_ISA_END
