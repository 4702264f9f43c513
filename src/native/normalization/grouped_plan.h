// Statistics of groups of elements, and then each element by those of its group: two passes over memory, or
// one where a group stays in the cache.
//
// The elements of a tile are gone through in chunks that stay in the first cache, so that an operation may
// read a chunk twice. Where there are few tiles, each is cut into parts, whose number depends on sizes alone;
// their states are put together when all are there. What is done with a chunk is for the plans of
// statistics_plan.h and gradients_plan.h to say.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "normalization/geometry.h"
#include "normalization/operands.h"
#include "normalization/runs.h"
#include "normalization/statistics.h"
#include "normalization/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"

ANYDML_ISA_BEGIN

class GroupedPlan : public Plan {
 public:
  // `parameters` is a mask of the inputs with one element for each group.
  GroupedPlan(Geometry geometry, const Operands& operands, unsigned parameters, std::string description)
      : Plan(std::move(description)),
        geometry_(std::move(geometry)),
        operands_(operands),
        parameters_(parameters),
        by_columns_(geometry_.by_columns()),
        is_streamed_(geometry_.elements() * operands_.item >= kStreamFrom),
        units_(geometry_.units()),
        tiles_(geometry_.tiles()),
        chunk_(std::max<int64_t>(1, kChunkElements / geometry_.longest())),
        work_(std::max(operands.bytes(geometry_.elements()), geometry_.elements() * kBufferWork)) {
    if (tiles_ < kFewTiles) {
      const int64_t most = std::min(units_, kFewTiles * 4 / tiles_);
      parts_ =
          std::clamp<int64_t>(geometry_.elements() / tiles_ / kPartElements, 1, std::max<int64_t>(1, most));
    }
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    Tensors tensors{};
    for (size_t k = 0; k < operands_.inputs; ++k) {
      tensors[k] = static_cast<std::byte*>(const_cast<void*>(inputs[k]));  // which is only read
    }
    for (size_t k = 0; k < operands_.outputs; ++k) {
      tensors[operands_.inputs + k] = static_cast<std::byte*>(outputs[k]);
    }
    run_on(tensors);
  }

 protected:
  using Tensors = std::array<std::byte*, kMostTensors>;

  // A tile: the addresses of its first elements, and its columns.
  struct Tile {
    Tensors at{};
    int64_t width = 1;
  };

  // The state of a tile's units from `begin` to before `end`.
  virtual void accumulate(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                          State& state) const = 0;
  // Adds what a part of its own came to.
  virtual void merge(State& state, const State& part, int64_t width) const = 0;
  // Makes of a state what elements are mapped by, and writes what is an output.
  virtual void finish(const Tile& tile, const Buffers& buffers, State& state) const = 0;
  virtual void map(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                   const State& state) const = 0;
  // Whether accumulate() maps elements as well.
  virtual bool is_mapped_at_once() const { return false; }

  // Calls sum(from, to, state) for the chunks of some units, and puts together what they came to.
  template <class Sum>
  void for_chunks(int64_t width, int64_t begin, int64_t end, State& state, const Sum& sum) const {
    State part;
    for (int64_t from = begin; from < end; from += chunk_) {
      const int64_t to = std::min(from + chunk_, end);
      State& own = from == begin ? state : part;
      own.count = elements_of(from, to);
      sum(from, to, own);
      if (from != begin) join(state, part, width);
    }
  }

  // Calls body(run, moved) for the units of a tile from `begin` to before `end`, with the inputs of a mask,
  // and with what is added to addresses.
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

  Geometry geometry_;
  Operands operands_;
  unsigned parameters_;
  bool by_columns_;
  bool is_streamed_;  // whether elements that are written are more than the caches hold
  int64_t units_;     // of a tile

 private:
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
      if ((parameters_ >> k & 1) == 0) continue;
      buffers.load(k, tile.at[k], by_columns_ ? geometry_.run.steps[k] : 0, tile.width);
    }
  }

  void join(State& state, const State& part, int64_t width) const {
    merge(state, part, width);
    state.count += part.count;
  }
  // The state of all parts of a tile, put together in their order.
  void accumulate_parts(const Tile& tile, Buffers& buffers, State& state) const {
    State part;
    for (int64_t i = 0; i < parts_; ++i) {
      State& own = i == 0 ? state : part;
      accumulate(tile, part_begin(i), part_begin(i + 1), buffers, own);
      if (i > 0) join(state, part, tile.width);
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
        if (i > 0) join(state, part, tile.width);
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

  int64_t tiles_;
  int64_t chunk_;  // units
  int64_t work_;
  int64_t parts_ = 1;
};

ANYDML_ISA_END
