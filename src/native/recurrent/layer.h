// What a recurrent layer is: its sizes, where its tensors lie, and how its gates are arranged.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "platform/isa.h"
#include "recurrent/activations.h"

ANYDML_ISA_BEGIN

enum class CellKind { kRnn, kLstm, kGru, kLinearGru };

// Gates whose sums one product makes.
struct GateGroup {
  int first;  // of the kinds of sums
  int count;
};

// How sums of products are arranged. A linear GRU has one kind more than gates: what enters h of the input,
// and what enters it of the state, which is times r first.
struct Arrangement {
  int gates;
  int sums;
  GateGroup of_input;
  std::array<int, 4> input_gates;  // which gates these are
  std::array<GateGroup, 2> of_state;
  int state_groups;  // products of a step, one after the other
};

constexpr Arrangement arrangement_of(CellKind kind) {
  switch (kind) {
    case CellKind::kRnn:
      return {1, 1, {0, 1}, {0}, {{{0, 1}}}, 1};
    case CellKind::kLstm:
      return {4, 4, {0, 4}, {0, 1, 2, 3}, {{{0, 4}}}, 1};
    case CellKind::kGru:
      return {3, 3, {0, 3}, {0, 1, 2}, {{{0, 2}, {2, 1}}}, 2};
    default:
      return {3, 4, {0, 3}, {2, 0, 1}, {{{1, 3}}}, 1};
  }
}

// At most, those of LSTM.
inline constexpr size_t kMostInputs = 8;

// A tensor of four dimensions: its place among the inputs or outputs, and strides in bytes.
struct LayerTensor {
  int64_t tensor = -1;
  std::array<int64_t, 4> sizes{};
  std::array<int64_t, 4> strides{};

  bool is_there() const { return tensor >= 0; }
};

struct RecurrentLayer {
  CellKind kind;
  bool is_backward;  // its first direction
  int64_t directions;
  int64_t steps;
  int64_t batch;
  int64_t input;
  int64_t hidden;
  LayerTensor x;
  LayerTensor w;
  LayerTensor r;
  LayerTensor bias;
  LayerTensor initial;
  LayerTensor initial_cell;
  LayerTensor lengths;
  LayerTensor peepholes;
  LayerTensor sequence;
  LayerTensor single;
  LayerTensor single_cell;
  std::vector<GateActivation> activations;  // of one direction after the other
  bool couples;
  bool is_clipped;
  float limit;

  int64_t padded() const { return (hidden + kUnitBlock - 1) / kUnitBlock * kUnitBlock; }
  // Units of a padded range that there are.
  int64_t there(int64_t begin, int64_t count) const { return std::clamp<int64_t>(hidden - begin, 0, count); }
  int64_t activations_of_a_direction() const {
    return kind == CellKind::kRnn ? 1 : kind == CellKind::kLstm ? 3 : 2;
  }
};

ANYDML_ISA_END
