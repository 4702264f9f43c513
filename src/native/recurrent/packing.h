// Where the packed weights of a direction lie, and how they come there: chunk by chunk of units, of each
// panel by panel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/isa.h"
#include "platform/parallel.h"
#include "recurrent/layer.h"
#include "recurrent/products.h"
#include "recurrent/weights.h"
#include "recurrent/workspace.h"

ANYDML_ISA_BEGIN

template <class T>
struct WeightPacking {
  const RecurrentLayer& n;
  const Arrangement& arrangement;

  // Of R and of W, in floats.
  int64_t state_size() const { return arrangement.gates * n.padded() * n.hidden; }
  int64_t input_size() const { return arrangement.of_input.count * n.padded() * n.input; }

  // Where those of a chunk begin.
  int64_t state_offset(UnitRange units, int group) const {
    const GateGroup gates = arrangement.of_state[static_cast<size_t>(group)];
    const int64_t before = group == 0 ? 0 : arrangement.of_state[0].count * n.padded();
    return (before + gates.count * units.begin) * n.hidden;
  }
  int64_t input_offset(UnitRange units) const { return arrangement.of_input.count * units.begin * n.input; }

  // All of R.
  void pack_state(int64_t direction, const RecurrentCall& run, UnitRange units, float* to) const {
    const GateWeights weights = weights_of(n.r, direction, run);
    for (int group = 0; group < arrangement.state_groups; ++group) {
      const GateGroup gates = arrangement.of_state[static_cast<size_t>(group)];
      // The gates of a state are all there are, in their order.
      static constexpr int kGates[] = {0, 1, 2, 3};
      const int* const which = kGates + (gates.first - arrangement.of_state[0].first);
      float* const panels = to + state_offset(units, group);
      for_each_panel(gates.count * units.size(), run.state_level, [&](int64_t first, int level) {
        if (is_cancelled()) return;
        pack_weights<T>(weights, units, which, first, panel_width(level), 0, n.hidden,
                        panels + first * n.hidden);
      });
    }
  }

  // All of W.
  void pack_input(int64_t direction, const RecurrentCall& run, UnitRange units, float* to) const {
    for_each_panel(arrangement.of_input.count * units.size(), run.input_level, [&](int64_t first, int level) {
      if (is_cancelled()) return;
      pack_panel(direction, run, units, first, level, 0, n.input, to + input_offset(units) + first * n.input);
    });
  }
  // A panel of it, of a part of the depth.
  void pack_panel(int64_t direction, const RecurrentCall& run, UnitRange units, int64_t first, int level,
                  int64_t first_depth, int64_t depth, float* to) const {
    pack_weights<T>(weights_of(n.w, direction, run), units, arrangement.input_gates.data(), first,
                    panel_width(level), first_depth, depth, to);
  }

 private:
  GateWeights weights_of(const LayerTensor& tensor, int64_t direction, const RecurrentCall& run) const {
    const auto& strides = tensor.strides;
    return {run.in(tensor) + direction * strides[1], strides[2], strides[3], n.hidden};
  }
};

ANYDML_ISA_END
