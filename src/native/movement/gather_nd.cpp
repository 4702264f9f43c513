// GATHER_ND and SCATTER_ND, and those of elements: what tuples of indices point to.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "movement/indices.h"
#include "movement/partitioned_points.h"
#include "movement/points.h"
#include "movement/prefetched_rows.h"
#include "movement/rows.h"
#include "movement/scattered_units.h"
#include "movement/sorted_points.h"
#include "movement/tuning.h"
#include "movement/view.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

// What a point stands for: loops around units, `in` a step of what is read and `out` of what is written.
class Slice {
 public:
  Slice(std::vector<Loop> loops, int64_t element) : loops_(fold(std::move(loops))), unit_(element) {
    if (!loops_.empty() && loops_.back().in == unit_ && loops_.back().out == unit_) {
      unit_ *= take_innermost(loops_).size;
    }
    columns_ = take_innermost(loops_);
    copy_row_ = choose_copy_of_runs(unit_);
  }

  bool is_run() const { return loops_.empty() && columns_.size == 1; }
  int64_t unit() const { return unit_; }
  int64_t bytes() const { return steps_of(loops_) * columns_.size * unit_; }

  void copy(const std::byte* in, std::byte* out) const {
    for_each(loops_, in, out, [this](const std::byte* from, std::byte* to) {
      copy_row_({columns_.size, unit_, columns_.in, columns_.out}, from, to);
    });
  }

 private:
  std::vector<Loop> loops_;
  Loop columns_;
  int64_t unit_;
  CopyRuns copy_row_;
};

// Points, slices, and the bytes that indices and slices read and write.
struct Work {
  Points points;
  Slice slice;
  int64_t bytes;
};

class GatherPlan final : public Plan {
 public:
  // `table` is the size of what is pointed into.
  GatherPlan(Work work, int64_t table, std::string description)
      : Plan(std::move(description)), work_(std::move(work)) {
    const Slice& slice = work_.slice;
    is_packed_ = slice.is_run() && work_.points.listed_step() == slice.unit();
    non_temporal_ =
        is_packed_ && !work_.points.has_stripes() && work_.points.count() * slice.bytes() >= kStreamFrom;
    is_long_ = slice.is_run() && slice.unit() >= long_row(non_temporal_);
    pieces_ = is_long_ ? divided_up(slice.unit(), kLongPortion) : 1;
    prefetches_ = !work_.points.have_rows() && are_prefetched(slice.unit(), table);
    copy_at_ = choose_copy_at(slice.unit());
  }

  bool checks_values() const override { return true; }
  bool accepts(const void* const* inputs) const override {
    return work_.points.are_right(static_cast<const std::byte*>(inputs[1]));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(work_.bytes);
    const int64_t parts =
        (work_.points.has_stripes() ? work_.points.stripes() : work_.points.blocks()) * pieces_;
    const int64_t calls = std::min(calls_for(work_.bytes, threads), parts);
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    const auto* const indices = static_cast<const std::byte*>(inputs[1]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    parallel_for(calls, threads, [&](int64_t call) {
      Writers writers{StagedWriter(non_temporal_ && !is_long_), LongRows(non_temporal_ && is_long_)};
      const auto table = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(table_bytes()));
      const int64_t last = share_begin(call + 1, calls, parts);
      for (int64_t part = share_begin(call, calls, parts); part < last; ++part) {
        if (!work_.points.has_stripes()) {
          copy_block(work_.points, part / pieces_, part % pieces_, in, indices, out, writers);
          continue;
        }
        Runs rows;
        int64_t first_row;
        const Points points = work_.points.stripe(part, rows, first_row);
        copy_runs_of_any_size(rows, in + first_row, table.get());
        for (int64_t block = 0; block < points.blocks(); ++block) {
          copy_block(points, block, 0, table.get(), indices, out, writers);
        }
      }
    });
  }

 private:
  // Of a thread.
  struct Writers {
    StagedWriter staged;
    LongRows rows;
  };

  int64_t table_bytes() const { return work_.points.has_stripes() ? work_.points.stripe_bytes() : 0; }

  void copy_block(const Points& points, int64_t number, int64_t piece, const std::byte* in,
                  const std::byte* indices, std::byte* out, Writers& writers) const {
    int64_t offsets[kIndicesAtOnce];
    const Block block = points.resolve(number, indices, offsets);
    points.prefetch_next(block, in);
    for (int64_t run = 0; run < block.runs; ++run) {
      std::byte* const to = out + block.listed + run * block.next_run;
      copy(block, run, offsets + run * block.count, piece, in, to, writers);
    }
  }

