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
#include "python/layout_match.h"
#include "python/tensor_slots.h"

namespace nb = nanobind;

namespace anydml {
namespace {

// A buffer held for as long as this lives.
class View {
 public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() { PyBuffer_Release(&buffer_); }

  void acquire(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) nb::raise_python_error();
  }
  void* data() const { return buffer_.buf; }
  Extent extent() const {
    Extent extent{0, static_cast<double>(buffer_.itemsize)};
    for (int d = 0; d < buffer_.ndim; ++d) {
      if (buffer_.shape[d] == 0) return {};
      extent.add_dimension(buffer_.shape[d], buffer_.strides[d]);
    }
    return extent;
  }

 private:
  Py_buffer buffer_{};
};

// The buffers of one side of a run. Views stay where they are: a Py_buffer may point into itself.
class Views {
 public:
  Views(nb::sequence objects, const std::vector<Slot>& slots, int flags, const char* side,
        bool may_lack = false)
      : views_(std::make_unique<View[]>(slots.size())), pointers_(slots.size(), nullptr) {
    const size_t count = nb::len(objects);
    if (count != slots.size()) {
      const std::string got = std::to_string(count) + " " + side;
      throw nb::value_error((got + ", where the plan has " + std::to_string(slots.size())).c_str());
    }
    for (size_t i = 0; i < count; ++i) {
      const nb::object object = objects[i];
      if ((may_lack || !slots[i].layout.present) && object.is_none()) continue;
      if (object.is_none()) refuse(side, i, "is absent, but present in the plan");
      if (!slots[i].layout.present) refuse(side, i, "is present, but absent in the plan");
      views_[i].acquire(object, flags);
      if (!views_[i].extent().covers(slots[i].extent)) refuse(side, i, "does not cover the plan's layout");
      pointers_[i] = views_[i].data();
    }
  }

  void* const* pointers() const { return pointers_.data(); }

 private:
  [[noreturn]] static void refuse(const std::string& side, size_t index, const char* what) {
    throw nb::value_error((side + "[" + std::to_string(index) + "] " + what).c_str());
  }

  std::unique_ptr<View[]> views_;
  std::vector<void*> pointers_;
};

// NumPy's own, while this module is loaded. No subclass is taken at a glance: what a masked array's memory
// holds is not all that it means.
PyObject* array_type = nullptr;

// Buffers of a dispatch that plainly fit their slots, taken without an exception, and, where they are few,
// without an allocation: what does not fit is no error yet, but the rules' to judge.
class QuickViews {
 public:
  QuickViews() = default;
  QuickViews(const QuickViews&) = delete;
  QuickViews& operator=(const QuickViews&) = delete;
  ~QuickViews() {
    while (count_ > 0) PyBuffer_Release(&buffers_[--count_]);
  }

  bool acquire(PyObject* list, const std::vector<Slot>& slots, int flags) {
    if (!PyList_CheckExact(list) || static_cast<size_t>(PyList_Size(list)) != slots.size()) return false;
    if (slots.size() > kFew) {
      many_buffers_ = std::make_unique<Py_buffer[]>(slots.size());
      many_pointers_ = std::make_unique<void*[]>(slots.size());
      buffers_ = many_buffers_.get();
      pointers_ = many_pointers_.get();
    }
    for (const Slot& slot : slots) {
      PyObject* object = PyList_GetItem(list, static_cast<Py_ssize_t>(count_));
      if (object == Py_None && !slot.layout.present) {
        buffers_[count_] = {};
        pointers_[count_++] = nullptr;
        continue;
      }
      if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != array_type) return false;
      if (PyObject_GetBuffer(object, &buffers_[count_], flags | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return false;
      }
      pointers_[count_] = buffers_[count_].buf;
      if (!fits(buffers_[count_++], slot.layout)) return false;
    }
    return true;
  }
  void* const* pointers() const { return pointers_; }

 private:
  static constexpr size_t kFew = 8;

  static bool fits(const Py_buffer& buffer, const Layout& layout) {
    const size_t rank = layout.sizes.size();
    if (!layout.present || static_cast<size_t>(buffer.ndim) != rank) return false;
    if (buffer.itemsize != size_of(layout.type) || !is_format(buffer.format, layout.type)) return false;
    for (size_t d = 0; d < rank; ++d) {
      if (buffer.shape[d] != layout.sizes[d]) return false;
      if (buffer.strides[d] != layout.strides[d] && layout.sizes[d] > 1) return false;
    }
    return true;
  }

  // Whether the struct module's character for an element, in the machine's byte order, is of the type's kind;
  // the sizes have been compared.
  static bool is_format(const char* format, DataType type) {
    if (format == nullptr || format[0] == '\0' || format[1] != '\0') return false;
    const std::string_view name = name_of(type);
    const std::string_view characters = name.front() == 'f' ? "efd" : name.front() == 'i' ? "bhilq" : "BHILQ";
    return characters.find(format[0]) != std::string_view::npos;
  }

