#include "core/attributes.h"

#include <algorithm>
#include <stdexcept>

namespace anydml {
namespace {

[[noreturn]] void fail(std::string_view name, const char* problem) {
  throw std::logic_error("the attribute " + std::string(name) + " " + problem);
}

}  // namespace

Attributes::Attributes(std::vector<NamedAttribute> attributes) : attributes_(std::move(attributes)) {}

int64_t Attributes::integer(std::string_view name) const { return single<int64_t>(name); }

const std::vector<int64_t>& Attributes::integers(std::string_view name) const {
  return values<int64_t>(name);
}

double Attributes::real(std::string_view name) const { return single<double>(name); }

const std::vector<double>& Attributes::reals(std::string_view name) const { return values<double>(name); }

const Activation* Attributes::activation(std::string_view name) const {
  return has(name) ? &single<Activation>(name) : nullptr;
}

const AttributeValues* Attributes::find(std::string_view name) const {
  const auto found = std::ranges::find(attributes_, name, &NamedAttribute::first);
  return found == attributes_.end() ? nullptr : &found->second;
}

template <class T>
const std::vector<T>& Attributes::values(std::string_view name) const {
  const AttributeValues* const found = find(name);
  if (found == nullptr) fail(name, "is missing");
  const auto* const values = std::get_if<std::vector<T>>(found);
  if (values == nullptr) fail(name, "has values of another kind");
  return *values;
}

template <class T>
const T& Attributes::single(std::string_view name) const {
  const std::vector<T>& found = values<T>(name);
  if (found.size() != 1) fail(name, "is not a single value");
  return found[0];
}

}  // namespace anydml
