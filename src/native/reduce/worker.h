// What one thread of a reduction does: strips of accumulators, which rows of elements are combined with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "reduce/geometry.h"
#include "reduce/kernel.h"
#include "reduce/plan.h"
#include "reduce/policy.h"
#include "reduce/strips.h"
#include "reduce/transpose_lines.h"
#include "reduce/tuning.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

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
    if (plan_.is_by_planes()) {
      const Loop& columns = plan_.geometry_.columns;
      const Loop& rows = plan_.geometry_.rows;
      accumulates_.start(strip_, 1, 1, unit.to, 0);
      accumulates_.reduce_planes(plan_.parameters_, strip_,
                                 {unit.from, unit.columns / columns.size, plan_.geometry_.beside.in,
                                  rows.size, rows.in, columns.size});
      return strip_;
    }
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
    return (plan_.policy_.phases > 1 || plan_.between() > 0) && accumulates_.has_indices() &&
           plan_.rows().size <= accumulates_.most_rows;
  }

  void reduce_columns(const Unit& unit, int64_t begin, int64_t end) {
    const int64_t segment = plan_.is_folded() ? plan_.geometry_.rows.size : 1;
    const int64_t columns = plan_.policy_.width > 0 ? plan_.policy_.width : unit.columns;
    const int64_t phases = joins_phases() ? 1 : plan_.policy_.phases;
    const Loop& rows = plan_.rows();
    const Loop& cells = plan_.geometry_.cells;
    for (int64_t c = 0; c < cells.size && !plan_.has_numbers_; ++c) {
      accumulates_.start(accumulates_.at(strip_, c * plan_.policy_.lines), columns * phases, columns,
                         unit.to + c * cells.out, plan_.geometry_.columns.out);
    }
    if (plan_.is_folded()) {
      const int64_t first = begin / segment;
      accumulate(unit.from + first * rows.in, end / segment - first, columns, first * rows.out);
    }
    for (int64_t r = begin; r < end && !plan_.is_folded();) {
      const int64_t skipped = r % rows.size;
      const int64_t count = std::min(rows.size - skipped, end - r);
      const Offsets outer = offsets_at(plan_.geometry_.outer, r / rows.size);
      accumulate(unit.from + outer.in + skipped * rows.in, count, columns, outer.out + skipped * rows.out);
      r += count;
    }
    put_together(phases, columns, rows.out);
    if (!plan_.is_folded()) return;
    for (size_t k = 0; k < 3; ++k) {
      const int64_t size = accumulates_.sizes[k];
      if (size == 0) continue;
      transpose({strip_.arrays[k], size, plan_.pitch() * size}, segment, unit.columns, unit.columns * size,
                size);
      std::memcpy(strip_.arrays[k], tile_, static_cast<size_t>(unit.columns * segment * size));
    }
    put_together(segment, unit.columns, plan_.geometry_.rows.out);
  }

  // The accumulators of rows that are side by side, in halves.
  void put_together(int64_t rows, int64_t columns, int64_t index_step) {
    if (rows > 1 && accumulates_.has_indices()) {
      auto* index = reinterpret_cast<int64_t*>(strip_.arrays[1]);
      for (int64_t row = 0; row < rows; ++row, index += columns) {
        for (int64_t i = 0; i < columns; ++i) index[i] += row * index_step;
      }
    }
    while (rows > 1) {
      const int64_t half = (rows + 1) / 2;
      accumulates_.combine(strip_, accumulates_.at(strip_, half * columns), (rows - half) * columns);
      rows = half;
    }
  }

  void accumulate(const std::byte* from, int64_t count, int64_t columns, int64_t index) {
    const Loop& rows = plan_.geometry_.rows;
    switch (plan_.policy_.algorithm) {
      case ReduceAlgorithm::kFoldedColumns:
      case ReduceAlgorithm::kNarrowColumns:
        return accumulate_packed(from, count, columns, plan_.rows().in, index);
      case ReduceAlgorithm::kPackedColumns:
        return accumulate_tiles(from, count, columns, index);
      default:
        return accumulate_rows(strip_, from, count, rows.in, columns, index, rows.out);
    }
  }

  // Rows side by side, each with accumulators of its own. What lies between rows is not read behind the last.
  void accumulate_packed(const std::byte* from, int64_t count, int64_t columns, int64_t row_step,
                         int64_t index) {
    const int64_t phases = plan_.policy_.phases;
    const int64_t step = plan_.rows().out * phases;
    const int64_t between = plan_.between();
    const int64_t whole = (count - (between > 0)) / phases;
    const int64_t rest = count - whole * phases;
    if (rest > 0) {
      pad(from + whole * phases * row_step, (rest * columns - between) * plan_.item_,
          columns * phases * plan_.item_);
    }
    if (joins_phases()) {
      const Rows rows{from, whole, phases * row_step, columns * phases, 0, kPrefetchDistance};
      if (whole > 0) accumulates_.accumulate(plan_.parameters_, strip_, rows);
      const Rows others{padded_, 1, 0, columns * phases, whole, 0};
      if (rest > 0) accumulates_.accumulate(plan_.parameters_, strip_, others);
      accumulates_.join_phases(strip_, columns, phases);
      if (!plan_.has_numbers_)
        accumulates_.join_rows(strip_, columns, index, plan_.rows().out, plan_.is_in_order_);
      return;
    }
    accumulate_rows(strip_, from, whole, phases * row_step, columns * phases, index, step);
    if (rest > 0) accumulate_rows(strip_, padded_, 1, 0, columns * phases, index + whole * step, step);
  }

  // Copies what is left of rows, and fills up.
  void pad(const std::byte* from, int64_t bytes, int64_t padded_bytes) {
    accumulates_.fill(plan_.parameters_, padded_ + bytes, (padded_bytes - bytes) / plan_.item_);
    std::memcpy(padded_, from, static_cast<size_t>(bytes));
  }

  // Of a tile, `next` is what the next one is made of, which is prefetched meanwhile.
  void accumulate_rows(const Strip& strip, const std::byte* from, int64_t count, int64_t row_step,
                       int64_t columns, int64_t index, int64_t step, const std::byte* next = nullptr) {
    const bool in_registers = columns <= tuning::kRowBytes / accumulates_.sizes[0];
    int64_t most = in_registers ? count : accumulates_.rows_at_once;
    if (accumulates_.has_indices()) most = std::min(most, accumulates_.most_rows);
    // Behind rows that are combined with a strip come others of the same columns, if there are many.
    const bool follow = row_step == columns * plan_.item_;
    const bool has_many = follow || count >= tuning::kManyRows * most;
    int64_t ahead = in_registers ? kPrefetchDistance : most * row_step;
    if (in_registers ? !follow : !has_many) ahead = tuning::kPrefetchBytes;
    if (next != nullptr) ahead = next - from;
    int64_t joined = 0;
    for (int64_t r = 0; r < count; r += most) {
      accumulates_.accumulate(
          plan_.parameters_, strip,
          {from + r * row_step, std::min(most, count - r), row_step, columns, r - joined, ahead});
      if (!accumulates_.has_indices() || plan_.has_numbers_) continue;
      const int64_t end = std::min(r + most, count);
      if (end < count && end + most - joined <= accumulates_.most_rows) continue;
      accumulates_.join_rows(strip, columns, index + joined * step, step, plan_.is_in_order_);
      joined = end;
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
      return accumulate_packed(from, count, columns, row_bytes, index);
    }
    const int64_t line_step = plan_.geometry_.columns.in;
    const bool is_packed = phases == 1 && rows.in == plan_.item_ && line_step == count * plan_.item_;
    if (is_packed && accumulates_.accumulate_lines != nullptr) {
      const int64_t done = accumulates_.accumulate_lines(plan_.parameters_, strip_, from, count, columns);
      if (done > 0) {
        return accumulate_tile(accumulates_.at(strip_, done), from + done * line_step, count, columns - done,
                               index);
      }
    }
    const int64_t most = std::max(tuning::kTileBytes / row_bytes / phases, int64_t{1}) * phases;
    for (int64_t r = 0; r < count; r += most) {
      const int64_t part = std::min(most, count - r);
      if (phases == 1) {
        accumulate_tile(strip_, from + r * rows.in, part, columns, index + r * rows.out);
        continue;
      }
      gather({from + r * rows.in, rows.in, line_step}, part, columns, row_bytes);
      accumulate_packed(tile_, part, columns, row_bytes, index + r * rows.out);
    }
  }

  void accumulate_tile(const Strip& strip, const std::byte* from, int64_t count, int64_t columns,
                       int64_t index) {
    if (columns == 0) return;
    const Loop& rows = plan_.geometry_.rows;
    const int64_t line_step = plan_.geometry_.columns.in;
    const int64_t row_bytes = columns * plan_.item_;
    gather({from, rows.in, line_step}, count, columns, row_bytes);
    // Lines that are whole in a tile follow each other.
    const bool is_packed = rows.in == plan_.item_ && line_step == count * plan_.item_;
    accumulate_rows(strip, tile_, count, row_bytes, columns, index, rows.out,
                    is_packed ? from + columns * line_step : nullptr);
  }

  void gather(const Tile& tile, int64_t rows, int64_t columns, int64_t row_bytes) {
    transpose(tile, rows, columns, row_bytes, plan_.item_);
  }

  // Elements, or numbers of that size.
  void transpose(const Tile& tile, int64_t rows, int64_t columns, int64_t row_bytes, int64_t size) {
    switch (size) {
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

ANYDML_ISA_END
