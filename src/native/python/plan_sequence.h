// Plans that run one after the other: a graph's kernels, with one call of Python's for all of them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bound_plan.h"
#include "python/numpy_array.h"

namespace anydml {

// Where each tensor of a step lies: its address, 0 for one that is absent, or -1 - n for the n-th array that
// is bound at a run.
using Places = std::vector<int64_t>;

// One run at a time.
class PlanSequence {
 public:
  explicit PlanSequence(const std::vector<std::tuple<nanobind::object, Places, Places>>& steps) {
    steps_.reserve(steps.size());
    for (const auto& [plan, inputs, outputs] : steps) {
      steps_.push_back({plan, &nanobind::cast<const BoundPlan&>(plan), pointers(inputs), pointers(outputs)});
    }
    // Pointers stay where they are from here on.
    for (size_t i = 0; i < steps_.size(); ++i) {
      find_bound(std::get<1>(steps[i]), steps_[i].inputs);
      find_bound(std::get<2>(steps[i]), steps_[i].outputs);
    }
  }

  void run(const nanobind::list& arrays) {
    for (const auto& [pointer, number] : bound_) {
      PyObject* const array = number < arrays.size() ? nanobind::handle(arrays[number]).ptr() : nullptr;
      if (array == nullptr || !PyObject_TypeCheck(array, &PyArray_Type)) {
        throw nanobind::type_error("what is bound is no array");
      }
      *pointer = PyArray_DATA(reinterpret_cast<PyArrayObject*>(array));
    }
    for (const Step& step : steps_) step.plan->run_at(step.inputs.data(), step.outputs.data());
  }

 private:
  struct Step {
    nanobind::object owner;
    const BoundPlan* plan;
    std::vector<void*> inputs;
    std::vector<void*> outputs;
  };

  static std::vector<void*> pointers(const Places& places) {
    std::vector<void*> found(places.size(), nullptr);
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] > 0) found[i] = reinterpret_cast<void*>(static_cast<uintptr_t>(places[i]));
    }
    return found;
  }

  void find_bound(const Places& places, std::vector<void*>& pointers) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0) bound_.emplace_back(&pointers[i], static_cast<size_t>(-1 - places[i]));
    }
  }

  std::vector<Step> steps_;
  std::vector<std::pair<void**, size_t>> bound_;
};

}  // namespace anydml