  void copy(const Block& block, int64_t run, const int64_t* offsets, int64_t piece, const std::byte* in,
            std::byte* out, Writers& writers) const {
    const int64_t unit = work_.slice.unit();
    const int64_t step = work_.points.listed_step();
    const int64_t count = block.count;
    if (is_long_) {
      const int64_t from = piece * kLongPortion;
      writers.rows.copy(offsets, count, std::min(kLongPortion, unit - from), step, in + from, out + from);
    } else if (is_packed_) {
      const int64_t most = block.indices == nullptr ? kIndicesAtOnce : kIndicesPrefetched;
      const int64_t portion = std::min(kPortion / unit, most);
      for (int64_t begin = 0; begin < count; begin += portion) {
        const int64_t size = std::min(portion, count - begin);
        block.prefetch_indices_of(run * count + begin, size);
        std::byte* const to = writers.staged.reserve(out + begin * unit, size * unit);
        if (prefetches_) {
          copy_prefetched(copy_at_, offsets, count, begin, size, unit, in, to);
        } else {
          copy_at_(offsets + begin, size, unit, in, to);
        }
      }
    } else {
      for (int64_t i = 0; i < count; ++i) work_.slice.copy(in + offsets[i], out + i * step);
    }
  }

  Work work_;
  bool is_packed_;
  bool is_long_;
  bool non_temporal_;
  bool prefetches_;
  int64_t pieces_;  // of a long run
  CopyAt copy_at_;
};

// The offsets that points may have.
struct Range {
  int64_t first;
  int64_t size;
};

// Copies the input, and then the updates, each thread those of its own steps of a loop whose points never
// meet, or those that were sorted into a part of the output: so the last of several to one place counts.
// Elements that fill a large output are partitioned instead, on one thread, too, and where columns would be
// gone through in stripes.
class ScatterPlan final : public Plan {
 public:
  ScatterPlan(std::unique_ptr<Plan> copy, Work work, Range range, std::string description)
      : Plan(std::move(description)), copy_(std::move(copy)), work_(std::move(work)), range_(range) {
    if (work_.slice.is_run()) {
      functions_ = choose_scatter(work_.slice.unit());
      if (!work_.points.have_rows() && are_partitioned(work_.points.count(), range_.size)) {
        partitioned_ = choose_scatter_partitioned(work_.slice.unit());
      }
    }
    is_short_run_ = work_.slice.is_run() && work_.slice.unit() < kLongRow;
  }

