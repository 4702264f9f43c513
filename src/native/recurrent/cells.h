// The equations of the cells, on a strip of units of one sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "recurrent/activations.h"
#include "recurrent/tuning.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kSingleLanes = sizeof(Singles) / sizeof(float);

ANYDML_INLINE Singles singles_at(const float* from) {
  return load_numbers<float, float, Singles>(reinterpret_cast<const std::byte*>(from));
}
ANYDML_INLINE void store_singles(float* to, Singles v) {
  store_numbers<float, float>(reinterpret_cast<std::byte*>(to), v);
}

// What enters the gates of up to kGateStrip units, and then what leaves them, gate by gate. Activations may
// be computed of what is behind the units of a strip, too.
struct GateStrip {
  alignas(64) float gates[4][kGateStrip]{};
};

// What the cells of a direction are made of. `count` is a multiple of kUnitBlock.
struct RecurrentCell {
  const GateActivation* activations;
  bool couples;  // the forget gate is 1 - i
  bool is_clipped;
  float limit;

  // H = f(a)
  void rnn(GateStrip& strip, int64_t count, float* h) const {
    activations[0].apply(strip.gates[0], count);
    std::memcpy(h, strip.gates[0], static_cast<size_t>(count) * sizeof(float));
  }

  // Gates i, o, f, c. Peepholes of i, o, f lie `pitch` floats apart, and are null where there are none.
  void lstm(GateStrip& strip, int64_t count, const float* peepholes, int64_t pitch, float* c,
            float* h) const {
    float* const i = strip.gates[0];
    float* const o = strip.gates[1];
    float* const forget = strip.gates[2];
    float* const added = strip.gates[3];
    if (peepholes == nullptr) {
      for (float* const each : strip.gates) clip(each, count);
      activations[0].apply(i, (couples ? 1 : 2) * kGateStrip + count);
    } else {
      look(i, peepholes, c, count);
      look(forget, peepholes + 2 * pitch, c, count);
      for (float* const each : {i, forget, added}) clip(each, count);
      activations[0].apply(i, count);
      if (!couples) activations[0].apply(forget, count);
    }
    activations[1].apply(added, count);
    for (int64_t j = 0; j < count; j += kSingleLanes) {
      // C_t = forget . C_(t-1) + i . g(a_c)
      const Singles in = singles_at(i + j);
      const Singles kept = couples ? 1.0f - in : singles_at(forget + j);
      const Singles state = multiply_add(in, singles_at(added + j), kept * singles_at(c + j));
      store_singles(c + j, state);
      store_singles(added + j, state);
    }
    if (peepholes != nullptr) {
      look(o, peepholes + pitch, c, count);
      clip(o, count);
      activations[0].apply(o, count);
    }
    activations[2].apply(added, count);
    for (int64_t j = 0; j < count; j += kSingleLanes)
      store_singles(h + j, singles_at(o + j) * singles_at(added + j));
  }

  // Of gates z and r, which stay in the strip, r . H_(t-1).
  void reset(GateStrip& strip, int64_t count, const float* h, float* reset_h) const {
    activations[0].apply(strip.gates[0], kGateStrip + count);
    for (int64_t j = 0; j < count; j += kSingleLanes)
      store_singles(reset_h + j, singles_at(strip.gates[1] + j) * singles_at(h + j));
  }
  // Of gates z and h: (1 - z) . h + z . H_(t-1)
  void gru(GateStrip& strip, int64_t count, const float* before, float* h) const {
    activations[1].apply(strip.gates[1], count);
    mix(strip.gates[0], strip.gates[1], before, count, h);
  }
  // Of what enters h of the input, z, r, and what enters h of the state, which is times r.
  void linear_gru(GateStrip& strip, int64_t count, const float* before, float* h) const {
    float* const entering = strip.gates[0];
    activations[0].apply(strip.gates[1], kGateStrip + count);
    for (int64_t j = 0; j < count; j += kSingleLanes) {
      store_singles(entering + j, multiply_add(singles_at(strip.gates[2] + j), singles_at(strip.gates[3] + j),
                                               singles_at(entering + j)));
    }
    activations[1].apply(entering, count);
    mix(strip.gates[1], entering, before, count, h);
  }

 private:
  // a + p . c
  static void look(float* a, const float* peephole, const float* c, int64_t count) {
    for (int64_t j = 0; j < count; j += kSingleLanes) {
      store_singles(a + j, multiply_add(singles_at(peephole + j), singles_at(c + j), singles_at(a + j)));
    }
  }

  // A NaN stays one.
  void clip(float* a, int64_t count) const {
    if (!is_clipped) return;
    const Singles high = Singles{} + limit;
    for (int64_t j = 0; j < count; j += kSingleLanes) {
      const Singles x = singles_at(a + j);
      const Singles low = x < -high ? -high : x;
      store_singles(a + j, low > high ? high : low);
    }
  }

  static void mix(const float* z, const float* added, const float* before, int64_t count, float* h) {
    for (int64_t j = 0; j < count; j += kSingleLanes) {
      const Singles update = singles_at(z + j);
      const Singles kept = update * singles_at(before + j);
      store_singles(h + j, multiply_add(1.0f - update, singles_at(added + j), kept));
    }
  }
};

ANYDML_ISA_END
