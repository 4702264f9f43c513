// The run of a reduction: how threads share it, and how the results of chunks come together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platform/isa.h"
#include "platform/parallel.h"
#include "reduce/geometry.h"
#include "reduce/kernel.h"
#include "reduce/partial.h"
#include "reduce/plan.h"
#include "reduce/policy.h"
#include "reduce/strips.h"
#include "reduce/tuning.h"
#include "reduce/worker.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

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
        strips_((plan.columns() + width_ - 1) / width_) {}

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
            finish(cell, accumulates_.at(results, c * plan_.policy_.lines), {});
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
    // Columns do not depend on each other, so that threads share those of a unit.
    const int64_t bytes = units * plan_.chunks_ * width_ * accumulates_.bytes();
    const int threads = bytes < tuning::kCombinedBytes ? 1 : threads_;
    const int64_t blocks = threads == 1 ? 1 : std::clamp<int64_t>(width_ / tuning::kCombined, 1, threads);
    parallel_for(units * blocks, threads, [&](int64_t i) {
      const int64_t u = i / blocks;
      const Unit unit = unit_at(u);
      const int64_t begin = share_begin(i % blocks, blocks, unit.columns);
      combine(unit, {&partials, u * plan_.chunks_, begin}, share_begin(i % blocks + 1, blocks, unit.columns));
    });
  }

 private:
  // Combines the partial results of columns up to `end`, and stores what they come to.
  void combine(const Unit& unit, const Parts& parts, int64_t end) const {
    WholeStripMemory memory;
    const Strip results = memory.strip(kernel_, kernel_.strip_columns());
    const Loop& columns = plan_.geometry_.columns;
    const int64_t begin = parts.column;
    const auto part = [&](int64_t c) { return accumulates_.at(parts.partials->at(parts.first + c), begin); };
    accumulates_.copy(results, part(0), end - begin);
    for (int64_t c = 1; c < plan_.chunks_; ++c) accumulates_.combine(results, part(c), end - begin);
    finish({unit.from + begin * columns.in, unit.to + begin * columns.out, end - begin}, results, parts);
  }

  // Whether outputs go past the caches.
  bool is_staged() const {
    const int64_t item = plan_.out_item();
    return plan_.bytes_ / plan_.reduced_rows_ / plan_.item_ * item >= kStreamFrom &&
           plan_.geometry_.columns.out == item && width_ * item <= StagedWriter::kMost;
  }

  // Columns are independent of each other, so that their strips may depend on the threads.
  int64_t width() const {
    const int64_t columns = plan_.geometry_.columns.size;
    const int64_t plane = plan_.reduced_rows_ * columns;
    switch (plan_.policy_.algorithm) {
      case ReduceAlgorithm::kRows:
        return std::min(columns, plan_.policy_.lines);
      case ReduceAlgorithm::kPlanes:
        return std::min({std::max<int64_t>(tuning::kTileBytes / plan_.item_ / plane, 1),
                         accumulates_.strip_columns() / columns, plan_.geometry_.beside.size}) *
               columns;
      case ReduceAlgorithm::kFoldedColumns:
      case ReduceAlgorithm::kNarrowColumns:
        return columns;
      case ReduceAlgorithm::kPackedColumns:
        return plan_.policy_.phases > 1 ? columns : plan_.policy_.lines;
      default:
        break;
    }
    const int64_t least = std::max(tuning::kStripLeastBytes / plan_.item_, tuning::kLeastBytes);
    const int64_t others = plan_.planes_ * plan_.chunks_;
    const int64_t most = accumulates_.strip_columns();
    // As many for every thread.
    const int64_t wanted = threads_ == 1 ? 1 : tuning::kThreadStrips * threads_;
    const int64_t each = (wanted + others - 1) / others;
    const int64_t strips = (columns + each * most - 1) / (each * most) * each;
    constexpr int64_t kUnit = tuning::kLeastBytes;
    const int64_t even = ((columns + strips - 1) / strips + kUnit - 1) / kUnit * kUnit;
    return std::min({columns, std::max(even, least), most});
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
    return {from_ + plane.in + plan_.column_at(first), to_ + plane.out + first * columns.out,
            std::min(width_, plan_.columns() - first)};
  }

  // Stores the results of a unit.
  void finish(const Unit& unit, const Strip& results, const Parts& parts) const {
    const bool looks_for_all = kernel_.has_indices() && plan_.is_by_rows();
    const Loop& rows = plan_.geometry_.rows;
    if (looks_for_all && parts.partials == nullptr && plan_.geometry_.outer.empty() &&
        rows.in == plan_.item_) {
      const int64_t step = plan_.geometry_.columns.in;
      kernel_.find_in_lines(plan_.parameters_, results, {unit.from, unit.columns, step, rows.size, 1, 0});
      return kernel_.finish(plan_.parameters_, results, unit.columns, unit.to, plan_.geometry_.columns.out);
    }
    const auto next = [&](int64_t i) {
      if (looks_for_all) return i;
      return kernel_.next_least == nullptr ? unit.columns : kernel_.next_least(results, i, unit.columns);
    };
    for (int64_t i = next(0); i < unit.columns; i = next(i + 1)) {
      const int64_t index = locate(unit.from + plan_.column_at(i), results, i, parts);
      if (kernel_.has_indices()) {
        store(results.arrays[1] + i * 8, index == kNoIndex ? 0 : index);
      } else if (index == kNoIndex) {
        kernel_.set_nan(plan_.parameters_, results, i);
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
        const int64_t index = locate(unit.from + plan_.column_at(i), values, i, {});
        const int64_t number = index == kNoIndex ? 0 : index;
        std::memcpy(results.recent[1] + i * kernel_.sizes[0], &number, static_cast<size_t>(kernel_.sizes[0]));
      }
    }
    kernel_.finish_numbers(plan_.parameters_, results, unit.columns, unit.to, plan_.geometry_.columns.out);
  }

  // The first index of the largest element of a column.
  int64_t locate(const std::byte* from, const Strip& results, int64_t i, const Parts& parts) const {
    const Loop& rows = plan_.geometry_.rows;
    if (plan_.geometry_.outer.empty() && parts.partials == nullptr) {
      const int64_t at = accumulates_.find(plan_.parameters_, from, rows.size, rows.in, results, i);
      return at < 0 ? kNoIndex : at * rows.out;
    }
    int64_t found = kNoIndex;
    for (int64_t r = 0; r < plan_.reduced_rows_;) {
      const int64_t c = r / plan_.policy_.chunk_rows;
      const int64_t end = std::min((c + 1) * plan_.policy_.chunk_rows, plan_.reduced_rows_);
      if (parts.partials != nullptr &&
          !accumulates_.is_equal(accumulates_.at(results, i),
                                 accumulates_.at(parts.partials->at(parts.first + c), parts.column + i))) {
        r = end;
        continue;
      }
      const int64_t skipped = r % rows.size;
      const int64_t count = std::min(rows.size - skipped, end - r);
      const Offsets outer = offsets_at(plan_.geometry_.outer, r / rows.size);
      const int64_t index = outer.out + skipped * rows.out;
      if (index < found) {
        // Of rows in another order those whose indices are lower.
        const int64_t lower = rows.out == 0 ? count : (found - index - 1) / rows.out + 1;
        const int64_t at = accumulates_.find(plan_.parameters_, from + outer.in + skipped * rows.in,
                                             std::min(count, lower), rows.in, results, i);
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
