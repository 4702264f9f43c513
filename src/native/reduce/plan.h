// The plan of a reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "reduce/geometry.h"
#include "reduce/kernel.h"
#include "reduce/policy.h"
#include "reduce/strips.h"
#include "reduce/tuning.h"

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
    bytes_ = planes_ * geometry_.beside.size * geometry_.cells.size * geometry_.columns.size * reduced_rows_ *
             item_;
    is_in_order_ = indices_are_in_order(geometry_);
    has_numbers_ = counts_rows();
  }

  void run(const void* const* inputs, void* const* outputs) const override;

 private:
  bool is_by_rows() const { return policy_.algorithm == ReduceAlgorithm::kRows; }
  bool is_by_planes() const { return policy_.algorithm == ReduceAlgorithm::kPlanes; }
  bool is_folded() const { return policy_.algorithm == ReduceAlgorithm::kFoldedColumns; }
  // The rows that are accumulated one after the other.
  const Loop& rows() const { return is_folded() ? geometry_.outer[0] : geometry_.rows; }
  // The elements from a segment to the next one, of those whose elements are columns.
  int64_t pitch() const {
    const Loop& columns = geometry_.columns;
    return columns.size == 1 ? geometry_.rows.size : columns.in / item_;
  }
  // Those that are accumulated for nothing, between a row and the next one.
  int64_t between() const {
    const int64_t columns = geometry_.columns.size;
    if (policy_.width == 0) return 0;
    return policy_.width - (is_folded() ? (columns - 1) * pitch() + geometry_.rows.size : columns);
  }
  // Whether indices stay the numbers of rows, as wide as an element: all rows have one, and come in turn.
  bool counts_rows() const {
    const int64_t tile = policy_.lines * reduced_rows_ * item_;
    const bool is_tiled = policy_.algorithm == ReduceAlgorithm::kPackedColumns;
    return kernel_.has_indices() && !is_by_rows() && chunks_ == 1 && geometry_.outer.empty() &&
           geometry_.cells.size == 1 && reduced_rows_ <= kernel_.most_rows &&
           (!is_tiled || (policy_.phases == 1 && tile <= tuning::kTileBytes));
  }
  // The columns of a plane, and of those beside it.
  int64_t columns() const { return geometry_.columns.size * geometry_.beside.size; }
  // Where a column is, from the first one on.
  int64_t column_at(int64_t i) const {
    const Loop& columns = geometry_.columns;
    if (!is_by_planes()) return i * columns.in;
    return i / columns.size * geometry_.beside.in + i % columns.size * columns.in;
  }
  int64_t out_item() const { return kernel_.has_indices() ? parameters_.index_size : item_; }

  // A unit of columns, or of lines: what a thread has accumulators for at a time.
  struct Unit {
    const std::byte* from;
    std::byte* to;
    int64_t columns;
  };
  // The partial results of the chunks of a unit, from a column on.
  struct Parts {
    const Partials* partials = nullptr;
    int64_t first = 0;
    int64_t column = 0;
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

ANYDML_ISA_END
