// Access to elements that need not be aligned.
#pragma once

#include <cstddef>
#include <cstring>

namespace anydml {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

}  // namespace anydml
