// LOCAL_RESPONSE_NORMALIZATION and its gradients, by sums around each element.
//
// Sums of long windows take log2(size) additions each: sums of 1, 2, 4... elements are put together. They are
// no differences of running sums, so that what is small survives beside what is large, and NaN stays where it
// is. A block of elements, which has all along the axes of the windows, is computed in double precision in
// memory of its own, or halves' responses in single precision: a row of columns for each channel, channels of
// some columns one after the other, or a plane of one channel or of several.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "normalization/geometry.h"
#include "normalization/quarter_powers.h"
#include "normalization/runs.h"
#include "normalization/tuning.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "platform/parallel.h"

ANYDML_ISA_BEGIN
namespace {

template <class Number>
using VectorOf = std::conditional_t<std::is_same_v<Number, double>, Doubles, Singles>;

// Sixteen numbers in registers.
template <class Number>
using Lanes16 = std::conditional_t<std::is_same_v<Number, double>, Wide, Sixteen>;
ANYDML_INLINE Wide lanes_at(const double* from) { return wide_at(from); }
ANYDML_INLINE Sixteen lanes_at(const float* from) {
  return load_sixteen<float>(reinterpret_cast<const std::byte*>(from));
}
ANYDML_INLINE void put_lanes(double* to, const Wide& x) { put_wide(to, x); }
ANYDML_INLINE void put_lanes(float* to, const Sixteen& x) {
  store_sixteen<float>(reinterpret_cast<std::byte*>(to), x);
}
// The same function of the vectors of some operands.
template <class Function, class... Operands>
ANYDML_INLINE Wide for_parts(const Function& function, const Wide& first, const Operands&... others) {
  return each_of(function, first, others...);
}
template <class Function, class... Operands>
ANYDML_INLINE Sixteen for_parts(const Function& function, const Sixteen& first, const Operands&... others) {
  return each_part(function, first, others...);
}

// Sums of windows of numbers `columns` apart, or of their squares, as they are asked for: of one number each
// where they were added before.
template <class Number>
struct WindowSums {
  using V = VectorOf<Number>;

  const Number* from;  // of the first window
  int64_t columns;
  int64_t window;
  bool are_squared;

  // Up to kSumsAtOnce sums more are written than there are.
  void put(int64_t begin, int64_t end, Number* to) const {
    are_squared ? add_taps([](V x) ANYDML_INLINE_LAMBDA { return x * x; }, begin, end, to)
                : add_taps([](V x) ANYDML_INLINE_LAMBDA { return x; }, begin, end, to);
  }

  // Of sixteen windows.
  ANYDML_INLINE Lanes16<Number> at(int64_t i) const {
    return are_squared ? added_taps([](V x) ANYDML_INLINE_LAMBDA { return x * x; }, from + i)
                       : added_taps([](V x) ANYDML_INLINE_LAMBDA { return x; }, from + i);
  }

  static constexpr int64_t kLanesOfV = sizeof(V) / sizeof(Number);
  static constexpr int64_t kVectors = 2 * kLanes / kLanesOfV;
  static constexpr int64_t kSumsAtOnce = kVectors * kLanesOfV;

 private:
  template <class Function>
  ANYDML_INLINE Lanes16<Number> added_taps(const Function& function, const Number* at) const {
    Lanes16<Number> sums{};
    for (int64_t k = 0; k < window; ++k, at += columns) {
      sums =
          for_parts([&](V sum, V x) ANYDML_INLINE_LAMBDA { return sum + function(x); }, sums, lanes_at(at));
    }
    return sums;
  }
  template <class Function>
  ANYDML_INLINE void add_taps(const Function& function, int64_t begin, int64_t end, Number* to) const {
    for (int64_t i = begin; i < end; i += kSumsAtOnce, to += kSumsAtOnce) {
      const Number* at = from + i;
      V sums[kVectors]{};
      for (int64_t k = 0; k < window; ++k, at += columns) {
        ANYDML_UNROLL(16)
        for (int64_t v = 0; v < kVectors; ++v) {
          V x;
          std::memcpy(&x, at + v * kLanesOfV, sizeof(x));
          sums[v] = sums[v] + function(x);
        }
      }
      // One by one, as all would go through memory.
      ANYDML_UNROLL(16)
      for (int64_t v = 0; v < kVectors; ++v) std::memcpy(to + v * kLanesOfV, &sums[v], sizeof(V));
    }
  }
};

// The sums of rows of `columns` numbers each from `before` each to `after`; there are zeros around all rows.
template <class Number>
WindowSums<Number> sums_around(const Number* numbers, bool of_squares, int64_t all, int64_t columns,
                               int64_t before, int64_t after, std::array<std::vector<Number>, 2>& room) {
  constexpr int64_t kFew = 8;
  const int64_t window = before + 1 + after;
  const int64_t first = before * columns;
  if (window < kFew) return {numbers - first, columns, window, of_squares};
  const int64_t padded = first + all + after * columns;
  room[0].resize(static_cast<size_t>(padded));
  Number* const sums = room[0].data();
  numbers -= first;
  for (int64_t i = 0; i < padded; ++i) sums[i] = of_squares ? numbers[i] * numbers[i] : numbers[i];
  room[1].assign(static_cast<size_t>(all + WindowSums<Number>::kSumsAtOnce), Number{0});
  Number* const rows = room[1].data();
  int64_t done = 0;
  for (int64_t length = 1; done < window; length *= 2) {
    if ((window & length) != 0) {
      const Number* const from = sums + done * columns;
      for (int64_t i = 0; i < all; ++i) rows[i] += from[i];
      done += length;
    }
    if (done == window) break;
    // In place, as what is added lies behind; there are fewer sums of twice as many.
    const int64_t count = padded - (2 * length - 1) * columns;
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[i + length * columns];
  }
  return {rows, columns, 1, false};
}

struct LocalResponse {
  bool is_across;
  int64_t before;
  int64_t after;
  double factor;  // Alpha / LocalSize
  double beta;
  double bias;
};

// Runs of elements as numbers and back: of halves as singles, or of any as doubles.
template <class Number>
struct Runs {
  Load load = nullptr;
  Store store = nullptr;

