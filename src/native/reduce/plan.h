// The plan of a reduction: strips of accumulators, which rows of elements are combined with.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "reduce/geometry.h"
#include "reduce/kernel.h"
#include "reduce/partial.h"
#include "reduce/policy.h"
#include "reduce/strips.h"
#include "reduce/transpose_lines.h"
#include "reduce/tuning.h"
#include "simd/unaligned.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

class ReducePlan final : public Plan {
 public:
  // `largest` is the kernel of the largest elements, for functions that need them: exponentials before they
  // add, indices of rows in place of their own.
  ReducePlan(ReduceProblem problem, ReducePolicy policy, const ReduceKernel& kernel,
             const ReduceKernel* largest, ReduceParameters parameters, std::string description)
      : Plan(std::move(description)),
        geometry_(std::move(problem.geometry)),
        policy_(std::move(policy)),
        kernel_(kernel),
        largest_(largest),
        parameters_(parameters),
        item_(problem.element_size) {
    planes_ = count_of(geometry_.planes);
    reduced_rows_ = count_of(geometry_.outer) * geometry_.rows.size;
    chunks_ = (reduced_rows_ + policy_.chunk_rows - 1) / policy_.chunk_rows;
    bytes_ = planes_ * geometry_.cells.size * geometry_.columns.size * reduced_rows_ * item_;
    is_in_order_ = indices_are_in_order(geometry_);
    has_numbers_ = counts_rows();
  }

  void run(const void* const* inputs, void* const* outputs) const override;

 private:
  bool is_by_rows() const { return policy_.algorithm == ReduceAlgorithm::kRows; }
  // Whether indices stay the numbers of rows, as wide as an element: all rows have one, and come in turn.
  bool counts_rows() const {
    const int64_t tile = policy_.lines * reduced_rows_ * item_;
    const bool is_tiled = policy_.algorithm == ReduceAlgorithm::kPackedColumns;
    return kernel_.has_indices() && !is_by_rows() && chunks_ == 1 && geometry_.outer.empty() &&
           geometry_.cells.size == 1 && reduced_rows_ <= kernel_.most_rows &&
           (!is_tiled || (policy_.phases == 1 && tile <= tuning::kTileBytes));
  }
  int64_t out_item() const { return kernel_.has_indices() ? parameters_.index_size : item_; }

  // A unit of columns, or of lines: what a thread has accumulators for at a time.
  struct Unit {
    const std::byte* from;
    std::byte* to;
    int64_t columns;
  };

  class Reduction;
  class Worker;

  ReduceGeometry geometry_;
  ReducePolicy policy_;
  const ReduceKernel& kernel_;
  const ReduceKernel* largest_;
  ReduceParameters parameters_;
  int64_t item_;
  int64_t planes_ = 1;
  int64_t reduced_rows_ = 1;
  int64_t chunks_ = 1;
  int64_t bytes_ = 0;
  bool is_in_order_ = false;
  bool has_numbers_ = false;
};

// One thread with its accumulators.
class ReducePlan::Worker {
 public:
  Worker(const ReducePlan& plan, const ReduceKernel& kernel, const ReduceKernel& accumulates,
         bool is_non_temporal)
      : writer(is_non_temporal), plan_(plan), kernel_(kernel), accumulates_(accumulates) {
    strip_ = strip_memory_.strip(accumulates, accumulates.strip_columns());
  }

  StagedWriter writer;

