// Whether tensors of a library with DLPack's functions for C are plainly what a plan was made for.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "python/exchange_table.h"
#include "python/tensor_slots.h"

namespace anydml {

// The tensors of a dispatch on a device, which may be hundreds.
class DeviceLayoutMatcher {
 public:
  // A library without that table has tensors that never fit.
  DeviceLayoutMatcher(nanobind::handle tensor_type, const std::vector<PythonLayout>& inputs,
                      const std::vector<PythonLayout>& outputs, std::pair<int, int> device,
                      std::vector<nanobind::object> questions)
      : type_(nanobind::borrow(tensor_type)),
        inputs_(inputs.size()),
        slots_(to_slots(to_layouts(inputs))),
        device_(device),
        questions_(std::move(questions)) {
    for (const Slot& slot : to_slots(to_layouts(outputs))) slots_.push_back(slot);
    table_ = ExchangeTable::of(tensor_type);
  }

  // The tensors' addresses, 8 bytes each, 0 for an absent one; None: the rules have to say what is wrong, or
  // that nothing is.
  nanobind::object places(nanobind::handle inputs, nanobind::handle outputs, bool in_place) const {
    std::vector<const void*> places(slots_.size(), nullptr);
    if (!fit(inputs, outputs, in_place, places)) return nanobind::none();
    return nanobind::bytes(places.data(), places.size() * sizeof(void*));
  }

 private:
  bool fit(nanobind::handle inputs, nanobind::handle outputs, bool in_place,
           std::vector<const void*>& places) const {
    if (table_ == nullptr) return false;
    if (!PyList_CheckExact(inputs.ptr()) || !PyList_CheckExact(outputs.ptr())) return false;
    const auto given = static_cast<size_t>(PyList_Size(inputs.ptr()));
    if (given != inputs_ || given + static_cast<size_t>(PyList_Size(outputs.ptr())) != slots_.size())
      return false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const bool is_input = i < inputs_;
      PyObject* const side = is_input ? inputs.ptr() : outputs.ptr();
      PyObject* const object = PyList_GetItem(side, static_cast<Py_ssize_t>(is_input ? i : i - inputs_));
      if (object == Py_None && !slots_[i].layout.present) continue;
      if (!is_one(object, slots_[i].layout, places[i])) return false;
      if (!is_input && !is_apart(places, i, in_place)) return false;
    }
    return true;
  }

  bool is_one(PyObject* object, const Layout& layout, const void*& place) const {
    if (!layout.present || reinterpret_cast<PyObject*>(Py_TYPE(object)) != type_.ptr()) return false;
    nanobind::dlpack::dltensor tensor;
    if (table_->from_python(object, &tensor) != 0) {
      PyErr_Clear();
      return false;
    }
    const size_t rank = layout.sizes.size();
    const int64_t item = size_of(layout.type);
    if (tensor.device.device_type != device_.first || tensor.device.device_id != device_.second) return false;
    if (tensor.dtype.code != code_of(layout.type) || tensor.dtype.bits != item * 8 || tensor.dtype.lanes != 1)
      return false;
    if (static_cast<size_t>(tensor.ndim) != rank || tensor.strides == nullptr) return false;
    for (size_t d = 0; d < rank; ++d) {
      if (tensor.shape[d] != layout.sizes[d]) return false;
      if (tensor.strides[d] * item != layout.strides[d] && layout.sizes[d] > 1) return false;
    }
    for (const nanobind::object& question : questions_) {
      PyObject* const answer = PyObject_CallFunctionObjArgs(question.ptr(), object, nullptr);
      if (answer == nullptr) PyErr_Clear();
      Py_XDECREF(answer);
      if (answer != Py_False) return false;
    }
    place = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
    return reinterpret_cast<uintptr_t>(place) % static_cast<uintptr_t>(item) == 0;
  }

  // Of an output and all tensors before it; the very elements of an input may be written where that is
  // allowed.
  bool is_apart(const std::vector<const void*>& places, size_t output, bool in_place) const {
    for (size_t i = 0; i < output; ++i) {
      if (places[i] == nullptr || !overlap(slots_[i], places[i], slots_[output], places[output])) continue;
      const bool same = i < inputs_ && places[i] == places[output];
      if (!in_place || !same || !has_same_layout_as(slots_[i].layout, slots_[output].layout)) return false;
    }
    return true;
  }

  // DLPack's number for the kind of a type.
  static uint8_t code_of(DataType type) {
    const char kind = name_of(type).front();
    return kind == 'i' ? 0 : kind == 'u' ? 1 : 2;
  }

  nanobind::object type_;
  size_t inputs_;
  std::vector<Slot> slots_;
  std::pair<int, int> device_;
  std::vector<nanobind::object> questions_;
  const ExchangeTable* table_ = nullptr;
};

}  // namespace anydml
