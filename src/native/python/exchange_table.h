// DLPack's functions for C, which tell of a library's tensors without a call of Python's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace anydml {

// What DLPack 1 (from 1.3 on) has a library hang on its type as `__dlpack_c_exchange_api__`.
struct ExchangeTable {
  struct Header {
    uint32_t major;
    uint32_t minor;
    const Header* previous;
  } header;
  void* allocate;
  void* managed_from_python;
  void* managed_to_python;
  // Tells of an object without owning it; not 0, with an exception set, of what it cannot tell.
  int (*from_python)(void* object, nanobind::dlpack::dltensor* out);
  void* stream;

  // A type's own; null where it has none that is known.
  static const ExchangeTable* of(nanobind::handle type) {
    const nanobind::object capsule = nanobind::getattr(type, "__dlpack_c_exchange_api__", nanobind::none());
    if (capsule.is_none()) return nullptr;
    const auto* const header =
        static_cast<const Header*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (header == nullptr) nanobind::raise_python_error();
    if (header->major != 1 || header->minor < 3) return nullptr;
    const auto* const table = reinterpret_cast<const ExchangeTable*>(header);
    return table->from_python == nullptr ? nullptr : table;
  }
};

}  // namespace anydml
