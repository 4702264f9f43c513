// Biases and peepholes as singles, in the order of a chunk's units.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/rows.h"
#include "platform/isa.h"
#include "recurrent/cells.h"
#include "recurrent/layer.h"
#include "recurrent/weights.h"
#include "recurrent/workspace.h"

ANYDML_ISA_BEGIN

// Of the kinds of sums W_b + R_b, or one of them where sums are apart; and the peepholes, gate by gate.
template <class T>
void load_biases(const RecurrentLayer& n, int64_t direction, const RecurrentCall& run, UnitRange units) {
  const Arrangement arrangement = arrangement_of(n.kind);
  const int64_t count = n.there(units.begin, units.size());
  // From the unit on, of a gate.
  const auto load = [&](const LayerTensor& from, int64_t gate, int64_t unit, int64_t some, float* to) {
    load_row<T>(run.in(from) + direction * from.strides[2] + (gate * n.hidden + unit) * from.strides[3],
                from.strides[3], some, to);
  };
  float* const biases = run.bias + arrangement.sums * units.begin;
  std::fill_n(biases, arrangement.sums * units.size(), 0.0f);
  for (int64_t i = 0; n.bias.is_there() && i < arrangement.sums; ++i) {
    float* const to = biases + i * units.size();
    const bool is_of_state = i >= arrangement.of_input.count;
    if (is_of_state) {
      load(n.bias, arrangement.gates + arrangement.gates - 1, units.begin, count, to);
      continue;
    }
    const int64_t gate = arrangement.input_gates[static_cast<size_t>(i)];
    load(n.bias, gate, units.begin, count, to);
    if (i < arrangement.of_state[0].first) continue;
    GateStrip of_state;
    for (int64_t j = 0; j < count; j += kGateStrip) {
      const int64_t some = std::min(kGateStrip, count - j);
      load(n.bias, arrangement.gates + gate, units.begin + j, some, of_state.gates[0]);
      for (int64_t k = 0; k < some; ++k) to[j + k] += of_state.gates[0][k];
    }
  }
  for (int64_t p = 0; n.peepholes.is_there() && p < 3; ++p) {
    float* const to = run.peepholes + p * n.padded() + units.begin;
    std::fill_n(to, units.size(), 0.0f);
    load(n.peepholes, p, units.begin, count, to);
  }
}

ANYDML_ISA_END
