// GATHER: rows of the input by their indices.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "movement/indices.h"
#include "movement/prefetched_rows.h"
#include "movement/rows.h"
#include "movement/tuning.h"
#include "movement/view.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

// The loops of a gather, from the output's outermost on. `in` is a step of the indices in theirs, and one of
// the input in the others.
struct GatherLoops {
  std::vector<Loop> before;
  std::vector<Loop> indices;
  std::vector<Loop> after;
  Loop axis;  // of the input
};

class GatherPlan final : public Plan {
 public:
  GatherPlan(GatherLoops loops, int64_t element, IndexFunctions functions, std::string description)
      : Plan(std::move(description)),
        axis_(loops.axis),
        add_offsets_(functions.add_offsets),
        are_indices_(functions.are_indices),
        unit_(element) {
    before_ = fold(std::move(loops.before));
    outer_ = fold(std::move(loops.indices));
    after_ = fold(std::move(loops.after));
    if (!after_.empty() && after_.back().in == unit_ && after_.back().out == unit_) {
      unit_ *= take_innermost(after_).size;
    }
    columns_ = after_.empty() ? Loop{1, 0, 0} : take_innermost(after_);
    rows_ = take_innermost(outer_);
    const int64_t indexed = axis_.size * axis_.in;
    if (!before_.empty() && before_.back().in == indexed && indexed <= kTurnBytes) next_ = indexed;
    const int64_t row = steps_of(after_) * columns_.size * unit_;
    bytes_ = steps_of(before_) * steps_of(outer_) * rows_.size * row;
    is_run_ = after_.empty() && columns_.size == 1;
    packs_rows_ = is_run_ && (rows_.out == unit_ || rows_.size == 1);
    non_temporal_ = bytes_ >= kStreamFrom && packs_rows_;
    is_long_ = is_run_ && unit_ >= long_row(non_temporal_);
    pieces_ = is_long_ ? divided_up(unit_, kLongPortion) : 1;
    at_once_ = std::clamp<int64_t>(kTurnBytes / row, 1, std::min(kIndicesAtOnce, rows_.size));
    turns_ = divided_up(rows_.size, at_once_);
    copy_at_ = choose_copy_at(unit_);
    copy_row_ = choose_copy_of_row(unit_, columns_.in, columns_.out);
  }

  bool checks_values() const override { return true; }
  bool accepts(const void* const* inputs) const override {
    return have_indices(outer_, rows_, {&axis_, 1}, 0, are_indices_,
                        static_cast<const std::byte*>(inputs[1]));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(2 * bytes_);
    const int64_t parts = steps_of(before_) * steps_of(outer_) * turns_ * pieces_;
    const int64_t calls = std::min(calls_for(2 * bytes_, threads), parts);
    const Tensors tensors{static_cast<const std::byte*>(inputs[0]), static_cast<const std::byte*>(inputs[1]),
                          static_cast<std::byte*>(outputs[0])};
    parallel_for(calls, threads, [&](int64_t call) {
      copy_parts(share_begin(call, calls, parts), share_begin(call + 1, calls, parts), tensors);
    });
  }

 private:
  struct Tensors {
    const std::byte* in;
    const std::byte* indices;
    std::byte* out;
  };

  void copy_parts(int64_t first, int64_t last, const Tensors& tensors) const {
    int64_t offsets[kIndicesAtOnce];
    int64_t resolved = -1;
    StagedWriter staged(non_temporal_ && !is_long_);
    LongRows rows(non_temporal_ && is_long_);
    for (int64_t part = first; part < last; ++part) {
      const int64_t piece = part % pieces_;
      const int64_t turn = part / pieces_ % turns_;
      const int64_t those = part / (pieces_ * turns_);
      const int64_t outer_steps = steps_of(outer_);
      const LoopCursor outer(outer_, those % outer_steps);
      const LoopCursor before(before_, those / outer_steps);
      const int64_t begin = turn * at_once_;
      const int64_t count = std::min(at_once_, rows_.size - begin);
      const int64_t which = part / pieces_ % (turns_ * outer_steps);
      if (which != resolved) {
        std::fill_n(offsets, count, 0);
        add_offsets_(rows_, count, axis_, tensors.indices + outer.in() + begin * rows_.in, offsets);
        resolved = which;
      }
      const std::byte* const in = tensors.in + before.in();
      std::byte* const out = tensors.out + before.out() + outer.out() + begin * rows_.out;
      if (!is_run_) {
        copy_nests(offsets, count, in, out);
      } else if (!is_long_) {
        copy_rows(offsets, count, begin, in, out, staged);
      } else {
        const int64_t from = piece * kLongPortion;
        rows.copy(offsets, count, std::min(kLongPortion, unit_ - from), rows_.out, in + from, out + from);
      }
    }
  }

