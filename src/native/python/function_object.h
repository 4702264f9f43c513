// Functions as objects of Python's, called by its vectorcall protocol (PEP 590): a call makes no tuple and no
// dictionary of its arguments unless it is unlike any before.
#pragma once

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <cstddef>
#include <exception>
#include <new>

#include "python/call_cache.h"

namespace anydml {

struct FunctionObject {
  PyObject_HEAD vectorcallfunc call;
  PyObject* dict;  // of all that functions have, such as a name and a docstring
  PyObject* weak_references;
  PyObject* owner;  // of `cached`
  const CachedFunction* cached;
  PyObject* otherwise;  // called with a tuple and a dictionary of the arguments where the cache does not help

  static FunctionObject* of(PyObject* self) { return reinterpret_cast<FunctionObject*>(self); }
};

inline nanobind::object call_function(const FunctionObject& self, PyObject* const* args, size_t given,
                                      PyObject* keywords) {
  nanobind::object result = self.cached->try_call(args, given, keywords);
  if (result.is_valid()) return result;
  nanobind::list places;
  for (size_t i = 0; i < given; ++i) places.append(nanobind::handle(args[i]));
  nanobind::dict options;
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    options[nanobind::handle(PyTuple_GetItem(keywords, i))] =
        nanobind::handle(args[given + static_cast<size_t>(i)]);
  }
  return nanobind::handle(self.otherwise)(nanobind::tuple(places), options);
}

inline PyObject* function_vectorcall(PyObject* self, PyObject* const* args, size_t given,
                                     PyObject* keywords) {
  try {
    const auto places = static_cast<size_t>(PyVectorcall_NARGS(given));
    return call_function(*FunctionObject::of(self), args, places, keywords).release().ptr();
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

inline int function_traverse(PyObject* self, visitproc visit, void* arg) {
  const FunctionObject* const function = FunctionObject::of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(function->dict);
  Py_VISIT(function->owner);
  Py_VISIT(function->otherwise);
  return 0;
}

inline int function_clear(PyObject* self) {
  FunctionObject* const function = FunctionObject::of(self);
  Py_CLEAR(function->dict);
  Py_CLEAR(function->otherwise);
  return 0;
}

inline void function_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  PyObject_ClearWeakRefs(self);
  function_clear(self);
  Py_CLEAR(FunctionObject::of(self)->owner);
  PyObject_GC_Del(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// As a class's attribute it is a method, as Python's functions are.
inline PyObject* function_get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  PyObject* const types = PyImport_ImportModule("types");
  if (types == nullptr) return nullptr;
  PyObject* const method = PyObject_CallMethod(types, "MethodType", "OO", self, instance);
  Py_DECREF(types);
  return method;
}

inline PyObject* function_repr(PyObject* self) {
  PyObject* const name = PyObject_GetAttrString(self, "__qualname__");
  if (name == nullptr) return nullptr;
  PyObject* const text = PyUnicode_FromFormat("<function %S at %p>", name, self);
  Py_DECREF(name);
  return text;
}

// Pickled by its name, as Python's functions are.
inline PyObject* function_reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(self, "__qualname__");
}

// Of a CachedFunction and what is called otherwise.
inline PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* cached = nullptr;
  PyObject* otherwise = nullptr;
  if (PyArg_ParseTuple(args, "OO:function", &cached, &otherwise) == 0) return nullptr;
  if (!nanobind::isinstance<CachedFunction>(cached)) {
    return PyErr_Format(PyExc_TypeError, "%R is no CachedFunction", cached);
  }
  PyObject* const self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  FunctionObject* const function = FunctionObject::of(self);
  function->call = function_vectorcall;
  function->owner = Py_NewRef(cached);
  function->cached = nanobind::inst_ptr<const CachedFunction>(cached);
  function->otherwise = Py_NewRef(otherwise);
  return self;
}

// The type, which has the name of Python's own.
inline nanobind::object function_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, call), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, dict), READONLY, nullptr},
      {"__weaklistoffset__", T_PYSSIZET, offsetof(FunctionObject, weak_references), READONLY, nullptr},
      {},
  };
  static PyGetSetDef properties[] = {
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
      {},
  };
  static PyMethodDef methods[] = {
      {"__reduce__", function_reduce, METH_NOARGS, nullptr},
      {},
  };
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(function_new)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
      {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
      {Py_tp_descr_get, reinterpret_cast<void*>(function_get)},
      {Py_tp_repr, reinterpret_cast<void*>(function_repr)},
      {Py_tp_members, members},
      {Py_tp_getset, properties},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  static PyType_Spec spec = {
      "anydml._native.function", sizeof(FunctionObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE, slots};
  nanobind::object type = nanobind::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) nanobind::raise_python_error();
  return type;
}

}  // namespace anydml
