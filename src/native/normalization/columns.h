// Statistics and results of columns: groups side by side whose elements are a step apart, of which a buffer,
// or the caches, hold some whole.
#pragma once

#include <algorithm>
#include <array>
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
#include "normalization/line.h"
#include "normalization/lines.h"
#include "normalization/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "simd/half.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Of columns that a buffer holds whole: all but what an operation computes of a line, so that it is compiled
// once.
class ColumnsPlan : public Plan {
 public:
  ColumnsPlan(bool needs_room, Geometry geometry, const std::vector<Layout>& inputs, bool is_half,
              std::string description)
      : Plan(std::move(description)),
        needs_room_(needs_room),
        geometry_(std::move(geometry)),
        inputs_(inputs.size()),
        is_half_(is_half),
        item_(is_half ? sizeof(Half) : sizeof(float)),
        rows_(geometry_.summed[0].size) {
    int64_t present = 0;
    for (size_t k = 0; k < inputs_; ++k) present += (is_there_[k] = inputs[k].present) ? 1 : 0;
    is_large_ = geometry_.elements() * item_ >= kStreamFrom;
    const int64_t lines = divided_up(geometry_.run.size, kLanes);
    const int64_t numbers = is_large_ ? ColumnBlock::kBytesOfLarge / item_ : ColumnBlock::kNumbers;
    const int64_t most = std::clamp<int64_t>(numbers / (rows_ * kLanes * present), kFewestAtOnce,
                                             is_large_ ? ColumnBlock::kMostOfLarge : ColumnBlock::kMostLines);
    // Blocks of about as many, whose pieces are whole lines of the cache.
    blocks_ = divided_up(lines, most);
    at_once_ = divided_up(divided_up(lines, blocks_), kFewestAtOnce) * kFewestAtOnce;
    at_once_ = std::min({lines, most, at_once_});
    blocks_ = divided_up(lines, at_once_);
    by_groups_ = is_large_ && is_half_;
    const int64_t near = ColumnBlock::kNumbers / 2 / (rows_ * kLanes * present);
    group_ = by_groups_ ? std::clamp(near, std::min(at_once_, kFewestAtOnce), at_once_) : at_once_;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t work = geometry_.elements() * (needs_room_ ? kSoftmaxWork : kLineWork);
    const int threads = threads_for(work);
    const int64_t all = count_of(geometry_.kept) * blocks_;
    const int64_t calls = std::min(calls_for(work, threads), all);
    const bool streams = is_large_ && inputs[0] != outputs[0];
    // Singles in the caches are computed where they lie.
    const bool is_direct = !is_half_ && !is_large_;
    parallel_for(calls, threads, [&](int64_t call) {
      std::vector<ColumnBlock> buffers;
      for (size_t k = 0; k < inputs_; ++k) buffers.emplace_back(is_there_[k] ? rows_ : 0, group_, is_half_);
      const Scratch room(needs_room_ ? (rows_ + 1) * kLineBytes : 0);
      BlockRows results(by_groups_ ? rows_ : 0, at_once_ * kLanes * item_, streams);
      const int64_t end = share_begin(call + 1, calls, all);
      for (int64_t i = share_begin(call, calls, all); i < end; ++i) {
        const Block block = block_at(i);
        const auto from = [&](size_t k) {
          return static_cast<const std::byte*>(inputs[k]) + block.offsets[k];
        };
        std::byte* const to = static_cast<std::byte*>(outputs[0]) + block.offsets[inputs_];
        const int64_t lines = divided_up(block.columns, kLanes);
        const int64_t direct = is_direct ? block.columns / kLanes : 0;
        for (int64_t n = 0; n < direct; ++n) {
          Line line{{}, to + n * kLineBytes, step(inputs_), rows_, rows_, kLanes, 0, rows_, room.floats()};
          for (size_t k = 0; k < inputs_; ++k) {
            const int64_t item = geometry_.run.steps[k];
            if (is_there_[k]) line.in[k] = {from(k) + n * kLanes * item, step(k), item == 0};
          }
          compute(line);
        }
        const Block next = block_at(std::min(i + 1, end - 1));
        const auto* const ahead = static_cast<const std::byte*>(inputs[0]) + next.offsets[0];
        for (int64_t first = direct; first < lines; first += group_) {
          const int64_t before = first * kLanes;
          const int64_t columns = std::min(group_ * kLanes, block.columns - before);
          for (size_t k = 0; k < inputs_; ++k) {
            const int64_t item = geometry_.run.steps[k];
            if (is_there_[k]) buffers[k].load(from(k) + before * item, step(k), rows_, columns, item == 0);
          }
          for (int64_t n = 0; n < divided_up(columns, kLanes); ++n) {
            if (is_large_) prefetch_share(first + n, lines, ahead, step(0), rows_, next.columns * item_);
            if (by_groups_) results.send_share(first + n, lines);
            Line line = buffers[0].as_line(n, rows_, room.floats());
            for (size_t k = 1; k < inputs_; ++k) line.in[k] = {buffers[k].line(n), kLineBytes, false};
            compute(line);
          }
          if (by_groups_) {
            buffers[0].put(rows_, columns, results.begin() + before * item_, results.step(), false);
          } else {
            buffers[0].put(rows_, columns, to + before * item_, step(inputs_), streams);
          }
        }
        if (by_groups_) results.finish(rows_, block.columns * item_, to, step(inputs_));
      }
      results.send_share(0, 1);
      if (streams) stream_fence();
    });
  }

 protected:
  virtual void compute(const Line& line) const = 0;

 private:
  static constexpr int64_t kFewestAtOnce = 2;

  struct Block {
    Steps offsets{};
    int64_t columns;
  };
  Block block_at(int64_t number) const {
    const Walk walk(geometry_.kept, number / blocks_);
    const int64_t first = number % blocks_ * at_once_ * kLanes;
    Block block{{}, std::min(at_once_ * kLanes, geometry_.run.size - first)};
    for (size_t k = 0; k <= inputs_; ++k) {
      block.offsets[k] = walk.offset(k) + first * geometry_.run.steps[k];
    }
    return block;
  }
  int64_t step(size_t tensor) const { return geometry_.summed[0].steps[tensor]; }

  bool needs_room_;
  Geometry geometry_;
  size_t inputs_;
  bool is_half_;
  int64_t item_;
  int64_t rows_;
  bool is_large_ = false;
  std::array<bool, 4> is_there_{};
  int64_t at_once_ = 1;  // lines of a block
  int64_t blocks_ = 1;
  bool by_groups_ = false;
  int64_t group_ = 1;  // lines that are loaded at once, where by groups into the first cache
};

template <class Op>
class ColumnsOf final : public ColumnsPlan {
 public:
  ColumnsOf(const Op& op, const Geometry& geometry, const std::vector<Layout>& inputs, bool is_half,
            std::string description)
      : ColumnsPlan(Op::kNeedsRoom, geometry, inputs, is_half, std::move(description)), op_(op) {}

 protected:
  void compute(const Line& line) const override { op_.template compute<float, true>(line); }

 private:
  Op op_;
};

// Null where groups are no columns that a buffer holds.
template <class Op>
std::unique_ptr<Plan> columns_of(const Op& op, const Request& request, const Geometry& geometry,
                                 const std::string& description) {
  if (!geometry.by_columns() || request.attributes.has("Program") ||
      !has_lines(geometry, request.inputs, request.outputs)) {
    return nullptr;
  }
  return std::make_unique<ColumnsOf<Op>>(op, geometry, request.inputs,
                                         request.outputs[0].type == DataType::kFloat16,
                                         std::string(description).append(", at once"));
}

ANYDML_ISA_END
