// A case: an operator and what is asked of it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"

namespace {

using anydml::DataType;
using anydml::Layout;
using anydml::Request;

Layout packed(DataType type, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), anydml::size_of(type));
  for (size_t d = sizes.size() - 1; d > 0; --d) strides[d - 1] = strides[d] * sizes[d];
  return {type, std::move(sizes), std::move(strides), true};
}

int64_t bytes_of(const Layout& layout) { return layout.sizes[0] * layout.strides[0]; }

constexpr size_t kInstructionWords = 8;

struct Case {
  std::string operator_name;
  Request request;
};

std::string title(const Case& each) {
  const auto list = [](const std::vector<int64_t>& values) {
    std::string text = " (";
    for (const int64_t value : values) text += std::to_string(value) + (&value == &values.back() ? "" : " ");
    return text + ")";
  };
  const Layout& output = each.request.outputs[0];
  std::string text = each.operator_name + " ";
  const std::vector<Layout>& inputs = each.request.inputs;
  if (!inputs.empty() && inputs[0].type != output.type) {
    text += std::string(anydml::name_of(inputs[0].type)) + " to ";
  }
  text += std::string(anydml::name_of(output.type)) + list(output.sizes);
  for (const auto& [name, values] : each.request.attributes.all()) {
    if (const auto* const reals = std::get_if<std::vector<double>>(&values)) {
      // Of tables, which have a number for each output, how many weights they have.
      const bool is_table = each.operator_name.starts_with("RESAMPLE");
      if (is_table) text += " " + std::to_string(reals->size()) + " weights";
      for (const double value : is_table ? std::vector<double>{} : *reals)
        text += " " + std::to_string(value);
      continue;
    }
    if (each.operator_name.starts_with("RESAMPLE") && name != "Axes") continue;
    if (!std::holds_alternative<std::vector<int64_t>>(values)) continue;
    const auto& integers = std::get<std::vector<int64_t>>(values);
    // Of a program, instruction by instruction.
    const size_t size = name == "Program" ? kInstructionWords : integers.size();
    for (auto part = integers.begin(); part != integers.end(); part += static_cast<int64_t>(size))
      text += list({part, part + static_cast<int64_t>(size)});
  }
  return text;
}

anydml::Attributes attributes(const std::vector<std::pair<std::string, std::vector<int64_t>>>& named) {
  return std::vector<anydml::NamedAttribute>(named.begin(), named.end());
}

}  // namespace
