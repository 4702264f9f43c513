// Which algorithm joins which rows, decided once for a plan.
//
// README.md has the list of algorithms with what each is for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/candidates.h"
#include "join/interleave.h"
#include "join/row_pieces.h"
#include "join/tuning.h"
#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

enum class JoinAlgorithm { kShuffle, kTranspose, kAppend, kTile, kCopyRuns, kBlock };

// What candidates decide by.
struct JoinFacts {
  const Rows& rows;
  bool non_temporal;  // the output is too large for the caches
  bool adjacent;      // in every tensor each row begins where the one before ends
  int64_t lane;       // the size of all runs, where it is that of an element, 1, 2 or 4; else 0
  const Interleave& interleave;

  std::string mean_run() const { return "runs of " + std::to_string(rows.run()) + " bytes on average"; }
  bool transposes() const { return lane > 0 && rows.size > kVector / 2; }
  bool appends() const {
    const bool many = rows.inputs() > kHardwarePrefetchStreams;
    return non_temporal && rows.packed() && rows.run() >= (many ? kAppendedRun : kAppendedRunOfFewInputs);
  }
};

inline constexpr Candidate<JoinAlgorithm, JoinFacts> kJoinCandidates[] = {
    {JoinAlgorithm::kShuffle, "byte shuffles",
     [](const JoinFacts& facts) -> std::string {
       if (!facts.adjacent) return "rows do not follow each other in every tensor";
       if (facts.transposes() && facts.rows.size > facts.interleave.vector() / 2) {
         return "rows of " + std::to_string(facts.rows.size) + " bytes are transposed in less time";
       }
       return facts.interleave.declined();
     }},
    {JoinAlgorithm::kTranspose, "transposed squares",
     [](const JoinFacts& facts) -> std::string {
       if (!facts.adjacent) return "rows do not follow each other in every tensor";
       if (facts.lane == 0) return "runs are not all of 1, 2 or 4 bytes";
       return facts.transposes() ? "" : "rows are narrower than a square";
     }},
    {JoinAlgorithm::kAppend, "appended runs",
     [](const JoinFacts& facts) -> std::string {
       if (!facts.non_temporal) return "the output fits the caches, or its rows have gaps";
       if (!facts.rows.packed()) return "inputs have gaps";
       return facts.appends() ? "" : facts.mean_run();
     }},
    {JoinAlgorithm::kTile, "tiles",
     [](const JoinFacts& facts) -> std::string {
       const Rows& rows = facts.rows;
       if (!facts.non_temporal) return "the output fits the caches, or its rows have gaps";
       if (!rows.packed()) return "inputs have gaps";
       if (rows.inputs() <= kHardwarePrefetchStreams) return "few inputs";
       if (rows.longest() > kTileWidth) return "a run is wider than a tile";
       if (rows.run() < kTiledRun) return facts.mean_run();
       return rows.size < kTiledRow ? "rows of " + std::to_string(rows.size) + " bytes" : "";
     }},
    {JoinAlgorithm::kCopyRuns, "long runs",
     [](const JoinFacts& facts) -> std::string {
       if (!facts.rows.packed()) return "inputs have gaps";
       return facts.rows.runs_are_long() ? "" : facts.mean_run();
     }},
    {JoinAlgorithm::kBlock, "blocks", nullptr},
};

class JoinPolicy {
 public:
  explicit JoinPolicy(const Rows& rows)
      : runs_are_long(rows.runs_are_long()), non_temporal(rows.contiguous && rows.bytes() >= kStreamFrom) {
    const bool adjacent = are_adjacent(rows);
    if (adjacent) interleave = Interleave(sizes_of(rows));
    const JoinFacts facts{rows, non_temporal, adjacent, adjacent ? lane_of(rows) : 0, interleave};
    const Choice<JoinAlgorithm> choice = choose(kJoinCandidates, facts);
    algorithm = choice.algorithm;
    lane = algorithm == JoinAlgorithm::kTranspose ? facts.lane : 0;
    staged = non_temporal && algorithm != JoinAlgorithm::kAppend;
    if (algorithm == JoinAlgorithm::kAppend && rows.inputs() >= kHardwarePrefetchStreams &&
        rows.run() >= kInterleavedRun) {
      interleaved_rows = std::clamp<int64_t>(kInterleavedBytes / rows.run(), 1, kMostInterleavedRows);
    }
    block = algorithm == JoinAlgorithm::kTile ? kTileRows * pitch(rows) : block_of(rows);
    words = choice.name + (interleaved_rows > 1 ? ", rows interleaved" : "") +
            (non_temporal ? ", non-temporal stores" : "") + choice.declined;
  }

  JoinAlgorithm algorithm;
  bool runs_are_long;            // every run is worth a copy of its own
  bool non_temporal;             // the output is stored past the caches,
  bool staged;                   // from a block of the thread's own
  int64_t interleaved_rows = 1;  // rows that are appended in turn
  int64_t block;                 // in bytes: some whole rows, or a part of one
  Interleave interleave;
  int64_t lane;       // the size of the elements that are transposed
  std::string words;  // in explain()

  // From a tile's row to the next, whose last run begins within the width. An odd number of lines, for an
  // even one maps rows to fewer sets of the cache.
  static int64_t pitch(const Rows& rows) { return (((kTileWidth + rows.longest()) / kLine + 1) | 1) * kLine; }

 private:
  static bool are_adjacent(const Rows& rows) {
    return rows.packed() && std::ranges::all_of(rows.pieces, [&](const RowPiece& piece) {
             return !piece.rows.empty() && piece.rows.back().in == piece.size() &&
                    piece.rows.back().out == rows.size;
           });
  }

  static std::vector<int64_t> sizes_of(const Rows& rows) {
    std::vector<int64_t> sizes;
    for (const RowPiece& piece : rows.pieces) sizes.push_back(piece.size());
    return sizes;
  }

  static int64_t lane_of(const Rows& rows) {
    const int64_t size = rows.pieces[0].size();
    const bool equal =
        std::ranges::all_of(rows.pieces, [=](const RowPiece& each) { return each.size() == size; });
    return equal && (size == 1 || size == 2 || size == 4) ? size : 0;
  }

  int64_t block_of(const Rows& rows) const {
    const int64_t periods = algorithm == JoinAlgorithm::kShuffle ? kPeriodsOfABlock * interleave.rows() : 0;
    const int64_t pays = std::max(rows.inputs() * kBlockBytesPerInput, periods * rows.size);
    const int64_t wanted = staged          ? std::clamp(pays, kSmallestBlock, kLargestBlock)
                           : runs_are_long ? kBlockOfLongRuns
                                           : kLargestBlock;
    int64_t at_once = wanted / rows.size;
    const int64_t vector = interleave.vector();
    if (at_once > vector) at_once = at_once / vector * vector;
    return at_once > 0 ? at_once * rows.size : staged ? kSmallestBlock : wanted;
  }
};

}  // namespace
ANYDML_ISA_END
