// CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "cumulative_columns.h"
#include "cumulative_rows.h"
#include "cumulative_tally.h"
#include "half.h"
#include "isa.h"
#include "kernels.h"
#include "layout.h"
#include "memory.h"
#include "parallel.h"
#include "vector.h"

ANYDML_ISA_BEGIN
namespace {

// The axis in the order of traversal, and the lines along it, which are independent of each other.
struct Geometry {
  Loop axis;
  int64_t in_start;
  int64_t out_start;
  std::vector<Loop> lines;
};

// The lines, counted through.
struct Lines {
  std::vector<Loop> outer;
  Loop inner;

  explicit Lines(std::vector<Loop> lines) : outer(std::move(lines)), inner(take_innermost(outer)) {}

  int64_t outer_count() const {
    int64_t count = 1;
    for (const Loop& loop : outer) count *= loop.size;
    return count;
  }

  // Calls body(in, out) with where the inner loop numbered i starts.
  template <class Body>
  void at(int64_t i, const std::byte* in, std::byte* out, const Body& body) const {
    for (auto loop = outer.rbegin(); loop != outer.rend(); ++loop) {
      in += i % loop->size * loop->in;
      out += i % loop->size * loop->out;
      i /= loop->size;
    }
    body(in, out);
  }

  // Calls body(in, out, count) for every run of lines, `count` steps of the inner loop, among those from
  // `begin` to `end`.
  template <class Body>
  void runs(int64_t begin, int64_t end, const std::byte* in, std::byte* out, const Body& body) const {
    while (begin < end) {
      const int64_t skipped = begin % inner.size;
      const int64_t count = std::min(inner.size - skipped, end - begin);
      at(begin / inner.size, in, out, [&](const std::byte* from, std::byte* to) {
        body(from + skipped * inner.in, to + skipped * inner.out, count);
      });
      begin += count;
    }
  }
};

// Bits must not depend on it, nor on anything else that changes from run to run: what each thread does.
struct Share {
  int threads;
  int64_t tasks;

  int64_t begin(int64_t task, int64_t count) const {
    return count / tasks * task + std::min(task, count % tasks);
  }
};

// An output larger than this goes past the caches.
constexpr int64_t kStreamed = 16 << 20;

template <class T>
int64_t bytes_of(const Geometry& geometry) {
  int64_t bytes = geometry.axis.size * static_cast<int64_t>(sizeof(T));
  for (const Loop& line : geometry.lines) bytes *= line.size;
  return bytes;
}

// One line after the other, element by element, whatever the strides.
template <class T, class Operation, bool kExclusive>
class PlainPlan final : public Plan {
 public:
  PlainPlan(Geometry geometry, std::string description)
      : Plan(std::move(description)), geometry_(std::move(geometry)), lines_(geometry_.lines) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    const int64_t rows = lines_.outer_count() * lines_.inner.size;
    const int threads = threads_for(2 * bytes_of<T>(geometry_));
    const Share share{threads, std::min<int64_t>(threads, rows)};
    parallel_for(share.tasks, threads, [&](int64_t task) {
      lines_.runs(share.begin(task, rows), share.begin(task + 1, rows), in, out,
                  [&](const std::byte* from, std::byte* to, int64_t count) { scan_run(from, to, count); });
    });
  }

 private:
  using Tally = TallyOf<T>;
  static constexpr int64_t kAbreast = 64;

  // Lines abreast, so that what lies side by side is read together.
  void scan_run(const std::byte* in, std::byte* out, int64_t count) const {
    const Loop axis = geometry_.axis;
    const Loop line = lines_.inner;
    for (int64_t start = 0; start < count; start += kAbreast) {
      const int64_t width = std::min(kAbreast, count - start);
      Tally tallies[kAbreast];
      std::fill_n(tallies, width, static_cast<Tally>(Operation::kIdentity));
      for (int64_t i = 0; i < axis.size; ++i) {
        const std::byte* from = in + start * line.in + i * axis.in;
        std::byte* to = out + start * line.out + i * axis.out;
        for (int64_t j = 0; j < width; ++j) advance(tallies[j], from + j * line.in, to + j * line.out);
      }
    }
  }

