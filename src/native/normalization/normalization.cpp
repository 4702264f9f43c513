// The factories of normalisations, of SOFTMAX, LOG_SOFTMAX and HARDMAX, and of ADAM_OPTIMIZER, for any axes
// and strides. README.md tells which code runs when.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "nhwc/channel_normalizations.h"
#include "normalization/activation.h"
#include "normalization/adam.h"
#include "normalization/columns.h"
#include "normalization/elements_plan.h"
#include "normalization/fixed_halves.h"
#include "normalization/geometry.h"
#include "normalization/gradients_plan.h"
#include "normalization/hardmax_columns.h"
#include "normalization/hardmax_lines.h"
#include "normalization/lines.h"
#include "normalization/long_columns.h"
#include "normalization/long_lines.h"
#include "normalization/operands.h"
#include "normalization/runs.h"
#include "normalization/softmax_columns.h"
#include "normalization/softmax_lines.h"
#include "normalization/statistics.h"
#include "normalization/statistics_plan.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN
namespace {

std::string in_words(const Geometry& geometry) {
  const int64_t elements = count_of(geometry.summed) * (geometry.by_columns() ? 1 : geometry.run.size);
  return " of groups of " + std::to_string(elements) + ", by " + (geometry.by_columns() ? "columns" : "rows");
}

bool has_kernel(const Request& request, std::string& reason) {
  const DataType type = tensor(request.outputs, 0).type;
  if (store_of(type) != nullptr) return true;
  reason = "no normalization of " + std::string(name_of(type));
  return false;
}

template <class Op>
std::unique_ptr<Plan> all_lines_of(const Op& op, const Request& request, const Geometry& geometry,
                                   const std::string& description) {
  if (auto plan = columns_of(op, request, geometry, description)) return plan;
  return lines_of(op, request, geometry, description);
}

// The same along lines, of operations that have it.
template <class Op>
std::unique_ptr<Plan> lines_for(const Op&, const Request&, const Geometry&, const std::string&) {
  return nullptr;
}
template <>
std::unique_ptr<Plan> lines_for(const Softmax& op, const Request& request, const Geometry& geometry,
                                const std::string& description) {
  if (auto plan = all_lines_of(SoftmaxLine{op.is_logarithm}, request, geometry, description)) return plan;
  if (auto plan = long_columns_of(SoftmaxColumns{op.is_logarithm}, request, geometry, description))
    return plan;
  return long_lines_of(SoftmaxParts{op.is_logarithm}, request, geometry, description);
}
template <>
std::unique_ptr<Plan> lines_for(const Hardmax&, const Request& request, const Geometry& geometry,
                                const std::string& description) {
  if (auto plan = all_lines_of(HardmaxLine{}, request, geometry, description)) return plan;
  if (auto plan = long_columns_of(HardmaxColumns{}, request, geometry, description)) return plan;
  return long_lines_of(HardmaxParts{}, request, geometry, description);
}
template <>
std::unique_ptr<Plan> lines_for(const Moments& op, const Request& request, const Geometry& geometry,
                                const std::string& description) {
  return all_lines_of(MomentsLine{op.is_centred, op.is_scaled, op.epsilon, op.has}, request, geometry,
                      description);
}
template <>
std::unique_ptr<Plan> lines_for(const Norm& op, const Request& request, const Geometry& geometry,
                                const std::string& description) {
  return all_lines_of(NormLine{op.is_of_squares, op.epsilon}, request, geometry, description);
}

// By columns where the elements of groups lie apart in one of input and output: lines of the caches that a
// run touches there are the next run's too, and would be fetched anew for each group by rows.
Geometry grouped_geometry(const Request& request, const std::vector<bool>& summed) {
  const std::vector<Axis> axes = axes_of(request.inputs, request.outputs, summed);
  const size_t out = request.inputs.size();
  Geometry geometry = geometry_of(axes, out);
  const int64_t item = size_of(request.outputs[0].type);
  if (geometry.by_columns() || std::abs(geometry.run.steps[0]) <= item) return geometry;
  Geometry other = geometry_of(axes, 0);
  const bool is_better = other.by_columns() && other.run.size >= kShortRun && other.run.steps[0] == item;
  return is_better ? std::move(other) : std::move(geometry);
}

// The geometry of gradients by columns that are fewer than kShortRun, where they are computed as they lie.
std::optional<Geometry> few_columns(const Request& request, const std::vector<bool>& summed) {
  const Operands operands(request.inputs, request.outputs);
  Geometry geometry = geometry_of(axes_of(request.inputs, request.outputs, summed), operands.inputs, 1);
  if (!geometry.by_columns() || geometry.run.size >= kShortRun) return std::nullopt;
  if (!may_be_direct(geometry, operands, RunActivation(request.attributes), request.inputs))
    return std::nullopt;
  const bool is_whole = geometry.run.size >= kLanes || rows_together(geometry, operands) > 1;
  return is_whole ? std::optional(std::move(geometry)) : std::nullopt;
}

template <class Op>
std::unique_ptr<Plan> grouped(const Request& request, const Op& op, const std::vector<bool>& summed,
                              const std::string& name) {
  Geometry geometry = grouped_geometry(request, summed);
  const Operands operands(request.inputs, request.outputs);
  const RunActivation activation(request.attributes);
  if constexpr (std::is_same_v<Op, BatchGradients>) {
    if (auto columns = few_columns(request, summed)) geometry = std::move(*columns);
    if (may_be_direct(geometry, operands, activation, request.inputs)) {
      if (request.inputs[0].type == DataType::kFloat16) {
        return std::make_unique<GradientsPlan<Half>>(op, std::move(geometry), operands, activation,
                                                     name + in_words(geometry));
      }
      return std::make_unique<GradientsPlan<float>>(op, std::move(geometry), operands, activation,
                                                    name + in_words(geometry));
    }
  }
  std::string description = name + in_words(geometry);
  if (auto plan = lines_for(op, request, geometry, description)) return plan;
  return std::make_unique<StatisticsPlan<Op>>(op, std::move(geometry), operands, activation,
                                              std::move(description));
}

template <class Op>
std::unique_ptr<Plan> by_element(const Request& request, Op op, const std::string& name) {
  const std::vector<bool> none(tensor(request.outputs, 0).sizes.size(), false);
  Geometry geometry = geometry_of(axes_of(request.inputs, request.outputs, none), request.inputs.size());
  op.prepare(request, geometry);
  return std::make_unique<ElementsPlan<Op>>(op, std::move(geometry),
                                            Operands(request.inputs, request.outputs),
                                            RunActivation(request.attributes), name);
}

std::vector<bool> along(const Request& request, const std::vector<int64_t>& axes) {
  std::vector<bool> summed(tensor(request.inputs, 0).sizes.size(), false);
  for (const int64_t axis : axes) summed.at(static_cast<size_t>(axis)) = true;
  return summed;
}

// Where a parameter broadcasts.
std::vector<bool> where_of_one(const Layout& parameter) {
  std::vector<bool> summed;
  for (const int64_t size : parameter.sizes) summed.push_back(size == 1);
  return summed;
}

// y = (x - mean) * (scale / sqrt(variance + epsilon)) + bias
struct FixedNormalization {
  static constexpr size_t kInputs = 5;
  static constexpr size_t kOutputs = 1;

