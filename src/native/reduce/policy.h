// The policy of a reduction: how its elements meet the accumulators. It is chosen when a plan is made, by the
// first of an ordered list of candidates that does not decline. README.md has the list as a table.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/candidates.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "reduce/geometry.h"
#include "reduce/kernel.h"
#include "reduce/tuning.h"
#include "simd/transpose.h"

ANYDML_ISA_BEGIN

enum class ReduceAlgorithm { kFoldedColumns, kRows, kPlanes, kColumns, kNarrowColumns, kPackedColumns };

struct ReduceProblem {
  ReduceGeometry geometry;
  int64_t element_size;
  int64_t number_size;       // of an accumulator
  int64_t least_number;      // the same of the kernel that has the smallest ones
  int64_t strip_columns;     // at most
  int64_t transposed_bytes;  // at most, of a line
  int64_t most_rows;         // that have numbers where there are indices, else any
  bool is_exact;             // whether no order of combining changes a result
  bool has_exponentials;     // whose accumulators begin with what a line has of its own

  int64_t least_lanes() const { return tuning::kLeastBytes / least_number; }
  int64_t row_lanes() const { return tuning::kRowBytes / number_size; }
  // From the beginning of some elements to that of the next ones, where little lies between them: it is in
  // the same lines, and is accumulated beside them, for nothing. Else 0.
  int64_t pitch_of(int64_t elements, int64_t step) const {
    const bool is_little = step <= std::max(2 * elements * element_size, tuning::kLeastBytes);
    const int64_t pitch = step / element_size;
    return is_little && pitch * element_size == step && pitch >= elements ? pitch : 0;
  }
  // The columns of rows that are accumulated side by side: with what lies between them, but where
  // accumulators begin with what the columns have of their own.
  int64_t row_width() const {
    const int64_t columns = geometry.columns.size;
    return has_exponentials ? columns : std::max(pitch_of(columns, geometry.rows.in), columns);
  }
  // Of packed rows of so few columns, those that are accumulated side by side.
  int64_t narrow_rows(int64_t columns) const {
    const int64_t most = tuning::kNarrowBytes / number_size / columns;
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, 1))));
  }
  // The same of few rows, whose accumulators would take longer to put together: as many as fill vectors.
  int64_t filling_rows(int64_t columns) const {
    const int64_t least = (least_lanes() + columns - 1) / columns;
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(least)));
  }
  int64_t few_narrow_rows(int64_t columns) const {
    const int64_t most = static_cast<int64_t>(
        std::bit_floor(static_cast<uint64_t>(geometry.rows.size / tuning::kNarrowGroups) | 1));
    return std::min(std::max(most, filling_rows(columns)), narrow_rows(columns));
  }
  // Whether there are so many groups of packed rows of few columns.
  bool is_narrow(int64_t groups = tuning::kNarrowGroups) const {
    const ReduceGeometry& g = geometry;
    const int64_t width = row_width();
    const bool is_packed = has_adjacent_columns() && g.rows.in == width * element_size;
    const bool fills_vectors = width == g.columns.size && width % (row_lanes() / 4) == 0;
    return is_packed && !fills_vectors && width < 2 * row_lanes() &&
           g.rows.size >= groups * filling_rows(width) && !has_cells();
  }
  // The place of planes of few columns that follow each other in the output, or the number of all.
  size_t planes_beside() const {
    const ReduceGeometry& g = geometry;
    const auto is_beside = [&](const Loop& plane) {
      return plane.size >= tuning::kFewLines && plane.out == g.columns.size * g.columns.out &&
             plane.in >= g.rows.size * std::abs(g.rows.in);
    };
    return static_cast<size_t>(std::ranges::find_if(g.planes, is_beside) - g.planes.begin());
  }
  bool has_adjacent_columns() const { return geometry.columns.in == element_size; }
  size_t longest_plane() const {
    const auto longest = std::ranges::max_element(geometry.planes, {}, &Loop::size);
    return static_cast<size_t>(longest - geometry.planes.begin());
  }
  // Whether few columns, with the rows behind each other, are a line of many that lie further apart.
  bool has_cells() const {
    const ReduceGeometry& g = geometry;
    if (g.columns.size >= tuning::kFewLines || g.planes.empty() || !has_adjacent_columns()) return false;
    const int64_t line = g.columns.size * g.rows.size;
    return g.rows.in == g.columns.size * element_size && line * element_size <= tuning::kMostCellBytes &&
           g.planes[longest_plane()].size >= 64;
  }
  // Whether lines are so short that they are better transposed, where what is reduced is adjacent.
  bool has_short_lines() const {
    const int64_t line = geometry.rows.size * element_size;
    if (outputs() < tuning::kFewLines) return false;
    if (geometry.outer.empty()) return line <= transposed_bytes;
    return geometry.rows.size <= tuning::kShuffledRows ||
           (line >= kSquareBytes && line <= tuning::kTransposedSegmentBytes);
  }
  // From a short segment of a line to that of the next one, which may have little between them.
  int64_t segment_pitch() const {
    const int64_t segment = geometry.rows.size;
    return geometry.columns.size == 1 ? segment : pitch_of(segment, geometry.columns.in);
  }
  // The elements of all lines' segments, with what lies between them.
  int64_t folded_columns() const {
    return (geometry.columns.size - 1) * segment_pitch() + geometry.rows.size;
  }
  // Short segments of lines as columns of their own, which are put together at the end: all of them lie
  // before the next ones.
  bool has_folded_columns() const {
    const ReduceGeometry& g = geometry;
    if (has_exponentials || g.outer.size() != 1 || g.rows.in != element_size) return false;
    const int64_t columns = folded_columns();
    return g.rows.size * element_size <= tuning::kFoldedBytes && segment_pitch() > 0 &&
           g.outer[0].in >= columns * element_size && g.outer[0].size >= tuning::kFoldedRows &&
           columns <= strip_columns;
  }
  // The same reduction before they are put together.
  ReduceProblem unfolded() const {
    ReduceProblem problem = *this;
    problem.geometry.columns = {folded_columns(), element_size, 0};
    problem.geometry.rows = geometry.outer[0];
    problem.geometry.outer.clear();
    return problem;
  }

  int64_t outputs() const {
    return count_of(geometry.planes) * geometry.beside.size * geometry.cells.size * geometry.columns.size;
  }
  int64_t reduced_rows() const { return count_of(geometry.outer) * geometry.rows.size; }
  int64_t bytes() const { return outputs() * reduced_rows() * element_size; }
};

