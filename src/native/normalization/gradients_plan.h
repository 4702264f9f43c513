// Gradients of batch normalisation that are computed from packed runs as these lie in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "normalization/activation.h"
#include "normalization/direct_gradients.h"
#include "normalization/geometry.h"
#include "normalization/operands.h"
#include "normalization/runs.h"
#include "normalization/statistics.h"
#include "normalization/statistics_plan.h"
#include "normalization/tuning.h"
#include "platform/isa.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

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

// Without training the gradients need no sums, and are written while their chunk is in the first cache.
template <class T>
class GradientsPlan final : public StatisticsPlan<BatchGradients> {
 public:
  GradientsPlan(BatchGradients op, Geometry geometry, const Operands& operands, RunActivation activation,
                std::string description)
      : StatisticsPlan(op, std::move(geometry), operands, activation, std::move(description)),
        together_(by_columns_ ? rows_together(geometry_, operands_) : 1) {}

 private:
  void accumulate(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                  State& state) const override {
    by_columns_ ? accumulate_units<true>(tile, begin, end, buffers, state)
                : accumulate_units<false>(tile, begin, end, buffers, state);
  }
  template <bool kColumns>
  ANYDML_NOINLINE void accumulate_units(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
                                        State& state) const {
    State factors;
    op_.set_factors(factors, tile.width, buffers.runs());
    for_chunks(tile.width, begin, end, state, [&](int64_t from, int64_t to, State& own) {
      sum_units<kColumns>(tile, from, to, buffers, own);
      if (is_mapped_at_once()) map_units<kColumns>(tile, from, to, buffers, factors);
    });
    if (is_mapped_at_once()) stream_fence();
  }

  void map(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
           const State& state) const override {
    by_columns_ ? map_units<true>(tile, begin, end, buffers, state)
                : map_units<false>(tile, begin, end, buffers, state);
  }

  bool is_mapped_at_once() const override { return !op_.is_training; }

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

  template <bool kColumns>
  void sum_units(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers, State& state) const {
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

  template <bool kColumns>
  ANYDML_NOINLINE void map_units(const Tile& tile, int64_t begin, int64_t end, Buffers& buffers,
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

  int64_t together_;  // rows of columns
};

ANYDML_ISA_END
