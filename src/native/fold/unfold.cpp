// UNFOLD row by row: each row of the output is an element of the window at all places, and those that padding
// is under are cut off at both ends. It is for windows of which too many rows differ in what is padding to be
// described by views, as movements are. Small planes, of which rows are short, are put together by shuffles.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "fold/plane_shuffles.h"
#include "movement/copy.h"
#include "movement/rows.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

constexpr size_t kMostSpatial = 6;
constexpr std::byte kZero[16]{};

// A spatial dimension: at place b, element w of the window lies at b * stride + w * dilation - start.
struct Window {
  int64_t size;
  int64_t stride;
  int64_t dilation;
  int64_t start;
  size_t tap_loop;
  size_t block_loop;  // but for the last one, whose blocks are a row
};

struct Unfolding {
  std::array<Window, kMostSpatial> windows;
  size_t count;
  std::vector<Loop> loops;  // over rows; steps of the input are those of places, of which some are padding
  int64_t begin;            // of the input, the place that all loops start from
  int64_t item;
  Loop row;
};

class UnfoldPlan final : public Plan {
 public:
  // Where the output is packed, its planes may be put together by shuffles.
  UnfoldPlan(Unfolding unfolding, int64_t bytes, bool is_packed, std::string description)
      : Plan(std::move(description)),
        all_(std::move(unfolding)),
        bytes_(bytes),
        fill_(choose_copy_of_row(all_.item, 0, all_.row.out)),
        copy_(choose_copy_of_row(all_.item, all_.row.in, all_.row.out)),
        is_run_(all_.row.in == all_.item && all_.row.out == all_.item) {
    if (is_packed) find_shuffles();
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(bytes_);
    if (!shuffles_.is_empty()) return shuffle_planes(threads, in, out);
    const int64_t rows = steps_of(all_.loops);
    const int64_t calls = std::min(calls_for(bytes_, threads), rows);
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, rows);
      const int64_t end = share_begin(call + 1, calls, rows);
      for (LoopCursor cursor(all_.loops, number); number < end; ++number, cursor.advance()) {
        write_row(cursor, in, out + cursor.out());
      }
    });
  }

 private:
  // The places of a row that padding is not under.
  struct Inside {
    int64_t begin;
    int64_t end;
  };

  Inside inside(const LoopCursor& cursor) const {
    int64_t begin = 0;
    int64_t end = all_.row.size;
    for (size_t d = 0; d < all_.count && begin < end; ++d) {
      const Window& window = all_.windows[d];
      const int64_t origin = cursor.index(window.tap_loop) * window.dilation - window.start;
      if (d + 1 < all_.count) {
        const int64_t place = origin + cursor.index(window.block_loop) * window.stride;
        if (place < 0 || place >= window.size) end = begin;
      } else {
        if (origin < 0) begin = std::min(end, divided_up(-origin, window.stride));
        const int64_t behind = window.size - origin;
        end = std::clamp(behind > 0 ? divided_up(behind, window.stride) : 0, begin, end);
      }
    }
    return {begin, end};
  }

  void write_row(const LoopCursor& cursor, const std::byte* in, std::byte* out) const {
    const auto [begin, end] = inside(cursor);
    fill(begin, out);
    if (begin < end)
      copy(end - begin, in + (all_.begin + cursor.in() + begin * all_.row.in), out + begin * all_.row.out);
    fill(all_.row.size - end, out + end * all_.row.out);
  }

  std::span<const Loop> planes() const { return {all_.loops.data(), 2}; }

  void find_shuffles() {
    const int64_t rows = steps_of(all_.loops) / steps_of(planes());
    const int64_t size = rows * all_.row.size * all_.item;
    if (size > PlaneShuffles::kMostBytes) return;
    std::vector<int64_t> from(static_cast<size_t>(size), PlaneShuffles::kZero);
    LoopCursor cursor(all_.loops, 0);
    for (int64_t row = 0; row < rows; ++row, cursor.advance()) {
      const auto [begin, end] = inside(cursor);
      for (int64_t i = begin * all_.item; i < end * all_.item; ++i) {
        from[static_cast<size_t>(cursor.out() + i)] =
            all_.begin + cursor.in() + i / all_.item * all_.row.in + i % all_.item;
      }
    }
    shuffles_ = PlaneShuffles(from);
  }

  void shuffle_planes(int threads, const std::byte* in, std::byte* out) const {
    const int64_t count = steps_of(planes());
    const int64_t calls = std::min(calls_for(bytes_, threads), count);
    parallel_for(calls, threads, [&](int64_t call) {
      StagedWriter writer(bytes_ / 2 >= kStreamFrom);
      int64_t number = share_begin(call, calls, count);
      const int64_t end = share_begin(call + 1, calls, count);
      for (LoopCursor cursor(planes(), number); number < end; ++number, cursor.advance()) {
        shuffles_.copy(in + cursor.in(), out + cursor.out(), writer);
      }
    });
  }

  void fill(int64_t count, std::byte* out) const {
    if (count > 0) fill_({count, all_.item, 0, all_.row.out}, kZero, out);
  }

  void copy(int64_t count, const std::byte* in, std::byte* out) const {
    if (is_run_) {
      copy_short(out, in, count * all_.item);
    } else {
      copy_({count, all_.item, all_.row.in, all_.row.out}, in, out);
    }
  }

  Unfolding all_;
  int64_t bytes_;
  CopyRuns fill_;
  CopyRuns copy_;
  bool is_run_;
  PlaneShuffles shuffles_;
};

}  // namespace

