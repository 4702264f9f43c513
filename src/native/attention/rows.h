// Rows of elements as singles, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

template <class T>
void load_row(const std::byte* from, int64_t step, int64_t count, float* to) {
  constexpr int64_t kItem = sizeof(T);
  int64_t i = 0;
  if (step == kItem) {
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    } else {
      for (; i + kLanesOf<float> <= count; i += kLanesOf<float>) {
        store_lanes<float, float>(reinterpret_cast<std::byte*>(to + i),
                                  load_lanes<T, float>(from + i * kItem));
      }
    }
  }
  for (; i < count; ++i) to[i] = widen<T, float>(from + i * step);
}

template <class T>
void store_row(const float* from, int64_t step, int64_t count, std::byte* to) {
  constexpr int64_t kItem = sizeof(T);
  int64_t i = 0;
  if (step == kItem) {
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
      return;
    } else {
      for (; i + kLanesOf<float> <= count; i += kLanesOf<float>) {
        store_lanes<T, float>(to + i * kItem,
                              load_lanes<float, float>(reinterpret_cast<const std::byte*>(from + i)));
      }
    }
  }
  for (; i < count; ++i) narrow<T, float>(to + i * step, from[i]);
}

ANYDML_ISA_END
