// Inputs that stay as they are, of a plan that has prepared what it needs of them: scales, zero points and
// biases are few, and copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "integer/problem.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

class KnownInputs {
 public:
  // Copies those that are there; false where one lies backwards. There are so many rows of parameters.
  bool copy(const Problem& problem, const void* const* inputs, int64_t rows) {
    const Parameter of_rows[] = {problem.a_scale, problem.a_zero, problem.out_scale, problem.out_zero,
                                 problem.row_bias};
    const Parameter of_columns[] = {problem.b_scale, problem.b_zero, problem.column_bias};
    auto last = static_cast<int64_t>(std::max(problem.a, problem.b));
    for (const Parameter& each : of_rows) last = std::max(last, each.input);
    for (const Parameter& each : of_columns) last = std::max(last, each.input);
    copies_.resize(static_cast<size_t>(last + 1));
    for (const Parameter& each : of_rows) {
      if (!copy(each, inputs, rows)) return false;
    }
    for (const Parameter& each : of_columns) {
      if (!copy(each, inputs, problem.columns())) return false;
    }
    return true;
  }

  // All inputs, the copies in place of those that were there.
  std::vector<const void*> with(const void* const* inputs) const {
    std::vector<const void*> all(inputs, inputs + copies_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (!copies_[i].empty()) all[i] = copies_[i].data();
    }
    return all;
  }

 private:
  bool copy(const Parameter& parameter, const void* const* inputs, int64_t count) {
    const std::byte* const from = parameter.at(inputs, 0);
    if (from == nullptr) return true;
    if (parameter.step < 0) return false;
    copies_[static_cast<size_t>(parameter.input)].assign(
        from, from + (count - 1) * parameter.step + size_of(parameter.type));
    return true;
  }

  std::vector<std::vector<std::byte>> copies_;
};

}  // namespace
ANYDML_ISA_END