  // `number` is that of the first index.
  void copy_rows(const int64_t* offsets, int64_t count, int64_t number, const std::byte* in, std::byte* out,
                 StagedWriter& staged) const {
    if (!packs_rows_) {
      for (int64_t i = 0; i < count; ++i) copy_short(out + i * rows_.out, in + offsets[i], unit_);
      return;
    }
    const int64_t portion = kPortion / unit_;
    for (int64_t begin = 0; begin < count; begin += portion) {
      const int64_t size = std::min(portion, count - begin);
      std::byte* const to = staged.reserve(out + begin * unit_, size * unit_);
      if (are_prefetched(unit_, axis_.size * std::abs(axis_.in))) {
        copy_prefetched(copy_at_, offsets, count, begin, size, unit_, in, to);
        continue;
      }
      copy_at_(offsets + begin, size, unit_, in, to);
      if (next_ > 0) prefetch_next(in + next_, number + begin, size);
    }
  }

  // What the indices are of in the next step of the dimensions before, in proportion to how many are done.
  ANYDML_INLINE void prefetch_next(const std::byte* next, int64_t number, int64_t count) const {
    const int64_t begin = next_ * number / rows_.size;
    const int64_t end = next_ * (number + count) / rows_.size;
    for (int64_t i = begin; i < end; i += kLine) prefetch_line(next + i);
  }

  void copy_nests(const int64_t* offsets, int64_t count, const std::byte* in, std::byte* out) const {
    for (int64_t i = 0; i < count; ++i) {
      for_each(after_, in + offsets[i], out + i * rows_.out, [this](const std::byte* from, std::byte* to) {
        copy_row_({columns_.size, unit_, columns_.in, columns_.out}, from, to);
      });
    }
  }

  std::vector<Loop> before_;
  std::vector<Loop> outer_;  // of indices, but for those that follow each other:
  Loop rows_;
  std::vector<Loop> after_;  // around
  Loop columns_;             // of units
  Loop axis_;
  AddOffsets add_offsets_;
  AreIndices are_indices_;
  int64_t unit_;
  int64_t bytes_;
  int64_t next_ = 0;  // from what the indices are of to what they are of next, where that is behind it
  bool is_run_;       // what an index stands for, in both tensors
  bool packs_rows_;   // the output
  bool non_temporal_;
  bool is_long_;
  int64_t pieces_;  // of a run
  int64_t at_once_;
  int64_t turns_;  // of so many indices
  CopyAt copy_at_;
  CopyRuns copy_row_;
};

}  // namespace

std::unique_ptr<Plan> make_gather(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& indices = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  const int64_t element = size_of(in.type);
  const IndexFunctions functions = functions_of(indices.type);
  if (element == 0 || functions.add_offsets == nullptr) {
    reason = "no gather of " + std::string(name_of(in.type)) + " by " + std::string(name_of(indices.type));
    return nullptr;
  }
  require(size_of(out.type) == element, "the types of input and output differ");
  Reach read;
  Reach pointed;
  Reach written;
  const std::vector<int64_t>& axis = request.attributes.integers("Axis");
  require(axis.size() == 2 && axis[0] >= 1, "an axis has a size and a step");
  read.add_steps(axis[0], axis[1]);
  GatherLoops loops{loops_of(request.attributes, "Before", read, written),
                    loops_of(request.attributes, "Indices", pointed, written),
                    loops_of(request.attributes, "After", read, written),
                    {axis[0], axis[1], 0}};
  require(read.is_within(reach_of(in)) && pointed.is_within(reach_of(indices)), "a gather leaves an input");
  require(written.is_within(reach_of(out)), "a gather leaves the output");
  const std::string description = "gather of " + std::string(name_of(in.type)) + " by " +
                                  std::string(name_of(indices.type)) + ", along an axis of " +
                                  std::to_string(axis[0]);
  return std::make_unique<GatherPlan>(std::move(loops), element, functions, description);
}

ANYDML_ISA_END
