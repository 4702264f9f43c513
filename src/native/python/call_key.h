// Keys of calls: all that tells one call of a function from another, but for the values and places of its
// arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/exchange_table.h"
#include "python/numpy_array.h"

namespace anydml {

// How an argument of a class stands in a key. Python's own plain classes and NumPy's arrays need none of
// these.
enum class KeyKind : int {
  kNone = 0,      // it does not: a call with one is not remembered
  kIdentity = 1,  // as itself, as it never changes
  kValue = 2,     // as the first object that was equal to it
  kBytes = 3,     // by the bytes of its value
  kTensor = 4,    // PyTorch's: by what DLPack tells of it, or else as the array that its method numpy() gives
};

// What is known of a class.
struct KeyClass {
  KeyKind kind = KeyKind::kNone;
  const ExchangeTable* table = nullptr;  // of a tensor, where its library has one
};

// The kinds of classes, as Python tells of each once.
class KeyKinds {
 public:
  KeyKinds(nanobind::object classify, nanobind::object canonical)
      : classify_(std::move(classify)), canonical_(std::move(canonical)) {}

  KeyClass of(PyTypeObject* type) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = known_.find(type);
      if (found != known_.end()) return found->second.first;
    }
    const nanobind::object object = nanobind::borrow(reinterpret_cast<PyObject*>(type));
    KeyClass found{static_cast<KeyKind>(nanobind::cast<int>(classify_(object))), nullptr};
    if (found.kind == KeyKind::kTensor) found.table = ExchangeTable::of(object);
    // Of others there may be any number.
    if (found.kind != KeyKind::kNone) {
      const std::lock_guard lock(mutex_);
      if (known_.size() < kMostKnown) known_.try_emplace(type, found, object);
    }
    return found;
  }

  // Of a tensor DLPack does not tell what refuses it: that it takes part in automatic differentiation, or is
  // negated when it is read.
  bool is_as_dlpack_tells(PyObject* tensor) const {
    const nanobind::object differentiates = nanobind::steal(PyObject_GetAttr(tensor, requires_grad_.ptr()));
    if (differentiates.ptr() != Py_False) return PyErr_Clear(), false;
    const nanobind::object negated =
        nanobind::steal(PyObject_VectorcallMethod(is_neg_.ptr(), &tensor, 1, nullptr));
    return negated.ptr() == Py_False || (PyErr_Clear(), false);
  }

  // The object that stands for all that are equal to it; an exception where it is equal to nothing.
  nanobind::object canonical(PyObject* object) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = canonicals_.find(object);
      if (found != canonicals_.end()) return found->second.second;
    }
    const nanobind::object first = canonical_(nanobind::handle(object));
    // Destroyed when the lock is given back, as that may run code of Python's.
    std::unordered_map<PyObject*, std::pair<nanobind::object, nanobind::object>> dropped;
    const std::lock_guard lock(mutex_);
    if (canonicals_.size() >= kMostKnown) dropped.swap(canonicals_);
    canonicals_.try_emplace(object, nanobind::borrow(object), first);
    return first;
  }

 private:
  static constexpr size_t kMostKnown = 256;

  nanobind::object classify_;
  nanobind::object canonical_;
  nanobind::object requires_grad_ = nanobind::steal(PyUnicode_InternFromString("requires_grad"));
  nanobind::object is_neg_ = nanobind::steal(PyUnicode_InternFromString("is_neg"));
  std::mutex mutex_;
  // With the classes, which holding them keeps where they are.
  std::unordered_map<PyTypeObject*, std::pair<KeyClass, nanobind::object>> known_;
  // By their addresses, which holding them keeps theirs.
  std::unordered_map<PyObject*, std::pair<nanobind::object, nanobind::object>> canonicals_;
};

// The words of a key. Most keys need no allocation.
class KeyWords {
 public:
  KeyWords() = default;
  KeyWords(const KeyWords&) = delete;
  KeyWords& operator=(const KeyWords&) = delete;

