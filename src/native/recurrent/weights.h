// Packing of weights: panels whose columns are units of gates, side by side for each element of the depth.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "recurrent/tuning.h"
#include "simd/convert.h"
#include "simd/half.h"
#include "simd/transpose.h"

ANYDML_ISA_BEGIN

// Units of a layer, padded, as many as a chunk has.
struct UnitRange {
  int64_t begin;
  int64_t end;
  int64_t chunk;
  int64_t size() const { return end - begin; }
};

// A matrix of weights: rows are units, gate by gate, columns the depth. Steps are in bytes.
struct GateWeights {
  const std::byte* at;
  int64_t row_step;
  int64_t step;
  int64_t hidden;  // units of a gate
};

// Calls body(gate, unit, column, count) for what `width` columns from `first` are, of columns that are the
// units of a range, gate by gate.
template <class Body>
void for_each_gate(UnitRange units, int64_t first, int64_t width, const Body& body) {
  for (int64_t column = 0; column < width;) {
    const int64_t gate = (first + column) / units.size();
    const int64_t unit = (first + column) % units.size();
    const int64_t count = std::min(width - column, units.size() - unit);
    body(gate, units.begin + unit, column, count);
    column += count;
  }
}

// Elements [first_depth, first_depth + depth) of columns [first, first + width), with zeros for units that
// there are not. `halves` has kPackedWeights elements.
template <class T>
void pack_weights(const GateWeights& weights, UnitRange units, const int* gates, int64_t first, int64_t width,
                  int64_t first_depth, int64_t depth, float* to, std::byte* halves) {
  constexpr int64_t kItem = sizeof(T);
  const auto pack = [&](int64_t k, int64_t count, std::byte* panel) {
    for_each_gate(units, first, width, [&](int64_t gate, int64_t unit, int64_t column, int64_t columns) {
      const int64_t there = std::clamp<int64_t>(weights.hidden - unit, 0, columns);
      if (there < columns) {
        for (int64_t i = 0; i < count; ++i) {
          std::memset(panel + (i * width + column + there) * kItem, 0,
                      static_cast<size_t>((columns - there) * kItem));
        }
      }
      if (there == 0) return;
      const std::byte* const from =
          weights.at + (gates[gate] * weights.hidden + unit) * weights.row_step + k * weights.step;
      using Bits = std::conditional_t<kItem == 2, uint16_t, uint32_t>;
      gather_tile<Bits>({from, weights.step, weights.row_step}, count, there, panel + column * kItem,
                        width * kItem);
    });
  };
  if constexpr (std::is_same_v<T, float>) {
    pack(first_depth, depth, reinterpret_cast<std::byte*>(to));
  } else {
    const int64_t most = kPackedWeights / width;
    for (int64_t k = 0; k < depth; k += most) {
      const int64_t count = std::min(most, depth - k);
      pack(first_depth + k, count, halves);
      // Not beyond the panel, behind which another one lies.
      float* const panel = to + k * width;
      const int64_t blocks = count * width / kConvertedAtOnce;
      widen_halves(halves, reinterpret_cast<std::byte*>(panel), blocks);
      for (int64_t i = blocks * kConvertedAtOnce; i < count * width; ++i)
        panel[i] = widen<Half, float>(halves + i * kItem);
    }
  }
}

ANYDML_ISA_END
