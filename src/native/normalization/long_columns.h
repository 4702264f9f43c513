// SOFTMAX, LOG_SOFTMAX and HARDMAX of columns that are longer than the second cache holds of some: cut into
// parts, whose states are put together when all are there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "normalization/column_block.h"
#include "normalization/geometry.h"
#include "normalization/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/half.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Some rows of some columns.
struct ColumnPart {
  const std::byte* in;
  std::byte* out;
  int64_t in_step;  // in bytes from row to row
  int64_t out_step;
  int64_t first;  // the number of its first row
  int64_t rows;
  int64_t columns;
  bool is_half;
  bool is_streamed;  // whether results go past the caches

  int64_t lines() const { return divided_up(columns, kLanes); }

  // Calls body(some of the rows) for up to so many at once.
  template <class Body>
  void for_rows(int64_t most, const Body& body) const {
    for (int64_t row = 0; row < rows; row += most) {
      ColumnPart some = *this;
      some.in += row * in_step;
      some.out += row * out_step;
      some.first += row;
      some.rows = std::min(most, rows - row);
      body(some);
    }
  }
};

template <class Op>
class LongColumnsPlan final : public Plan {
 public:
  LongColumnsPlan(Op op, Geometry geometry, bool is_half, std::string description)
      : Plan(std::move(description)),
        op_(op),
        geometry_(std::move(geometry)),
        is_half_(is_half),
        item_(is_half ? sizeof(Half) : sizeof(float)),
        rows_(geometry_.summed[0].size) {
    const int64_t lines = divided_up(geometry_.run.size, kLanes);
    at_once_ = std::min(lines, Op::kMostLines);
    blocks_ = divided_up(lines, at_once_);
    tiles_ = count_of(geometry_.kept) * blocks_;
    parts_ = std::clamp<int64_t>(rows_ * at_once_ * kLanes / kPartElements, 1,
                                 std::max<int64_t>(1, kFewTiles / tiles_));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(geometry_.elements() * kSoftmaxWork);
    const bool streams = geometry_.elements() * item_ >= kStreamFrom && inputs[0] != outputs[0];
    // Blocks side by side, of which some rows are gone over in turn, as what processors fetch by themselves
    // behind the piece of a row belongs to the next one.
    const int64_t across =
        std::clamp<int64_t>(tiles_ * parts_ / (kCallsEach * threads), 1, std::min(blocks_, kMostAcross));
    const int64_t groups = divided_up(blocks_, across);
    // Calls body(the number of a block's part, some rows of it) for all of them.
    const auto for_parts = [&](const auto& body) {
      parallel_for(count_of(geometry_.kept) * groups * parts_, threads, [&](int64_t i) {
        const Walk walk(geometry_.kept, i / parts_ / groups);
        const int64_t block = i / parts_ % groups * across;
        const int64_t end = std::min(block + across, blocks_);
        const int64_t first = share_begin(i % parts_, parts_, rows_);
        const int64_t rows = share_begin(i % parts_ + 1, parts_, rows_) - first;
        const int64_t at_once = end - block > 1 ? kRowsInTurn : rows;
        for (int64_t row = 0; row < rows; row += at_once) {
          for (int64_t k = block; k < end; ++k) {
            const int64_t column = k * at_once_ * kLanes;
            const auto offset = [&](size_t tensor) {
              return walk.offset(tensor) + column * geometry_.run.steps[tensor] +
                     (first + row) * step(tensor);
            };
            const int64_t tile = i / parts_ / groups * blocks_ + k;
            body(tile * parts_ + i % parts_,
                 ColumnPart{.in = static_cast<const std::byte*>(inputs[0]) + offset(0),
                            .out = static_cast<std::byte*>(outputs[0]) + offset(1),
                            .in_step = step(0),
                            .out_step = step(1),
                            .first = first + row,
                            .rows = std::min(at_once, rows - row),
                            .columns = std::min(at_once_ * kLanes, geometry_.run.size - column),
                            .is_half = is_half_,
                            .is_streamed = streams});
          }
        }
        if (streams) stream_fence();
      });
    };
    std::vector<State> states(static_cast<size_t>(tiles_ * parts_ * at_once_));
    for_parts([&](int64_t i, const ColumnPart& some) { op_.add(states.data() + i * at_once_, some); });
    parallel_for(tiles_ * at_once_, threads, [&](int64_t i) {
      State& all = states[static_cast<size_t>(i / at_once_ * parts_ * at_once_ + i % at_once_)];
      for (int64_t k = 0; k < parts_; ++k) Op::close((&all)[k * at_once_]);
      for (int64_t k = 1; k < parts_; ++k) Op::merge(all, (&all)[k * at_once_]);
      op_.finish(all);
    });
    for_parts([&](int64_t i, const ColumnPart& some) {
      op_.map(states.data() + i / parts_ * parts_ * at_once_, some);
    });
  }

 private:
  using State = typename Op::State;

  static constexpr int64_t kCallsEach = 2;
  static constexpr int64_t kMostAcross = 4;
  static constexpr int64_t kRowsInTurn = 64;

  int64_t step(size_t tensor) const { return geometry_.summed[0].steps[tensor]; }

  Op op_;
  Geometry geometry_;
  bool is_half_;
  int64_t item_;
  int64_t rows_;
  int64_t at_once_ = 1;
  int64_t blocks_ = 1;
  int64_t tiles_ = 1;
  int64_t parts_ = 1;
};

// Null where groups are no columns, or not long.
template <class Op>
std::unique_ptr<Plan> long_columns_of(const Op& op, const Request& request, const Geometry& geometry,
                                      const std::string& description) {
  const DataType type = request.outputs[0].type;
  const int64_t item = size_of(type);
  const Axis& run = geometry.run;
  const bool is_packed = run.steps[0] == item && run.steps[1] == item && request.inputs[0].type == type;
  if (request.attributes.has("Program") || request.inputs.size() != 1 || !geometry.by_columns() ||
      geometry.summed.size() != 1 || !is_packed || geometry.summed[0].size <= kColumnElements) {
    return nullptr;
  }
  return std::make_unique<LongColumnsPlan<Op>>(op, geometry, type == DataType::kFloat16,
                                               std::string(description).append(", in parts"));
}

ANYDML_ISA_END
