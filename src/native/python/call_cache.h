// A cache of prepared calls: a call that is like one before runs its kernel at once.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "python/bound_plan.h"
#include "python/call_key.h"
#include "python/numpy_array.h"
#include "python/tensor_slots.h"
#include "python/value_limits.h"

namespace anydml {

// An operand of a kernel: the number of an array of the call, or None for a constant; the constant, or what
// makes of the array the operand, None where they are the same; the layout; the least and the largest value
// that it may hold, None where it may hold any. None for what is absent.
using PreparedInput =
    std::optional<std::tuple<std::optional<size_t>, nanobind::object, PythonLayout, ValueLimits>>;
// An output: the number of the array that was given for it, or None; what makes a new one, on the host its
// data type and shape; what makes of it what the kernel writes to, and what the caller gets, None where they
// are the same; the layout.
using PreparedOutput = std::optional<
    std::tuple<std::optional<size_t>, nanobind::object, nanobind::object, nanobind::object, PythonLayout>>;

// What a call of a function comes down to, for all calls of the same key. Immutable.
class PreparedCall {
 public:
  PreparedCall(const CallKey& key, nanobind::object run, nanobind::object plan, bool in_place, bool on_device,
               const std::vector<PreparedInput>& inputs, const std::vector<PreparedOutput>& outputs,
               std::vector<size_t> results, bool is_list)
      : words_(key.words().begin(), key.words().end()),
        named_(key.named()),
        run_(std::move(run)),
        plan_owner_(std::move(plan)),
        plan_(plan_owner_.is_none() ? nullptr : nanobind::cast<const BoundPlan*>(plan_owner_)),
        in_place_(in_place),
        on_device_(on_device),
        results_(std::move(results)),
        is_list_(is_list) {
    for (const PreparedInput& input : inputs) inputs_.push_back(input ? to_input(*input) : Input{});
    for (const PreparedOutput& output : outputs) outputs_.push_back(output ? to_output(*output) : Output{});
  }

  bool is_of(const CallKey& key) const { return std::ranges::equal(words_, key.words()); }

  // The results; an invalid object, and nothing written, where the rules have to look.
  nanobind::object run(const CallKey& key) const {
    const bool plan_checks = plan_ != nullptr && plan_->checks_values();
    if (!are_apart(key) || (!plan_checks && !are_within_limits(key))) return {};
    Tensors tensors(inputs_.size(), outputs_.size());
    nanobind::object inputs;
    nanobind::object outputs;
    try {
      make(tensors);
      if (plan_ == nullptr) list(key, tensors, inputs, outputs);
      if (plan_ != nullptr || on_device_) locate(key, tensors);
    } catch (nanobind::python_error&) {
      return {};  // nothing was written, and the function meets the same
    }
    if (plan_checks && !plan_->accepts(tensors.from())) return {};
    if (plan_ != nullptr) {
      plan_->run_at(tensors.from(), tensors.to());
    } else if (on_device_) {
      run_(inputs, outputs, nanobind::bytes(tensors.from(), tensors.count() * sizeof(void*)));
    } else {
      run_(inputs, outputs);
    }
    if (!is_list_) return result(key, tensors, results_[0]);
    nanobind::list all;
    for (const size_t i : results_) all.append(result(key, tensors, i));
    return all;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  struct Input {
    bool is_present = false;
    size_t given = kNone;
    nanobind::object constant;
    void* address = nullptr;  // of the constant
    nanobind::object view;
    Slot slot;
    ValueLimits limits;
  };
  struct Output {
    bool is_present = false;
    size_t given = kNone;
    nanobind::object make;
    EmptyArray empty;  // on the host
    nanobind::object view;
    nanobind::object exported;
    Slot slot;
  };

  // The addresses of one call's tensors, inputs first, and its new outputs.
  class Tensors {
   public:
    Tensors(size_t inputs, size_t outputs) : inputs_(inputs), count_(inputs + outputs) {
      if (count_ > kFew) many_.resize(count_);
      if (outputs > kFewMade) many_made_.resize(outputs);
    }
    void** from() { return many_.empty() ? few_ : many_.data(); }
    void** to() { return from() + inputs_; }
    size_t count() const { return count_; }
    nanobind::object& made(size_t output) {
      return many_made_.empty() ? few_made_[output] : many_made_[output];
    }

   private:
    static constexpr size_t kFew = 12;
    static constexpr size_t kFewMade = 3;

    size_t inputs_;
    size_t count_;
    void* few_[kFew] = {};
    std::vector<void*> many_;
    nanobind::object few_made_[kFewMade];
    std::vector<nanobind::object> many_made_;
  };

  Input to_input(const PreparedInput::value_type& from) const {
    const auto& [given, object, layout, limits] = from;
    Input input{true, given.value_or(kNone), {}, nullptr, {}, to_slot(to_layout(layout)), limits};
    if (!given) {
      input.constant = object;
      input.address = address_of(object);
    } else if (!object.is_none()) {
      input.view = object;
    }
    return input;
  }

  Output to_output(const PreparedOutput::value_type& from) const {
    const auto& [given, make, view, exported, layout] = from;
    Output output{true, given.value_or(kNone), {}, {}, {}, {}, to_slot(to_layout(layout))};
    if (on_device_) {
      output.make = make;
    } else if (!given) {
      const auto& [type, sizes] = nanobind::cast<std::pair<nanobind::object, std::vector<Py_ssize_t>>>(make);
      output.empty = EmptyArray(type, sizes);
    }
    if (!view.is_none()) output.view = view;
    if (!exported.is_none()) output.exported = exported;
    return output;
  }

  // Of an array that stays: what it tells of its memory is true for as long as it lives.
  void* address_of(nanobind::handle array) const {
    if (on_device_) return reinterpret_cast<void*>(nanobind::cast<uintptr_t>(array.attr("data_ptr")()));
    return PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr()));
  }

