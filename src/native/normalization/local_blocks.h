// Local responses and their gradients by blocks, which have all along the axes of the windows: a row of
// columns for each channel, channels of some columns one after the other, or a plane of one channel or of
// several. A block is computed in memory of its own, in double precision, or halves' responses in single
// precision.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "normalization/geometry.h"
#include "normalization/local_response.h"
#include "normalization/runs.h"
#include "normalization/tuning.h"
#include "normalization/window_sums.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Runs of elements as numbers and back: of halves as singles, or of any as doubles.
template <class Number>
class Runs {
 public:
  Load load = nullptr;
  Store store = nullptr;

  explicit Runs(const Request& request)
      : load(load_of(tensor(request.inputs, 0).type)), store(store_of(tensor(request.outputs, 0).type)) {}
};
template <>
class Runs<float> {
 public:
  explicit Runs(const Request&) {}

  static void load(const std::byte* from, int64_t step, int64_t count, float* to) {
    load_halves(from, step, count, to);
  }
  static void store(const float* from, int64_t count, std::byte* to, int64_t step) {
    store_halves(from, count, to, step);
  }
};

template <class Number>
class LocalBlocksPlan final : public Plan {
 public:
  LocalBlocksPlan(const Request& request, const LocalResponse& shape, bool is_gradient)
      : Plan(std::string(is_gradient ? "gradients of local responses" : "local responses") +
             (shape.is_across ? ", columns of channels" : ", planes")),
        shape_(shape),
        is_gradient_(is_gradient),
        inputs_(request.inputs.size()),
        runs_(request),
        powers_(shape, is_gradient),
        item_(size_of(request.outputs[0].type)) {
    const std::vector<bool> none(4, false);
    std::vector<Axis> axes = axes_of(request.inputs, request.outputs, none);
    int64_t elements = 1;
    for (const Axis& axis : axes) elements *= axis.size;
    work_ *= elements;
    const auto taken = [&](size_t index) {
      const Axis axis = axes[index];
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(index));
      return axis;
    };
    const size_t out = inputs_;
    const auto is_closer = [&](const Axis& a, const Axis& b) {
      return a.size > 1 && (b.size == 1 || std::abs(a.steps[out]) < std::abs(b.steps[out]));
    };
    if (shape.is_across) {
      const Axis channels = taken(1);
      Geometry geometry = geometry_of(axes, inputs_);
      around_ = std::move(geometry.kept);
      if (is_closer(channels, geometry.run)) {
        set(kOuter, geometry.run, false);
        set(kInner, channels, true);
        blocked_ = kOuter;
      } else {
        set(kMiddle, channels, true);
        set(kInner, geometry.run, false);
        blocked_ = kInner;
      }
      at_once_ = (blocked_ != kInner ? kShortBlock : is_gradient ? kBlock : 2 * kBlock) / channels.size;
      if (blocked_ == kInner && at_once_ > kLanes) at_once_ -= at_once_ % kLanes;
    } else {
      const Axis columns = taken(3);
      const Axis rows = taken(2);
      const int64_t plane = rows.size * columns.size;
      // Planes side by side, but for so large ones that a few of them would fill the caches.
      const auto inner = std::ranges::min_element(axes, is_closer);
      if (plane <= kPlane && is_closer(*inner, columns)) {
        set(kInner, *inner, false);
        axes.erase(inner);
        set(kOuter, rows, true);
        set(kMiddle, columns, true);
        blocked_ = kInner;
        at_once_ = kBlock / plane;
      } else {
        set(kMiddle, rows, true);
        set(kInner, columns, true);
      }
      around_ = std::move(axes);
    }
    at_once_ = std::min(dims_[blocked_].axis.size, std::clamp(at_once_, kFewest, kRun));
    per_around_ = (dims_[blocked_].axis.size + at_once_ - 1) / at_once_;
    blocks_ = count_of(around_) * per_around_;
    // Runs that are pieces of rows far apart gain nothing by that, and neither do gradients.
    is_large_ = !is_gradient && elements * item_ >= kStreamFrom && blocked_ == kOuter &&
                dims_[kInner].axis.steps[out] == item_;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(work_);
    const int64_t calls = std::min(calls_for(work_, threads), blocks_);
    parallel_for(calls, threads, [&](int64_t call) {
      Block block;
      block.is_streamed = is_large_ && std::find(inputs, inputs + inputs_, outputs[0]) == inputs + inputs_;
      const int64_t end = share_begin(call + 1, calls, blocks_);
      for (int64_t i = share_begin(call, calls, blocks_); i < end; ++i) {
        const Walk walk(around_, i / per_around_);
        shape_block(block, i % per_around_ * at_once_);
        for (size_t k = 0; k < inputs_; ++k) {
          load_block(static_cast<const std::byte*>(inputs[k]) + walk.offset(k), k, block,
                     inside(block.in[k], block));
        }
        if (!block.is_streamed)
          fetch_output(static_cast<std::byte*>(outputs[0]) + walk.offset(inputs_), block);
        auto* const to = static_cast<std::byte*>(outputs[0]) + walk.offset(inputs_);
        if (is_gradient_) {
          put_gradients(block, to);
        } else {
          put_responses(block, to);
        }
      }
      block.writer.reset();
      if (block.is_streamed) stream_fence();
    });
  }

 private:
  using Numbers = std::vector<Number>;
  using Sums = WindowSums<Number>;

  // Numbers of a block of gradients, which have four buffers where responses have two, so that these may be
  // twice as long; of which there are fewer where they need no long rows to be read in; and elements of
  // a plane up to which several are in one.
  static constexpr int64_t kBlock = 1 << 13;
  static constexpr int64_t kShortBlock = 1 << 10;
  static constexpr int64_t kPlane = 1 << 14;
  static constexpr int64_t kFewest = 8;
  static constexpr int64_t kMostFetched = 1 << 11;  // bytes of a row

  enum Level : size_t { kOuter, kMiddle, kInner };

  // One of the dimensions of a block. Windows slide along some, which have zeros between their rows that all
  // windows end in, so that all rows are one long row.
  struct Dim {
    Axis axis;
    bool slides = false;
    int64_t before = 0;
    int64_t after = 0;
    int64_t gap = 0;
  };

  struct Block {
    std::array<Numbers, 2> in;
    Numbers s;
    Numbers around;
    Numbers between;
    std::array<Numbers, 2> room;
    bool is_streamed = false;
    std::optional<LineWriter> writer;
    std::byte* next = nullptr;  // where the writer goes on
    std::array<int64_t, 3> first{};
    std::array<int64_t, 3> size{};
    std::array<int64_t, 3> pitch{};
    int64_t count = 0;
    int64_t padding = 0;  // zeros before the first number, and behind the last one
  };

  static Number* inside(Numbers& numbers, const Block& block) { return numbers.data() + block.padding; }

  void set(Level level, const Axis& axis, bool slides) {
    Dim dim{axis, slides};
    if (slides) {
      dim.before = std::min(shape_.before, axis.size - 1);
      dim.after = std::min(shape_.after, axis.size - 1);
      // None is needed around the outermost ones.
      const bool is_first =
          level == kOuter || dims_[kOuter].axis.size * (level == kInner ? dims_[kMiddle].axis.size : 1) == 1;
      dim.gap = is_first ? 0 : std::max(dim.before, dim.after);
    }
    dims_[level] = dim;
  }

  // Of the elements from some one on along the dimension that is cut into blocks.
  void shape_block(Block& block, int64_t first) const {
    const int64_t width = std::min(at_once_, dims_[blocked_].axis.size - first);
    block.first[blocked_] = first;
    if (block.size[blocked_] == width) return;
    int64_t pitch = 1;
    for (size_t d = dims_.size(); d-- > 0;) {
      block.size[d] = d == blocked_ ? width : dims_[d].axis.size;
      block.pitch[d] = pitch;
      pitch *= block.size[d] + dims_[d].gap;
    }
    block.count = pitch;
    block.padding = 0;
    for (size_t d = 0; d < dims_.size(); ++d) {
      block.padding = std::max(block.padding, std::max(dims_[d].before, dims_[d].after) * block.pitch[d]);
    }
    // What is between rows stays 0; and what operations go over behind the last one.
    const auto slides = [](const Dim& dim) { return dim.slides; };
    std::vector<Numbers*> used{&block.in[0], &block.around, &block.s};
    if (is_gradient_) used.push_back(&block.in[1]);
    if (std::ranges::count_if(dims_, slides) > 1) used.push_back(&block.between);
    for (Numbers* const numbers : used) {
      numbers->assign(static_cast<size_t>(pitch + 2 * block.padding + kRun), 0);
    }
  }

  // Calls body(offset, place, count) for runs of elements of a tensor.
  template <class Body>
  void for_runs(const Block& block, size_t tensor, const Body& body) const {
    const auto step = [&](size_t d) { return dims_[d].axis.steps[tensor]; };
    for (int64_t a = 0; a < block.size[0]; ++a) {
      for (int64_t b = 0; b < block.size[1]; ++b) {
        const int64_t offset =
            (block.first[0] + a) * step(0) + (block.first[1] + b) * step(1) + block.first[2] * step(2);
        const int64_t place = a * block.pitch[0] + b * block.pitch[1];
        for (int64_t c = 0; c < block.size[2]; c += kRun) {
          body(offset + c * step(2), place + c, std::min(kRun, block.size[2] - c));
        }
      }
    }
  }

  // Rows of blocks lie far apart where channels do, beyond what a processor fetches ahead by itself: those of
  // the next block, and of the output, are asked for while there is something to compute.
  void load_block(const std::byte* from, size_t tensor, const Block& block, Number* to) const {
    const int64_t step = dims_[kInner].axis.steps[tensor];
    const int64_t width = blocked_ == kInner ? std::abs(step) * block.size[kInner] : 0;
    for_runs(block, tensor, [&](int64_t offset, int64_t i, int64_t count) {
      fetch<0>(from + offset + width, width);
      runs_.load(from + offset, step, count, to + i);
    });
  }
  void fetch_output(const std::byte* to, const Block& block) const {
    const int64_t width =
        blocked_ == kInner ? std::abs(dims_[kInner].axis.steps[inputs_]) * block.size[kInner] : 0;
    for_runs(block, inputs_, [&](int64_t offset, int64_t, int64_t) { fetch<1>(to + offset, width); });
  }
  template <int kWrites>
  ANYDML_INLINE static void fetch(const std::byte* from, int64_t bytes) {
    constexpr int64_t kCacheLine = 64;
    for (int64_t i = 0; i < std::min(bytes, kMostFetched); i += kCacheLine)
      __builtin_prefetch(from + i, kWrites);
  }

  // Sums along the rows of a dimension and then the next outer one; of windows turned around, too.
  Sums sums_of(const Number* numbers, bool of_squares, bool is_turned, Block& block) const {
    const auto along = [&](size_t d, const Number* from, bool squares) {
      const Dim& dim = dims_[d];
      const int64_t before = is_turned ? dim.after : dim.before;
      const int64_t after = is_turned ? dim.before : dim.after;
      return sums_around(from, squares, block.count, block.pitch[d], before, after, block.room);
    };
    size_t d = dims_.size() - 1;
    while (!dims_[d].slides) --d;
    const Sums sums = along(d, numbers, of_squares);
    while (d-- > 0) {
      if (!dims_[d].slides) continue;
      Number* const between = inside(block.between, block);
      sums.put(0, block.count, between);
      std::fill_n(between + block.count, Sums::kSumsAtOnce, Number{0});
      return along(d, between, false);
    }
    return sums;
  }

  // Large results that lie over no input go past the caches.
  void put_run(const Number* from, int64_t count, std::byte* to, Block& block) const {
    if (!block.is_streamed) return runs_.store(from, count, to, dims_[kInner].axis.steps[inputs_]);
    alignas(64) std::byte room[kRun * sizeof(float)];
    runs_.store(from, count, room, item_);
    if (to != block.next) block.writer.emplace(to);
    block.writer->append(room, count * item_);
    block.next = to + count * item_;
  }

  void clear_gaps(double* numbers, const Block& block) const {
    std::fill_n(numbers + block.count, Sums::kSumsAtOnce, 0.0);
    for (size_t d = 0; d < dims_.size(); ++d) {
      const int64_t size = block.size[d] * block.pitch[d];
      const int64_t gap = dims_[d].gap * block.pitch[d];
      if (gap == 0) continue;
      for (int64_t i = size; i < block.count; i += size + gap) std::fill_n(numbers + i, gap, 0.0);
    }
  }

  // Calls put(i, powers) for sixteen elements of a block at a time, of sum(i).
  template <class Sum, class Put>
  ANYDML_INLINE void for_block(const Block& block, const Sum& sum, const Put& put) const {
    for (int64_t begin = 0; begin < block.count; begin += kRun) {
      const auto sum_of = [&](int64_t i) ANYDML_INLINE_LAMBDA { return sum(begin + i); };
      const auto put_of = [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA { put(begin + i, powers); };
      const int64_t count = std::min(kRun, block.count - begin);
      if constexpr (std::is_same_v<Number, double>) {
        powers_.for_doubles(count, sum_of, put_of);
      } else {
        powers_.for_singles(count, sum_of, put_of);
      }
    }
  }

  // y = x / s^Beta
  void put_responses(Block& block, std::byte* to) const {
    const Number* const x = inside(block.in[0], block);
    Number* const squares = inside(block.around, block);
    Number* const y = block.s.data();
    for (int64_t i = 0; i < block.count; ++i) squares[i] = x[i] * x[i];
    const Sums sums = sums_of(squares, false, false, block);
    for_block(
        block, [&](int64_t i) ANYDML_INLINE_LAMBDA { return sums.at(i); },
        [&](int64_t i, const auto& powers)
            ANYDML_INLINE_LAMBDA { put_lanes(y + i, lanes_at(x + i) * powers.of); });
    for_runs(block, inputs_,
             [&](int64_t offset, int64_t i, int64_t count) { put_run(y + i, count, to + offset, block); });
  }

  // dx = dy / s^Beta - 2 * factor * Beta * x * sum of dy * x / s^(Beta + 1)
  void put_gradients(Block& block, std::byte* to) const {
    if constexpr (std::is_same_v<Number, double>) {
      const double* const x = inside(block.in[0], block);
      const double* const dy = inside(block.in[1], block);
      double* const s = block.s.data();
      double* const around = inside(block.around, block);
      const Sums squares = sums_of(x, true, false, block);
      for_block(
          block, [&](int64_t i) ANYDML_INLINE_LAMBDA { return squares.at(i); },
          [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA {
            put_wide(s + i, powers.of);
            put_wide(around + i, wide_at(dy + i) * wide_at(x + i) * powers.less);
          });
      clear_gaps(around, block);
      const Sums sums = sums_of(around, false, true, block);
      const Wide twice = broadcast_wide(2 * shape_.factor * shape_.beta);
      for_runs(block, inputs_, [&](int64_t offset, int64_t first, int64_t count) {
        alignas(64) double dx[kRun + kLanes];
        for (int64_t i = 0; i < count; i += kLanes) {
          const int64_t at = first + i;
          put_wide(dx + i, wide_at(dy + at) * wide_at(s + at) - twice * wide_at(x + at) * sums.at(at));
        }
        put_run(dx, count, to + offset, block);
      });
    }
  }

  LocalResponse shape_;
  bool is_gradient_;
  size_t inputs_;
  Runs<Number> runs_;
  PowersOfSums powers_;
  int64_t item_;
  bool is_large_ = false;  // of packed runs
  int64_t work_ = kLocalWork;
  std::array<Dim, 3> dims_;
  size_t blocked_ = kOuter;
  int64_t at_once_ = 1;
  int64_t per_around_ = 1;
  std::vector<Axis> around_;
  int64_t blocks_ = 1;
};

ANYDML_ISA_END