  bool checks_values() const override { return true; }
  bool accepts(const void* const* inputs) const override {
    return work_.points.are_right(static_cast<const std::byte*>(inputs[1]));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    copy_->run(inputs, outputs);
    const auto* const indices = static_cast<const std::byte*>(inputs[1]);
    const auto* const updates = static_cast<const std::byte*>(inputs[2]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(work_.bytes);
    const int64_t loop = threads == 1 ? -1 : work_.points.free_loop(threads);
    if ((loop < 0 || work_.points.has_stripes()) && partitioned_ != nullptr) {
      return partitioned_(work_.points, OutputParts(range_.first, range_.size), threads, indices, updates,
                          out);
    }
    if (work_.points.has_stripes()) return set_stripes(threads, indices, updates, out);
    if (threads == 1) return set(work_.points, indices, updates, out);
    if (loop < 0 && is_sorted(threads)) return set_sorted(threads, indices, updates, out);
    if (loop < 0) return set(work_.points, indices, updates, out);
    parallel_for(threads, threads, [&](int64_t part) {
      const int64_t size = work_.points.size_of_loop(loop);
      const Points own =
          work_.points.part(loop, share_begin(part, threads, size), share_begin(part + 1, threads, size));
      set(own, indices, updates, out);
    });
  }

 private:
  void set_stripes(int threads, const std::byte* indices, const std::byte* updates, std::byte* out) const {
    const int64_t bytes = work_.points.stripe_bytes();
    const int64_t stripes = work_.points.stripes();
    const int64_t calls = std::min(calls_for(work_.bytes, threads), stripes);
    parallel_for(calls, threads, [&](int64_t call) {
      const auto table = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
      const int64_t last = share_begin(call + 1, calls, stripes);
      for (int64_t i = share_begin(call, calls, stripes); i < last; ++i) {
        Runs rows;
        int64_t first_row;
        const Points points = work_.points.stripe(i, rows, first_row);
        copy_runs_of_any_size(rows, out + first_row, table.get());
        set(points, indices, updates, table.get());
        copy_runs_of_any_size({rows.count, rows.size, rows.out_step, rows.in_step}, table.get(),
                              out + first_row);
      }
    });
  }

  void set(const Points& points, const std::byte* indices, const std::byte* updates, std::byte* out) const {
    int64_t offsets[kIndicesAtOnce];
    const int64_t step = points.listed_step();
    for (int64_t number = 0; number < points.blocks() && !is_cancelled(); ++number) {
      const Block block = points.resolve(number, indices, offsets);
      points.prefetch_next(block, out);
      const int64_t most = block.indices == nullptr ? kIndicesAtOnce : kIndicesPrefetched;
      for (int64_t run = 0; run < block.runs; ++run) {
        const std::byte* const from = updates + block.listed + run * block.next_run;
        const std::span points_of_run(offsets + run * block.count, static_cast<size_t>(block.count));
        for (int64_t begin = 0; begin < block.count; begin += most) {
          const int64_t size = std::min(most, block.count - begin);
          block.prefetch_indices_of(run * block.count + begin, size);
          set_run(points_of_run, begin, size, step, from + begin * step, out);
        }
      }
    }
  }

  // The points [begin, begin + size) of a run, all of whose offsets are known.
  void set_run(std::span<const int64_t> offsets, int64_t begin, int64_t size, int64_t step,
               const std::byte* from, std::byte* out) const {
    const int64_t unit = work_.slice.unit();
    const auto count = static_cast<int64_t>(offsets.size());
    const int64_t known = std::clamp<int64_t>(count - kRowsAhead - begin, 0, size);
    const int64_t* const first = offsets.data() + begin;
    if (functions_.copy_to != nullptr) {
      const int64_t prefetched = work_.points.have_rows() ? 0 : known;
      return functions_.copy_to(first, {size, step, unit, prefetched}, from, out);
    }
    for (int64_t i = 0; i < size; ++i, from += step) {
      if (is_short_run_ && i < known) prefetch_lines(out + first[i + kRowsAhead], unit);
      copy_slice(from, out + first[i]);
    }
  }

  // Whether so many threads take less time to sort points, and then to copy, than one does to copy.
  bool is_sorted(int threads) const {
    return threads >= kSortingThreads || work_.slice.bytes() >= kLine || range_.size >= kSortedTable;
  }

  // Some points for each thread at a time.
  void set_sorted(int threads, const std::byte* indices, const std::byte* updates, std::byte* out) const {
    const Points& points = work_.points;
    const OutputParts parts(range_.first, range_.size);
    const int64_t blocks = points.blocks();
    const int64_t at_once = std::min(divided_up(blocks, threads), kSortedBlocks);
    std::vector<SortedPoints> sorted(static_cast<size_t>(threads));
    for (SortedPoints& each : sorted) each.reserve(at_once);
    for (int64_t begin = 0; begin < blocks && !is_cancelled(); begin += threads * at_once) {
      parallel_for(threads, threads, [&](int64_t i) {
        const int64_t first = std::min(begin + i * at_once, blocks);
        const int64_t last = std::min(first + at_once, blocks);
        sorted[static_cast<size_t>(i)].sort(points, parts, first, last, indices);
      });
      parallel_for(parts.count(), threads, [&](int64_t part) {
        for (const SortedPoints& each : sorted) copy_part(each.of_part(part), updates, out);
      });
    }
  }

  void copy_part(std::span<const SortedPoint> points, const std::byte* from, std::byte* to) const {
    const int64_t unit = work_.slice.unit();
    if (functions_.copy_sorted != nullptr) return functions_.copy_sorted(points, unit, from, to);
    for (size_t i = 0; i < points.size(); ++i) {
      if (is_short_run_ && i + kRowsAhead < points.size()) {
        prefetch_lines(from + points[i + kRowsAhead].from, unit);
        prefetch_lines(to + points[i + kRowsAhead].to, unit);
      }
      copy_slice(from + points[i].from, to + points[i].to);
    }
  }

  void copy_slice(const std::byte* from, std::byte* to) const {
    if (is_short_run_) {
      copy_short(to, from, work_.slice.unit());
    } else {
      work_.slice.copy(from, to);
    }
  }

  std::unique_ptr<Plan> copy_;
  Work work_;
  Range range_;  // of all offsets
  ScatterFunctions functions_{nullptr, nullptr};
  ScatterPartitioned partitioned_ = nullptr;
  bool is_short_run_;
};

// What a request says, checked against the memory of its tensors. `range` is of the offsets.
Work work_of(const Request& request, const Layout& pointed, const Layout& listed, IndexFunctions functions,
             bool is_scatter, Range& range) {
  const Layout& indices = tensor(request.inputs, 1);
  const Attributes& attributes = request.attributes;
  const std::vector<int64_t>& free = attributes.integers("Free");
  const std::vector<int64_t>& words = attributes.integers("Points");
  require(words.size() == 4 * free.size(), "a loop over points has four numbers");
  Reach in_indices;
  Reach in_pointed;
  Reach in_listed;
  std::vector<PointLoop> loops;
  for (size_t d = 0; d < free.size(); ++d) {
    const int64_t* const each = words.data() + 4 * d;
    require(each[0] >= 1, "a loop has no step");
    loops.push_back({each[0], each[1], each[2], each[3], free[d] != 0});
    in_indices.add_steps(each[0], each[1]);
    in_pointed.add_steps(each[0], each[2]);
    in_listed.add_steps(each[0], each[3]);
  }
  std::vector<Loop> axes;
  const std::vector<int64_t>& sizes = attributes.integers("Axes");
  require(!sizes.empty() && sizes.size() % 2 == 0, "an axis has a size and a step");
  for (size_t c = 0; c < sizes.size(); c += 2) {
    require(sizes[c] >= 1, "an axis has no index");
    axes.push_back({sizes[c], sizes[c + 1], 0});
    in_pointed.add_steps(sizes[c], sizes[c + 1]);
  }
  const int64_t coordinate = attributes.integer("CoordinateStep");
  in_indices.add_steps(static_cast<int64_t>(axes.size()), coordinate);
  range.first = static_cast<int64_t>(in_pointed.low);
  range.size = static_cast<int64_t>(in_pointed.high) - range.first + 1;
  Reach& read = is_scatter ? in_listed : in_pointed;
  Reach& written = is_scatter ? in_pointed : in_listed;
  const int64_t element = size_of(pointed.type);
  Slice slice(loops_of(attributes, "Slice", read, written), element);
  require(size_of(listed.type) == element, "the types of two tensors differ");
  require(in_indices.is_within(reach_of(indices)), "a point leaves the indices");
  require(in_pointed.is_within(reach_of(pointed)) && in_listed.is_within(reach_of(listed)),
          "a point leaves a tensor");
  Points points(loops, std::move(axes), coordinate, functions, slice.bytes());
  const int64_t of_point = 2 * slice.bytes() + points.coordinates() * size_of(indices.type);
  const int64_t bytes = points.count() * of_point;
  return {std::move(points), std::move(slice), bytes};
}

std::string described(const char* what, const Layout& pointed, const Layout& indices, const Work& work) {
  return what + std::string(name_of(pointed.type)) + " by " + std::string(name_of(indices.type)) +
         ", coordinates: " + std::to_string(work.points.coordinates()) +
         ", bytes of each: " + std::to_string(work.slice.bytes());
}

}  // namespace