  // The accumulators of a unit behind the rows of a chunk.
  Strip reduce(const Unit& unit, int64_t begin, int64_t end) {
    if (!plan_.is_by_rows()) {
      reduce_columns(unit, begin, end);
      return strip_;
    }
    const Strip results = results_memory_.strip(kernel_, tuning::kBatchLines);
    const Loop& lines = plan_.geometry_.columns;
    const Loop& rows = plan_.geometry_.rows;
    // Lines that run backward in memory are read forward.
    const std::byte* const first = unit.from + (rows.in < 0 ? (rows.size - 1) * rows.in : 0);
    accumulates_.start(results, unit.columns, unit.columns, unit.to, lines.out);
    const bool is_whole = begin % rows.size == 0 && end % rows.size == 0;
    if (is_whole && plan_.geometry_.outer.size() <= 1) {
      const int64_t step = plan_.geometry_.outer.empty() ? 0 : plan_.geometry_.outer[0].in;
      // Short segments of a line lie between those of the others, which are read before the next ones.
      const int64_t last = end / rows.size;
      const int64_t most = rows.size * plan_.item_ < tuning::kShortSegmentBytes ? tuning::kSegments : last;
      for (int64_t r = begin / rows.size; r < last; r += most) {
        const Strip part = r == begin / rows.size ? results : strip_;
        if (r != begin / rows.size) {
          accumulates_.start(part, unit.columns, unit.columns, unit.to, lines.out);
        }
        accumulates_.reduce_lines(
            plan_.parameters_, part,
            {first + r * step, unit.columns, lines.in, rows.size, std::min(most, last - r), step});
        if (r != begin / rows.size) accumulates_.combine(results, part, unit.columns);
      }
      return results;
    }
    for (int64_t r = begin; r < end;) {
      const int64_t skipped = r % rows.size;
      const int64_t count = std::min(rows.size - skipped, end - r);
      const Offsets outer = offsets_at(plan_.geometry_.outer, r / rows.size);
      const int64_t start = rows.in < 0 ? rows.size - skipped - count : skipped;
      const Strip part = r == begin ? results : strip_;
      if (r != begin) accumulates_.start(part, unit.columns, unit.columns, unit.to, lines.out);
      accumulates_.reduce_lines(
          plan_.parameters_, part,
          {first + outer.in + start * plan_.item_, unit.columns, lines.in, count, 1, 0});
      if (r != begin) accumulates_.combine(results, part, unit.columns);
      r += count;
    }
    return results;
  }

 private:
  // Whether rows side by side are put together as soon as they are accumulated.
  bool joins_phases() const {
    return plan_.policy_.phases > 1 && accumulates_.has_indices() &&
           plan_.geometry_.rows.size <= accumulates_.most_rows;
  }

  void reduce_columns(const Unit& unit, int64_t begin, int64_t end) {
    const int64_t columns = unit.columns;
    const int64_t phases = joins_phases() ? 1 : plan_.policy_.phases;
    const Loop& rows = plan_.geometry_.rows;
    const Loop& cells = plan_.geometry_.cells;
    for (int64_t c = 0; c < cells.size && !plan_.has_numbers_; ++c) {
      accumulates_.start(accumulates_.at(strip_, c * plan_.policy_.lines), columns * phases, columns,
                         unit.to + c * cells.out, plan_.geometry_.columns.out);
    }
    for (int64_t r = begin; r < end;) {
      const int64_t skipped = r % rows.size;
      const int64_t count = std::min(rows.size - skipped, end - r);
      const Offsets outer = offsets_at(plan_.geometry_.outer, r / rows.size);
      accumulate(unit.from + outer.in + skipped * rows.in, count, columns, outer.out + skipped * rows.out);
      r += count;
    }
    if (phases == 1) return;
    if (accumulates_.has_indices()) {
      auto* index = reinterpret_cast<int64_t*>(strip_.arrays[1]);
      for (int64_t phase = 0; phase < phases; ++phase, index += columns) {
        for (int64_t i = 0; i < columns; ++i) index[i] += phase * rows.out;
      }
    }
    for (int64_t half = phases / 2; half > 0; half /= 2) {
      accumulates_.combine(strip_, accumulates_.at(strip_, half * columns), half * columns);
    }
  }

