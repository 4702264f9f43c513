// The policy of a scan: which algorithm runs, how outputs are stored, in which tiles, and from which size on
// several threads. It is chosen when a plan is made, by the first of an ordered list of candidates that does
// not decline; running a plan only executes it. README.md has the list as a table.
//
// Three decisions depend on what only a run knows: on the number of threads, whether they share a line by a
// chained scan and how wide strips of columns are; and on the address of the output, whether non-temporal
// stores are realigned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/candidates.h"
#include "core/layout.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "scan/carries.h"
#include "scan/geometry.h"
#include "scan/transposed_rows.h"
#include "scan/tuning.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

enum class ScanAlgorithm {
  kTransposedRows,
  kShortRows,
  kVectorRows,
  kChainedRows,
  kBlockedRows,
  kPackedColumns,
  kNarrowColumns,
  kRegisterColumns,
  kColumnStrip,
  kColumnStrips,
  kStrided,
};

struct ScanPolicy {
  ScanAlgorithm algorithm;
  std::string name;
  bool packs_input;      // copies tiles of the input into the order of the output first
  bool non_temporal;     // writes by non-temporal stores, where rows are long enough or packed
  int64_t tile;          // the elements of a block of a row, or the rows of a block of columns
  bool parallel;         // on several threads, if there are
  std::string declined;  // which candidates declined, and why

  // What explain() prints.
  std::string text() const {
    return name + (packs_input ? ", packed input" : "") +
           (non_temporal ? ", non-temporal stores" : ", cached stores") + ", tiles of " +
           std::to_string(tile) +
           (parallel ? ", parallel" : ", one thread, below " + std::to_string(kParallelFrom >> 10) + " KiB") +
           declined;
  }
};

// What the choice depends on.
struct ScanProblem {
  ScanGeometry geometry;
  int64_t element_size;
  int64_t accumulator_size;
  bool is_float;
  bool is_blockable;  // by columns
  CarryPlaces carries = {};

  int64_t size() const { return geometry.axis.size; }
  int64_t lines() const {
    int64_t count = 1;
    for (const Loop& line : geometry.lines) count *= line.size;
    return count;
  }
  int64_t bytes() const { return size() * lines() * element_size; }
  // The loop over the lines whose elements are nearest to each other: the innermost one, which for rows is
  // ordered by input.
  Loop inner() const { return geometry.lines.empty() ? Loop{1, 0, 0} : geometry.lines.back(); }

  bool has_columns() const { return inner().out == element_size; }
  bool has_rows() const {
    return std::abs(geometry.axis.out) == element_size && !(has_columns() && size() == 1);
  }
  bool packs_rows() const { return geometry.axis.in != geometry.axis.out; }
  bool packs_columns() const { return inner().in != element_size; }
  // The number of lines whose elements are contiguous, or nearest to that, in the input.
  int64_t nearest_lines() const {
    const auto nearest = nearest_line(geometry);
    return nearest == geometry.lines.end() ? 1 : nearest->size;
  }
};

// Fewer columns than that have kernels of their own: they do not fill a vector of accumulators.
constexpr int narrow_columns(bool is_float, int64_t accumulator_size) {
  return is_float ? static_cast<int>(32 / accumulator_size) : tuning::kNarrowIntegerColumns;
}
// The most columns that are one strip, and may be cut into blocks.
constexpr int64_t most_blocked_columns(int64_t element_size) {
  return std::min(tuning::kMostBlockedColumns, tuning::kPackedTileRowBytes / element_size);
}
// The rows of a block of `columns` adjacent columns; all of them where columns are not cut.
inline int64_t rows_of_block(const ScanProblem& problem) {
  const int64_t columns = problem.inner().size;
  if (columns > most_blocked_columns(problem.element_size) || !problem.is_blockable) return problem.size();
  const int64_t planes = problem.lines() / columns;
  if (planes >= tuning::kUncutPlanesFrom && problem.accumulator_size > 4) return problem.size();
  return std::min(problem.size(), tuning::kColumnBlockBytes / (columns * problem.element_size));
}

