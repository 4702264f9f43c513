// Plans bound to the buffers of Python's arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "platform/parallel.h"
#include "python/numpy_array.h"
#include "python/tensor_slots.h"

namespace anydml {

// A buffer held for as long as this lives.
class View {
 public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() { PyBuffer_Release(&buffer_); }

  void acquire(nanobind::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) nanobind::raise_python_error();
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
  Views(nanobind::sequence objects, const std::vector<Slot>& slots, int flags, const char* side,
        bool may_lack = false)
      : views_(std::make_unique<View[]>(slots.size())), pointers_(slots.size(), nullptr) {
    const size_t count = nanobind::len(objects);
    if (count != slots.size()) {
      const std::string got = std::to_string(count) + " " + side;
      throw nanobind::value_error((got + ", where the plan has " + std::to_string(slots.size())).c_str());
    }
    for (size_t i = 0; i < count; ++i) {
      const nanobind::object object = objects[i];
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
    throw nanobind::value_error((side + "[" + std::to_string(index) + "] " + what).c_str());
  }

  std::unique_ptr<View[]> views_;
  std::vector<void*> pointers_;
};

// Where the arrays of a dispatch lie that plainly fit their slots, found without an exception, and, where
// they are few, without an allocation: what does not fit is no error yet, but the rules' to judge.
class QuickViews {
 public:
  QuickViews() = default;
  QuickViews(const QuickViews&) = delete;
  QuickViews& operator=(const QuickViews&) = delete;

  // Those that are known are None.
  bool acquire(PyObject* list, const std::vector<Slot>& slots, bool written,
               const std::vector<bool>& are_known = {}) {
    if (!PyList_CheckExact(list) || static_cast<size_t>(PyList_Size(list)) != slots.size()) return false;
    if (slots.size() > kFew) {
      many_ = std::make_unique<void*[]>(slots.size());
      pointers_ = many_.get();
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      PyObject* const object = PyList_GetItem(list, static_cast<Py_ssize_t>(i));
      const bool is_known = !are_known.empty() && are_known[i];
      if (is_known && object != Py_None) return false;
      const bool is_absent = is_known || (object == Py_None && !slots[i].layout.present);
      PyArrayObject* const array = is_absent ? nullptr : exact_array(object);
      if (!is_absent && (array == nullptr || !fits(array, slots[i].layout, written))) return false;
      pointers_[i] = is_absent ? nullptr : PyArray_DATA(array);
    }
    return true;
  }
  void* const* pointers() const { return pointers_; }

 private:
  static constexpr size_t kFew = 8;

  static bool fits(PyArrayObject* array, const Layout& layout, bool written) {
    const size_t rank = layout.sizes.size();
    if (!layout.present || static_cast<size_t>(PyArray_NDIM(array)) != rank || !is_plain(array, written))
      return false;
    // NumPy's character for the kind of a type is the first of the type's name.
    const bool is_same_kind = PyArray_DESCR(array)->kind == name_of(layout.type).front();
    if (!is_same_kind || PyArray_ITEMSIZE(array) != size_of(layout.type)) return false;
    for (size_t d = 0; d < rank; ++d) {
      if (PyArray_DIMS(array)[d] != layout.sizes[d]) return false;
      if (PyArray_STRIDES(array)[d] != layout.strides[d] && layout.sizes[d] > 1) return false;
    }
    return true;
  }