  void accumulate(const std::byte* from, int64_t count, int64_t columns, int64_t index) {
    const Loop& rows = plan_.geometry_.rows;
    switch (plan_.policy_.algorithm) {
      case ReduceAlgorithm::kNarrowColumns:
        return accumulate_packed(from, count, columns, index);
      case ReduceAlgorithm::kPackedColumns:
        return accumulate_tiles(from, count, columns, index);
      default:
        return accumulate_rows(strip_, from, count, rows.in, columns, index, rows.out);
    }
  }

  // Rows side by side, each with accumulators of its own.
  void accumulate_packed(const std::byte* from, int64_t count, int64_t columns, int64_t index) {
    const int64_t phases = plan_.policy_.phases;
    const int64_t step = plan_.geometry_.rows.out * phases;
    const int64_t row_bytes = columns * plan_.item_;
    const int64_t whole = count / phases;
    if (joins_phases()) {
      const Rows rows{from, whole, phases * row_bytes, columns * phases, 0, kPrefetchDistance};
      if (whole > 0) accumulates_.accumulate(plan_.parameters_, strip_, rows);
      if (const int64_t rest = count - whole * phases; rest > 0) {
        pad(from + whole * phases * row_bytes, rest * row_bytes, phases * row_bytes);
        accumulates_.accumulate(plan_.parameters_, strip_, {padded_, 1, 0, columns * phases, whole, 0});
      }
      accumulates_.join_phases(strip_, columns, phases);
      if (!plan_.has_numbers_) accumulates_.join_rows(strip_, columns, index, plan_.geometry_.rows.out);
      return;
    }
    accumulate_rows(strip_, from, whole, phases * row_bytes, columns * phases, index, step);
    const int64_t rest = count - whole * phases;
    if (rest == 0) return;
    pad(from + whole * phases * row_bytes, rest * row_bytes, phases * row_bytes);
    accumulate_rows(strip_, padded_, 1, 0, columns * phases, index + whole * step, step);
  }

  // Copies what is left of rows, and fills up.
  void pad(const std::byte* from, int64_t bytes, int64_t padded_bytes) {
    accumulates_.fill(plan_.parameters_, padded_ + bytes, (padded_bytes - bytes) / plan_.item_);
    std::memcpy(padded_, from, static_cast<size_t>(bytes));
  }

  void accumulate_rows(const Strip& strip, const std::byte* from, int64_t count, int64_t row_step,
                       int64_t columns, int64_t index, int64_t step) {
    const bool in_registers = columns <= tuning::kRowBytes / accumulates_.sizes[0];
    int64_t most = in_registers ? count : tuning::kRowsAtOnce;
    if (accumulates_.has_indices()) most = std::min(most, accumulates_.most_rows);
    const bool follow = in_registers && row_step == columns * plan_.item_;
    const int64_t ahead = follow ? kPrefetchDistance : tuning::kPrefetchBytes;
    int64_t joined = 0;
    for (int64_t r = 0; r < count; r += most) {
      accumulates_.accumulate(
          plan_.parameters_, strip,
          {from + r * row_step, std::min(most, count - r), row_step, columns, r - joined, ahead});
      if (!accumulates_.has_indices() || plan_.has_numbers_) continue;
      const int64_t next = std::min(r + most, count);
      if (next < count && next + most - joined <= accumulates_.most_rows) continue;
      accumulates_.join_rows(strip, columns, index + joined * step, step);
      joined = next;
    }
  }