  void push_back(uint64_t word) {
    if (end_ == limit_) grow();
    *end_++ = word;
  }
  size_t size() const { return static_cast<size_t>(end_ - begin_); }
  std::span<const uint64_t> all() const { return {begin_, size()}; }

  // A multiplicative hash of four lanes, as a multiplication waits for the one before it.
  size_t hash() const {
    static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15U;
    uint64_t lanes[] = {size(), 1, 2, 3};
    for (const uint64_t* at = begin_; at != end_;) {
      for (uint64_t& lane : lanes) {
        if (at == end_) break;
        lane = (std::rotl(lane, 32) ^ *at++) * kFactor;
      }
    }
    uint64_t mixed = 0;
    for (const uint64_t lane : lanes) mixed = (std::rotl(mixed, 32) ^ lane) * kFactor;
    return static_cast<size_t>(mixed ^ mixed >> 32);
  }

 private:
  void grow() {
    const std::span<const uint64_t> before = all();
    std::vector<uint64_t> more(2 * before.size());
    end_ = std::ranges::copy(before, more.data()).out;
    many_.swap(more);
    begin_ = many_.data();
    limit_ = begin_ + many_.size();
  }

  uint64_t few_[64];
  std::vector<uint64_t> many_;
  uint64_t* begin_ = few_;
  uint64_t* end_ = few_;
  uint64_t* limit_ = few_ + std::size(few_);
};

// The key of one call, and where its arrays lie.
class CallKey {
 public:
  struct Array {
    PyObject* given;                 // as the caller has it
    mutable nanobind::object array;  // NumPy's of a tensor, once it is asked for
    void* data;                      // of element [0, ..., 0]
    size_t parameter;
    Py_ssize_t place;  // in a list; -1 where there is none

    // NumPy's array; an exception where there is none.
    PyObject* numpy() const {
      if (exact_array(given) != nullptr) return given;
      if (!array.is_valid()) array = nanobind::handle(given).attr("numpy")();
      return array.ptr();
    }
  };

  CallKey() = default;
  CallKey(const CallKey&) = delete;
  CallKey& operator=(const CallKey&) = delete;

  // Of the arguments as a vectorcall has them. False where the call cannot be remembered; no exception is set
  // then.
  bool read(const void* function, KeyKinds& kinds, const std::vector<nanobind::object>& names, size_t out,
            PyObject* const* args, size_t given, PyObject* keywords) {
    kinds_ = &kinds;
    word(reinterpret_cast<uintptr_t>(function));
    if (given > names.size()) return false;
    for (size_t i = 0; i < given; ++i) {
      if (!add_argument(i, i == out, args[i])) return false;
    }
    const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_Size(keywords);
    for (Py_ssize_t i = 0; i < named; ++i) {
      const size_t parameter = index_of(names, PyTuple_GetItem(keywords, i));
      if (parameter == names.size() ||
          !add_argument(parameter, parameter == out, args[given + static_cast<size_t>(i)]))
        return false;
    }
    return true;
  }

  std::span<const uint64_t> words() const { return words_.all(); }
  size_t hash() const { return words_.hash(); }
  bool equals(const CallKey& other) const { return std::ranges::equal(words(), other.words()); }
  size_t count() const { return count_; }
  const Array& array(size_t i) const { return i < kFew ? few_[i] : *many_[i - kFew]; }
  // What words name by its address.
  const std::vector<nanobind::object>& named() const { return named_; }

 private:
  static constexpr size_t kFew = 6;
  static constexpr size_t kMostWords = 1 << 14;
  static constexpr int kDeepest = 4;
  static constexpr uint8_t kFloatCode = 2;  // DLPack's; those below are of integers
  static constexpr uint8_t kBoolCode = 6;
  enum Tag : uint64_t {
    kAbsent = 1,
    kArray,
    kTrueOrFalse,
    kInteger,
    kFloat,
    kText,
    kTuple,
    kList,
    kNamed,
    kRaw
  };

