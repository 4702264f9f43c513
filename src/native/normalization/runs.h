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

// The most elements of a run, which is a multiple of what instructions take at once. Buffers
// have as many.
inline constexpr int64_t kRun = 256;
static_assert(kRun % kWholeElements == 0);

using Load = void (*)(const std::byte* from, int64_t step, int64_t count, double* to);
using Store = void (*)(const double* from, int64_t count, std::byte* to, int64_t step);

// Calls put(i) for vectors of `lanes` from element i on, of which the last one begins before the one before
// it ends, or one(i) for each element where there are fewer. A copy of unknown length, and zeros behind it,
// took longer than a run of a few dozens of halves.
template <class Put, class One>
ANYDML_INLINE void for_run(int64_t count, int64_t lanes, const Put& put, const One& one) {
  if (count < lanes) {
    for (int64_t i = 0; i < count; ++i) one(i);
    return;
  }
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) put(i);
  if (i < count) put(count - lanes);
}

// Halves as singles or doubles, and back.
template <class Number>
void load_halves(const std::byte* from, int64_t step, int64_t count, Number* to) {
  using V = std::conditional_t<std::is_same_v<Number, float>, Singles, Doubles>;
  constexpr int64_t kItem = sizeof(uint16_t);
  if (step != kItem) {
    std::byte halves[kRun * kItem];
    for (int64_t i = 0; i < count; ++i) store(halves + i * kItem, load<uint16_t>(from + i * step));
    return load_halves(halves, kItem, count, to);
  }
  const auto one = [&](int64_t i) { to[i] = widen<Half, Number>(from + i * kItem); };
  const auto put = [&](int64_t i) {
    const V x = load_numbers<Half, Number, V>(from + i * kItem);
    std::memcpy(to + i, &x, sizeof(x));
  };
  for_run(count, sizeof(V) / sizeof(Number), put, one);
}
template <class Number>
void store_halves(const Number* from, int64_t count, std::byte* to, int64_t step) {
  using V = std::conditional_t<std::is_same_v<Number, float>, Singles, Doubles>;
  constexpr int64_t kItem = sizeof(uint16_t);
  if (step != kItem) {
    std::byte halves[kRun * kItem];
    store_halves(from, count, halves, kItem);
    for (int64_t i = 0; i < count; ++i) store(to + i * step, load<uint16_t>(halves + i * kItem));
    return;
  }
  const auto one = [&](int64_t i) {
    if constexpr (std::is_same_v<Number, double>) {
      store(to + i * kItem, Half(single_for_half(from[i])));
    } else {
      store(to + i * kItem, Half(from[i]));
    }
  };
  const auto put = [&](int64_t i) {
    V x;
    std::memcpy(&x, from + i, sizeof(x));
    store_numbers<Half, Number, V>(to + i * kItem, x);
  };
  for_run(count, sizeof(V) / sizeof(Number), put, one);
}

template <class T>
void load_run(const std::byte* from, int64_t step, int64_t count, double* to) {
  constexpr int64_t kItem = sizeof(T);
  if (step == 0) {
    std::fill_n(to, count, widen<T, double>(from));
  } else if constexpr (std::is_same_v<T, Half>) {
    load_halves(from, step, count, to);
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
    store_halves(from, count, to, step);
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