  // x is read before y is written, as the two may be one.
  static void advance(Tally& tally, const std::byte* x, std::byte* y) {
    const Tally next = Operation::combine(tally, widen<T, Tally>(x));
    narrow<T, Tally>(y, kExclusive ? tally : next);
    tally = next;
  }

  Geometry geometry_;
  Lines lines_;
};

#if defined(ANYDML_VECTORS)

// Strips of columns, on as many threads as there are strips for.
template <class T, class Operation, bool kExclusive>
class ColumnPlan final : public Plan {
 public:
  ColumnPlan(Geometry geometry, std::string description)
      : Plan(std::move(description)), geometry_(std::move(geometry)), lines_(geometry_.lines) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    const int64_t bytes = bytes_of<T>(geometry_);
    const bool streams = bytes >= kStreamed && lines_.inner.size * kSize >= kWorthStreaming;
    const int threads = threads_for(2 * bytes);
    const int64_t outer = lines_.outer_count();
    const int64_t width = strip_width(outer, threads);
    const int64_t strips = (lines_.inner.size + width - 1) / width;
    parallel_for(outer * strips, threads, [&](int64_t task) {
      const int64_t start = task % strips * width;
      lines_.at(task / strips, in, out, [&](const std::byte* from, std::byte* to) {
        ColumnScan<T, Operation, kExclusive>::scan(geometry_.axis, std::min(width, lines_.inner.size - start),
                                                   from + start * kSize, to + start * kSize, streams);
      });
    });
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kWorthStreaming = 512;
  static constexpr int64_t kNarrowest = 64;

  // Whole lines of the cache, narrower where threads would have nothing to do.
  int64_t strip_width(int64_t outer, int threads) const {
    const int64_t columns = lines_.inner.size;
    const int64_t wanted = outer >= threads ? columns : (columns + threads - 1) / threads;
    return std::clamp<int64_t>((wanted + kNarrowest - 1) / kNarrowest * kNarrowest, kNarrowest, kStrip);
  }

  Geometry geometry_;
  Lines lines_;
};

