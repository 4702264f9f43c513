// FOLD, the sums of overlapping blocks, as a gather: every element of the output adds up what the blocks have
// for it, in the order of the window's elements, so that threads share the output and bits depend on nothing
// else.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/convert.h"
#include "simd/eight.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// A spatial dimension: element k of the window of block b lies at b * stride + k * dilation - start.
struct Dimension {
  int64_t taps;
  int64_t stride;
  int64_t dilation;
  int64_t start;
  int64_t blocks;
};

inline int64_t divided_down(int64_t x, int64_t by) { return x >= 0 ? x / by : -((by - 1 - x) / by); }

// The elements of the window from the first to before the last one that some block may bring to places from
// `first` to `last`.
struct Taps {
  Taps(const Dimension& dimension, int64_t first, int64_t last)
      : begin(std::max<int64_t>(
            0, -divided_down((dimension.blocks - 1) * dimension.stride - first - dimension.start,
                             dimension.dilation))),
        end(std::min(dimension.taps, divided_down(last + dimension.start, dimension.dilation) + 1)) {}

  int64_t begin;
  int64_t end;
};

constexpr int64_t kPart = 512;  // elements of a row that are summed together
constexpr size_t kMostDimensions = 6;

// Columns of the input are blocks.
struct Blocks {
  std::array<Dimension, kMostDimensions> dimensions;
  size_t count;
  int64_t tap_step;
  int64_t block_step;
};

// A part of a row of the output: its places in the dimensions but for the last one, and there its first one.
struct Part {
  std::array<int64_t, kMostDimensions> place;
  int64_t first;
  int64_t size;
};

// Adds elements that lie `step` bytes apart to every kth sum; halves are converted eight at a time.
template <class T, class Sum>
ANYDML_INLINE void add_run(const std::byte* from, int64_t step, int64_t count, Sum* to, int64_t stride) {
  if constexpr (std::is_same_v<T, Half>) {
    float singles[kEight];
    std::byte staged[kEight * sizeof(Half)]{};
    for (int64_t i = 0; i < count; i += kEight, from += kEight * step, to += kEight * stride) {
      const int64_t size = std::min(kEight, count - i);
      if (step == sizeof(Half) && size == kEight) {
        widen_eight_halves(from, singles);
      } else {
        for (int64_t k = 0; k < size; ++k) store(staged + k * 2, load<uint16_t>(from + k * step));
        widen_eight_halves(staged, singles);
      }
      for (int64_t k = 0; k < size; ++k) to[k * stride] += singles[k];
    }
  } else {
    for (int64_t i = 0; i < count; ++i) to[i * stride] += static_cast<Sum>(load<T>(from + i * step));
  }
}

// What an element of the window has for a part of a row: blocks from `begin` to `end`, the first of which
// comes to the sum `to`.
struct Run {
  int64_t tap;
  int64_t begin;
  int64_t count;
  int64_t to;
};

// Those of a part of a row, whatever the places in the other dimensions are.
void find_runs(const Dimension& dimension, const Part& part, std::vector<Run>& runs) {
  runs.clear();
  const Taps taps(dimension, part.first, part.first + part.size - 1);
  for (int64_t k = taps.begin; k < taps.end; ++k) {
    const int64_t shift = k * dimension.dilation - dimension.start - part.first;
    const int64_t begin = std::max<int64_t>(0, -divided_down(shift, dimension.stride));
    const int64_t end = std::min(dimension.blocks, divided_down(part.size - 1 - shift, dimension.stride) + 1);
    if (begin < end) runs.push_back({k, begin, end - begin, begin * dimension.stride + shift});
  }
}

template <class T, class Sum>
void add_rows(const Blocks& blocks, const std::vector<Run>& runs, int64_t tap, int64_t block,
              const std::byte* in, Sum* sums) {
  constexpr int64_t kItem = sizeof(T);
  const Dimension dimension = blocks.dimensions[blocks.count - 1];
  const int64_t step = blocks.block_step;
  in += tap * dimension.taps * blocks.tap_step + block * dimension.blocks * step;
  for (const Run& run : runs) {
    const std::byte* const from = in + run.tap * blocks.tap_step + run.begin * step;
    Sum* const to = sums + run.to;
    if (step == kItem && dimension.stride == 1) {
      add_run<T>(from, kItem, run.count, to, 1);
    } else if (step == kItem && dimension.stride == 2) {
      add_run<T>(from, kItem, run.count, to, 2);
    } else {
      add_run<T>(from, step, run.count, to, dimension.stride);
    }
  }
}

// Adds what blocks have for a part, of the window's elements and of the blocks that are chosen in the
// dimensions before `d`.
template <class T, class Sum>
void add_blocks(const Blocks& blocks, const Part& part, const std::vector<Run>& runs, size_t d, int64_t tap,
                int64_t block, const std::byte* in, Sum* sums) {
  if (d + 1 == blocks.count) return add_rows<T>(blocks, runs, tap, block, in, sums);
  const Dimension dimension = blocks.dimensions[d];
  const Taps taps(dimension, part.place[d], part.place[d]);
  for (int64_t k = taps.begin; k < taps.end; ++k) {
    const int64_t begin = part.place[d] + dimension.start - k * dimension.dilation;
    if (begin % dimension.stride != 0) continue;
    add_blocks<T>(blocks, part, runs, d + 1, tap * dimension.taps + k,
                  block * dimension.blocks + begin / dimension.stride, in, sums);
  }
}