  void accumulate_tiles(const std::byte* from, int64_t count, int64_t columns, int64_t index) {
    const Loop& rows = plan_.geometry_.rows;
    const Loop& cells = plan_.geometry_.cells;
    const int64_t phases = plan_.policy_.phases;
    const int64_t row_bytes = columns * plan_.item_;
    if (cells.size > 1) {
      // Few columns: a row of the tile is a cell of what lies between a line and the next.
      gather({from, cells.in, plan_.geometry_.columns.in}, count * cells.size, columns, row_bytes);
      for (int64_t c = 0; c < cells.size; ++c) {
        accumulate_rows(accumulates_.at(strip_, c * plan_.policy_.lines), tile_ + c * row_bytes, count,
                        cells.size * row_bytes, columns, index, rows.out);
      }
      return;
    }
    if (rows.in == row_bytes && plan_.geometry_.columns.in == plan_.item_) {
      return accumulate_packed(from, count, columns, index);
    }
    const int64_t most = std::max(tuning::kTileBytes / row_bytes / phases, int64_t{1}) * phases;
    for (int64_t r = 0; r < count; r += most) {
      const int64_t part = std::min(most, count - r);
      gather({from + r * rows.in, rows.in, plan_.geometry_.columns.in}, part, columns, row_bytes);
      if (phases > 1) {
        accumulate_packed(tile_, part, columns, index + r * rows.out);
      } else {
        accumulate_rows(strip_, tile_, part, row_bytes, columns, index + r * rows.out, rows.out);
      }
    }
  }

  void gather(const Tile& tile, int64_t rows, int64_t columns, int64_t row_bytes) {
    switch (plan_.item_) {
      case 1:
        return transpose_lines<uint8_t>(tile, rows, columns, tile_, row_bytes);
      case 2:
        return transpose_lines<uint16_t>(tile, rows, columns, tile_, row_bytes);
      case 4:
        return transpose_lines<uint32_t>(tile, rows, columns, tile_, row_bytes);
      default:
        return transpose_lines<uint64_t>(tile, rows, columns, tile_, row_bytes);
    }
  }

  const ReducePlan& plan_;
  const ReduceKernel& kernel_;
  const ReduceKernel& accumulates_;
  WholeStripMemory strip_memory_;
  BatchMemory results_memory_;
  Strip strip_;
  alignas(64) std::byte padded_[tuning::kNarrowBytes + kPadding];
  alignas(64) std::byte tile_[kMostTileBytes + kPadding];
};

// A run with one kernel.
class ReducePlan::Reduction {
 public:
  Reduction(const ReducePlan& plan, const ReduceKernel& kernel, const std::byte* from, std::byte* to)
      : plan_(plan),
        kernel_(kernel),
        accumulates_(kernel.has_indices() && plan.is_by_rows() ? *plan.largest_ : kernel),
        from_(from),
        to_(to),
        threads_(threads_for(plan.bytes_)),
        width_(width()),
        strips_((plan.geometry_.columns.size + width_ - 1) / width_) {}

  void run() const {
    const int64_t units = plan_.planes_ * strips_;
    if (plan_.chunks_ == 1) {
      return for_each_part(units, [&](Worker& worker, int64_t i) {
        const Unit unit = unit_at(i);
        const Strip results = worker.reduce(unit, 0, plan_.reduced_rows_);
        const Loop& cells = plan_.geometry_.cells;
        for (int64_t c = 0; c < cells.size; ++c) {
          std::byte* const to = unit.to + c * cells.out;
          std::byte* const at = is_staged() ? worker.writer.reserve(to, unit.columns * plan_.out_item()) : to;
          const Unit cell{unit.from + c * cells.in, at, unit.columns};
          if (plan_.has_numbers_) {
            finish_numbers(cell, results);
          } else {
            finish(cell, accumulates_.at(results, c * plan_.policy_.lines), nullptr, 0);
          }
        }
      });
    }
    Partials partials(accumulates_, width_, units * plan_.chunks_);
    for_each_part(units * plan_.chunks_, [&](Worker& worker, int64_t i) {
      const Unit unit = unit_at(i / plan_.chunks_);
      const int64_t begin = i % plan_.chunks_ * plan_.policy_.chunk_rows;
      const int64_t end = std::min(begin + plan_.policy_.chunk_rows, plan_.reduced_rows_);
      accumulates_.copy(partials.at(i), worker.reduce(unit, begin, end), unit.columns);
    });
    WholeStripMemory memory;
    const Strip results = memory.strip(kernel_, kernel_.strip_columns());
    for (int64_t u = 0; u < units; ++u) {
      const Unit unit = unit_at(u);
      const int64_t first = u * plan_.chunks_;
      accumulates_.copy(results, partials.at(first), unit.columns);
      for (int64_t c = 1; c < plan_.chunks_; ++c) {
        accumulates_.combine(results, partials.at(first + c), unit.columns);
      }
      finish(unit, results, &partials, first);
    }
  }

