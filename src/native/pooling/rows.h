// Rows of elements as numbers, and back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "movement/copy.h"
#include "platform/isa.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Halves by blocks, which are converted at once.
template <class Number>
void load_halves(const std::byte* from, int64_t step, int64_t count, Number* to) {
  constexpr int64_t kItem = sizeof(Half);
  std::byte halves[kConvertedAtOnce * kItem]{};
  float singles[kConvertedAtOnce];
  for (int64_t first = 0; first < count; first += kConvertedAtOnce) {
    const int64_t size = std::min(count - first, kConvertedAtOnce);
    const std::byte* block = from + first * step;
    if (step != kItem) {
      for (int64_t i = 0; i < size; ++i) std::memcpy(halves + i * kItem, block + i * step, kItem);
      block = halves;
    } else if (size < kConvertedAtOnce) {
      std::memcpy(halves, block, static_cast<size_t>(size * kItem));
      block = halves;
    }
    widen_halves(block, reinterpret_cast<std::byte*>(singles), 1);
    // A whole block by as many vectors as the compiler knows.
    if (size == kConvertedAtOnce) {
      for (int64_t i = 0; i < kConvertedAtOnce; ++i) to[first + i] = singles[i];
    } else {
      for (int64_t i = 0; i < size; ++i) to[first + i] = singles[i];
    }
  }
}

template <class T, class Number>
void load_row(const std::byte* from, int64_t step, int64_t count, Number* to) {
  constexpr int64_t kItem = sizeof(T);
  if constexpr (std::is_same_v<T, Half>) {
    load_halves(from, step, count, to);
  } else if (step == kItem) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Number>(load<T>(from + i * kItem));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<Number>(load<T>(from + i * step));
  }
}

// Numbers rounded once.
template <class T, class Number>
void store_row(const Number* numbers, int64_t count, int64_t step, std::byte* to) {
  constexpr int64_t kItem = sizeof(T);
  if constexpr (std::is_same_v<T, Half>) {
    float singles[kConvertedAtOnce]{};
    Half halves[kConvertedAtOnce];
    for (int64_t first = 0; first < count; first += kConvertedAtOnce) {
      const int64_t size = std::min(count - first, kConvertedAtOnce);
      const auto round = [&](int64_t i) {
        if constexpr (std::is_same_v<Number, float>) {
          singles[i] = numbers[first + i];
        } else {
          singles[i] = single_for_half(numbers[first + i]);
        }
      };
      if (size == kConvertedAtOnce) {
        for (int64_t i = 0; i < kConvertedAtOnce; ++i) round(i);
      } else {
        for (int64_t i = 0; i < size; ++i) round(i);
      }
      narrow_to_halves(reinterpret_cast<std::byte*>(singles), reinterpret_cast<std::byte*>(halves), 1);
      if (step == kItem) {
        std::memcpy(to + first * kItem, halves, static_cast<size_t>(size * kItem));
      } else {
        for (int64_t i = 0; i < size; ++i) store(to + (first + i) * step, halves[i]);
      }
    }
  } else if (step == kItem) {
    for (int64_t i = 0; i < count; ++i) store(to + i * kItem, static_cast<T>(numbers[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) store(to + i * step, static_cast<T>(numbers[i]));
  }
}

}  // namespace
ANYDML_ISA_END