// In the order of preference. Each candidate may rely on the ones before it having declined.
inline const Candidate<ScanAlgorithm, ScanProblem> kScanCandidates[] = {
#if defined(ANYDML_VECTORS)
    {ScanAlgorithm::kTransposedRows, "transposed rows",
     [](const ScanProblem& p) -> std::string {
       if (!p.has_rows()) return "the output's elements are not contiguous along the axis";
       if (!p.packs_rows()) return "the input's elements are contiguous along the axis";
       return p.nearest_lines() < kRowsPerGroup ? "too few lines for a tile" : "";
     }},
    {ScanAlgorithm::kShortRows, "short rows",
     [](const ScanProblem& p) -> std::string {
       if (!p.has_rows()) return "the output's elements are not contiguous along the axis";
       return p.size() >= tuning::kVectorRowsFrom ? "rows are long enough for vectors" : "";
     }},
    {ScanAlgorithm::kVectorRows, "vector rows",
     [](const ScanProblem& p) -> std::string {
       if (!p.has_rows()) return "the output's elements are not contiguous along the axis";
       if (p.packs_rows()) return "the input's elements are not contiguous along the axis";
       return p.size() > tuning::kBlock ? "rows are longer than a block" : "";
     }},
    {ScanAlgorithm::kChainedRows, "chained rows",
     [](const ScanProblem& p) -> std::string {
       if (!p.has_rows()) return "the output's elements are not contiguous along the axis";
       if (p.size() <= tuning::kChainedFrom) return "rows are too short to be shared by threads";
       return p.lines() >= tuning::kChainedRowsBelow ? "enough rows for all threads" : "";
     }},
    {ScanAlgorithm::kBlockedRows, "blocked rows",
     [](const ScanProblem& p) -> std::string {
       return p.has_rows() ? "" : "the output's elements are not contiguous along the axis";
     }},
    {ScanAlgorithm::kPackedColumns, "packed columns",
     [](const ScanProblem& p) -> std::string {
       if (!p.has_columns()) return "the output's lines are not adjacent";
       if (!p.is_float) return "columns are of integers";
       const int64_t columns = p.inner().size;
       if (columns >= narrow_columns(true, p.accumulator_size)) return "columns fill a vector";
       const Loop axis = p.geometry.axis;
       const bool packed = axis.in == axis.out && std::abs(axis.out) == columns * p.element_size;
       return packed && !p.packs_columns() ? "" : "rows are not packed";
     }},
    {ScanAlgorithm::kNarrowColumns, "narrow columns",
     [](const ScanProblem& p) -> std::string {
       if (!p.has_columns()) return "the output's lines are not adjacent";
       const bool fills = p.inner().size >= narrow_columns(p.is_float, p.accumulator_size);
       return fills ? "too many columns" : "";
     }},
    {ScanAlgorithm::kRegisterColumns, "register columns",
     [](const ScanProblem& p) -> std::string {
       if (!p.has_columns()) return "the output's lines are not adjacent";
       const int64_t most = tuning::kRegisterVectors * kVectorBytes / p.accumulator_size;
       return p.inner().size > most ? "accumulators do not fit the registers" : "";
     }},
    {ScanAlgorithm::kColumnStrip, "column strip",
     [](const ScanProblem& p) -> std::string {
       if (!p.has_columns()) return "the output's lines are not adjacent";
       const bool fits = p.inner().size <= most_blocked_columns(p.element_size);
       return fits ? "" : "too many columns for one strip";
     }},
    {ScanAlgorithm::kColumnStrips, "column strips",
     [](const ScanProblem& p) -> std::string {
       return p.has_columns() ? "" : "the output's lines are not adjacent";
     }},
#endif
    {ScanAlgorithm::kStrided, "strided", [](const ScanProblem&) -> std::string { return ""; }},
};

inline bool is_by_rows(ScanAlgorithm algorithm) { return algorithm <= ScanAlgorithm::kBlockedRows; }
inline bool is_by_columns(ScanAlgorithm algorithm) {
  return !is_by_rows(algorithm) && algorithm != ScanAlgorithm::kStrided;
}

inline ScanPolicy choose_policy(const ScanProblem& problem) {
  Choice<ScanAlgorithm> choice = choose(kScanCandidates, problem);
  // Rows of any size can go on from a carry by blocks alone.
  const bool is_carried = problem.carries.row != 0;
  if (is_carried && is_by_rows(choice.algorithm) && choice.algorithm != ScanAlgorithm::kChainedRows) {
    choice.algorithm = ScanAlgorithm::kBlockedRows;
    choice.name = "blocked rows";
  }
  if (is_carried) choice.name += " with carries";
  const bool rows = is_by_rows(choice.algorithm);
  const bool columns = is_by_columns(choice.algorithm);
  const int64_t row_tile = std::min(problem.size(), tuning::kBlock);
  return {choice.algorithm,
          std::move(choice.name),
          rows ? problem.packs_rows() : columns && problem.packs_columns(),
          !kCompact && (rows || columns) && problem.bytes() >= kStreamFrom,
          rows      ? row_tile
          : columns ? rows_of_block(problem)
                    : problem.size(),
          2 * problem.bytes() >= kParallelFrom,
          std::move(choice.declined)};
}

ANYDML_ISA_END