struct ReducePolicy {
  ReduceAlgorithm algorithm;
  std::string name;
  int64_t lines;       // of a tile, or of a batch
  int64_t width;       // the accumulators of a row, where rows are accumulated whole, else 0
  int64_t phases;      // so many rows are accumulated apart, and then put together
  int64_t chunk_rows;  // are reduced apart from others
  std::string declined;

  std::string text(const ReduceProblem& problem) const {
    const int64_t chunks = (problem.reduced_rows() + chunk_rows - 1) / chunk_rows;
    return name + (chunks > 1 ? ", " + std::to_string(chunks) + " chunks" : "") +
           (problem.bytes() >= kParallelFrom
                ? ", parallel"
                : ", one thread, below " + std::to_string(kParallelFrom >> 10) + " KiB") +
           declined;
  }
};

inline constexpr Candidate<ReduceAlgorithm, ReduceProblem> kReduceCandidates[] = {
    {ReduceAlgorithm::kFoldedColumns, "folded columns",
     [](const ReduceProblem& p) -> std::string {
       if (!p.has_folded_columns()) return "no short segments in packed rows";
       const ReduceProblem unfolded = p.unfolded();
       const bool fills_vectors = unfolded.geometry.columns.size >= p.least_lanes();
       return unfolded.is_narrow() || fills_vectors ? "" : "few rows";
     }},
    {ReduceAlgorithm::kRows, "rows",
     [](const ReduceProblem& p) -> std::string {
       const Loop rows = p.geometry.rows;
       if (std::abs(rows.in) != p.element_size && rows.size != 1) return "what is reduced is not adjacent";
       return p.has_short_lines() ? "short rows" : "";
     }},
    {ReduceAlgorithm::kPlanes, "planes",
     [](const ReduceProblem& p) -> std::string {
       const ReduceGeometry& g = p.geometry;
       if (!p.has_adjacent_columns()) return "what is kept is not adjacent";
       const int64_t bytes = g.columns.size * p.number_size;
       const int64_t most =
           g.rows.size <= tuning::kFewPlaneRows ? tuning::kWidePlaneBytes : tuning::kPlaneBytes;
       if (bytes > most) return "many columns";
       const bool has_vectors = bytes > tuning::kLeastBytes && bytes % tuning::kLeastBytes == 0;
       if (has_vectors && g.rows.size > tuning::kVectorPlaneRows) return "columns that fill vectors";
       if (g.columns.size * p.element_size <= tuning::kCellBytes && p.has_cells()) return "cells";
       if (p.has_exponentials) return "exponentials";
       if (!g.outer.empty() || g.rows.size > p.most_rows) return "many rows";
       const bool fills_vectors = g.columns.size >= p.least_lanes() || p.is_narrow();
       if (g.rows.size > tuning::kPlaneRows && fills_vectors) return "many rows";
       return p.planes_beside() == g.planes.size() ? "few planes" : "";
     }},
    {ReduceAlgorithm::kColumns, "columns",
     [](const ReduceProblem& p) -> std::string {
       if (!p.has_adjacent_columns()) return "what is kept is not adjacent";
       if (p.geometry.columns.size < p.least_lanes() || p.has_cells()) return "few columns";
       return p.is_narrow() ? "narrow columns" : "";
     }},
    {ReduceAlgorithm::kNarrowColumns, "narrow columns",
     [](const ReduceProblem& p) -> std::string {
       // Nothing else takes adjacent columns that are neither a vector nor cells but one by one.
       return p.is_narrow(1) ? "" : "few rows, or rows that are apart";
     }},
    {ReduceAlgorithm::kPackedColumns, "packed columns",
     [](const ReduceProblem&) -> std::string { return ""; }},
};