  // Whether no output that was given shares memory with another tensor, but for the very elements of an input
  // where that is allowed.
  bool are_apart(const CallKey& key) const {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const Output& output = outputs_[o];
      if (output.given == kNone) continue;
      const void* const at = key.array(output.given).data;
      for (const Input& input : inputs_) {
        if (input.given == kNone) continue;
        const void* const from = key.array(input.given).data;
        const bool same_elements =
            in_place_ && from == at && has_same_layout_as(input.slot.layout, output.slot.layout);
        if (!same_elements && overlap(input.slot, from, output.slot, at)) return false;
      }
      for (size_t other = 0; other < o; ++other) {
        const size_t given = outputs_[other].given;
        if (given != kNone && overlap(outputs_[other].slot, key.array(given).data, output.slot, at))
          return false;
      }
    }
    return true;
  }

  // Constants were looked at when the call was prepared.
  bool are_within_limits(const CallKey& key) const {
    return std::ranges::all_of(inputs_, [&key](const Input& input) {
      return !input.limits || input.given == kNone ||
             are_within(input.slot.layout, key.array(input.given).data, *input.limits);
    });
  }

  // The outputs that were not given; an exception where there is no room.
  void make(Tensors& tensors) const {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Output& output = outputs_[i];
      if (output.is_present && output.given == kNone)
        tensors.made(i) = on_device_ ? output.make() : output.empty();
    }
  }

  void locate(const CallKey& key, Tensors& tensors) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      tensors.from()[i] = input.given == kNone ? input.address : key.array(input.given).data;
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].is_present) continue;
      const size_t given = outputs_[i].given;
      tensors.to()[i] = given == kNone ? address_of(tensors.made(i)) : key.array(given).data;
    }
  }

  // What kernels take that are no plans.
  void list(const CallKey& key, Tensors& tensors, nanobind::object& all_inputs,
            nanobind::object& all_outputs) const {
    nanobind::list inputs;
    nanobind::list outputs;
    for (const Input& input : inputs_) {
      if (!input.is_present) {
        inputs.append(nanobind::none());
      } else if (input.given == kNone) {
        inputs.append(input.constant);
      } else {
        inputs.append(viewed(taken(key.array(input.given)), input.view));
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Output& output = outputs_[i];
      if (!output.is_present) {
        outputs.append(nanobind::none());
      } else {
        outputs.append(viewed(output.given == kNone ? tensors.made(i).ptr() : taken(key.array(output.given)),
                              output.view));
      }
    }
    all_inputs = inputs;
    all_outputs = outputs;
  }

  PyObject* taken(const CallKey::Array& array) const { return on_device_ ? array.given : array.numpy(); }
  static nanobind::object viewed(nanobind::handle array, const nanobind::object& view) {
    return view.is_valid() ? view(array) : nanobind::borrow(array);
  }

  nanobind::object result(const CallKey& key, Tensors& tensors, size_t i) const {
    const Output& output = outputs_[i];
    if (output.given != kNone) return nanobind::borrow(key.array(output.given).given);
    return viewed(tensors.made(i), output.exported);
  }

  std::vector<uint64_t> words_;
  std::vector<nanobind::object> named_;
  nanobind::object run_;
  nanobind::object plan_owner_;
  const BoundPlan* plan_;
  bool in_place_;
  bool on_device_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<size_t> results_;
  bool is_list_;
};