  size_t count_ = 0;
  Py_buffer few_buffers_[kFew];
  void* few_pointers_[kFew];
  std::unique_ptr<Py_buffer[]> many_buffers_;
  std::unique_ptr<void*[]> many_pointers_;
  Py_buffer* buffers_ = few_buffers_;
  void** pointers_ = few_pointers_;
};

class BoundPlan {
 public:
  BoundPlan(std::unique_ptr<Plan> plan, std::string description, std::vector<Slot> inputs,
            std::vector<Slot> outputs)
      : plan_(std::move(plan)),
        description_(std::move(description)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {
    for (const auto* side : {&inputs_, &outputs_}) {
      for (const Slot& slot : *side) bytes_ += slot.extent.high - slot.extent.low;
    }
    for (const Slot& slot : inputs_) alike_.push_back(lies_as(slot.layout, outputs_[0].layout));
  }

  // Runs where every buffer is plainly what the plan was made for and no output shares memory with an input,
  // but for the very same elements where that is allowed. False: nothing was done, and the rules have to say
  // what is wrong, or that nothing is.
  bool try_run(nb::handle inputs, nb::handle outputs, bool in_place) const {
    QuickViews in;
    QuickViews out;
    if (!acquire(in, inputs, out, outputs, in_place)) return false;
    if (bytes_ < kWorthReleasing) {
      plan_->run(in.pointers(), out.pointers());
    } else {
      const nb::gil_scoped_release release;
      plan_->run(in.pointers(), out.pointers());
    }
    return true;
  }

  void run(nb::sequence inputs, nb::sequence outputs) const {
    const Views in(inputs, inputs_, PyBUF_STRIDED_RO, "inputs");
    const Views out(outputs, outputs_, PyBUF_STRIDED, "outputs");
    const nb::gil_scoped_release release;
    plan_->run(in.pointers(), out.pointers());
  }
  const std::string& description() const { return description_; }

  bool prepares() const { return plan_->prepares(); }
  std::unique_ptr<BoundPlan> prepare(nb::sequence inputs) const {
    const Views known(inputs, inputs_, PyBUF_STRIDED_RO, "inputs", true);
    std::unique_ptr<Plan> plan = plan_->prepared(known.pointers());
    if (plan == nullptr) return nullptr;
    return std::make_unique<BoundPlan>(std::move(plan), description_, inputs_, outputs_);
  }
  int64_t prepared_bytes() const { return plan_->prepared_bytes(); }

 private:
  // Below this the interpreter's lock is held for less time than it takes to give it away.
  static constexpr double kWorthReleasing = 8 << 10;

  bool acquire(QuickViews& in, nb::handle inputs, QuickViews& out, nb::handle outputs, bool in_place) const {
    if (!in.acquire(inputs.ptr(), inputs_, PyBUF_STRIDED_RO) ||
        !out.acquire(outputs.ptr(), outputs_, PyBUF_STRIDED)) {
      return false;
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (in.pointers()[i] == nullptr) continue;
      const bool same_elements = in_place && alike_[i] && in.pointers()[i] == out.pointers()[0];
      if (!same_elements && overlap(inputs_[i], in.pointers()[i], outputs_[0], out.pointers()[0])) {
        return false;
      }
    }
    return true;
  }

  std::unique_ptr<Plan> plan_;
  std::string description_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  double bytes_ = 0;
  std::vector<bool> alike_;  // inputs that lie as the output does
};

// The inputs of a dispatch that has many.
class LayoutMatcher {
 public:
  LayoutMatcher(const std::vector<PythonLayout>& inputs, nb::handle array_type);

  // Whether every input is plainly an array that its layout describes, and none shares memory with a range of
  // addresses. False: the rules have to say what is wrong, or that nothing is.
  bool fits(nb::handle inputs, const std::vector<std::pair<uint64_t, uint64_t>>& written) const {
    QuickViews views;
    if (!views.acquire(inputs.ptr(), slots_, PyBUF_STRIDED_RO)) return false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].layout.present) continue;
      if (Py_TYPE(PyList_GetItem(inputs.ptr(), static_cast<Py_ssize_t>(i))) != array_type_) return false;
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
  PyTypeObject* array_type_;
};

LayoutMatcher::LayoutMatcher(const std::vector<PythonLayout>& inputs, nb::handle array_type)
    : slots_(to_slots(to_layouts(inputs))), array_type_(reinterpret_cast<PyTypeObject*>(array_type.ptr())) {}

bool too_large(const Slot& slot) { return slot.extent.high - slot.extent.low > kLargestExtent; }

Attributes to_attributes(nb::dict named);

AttributeValues to_values(nb::sequence values) {
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
  m.doc() = "The kernels of the CPU engine. Requests must have been validated.";
  anydml::array_type = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();

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
      .def_prop_ro("prepares", &anydml::BoundPlan::prepares)
      .def_prop_ro("prepared_bytes", &anydml::BoundPlan::prepared_bytes)
      .def_prop_ro("description", &anydml::BoundPlan::description);
  nb::class_<anydml::LayoutMatcher>(m, "LayoutMatcher", "The layouts of a dispatch's inputs.")
      .def(nb::init<const std::vector<anydml::PythonLayout>&, nb::handle>(), "inputs"_a, "array_type"_a,
           nb::keep_alive<1, 3>())
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
  m.def("compile", &anydml::compile, "name"_a, "inputs"_a, "outputs"_a, "attributes"_a,
        nb::sig("def compile(name: str, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None], "
                "attributes: Mapping[str, AttributeValues]) -> Plan | str"),
        "A plan, or the reason why there is none. A layout is (data type, sizes, strides in bytes).");
  m.def(
      "kernels", [] { return anydml::names(anydml::kernel_names()); }, nb::sig("def kernels() -> list[str]"),
      "The operators that have a kernel; ELEMENT_WISE stands for all pointwise ones.");
  m.def("build_info", &anydml::build_info, "How this module was built.");
}
