// The kernels of reductions: what is done to a strip of accumulators, for a type of elements and a function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "reduce/tuning.h"

ANYDML_ISA_BEGIN

// Accumulators side by side. Some functions have several numbers for each, in arrays of their own. Those of
// indices have two more for rows whose indices are as wide as an element: what they have found since the rows
// were last joined.
struct Strip {
  std::byte* arrays[3];
  std::byte* recent[2];
};

// What becomes of an accumulator behind the last element.
enum class Finish { kNone, kAverage, kRoot, kLogarithm, kPartial };

// What a plan knows and kernels need.
struct ReduceParameters {
  // Combined with the bits of elements by exclusive or before the largest signed number is looked for, so
  // that it is the smallest, or of unsigned numbers.
  uint64_t mask = 0;
  Finish finish = Finish::kNone;
  int64_t elements = 1;       // of each output
  bool from_the_end = false;  // indices count from the last element
  int64_t index_size = 4;
};

// Rows of elements that are combined with the accumulators of their columns.
struct Rows {
  const std::byte* from;
  int64_t count;
  int64_t step;
  int64_t columns;
  int64_t number;  // of the first row, since rows were last joined
  int64_t ahead;   // so many bytes are prefetched
};

// Lines of adjacent elements, each of several segments that lie apart.
struct Lines {
  const std::byte* from;
  int64_t count;
  int64_t step;
  int64_t elements;  // of a segment
  int64_t segments;
  int64_t segment_step;
};

// Planes of a few adjacent columns each, whose accumulators follow each other.
struct Planes {
  const std::byte* from;
  int64_t count;
  int64_t step;
  int64_t rows;
  int64_t row_step;
  int64_t columns;

  // Those behind which there are so many bytes, which may be read.
  int64_t followed_by(int64_t bytes) const {
    return step <= 0 ? 0 : std::max<int64_t>(0, count - (bytes + step - 1) / step);
  }
};

struct ReduceKernel {
  int64_t element_size;
  int64_t sizes[3];  // of the numbers of an accumulator; 0 for arrays that it does not have
  // Sets accumulators to what leaves every element as it is. `out` has the largest element of each of
  // `period` columns, which repeat, where the function wants it.
  void (*start)(const Strip& strip, int64_t columns, int64_t period, const std::byte* out, int64_t out_step);
  // The same of elements.
  void (*fill)(const ReduceParameters& parameters, std::byte* to, int64_t count);
  void (*accumulate)(const ReduceParameters& parameters, const Strip& strip, const Rows& rows);
  // The same of packed lines of so many elements each; returns how many of the lines are done. Null where a
  // function or an instruction set has no kernel for them.
  int64_t (*accumulate_lines)(const ReduceParameters& parameters, const Strip& strip, const std::byte* from,
                              int64_t elements, int64_t lines) = nullptr;
  int64_t rows_at_once = tuning::kRowsAtOnce;  // that are best combined with a strip
  // Sets the accumulators of planes to what their rows come to; those of indices to the numbers of rows, of
  // which there are most_rows at most.
  void (*reduce_planes)(const ReduceParameters& parameters, const Strip& strip,
                        const Planes& planes) = nullptr;
  // Sets the accumulators of lines, which have been started, to what their elements come to.
  void (*reduce_lines)(const ReduceParameters& parameters, const Strip& strip, const Lines& lines) = nullptr;
  void (*combine)(const Strip& strip, const Strip& other, int64_t columns);
  void (*finish)(const ReduceParameters& parameters, const Strip& strip, int64_t columns, std::byte* out,
                 int64_t out_step);

  // Of kernels of the largest, null for others. The next of the columns whose accumulator is no larger than
  // what it began with, so that there may have been no number; the end of the columns if there is none.
  int64_t (*next_least)(const Strip& strip, int64_t column, int64_t columns) = nullptr;
  bool (*is_equal)(const Strip& strip, const Strip& other) = nullptr;
  void (*set_nan)(const ReduceParameters& parameters, const Strip& strip, int64_t column) = nullptr;
  // The first of some elements that is equal to the accumulator, or -1.
  int64_t (*find)(const ReduceParameters& parameters, const std::byte* from, int64_t count, int64_t step,
                  const Strip& strip, int64_t column) = nullptr;
  // Of kernels of indices: those of lines, whose largest elements are known.
  void (*find_in_lines)(const ReduceParameters& parameters, const Strip& strip, const Lines& lines) = nullptr;

  // Of kernels of indices. Rows are joined behind so many, the index of the first one and the step from row
  // to row being known, and whether they come after those that were joined before.
  int64_t most_rows = 0;
  void (*join_rows)(const Strip& strip, int64_t columns, int64_t index, int64_t index_step,
                    bool is_later) = nullptr;

  // Puts the rows of phases together, before they are joined.
  void (*join_phases)(const Strip& strip, int64_t columns, int64_t phases) = nullptr;
  // What finish() does, for rows that need not be joined, as all of them have numbers.
  void (*finish_numbers)(const ReduceParameters& parameters, const Strip& strip, int64_t columns,
                         std::byte* out, int64_t out_step) = nullptr;

  bool has_indices() const { return join_rows != nullptr; }
  int64_t bytes() const { return sizes[0] + sizes[1] + sizes[2]; }
  // The most columns of a strip.
  int64_t strip_columns() const {
    const int64_t each = bytes() + (has_indices() ? 2 * sizes[0] : 0);
    return std::min(tuning::kStripBytes / each / 64 * 64, tuning::kStripColumns);
  }
  Strip at(const Strip& strip, int64_t column) const {
    return {{strip.arrays[0] + column * sizes[0], strip.arrays[1] + column * sizes[1],
             strip.arrays[2] + column * sizes[2]},
            {strip.recent[0] + column * sizes[0], strip.recent[1] + column * sizes[0]}};
  }
  void copy(const Strip& to, const Strip& from, int64_t columns) const {
    for (size_t k = 0; k < 3; ++k) {
      std::memcpy(to.arrays[k], from.arrays[k], static_cast<size_t>(columns * sizes[k]));
    }
  }
};

// What an index is that none has been found for yet.
inline constexpr int64_t kNoIndex = std::numeric_limits<int64_t>::max();

// Null for types that the function has no kernel for.
enum class Term { kValue, kMagnitude, kSquare };
const ReduceKernel* sum_kernel(DataType type, Term term);
const ReduceKernel* product_kernel(DataType type);
const ReduceKernel* exponential_sum_kernel(DataType type);
const ReduceKernel* largest_kernel(DataType type);
const ReduceKernel* largest_index_kernel(DataType type);

ANYDML_ISA_END