std::unique_ptr<Plan> make_gather_nd(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& indices = tensor(request.inputs, 1);
  const IndexFunctions functions = functions_of(indices.type);
  if (size_of(in.type) == 0 || functions.add_offsets == nullptr) {
    reason = "no gather of " + std::string(name_of(in.type)) + " by " + std::string(name_of(indices.type));
    return nullptr;
  }
  Range range{};
  Work work = work_of(request, in, tensor(request.outputs, 0), functions, false, range);
  std::string description = described("gather of ", in, indices, work);
  return std::make_unique<GatherPlan>(std::move(work), range.size, std::move(description));
}

std::unique_ptr<Plan> make_scatter_nd(const Request& request, std::string& reason) {
  const Layout& out = tensor(request.outputs, 0);
  const Layout& indices = tensor(request.inputs, 1);
  const IndexFunctions functions = functions_of(indices.type);
  if (size_of(out.type) == 0 || functions.add_offsets == nullptr) {
    reason = "no scatter of " + std::string(name_of(out.type)) + " by " + std::string(name_of(indices.type));
    return nullptr;
  }
  std::unique_ptr<Plan> copy =
      make_movement({{tensor(request.inputs, 0)}, {out}, request.attributes}, reason);
  if (copy == nullptr) return nullptr;
  Range range{};
  Work work = work_of(request, out, tensor(request.inputs, 2), functions, true, range);
  std::string description = described("scatter of ", out, indices, work) + "; " + copy->description();
  return std::make_unique<ScatterPlan>(std::move(copy), std::move(work), range, std::move(description));
}

ANYDML_ISA_END
