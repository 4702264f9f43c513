// What windows over channels that lie last compute.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/layout.h"
#include "dense/singles.h"
#include "nhwc/fused_activation.h"
#include "nhwc/windows.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// The largest number under a window; NaN where it has none, and the lowest value where nothing is under it.
template <class T>
struct Largest {
  using Element = T;
  using Number = float;
  struct Parameters {};
  using V = Lanes<float, kLanesOf<float>>;

  Parameters parameters(const void* const*) const { return {}; }
  V start(const Parameters&, int64_t, int64_t taps) const {
    using Limits = std::numeric_limits<float>;
    return V{} + (taps > 0 ? Limits::quiet_NaN() : -Limits::infinity());
  }
  ANYDML_INLINE V add(const Parameters&, V most, V x, int64_t, int64_t) const {
    return (x > most) | (most != most) ? x : most;
  }
  ANYDML_INLINE V end(const Parameters&, V most, int64_t, int64_t) const { return most; }

  // The same where a window has a number above the lowest value, from that on: in one instruction.
  V quick_start() const { return V{} - std::numeric_limits<float>::infinity(); }
  ANYDML_INLINE V add_quickly(V most, V x) const {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    return (V)_mm256_max_ps((__m256)x, (__m256)most);
#else
    return x > most ? x : most;
#endif
  }
  ANYDML_INLINE bool is_doubtful(V most) const {
    const auto lowest = most == quick_start();
#if defined(ANYDML_VECTORS)
    using Words = Vector<uint64_t, sizeof(V) / 8>;
    const auto words = (Words)lowest;
    uint64_t any = 0;
    for (size_t i = 0; i < sizeof(V) / 8; ++i) any |= words[i];
    return any != 0;
#else
    return lowest;
#endif
  }
};

// sum / count, in double precision.
struct Average {
  using Element = float;
  using Number = double;
  struct Parameters {};
  using V = Lanes<double, kLanesOf<double>>;

  // The factors of a count, of each place.
  std::vector<double> of_rows;
  std::vector<double> of_columns;

  Average(const Sliding& height, const Sliding& width, bool includes_padding)
      : of_rows(counts(height, includes_padding)), of_columns(counts(width, includes_padding)) {}

  Parameters parameters(const void* const*) const { return {}; }
  V start(const Parameters&, int64_t, int64_t) const { return V{}; }
  ANYDML_INLINE V add(const Parameters&, V sum, V x, int64_t, int64_t) const { return sum + x; }
  ANYDML_INLINE V end(const Parameters&, V sum, int64_t row, int64_t column) const {
    return sum / (of_rows[static_cast<size_t>(row)] * of_columns[static_cast<size_t>(column)]);
  }

 private:
  // Nothing counted is a sum of 0, and stays it.
  static std::vector<double> counts(const Sliding& along, bool includes_padding) {
    std::vector<double> found;
    for (int64_t place = 0; place < along.places; ++place) {
      found.push_back(static_cast<double>(std::max<int64_t>(1, along.counted(place, includes_padding))));
    }
    return found;
  }
};

// f(bias + sum of weight * x), a weight for each tap and channel, in single precision: a chain of fused
// multiply-adds.
template <class Vector>
struct Weighted {
  using Element = float;
  using Number = float;
  using V = Vector;
  struct Parameters {
    Singles64 weights{0};  // of each channel, a tap after the other, and the biases behind them
  };

  int64_t channels;
  int64_t tap_step;  // in floats
  int64_t taps;
  // In bytes: from channel to channel, and of each tap.
  int64_t channel_step;
  std::vector<int64_t> tap_offsets;
  bool has_bias;
  int64_t bias_step;
  Fused fused;

  bool can_prepare(const void* const* inputs) const {
    return inputs[1] != nullptr && (!has_bias || inputs[2] != nullptr);
  }
  static int64_t bytes(const Parameters& parameters) { return parameters.weights.size() * 4; }
  Parameters parameters(const void* const* inputs) const {
    const auto* const filter = static_cast<const std::byte*>(inputs[1]);
    const auto* const bias = static_cast<const std::byte*>(inputs[2]);
    Parameters found{Singles64((taps + 1) * tap_step)};
    float* to = found.weights.data();
    for (const int64_t offset : tap_offsets) {
      for (int64_t c = 0; c < channels; ++c) to[c] = load<float>(filter + offset + c * channel_step);
      to += tap_step;
    }
    for (int64_t c = 0; c < channels; ++c) to[c] = has_bias ? load<float>(bias + c * bias_step) : 0.0f;
    return found;
  }

  V start(const Parameters& parameters, int64_t c, int64_t) const { return weight(parameters, taps, c); }
  ANYDML_INLINE V add(const Parameters& parameters, V sum, V x, int64_t tap, int64_t c) const {
    return multiply_add(x, weight(parameters, tap, c), sum);
  }
  // A sum of zeros is 0, whatever their signs.
  ANYDML_INLINE V end(const Parameters&, V sum, int64_t, int64_t) const {
    return fused.applied<float>(sum + 0.0f);
  }

 private:
  ANYDML_INLINE V weight(const Parameters& parameters, int64_t tap, int64_t c) const {
    const float* const from = parameters.weights.data() + tap * tap_step + c;
    return load_numbers<float, float, V>(reinterpret_cast<const std::byte*>(from));
  }
};

ANYDML_ISA_END
