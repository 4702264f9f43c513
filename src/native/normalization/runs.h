// Runs of elements, of any step, as doubles and back: all of this family computes in double precision and
// rounds once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "pointwise/lanes.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// The most elements of a run, which is a multiple of what conversions and instructions take at once. Buffers
// have as many.
inline constexpr int64_t kRun = 256;
static_assert(kRun % kConvertedAtOnce == 0 && kRun % kWholeElements == 0);

using Load = void (*)(const std::byte* from, int64_t step, int64_t count, double* to);
using Store = void (*)(const double* from, int64_t count, std::byte* to, int64_t step);

inline int64_t blocks_of_run(int64_t count) { return (count + kConvertedAtOnce - 1) / kConvertedAtOnce; }

template <class T>
void load_run(const std::byte* from, int64_t step, int64_t count, double* to) {
  constexpr int64_t kItem = sizeof(T);
  if (step == 0) {
    std::fill_n(to, count, widen<T, double>(from));
  } else if constexpr (std::is_same_v<T, Half>) {
    alignas(64) std::byte halves[kRun * kItem]{};
    alignas(64) float singles[kRun];
    if (step == kItem) {
      std::memcpy(halves, from, static_cast<size_t>(count * kItem));
    } else {
      for (int64_t i = 0; i < count; ++i) store(halves + i * kItem, load<uint16_t>(from + i * step));
    }
    widen_halves(halves, reinterpret_cast<std::byte*>(singles), blocks_of_run(count));
    for (int64_t i = 0; i < count; ++i) to[i] = singles[i];
  } else if (step == kItem) {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(load<T>(from + i * kItem));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(load<T>(from + i * step));
  }
}

template <class T>
void store_run(const double* from, int64_t count, std::byte* to, int64_t step) {
  constexpr int64_t kItem = sizeof(T);
  if constexpr (std::is_same_v<T, Half>) {
    alignas(64) std::byte halves[kRun * kItem];
    alignas(64) float singles[kRun]{};
    auto* const between = reinterpret_cast<std::byte*>(singles);
    convert_for_halves<double>(reinterpret_cast<const std::byte*>(from), between, blocks_of_run(count));
    narrow_to_halves(between, halves, blocks_of_run(count));
    if (step == kItem) {
      std::memcpy(to, halves, static_cast<size_t>(count * kItem));
    } else {
      for (int64_t i = 0; i < count; ++i) store(to + i * step, load<uint16_t>(halves + i * kItem));
    }
  } else if (step == kItem) {
    for (int64_t i = 0; i < count; ++i) store(to + i * kItem, static_cast<T>(from[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) store(to + i * step, static_cast<T>(from[i]));
  }
}

// Null for a type that there is none of.
inline Load load_of(DataType type) {
  if (type == DataType::kFloat32) return load_run<float>;
  if (type == DataType::kFloat16) return load_run<Half>;
  return type == DataType::kUint32 ? load_run<uint32_t> : nullptr;
}
inline Store store_of(DataType type) {
  if (type == DataType::kFloat32) return store_run<float>;
  return type == DataType::kFloat16 ? store_run<Half> : nullptr;
}

// Applies a function of Doubles to a run in place; what lies behind it in its buffer changes too.
template <class Function>
ANYDML_INLINE void apply_to_run(double* run, int64_t count, const Function& function) {
  constexpr int64_t kLanes = sizeof(Doubles) / sizeof(double);
  for (int64_t i = 0; i < count; i += kLanes) {
    Doubles lanes;
    std::memcpy(&lanes, run + i, sizeof(lanes));
    lanes = function(lanes);
    std::memcpy(run + i, &lanes, sizeof(lanes));
  }
}

// Likewise of one number.
template <class Function>
ANYDML_INLINE double applied_to_one(double x, const Function& function) {
  const Doubles lanes = function(Doubles{} + x);
  double first;
  std::memcpy(&first, &lanes, sizeof(first));
  return first;
}

ANYDML_ISA_END