// Rows of neighbours: several at once on each thread, or a long one on all of them.
template <class T, class Operation, bool kExclusive, bool kDown>
class RowPlan final : public Plan {
 public:
  RowPlan(Geometry geometry, std::string description)
      : Plan(std::move(description)), geometry_(std::move(geometry)), lines_(geometry_.lines) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    const int64_t bytes = bytes_of<T>(geometry_);
    const bool streams = bytes >= kStreamed;
    const int threads = threads_for(2 * bytes);
    const int64_t rows = lines_.outer_count() * lines_.inner.size;
    const int64_t size = geometry_.axis.size;
    if (threads > 1 && rows < 4 * threads && rows % threads != 0 && size > 8 * kBlock) {
      lines_.runs(0, rows, in, out, [&](const std::byte* from, std::byte* to, int64_t count) {
        for (int64_t r = 0; r < count; ++r) {
          scan_long(from + r * lines_.inner.in, to + r * lines_.inner.out, threads, streams);
        }
      });
      return;
    }
    const Share share{threads, std::min<int64_t>(threads, rows)};
    parallel_for(share.tasks, threads, [&](int64_t task) {
      lines_.runs(share.begin(task, rows), share.begin(task + 1, rows), in, out,
                  [&](const std::byte* from, std::byte* to, int64_t count) {
                    size <= kBlock / 2 ? scan_short_rows(from, to, count, streams)
                                       : scan_rows(from, to, count, streams);
                  });
      if (streams) stream_fence();
    });
  }

 private:
  using Scan = RowScan<T, Operation, kExclusive ? Output::kExclusive : Output::kInclusive, kDown>;
  using Reduction = RowScan<T, Operation, Output::kNone, kDown>;
  using State = typename Scan::State;
  static constexpr int64_t kSize = sizeof(T);
  // In blocks: what a thread reads to reduce, it finds in its second cache to scan.
  static constexpr int64_t kChunk = (128 << 10) / (kBlock * kSize);

  // Where the part of `count` elements from the i-th traversed on lies lowest, from where the first lies.
  static int64_t lowest(int64_t i, int64_t count) { return kDown ? -(i + count - 1) * kSize : i * kSize; }

  // The block of the row that starts with the i-th element traversed.
  State scan_block(const std::byte* in, std::byte* out, int64_t i, State carry, bool streams) const {
    const int64_t size = std::min(kBlock, geometry_.axis.size - i);
    const int64_t low = lowest(i, size);
    if (!streams) return Scan::scan(in + low, out + low, size, carry);
    alignas(64) std::byte staged[kBlock * kSize];
    carry = Scan::scan(in + low, staged, size, carry);
    stream_copy(out + low, staged, size * kSize);
    return carry;
  }

  void scan_rows(const std::byte* in, std::byte* out, int64_t count, bool streams) const {
    for (int64_t r = 0; r < count; ++r) {
      State carry = Scan::identity();
      for (int64_t i = 0; i < geometry_.axis.size; i += kBlock) {
        carry = scan_block(in + r * lines_.inner.in, out + r * lines_.inner.out, i, carry, streams);
      }
    }
  }

  // Rows of less than a block, as many to a stream as a block holds; packed ones only.
  void scan_short_rows(const std::byte* in, std::byte* out, int64_t count, bool streams) const {
    const int64_t size = geometry_.axis.size;
    in += lowest(0, size);
    out += lowest(0, size);
    if (!streams || lines_.inner.out != size * kSize) {
      return scan_batch(in, out, lines_.inner.out, count);
    }
    alignas(64) std::byte staged[kBlock * kSize];
    const int64_t batch = kBlock / size;
    for (int64_t r = 0; r < count; r += batch) {
      const int64_t rows = std::min(batch, count - r);
      scan_batch(in + r * lines_.inner.in, staged, size * kSize, rows);
      stream_copy(out + r * lines_.inner.out, staged, rows * size * kSize);
    }
  }

  void scan_batch(const std::byte* in, std::byte* out, int64_t out_step, int64_t count) const {
    const int64_t size = geometry_.axis.size;
    const int64_t in_step = lines_.inner.in;
    if (size < kShortRow) {
      for (int64_t r = 0; r < count; ++r) Scan::scan_short(in + r * in_step, out + r * out_step, size);
    } else {
      for (int64_t r = 0; r < count; ++r) {
        Scan::scan(in + r * in_step, out + r * out_step, size, Scan::identity());
      }
    }
  }

  // Chunk by chunk, which the threads take in order: reduce its blocks, wait for the tally before them, hand
  // on the one after, scan them. Who waits, waits for a thread that is at work on the chunk before, so that
  // even one thread alone comes through.
  void scan_long(const std::byte* in, std::byte* out, int threads, bool streams) const {
    const int64_t blocks = (geometry_.axis.size + kBlock - 1) / kBlock;
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> handed_on{0};
    State before = Scan::identity();
    parallel_for(threads, threads, [&](int64_t) {
      for (int64_t chunk = next++; chunk * kChunk < blocks; chunk = next++) {
        const int64_t first = chunk * kChunk;
        const int64_t count = std::min(kChunk, blocks - first);
        State totals[kChunk];
        for (int64_t b = 0; b < count; ++b) totals[b] = reduce_block(in, (first + b) * kBlock);
        while (handed_on.load(std::memory_order_acquire) != chunk) std::this_thread::yield();
        State carry = before;
        for (int64_t b = 0; b < count; ++b) before = Scan::combine(before, totals[b]);
        handed_on.store(chunk + 1, std::memory_order_release);
        for (int64_t b = 0; b < count; ++b) carry = scan_block(in, out, (first + b) * kBlock, carry, streams);
      }
      if (streams) stream_fence();
    });
  }

  State reduce_block(const std::byte* in, int64_t i) const {
    const int64_t size = std::min(kBlock, geometry_.axis.size - i);
    return Reduction::scan(in + lowest(i, size), nullptr, size, Scan::identity());
  }

  Geometry geometry_;
  Lines lines_;
};

