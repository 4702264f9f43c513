// The attributes of an operator: the members of its desc that are neither tensors nor counts, by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/cold.h"

namespace anydml {

struct Activation;

// A scalar is an array of one element. A number that the header declares as FLOAT is a double.
using AttributeValues = std::variant<std::vector<int64_t>, std::vector<double>, std::vector<Activation>>;
using NamedAttribute = std::pair<std::string, AttributeValues>;

// Optional members that are absent have no entry. The getters throw std::logic_error, with the name, where an
// attribute is missing or of another kind.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::vector<NamedAttribute> attributes);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  ANYDML_COLD int64_t integer(std::string_view name) const;
  ANYDML_COLD const std::vector<int64_t>& integers(std::string_view name) const;
  ANYDML_COLD double real(std::string_view name) const;
  ANYDML_COLD const std::vector<double>& reals(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  // The operator that is fused behind this one; null where there is none.
  ANYDML_COLD const Activation* activation(std::string_view name) const;

  // In header order.
  const std::vector<NamedAttribute>& all() const { return attributes_; }

 private:
  ANYDML_COLD const AttributeValues* find(std::string_view name) const;
  template <class T>
  const std::vector<T>& values(std::string_view name) const;
  template <class T>
  const T& single(std::string_view name) const;

  std::vector<NamedAttribute> attributes_;
};

struct Activation {
  std::string name;  // without prefix: ACTIVATION_RELU
  Attributes attributes;
};

}  // namespace anydml
