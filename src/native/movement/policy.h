// Which algorithm copies a nest of loops, decided once for a plan.
//
// README.md has the list of algorithms with what each is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/candidates.h"
#include "core/layout.h"
#include "movement/copy.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

enum class MovementAlgorithm { kLongRuns, kRepeatEach, kTiles, kOffsets, kRows };

// What candidates decide by: folded loops around a unit, which is an element, or a run of bytes that are one
// in both tensors.
struct MovementFacts {
  std::vector<Loop> loops;
  int64_t unit;

  int64_t bytes() const { return steps_of(loops) * unit; }
  bool is_packed() const { return anydml::ANYDML_ISA::is_packed(loops, unit); }
  Loop columns() const { return loops.empty() ? Loop{1, 0, unit} : loops.back(); }

  // The loop whose steps are the shortest in the input; of those that stay where they are none. -1 where
  // there is none.
  int64_t nearest_loop() const {
    int64_t nearest = -1;
    for (size_t d = 0; d < loops.size(); ++d) {
      if (loops[d].in == 0) continue;
      if (nearest < 0 || std::abs(loops[d].in) < std::abs(loops[static_cast<size_t>(nearest)].in)) {
        nearest = static_cast<int64_t>(d);
      }
    }
    return nearest;
  }
};

inline constexpr Candidate<MovementAlgorithm, MovementFacts> kMovementCandidates[] = {
    {MovementAlgorithm::kLongRuns, "long runs",
     [](const MovementFacts& facts) -> std::string {
       if (facts.unit >= kLongRun || facts.loops.empty()) return "";
       return "runs of " + std::to_string(facts.unit) + " bytes";
     }},
    {MovementAlgorithm::kRepeatEach, "repeated elements",
     [](const MovementFacts& facts) -> std::string {
       const Loop columns = facts.columns();
       if (columns.in != 0) return "neighbours of the output differ";
       if (facts.unit > 8 || !is_element(facts.unit)) {
         return "units of " + std::to_string(facts.unit) + " bytes";
       }
       if (facts.loops.size() < 2) return "there is one element";
       const bool follow =
           columns.out == facts.unit && facts.loops[facts.loops.size() - 2].out == columns.size * columns.out;
       if (!follow) return "the output has gaps";
       return columns.size * facts.unit > kLongRun ? "there are many of each" : "";
     }},
    {MovementAlgorithm::kTiles, "tiles",
     [](const MovementFacts& facts) -> std::string {
       const int64_t nearest = facts.nearest_loop();
       const Loop columns = facts.columns();
       if (columns.in == 0 || nearest + 1 == static_cast<int64_t>(facts.loops.size())) {
         return "neighbours of the output are neighbours of the input";
       }
       if (columns.out != facts.unit) return "the output has gaps";
       const Loop& rows = facts.loops[static_cast<size_t>(nearest)];
       if (std::abs(rows.in) >= 2 * kLine) return "the input's lines hold nothing of two rows";
       if (facts.unit >= kLine && facts.bytes() < kStreamFrom) return "runs fill lines, and fit the caches";
       if (rows.size * columns.size < kShortRow && facts.loops.size() > 2) return "tiles are small";
       return "";
     }},
    {MovementAlgorithm::kOffsets, "a table of offsets",
     [](const MovementFacts& facts) -> std::string {
       if (!facts.is_packed()) return "the output has gaps";
       if (facts.columns().size >= kShortRow) return "rows are long";
       return facts.loops.size() < 2 ? "there is one row" : "";
     }},
    {MovementAlgorithm::kRows, "rows", nullptr},
};

}  // namespace
ANYDML_ISA_END