template <class T, class From>
void store_all(const From* numbers, int64_t count, int64_t step, std::byte* to) {
  constexpr int64_t kItem = sizeof(T);
  if (step == kItem) {
    for (int64_t i = 0; i < count; ++i) store(to + i * kItem, static_cast<T>(numbers[i]));
  } else {
    for (int64_t i = 0; i < count; ++i) store(to + i * step, static_cast<T>(numbers[i]));
  }
}

template <class T, class Sum>
void fold_part(const Blocks& blocks, const Part& part, const std::vector<Run>& runs, const std::byte* in,
               std::byte* out, int64_t step) {
  Sum sums[kPart];
  std::fill_n(sums, divided_up(part.size, kConvertedAtOnce) * kConvertedAtOnce, Sum{});
  add_blocks<T>(blocks, part, runs, 0, 0, 0, in, sums);
  if constexpr (std::is_same_v<T, Half>) {
    Half halves[kPart];
    narrow_to_halves(reinterpret_cast<std::byte*>(sums), reinterpret_cast<std::byte*>(halves),
                     divided_up(part.size, kConvertedAtOnce));
    store_all<T>(halves, part.size, step, out);
  } else {
    store_all<T>(sums, part.size, step, out);
  }
}

using FoldPart = void (*)(const Blocks& blocks, const Part& part, const std::vector<Run>& runs,
                          const std::byte* in, std::byte* out, int64_t step);

FoldPart choose_fold(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return fold_part<Half, float>;
    case DataType::kFloat32:
      return fold_part<float, double>;
    case DataType::kFloat64:
      return fold_part<double, double>;
    default:
      break;
  }
  switch (size_of(type)) {
    case 1:
      return fold_part<uint8_t, uint8_t>;
    case 2:
      return fold_part<uint16_t, uint16_t>;
    case 4:
      return fold_part<uint32_t, uint32_t>;
    case 8:
      return fold_part<uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}

class FoldPlan final : public Plan {
 public:
  FoldPlan(Blocks blocks, std::vector<Loop> rows, Loop row, FoldPart fold, int64_t bytes,
           std::string description)
      : Plan(std::move(description)),
        blocks_(blocks),
        rows_(std::move(rows)),
        row_(row),
        per_row_(divided_up(row.size, kPart)),
        fold_(fold),
        bytes_(bytes) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(rows_) * per_row_;
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      LoopCursor cursor(rows_, number / per_row_);
      std::vector<Run> runs;
      int64_t known = -1;  // the part of a row that they are of
      for (int64_t of_row = number % per_row_; number < end; ++number) {
        Part part{{}, of_row * kPart, std::min(kPart, row_.size - of_row * kPart)};
        for (size_t d = 0; d + 1 < blocks_.count; ++d) part.place[d] = cursor.index(d + 2);
        if (of_row != known) find_runs(blocks_.dimensions[blocks_.count - 1], part, runs);
        known = of_row;
        fold_(blocks_, part, runs, in + cursor.in(), out + cursor.out() + part.first * row_.out, row_.out);
        if (++of_row == per_row_) {
          of_row = 0;
          cursor.advance();
        }
      }
    });
  }

 private:
  Blocks blocks_;
  std::vector<Loop> rows_;  // over the batch, the channels and the spatial dimensions but for the last one
  Loop row_;
  int64_t per_row_;  // parts
  FoldPart fold_;
  int64_t bytes_;
};

}  // namespace

std::unique_ptr<Plan> make_fold(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  const FoldPart fold = choose_fold(out.type);
  if (fold == nullptr) {
    reason = "no sums of " + std::string(name_of(out.type));
    return nullptr;
  }
  const auto member = [&](const char* name) -> const std::vector<int64_t>& {
    return request.attributes.integers(name);
  };
  const size_t rank = in.sizes.size();
  Blocks blocks{{}, out.sizes.size() - 2, in.strides[rank - 2], in.strides[rank - 1]};
  require(blocks.count <= kMostDimensions, "spatial dimensions");
  int64_t taps = 1;
  for (size_t d = 0; d < blocks.count; ++d) {
    Dimension& dimension = blocks.dimensions[d];
    dimension = {member("WindowSizes")[d], member("Strides")[d], member("Dilations")[d],
                 member("StartPadding")[d], 0};
    const int64_t extent = (dimension.taps - 1) * dimension.dilation + 1;
    dimension.blocks =
        (out.sizes[d + 2] + dimension.start + member("EndPadding")[d] - extent) / dimension.stride + 1;
    taps *= dimension.taps;
  }
  std::vector<Loop> rows{{out.sizes[0], in.strides[rank - 3], out.strides[0]},
                         {out.sizes[1], taps * in.strides[rank - 2], out.strides[1]}};
  for (size_t d = 2; d < out.sizes.size(); ++d) rows.push_back({out.sizes[d], 0, out.strides[d]});
  const Loop row = rows.back();
  rows.pop_back();
  int64_t elements = steps_of(rows) * row.size;
  elements += out.sizes[0] * in.sizes[rank - 2] * in.sizes[rank - 1];
  return std::make_unique<FoldPlan>(blocks, std::move(rows), row, fold, elements * size_of(out.type),
                                    "sums of blocks of " + std::string(name_of(out.type)));
}

ANYDML_ISA_END