// Columns that lie along a long dimension, in place of few adjacent ones, which are cells of a tile then
// where rows follow each other.
inline void choose_lines(ReduceProblem& problem) {
  ReduceGeometry& geometry = problem.geometry;
  if (geometry.columns.size >= tuning::kFewLines || geometry.planes.empty()) return;
  const bool has_cells = problem.has_cells();
  const auto longest = problem.longest_plane();
  if (geometry.planes[longest].size <= geometry.columns.size) return;
  std::swap(geometry.planes[longest], geometry.columns);
  if (!has_cells) return;
  geometry.cells = geometry.planes[longest];
  geometry.planes.erase(geometry.planes.begin() + static_cast<std::ptrdiff_t>(longest));
}

// The lines of a tile.
inline int64_t lines_of(const ReduceProblem& problem) {
  const ReduceGeometry& g = problem.geometry;
  const int64_t line = g.rows.size * g.cells.size * problem.element_size;
  const int64_t lines =
      std::min({tuning::kTileBytes / line, problem.strip_columns / g.cells.size, tuning::kTileLines});
  return std::min(std::max(lines / 64 * 64, int64_t{64}), g.columns.size);
}

// The lines whose results are stored at a time: of large reductions so few that there are batches for every
// thread, which are long enough.
inline int64_t batch_of(const ReduceProblem& problem) {
  // Short segments of lines lie between each other.
  const int64_t segment = problem.geometry.rows.size * problem.element_size;
  const bool has_segments = !problem.geometry.outer.empty() && segment < tuning::kShortSegmentBytes;
  const int64_t line = problem.reduced_rows() * problem.element_size;
  const int64_t most = problem.is_exact
                           ? std::clamp<int64_t>(tuning::kBatchBytes / line, 1, tuning::kBatchLines)
                           : tuning::kBatchLines;
  if (has_segments) return tuning::kBatchLines;
  if (problem.bytes() < kParallelFrom) return most;
  const int64_t lines = std::max(problem.outputs() / tuning::kChunkedBelow, tuning::kChunkBytes / line);
  return std::clamp<int64_t>(lines, 1, most);
}