 private:
  // Whether outputs go past the caches.
  bool is_staged() const {
    const int64_t item = plan_.out_item();
    return plan_.bytes_ / plan_.reduced_rows_ / plan_.item_ * item >= kStreamFrom &&
           plan_.geometry_.columns.out == item && width_ * item <= StagedWriter::kMost;
  }

  // Columns are independent of each other, so that their strips may depend on the threads.
  int64_t width() const {
    const int64_t columns = plan_.geometry_.columns.size;
    switch (plan_.policy_.algorithm) {
      case ReduceAlgorithm::kRows:
        return std::min(columns, plan_.policy_.lines);
      case ReduceAlgorithm::kNarrowColumns:
        return columns;
      case ReduceAlgorithm::kPackedColumns:
        return plan_.policy_.phases > 1 ? columns : plan_.policy_.lines;
      default:
        break;
    }
    const int64_t least = std::max(tuning::kStripLeastBytes / plan_.item_, tuning::kLeastBytes);
    const int64_t others = plan_.planes_ * plan_.chunks_;
    const int64_t strips = std::max<int64_t>(1, (threads_ + others - 1) / others);
    const int64_t even = (columns / strips + least - 1) / least * least;
    return std::min({columns, std::max(even, least), accumulates_.strip_columns()});
  }

  template <class Body>
  void for_each_part(int64_t count, const Body& body) const {
    const int64_t parts = std::min(count, threads_ == 1 ? 1 : calls_for(plan_.bytes_, threads_));
    // Whether to stop is asked now and then, as small units take less time than to ask.
    const int64_t asked =
        std::max<int64_t>(1, tuning::kAskedBytes / std::max<int64_t>(1, plan_.bytes_ / count));
    parallel_for(parts, threads_, [&](int64_t part) {
      Worker worker(plan_, kernel_, accumulates_, is_staged());
      const int64_t end = share_begin(part + 1, parts, count);
      for (int64_t i = share_begin(part, parts, count); i < end && !is_cancelled();) {
        for (const int64_t next = std::min(end, i + asked); i < next; ++i) body(worker, i);
      }
    });
  }

  Unit unit_at(int64_t i) const {
    const Loop& columns = plan_.geometry_.columns;
    const int64_t strip = strips_ == 1 ? 0 : i % strips_;
    const Offsets plane = offsets_at(plan_.geometry_.planes, strips_ == 1 ? i : i / strips_);
    const int64_t first = strip * width_;
    return {from_ + plane.in + first * columns.in, to_ + plane.out + first * columns.out,
            std::min(width_, columns.size - first)};
  }

