// Statistics of groups of elements, and then each element by those of its group: two passes over memory, or
// one where a group stays in the cache.
//
// The elements of a tile are gone through in chunks that stay in the first cache, so that an operation may
// read a chunk twice. Where there are few tiles, each is cut into parts, whose number depends on sizes alone;
// their states are put together when all are there.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "normalization/activation.h"
#include "normalization/direct_gradients.h"
#include "normalization/geometry.h"
#include "normalization/runs.h"
#include "normalization/statistics.h"
#include "normalization/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

inline constexpr size_t kMostInputs = 5;

// The tensors of a plan, inputs first.
struct Operands {
  size_t inputs = 0;
  size_t outputs = 0;
  std::array<bool, kMostTensors> is_present{};
  std::array<Load, kMostInputs> loads{};  // null for what is no input, or absent
  Store store = nullptr;                  // all outputs have one type
  int64_t item = 0;

  Operands(const std::vector<Layout>& in, const std::vector<Layout>& out)
      : inputs(in.size()),
        outputs(out.size()),
        store(store_of(tensor(out, 0).type)),
        item(size_of(out[0].type)) {
    require(inputs <= kMostInputs && inputs + outputs <= kMostTensors, "too many tensors");
    for (size_t k = 0; k < inputs; ++k) {
      is_present[k] = in[k].present;
      if (is_present[k]) loads[k] = load_of(in[k].type);
      require(!is_present[k] || loads[k] != nullptr, "an input is of no float type");
    }
    for (size_t k = 0; k < outputs; ++k) is_present[inputs + k] = out[k].present;
    require(store != nullptr, "an output is of no float type");
  }

  // Those that are read or written element by element, in bytes.
  int64_t bytes(int64_t elements) const {
    const auto count = std::count(is_present.begin(), is_present.end(), true);
    return elements * item * static_cast<int64_t>(count);
  }
};

// Buffers of runs, which know what they hold: what is read again, or is the same for many runs, stays.
class Buffers {
 public:
  explicit Buffers(const Operands& operands) : operands_(operands) {
    for (size_t k = 0; k < kMostInputs; ++k) pointers_[k] = runs_[k];
  }

  void load(size_t input, const std::byte* from, int64_t step, int64_t count) {
    Held& held = held_[input];
    if (held.from == from && held.step == step && held.count >= count) return;
    operands_.loads[input](from, step, count, runs_[input]);
    held = {from, step, count};
  }

  const double* const* runs() const { return pointers_.data(); }

 private:
  struct Held {
    const std::byte* from = nullptr;
    int64_t step = 0;
    int64_t count = 0;
  };

  const Operands& operands_;
  std::array<Held, kMostInputs> held_{};
  std::array<const double*, kMostInputs> pointers_{};
  alignas(64) double runs_[kMostInputs][kRun];
};

// Whether gradients of batch normalisation of this geometry are packed runs, as they lie in memory.
inline bool may_be_direct(const Geometry& geometry, const Operands& operands, const RunActivation& activation,
                          const std::vector<Layout>& inputs) {
  if (activation.has_program() || (geometry.by_columns() && geometry.summed.size() > 1)) return false;
  for (const size_t k : {size_t{0}, size_t{1}, operands.inputs}) {
    if (geometry.run.steps[k] != operands.item) return false;
  }
  const DataType type = operands.item == sizeof(float) ? DataType::kFloat32 : DataType::kFloat16;
  return inputs[0].type == type && inputs[1].type == type;
}

// Rows of few columns that are gone over as one, where they follow each other in all tensors: so many that
// these are whole vectors.
inline int64_t rows_together(const Geometry& geometry, const Operands& operands) {
  const int64_t width = geometry.run.size;
  const int64_t count = kLanes / std::gcd(kLanes, width);
  if (geometry.summed.empty() || width * count > kRun) return 1;
  for (const size_t k : {size_t{0}, size_t{1}, operands.inputs}) {
    if (geometry.summed[0].steps[k] != width * operands.item) return 1;
  }
  return count;
}

