// The rows of a JOIN as pieces: one run of each input.
//
// A row is what lies between one step of the dimensions before the axis and the next: a run of each input,
// one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/layout.h"
#include "join/tuning.h"
#include "platform/isa.h"
#include "simd/strided_copy.h"

ANYDML_ISA_BEGIN
namespace {

// The run of one input in every row, as its bytes [begin, end).
struct RowPiece {
  int64_t begin;
  int64_t end;
  std::vector<Loop> rows;  // the dimensions before the axis
  bool packed;             // whether the run is contiguous in the input too
  std::vector<Loop> nest;  // loops around `elements`, where it is not
  Loop elements;
  CopyRuns copy_runs;
  int64_t wide = 0;  // a larger size that takes fewer instructions and still ends in the row, or 0
  CopyRuns copy_wide = nullptr;

  int64_t size() const { return end - begin; }
};

struct Rows {
  int64_t count;
  int64_t size;        // of a row, in bytes
  int64_t neighbours;  // rows that are the same step apart in every tensor
  bool contiguous;     // whether all rows are contiguous in the output
  int64_t element_size;
  std::vector<RowPiece> pieces;

  int64_t bytes() const { return count * size; }
  int64_t run() const { return size / static_cast<int64_t>(pieces.size()); }  // the mean
  bool runs_are_long() const { return run() >= kLongRun; }
  int64_t inputs() const { return static_cast<int64_t>(pieces.size()); }
  int64_t longest() const { return std::ranges::max_element(pieces, {}, &RowPiece::size)->size(); }
  bool packed() const {
    return std::ranges::all_of(pieces, [](const RowPiece& piece) { return piece.packed; });
  }
};

}  // namespace
ANYDML_ISA_END