// The prepared calls of all functions, of which none is kept where they become too many.
class CallCache {
 public:
  CallCache(size_t capacity, nanobind::object classify, nanobind::object canonical)
      : capacity_(capacity), kinds_(std::move(classify), std::move(canonical)) {}

  std::shared_ptr<const PreparedCall> find(const CallKey& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(key.hash());
    return found != calls_.end() && found->second->is_of(key) ? found->second : nullptr;
  }

  void keep(const CallKey& key, std::shared_ptr<const PreparedCall> call) {
    // What is dropped may run code of Python's when it goes, which must not happen under the lock.
    std::unordered_map<size_t, std::shared_ptr<const PreparedCall>> dropped;
    const std::lock_guard lock(mutex_);
    if (calls_.size() >= capacity_) dropped.swap(calls_);
    call.swap(calls_[key.hash()]);
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return calls_.size();
  }

  void clear() {
    std::unordered_map<size_t, std::shared_ptr<const PreparedCall>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(calls_);
  }

  KeyKinds& kinds() { return kinds_; }

 private:
  size_t capacity_;
  KeyKinds kinds_;
  mutable std::mutex mutex_;
  std::unordered_map<size_t, std::shared_ptr<const PreparedCall>> calls_;
};

// One function, by the names of its parameters; `out` among them is what is written to.
class CachedFunction {
 public:
  CachedFunction(CallCache& cache, const std::vector<std::string>& names) : cache_(&cache) {
    out_ = static_cast<size_t>(std::ranges::find(names, "out") - names.begin());
    for (const std::string& name : names)
      names_.push_back(nanobind::steal(PyUnicode_InternFromString(name.c_str())));
  }

  // What a call gives that is like one before, of arguments as a vectorcall has them; an invalid object, and
  // nothing done, for any other.
  nanobind::object try_call(PyObject* const* args, size_t given, PyObject* keywords) const {
    CallKey key;
    if (!read(key, args, given, keywords)) return {};
    const std::shared_ptr<const PreparedCall> call = cache_->find(key);
    return call == nullptr ? nanobind::object() : call->run(key);
  }

  // The key of a call that could be remembered and is not; else null.
  std::unique_ptr<CallKey> key(nanobind::tuple args, nanobind::dict options) const {
    std::vector<PyObject*> values;
    for (const nanobind::handle each : args) values.push_back(each.ptr());
    const size_t given = values.size();
    for (const nanobind::handle each : options.values()) values.push_back(each.ptr());
    const nanobind::tuple keywords(options.keys());
    auto key = std::make_unique<CallKey>();
    const bool is_new = read(*key, values.data(), given, keywords.ptr()) && cache_->find(*key) == nullptr;
    return is_new ? std::move(key) : nullptr;
  }

  // (parameter, place in its list or None, array) for each array of a key.
  nanobind::list arrays(const CallKey& key) const {
    nanobind::list all;
    for (size_t i = 0; i < key.count(); ++i) {
      const CallKey::Array& each = key.array(i);
      nanobind::object place = nanobind::none();
      if (each.place >= 0) place = nanobind::int_(each.place);
      all.append(nanobind::make_tuple(names_[each.parameter], place, nanobind::handle(each.given)));
    }
    return all;
  }

  void keep(const CallKey& key, nanobind::object run, nanobind::object plan, bool in_place, bool on_device,
            const std::vector<PreparedInput>& inputs, const std::vector<PreparedOutput>& outputs,
            std::vector<size_t> results, bool is_list) {
    cache_->keep(
        key, std::make_shared<const PreparedCall>(key, std::move(run), std::move(plan), in_place, on_device,
                                                  inputs, outputs, std::move(results), is_list));
  }

 private:
  bool read(CallKey& key, PyObject* const* args, size_t given, PyObject* keywords) const {
    return key.read(this, cache_->kinds(), names_, out_, args, given, keywords);
  }

  CallCache* cache_;
  size_t out_;
  std::vector<nanobind::object> names_;
};

}  // namespace anydml