  // Stores the results of a unit, whose chunks, where there are several, are the partial results from the
  // first one on.
  void finish(const Unit& unit, const Strip& results, const Partials* partials, int64_t first) const {
    const bool looks_for_all = kernel_.has_indices() && plan_.is_by_rows();
    const Loop& rows = plan_.geometry_.rows;
    if (looks_for_all && partials == nullptr && plan_.geometry_.outer.empty() && rows.in == plan_.item_) {
      const int64_t step = plan_.geometry_.columns.in;
      kernel_.find_in_lines(plan_.parameters_, results, {unit.from, unit.columns, step, rows.size, 1, 0});
      return kernel_.finish(plan_.parameters_, results, unit.columns, unit.to, plan_.geometry_.columns.out);
    }
    const auto next = [&](int64_t i) {
      if (looks_for_all) return i;
      return kernel_.next_least == nullptr ? unit.columns : kernel_.next_least(results, i, unit.columns);
    };
    for (int64_t i = next(0); i < unit.columns; i = next(i + 1)) {
      const int64_t index = locate(unit.from + i * plan_.geometry_.columns.in, results, i, partials, first);
      if (kernel_.has_indices()) {
        store(results.arrays[1] + i * 8, index == kNoIndex ? 0 : index);
      } else if (index == kNoIndex) {
        kernel_.set_nan(results, i);
      }
    }
    if (plan_.parameters_.finish == Finish::kPartial && &kernel_ != plan_.largest_) {
      return store_partials(kernel_, results, unit.columns, unit.to, plan_.geometry_.columns.out);
    }
    kernel_.finish(plan_.parameters_, results, unit.columns, unit.to, plan_.geometry_.columns.out);
  }

  // The same of rows whose numbers are their indices.
  void finish_numbers(const Unit& unit, const Strip& results) const {
    if (kernel_.next_least != nullptr) {
      const Strip values{{results.recent[0], nullptr, nullptr}, {}};
      for (int64_t i = kernel_.next_least(values, 0, unit.columns); i < unit.columns;
           i = kernel_.next_least(values, i + 1, unit.columns)) {
        const int64_t index = locate(unit.from + i * plan_.geometry_.columns.in, values, i, nullptr, 0);
        store(results.recent[1] + i * 4, static_cast<int32_t>(index == kNoIndex ? 0 : index));
      }
    }
    kernel_.finish_numbers(plan_.parameters_, results, unit.columns, unit.to, plan_.geometry_.columns.out);
  }

  // The first index of the largest element of a column.
  int64_t locate(const std::byte* from, const Strip& results, int64_t i, const Partials* partials,
                 int64_t first) const {
    const Loop& rows = plan_.geometry_.rows;
    if (plan_.geometry_.outer.empty() && partials == nullptr) {
      const int64_t at = kernel_.find(plan_.parameters_, from, rows.size, rows.in, results, i);
      return at < 0 ? kNoIndex : at * rows.out;
    }
    int64_t found = kNoIndex;
    for (int64_t r = 0; r < plan_.reduced_rows_;) {
      const int64_t c = r / plan_.policy_.chunk_rows;
      const int64_t end = std::min((c + 1) * plan_.policy_.chunk_rows, plan_.reduced_rows_);
      if (partials != nullptr &&
          !kernel_.is_equal(accumulates_.at(results, i), accumulates_.at(partials->at(first + c), i))) {
        r = end;
        continue;
      }
      const int64_t skipped = r % rows.size;
      const int64_t count = std::min(rows.size - skipped, end - r);
      const Offsets outer = offsets_at(plan_.geometry_.outer, r / rows.size);
      const int64_t index = outer.out + skipped * rows.out;
      if (index < found) {
        const int64_t at =
            kernel_.find(plan_.parameters_, from + outer.in + skipped * rows.in, count, rows.in, results, i);
        if (at >= 0) found = std::min(found, index + at * rows.out);
        if (at >= 0 && plan_.is_in_order_) return found;
      }
      r += count;
    }
    return found;
  }

  const ReducePlan& plan_;
  const ReduceKernel& kernel_;
  const ReduceKernel& accumulates_;
  const std::byte* from_;
  std::byte* to_;
  int threads_;
  int64_t width_;
  int64_t strips_;
};

inline void ReducePlan::run(const void* const* inputs, void* const* outputs) const {
  const auto* const from = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
  auto* const to = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
  // Exponentials are taken of what is below the largest element, which the output has meanwhile.
  if (largest_ != nullptr && !kernel_.has_indices()) Reduction(*this, *largest_, from, to).run();
  Reduction(*this, kernel_, from, to).run();
}

ANYDML_ISA_END
