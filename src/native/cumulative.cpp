// CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT.
#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cumulative_columns.h"
#include "cumulative_rows.h"
#include "cumulative_stage.h"
#include "cumulative_tally.h"
#include "cumulative_turns.h"
#include "half.h"
#include "isa.h"
#include "kernels.h"
#include "layout.h"
#include "memory.h"
#include "parallel.h"
#include "transpose.h"
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
    const int64_t tasks = std::min<int64_t>(threads, rows);
    parallel_for(tasks, threads, [&](int64_t task) {
      lines_.runs(share_begin(task, tasks, rows), share_begin(task + 1, tasks, rows), in, out,
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

// Strips of columns. An input whose columns do not lie as the output's do is brought into that order tile by
// tile.
template <class T, class Operation, bool kExclusive>
class ColumnPlan final : public Plan {
 public:
  ColumnPlan(Geometry geometry, std::string description)
      : Plan(std::move(description)),
        axis_(geometry.axis),
        in_start_(geometry.in_start),
        out_start_(geometry.out_start),
        bytes_(bytes_of<T>(geometry)),
        columns_(take_innermost(geometry.lines)),
        planes_(std::move(geometry.lines)),
        block_(block_of(axis_.size, columns_.size)) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + in_start_;
    auto* out = static_cast<std::byte*>(outputs[0]) + out_start_;
    const bool streams = bytes_ >= kStreamFrom;
    const int threads = threads_for(2 * bytes_);
    const int64_t planes = planes_.outer_count() * planes_.inner.size;
    if (block_ < axis_.size && threads > 1 && planes < 4 * threads && planes % threads != 0) {
      planes_.runs(0, planes, in, out, [&](const std::byte* from, std::byte* to, int64_t count) {
        for (int64_t p = 0; p < count; ++p) {
          scan_long(from + p * planes_.inner.in, to + p * planes_.inner.out, threads, streams);
        }
      });
      return;
    }
    const int64_t width = strip_width(planes, threads);
    const int64_t strips = (columns_.size + width - 1) / width;
    const int64_t tasks = std::min<int64_t>(threads, planes * strips);
    parallel_for(tasks, threads, [&](int64_t task) {
      Stage stage(streams);
      int64_t begin = share_begin(task, tasks, planes * strips);
      const int64_t end = share_begin(task + 1, tasks, planes * strips);
      while (begin < end) {
        // Strips of a plane, or as many whole planes as follow.
        const int64_t first = begin % strips;
        const int64_t whole = first > 0 ? 0 : (end - begin) / strips;
        const int64_t last = whole > 0 ? strips : std::min(strips, first + end - begin);
        const int64_t plane = begin / strips;
        planes_.runs(plane, plane + std::max<int64_t>(whole, 1), in, out,
                     [&](const std::byte* from, std::byte* to, int64_t count) {
                       for (int64_t p = 0; p < count; ++p) {
                         for (int64_t strip = first; strip < last; ++strip) {
                           scan_strip(from + p * planes_.inner.in, to + p * planes_.inner.out, strip * width,
                                      std::min(width, columns_.size - strip * width), stage);
                         }
                       }
                     });
        begin += whole > 0 ? whole * strips : last - first;
      }
    });
  }

 private:
  using Scan = ColumnScan<T, Operation, kExclusive ? Output::kExclusive : Output::kInclusive>;
  using Reduction = ColumnScan<T, Operation, Output::kNone>;
  using Tally = TallyOf<T>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kNarrowest = 64;
  // A tile of the input, 64 KiB and a line for each row, so that columns do not fall into one set of the
  // cache.
  static constexpr int64_t kTileRows = 256 / kSize;
  static constexpr int64_t kTileColumns = 1024 / kSize;
  static constexpr int64_t kTileStep = 1024 + kLine;
  // A strip of them is cut into blocks, which several threads may scan: so many columns at most, and so many
  // bytes to a block, that a thread finds in its second cache what it has reduced.
  static constexpr int64_t kMostBlocked = std::min<int64_t>(256, kTileColumns);
  static constexpr int64_t kBlockBytes = 64 << 10;

  // Steps of a block, all where there are no blocks: products of floats are not cut, as those of a block
  // might leave their range where the whole does not.
  static int64_t block_of(int64_t size, int64_t columns) {
    if (columns > kMostBlocked || (kIsFloat<T> && std::is_same_v<Operation, Product>)) return size;
    return std::min(size, kBlockBytes / (columns * kSize));
  }

  bool gathers() const { return columns_.in != kSize; }

  // Whole lines of the cache, narrower where threads would have nothing to do.
  int64_t strip_width(int64_t planes, int threads) const {
    if (columns_.size <= kMostBlocked) return columns_.size;
    const int64_t columns = columns_.size;
    const int64_t wanted = planes >= threads ? columns : (columns + threads - 1) / threads;
    const int64_t most = gathers() ? kTileColumns : std::min(kStrip, Stage::kMost / kSize);
    return std::clamp<int64_t>((wanted + kNarrowest - 1) / kNarrowest * kNarrowest, kNarrowest, most);
  }

  void scan_strip(const std::byte* in, std::byte* out, int64_t start, int64_t width, Stage& stage) const {
    alignas(64) Tally tallies[kStrip];
    Tally before[kMostBlocked];
    const bool blocked = block_ < axis_.size;
    in += start * columns_.in;
    out += start * kSize;
    clear(tallies, width);
    if (blocked) clear(before, width);
    for (int64_t i = 0; i < axis_.size; i += block_) {
      scan_steps<Scan>(in, out, i, std::min(block_, axis_.size - i), width, tallies,
                       blocked ? before : nullptr, stage);
      if (!blocked) continue;
      combine(before, tallies, width);
      clear(tallies, width);
    }
  }

  // `rows` steps from the i-th on.
  template <class Kind>
  void scan_steps(const std::byte* in, std::byte* out, int64_t i, int64_t rows, int64_t width, Tally* tallies,
                  const Tally* before, Stage& stage) const {
    in += i * axis_.in;
    out += i * axis_.out;
    if (!gathers()) return Kind::scan({rows, in, axis_.in, out, axis_.out}, width, tallies, before, stage);
    alignas(64) std::byte tile[kTileRows * kTileStep];
    for (int64_t row = 0; row < rows; row += kTileRows) {
      const int64_t count = std::min(kTileRows, rows - row);
      gather_tile<BitsOf<T>>({in + row * axis_.in, axis_.in, columns_.in}, count, width, tile, kTileStep);
      Kind::scan({count, tile, kTileStep, out + row * axis_.out, axis_.out}, width, tallies, before, stage);
    }
  }

  void scan_long(const std::byte* in, std::byte* out, int threads, bool streams) const {
    struct Tallies {
      Tally of[kMostBlocked];
    };
    const int64_t width = columns_.size;
    const int64_t blocks = (axis_.size + block_ - 1) / block_;
    const auto rows = [&](int64_t block) { return std::min(block_, axis_.size - block * block_); };
    Tallies identity;
    clear(identity.of, width);
    scan_in_turn(
        blocks, threads, identity,
        [&](int64_t block) {
          Stage nothing(false);
          Tallies totals = identity;
          scan_steps<Reduction>(in, out, block * block_, rows(block), width, totals.of, nullptr, nothing);
          return totals;
        },
        [&](Tallies& tally, const Tallies& totals) { combine(tally.of, totals.of, width); },
        [&](int64_t block, const Tallies& before, const Tallies&, int64_t) {
          Stage stage(streams);
          Tallies tallies = identity;
          scan_steps<Scan>(in, out, block * block_, rows(block), width, tallies.of, before.of, stage);
        });
  }

  static void clear(Tally* tallies, int64_t width) {
    std::fill_n(tallies, width, static_cast<Tally>(Operation::kIdentity));
  }
  static void combine(Tally* before, const Tally* totals, int64_t width) {
    for (int64_t j = 0; j < width; ++j) before[j] = Operation::combine(before[j], totals[j]);
  }

  Loop axis_;
  int64_t in_start_;
  int64_t out_start_;
  int64_t bytes_;
  Loop columns_;
  Lines planes_;
  int64_t block_;
};

// Rows of neighbours: several at once on each thread, or a long one on all of them. An input whose rows do
// not lie as the output's do is read across several of them, or brought into order block by block.
template <class T, class Operation, bool kExclusive, bool kDown>
class RowPlan final : public Plan {
 public:
  RowPlan(Geometry geometry, std::string description)
      : Plan(std::move(description)), geometry_(nearest_last(std::move(geometry))), lines_(geometry_.lines) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    const int64_t bytes = bytes_of<T>(geometry_);
    const bool streams = bytes >= kStreamFrom;
    const int threads = threads_for(2 * bytes);
    const int64_t rows = lines_.outer_count() * lines_.inner.size;
    const int64_t size = geometry_.axis.size;
    if (threads > 1 && !reads_across() && rows < 4 * threads && rows % threads != 0 && size > 8 * kBlock) {
      lines_.runs(0, rows, in, out, [&](const std::byte* from, std::byte* to, int64_t count) {
        for (int64_t r = 0; r < count; ++r) {
          scan_long(from + r * lines_.inner.in, to + r * lines_.inner.out, threads, streams);
        }
      });
      return;
    }
    const int64_t tasks = std::min<int64_t>(threads, rows);
    parallel_for(tasks, threads, [&](int64_t task) {
      Stage stage(streams, kDown && size >= kSegmented);
      lines_.runs(share_begin(task, tasks, rows), share_begin(task + 1, tasks, rows), in, out,
                  [&](const std::byte* from, std::byte* to, int64_t count) {
                    if (reads_across()) {
                      scan_across(from, to, count, stage);
                    } else if (size < kSegmented) {
                      scan_short_rows(from, to, count, stage);
                    } else {
                      scan_rows(from, to, count, stage);
                    }
                  });
    });
  }

 private:
  using Scan = RowScan<T, Operation, kExclusive, kDown>;
  using Tally = TallyOf<T>;
  using State = typename Scan::State;
  using Totals = typename Scan::Totals;
  static constexpr int64_t kSize = sizeof(T);
  // In blocks: what a thread reads to reduce, it finds in its second cache to scan.
  static constexpr int64_t kChunk = (64 << 10) / (kBlock * kSize);
  // A piece of rows that are read across: whole lines of the cache of both.
  static constexpr int64_t kAcross = 256 / kSize;
  static constexpr int64_t kAlong = 1024 / kSize;
  static constexpr int64_t kPieceStep = 1024 + kLine;

  bool gathers() const { return geometry_.axis.in != geometry_.axis.out; }
  bool reads_across() const { return gathers() && lines_.inner.size >= kLines; }

  // The lines nearest to each other in an input that is read across.
  static Geometry nearest_last(Geometry geometry) {
    const auto nearest =
        std::ranges::min_element(geometry.lines, {}, [](const Loop& line) { return std::abs(line.in); });
    if (geometry.axis.in != geometry.axis.out && nearest != geometry.lines.end()) {
      std::rotate(nearest, nearest + 1, geometry.lines.end());
    }
    return geometry;
  }

  // Where the part of `count` elements from the i-th traversed on lies lowest, from where the first lies.
  static int64_t lowest(int64_t i, int64_t count) { return kDown ? -(i + count - 1) * kSize : i * kSize; }

  // `count` elements of the input from the i-th traversed on, of lines `row_step` apart, as they lie in the
  // output.
  Tile tile_of(const std::byte* in, int64_t row_step, int64_t i, int64_t count) const {
    const int64_t step = geometry_.axis.in;
    return {in + (kDown ? i + count - 1 : i) * step, row_step, kDown ? -step : step};
  }

  // Where a part of that many elements that follows another one lies lowest.
  static const std::byte* next_to(const std::byte* part, int64_t size) {
    return kDown ? part - size * kSize : part + size * kSize;
  }

  // Of the block that starts with the i-th element; 0 beyond the axis.
  int64_t block_size(int64_t i) const { return std::clamp<int64_t>(geometry_.axis.size - i, 0, kBlock); }

  // The block that starts with the i-th element traversed, in `gathered` where the input's lies otherwise.
  const std::byte* block_of(const std::byte* in, int64_t i, std::byte* gathered) const {
    const int64_t size = block_size(i);
    if (!gathers()) return in + lowest(i, size);
    gather_tile<BitsOf<T>>(tile_of(in, 0, i, size), 1, size, gathered, 0);
    return gathered;
  }

  void scan_rows(const std::byte* in, std::byte* out, int64_t count, Stage& stage) const {
    alignas(64) std::byte gathered[kBlock * kSize];
    for (int64_t r = 0; r < count; ++r) {
      State carry = Scan::identity();
      for (int64_t i = 0; i < geometry_.axis.size; i += kBlock) {
        const int64_t size = block_size(i);
        const std::byte* const from = block_of(in + r * lines_.inner.in, i, gathered);
        std::byte* const to = stage.room(out + r * lines_.inner.out + lowest(i, size), size * kSize);
        const Totals totals = Scan::reduce_block(from, size);
        Scan::scan_block(from, to, size, carry, totals, next_to(from, size));
        carry = Operation::combine(carry, totals.all);
      }
    }
  }

  // Packed ones many at a time.
  void scan_short_rows(const std::byte* in, std::byte* out, int64_t count, Stage& stage) const {
    const int64_t size = geometry_.axis.size;
    const int64_t in_step = lines_.inner.in;
    const int64_t out_step = lines_.inner.out;
    const bool packed = out_step == size * kSize;
    const int64_t batch = packed ? kBlock / size / kLines * kLines : 1;
    alignas(64) std::byte gathered[kSegmented * kSize];
    for (int64_t start = 0; start < count; start += batch) {
      const int64_t rows = std::min(batch, count - start);
      std::byte* const to = stage.room(out + start * out_step + lowest(0, size), rows * size * kSize);
      const std::byte* const from = in + start * in_step;
      int64_t r = 0;
      for (; !gathers() && r + kLines <= rows; r += kLines) {
        Tally tallies[kLines];
        std::fill_n(tallies, kLines, static_cast<Tally>(Operation::kIdentity));
        const std::byte* const lines = from + r * in_step + lowest(0, size);
        Scan::scan_lines(lines, in_step, to + r * out_step, out_step, size, tallies,
                         lines + kLines * in_step);
      }
      for (; r < rows; ++r) {
        auto tally = static_cast<Tally>(Operation::kIdentity);
        Scan::scan_line(block_of(from + r * in_step, 0, gathered), to + r * size * kSize, size, tally);
      }
    }
  }

  void scan_across(const std::byte* in, std::byte* out, int64_t count, Stage& stage) const {
    const int64_t size = geometry_.axis.size;
    const auto [lines, in_step, out_step] = lines_.inner;
    // Pieces begin with a line of the output's where rows are whole lines apart.
    const int64_t skew = kDown ? 0 : to_next_line(out) / kSize;
    for (int64_t start = 0; start < count; start += kAcross) {
      const int64_t rows = std::min(kAcross, count - start);
      Tally tallies[kAcross];
      std::fill_n(tallies, rows, static_cast<Tally>(Operation::kIdentity));
      for (int64_t i = 0, next; i < size; i = next) {
        next = std::min(size, i == 0 && skew > 0 ? skew : i + kAlong);
        for (int64_t r = 0; r < rows; r += kLines) {
          scan_piece(in + (start + r) * in_step, out + (start + r) * out_step, i, next - i,
                     std::min(kLines, rows - r), tallies + r, stage);
        }
      }
    }
  }

  // Some elements from the i-th on, of `lines` lines.
  void scan_piece(const std::byte* in, std::byte* out, int64_t i, int64_t size, int64_t lines, Tally* tallies,
                  const Stage& stage) const {
    const auto [all_lines, in_step, out_step] = lines_.inner;
    alignas(64) std::byte piece[kLines * kPieceStep];
    std::byte* to = out + lowest(i, size);
    const bool direct = lines == kLines && in_step == kSize;
    if (!direct) gather_tile<BitsOf<T>>(tile_of(in, in_step, i, size), lines, size, piece, kPieceStep);
    std::byte* const at = stage.streams() ? piece : to;
    const int64_t step = stage.streams() ? kPieceStep : out_step;
    if (direct) {
      Scan::scan_neighbours(in + i * geometry_.axis.in, geometry_.axis.in, at, step, size, tallies);
    } else if (lines == kLines) {
      Scan::scan_lines(piece, kPieceStep, at, step, size, tallies, piece);
    } else {
      for (int64_t s = 0; s < lines; ++s)
        Scan::scan_line(piece + s * kPieceStep, at + s * step, size, tallies[s]);
    }
    if (!stage.streams()) return;
    for (int64_t s = 0; s < lines; ++s) stream_copy(to + s * out_step, piece + s * kPieceStep, size * kSize);
  }

  struct Chunk {
    Totals blocks[kChunk];
  };

  void scan_long(const std::byte* in, std::byte* out, int threads, bool streams) const {
    const int64_t blocks = (geometry_.axis.size + kBlock - 1) / kBlock;
    const int64_t chunk_size = kChunk * kBlock;
    scan_in_turn((blocks + kChunk - 1) / kChunk, threads, Scan::identity(),
                 [&](int64_t chunk) { return reduce_chunk(in, chunk * chunk_size); },
                 [](State& tally, const Chunk& chunk) {
                   for (const Totals& totals : chunk.blocks) tally = Operation::combine(tally, totals.all);
                 },
                 [&](int64_t chunk, State before, const Chunk& totals, int64_t following) {
                   Stage stage(streams, kDown);
                   scan_chunk(in, out, chunk * chunk_size, before, totals, (following - chunk) * chunk_size,
                              stage);
                 });
  }

  Chunk reduce_chunk(const std::byte* in, int64_t start) const {
    alignas(64) std::byte gathered[kBlock * kSize];
    Chunk chunk;
    for (int64_t b = 0; b < kChunk; ++b) {
      const int64_t i = start + b * kBlock;
      const int64_t size = block_size(i);
      chunk.blocks[b] = Scan::reduce_block(size > 0 ? block_of(in, i, gathered) : in, size);
    }
    return chunk;
  }

  // The elements `ahead` come next.
  void scan_chunk(const std::byte* in, std::byte* out, int64_t start, State carry, const Chunk& chunk,
                  int64_t ahead, Stage& stage) const {
    alignas(64) std::byte gathered[kBlock * kSize];
    for (int64_t b = 0; b < kChunk; ++b) {
      const int64_t i = start + b * kBlock;
      const int64_t size = block_size(i);
      if (size == 0) return;
      const std::byte* const from = block_of(in, i, gathered);
      std::byte* const to = stage.room(out + lowest(i, size), size * kSize);
      const std::byte* const coming = gathers() ? from : in + lowest(i + ahead, size);
      Scan::scan_block(from, to, size, carry, chunk.blocks[b], coming);
      carry = Operation::combine(carry, chunk.blocks[b].all);
    }
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
  const Loop axis = geometry.axis;
  const bool columns = !geometry.lines.empty() && geometry.lines.back().out == kSize;
  if (std::abs(axis.out) == kSize && !(columns && axis.size == 1)) {
    const bool packed = axis.in == axis.out;
    description += packed ? ", by rows" : ", by rows, gathered";
    if (axis.out < 0) {
      return std::make_unique<RowPlan<T, Operation, kExclusive, true>>(std::move(geometry), description);
    }
    return std::make_unique<RowPlan<T, Operation, kExclusive, false>>(std::move(geometry), description);
  }
  if (columns) {
    const bool packed = geometry.lines.back().in == kSize;
    description += packed ? ", by columns" : ", by columns, gathered";
    return std::make_unique<ColumnPlan<T, Operation, kExclusive>>(std::move(geometry), description);
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