  double epsilon;
  bool is_constant = false;  // the factor along a run
  bool is_half = false;      // of which elements are computed in single precision, as in fixed_halves.h

  struct Constants {};
  Constants constants(const void* const*) const { return {}; }

  void prepare(const Request& request, const Geometry& geometry) {
    is_half = tensor(request.outputs, 0).type == DataType::kFloat16;
    is_constant = geometry.run.steps[2] == 0 && geometry.run.steps[3] == 0;
  }

  void compute(const Constants&, const double* const* in, int64_t count, double (*results)[kRun]) const {
    double* const y = results[0];
    const auto factor = [&](int64_t i) { return in[3][i] / std::sqrt(in[2][i] + epsilon); };
    if (is_half) {
      compute_singles(in, count, factor, y);
    } else if (is_constant) {
      const double only = factor(0);
      for (int64_t i = 0; i < count; ++i) y[i] = (in[0][i] - in[1][i]) * only + in[4][i];
    } else {
      for (int64_t i = 0; i < count; ++i) y[i] = (in[0][i] - in[1][i]) * factor(i) + in[4][i];
    }
  }

  template <class Factor>
  static void compute_singles(const double* const* in, int64_t count, const Factor& factor, double* y) {
    constexpr auto kOfSingles = static_cast<int64_t>(sizeof(Singles) / sizeof(float));
    for (int64_t i = 0; i < count; i += kOfSingles) {
      std::array<std::array<float, kOfSingles>, 3> lanes{};
      const int64_t size = std::min(kOfSingles, count - i);
      for (int64_t j = 0; j < size; ++j) {
        const auto lane = static_cast<size_t>(j);
        lanes[0][lane] = static_cast<float>(in[0][i + j]) - static_cast<float>(in[1][i + j]);
        lanes[1][lane] = static_cast<float>(factor(i + j));
        lanes[2][lane] = static_cast<float>(in[4][i + j]);
      }
      const auto all = bits_as<std::array<Singles, 3>>(lanes);
      const auto results = bits_as<std::array<float, kOfSingles>>(multiply_add(all[0], all[1], all[2]));
      for (int64_t j = 0; j < size; ++j) y[i + j] = results[static_cast<size_t>(j)];
    }
  }
};

Moments moments_of(const Request& request, bool is_centred, bool is_scaled) {
  Moments op{is_centred, is_scaled, request.attributes.real("Epsilon"), {}};
  for (size_t k = 0; k < request.inputs.size(); ++k) op.has[k] = request.inputs[k].present;
  return op;
}

std::unique_ptr<Plan> gradients(const Request& request, bool is_training, std::string& reason) {
  if (!has_kernel(request, reason)) return nullptr;
  return grouped(request, BatchGradients{is_training, request.attributes.real("Epsilon")},
                 where_of_one(tensor(request.inputs, 2)), "sums of gradients");
}

// Along the last axis where there are no Axes.
std::vector<bool> axes_of_activation(const Request& request) {
  const auto rank = static_cast<int64_t>(tensor(request.inputs, 0).sizes.size());
  if (!request.attributes.has("Axes")) return along(request, {rank - 1});
  return along(request, request.attributes.integers("Axes"));
}

std::unique_ptr<Plan> softmax(const Request& request, bool is_logarithm, std::string& reason) {
  if (!has_kernel(request, reason)) return nullptr;
  return grouped(request, Softmax{is_logarithm}, axes_of_activation(request),
                 is_logarithm ? "logarithms of softmax" : "softmax");
}

}  // namespace