  static size_t index_of(const std::vector<nanobind::object>& names, PyObject* name) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i].ptr() == name) return i;
    }
    // A name that is not interned.
    for (size_t i = 0; i < names.size(); ++i) {
      if (PyUnicode_Compare(names[i].ptr(), name) == 0) return i;
    }
    return names.size();
  }

  void word(uint64_t value) { words_.push_back(value); }
  void tagged(Tag tag, uint64_t rest = 0) { word(tag | rest << 8); }
  void named(PyObject* object) {
    tagged(kNamed);
    word(reinterpret_cast<uintptr_t>(object));
    named_.push_back(nanobind::borrow(object));
  }

  bool add_argument(size_t parameter, bool is_out, PyObject* value) {
    parameter_ = parameter;
    is_out_ = is_out;
    word(parameter);
    return add(value, -1, 0) && words_.size() <= kMostWords;
  }

  bool add(PyObject* value, Py_ssize_t place, int depth) {
    PyTypeObject* const type = Py_TYPE(value);
    if (PyArrayObject* const array = exact_array(value)) return add_array(value, array, place);
    if (value == Py_None) return tagged(kAbsent), true;
    if (type == &PyBool_Type) return tagged(kTrueOrFalse, value == Py_True), true;
    if (type == &PyLong_Type) return add_integer(value);
    if (type == &PyFloat_Type) {
      tagged(kFloat);
      word(std::bit_cast<uint64_t>(PyFloat_AsDouble(value)));
      return true;
    }
    if (type == &PyTuple_Type || type == &PyList_Type) return add_several(value, type == &PyList_Type, depth);
    if (type == &PyUnicode_Type) return add_text(value);
    if (type == &PyType_Type) return named(value), true;
    return add_other(value, type, place);
  }

  bool add_integer(PyObject* value) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    tagged(kInteger);
    word(static_cast<uint64_t>(number));
    return overflow == 0;
  }

  bool add_text(PyObject* value) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == nullptr) return PyErr_Clear(), false;
    tagged(kText, static_cast<uint64_t>(size));
    return add_bytes(text, static_cast<size_t>(size));
  }

  bool add_bytes(const void* bytes, size_t size) {
    if (size > sizeof(uint64_t) * kMostWords) return false;
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
      uint64_t eight = 0;
      std::memcpy(&eight, static_cast<const char*>(bytes) + at, std::min(size - at, sizeof eight));
      word(eight);
    }
    return true;
  }

  bool add_several(PyObject* value, bool is_list, int depth) {
    // A copy, as a list may change meanwhile.
    const auto items = is_list ? nanobind::steal(PyList_AsTuple(value)) : nanobind::borrow(value);
    if (!items.is_valid()) return PyErr_Clear(), false;
    const Py_ssize_t count = PyTuple_Size(items.ptr());
    if (depth == kDeepest || static_cast<size_t>(count) > kMostWords) return false;
    tagged(is_list ? kList : kTuple, static_cast<uint64_t>(count));
    const size_t arrays = count_;
    for (Py_ssize_t i = 0; i < count; ++i) {
      // What lies deeper is no operand of its own.
      if (!add(PyTuple_GetItem(items.ptr(), i), depth == 0 ? i : -1, depth + 1)) return false;
      if (depth > 0 && count_ > arrays) return false;
    }
    if (is_list && count_ > arrays) held_.push_back(items);
    return words_.size() <= kMostWords;
  }

  bool add_other(PyObject* value, PyTypeObject* type, Py_ssize_t place) {
    try {
      // Those of one call are mostly of one class.
      if (type != type_) {
        known_ = kinds_->of(type);
        type_ = type;
      }
      const KeyClass& known = known_;
      if (known.kind == KeyKind::kIdentity) return named(value), true;
      if (known.kind == KeyKind::kValue) return named(kinds_->canonical(value).ptr()), true;
      if (known.kind == KeyKind::kBytes) return add_scalar(value, type);
      if (known.kind != KeyKind::kTensor) return false;
      tagged(kNamed);
      word(reinterpret_cast<uintptr_t>(type));  // which `kinds_` holds
      if (known.table != nullptr) return add_tensor(value, *known.table, place);
      const nanobind::object array = nanobind::handle(value).attr("numpy")();
      PyArrayObject* const seen = exact_array(array.ptr());
      if (seen == nullptr || !add_array(value, seen, place)) return false;
      at(count_ - 1).array = array;
      return true;
    } catch (nanobind::python_error&) {
      return false;  // the rules have to say what is wrong
    }
  }

  bool add_scalar(PyObject* value, PyTypeObject* type) {
    Py_buffer buffer;
    if (PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) != 0) return PyErr_Clear(), false;
    named(reinterpret_cast<PyObject*>(type));
    tagged(kRaw, static_cast<uint64_t>(buffer.len));
    const bool added = add_bytes(buffer.buf, static_cast<size_t>(buffer.len));
    PyBuffer_Release(&buffer);
    return added;
  }

  Array& added(PyObject* given, Py_ssize_t place) {
    if (count_ >= kFew) many_.push_back(std::make_unique<Array>());
    Array& array = at(count_++);
    array.given = given;
    array.parameter = parameter_;
    array.place = place;
    return array;
  }

  bool add_array(PyObject* given, PyArrayObject* array, Py_ssize_t place) {
    if (!is_plain(array, is_out_)) return false;
    added(given, place).data = PyArray_DATA(array);
    const int rank = PyArray_NDIM(array);
    tagged(kArray, static_cast<uint64_t>(PyArray_TYPE(array)) | static_cast<uint64_t>(rank) << 8);
    for (int d = 0; d < rank; ++d) {
      word(static_cast<uint64_t>(PyArray_DIMS(array)[d]));
      word(static_cast<uint64_t>(PyArray_STRIDES(array)[d]));
    }
    return true;
  }

  bool add_tensor(PyObject* given, const ExchangeTable& table, Py_ssize_t place) {
    nanobind::dlpack::dltensor tensor;
    if (table.from_python(given, &tensor) != 0) return PyErr_Clear(), false;
    if (!kinds_->is_as_dlpack_tells(given)) return false;
    void* const data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
    const uint64_t item = tensor.dtype.bits / 8U;
    const bool is_known = tensor.dtype.code <= kFloatCode || tensor.dtype.code == kBoolCode;
    if (!is_known || tensor.dtype.lanes != 1 || item == 0 || tensor.strides == nullptr) return false;
    if (reinterpret_cast<uintptr_t>(data) % item != 0) return false;
    added(given, place).data = data;
    tagged(kArray, tensor.dtype.code | item << 8 | static_cast<uint64_t>(tensor.ndim) << 16);
    word(static_cast<uint64_t>(tensor.device.device_type) << 32 |
         static_cast<uint32_t>(tensor.device.device_id));
    for (int d = 0; d < tensor.ndim; ++d) {
      word(static_cast<uint64_t>(tensor.shape[d]));
      word(static_cast<uint64_t>(tensor.strides[d]));
    }
    return true;
  }

  Array& at(size_t i) { return i < kFew ? few_[i] : *many_[i - kFew]; }

  KeyKinds* kinds_ = nullptr;
  PyTypeObject* type_ = nullptr;  // the last one that was looked up
  KeyClass known_;
  KeyWords words_;
  Array few_[kFew];
  std::vector<std::unique_ptr<Array>> many_;
  size_t count_ = 0;
  std::vector<nanobind::object> named_;
  std::vector<nanobind::object> held_;
  size_t parameter_ = 0;
  bool is_out_ = false;
};

}  // namespace anydml
