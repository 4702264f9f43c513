// The plan of a recurrent layer: phases, whose chunks are units of the layer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "attention/rows.h"
#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "recurrent/biases.h"
#include "recurrent/cells.h"
#include "recurrent/known_inputs.h"
#include "recurrent/layer.h"
#include "recurrent/packing.h"
#include "recurrent/products.h"
#include "recurrent/team.h"
#include "recurrent/tuning.h"
#include "recurrent/workspace.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

template <class T>
class RecurrentPlan final : public Plan {
 public:
  RecurrentPlan(RecurrentLayer layer, std::string description)
      : Plan(std::move(description)),
        n_(std::move(layer)),
        arrangement_(arrangement_of(n_.kind)),
        units_(n_.padded()),
        sums_(arrangement_.sums * units_),
        inputs_(n_.kind == CellKind::kLstm ? 8 : 6) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    RecurrentCall run = call_of(known_ ? known_->division : division_for_call());
    run.outputs = outputs;
    for (size_t i = 0; i < inputs_; ++i)
      run.inputs[i] = known_ && known_->copies[i] ? known_->copies[i].get() : inputs[i];
    const Scratch weights = allocate_weights(run);
    if (run.division.groups > 1) {
      run_groups(run);
    } else {
      run_together(run);
    }
  }

  bool has_prepack() const override { return true; }

  // With packed weights, and copies of all else that is known.
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    if (inputs[n_.x.tensor] != nullptr || inputs[n_.w.tensor] == nullptr || inputs[n_.r.tensor] == nullptr)
      return nullptr;
    auto known = std::make_shared<KnownInputs>();
    known->division = division_for_call();
    const WeightPacking<T> weights = packing();
    known->floats = n_.directions * (weights.state_size() + weights.input_size());
    const std::pair<float**, int64_t> parts[] = {{&known->state, n_.directions * weights.state_size()},
                                                 {&known->input, n_.directions * weights.input_size()}};
    known->memory = std::make_unique<const Singles64>(floats_of(parts));
    set_parts(parts, known->memory->data());
    RecurrentCall run = call_of(known->division);
    std::copy_n(inputs, inputs_, run.inputs.begin());
    for_each_chunk(run, [&](UnitRange units) {
      for (int64_t d = 0; d < n_.directions; ++d) {
        weights.pack_state(d, run, units, known->state + d * weights.state_size());
        weights.pack_input(d, run, units, known->input + d * weights.input_size());
      }
    });
    auto plan = std::make_unique<RecurrentPlan>(n_, description());
    RecurrentLayer& layer = plan->n_;
    for (LayerTensor* const each :
         {&layer.bias, &layer.initial, &layer.initial_cell, &layer.lengths, &layer.peepholes}) {
      if (!each->is_there() || inputs[each->tensor] == nullptr) continue;
      const auto i = static_cast<size_t>(each->tensor);
      known->copies[i] = copied(*each, inputs[i], each == &layer.lengths ? sizeof(uint32_t) : kItem);
    }
    plan->known_ = std::move(known);
    return plan;
  }

  int64_t prepack_bytes() const override {
    return known_ ? known_->floats * static_cast<int64_t>(sizeof(float)) : 0;
  }

 private:
  static constexpr int64_t kItem = sizeof(T);
  static constexpr bool kIsHalf = !std::is_same_v<T, float>;
  static constexpr float kZeros[kColumnLanes << (kLevels - 1)]{};

  // Sequences of a direction that go through the steps together.
  struct Part {
    int64_t direction;
    int64_t first;
    int64_t batch;
  };

  // Steps [first, first + count), whose sums are there.
  struct Steps {
    int64_t first;
    int64_t count;
  };

  WeightPacking<T> packing() const { return {n_, arrangement_}; }

  // Whether W is packed as a whole, as otherwise it would be again and again.
  bool packs_input_once(const RecurrentCall& run) const {
    return !known_ && (run.division.groups > 1 || n_.steps * n_.batch >= kPackedOnce * run.steps * run.batch);
  }

  // A call without its tensors and its memory.
  RecurrentCall call_of(WorkDivision division) const {
    const bool shares_units = division.groups == 1;
    const int64_t ahead =
        std::clamp(kAhead * (shares_units ? division.chunks : 1) / sums_, kFewestAhead, kMostAhead);
    RecurrentCall run;
    run.division = division;
    run.batch = std::min((n_.batch + division.groups - 1) / division.groups, ahead);
    run.steps = std::min(n_.steps, std::max<int64_t>(1, ahead / run.batch));
    run.state_level = level_for(run.batch);
    run.input_level = level_for(run.steps * run.batch);
    return run;
  }

  int64_t multiplications_of_a_step() const { return n_.batch * arrangement_.gates * n_.hidden * n_.hidden; }
  WorkDivision division_for_call() const {
    const int64_t of_a_step = multiplications_of_a_step();
    const int64_t all = n_.steps * n_.batch * arrangement_.gates * n_.hidden * (n_.hidden + n_.input);
    const int64_t most = std::min(units_ / kUnitBlock, of_a_step / kMultiplicationsOfAThread);
    const int64_t threads = threads_for(all / kMultiplicationsOfAByte * n_.directions);
    const int64_t chunks = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, most));
    const int64_t groups = std::min(threads, n_.batch / kSequencesOfAThread);
    const bool is_grouped = groups > 1 && groups >= chunks && n_.steps >= kStepsOfAGroup &&
                            packing().state_size() <= kSharedWeights;
    return {chunks, is_grouped ? groups : 1};
  }

  // Calls body(units) for all chunks, on as many threads.
  template <class Body>
  void for_each_chunk(const RecurrentCall& run, const Body& body) const {
    const int64_t chunks = run.division.chunks;
    parallel_for(chunks, static_cast<int>(chunks), [&](int64_t chunk) { body(units_of(chunk, chunks)); });
  }

  // Threads share the units of all sequences, and meet behind each step.
  void run_together(RecurrentCall run) const {
    const int64_t chunks = run.division.chunks;
    const Scratch memory = allocate_states(run);
    PhaseTeam team(chunks, chunks, has_long_steps());
    parallel_for(chunks, static_cast<int>(chunks), [&](int64_t i) {
      PhaseMember member(team, i);
      for (int64_t d = 0; d < n_.directions; ++d) {
        const auto prepare = [&](int64_t chunk) { load_weights(d, run, units_of(chunk, chunks)); };
        if (!member.phase(prepare) || !go_through_all({d, 0, n_.batch}, run, member)) return;
      }
    });
  }

  // Each thread has sequences of its own, and waits for nobody.
  void run_groups(const RecurrentCall& run) const {
    const int64_t groups = run.division.groups;
    for (int64_t d = 0; d < n_.directions; ++d) {
      for_each_chunk(run, [&](UnitRange units) { load_weights(d, run, units); });
      parallel_for(groups, static_cast<int>(groups), [&](int64_t group) {
        RecurrentCall own = run;
        const Scratch memory = allocate_states(own);
        PhaseTeam team(run.division.chunks, 1, has_long_steps());
        PhaseMember member(team, 0);
        const int64_t first = share_begin(group, groups, n_.batch);
        go_through_all({d, first, share_begin(group + 1, groups, n_.batch) - first}, own, member);
      });
    }
  }

  bool has_long_steps() const { return multiplications_of_a_step() >= kLongStep; }

  // What threads share in any case.
  Scratch allocate_weights(RecurrentCall& run) const {
    const std::pair<float**, int64_t> all[] = {
        {&run.weights, known_ ? 0 : packing().state_size()},
        {&run.input_weights, packs_input_once(run) ? packing().input_size() : 0},
        {&run.input_bias, sums_},
        {&run.state_bias, sums_},
        {&run.peepholes, n_.peepholes.is_there() ? 3 * units_ : 0}};
    Scratch memory(floats_of(all) * 4);
    set_parts(all, memory.floats());
    return memory;
  }

  // What those share that go through the steps together.
  Scratch allocate_states(RecurrentCall& run) const {
    const int64_t states = run.batch * units_;
    const int64_t rows = run.steps * run.batch;
    const bool has_reset = n_.kind == CellKind::kGru;
    // A group may have one sequence less than others, whose rows lie otherwise.
    const bool has_rows = run.division.groups > 1 || packs_rows({0, 0, run.batch}, run.steps);
    const bool has_panels = !known_ && !packs_input_once(run);
    const std::pair<float**, int64_t> all[] = {
        {&run.sums, rows * sums_},
        {&run.h[0], states},
        {&run.h[1], states},
        {&run.c, n_.kind == CellKind::kLstm ? states : 0},
        {&run.reset, has_reset ? states : 0},
        {&run.rows, has_rows ? rows * std::min(n_.input, kPackedDepth) : 0},
        {&run.panels, has_panels ? run.division.chunks * kPackedWeights : 0}};
    Scratch memory(floats_of(all) * 4);
    set_parts(all, memory.floats());
    return memory;
  }

  UnitRange units_of(int64_t chunk, int64_t chunks) const {
    const int64_t blocks = units_ / kUnitBlock;
    return {share_begin(chunk, chunks, blocks) * kUnitBlock,
            share_begin(chunk + 1, chunks, blocks) * kUnitBlock, chunk};
  }

  // Never more than there are steps, whatever the data say.
  int64_t length_of(int64_t sequence, const RecurrentCall& run) const {
    if (!n_.lengths.is_there()) return n_.steps;
    const auto length = load<uint32_t>(run.in(n_.lengths) + sequence * n_.lengths.strides[3]);
    return std::min<int64_t>(length, n_.steps);
  }

  // All steps of a part, as many sequences at a time as fit the memory. Returns false where the calculation
  // was cancelled.
  bool go_through_all(const Part& part, const RecurrentCall& run, PhaseMember& member) const {
    for (int64_t first = 0; first < part.batch; first += run.batch) {
      const int64_t batch = std::min(run.batch, part.batch - first);
      if (!go_through({part.direction, part.first + first, batch}, run, member)) return false;
    }
    return true;
  }

  bool go_through(const Part& part, const RecurrentCall& run, PhaseMember& member) const {
    int64_t steps = 0;
    for (int64_t b = 0; b < part.batch; ++b) steps = std::max(steps, length_of(part.first + b, run));
    if (!member.phase([&](int64_t chunk) { begin(part, run, units_of(chunk, run.division.chunks)); }))
      return false;
    const bool is_backward = n_.is_backward || part.direction == 1;
    size_t before = 0;
    // As even as can be.
    const int64_t blocks = (steps + run.steps - 1) / run.steps;
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t which = is_backward ? blocks - 1 - block : block;
      const int64_t begin = share_begin(which, blocks, steps);
      const Steps ahead{begin, share_begin(which + 1, blocks, steps) - begin};
      if (!multiply_input(part, ahead, run, member)) return false;
      for (int64_t i = 0; i < ahead.count; ++i) {
        const int64_t t = is_backward ? ahead.first + ahead.count - 1 - i : ahead.first + i;
        float* const sums = run.sums + (t - ahead.first) * part.batch * sums_;
        for (int group = 0; group < arrangement_.state_groups; ++group) {
          const auto step = [&](int64_t chunk) {
            const UnitRange units = units_of(chunk, run.division.chunks);
            multiply_state(part, run, units, group, group == 0 ? run.h[before] : run.reset, sums);
            if (group + 1 < arrangement_.state_groups) {
              reset(part, t, run, units, run.h[before], sums);
            } else {
              advance(part, t, run, units, run.h[before], run.h[1 - before], sums);
            }
          };
          if (!member.phase(step)) return false;
        }
        before = 1 - before;
      }
    }
    return member.phase(
        [&](int64_t chunk) { end(part, steps, run, units_of(chunk, run.division.chunks), run.h[before]); });
  }

  // The weights of a direction.
  void load_weights(int64_t direction, const RecurrentCall& run, UnitRange units) const {
    if (!known_) packing().pack_state(direction, run, units, run.weights);
    if (packs_input_once(run)) packing().pack_input(direction, run, units, run.input_weights);
    load_biases<T>(n_, direction, run, units);
  }

  // The initial states.
  void begin(const Part& part, const RecurrentCall& run, UnitRange units) const {
    const int64_t d = part.direction;
    for (int64_t b = 0; b < part.batch; ++b) {
      const int64_t sequence = part.first + b;
      load_state(n_.initial, d, sequence, run, units, run.h[0] + b * units_);
      if (n_.kind == CellKind::kLstm)
        load_state(n_.initial_cell, d, sequence, run, units, run.c + b * units_);
      if (n_.kind == CellKind::kGru) std::fill_n(run.reset + b * units_ + units.begin, units.size(), 0.0f);
    }
  }

  void load_state(const LayerTensor& from, int64_t direction, int64_t sequence, const RecurrentCall& run,
                  UnitRange units, float* to) const {
    const int64_t count = from.is_there() ? n_.there(units.begin, units.size()) : 0;
    if (count > 0) {
      load_row<T>(run.in(from) + direction * from.strides[1] + sequence * from.strides[2] +
                      units.begin * from.strides[3],
                  from.strides[3], count, to + units.begin);
    }
    std::fill_n(to + units.begin + count, units.size() - count, 0.0f);
  }

  // Rows of the input, by step and sequence, whose steps are not one, or which are no singles side by side.
  bool packs_rows(const Part& part, int64_t steps) const {
    const auto& strides = n_.x.strides;
    const bool are_rows = part.batch == 1 || steps == 1 || strides[1] == part.batch * strides[2];
    return kIsHalf || strides[3] != kItem || !are_rows;
  }

  // Of all rows of some steps ahead: W_b + X * W^T.
  bool multiply_input(const Part& part, Steps ahead, const RecurrentCall& run, PhaseMember& member) const {
    const int64_t rows = ahead.count * part.batch;
    const std::byte* const x = run.in(n_.x) + ahead.first * n_.x.strides[1] + part.first * n_.x.strides[2];
    DenseTile tile{
        x, part.batch == 1 ? n_.x.strides[1] : n_.x.strides[2], n_.x.strides[3], 0, nullptr, 0, nullptr, 0};
    const bool packs = packs_rows(part, ahead.count);
    const int64_t most = packs ? std::min(n_.input, kPackedDepth) : n_.input;
    for (int64_t first = 0; first < n_.input; first += most) {
      const int64_t depth = std::min(most, n_.input - first);
      if (packs) {
        const auto pack = [&](int64_t chunk) {
          const int64_t chunks = run.division.chunks;
          for (int64_t row = share_begin(chunk, chunks, rows); row < share_begin(chunk + 1, chunks, rows);
               ++row) {
            const int64_t t = row / part.batch;
            const int64_t b = row % part.batch;
            load_row<T>(x + t * n_.x.strides[1] + b * n_.x.strides[2] + first * n_.x.strides[3],
                        n_.x.strides[3], depth, run.rows + row * depth);
          }
        };
        if (!member.phase(pack)) return false;
        tile.from = reinterpret_cast<const std::byte*>(run.rows);
        tile.row_step = depth * static_cast<int64_t>(sizeof(float));
        tile.step = sizeof(float);
      }
      const auto multiply = [&](int64_t chunk) {
        multiply_chunk(part, tile, rows, first, depth, run, units_of(chunk, run.division.chunks));
      };
      if (!member.phase(multiply)) return false;
    }
    return true;
  }

  // A chunk's columns of that, of a part of the depth.
  void multiply_chunk(const Part& part, DenseTile tile, int64_t rows, int64_t first_depth, int64_t depth,
                      const RecurrentCall& run, UnitRange units) const {
    const float* all = known_ ? known_->input + part.direction * packing().input_size() : nullptr;
    if (packs_input_once(run)) all = run.input_weights;
    const float* const known = all == nullptr ? nullptr : all + packing().input_offset(units);
    float* const panel = known_ ? nullptr : run.panels + units.chunk * kPackedWeights;
    const std::byte* const from = tile.from;
    float* const to = run.sums + arrangement_.sums * units.begin;
    const float* const bias = run.input_bias + arrangement_.sums * units.begin;
    for_each_panel(
        arrangement_.of_input.count * units.size(), run.input_level, [&](int64_t first, int level) {
          const int64_t most = known != nullptr ? depth : kPackedWeights / panel_width(level);
          for (int64_t k = 0; k < depth && !is_cancelled(); k += most) {
            const int64_t count = std::min(most, depth - k);
            const float* weights = panel;
            if (known != nullptr) {
              weights = known + first * n_.input + (first_depth + k) * panel_width(level);
            } else {
              packing().pack_panel(part.direction, run, units, first, level, first_depth + k, count, panel);
            }
            tile.from = from + k * tile.step;
            tile.depth = count;
            tile.weights = reinterpret_cast<const std::byte*>(weights);
            const bool is_first = first_depth + k == 0;
            tile.start = is_first ? bias + first : to + first;
            tile.start_step = is_first ? 0 : sums_;
            add_panel(tile, nullptr, rows, level, to + first, sums_);
          }
        });
    // What the input has no part in.
    const int64_t kinds = arrangement_.sums - arrangement_.of_input.count;
    const int64_t other = arrangement_.of_input.count * units.size();
    for (int64_t row = 0; kinds > 0 && first_depth == 0 && row < rows; ++row)
      std::fill_n(to + row * sums_ + other, kinds * units.size(), 0.0f);
  }

  // Adds H * R^T + R_b of a group of gates to a step's sums.
  void multiply_state(const Part& part, const RecurrentCall& run, UnitRange units, int group, const float* h,
                      float* sums) const {
    const GateGroup gates = arrangement_.of_state[static_cast<size_t>(group)];
    const float* const packed =
        known_ ? known_->state + part.direction * packing().state_size() : run.weights;
    const float* const weights = packed + packing().state_offset(units, group);
    float* const to = sums + arrangement_.sums * units.begin + gates.first * units.size();
    constexpr auto kSingle = static_cast<int64_t>(sizeof(float));
    const float* const bias = run.state_bias + arrangement_.sums * units.begin + gates.first * units.size();
    DenseTile tile{
        reinterpret_cast<const std::byte*>(h), units_ * kSingle, kSingle, n_.hidden, nullptr, 0, kZeros, 0};
    const bool is_long = part.batch * n_.hidden >= kLongPanel;
    for_each_panel(gates.count * units.size(), run.state_level, [&](int64_t first, int level) {
      if (is_long && is_cancelled()) return;
      tile.weights = reinterpret_cast<const std::byte*>(weights + first * n_.hidden);
      add_panel(tile, bias + first, part.batch, level, to + first, sums_);
    });
  }

  RecurrentCell cell_of(int64_t direction) const {
    return {n_.activations.data() + direction * n_.activations_of_a_direction(), n_.couples, n_.is_clipped,
            n_.limit};
  }

  // Calls body(row of the part, first unit, count) for the strips of a chunk that have the step.
  template <class Body>
  void for_each_strip(const Part& part, UnitRange units, const Body& body) const {
    for (int64_t b = 0; b < part.batch; ++b) {
      for (int64_t unit = units.begin; unit < units.end; unit += kGateStrip)
        body(b, unit, std::min(kGateStrip, units.end - unit));
    }
  }
  // Of a kind of sums, a strip's.
  float* gate_of(float* sums, int64_t b, UnitRange units, int64_t unit, int64_t kind) const {
    return sums + b * sums_ + arrangement_.sums * units.begin + kind * units.size() + unit - units.begin;
  }

  void reset(const Part& part, int64_t t, const RecurrentCall& run, UnitRange units, const float* before,
             float* sums) const {
    const RecurrentCell cell = cell_of(part.direction);
    GateStrip strip;
    for_each_strip(part, units, [&](int64_t b, int64_t unit, int64_t count) {
      if (t >= length_of(part.first + b, run)) return;
      const auto size = static_cast<size_t>(count) * sizeof(float);
      for (int64_t kind = 0; kind < 2; ++kind)
        std::memcpy(strip.gates[kind], gate_of(sums, b, units, unit, kind), size);
      cell.reset(strip, count, before + b * units_ + unit, run.reset + b * units_ + unit);
      std::memcpy(gate_of(sums, b, units, unit, 0), strip.gates[0], size);
    });
  }

  // The states after a step, and what of them is written.
  void advance(const Part& part, int64_t t, const RecurrentCall& run, UnitRange units, const float* before,
               float* after, float* sums) const {
    const RecurrentCell cell = cell_of(part.direction);
    static constexpr float kNone[kGateStrip]{};
    GateStrip strip;
    for_each_strip(part, units, [&](int64_t b, int64_t unit, int64_t count) {
      const int64_t at = b * units_ + unit;
      const auto size = static_cast<size_t>(count) * sizeof(float);
      const bool is_there = t < length_of(part.first + b, run);
      if (!is_there) {
        std::memcpy(after + at, before + at, size);
      } else {
        // The second gate of a GRU is done with.
        for (int64_t kind = 0; kind < arrangement_.sums; ++kind) {
          const int64_t from = n_.kind == CellKind::kGru && kind > 0 ? 2 : kind;
          std::memcpy(strip.gates[kind], gate_of(sums, b, units, unit, from), size);
        }
        switch (n_.kind) {
          case CellKind::kRnn:
            cell.rnn(strip, count, after + at);
            break;
          case CellKind::kLstm:
            cell.lstm(strip, count, n_.peepholes.is_there() ? run.peepholes + unit : nullptr, units_,
                      run.c + at, after + at);
            break;
          case CellKind::kGru:
            cell.gru(strip, count, before + at, after + at);
            break;
          case CellKind::kLinearGru:
            cell.linear_gru(strip, count, before + at, after + at);
            break;
        }
      }
      if (n_.sequence.is_there())
        store_states(n_.sequence, t, part, b, unit, count, is_there ? after + at : kNone, run);
    });
  }

  void store_states(const LayerTensor& to, int64_t t, const Part& part, int64_t b, int64_t unit,
                    int64_t count, const float* from, const RecurrentCall& run) const {
    const auto& strides = to.strides;
    store_row<T>(from, strides[3], n_.there(unit, count),
                 run.out(to) + t * strides[0] + part.direction * strides[1] + (part.first + b) * strides[2] +
                     unit * strides[3]);
  }

  // The last states, and zeros behind all sequences.
  void end(const Part& part, int64_t steps, const RecurrentCall& run, UnitRange units, const float* h) const {
    static constexpr float kNone[kGateStrip]{};
    for_each_strip(part, units, [&](int64_t b, int64_t unit, int64_t count) {
      const int64_t at = b * units_ + unit;
      if (n_.single.is_there()) store_states(n_.single, 0, part, b, unit, count, h + at, run);
      if (n_.single_cell.is_there()) store_states(n_.single_cell, 0, part, b, unit, count, run.c + at, run);
    });
    for (int64_t t = steps; n_.sequence.is_there() && t < n_.steps; ++t) {
      for_each_strip(part, units, [&](int64_t b, int64_t unit, int64_t count) {
        store_states(n_.sequence, t, part, b, unit, count, kNone, run);
      });
    }
  }

  RecurrentLayer n_;
  Arrangement arrangement_;
  int64_t units_;
  int64_t sums_;  // of a sequence and a step
  size_t inputs_;
  std::shared_ptr<const KnownInputs> known_;  // null where nothing is
};

ANYDML_ISA_END
