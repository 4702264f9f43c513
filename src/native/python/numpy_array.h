// NumPy's arrays by its C API, whose accessors read an array where the buffer protocol would describe it
// anew.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace anydml {

// Has to be called before all else here.
inline void import_numpy() {
  if (PyArray_ImportNumPyAPI() < 0) nanobind::raise_python_error();
}

// Null for all else. No subclass is taken: what a masked array's memory holds is not all that it means.
inline PyArrayObject* exact_array(PyObject* object) {
  return Py_TYPE(object) == &PyArray_Type ? reinterpret_cast<PyArrayObject*>(object) : nullptr;
}

// Whether it holds aligned numbers or truth values in the machine's byte order, to be written to where that
// is asked.
inline bool is_plain(PyArrayObject* array, bool written) {
  const int type = PyArray_TYPE(array);
  const int wanted = NPY_ARRAY_ALIGNED | (written ? NPY_ARRAY_WRITEABLE : 0);
  return (type <= NPY_DOUBLE || type == NPY_HALF) && (PyArray_FLAGS(array) & wanted) == wanted &&
         PyArray_ISNOTSWAPPED(array);
}

// What `numpy.empty` makes, again and again.
class EmptyArray {
 public:
  EmptyArray() = default;
  EmptyArray(nanobind::object type, std::vector<Py_ssize_t> sizes)
      : type_(std::move(type)), sizes_(std::move(sizes)) {}

  nanobind::object operator()() const {
    auto* const type = reinterpret_cast<PyArray_Descr*>(nanobind::object(type_).release().ptr());
    PyObject* const array = PyArray_NewFromDescr(&PyArray_Type, type, static_cast<int>(sizes_.size()),
                                                 sizes_.data(), nullptr, nullptr, 0, nullptr);
    if (array == nullptr) nanobind::raise_python_error();
    return nanobind::steal(array);
  }

 private:
  nanobind::object type_;
  std::vector<Py_ssize_t> sizes_;
};

}  // namespace anydml