template <class Op>
class GroupedPlan final : public Plan {
 public:
  GroupedPlan(Op op, Geometry geometry, const Operands& operands, RunActivation activation,
              const std::vector<Layout>& inputs, std::string description)
      : Plan(std::move(description)),
        op_(op),
        geometry_(std::move(geometry)),
        operands_(operands),
        activation_(activation),
        by_columns_(geometry_.by_columns()),
        is_direct_(kHasDirect && may_be_direct(geometry_, operands_, activation_, inputs)),
        is_streamed_(geometry_.elements() * operands_.item >= kStreamFrom),
        tiles_(geometry_.tiles()),
        units_(geometry_.units()),
        chunk_(std::max<int64_t>(1, kChunkElements / geometry_.longest())),
        work_(std::max(operands.bytes(geometry_.elements()), geometry_.elements() * kBufferWork)) {
    if (is_direct_ && by_columns_) together_ = rows_together(geometry_, operands_);
    if (tiles_ < kFewTiles) {
      const int64_t most = std::min(units_, kFewTiles * 4 / tiles_);
      parts_ =
          std::clamp<int64_t>(geometry_.elements() / tiles_ / kPartElements, 1, std::max<int64_t>(1, most));
    }
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    std::array<std::byte*, kMostTensors> tensors{};
    for (size_t k = 0; k < operands_.inputs; ++k) {
      tensors[k] = static_cast<std::byte*>(const_cast<void*>(inputs[k]));  // which is only read
    }
    for (size_t k = 0; k < operands_.outputs; ++k) {
      tensors[operands_.inputs + k] = static_cast<std::byte*>(outputs[k]);
    }
    run_on(tensors);
  }

 private:
  using Tensors = std::array<std::byte*, kMostTensors>;

  // A tile: the addresses of its first elements, and its columns.
  struct Tile {
    Tensors at{};
    int64_t width = 1;
  };

  Tile tile_at(const Tensors& tensors, int64_t number) const {
    const int64_t pieces = by_columns_ ? geometry_.pieces() : 1;
    const Walk walk(geometry_.kept, number / pieces);
    const int64_t first = number % pieces * kRun;
    Tile tile;
    if (by_columns_) tile.width = std::min(kRun, geometry_.run.size - first);
    for (size_t k = 0; k < kMostTensors; ++k) {
      if (tensors[k] == nullptr) continue;
      tile.at[k] = tensors[k] + walk.offset(k) + (by_columns_ ? first * geometry_.run.steps[k] : 0);
    }
    return tile;
  }

