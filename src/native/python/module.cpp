// The binding, one for all kernels.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "build_info.h"
#include "core/layout.h"
#include "core/registry.h"
#include "python/bound_plan.h"
#include "python/call_cache.h"
#include "python/function_object.h"
#include "python/layout_match.h"
#include "python/numpy_array.h"
#include "python/plan_sequence.h"
#include "python/tensor_slots.h"

namespace nb = nanobind;

namespace anydml {
namespace {

// The inputs of a dispatch that has many.
class LayoutMatcher {
 public:
  explicit LayoutMatcher(const std::vector<PythonLayout>& inputs) : slots_(to_slots(to_layouts(inputs))) {}

  // Whether every input is plainly an array that its layout describes, and none shares memory with a range of
  // addresses. False: the rules have to say what is wrong, or that nothing is.
  bool fits(nb::handle inputs, const std::vector<std::pair<uint64_t, uint64_t>>& written) const {
    QuickViews views;
    if (!views.acquire(inputs.ptr(), slots_, false)) return false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].layout.present) continue;
      const auto at = static_cast<double>(reinterpret_cast<uintptr_t>(views.pointers()[i]));
      const Extent& extent = slots_[i].extent;
      for (const auto& [begin, end] : written) {
        if (at + extent.low < static_cast<double>(end) && static_cast<double>(begin) < at + extent.high)
          return false;
      }
    }
    return true;
  }

 private:
  std::vector<Slot> slots_;
};

bool too_large(const Slot& slot) { return slot.extent.high - slot.extent.low > kLargestExtent; }

Attributes to_attributes(nb::dict named);

// Long tables come as arrays, one behind the other in memory, as each number of a tuple is an object.
template <class T>
std::vector<T> to_vector(PyArrayObject* array) {
  const auto* const from = static_cast<const T*>(PyArray_DATA(array));
  return std::vector<T>(from, from + PyArray_SIZE(array));
}

AttributeValues to_values(nb::sequence values) {
  if (PyArrayObject* const array = exact_array(values.ptr())) {
    const bool is_float = PyArray_TYPE(array) == NPY_DOUBLE;
    if (!PyArray_IS_C_CONTIGUOUS(array) || !is_plain(array, false) ||
        (!is_float && !(PyArray_ISSIGNED(array) && PyArray_ITEMSIZE(array) == 8))) {
      throw nb::value_error("an attribute is an array of other numbers than int64 and float64");
    }
    if (is_float) return to_vector<double>(array);
    return to_vector<int64_t>(array);
  }
  if (nb::len(values) == 0) return std::vector<int64_t>();
  const nb::object first = values[0];
  if (nb::isinstance<nb::float_>(first)) return nb::cast<std::vector<double>>(values);
  if (!nb::isinstance<nb::tuple>(first)) return nb::cast<std::vector<int64_t>>(values);
  std::vector<Activation> activations;
  for (const nb::handle each : values) {
    const auto [name, attributes] = nb::cast<std::tuple<std::string, nb::dict>>(each);
    activations.push_back({name, to_attributes(attributes)});
  }
  return activations;
}

Attributes to_attributes(nb::dict named) {
  std::vector<NamedAttribute> attributes;
  for (const auto& [name, values] : named) {
    attributes.emplace_back(nb::cast<std::string>(name), to_values(nb::cast<nb::sequence>(values)));
  }
  return attributes;
}

nb::object compile(const std::string& name, const std::vector<PythonLayout>& inputs,
                   const std::vector<PythonLayout>& outputs, nb::dict attributes) {
  const Request request{to_layouts(inputs), to_layouts(outputs), to_attributes(attributes)};
  std::vector<Slot> in = to_slots(request.inputs);
  std::vector<Slot> out = to_slots(request.outputs);
  if (std::ranges::any_of(in, too_large) || std::ranges::any_of(out, too_large)) {
    return nb::cast("a tensor spans more than 2^53 bytes");
  }
  std::string reason;
  const std::string_view set = chosen_instruction_set(reason);
  std::unique_ptr<Plan> plan = set.empty() ? nullptr : make_plan(set, name, request, reason);
  if (plan == nullptr) return nb::cast(reason);
  std::string description = plan->description() + " (" + std::string(set) + ")";
  return nb::cast(BoundPlan(std::move(plan), std::move(description), std::move(in), std::move(out)));
}

nb::list names(const std::vector<std::string_view>& names) {
  nb::list list;
  for (const std::string_view each : names) list.append(nb::str(each.data(), each.size()));
  return list;
}

nb::dict build_info() {
  nb::dict info;
  info["compiler"] = kCompiler;
  info["flags"] = kFlags;
  info["instruction_sets"] = names(instruction_sets());
  info["sanitizers"] = kSanitizers;
  return info;
}

}  // namespace
}  // namespace anydml

