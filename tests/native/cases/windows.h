// Cases of scans, reductions, joins and pooling.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "case.h"

namespace {

Case scan(const char* name, DataType type, std::vector<int64_t> sizes, int64_t axis, int64_t decreasing,
          int64_t exclusive) {
  const Layout layout = packed(type, std::move(sizes));
  const std::string operation = name == std::string("CUMULATIVE_SUMMATION") ? "Sum" : "Product";
  return {
      name,
      {{layout},
       {layout},
       attributes(
           {{"Axis", {axis}}, {"AxisDirection", {decreasing}}, {"HasExclusive" + operation, {exclusive}}})}};
}

// The same from carries on.
Case carried_scan(const char* name, DataType type, std::vector<int64_t> sizes, int64_t axis,
                  int64_t decreasing) {
  int64_t lines = 1;
  for (const int64_t size : sizes) lines *= size;
  lines /= sizes[static_cast<size_t>(axis)];
  Case carried = scan(name, type, std::move(sizes), axis, decreasing, 0);
  const bool is_pair = anydml::is_float(type) && name == std::string("CUMULATIVE_PRODUCT");
  carried.request.inputs.push_back(
      packed(anydml::is_float(type) ? DataType::kFloat64 : type, {lines, is_pair ? 2 : 1}));
  return carried;
}

enum Function : int64_t { kAverage = 2, kL2 = 4, kLogSumExp = 6, kLargest = 7, kProduct = 9, kSum = 10 };

Case reduce(Function function, DataType type, std::vector<int64_t> sizes, std::vector<int64_t> axes) {
  std::vector<int64_t> kept = sizes;
  for (const int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  return {"REDUCE",
          {{packed(type, std::move(sizes))},
           {packed(type, std::move(kept))},
           attributes({{"Function", {function}}, {"Axes", std::move(axes)}})}};
}

Case argmax(DataType type, std::vector<int64_t> sizes, std::vector<int64_t> axes, int64_t decreasing) {
  Case each = reduce(kLargest, type, std::move(sizes), axes);
  Layout& output = each.request.outputs[0];
  output = packed(DataType::kUint32, output.sizes);
  each.request.attributes = attributes({{"Axes", std::move(axes)}, {"AxisDirection", {decreasing}}});
  each.operator_name = "ARGMAX";
  return each;
}

Case join(DataType type, const std::vector<std::vector<int64_t>>& inputs, std::vector<int64_t> output,
          int64_t axis) {
  Request request{{}, {packed(type, std::move(output))}, attributes({{"Axis", {axis}}})};
  for (const auto& sizes : inputs) request.inputs.push_back(packed(type, sizes));
  return {"JOIN", std::move(request)};
}

struct Window {
  int64_t size;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
};

Case pool(DataType type, std::vector<int64_t> input, std::vector<int64_t> output, Window window,
          bool per_channel = false) {
  const size_t spatial = input.size() - 2;
  const auto every = [&](int64_t value) { return std::vector<int64_t>(spatial, value); };
  std::vector<int64_t> sizes(input.size(), 1);
  if (per_channel) sizes[1] = input[1];
  const Layout scale = packed(DataType::kFloat32, sizes);
  const Layout zero_point = packed(type, sizes);
  return {"QUANTIZED_LINEAR_AVERAGE_POOLING",
          {{packed(type, std::move(input)), scale, zero_point, scale, zero_point},
           {packed(type, std::move(output))},
           attributes({{"Strides", every(window.stride)},
                       {"WindowSize", every(window.size)},
                       {"StartPadding", every(window.padding)},
                       {"EndPadding", every(window.padding)},
                       {"Dilations", every(window.dilation)},
                       {"IncludePadding", {0}}})}};
}

// By windows along the last dimensions of planes, of what is pooled, or of what has its gradients.
Case pool_floats(const char* name, DataType type, std::vector<int64_t> sizes, std::vector<int64_t> places,
                 Window window, std::vector<std::pair<std::string, std::vector<int64_t>>> more = {}) {
  const size_t spatial = sizes.size() - 2;
  const auto every = [&](int64_t value) { return std::vector<int64_t>(spatial, value); };
  const bool is_grad = std::string_view(name).ends_with("GRAD");
  const bool has_dilations = std::string_view(name) != "AVERAGE_POOLING_GRAD";
  const Layout elements = packed(type, std::move(sizes));
  Request request{{elements}, {packed(type, places)}, {}};
  if (is_grad) std::swap(request.inputs, request.outputs);
  if (std::string_view(name) == "MAX_POOLING_GRAD") request.inputs.insert(request.inputs.begin(), elements);
  if (std::string_view(name) == "MAX_POOLING2") request.outputs.push_back(packed(DataType::kUint64, places));
  more.insert(more.end(), {{"Strides", every(window.stride)},
                           {"WindowSize", every(window.size)},
                           {"StartPadding", every(window.padding)},
                           {"EndPadding", every(window.padding)}});
  if (has_dilations) more.emplace_back("Dilations", every(window.dilation));
  request.attributes = attributes(more);
  return {name, std::move(request)};
}

// The same with channels that lie last in all tensors.
Case with_channels_last(Case each) {
  for (std::vector<Layout>* const layouts : {&each.request.inputs, &each.request.outputs}) {
    for (Layout& layout : *layouts) {
      int64_t step = anydml::size_of(layout.type);
      layout.strides[1] = step;
      step *= layout.sizes[1];
      for (size_t d = layout.sizes.size(); d-- > 2; step *= layout.sizes[d]) layout.strides[d] = step;
      layout.strides[0] = step;
    }
  }
  return each;
}

Case unpool(DataType type, std::vector<int64_t> sizes, std::vector<int64_t> output) {
  return {"MAX_UNPOOLING",
          {{packed(type, sizes), packed(DataType::kUint32, sizes)}, {packed(type, std::move(output))}, {}}};
}

}  // namespace