#endif  // ANYDML_VECTORS

Geometry geometry_of(const Layout& in, const Layout& out, int64_t axis_index, bool decreasing) {
  std::vector<Loop> loops = loops_over(in, out);
  Loop axis = take(loops, axis_index);
  int64_t in_start = 0;
  int64_t out_start = 0;
  if (decreasing) {
    in_start = (axis.size - 1) * axis.in;
    out_start = (axis.size - 1) * axis.out;
    axis = {axis.size, -axis.in, -axis.out};
  }
  return {axis, in_start, out_start, fold(std::move(loops))};
}

std::string describe(const char* operation, DataType type, const Geometry& geometry, bool decreasing,
                     bool exclusive) {
  int64_t rows = 1;
  for (const Loop& loop : geometry.lines) rows *= loop.size;
  return "scan " + std::string(name_of(type)) + " " + operation + (exclusive ? ", exclusive" : "") +
         (decreasing ? ", decreasing" : "") + ", axis of " + std::to_string(geometry.axis.size) + ", " +
         std::to_string(rows) + (rows == 1 ? " row" : " rows");
}

template <class T, class Operation, bool kExclusive>
std::unique_ptr<Plan> choose_plan(Geometry geometry, std::string description) {
#if defined(ANYDML_VECTORS)
  constexpr int64_t kSize = sizeof(T);
  constexpr int64_t kFewColumns = 8;
  const Loop axis = geometry.axis;
  if (axis.in == kSize && axis.out == kSize) {
    return std::make_unique<RowPlan<T, Operation, kExclusive, false>>(std::move(geometry),
                                                                      description + ", by rows");
  }
  if (axis.in == -kSize && axis.out == -kSize) {
    return std::make_unique<RowPlan<T, Operation, kExclusive, true>>(std::move(geometry),
                                                                     description + ", by rows");
  }
  if (!geometry.lines.empty()) {
    const Loop line = geometry.lines.back();
    if (line.in == kSize && line.out == kSize && line.size >= kFewColumns) {
      return std::make_unique<ColumnPlan<T, Operation, kExclusive>>(std::move(geometry),
                                                                    description + ", by columns");
    }
  }
#endif
  return std::make_unique<PlainPlan<T, Operation, kExclusive>>(std::move(geometry),
                                                               description + ", by element");
}

template <class T, class Operation>
std::unique_ptr<Plan> make_scan(Geometry geometry, std::string description, bool exclusive) {
  if (exclusive) return choose_plan<T, Operation, true>(std::move(geometry), std::move(description));
  return choose_plan<T, Operation, false>(std::move(geometry), std::move(description));
}

template <class Operation>
std::unique_ptr<Plan> make_cumulative(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  require(in.type == out.type, "the types of input and output differ");
  const int64_t axis = request.attributes.at(0).at(0);
  const bool decreasing = request.attributes.at(1).at(0) != 0;
  const bool exclusive = request.attributes.at(2).at(0) != 0;

  Geometry geometry = geometry_of(in, out, axis, decreasing);
  std::string description = describe(Operation::kName, in.type, geometry, decreasing, exclusive);
  switch (in.type) {
    case DataType::kFloat32:
      return make_scan<float, Operation>(std::move(geometry), std::move(description), exclusive);
    case DataType::kFloat16:
      return make_scan<Half, Operation>(std::move(geometry), std::move(description), exclusive);
    case DataType::kInt32:
    case DataType::kUint32:
      return make_scan<uint32_t, Operation>(std::move(geometry), std::move(description), exclusive);
    case DataType::kInt64:
    case DataType::kUint64:
      return make_scan<uint64_t, Operation>(std::move(geometry), std::move(description), exclusive);
    default:
      reason = "no scan of " + std::string(name_of(in.type));
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Plan> make_cumulative_summation(const Request& request, std::string& reason) {
  return make_cumulative<Sum>(request, reason);
}

std::unique_ptr<Plan> make_cumulative_product(const Request& request, std::string& reason) {
  return make_cumulative<Product>(request, reason);
}

ANYDML_ISA_END