NB_MODULE(_native, m) {
  using namespace nb::literals;
  // What the functions have compiled lives as long as the interpreter, which nanobind would call a leak.
  nb::set_leak_warnings(false);
  anydml::set_cancellation([] {
    // Only Python's main thread runs signal handlers; of what they raise run_at() tells.
    const nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
  });
  m.doc() = "The kernels of the CPU engine. Requests must have been validated.";
  anydml::import_numpy();

  nb::class_<anydml::BoundPlan>(m, "Plan", "An operator made ready; several threads may run it at once.")
      .def("run", &anydml::BoundPlan::run, "inputs"_a, "outputs"_a,
           "Runs on buffers whose address is that of element [0, ..., 0], None for an absent tensor.")
      .def(
          "try_run", &anydml::BoundPlan::try_run, "inputs"_a.none(), "outputs"_a.none(), "in_place"_a,
          "Runs on lists of buffers that plainly fit; False, and nothing done, where the rules have to look.")
      .def("prepare", &anydml::BoundPlan::prepare, "inputs"_a,
           "A plan that has prepared what takes time, of inputs that stay as they are, None for the others; "
           "None "
           "where it is of no use.")
      .def_prop_ro("checks_values", &anydml::BoundPlan::checks_values)
      .def_prop_ro("prepares", &anydml::BoundPlan::prepares)
      .def_prop_ro("prepared_bytes", &anydml::BoundPlan::prepared_bytes)
      .def_prop_ro("description", &anydml::BoundPlan::description);
  nb::class_<anydml::PlanSequence>(m, "PlanSequence",
                                   "Plans that run one after the other, one run at a time.")
      .def(nb::init<const std::vector<std::tuple<nb::object, anydml::Places, anydml::Places>>&>(), "steps"_a,
           "Plans with the addresses of inputs and outputs: 0 for an absent tensor, -1 - n for the n-th of "
           "the "
           "arrays of a run.")
      .def("run", &anydml::PlanSequence::run, "arrays"_a,
           "Runs all on arrays that lie as the plans have them.");
  nb::class_<anydml::LayoutMatcher>(m, "LayoutMatcher", "The layouts of a dispatch's inputs.")
      .def(nb::init<const std::vector<anydml::PythonLayout>&>(), "inputs"_a)
      .def("fits", &anydml::LayoutMatcher::fits, "inputs"_a.none(), "written"_a,
           "Whether a list of arrays is plainly laid out so, and apart from ranges of addresses.");
  nb::class_<anydml::DeviceLayoutMatcher>(m, "DeviceLayoutMatcher",
                                          "The layouts of a dispatch's tensors on a device.")
      .def(nb::init<nb::handle, const std::vector<anydml::PythonLayout>&,
                    const std::vector<anydml::PythonLayout>&, std::pair<int, int>, std::vector<nb::object>>(),
           "tensor_type"_a, "inputs"_a, "outputs"_a, "device"_a, "questions"_a,
           "Of tensors of that very type, on a device as DLPack numbers it; what is asked of each has to be "
           "False.")
      .def(
          "places", &anydml::DeviceLayoutMatcher::places, "inputs"_a.none(), "outputs"_a.none(), "in_place"_a,
          "The addresses of lists of tensors, 8 bytes each, where they are plainly laid out so and no output "
          "shares memory with another; else None.");
  nb::class_<anydml::CallKey>(m, "CallKey", "The key of a call.")
      .def("equals", &anydml::CallKey::equals, "other"_a, "Whether it is of a call that is alike.");
  nb::class_<anydml::CallCache>(m, "CallCache", "Calls of functions, prepared to be run again.")
      .def(nb::init<size_t, nb::object, nb::object>(), "capacity"_a, "classify"_a, "canonical"_a)
      .def("clear", &anydml::CallCache::clear, "Forgets all calls.")
      .def("__len__", &anydml::CallCache::size);
  nb::class_<anydml::CachedFunction>(m, "CachedFunction", "One function's share of a cache of calls.")
      .def(nb::init<anydml::CallCache&, const std::vector<std::string>&>(), "cache"_a, "names"_a,
           nb::keep_alive<1, 2>())
      .def("key", &anydml::CachedFunction::key, "args"_a, "options"_a,
           "The key of a call that could be remembered and is not; else None.")
      .def("arrays", &anydml::CachedFunction::arrays, "key"_a, "The arrays of a call, in the key's order.")
      .def("keep", &anydml::CachedFunction::keep, "key"_a, "run"_a, "plan"_a.none(), "in_place"_a,
           "on_device"_a, "inputs"_a, "outputs"_a, "results"_a, "is_list"_a,
           "Remembers what a call comes down to.");
  m.attr("function") = anydml::function_type();
  m.def("compile", &anydml::compile, "name"_a, "inputs"_a, "outputs"_a, "attributes"_a,
        nb::sig("def compile(name: str, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None], "
                "attributes: Mapping[str, AttributeValues]) -> Plan | str"),
        "A plan, or the reason why there is none. A layout is (data type, sizes, strides in bytes).");
  m.def(
      "kernels", [] { return anydml::names(anydml::kernel_names()); }, nb::sig("def kernels() -> list[str]"),
      "The operators that have a kernel; ELEMENT_WISE stands for all pointwise ones.");
  m.def(
      "opcodes",
      [] {
        return std::vector<std::string>{
#define ANYDML_OPCODE(name) #name,
#include "pointwise/opcodes.inc"
#undef ANYDML_OPCODE
        };
      },
      nb::sig("def opcodes() -> list[str]"), "The instructions of pointwise programs, by their numbers.");
  m.def("build_info", &anydml::build_info, "How this module was built.");
}