std::unique_ptr<Plan> make_unfold(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& out = tensor(request.outputs, 0);
  const int64_t item = size_of(out.type);
  if (item == 0 || in.type != out.type) {
    reason = "no copies of " + std::string(name_of(in.type));
    return nullptr;
  }
  const auto member = [&](const char* name) -> const std::vector<int64_t>& {
    return request.attributes.integers(name);
  };
  Unfolding all{{}, in.sizes.size() - 2, {}, 0, item, {}};
  require(all.count >= 1 && all.count <= kMostSpatial, "spatial dimensions");
  int64_t taps = 1;
  for (const int64_t size : member("WindowSizes")) taps *= size;
  all.loops = {{in.sizes[0], in.strides[0], out.strides[0]},
               {in.sizes[1], in.strides[1], taps * out.strides[1]}};
  std::array<int64_t, kMostSpatial> blocks{};
  for (size_t d = 0; d < all.count; ++d) {
    const int64_t size = in.sizes[d + 2];
    const int64_t window = member("WindowSizes")[d];
    all.windows[d] = {
        size, member("Strides")[d], member("Dilations")[d], member("StartPadding")[d], all.loops.size(), 0};
    const Window& each = all.windows[d];
    const int64_t extent = (window - 1) * each.dilation + 1;
    blocks[d] = (size + each.start + member("EndPadding")[d] - extent) / each.stride + 1;
    taps /= window;
    all.loops.push_back({window, each.dilation * in.strides[d + 2], taps * out.strides[1]});
    all.begin -= each.start * in.strides[d + 2];
  }
  int64_t columns = 1;
  for (size_t d = 0; d < all.count; ++d) columns *= blocks[d];
  require(columns == out.sizes[2], "blocks");
  for (size_t d = 0; d < all.count; ++d) {
    columns /= blocks[d];
    const Loop loop{blocks[d], all.windows[d].stride * in.strides[d + 2], columns * out.strides[2]};
    if (d + 1 == all.count) {
      all.row = loop;
    } else {
      all.windows[d].block_loop = all.loops.size();
      all.loops.push_back(loop);
    }
  }
  const int64_t elements = steps_of(all.loops) * all.row.size;
  const bool is_packed = out.strides[2] == item && out.strides[1] == out.sizes[2] * item;
  return std::make_unique<UnfoldPlan>(std::move(all), 2 * elements * item, is_packed,
                                      "rows of windows of " + std::string(name_of(out.type)));
}

ANYDML_ISA_END
