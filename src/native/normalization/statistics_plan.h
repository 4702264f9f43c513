// Groups of elements of any layout and type, by operations on runs of double precision: statistics.h's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "normalization/activation.h"
#include "normalization/geometry.h"
#include "normalization/grouped_plan.h"
#include "normalization/operands.h"
#include "normalization/runs.h"
#include "normalization/statistics.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

template <class Op>
class StatisticsPlan : public GroupedPlan {
 public:
  StatisticsPlan(Op op, Geometry geometry, const Operands& operands, RunActivation activation,
                 std::string description)
      : GroupedPlan(std::move(geometry), operands, Op::kParameters, std::move(description)),
        op_(op),
        activation_(activation) {}

 protected:
  void accumulate(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                  State& state) const override {
    by_columns_ ? accumulate_units<true>(tile, begin, end, buffers, state)
                : accumulate_units<false>(tile, begin, end, buffers, state);
  }

  void merge(State& state, const State& part, int64_t width) const final { op_.merge(state, part, width); }

  void finish(const Tile& tile, const Buffers& buffers, State& state) const final {
    op_.finish(state, tile.width, buffers.runs());
    for (size_t k = 1; k < operands_.outputs; ++k) {
      const size_t tensor = operands_.inputs + k;
      operands_.store(state.of[Op::kWritten[k - 1]], tile.width, tile.at[tensor],
                      geometry_.run.steps[tensor]);
    }
  }

  void map(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
           const State& state) const override {
    by_columns_ ? map_units<true>(tile, begin, end, buffers, state)
                : map_units<false>(tile, begin, end, buffers, state);
  }

  Op op_;

 private:
  template <bool kColumns>
  ANYDML_NOINLINE void accumulate_units(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                                        State& state) const {
    for_chunks(tile.width, begin, end, state, [&](int64_t from, int64_t to, State& own) {
      const auto units = [&](const auto& body) {
        for_units<kColumns, Op::kSummed>(tile, from, to, buffers,
                                         [&](const Run& run, const auto&) { body(run); });
      };
      op_.template chunk<kColumns>(units, tile.width, buffers.runs(), own);
    });
  }

  template <bool kColumns>
  ANYDML_NOINLINE void map_units(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                                 const State& state) const {
    alignas(64) double y[kRun];
    const size_t out = operands_.inputs;
    for_units<kColumns, Op::kMapped>(tile, begin, end, buffers, [&](const Run& run, const auto& moved) {
      op_.template map<kColumns>(run, state, buffers.runs(), y);
      activation_.apply(y, run.count);
      operands_.store(y, run.count, tile.at[out] + moved(out), geometry_.run.steps[out]);
    });
  }

  RunActivation activation_;
};

ANYDML_ISA_END