  explicit Runs(const Request& request)
      : load(load_of(tensor(request.inputs, 0).type)), store(store_of(tensor(request.outputs, 0).type)) {}
};
template <>
struct Runs<float> {
  explicit Runs(const Request&) {}

  static void load(const std::byte* from, int64_t step, int64_t count, float* to) {
    load_halves(from, step, count, to);
  }
  static void store(const float* from, int64_t count, std::byte* to, int64_t step) {
    store_halves(from, count, to, step);
  }
};

template <class Number>
class LocalResponsePlan final : public Plan {
 public:
  LocalResponsePlan(const Request& request, LocalResponse shape, bool is_gradient)
      : Plan(std::string(is_gradient ? "gradients of local responses" : "local responses") +
             (shape.is_across ? ", columns of channels" : ", planes")),
        shape_(shape),
        is_gradient_(is_gradient),
        inputs_(request.inputs.size()),
        runs_(request),
        quarters_(static_cast<uint32_t>(std::clamp(4 * shape.beta, 0.0, 64.0))),
        is_by_inverse_(std::is_same_v<Number, float> || (is_by_inverse(-shape.beta) && shape.factor >= 0 &&
                                                         shape.bias >= std::numeric_limits<float>::min())) {
    const std::vector<bool> none(4, false);
    std::vector<Axis> axes = axes_of(request.inputs, request.outputs, none);
    for (const Axis& axis : axes) work_ *= axis.size;
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
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(work_);
    const int64_t calls = std::min(calls_for(work_, threads), blocks_);
    parallel_for(calls, threads, [&](int64_t call) {
      Block block;
      const int64_t end = share_begin(call + 1, calls, blocks_);
      for (int64_t i = share_begin(call, calls, blocks_); i < end; ++i) {
        const Walk walk(around_, i / per_around_);
        shape_block(block, i % per_around_ * at_once_);
        for (size_t k = 0; k < inputs_; ++k) {
          load_block(static_cast<const std::byte*>(inputs[k]) + walk.offset(k), k, block,
                     inside(block.in[k], block));
        }
        fetch_output(static_cast<std::byte*>(outputs[0]) + walk.offset(inputs_), block);
        auto* const to = static_cast<std::byte*>(outputs[0]) + walk.offset(inputs_);
        if (is_gradient_) {
          put_gradients(block, to);
        } else {
          put_responses(block, to);
        }
      }
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
    std::vector<Numbers*> used{&block.in[0], &block.around};
    if (is_gradient_) used.insert(used.end(), {&block.in[1], &block.s});
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

  void clear_gaps(Number* numbers, const Block& block) const {
    std::fill_n(numbers + block.count, Sums::kSumsAtOnce, Number{0});
    for (size_t d = 0; d < dims_.size(); ++d) {
      const int64_t size = block.size[d] * block.pitch[d];
      const int64_t gap = dims_[d].gap * block.pitch[d];
      if (gap == 0) continue;
      for (int64_t i = size; i < block.count; i += size + gap) std::fill_n(numbers + i, gap, Number{0});
    }
  }

  // Calls put(i, powers) for sixteen elements of a run at a time, all in registers: s^-Beta, and that divided
  // by s for gradients, s = Bias + factor * sum of squares. Those behind the run's last one are called for,
  // too.
  template <class Put>
  ANYDML_INLINE void for_powers(const Sums& squares, int64_t begin, int64_t count, const Put& put) const {
    using V = typename Sums::V;
    const auto bias = static_cast<Number>(shape_.bias);
    const auto factor = static_cast<Number>(shape_.factor);
    alignas(64) Number s[kRun + kLanes];
    Lanes16<Number> most{};
    // Sums apart from powers, as chains of both are longer than a processor sees ahead.
    for (int64_t i = 0; i < count; i += kLanes) {
      const auto those =
          for_parts([&](V sum) ANYDML_INLINE_LAMBDA { return bias + factor * sum; }, squares.at(begin + i));
      most = for_parts([](V x, V y) ANYDML_INLINE_LAMBDA { return lane_max<Number>(x, y); }, those, most);
      put_lanes(s + i, those);
    }
    if constexpr (std::is_same_v<Number, double>) {
      if (!is_by_inverse_ || joined(most, [](V x, V y) { return lane_max<double>(x, y); }) > kMostOfInverse) {
        alignas(64) double less[kRun + kLanes];
        raise(s, count, -shape_.beta, is_gradient_ ? less : nullptr);
        for (int64_t i = 0; i < count; i += kLanes) put(i, Powers<Wide>{wide_at(s + i), wide_at(less + i)});
        return;
      }
    }
    for (int64_t i = 0; i < count; i += kLanes) put(i, powers_by_inverse(lanes_at(s + i), quarters_));
  }

  // Calls put(i, powers) for sixteen elements of a block at a time.
  template <class Put>
  ANYDML_INLINE void for_block(const Sums& squares, const Block& block, const Put& put) const {
    for (int64_t begin = 0; begin < block.count; begin += kRun) {
      for_powers(squares, begin, std::min(kRun, block.count - begin),
                 [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA { put(begin + i, powers); });
    }
  }

  // y = x / s^Beta, in the place of x, as windows have the squares around it
  void put_responses(Block& block, std::byte* to) const {
    Number* const x = inside(block.in[0], block);
    Number* const squares = inside(block.around, block);
    for (int64_t i = 0; i < block.count; ++i) squares[i] = x[i] * x[i];
    for_block(sums_of(squares, false, false, block), block,
              [&](int64_t i, const auto& powers)
                  ANYDML_INLINE_LAMBDA { put_lanes(x + i, lanes_at(x + i) * powers.of); });
    for_runs(block, inputs_, [&](int64_t offset, int64_t i, int64_t count) {
      runs_.store(x + i, count, to + offset, dims_[kInner].axis.steps[inputs_]);
    });
    clear_gaps(x, block);
  }

  // dx = dy / s^Beta - 2 * factor * Beta * x * sum of dy * x / s^(Beta + 1)
  void put_gradients(Block& block, std::byte* to) const {
    if constexpr (std::is_same_v<Number, double>) {
      const double* const x = inside(block.in[0], block);
      const double* const dy = inside(block.in[1], block);
      double* const s = block.s.data();
      double* const around = inside(block.around, block);
      for_block(sums_of(x, true, false, block), block,
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
        runs_.store(dx, count, to + offset, dims_[kInner].axis.steps[inputs_]);
      });
    }
  }

  LocalResponse shape_;
  bool is_gradient_;
  size_t inputs_;
  Runs<Number> runs_;
  uint32_t quarters_;  // 4 * Beta, where it counts
  bool is_by_inverse_;
  int64_t work_ = kLocalWork;
  std::array<Dim, 3> dims_;
  size_t blocked_ = kOuter;
  int64_t at_once_ = 1;
  int64_t per_around_ = 1;
  std::vector<Axis> around_;
  int64_t blocks_ = 1;
};

// Whether responses of halves are within single precision, and powers those that it has: what is raised is
// then between 2^-7 and 2^100, or not finite, as squares are below 2^32.
bool are_singles_enough(const LocalResponse& shape) {
  const double quarters = 4 * shape.beta;
  const bool has_power = 0 <= quarters && quarters < 64 && std::floor(quarters) == quarters;
  return has_power && 0x1p-7 <= shape.bias && shape.bias <= 0x1p60 && 0 <= shape.factor &&
         shape.factor <= 0x1p30;
}

std::unique_ptr<Plan> local_response(const Request& request, bool is_gradient, std::string& reason) {
  const DataType type = tensor(request.outputs, 0).type;
  if (store_of(type) == nullptr) {
    reason = "no normalization of " + std::string(name_of(type));
    return nullptr;
  }
  const Attributes& attributes = request.attributes;
  const int64_t size = attributes.integer("LocalSize");
  const LocalResponse shape{attributes.flag("CrossChannel"),
                            (size - 1) / 2,
                            size / 2,
                            attributes.real("Alpha") / static_cast<double>(size),
                            attributes.real("Beta"),
                            attributes.real("Bias")};
  if (!is_gradient && type == DataType::kFloat16 && request.inputs[0].type == type &&
      are_singles_enough(shape))
    return std::make_unique<LocalResponsePlan<float>>(request, shape, is_gradient);
  return std::make_unique<LocalResponsePlan<double>>(request, shape, is_gradient);
}

}  // namespace

std::unique_ptr<Plan> make_local_response_normalization(const Request& request, std::string& reason) {
  return local_response(request, false, reason);
}

std::unique_ptr<Plan> make_local_response_normalization_grad(const Request& request, std::string& reason) {
  return local_response(request, true, reason);
}

ANYDML_ISA_END