  // Calls body(run, at) for the units of a tile from `begin` to before `end`, with the inputs of a mask, and
  // with what is added to addresses.
  template <bool kColumns, unsigned kMask, class Body>
  void for_units(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers, const Body& body) const {
    const Axis& run = geometry_.run;
    const int64_t pieces = kColumns ? 1 : geometry_.pieces();
    Walk walk(geometry_.summed, begin / pieces);
    int64_t piece = begin % pieces;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = piece * kRun;
      const int64_t count = kColumns ? tile.width : std::min(kRun, run.size - first);
      const auto moved = [&](size_t k) { return walk.offset(k) + first * run.steps[k]; };
      for (size_t k = 0; k < kMostInputs; ++k) {
        if ((kMask >> k & 1) != 0 && operands_.loads[k] != nullptr) {
          buffers.load(k, tile.at[k] + moved(k), run.steps[k], count);
        }
      }
      body(Run{buffers.runs(), count, walk.number() + first * run.number, run.number}, moved);
      if (++piece == pieces) {
        piece = 0;
        walk.advance();
      }
    }
  }

  // The elements of a group that are in some units.
  int64_t elements_of(int64_t begin, int64_t end) const {
    if (by_columns_) return end - begin;
    const int64_t pieces = geometry_.pieces();
    const auto before = [&](int64_t unit) {
      return unit / pieces * geometry_.run.size + std::min(unit % pieces * kRun, geometry_.run.size);
    };
    return before(end) - before(begin);
  }

  void load_parameters(const Tile& tile, Buffers& buffers) const {
    for (size_t k = 0; k < kMostInputs; ++k) {
      if ((Op::kParameters >> k & 1) == 0) continue;
      buffers.load(k, tile.at[k], by_columns_ ? geometry_.run.steps[k] : 0, tile.width);
    }
  }

  // The state of a tile's units.
  void accumulate(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers, State& state) const {
    by_columns_ ? accumulate_units<true>(tile, begin, end, buffers, state)
                : accumulate_units<false>(tile, begin, end, buffers, state);
  }
  // The state of all parts of a tile, put together in their order.
  void accumulate_parts(const Tile& tile, Buffers& buffers, State& state) const {
    State part;
    for (int64_t i = 0; i < parts_; ++i) {
      State& own = i == 0 ? state : part;
      accumulate(tile, part_begin(i), part_begin(i + 1), buffers, own);
      if (i > 0) merge(state, part, tile);
    }
  }
  void merge(State& state, const State& part, const Tile& tile) const {
    op_.merge(state, part, tile.width);
    state.count += part.count;
  }
  template <bool kColumns>
  ANYDML_NOINLINE void accumulate_units(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                                        State& state) const {
    State part, factors;
    if constexpr (kHasDirect) op_.set_factors(factors, tile.width, buffers.runs());
    for (int64_t from = begin; from < end; from += chunk_) {
      const int64_t to = std::min(from + chunk_, end);
      State& own = from == begin ? state : part;
      own.count = elements_of(from, to);
      if (is_direct_) {
        directly([&]<class T>(T) {
          sum_directly<T, kColumns>(tile, from, to, buffers, own);
          if (is_mapped_at_once()) map_directly<T, kColumns>(tile, from, to, buffers, factors);
        });
      } else {
        const auto units = [&](const auto& body) {
          for_units<kColumns, Op::kSummed>(tile, from, to, buffers,
                                           [&](const Run& run, const auto&) { body(run); });
        };
        op_.template chunk<kColumns>(units, tile.width, buffers.runs(), own);
      }
      if (from != begin) merge(state, part, tile);
    }
    if (is_mapped_at_once()) stream_fence();
  }

  // Makes of a state what elements are mapped by, and writes what is an output.
  void finish(const Tile& tile, const Buffers& buffers, State& state) const {
    op_.finish(state, tile.width, buffers.runs());
    for (size_t k = 1; k < operands_.outputs; ++k) {
      const size_t tensor = operands_.inputs + k;
      operands_.store(state.of[Op::kWritten[k - 1]], tile.width, tile.at[tensor],
                      geometry_.run.steps[tensor]);
    }
  }

  void map(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers, const State& state) const {
    by_columns_ ? map_units<true>(tile, begin, end, buffers, state)
                : map_units<false>(tile, begin, end, buffers, state);
  }
  template <bool kColumns>
  ANYDML_NOINLINE void map_units(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                                 const State& state) const {
    if (is_direct_) {
      return directly([&]<class T>(T) { map_directly<T, kColumns>(tile, begin, end, buffers, state); });
    }
    alignas(64) double y[kRun];
    const size_t out = operands_.inputs;
    for_units<kColumns, Op::kMapped>(tile, begin, end, buffers, [&](const Run& run, const auto& moved) {
      op_.template map<kColumns>(run, state, buffers.runs(), y);
      activation_.apply(y, run.count);
      operands_.store(y, run.count, tile.at[out] + moved(out), geometry_.run.steps[out]);
    });
  }

  // Operations on packed runs as they lie in memory.
  static constexpr bool kHasDirect = std::is_same_v<Op, BatchGradients>;

  // Whether elements are mapped by what is known before anything is summed: while their chunk is in the first
  // cache.
  bool is_mapped_at_once() const {
    if constexpr (kHasDirect) return is_direct_ && !op_.is_training;
    return false;
  }

  template <class Body>
  void directly(const Body& body) const {
    if constexpr (kHasDirect) operands_.item == sizeof(float) ? body(float{}) : body(Half(0.0F));
  }

  // Calls body(runs, at) for rows of a tile of columns from `begin` to before `end`: for those that are gone
  // over as one, at most `most` of them at once, and for what is left of them.
  template <class Body>
  void for_rows(const Tile& tile, int64_t begin, int64_t end, int64_t most, const Body& body) const {
    const Steps steps = geometry_.summed.empty() ? Steps{} : geometry_.summed[0].steps;
    for (int64_t row = begin; row < end;) {
      const int64_t count = std::min(most, (end - row) / together_);
      const int64_t rows = count > 0 ? count * together_ : end - row;
      const int64_t each = rows / std::max<int64_t>(count, 1);
      body(DirectRuns{tile.at[0] + row * steps[0], tile.at[1] + row * steps[1], each * steps[0],
                      each * steps[1], std::max<int64_t>(count, 1), each * tile.width, is_streamed_},
           tile.at[operands_.inputs] + row * steps[operands_.inputs], each * steps[operands_.inputs]);
      row += rows;
    }
  }

  // Likewise for units of a group from `begin` to before `end`, of which those of a run, but at most `most`
  // of them, are one.
  template <class Body>
  void for_pieces(const Tile& tile, int64_t begin, int64_t end, int64_t most, const Body& body) const {
    const size_t out = operands_.inputs;
    const int64_t pieces = geometry_.pieces();
    Walk walk(geometry_.summed, begin / pieces);
    int64_t piece = begin % pieces;
    for (int64_t unit = begin; unit < end;) {
      const int64_t count = std::min({most, pieces - piece, end - unit});
      const int64_t first = piece * kRun;
      const int64_t offset = first * operands_.item;
      const int64_t width = std::min(count * kRun, geometry_.run.size - first);
      body(DirectRuns{tile.at[0] + walk.offset(0) + offset, tile.at[1] + walk.offset(1) + offset, 0, 0, 1,
                      width},
           tile.at[out] + walk.offset(out) + offset, 0);
      unit += count;
      piece += count;
      if (piece == pieces) {
        piece = 0;
        walk.advance();
      }
    }
  }

  template <class T, bool kColumns>
  void sum_directly(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers, State& state) const {
    const double* mean = buffers.runs()[2];
    fill<kColumns>(state.of[0], tile.width, 0);
    fill<kColumns>(state.of[1], tile.width, 0);
    if constexpr (kColumns) {
      alignas(64) double repeated[kRun];
      if (together_ > 1) mean = repeat(mean, tile.width, repeated);
      for_rows(tile, begin, end, end - begin, [&](const DirectRuns& runs, std::byte*, int64_t) {
        alignas(64) double found[2][kRun];
        DirectGradients<T>::template sum<true>(runs, mean, found[0], found[1]);
        for (size_t k = 0; k < 2; ++k) {
          for (int64_t row = 0; row < runs.width; row += tile.width) {
            for (int64_t i = 0; i < tile.width; ++i) state.of[k][i] += found[k][row + i];
          }
        }
      });
    } else {
      for_pieces(tile, begin, end, units_, [&](const DirectRuns& run, std::byte*, int64_t) {
        DirectGradients<T>::template sum<false>(run, mean, state.of[0], state.of[1]);
      });
      add_lanes<false>(state.of[0]);
      add_lanes<false>(state.of[1]);
    }
  }

  // Numbers of columns, as often as there are rows that are one.
  const double* repeat(const double* numbers, int64_t width, double* to) const {
    for (int64_t row = 0; row < together_; ++row) std::copy_n(numbers, width, to + row * width);
    return to;
  }

  template <class T, bool kColumns>
  void map_directly(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                    const State& state) const {
    const size_t out = operands_.inputs;
    alignas(64) double taken[kRun];
    if (op_.is_training) {
      const double share = 1 / static_cast<double>(state.count);
      for (int64_t i = 0; i < tile.width; ++i) taken[i] = state.of[0][i] * share;
    }
    const double* parameters[] = {buffers.runs()[2], taken, state.of[2], state.of[3]};
    alignas(64) double repeated[4][kRun];
    for (size_t k = op_.is_training ? 0 : 3; together_ > 1 && k < 4; ++k)
      parameters[k] = repeat(parameters[k], tile.width, repeated[k]);
    const bool is_streamed = is_streamed_ && tile.at[0] != tile.at[out] && tile.at[1] != tile.at[out];
    const auto map_runs = [&](const DirectRuns& runs, std::byte* to, int64_t step) ANYDML_INLINE_LAMBDA {
      op_.is_training ? DirectGradients<T>::template map<kColumns, true>(runs, parameters, to, step)
                      : DirectGradients<T>::template map<kColumns, false>(runs, parameters, to, step);
    };
    // Calls put(runs, to, step) for runs of so many elements.
    const auto for_each = [&](int64_t from, int64_t behind, int64_t elements,
                              const auto& put) ANYDML_INLINE_LAMBDA {
      if constexpr (kColumns) {
        for_rows(tile, from, behind, std::max<int64_t>(1, elements / (tile.width * together_)), put);
      } else {
        for_pieces(tile, from, behind, elements / kRun, put);
      }
    };
    // Rows of columns stay in the first cache until all of these are done.
    if (!is_streamed) return for_each(begin, end, kChunkElements, map_runs);
    // Large gradients that lie over no input go past the caches, by way of a buffer. Of rows the last ones
    // come first, as these were read last, and may be in a cache.
    constexpr int64_t kRoom = 4 * kRun;
    alignas(64) std::byte room[kRoom * sizeof(T)];
    std::optional<LineWriter> writer;
    std::byte* next = nullptr;
    const int64_t together = kColumns ? units_ : geometry_.pieces();
    for (int64_t behind = end; behind > begin;) {
      const int64_t first = std::max(begin, (behind - 1) / together * together);
      for_each(first, behind, kRoom, [&](const DirectRuns& runs, std::byte* to, int64_t step) {
        const int64_t size = runs.width * operands_.item;
        map_runs(runs, room, size);
        for (int64_t i = 0; i < runs.count; ++i, to += step) {
          if (to != next) writer.emplace(to);
          if (op_.is_training && kColumns) prefetch_lines(runs.x + i * runs.x_step + kPrefetchDistance, size);
          writer->append(room + i * size, size,
                         kColumns ? runs.dy + i * runs.dy_step + kPrefetchDistance : nullptr);
          next = to + size;
        }
      });
      behind = first;
    }
  }

  void run_on(const Tensors& tensors) const {
    const int threads = threads_for(work_);
    // Of many tiles each is one thread's, whose caches may have it when it is read again.
    if (parts_ == 1 || tiles_ >= threads * kTilesEach) {
      const int64_t calls = std::min(calls_for(work_, threads), tiles_);
      parallel_for(calls, threads, [&](int64_t call) {
        Buffers buffers(operands_);
        State state;
        const int64_t end = share_begin(call + 1, calls, tiles_);
        for (int64_t number = share_begin(call, calls, tiles_); number < end; ++number) {
          const Tile tile = tile_at(tensors, number);
          load_parameters(tile, buffers);
          accumulate_parts(tile, buffers, state);
          finish(tile, buffers, state);
          if (!is_mapped_at_once()) map(tile, 0, units_, buffers, state);
        }
      });
      return;
    }
    std::vector<double> kept(static_cast<size_t>(tiles_ * parts_ * slot()));
    parallel_for(tiles_ * parts_, threads, [&](int64_t i) {
      Buffers buffers(operands_);
      State state;
      const Tile tile = tile_at(tensors, i / parts_);
      load_parameters(tile, buffers);
      const int64_t part = i % parts_;
      accumulate(tile, part_begin(part), part_begin(part + 1), buffers, state);
      keep(state, kept.data() + i * slot());
    });
    parallel_for(tiles_, threads, [&](int64_t number) {
      Buffers buffers(operands_);
      State state, part;
      const Tile tile = tile_at(tensors, number);
      load_parameters(tile, buffers);
      for (int64_t i = 0; i < parts_; ++i) {
        State& own = i == 0 ? state : part;
        take(kept.data() + (number * parts_ + i) * slot(), own);
        own.count = elements_of(part_begin(i), part_begin(i + 1));
        if (i > 0) merge(state, part, tile);
      }
      finish(tile, buffers, state);
      keep(state, kept.data() + number * parts_ * slot());
    });
    if (is_mapped_at_once()) return;
    // Of large tensors the last parts first, as these were read last, and may be in a cache.
    parallel_for(tiles_ * parts_, threads, [&](int64_t number) {
      const int64_t i = is_streamed_ ? tiles_ * parts_ - 1 - number : number;
      Buffers buffers(operands_);
      State state;
      const Tile tile = tile_at(tensors, i / parts_);
      load_parameters(tile, buffers);
      take(kept.data() + i / parts_ * parts_ * slot(), state);
      state.count = elements_of(0, units_);
      map(tile, part_begin(i % parts_), part_begin(i % parts_ + 1), buffers, state);
    });
  }

  int64_t part_begin(int64_t part) const { return share_begin(part, parts_, units_); }

  // States that are kept until all are there.
  int64_t width() const { return by_columns_ ? geometry_.longest() : 1; }
  int64_t slot() const { return width() * static_cast<int64_t>(State::kNumbers); }
  void keep(const State& state, double* to) const {
    for (const auto& numbers : state.of) to = std::copy_n(numbers, width(), to);
  }
  void take(const double* from, State& state) const {
    for (auto& numbers : state.of) {
      std::copy_n(from, width(), numbers);
      from += width();
    }
  }

  Op op_;
  Geometry geometry_;
  Operands operands_;
  RunActivation activation_;
  bool by_columns_;
  bool is_direct_;
  bool is_streamed_;  // whether elements that are written are more than the caches hold
  int64_t tiles_;
  int64_t units_;
  int64_t chunk_;  // units
  int64_t work_;
  int64_t parts_ = 1;
  int64_t together_ = 1;  // rows of columns
};

ANYDML_ISA_END