  void* few_[kFew];
  std::unique_ptr<void*[]> many_;
  void** pointers_ = few_;
};

class BoundPlan {
 public:
  BoundPlan(std::unique_ptr<Plan> plan, std::string description, std::vector<Slot> inputs,
            std::vector<Slot> outputs, std::vector<bool> are_known = {})
      : plan_(std::move(plan)),
        description_(std::move(description)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        are_known_(std::move(are_known)) {
    for (const auto* side : {&inputs_, &outputs_}) {
      for (const Slot& slot : *side) bytes_ += slot.extent.high - slot.extent.low;
    }
    for (const Slot& slot : inputs_) alike_.push_back(has_same_layout_as(slot.layout, outputs_[0].layout));
  }

  // Runs where every buffer is plainly what the plan was made for and no output shares memory with an input,
  // but for the very same elements where that is allowed. False: nothing was done, and the rules have to say
  // what is wrong, or that nothing is.
  bool try_run(nanobind::handle inputs, nanobind::handle outputs, bool in_place) const {
    QuickViews in;
    QuickViews out;
    if (!acquire(in, inputs, out, outputs, in_place) || !accepts(in.pointers())) return false;
    run_at(in.pointers(), out.pointers());
    return true;
  }

  // Runs at addresses of tensors that are known to lie as the plan has them.
  void run_at(const void* const* inputs, void* const* outputs) const {
    const CancellationScope scope;
    if (bytes_ < kWorthReleasing) {
      plan_->run(inputs, outputs);
    } else {
      const nanobind::gil_scoped_release release;
      plan_->run(inputs, outputs);
    }
    raise_if_cancelled();
  }

  void run(nanobind::sequence inputs, nanobind::sequence outputs) const {
    const Views in(inputs, inputs_, PyBUF_STRIDED_RO, "inputs");
    const Views out(outputs, outputs_, PyBUF_STRIDED, "outputs");
    run_at(in.pointers(), out.pointers());
  }
  const std::string& description() const { return description_; }

  bool accepts(const void* const* inputs) const {
    const CancellationScope scope;
    const bool all = plan_->accepts(inputs);
    raise_if_cancelled();
    return all;
  }
  bool checks_values() const { return plan_->checks_values(); }
  bool prepares() const { return plan_->has_prepack(); }
  std::unique_ptr<BoundPlan> prepare(nanobind::sequence inputs) const {
    const Views known(inputs, inputs_, PyBUF_STRIDED_RO, "inputs", true);
    const CancellationScope scope;
    std::unique_ptr<Plan> plan = plan_->prepack(known.pointers());
    raise_if_cancelled();
    if (plan == nullptr) return nullptr;
    std::vector<bool> are_known;
    for (size_t i = 0; i < inputs_.size(); ++i) are_known.push_back(known.pointers()[i] != nullptr);
    return std::make_unique<BoundPlan>(std::move(plan), description_, inputs_, outputs_,
                                       std::move(are_known));
  }
  int64_t prepared_bytes() const { return plan_->prepack_bytes(); }

 private:
  // Ends a cancellation with the call that it was for, also where that ends by an exception of its own: no
  // later loop would begin.
  struct CancellationScope {
    CancellationScope() = default;
    CancellationScope(const CancellationScope&) = delete;
    CancellationScope& operator=(const CancellationScope&) = delete;
    ~CancellationScope() { take_cancellation(); }
  };

  // What a signal handler raised, such as KeyboardInterrupt, which has cancelled the work.
  static void raise_if_cancelled() {
    if (take_cancellation()) nanobind::raise_python_error();
  }

  // Below this the interpreter's lock is held for less time than it takes to give it away.
  static constexpr double kWorthReleasing = 8 << 10;

  bool acquire(QuickViews& in, nanobind::handle inputs, QuickViews& out, nanobind::handle outputs,
               bool in_place) const {
    if (!in.acquire(inputs.ptr(), inputs_, false, are_known_) ||
        !out.acquire(outputs.ptr(), outputs_, true)) {
      return false;
    }
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const void* const to = out.pointers()[o];
      if (to == nullptr) continue;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (in.pointers()[i] == nullptr) continue;
        const bool same_elements = in_place && o == 0 && alike_[i] && in.pointers()[i] == to;
        if (!same_elements && overlap(inputs_[i], in.pointers()[i], outputs_[o], to)) return false;
      }
      for (size_t other = 0; other < o; ++other) {
        const void* const at = out.pointers()[other];
        if (at != nullptr && overlap(outputs_[other], at, outputs_[o], to)) return false;
      }
    }
    return true;
  }

  std::unique_ptr<Plan> plan_;
  std::string description_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::vector<bool> are_known_;  // inputs that a prepared plan does not read
  double bytes_ = 0;
  std::vector<bool> alike_;  // inputs that lie as the output does
};

}  // namespace anydml
