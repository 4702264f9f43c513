// Biases and peepholes as singles, in the order of a chunk's units.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/rows.h"
#include "platform/isa.h"
#include "recurrent/layer.h"
#include "recurrent/weights.h"
#include "recurrent/workspace.h"

ANYDML_ISA_BEGIN

// Of the kinds of sums, W_b of those that the input is in, and R_b of those that the state is in; and the
// peepholes, gate by gate.
template <class T>
void load_biases(const RecurrentLayer& n, int64_t direction, const RecurrentCall& run, UnitRange units) {
  const Arrangement arrangement = arrangement_of(n.kind);
  const int64_t begin = arrangement.sums * units.begin;
  const auto load = [&](const LayerTensor& from, int64_t gate, float* to) {
    if (!from.is_there()) return;
    load_row<T>(
        run.in(from) + direction * from.strides[2] + (gate * n.hidden + units.begin) * from.strides[3],
        from.strides[3], n.there(units.begin, units.size()), to);
  };
  std::fill_n(run.input_bias + begin, arrangement.sums * units.size(), 0.0f);
  std::fill_n(run.state_bias + begin, arrangement.sums * units.size(), 0.0f);
  for (int gate = 0; gate < arrangement.gates; ++gate) {
    const int64_t of_input = arrangement.input_gates[static_cast<size_t>(gate)];
    load(n.bias, of_input, run.input_bias + begin + gate * units.size());
    const int64_t of_state = arrangement.of_state[0].first + gate;
    load(n.bias, arrangement.gates + gate, run.state_bias + begin + of_state * units.size());
  }
  for (int64_t p = 0; n.peepholes.is_there() && p < 3; ++p) {
    float* const to = run.peepholes + p * n.padded() + units.begin;
    std::fill_n(to, units.size(), 0.0f);
    load(n.peepholes, p, to);
  }
}

ANYDML_ISA_END