std::unique_ptr<Plan> make_batch_normalization(const Request& request, std::string& reason) {
  if (auto plan = make_channel_batch_normalization(request, reason)) return plan;
  if (!has_kernel(request, reason)) return nullptr;
  const double epsilon = request.attributes.real("Epsilon");
  const std::vector<bool> none(tensor(request.outputs, 0).sizes.size(), false);
  const Geometry geometry =
      geometry_of(axes_of(request.inputs, request.outputs, none), request.inputs.size());
  if (auto plan = FixedHalvesPlan::of(request, geometry)) return plan;
  return by_element(request, FixedNormalization{epsilon}, "normalization, element by element");
}

std::unique_ptr<Plan> make_mean_variance_normalization(const Request& request, std::string& reason) {
  const Attributes& attributes = request.attributes;
  const bool is_older = attributes.has("NormalizeVariance");
  if (is_older) {
    if (auto plan = make_channel_mean_variance_normalization(request, reason)) return plan;
  }
  if (!has_kernel(request, reason)) return nullptr;
  std::vector<bool> summed;
  if (attributes.has("Axes")) {
    summed = along(request, attributes.integers("Axes"));
  } else {
    summed = {false, attributes.flag("CrossChannel"), true, true};
  }
  const bool is_centred = is_older || attributes.flag("UseMean");
  const bool is_scaled = attributes.flag(is_older ? "NormalizeVariance" : "UseVariance");
  return grouped(request, moments_of(request, is_centred, is_scaled), summed, "mean and variance");
}

std::unique_ptr<Plan> make_batch_normalization_training(const Request& request, std::string& reason) {
  if (auto plan = make_channel_batch_normalization_training(request, reason)) return plan;
  if (!has_kernel(request, reason)) return nullptr;
  return grouped(request, moments_of(request, true, true), where_of_one(tensor(request.inputs, 1)),
                 "mean and variance");
}

std::unique_ptr<Plan> make_batch_normalization_training_grad(const Request& request, std::string& reason) {
  return gradients(request, true, reason);
}

std::unique_ptr<Plan> make_batch_normalization_grad(const Request& request, std::string& reason) {
  return gradients(request, false, reason);
}

std::unique_ptr<Plan> make_lp_normalization(const Request& request, std::string& reason) {
  if (!has_kernel(request, reason)) return nullptr;
  const Norm op{request.attributes.integer("P") == 2, request.attributes.real("Epsilon")};
  return grouped(request, op, along(request, {request.attributes.integer("Axis")}), "norm");
}

std::unique_ptr<Plan> make_softmax(const Request& request, std::string& reason) {
  return softmax(request, false, reason);
}

std::unique_ptr<Plan> make_log_softmax(const Request& request, std::string& reason) {
  return softmax(request, true, reason);
}

std::unique_ptr<Plan> make_hardmax(const Request& request, std::string& reason) {
  if (!has_kernel(request, reason)) return nullptr;
  return grouped(request, Hardmax{}, axes_of_activation(request), "first of the largest");
}

std::unique_ptr<Plan> make_adam_optimizer(const Request& request, std::string& reason) {
  if (!has_kernel(request, reason)) return nullptr;
  const Attributes& attributes = request.attributes;
  const Adam op{attributes.real("LearningRate"), attributes.real("Beta1"), attributes.real("Beta2"),
                attributes.real("Epsilon")};
  return by_element(request, op, "a step of Adam");
}

ANYDML_ISA_END