// A reduction with few outputs is cut into chunks. Their size depends on sizes alone, and so does the order
// of combining.
inline int64_t chunk_rows_of(const ReduceProblem& problem, ReduceAlgorithm algorithm,
                             int64_t accumulator_size, int64_t width, int64_t phases) {
  const int64_t rows = problem.reduced_rows();
  const int64_t outputs = problem.outputs();
  const bool is_by_rows = algorithm == ReduceAlgorithm::kRows;
  const int64_t batch = is_by_rows ? batch_of(problem) : tuning::kStripLeastBytes / problem.element_size;
  const int64_t planes = count_of(problem.geometry.planes);
  const int64_t strips = std::max<int64_t>(planes, outputs / batch);
  if ((problem.has_short_lines() && problem.geometry.outer.empty()) ||
      strips >= std::min(tuning::kChunkedBelow, problem.bytes() / tuning::kThreadBytes) ||
      problem.geometry.cells.size > 1 || problem.bytes() < kParallelFrom) {
    return rows;
  }
  const int64_t columns = problem.geometry.columns.size;
  const int64_t own = is_by_rows ? std::min(columns, batch) : columns;
  const int64_t bytes = own * rows * problem.element_size;
  // With what is left free between arrays.
  const int64_t free = 3 * tuning::kLeastBytes * planes * ((columns + own - 1) / own);
  const int64_t most = tuning::kPartialBytes / (outputs * accumulator_size + free);
  const bool is_folded = algorithm == ReduceAlgorithm::kFoldedColumns;
  const int64_t segment = problem.geometry.rows.size;
  // Indices of accumulators, which are put together in 64 bits, take as long as some rows.
  const int64_t accumulators = is_by_rows ? 0 : std::max(columns, width) * phases;
  const int64_t accumulated = problem.is_exact ? accumulators * tuning::kAccumulatedBytes : 0;
  const int64_t least = std::max(tuning::kChunkBytes, accumulated);
  int64_t chunks = std::clamp<int64_t>(std::min(bytes / least, most), 1, rows);
  // As many for each of the usual numbers of threads.
  if (problem.is_exact) chunks = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(chunks)));
  const int64_t size = (rows + chunks - 1) / chunks;
  const int64_t unit = is_folded || size >= segment ? segment : phases;
  return std::min(rows, (size + unit - 1) / unit * unit);
}

inline ReducePolicy choose_policy(ReduceProblem& problem, int64_t accumulator_size) {
  Choice<ReduceAlgorithm> choice = choose(kReduceCandidates, problem);
  if (choice.algorithm == ReduceAlgorithm::kPackedColumns) choose_lines(problem);
  if (choice.algorithm == ReduceAlgorithm::kPlanes) {
    problem.geometry.beside = take(problem.geometry.planes, static_cast<int64_t>(problem.planes_beside()));
  }
  int64_t width = 0;
  int64_t phases = 1;
  if (choice.algorithm == ReduceAlgorithm::kFoldedColumns) {
    const ReduceProblem unfolded = problem.unfolded();
    const bool is_narrow = unfolded.is_narrow();
    width = is_narrow ? unfolded.row_width() : unfolded.geometry.columns.size;
    if (is_narrow) phases = unfolded.few_narrow_rows(width);
  } else if (choice.algorithm == ReduceAlgorithm::kRows) {
    phases = problem.row_lanes();
  } else if (choice.algorithm == ReduceAlgorithm::kNarrowColumns) {
    width = problem.row_width();
    phases = problem.few_narrow_rows(width);
  } else if (problem.geometry.columns.size < problem.least_lanes()) {
    phases = problem.few_narrow_rows(problem.geometry.columns.size);
  }
  return {.algorithm = choice.algorithm,
          .name = std::move(choice.name),
          .lines = choice.algorithm == ReduceAlgorithm::kRows ? batch_of(problem) : lines_of(problem),
          .width = width,
          .phases = phases,
          .chunk_rows = chunk_rows_of(problem, choice.algorithm, accumulator_size, width, phases),
          .declined = std::move(choice.declined)};
}

ANYDML_ISA_END
