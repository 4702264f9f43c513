// LOCAL_RESPONSE_NORMALIZATION and its gradients, by sums around each element.
//
// Sums of long windows take log2(size) additions each: sums of 1, 2, 4... elements are put together. They are
// no differences of running sums, so that what is small survives beside what is large, and NaN stays where it
// is. A block of elements, which has all along the axes of the windows, is computed in double precision in
// memory of its own, or halves' responses and singles' by short windows across channels in single precision:
// a row of columns for each channel, channels of some columns one after the other, or a plane of one channel
// or of several.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
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
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

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

  // Of sixteen windows; of a number of elements that a compiler may know.
  ANYDML_INLINE Lanes16<Number> at(int64_t i) const { return at(i, window); }
  template <class Count>
  ANYDML_INLINE Lanes16<Number> at(int64_t i, Count count) const {
    return are_squared ? added_taps([](V x) ANYDML_INLINE_LAMBDA { return x * x; }, from + i, count)
                       : added_taps([](V x) ANYDML_INLINE_LAMBDA { return x; }, from + i, count);
  }

  static constexpr int64_t kLanesOfV = sizeof(V) / sizeof(Number);
  static constexpr int64_t kVectors = 2 * kLanes / kLanesOfV;
  static constexpr int64_t kSumsAtOnce = kVectors * kLanesOfV;

 private:
  template <class Function, class Count>
  ANYDML_INLINE Lanes16<Number> added_taps(const Function& function, const Number* at, Count count) const {
    Lanes16<Number> sums{};
    const auto add = [&](int64_t k) ANYDML_INLINE_LAMBDA {
      sums = for_parts([&](V sum, V x) ANYDML_INLINE_LAMBDA { return sum + function(x); }, sums,
                       lanes_at(at + k * columns));
    };
    if constexpr (std::is_same_v<Count, int64_t>) {
      for (int64_t k = 0; k < count; ++k) add(k);
    } else {
      [&]<int... kTap>(std::integer_sequence<int, kTap...>)
          ANYDML_INLINE_LAMBDA { (add(kTap), ...); }(std::make_integer_sequence<int, Count::value>{});
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

// Windows below which are added where they lie.
inline constexpr int64_t kFewTaps = 8;

// The sums of rows of `columns` numbers each from `before` each to `after`; there are zeros around all rows.
template <class Number>
WindowSums<Number> sums_around(const Number* numbers, bool of_squares, int64_t all, int64_t columns,
                               int64_t before, int64_t after, std::array<std::vector<Number>, 2>& room) {
  const int64_t window = before + 1 + after;
  const int64_t first = before * columns;
  if (window < kFewTaps) return {numbers - first, columns, window, of_squares};
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
  bool are_halves;

  explicit Runs(const Request& request) : are_halves(tensor(request.inputs, 0).type == DataType::kFloat16) {}

  void load(const std::byte* from, int64_t step, int64_t count, float* to) const {
    if (are_halves) return load_halves(from, step, count, to);
    if (step == sizeof(float)) return copy(from, count, reinterpret_cast<std::byte*>(to));
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i, from + i * step, sizeof(float));
  }
  void store(const float* from, int64_t count, std::byte* to, int64_t step) const {
    if (are_halves) return store_halves(from, count, to, step);
    if (step == sizeof(float)) return copy(reinterpret_cast<const std::byte*>(from), count, to);
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * step, from + i, sizeof(float));
  }

 private:
  // By vectors: of so few bytes a compiler makes an instruction that takes long to begin.
  static void copy(const std::byte* from, int64_t count, std::byte* to) {
    constexpr int64_t kItem = sizeof(float);
    const auto move = [&](int64_t i, auto size)
                          ANYDML_INLINE_LAMBDA { std::memcpy(to + i * kItem, from + i * kItem, size()); };
    for_run(
        count, kSingleLanes, [&](int64_t i) { move(i, std::integral_constant<size_t, sizeof(Singles)>{}); },
        [&](int64_t i) { move(i, std::integral_constant<size_t, sizeof(float)>{}); });
  }
};

// Powers (bias + factor * sum)^-beta where the sum adds little to the bias, as it mostly does:
// bias^-beta * (1 + p(v)), v = sum * factor / bias, p being the binomial series. Of v below 2^-8 a single is
// enough: what it is rounded by moves the power by 2^-30 of it, and so does what follows in the series. For
// gradients powers divided by their base are bias^(-beta - 1) * (1 + q(v)), with a term more.
struct LittlePowers {
  float most = -1;  // the sum up to which powers are computed so; less than any where they are not
  float per_bias = 0;
  std::array<float, 3> series{};
  std::array<float, 4> less{};
  double exact = 1;  // the power of the bias,
  float power = 1;   // as a single,
  float rest = 0;    // and what that does not hold

  explicit LittlePowers(const LocalResponse& shape) {
    const auto is_within = [](double x, double least, double largest) { return least <= x && x <= largest; };
    const double ratio = shape.factor / shape.bias;
    if (!is_within(shape.beta, 0x1p-10, 1) || !is_within(shape.bias, 0x1p-30, 0x1p30) ||
        !is_within(ratio, 0, 0x1p60))
      return;
    most = static_cast<float>(std::min(0x1p-8 / ratio, 0x1p60));
    per_bias = static_cast<float>(ratio);
    const auto put = [](double e, auto& terms) {
      double term = 1;
      for (size_t k = 0; k < terms.size(); ++k) {
        term *= (e - static_cast<double>(k)) / static_cast<double>(k + 1);
        terms[k] = static_cast<float>(term);
      }
    };
    put(-shape.beta, series);
    put(-shape.beta - 1, less);
    alignas(64) std::array<double, kLanes> raised{shape.bias};
    raise(raised.data(), 1, -shape.beta, nullptr);
    exact = raised[0];
    power = static_cast<float>(exact);
    rest = static_cast<float>(exact - power);
  }

  // p(v) or q(v)
  template <size_t kTerms>
  ANYDML_INLINE static Singles sum_of(const std::array<float, kTerms>& terms, Singles v) {
    Singles sum = singles(terms[kTerms - 1]);
    ANYDML_UNROLL(4)
    for (size_t k = 1; k < kTerms; ++k) sum = multiply_add(v, sum, singles(terms[kTerms - 1 - k]));
    return v * sum;
  }

  // x times the power of a sum: high + (low + high * p), x * bias^-beta = high + low.
  ANYDML_INLINE Singles times(Singles x, Singles sum) const {
    const Singles p = sum_of(series, sum * per_bias);
    const Singles high = x * power;
    const Singles low = multiply_add(x, singles(power), -high) + x * rest;
    return high + multiply_add(high, p, low);
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
        is_by_inverse_(is_by_inverse(-shape.beta) && shape.factor >= 0 &&
                       shape.bias >= std::numeric_limits<float>::min()),
        little_(shape),
        store_wide_(store_of(request.outputs[0].type)),
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
        slid_ = kInner;
        blocked_ = kOuter;
      } else {
        set(kMiddle, channels, true);
        slid_ = kMiddle;
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
    if constexpr (std::is_same_v<Number, float>) {
      is_sliding_ = shape.is_across && blocked_ == kInner && shape.before + 1 + shape.after < kFewTaps;
      if (is_sliding_) {
        const int64_t columns = dims_[kInner].axis.size;
        const int64_t share = (columns * count_of(around_) / kColumnBlocks / kRun + 1) * kRun;
        at_once_ = std::min(columns, std::clamp(share, kRun, is_gradient ? kMostColumns / 4 : kMostColumns));
      }
    }
    per_around_ = (dims_[blocked_].axis.size + at_once_ - 1) / at_once_;
    blocks_ = count_of(around_) * per_around_;
    // Runs that are pieces of rows far apart gain nothing by that, and neither do gradients in doubles.
    is_large_ = !(is_gradient && std::is_same_v<Number, double>) && elements * item_ >= kStreamFrom &&
                (is_sliding_ || blocked_ == kOuter) && dims_[kInner].axis.steps[out] == item_;
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
        if (is_sliding_) {
          block.first[blocked_] = i % per_around_ * at_once_;
          block.size = {1, 0, std::min(at_once_, dims_[kInner].axis.size - block.first[blocked_])};
          auto* const to = static_cast<std::byte*>(outputs[0]) + walk.offset(inputs_);
          const auto* const x = static_cast<const std::byte*>(inputs[0]) + walk.offset(0);
          if (is_gradient_) {
            put_sliding_gradients(x, static_cast<const std::byte*>(inputs[1]) + walk.offset(1), to, block);
          } else {
            put_sliding(x, to, block);
          }
          continue;
        }
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
  // Of rows of columns in single precision: channels that are a group, the most of them, and blocks for
  // threads.
  static constexpr int64_t kChannels = 8;
  static constexpr int64_t kMostColumns = 1 << 12;
  static constexpr int64_t kColumnBlocks = 16;
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
    std::vector<double> terms;     // of gradients,
    std::vector<double> straight;  // and what they are subtracted from
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
  template <class Of>
  void put_run(const Of* from, int64_t count, std::byte* to, Block& block) const {
    const auto put = [&](std::byte* at, int64_t step) {
      if constexpr (std::is_same_v<Of, double>) {
        store_wide_(from, count, at, step);
      } else {
        runs_.store(from, count, at, step);
      }
    };
    if (!block.is_streamed) return put(to, dims_[kInner].axis.steps[inputs_]);
    alignas(64) std::byte room[kRun * sizeof(float)];
    put(room, item_);
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

  // The largest of what is found for sixteen elements of a run at a time, and behind its last one, of what is
  // no NaN: beside one all others count.
  template <class Found>
  ANYDML_INLINE static auto most_of(int64_t count, const Found& found) {
    auto most = found(0);
    using S = std::conditional_t<std::is_same_v<decltype(most), Wide>, double, float>;
    using V = VectorOf<S>;
    constexpr S kLeast = -std::numeric_limits<S>::infinity();
    most = for_parts([](V x) ANYDML_INLINE_LAMBDA { return lane_max<S>(x, V{} + kLeast); }, most);
    for (int64_t i = kLanes; i < count; i += kLanes)
      most = for_parts([](V x, V y) ANYDML_INLINE_LAMBDA { return lane_max<S>(x, y); }, found(i), most);
    alignas(64) S lanes[kLanes];
    put_lanes(lanes, most);
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t lane = 0; lane < half; ++lane) lanes[lane] = std::max(lanes[lane], lanes[lane + half]);
    }
    return lanes[0];
  }

  // Calls put(i, powers) for sixteen elements of a run at a time, all in registers: s^-Beta, and that divided
  // by s for gradients. Those behind the run's last one are called for, too. Sums come before powers, as
  // chains of both are longer than a processor sees ahead.
  template <class Put>
  ANYDML_INLINE void for_powers(double* s, double most, int64_t count, const Put& put) const {
    if (!is_by_inverse_ || most > kMostOfInverse) {
      alignas(64) double less[kRun + kLanes];
      raise(s, count, -shape_.beta, is_gradient_ ? less : nullptr);
      for (int64_t i = 0; i < count; i += kLanes) put(i, Powers<Wide>{wide_at(s + i), wide_at(less + i)});
      return;
    }
    by_inverse(s, count, put);
  }
  template <class S, class Put>
  ANYDML_INLINE void by_inverse(const S* s, int64_t count, const Put& put) const {
    if (quarters_ == ThreeQuarters{}) {
      for (int64_t i = 0; i < count; i += kLanes) put(i, powers_by_inverse(lanes_at(s + i), ThreeQuarters{}));
    } else {
      for (int64_t i = 0; i < count; i += kLanes) put(i, powers_by_inverse(lanes_at(s + i), quarters_));
    }
  }

  // Calls put(i, powers) for sixteen elements of a block at a time, s = Bias + factor * sum(i).
  template <class Sum, class Put>
  ANYDML_INLINE void for_block(const Block& block, const Sum& sum, const Put& put) const {
    for (int64_t begin = 0; begin < block.count; begin += kRun)
      for_stretch(begin, std::min(kRun, block.count - begin), sum, put);
  }
  template <class Sum, class Put>
  ANYDML_INLINE void for_stretch(int64_t begin, int64_t count, const Sum& sum, const Put& put) const {
    alignas(64) double s[kRun + kLanes];
    const Wide bias = broadcast_wide(shape_.bias);
    const Wide factor = broadcast_wide(shape_.factor);
    const double most = most_of(count, [&](int64_t i) ANYDML_INLINE_LAMBDA {
      const Wide those = bias + factor * sum(begin + i);
      put_wide(s + i, those);
      return those;
    });
    for_powers(s, most, count,
               [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA { put(begin + i, powers); });
  }

  // y = x / s^Beta
  void put_responses(Block& block, std::byte* to) const {
    const Number* const x = inside(block.in[0], block);
    Number* const squares = inside(block.around, block);
    Number* const y = block.s.data();
    for (int64_t i = 0; i < block.count; ++i) squares[i] = x[i] * x[i];
    const Sums sums = sums_of(squares, false, false, block);
    if constexpr (std::is_same_v<Number, double>) {
      for_block(
          block, [&](int64_t i) ANYDML_INLINE_LAMBDA { return sums.at(i); },
          [&](int64_t i, const auto& powers)
              ANYDML_INLINE_LAMBDA { put_lanes(y + i, lanes_at(x + i) * powers.of); });
    } else {
      for (int64_t begin = 0; begin < block.count; begin += kRun) {
        put_singles(sums, x, sums.from - squares, begin, std::min(kRun, block.count - begin), y + begin);
      }
    }
    for_runs(block, inputs_,
             [&](int64_t offset, int64_t i, int64_t count) { put_run(y + i, count, to + offset, block); });
  }

  // Responses in single precision; of singles whose sums are no little ones in double precision, of windows
  // that begin so many elements from where they are. Most sums are little: powers are computed as if all
  // were, and once more where one is not.
  void put_singles(const Sums& sums, const float* x, int64_t first, int64_t begin, int64_t count,
                   float* y) const {
    const LittlePowers little = little_;  // which no store can change
    const auto put_little = [&](auto window) ANYDML_INLINE_LAMBDA {
      return most_of(count, [&](int64_t i) ANYDML_INLINE_LAMBDA {
        const Sixteen sum = sums.at(begin + i, window);
        put_lanes(y + i, each_part([&](Singles of, Singles around)
                                       ANYDML_INLINE_LAMBDA { return little.times(of, around); },
                                   lanes_at(x + begin + i), sum));
        return sum;
      });
    };
    const float most =
        sums.window == 5 ? put_little(std::integral_constant<int, 5>{}) : put_little(sums.window);
    if (most <= little_.most) return;
    if (runs_.are_halves) {
      alignas(64) float s[kRun + kLanes];
      const Sixteen bias = sixteen(static_cast<float>(shape_.bias));
      const auto factor = static_cast<float>(shape_.factor);
      for (int64_t i = 0; i < count; i += kLanes) {
        put_lanes(s + i, each_part([&](Singles more, Singles sum)
                                       ANYDML_INLINE_LAMBDA { return more + factor * sum; },
                                   bias, sums.at(begin + i, sums.window)));
      }
      by_inverse(s, count, [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA {
        put_lanes(y + i, lanes_at(x + begin + i) * powers.of);
      });
    } else {
      const auto sum = [&](int64_t i) ANYDML_INLINE_LAMBDA {
        return wide_sum(x + i + first, sums.window, sums.columns);
      };
      for_stretch(begin, count, sum, [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA {
        put_lanes(y + i - begin, as_sixteen(as_wide(lanes_at(x + i)) * powers.of));
      });
    }
  }

  ANYDML_INLINE static Wide wide_sum(const float* x, int64_t window, int64_t columns) {
    Wide sum{};
    for (int64_t k = 0; k < window; ++k) {
      const Wide each = as_wide(lanes_at(x + k * columns));
      sum = sum + each * each;
    }
    return sum;
  }

  // Long rows of columns, some channels at a time, whose windows stay in the second cache: memory is gone
  // over as it lies. Of a group of channels that overlap with the next one is moved before that.
  void put_sliding(const std::byte* from, std::byte* to, Block& block) const {
    if constexpr (std::is_same_v<Number, float>) {
      const Dim& channels = dims_[kMiddle];
      const int64_t size = channels.axis.size;
      const int64_t width = block.size[kInner];
      const int64_t overlap = channels.before + channels.after;
      const int64_t rows = kChannels + overlap;
      for (Numbers* const numbers : {&block.in[0], &block.around})
        numbers->resize(static_cast<size_t>(rows * width + kRun));
      float* const x = block.in[0].data();
      float* const squares = block.around.data();
      const Sums sums{squares, width, overlap + 1, false};
      const int64_t step = dims_[kInner].axis.steps[0];
      std::fill_n(x, channels.before * width, 0.0F);
      std::fill_n(squares, channels.before * width, 0.0F);
      int64_t row = channels.before;
      int64_t loaded = 0;
      for (int64_t first = 0; first < size; first += kChannels, row = overlap) {
        if (first > 0) {
          for (float* const numbers : {x, squares})
            std::copy_n(numbers + kChannels * width, overlap * width, numbers);
        }
        block.first[kMiddle] = loaded;
        block.size[kMiddle] = std::min(rows - row, size - loaded);
        block.pitch[kMiddle] = width;
        for_runs(block, 0, [&](int64_t offset, int64_t place, int64_t count) {
          float* const of = x + row * width + place;
          float* const squared = squares + row * width + place;
          runs_.load(from + offset, step, count, of);
          for (int64_t i = 0; i < count; ++i) squared[i] = of[i] * of[i];
        });
        loaded += block.size[kMiddle];
        const int64_t end = (row + block.size[kMiddle]) * width;
        for (float* const numbers : {x, squares})
          std::fill(numbers + end, numbers + rows * width + kRun, 0.0F);
        block.first[kMiddle] = first;
        block.size[kMiddle] = std::min(kChannels, size - first);
        for_runs(block, inputs_, [&](int64_t offset, int64_t place, int64_t count) {
          alignas(64) float y[kRun + kLanes];
          const int64_t before = channels.before * width;
          put_singles(sums, x + before, -before, place, count, y);
          put_run(y, count, to + offset, block);
        });
      }
    }
  }

  // Of singles, both sides of dx = dy / s^Beta - 2 * factor * Beta / Bias * x * sum of terms in double
  // precision, as they may cancel: terms = dy * x * Bias / s^(Beta + 1). Of little sums, d = dy / Bias^Beta,
  //   straight = d * (1 + p), terms = d * x * (1 + q).
  // Of windows that begin at `around`.
  void put_terms(const float* x, const float* dy, const float* around, int64_t columns, int64_t count,
                 double* straight, double* terms) const {
    const LittlePowers little = little_;  // which no store can change
    const WindowSums<float> sums{around, columns, dims_[slid_].before + 1 + dims_[slid_].after, true};
    const Wide power = broadcast_wide(little.exact);
    const Wide one = broadcast_wide(1);
    const auto put_little = [&](auto window) ANYDML_INLINE_LAMBDA {
      return most_of(count, [&](int64_t i) ANYDML_INLINE_LAMBDA {
        const Sixteen sum = sums.at(i, window);
        const auto series = [&](const auto& of) ANYDML_INLINE_LAMBDA {
          return as_wide(
              each_part([&](Singles each)
                            ANYDML_INLINE_LAMBDA { return LittlePowers::sum_of(of, each * little.per_bias); },
                        sum));
        };
        const Wide d = as_wide(lanes_at(dy + i)) * power;
        const Wide term = d * as_wide(lanes_at(x + i));
        put_wide(straight + i, d * (one + series(little.series)));
        put_wide(terms + i, term * (one + series(little.less)));
        return sum;
      });
    };
    const float most =
        sums.window == 5 ? put_little(std::integral_constant<int, 5>{}) : put_little(sums.window);
    if (most <= little.most) return;
    const Wide bias = broadcast_wide(shape_.bias);
    for_stretch(
        0, count, [&](int64_t i) ANYDML_INLINE_LAMBDA { return wide_sum(around + i, sums.window, columns); },
        [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA {
          const Wide of = as_wide(lanes_at(dy + i));
          put_wide(straight + i, of * powers.of);
          put_wide(terms + i, of * as_wide(lanes_at(x + i)) * (powers.less * bias));
        });
  }
  // Of turned windows of terms, that begin at `terms`.
  void put_differences(const float* x, const double* straight, const double* terms, int64_t columns,
                       int64_t count, std::byte* to, Block& block) const {
    const WindowSums<double> sums{terms, columns, dims_[slid_].before + 1 + dims_[slid_].after, false};
    const Wide twice = broadcast_wide(2 * shape_.factor * shape_.beta / shape_.bias);
    alignas(64) double dx[kRun + kLanes];
    const auto put = [&](auto window) ANYDML_INLINE_LAMBDA {
      for (int64_t i = 0; i < count; i += kLanes)
        put_wide(dx + i, wide_at(straight + i) - twice * as_wide(lanes_at(x + i)) * sums.at(i, window));
    };
    sums.window == 5 ? put(std::integral_constant<int, 5>{}) : put(sums.window);
    put_run(dx, count, to, block);
  }

  // Rows of columns as put_sliding: when channels up to n are there, there are terms up to n - after, of
  // which results up to n - after - before are made.
  void put_sliding_gradients(const std::byte* x_from, const std::byte* dy_from, std::byte* to,
                             Block& block) const {
    if constexpr (std::is_same_v<Number, float>) {
      const Dim& channels = dims_[kMiddle];
      const int64_t size = channels.axis.size;
      const int64_t width = block.size[kInner];
      const int64_t overlap = channels.before + channels.after;
      const int64_t kept = overlap * width;
      const int64_t all = kept + kChannels * width;
      const auto clear = [&](auto& numbers) {
        numbers.resize(static_cast<size_t>(all + kRun));
        std::fill_n(numbers.begin(), kept, 0);
        std::fill(numbers.begin() + all, numbers.end(), 0);
        return numbers.data();
      };
      float* const x = clear(block.in[0]);
      float* const dy = clear(block.in[1]);
      double* const terms = clear(block.terms);
      double* const straight = clear(block.straight);
      block.pitch[kMiddle] = width;
      // Calls body(offset, place, count) for the channels of some kChannels from `first` on that there are;
      // `place` is where the first of those lies in the first of so many rows.
      const auto for_channels = [&](int64_t first, size_t tensor, const auto& body) {
        const int64_t begin = std::max(first, int64_t{0});
        block.first[kMiddle] = begin;
        block.size[kMiddle] = std::max(std::min(first + kChannels, size) - begin, int64_t{0});
        for_runs(block, tensor, [&](int64_t offset, int64_t place, int64_t count) {
          body(offset, (begin - first) * width + place, count);
        });
      };
      for (int64_t n = 0; n - overlap < size; n += kChannels) {
        if (n > 0) {
          const auto move = [&](auto* numbers) { std::copy_n(numbers + kChannels * width, kept, numbers); };
          move(x);
          move(dy);
          move(terms);
          move(straight);
        }
        const auto load = [&](const std::byte* from, size_t tensor, float* numbers) {
          if (n + kChannels > size) std::fill(numbers + kept, numbers + all, 0.0F);
          const int64_t step = dims_[kInner].axis.steps[tensor];
          for_channels(n, tensor, [&](int64_t offset, int64_t place, int64_t count) {
            runs_.load(from + offset, step, count, numbers + kept + place);
          });
        };
        load(x_from, 0, x);
        load(dy_from, 1, dy);
        if (n < channels.after || n + kChannels - channels.after > size)
          std::fill(terms + kept, terms + all, 0.0);
        for_channels(n - channels.after, 0, [&](int64_t, int64_t place, int64_t count) {
          const int64_t of = place + channels.before * width;
          // Those behind the last column are of others, and of no effect but on it.
          double straights[kRun + kLanes];
          double those[kRun + kLanes];
          put_terms(x + of, dy + of, x + place, width, count, straights, those);
          std::copy_n(straights, count, straight + kept + place);
          std::copy_n(those, count, terms + kept + place);
        });
        for_channels(n - overlap, inputs_, [&](int64_t offset, int64_t place, int64_t count) {
          put_differences(x + place, straight + place + channels.after * width, terms + place, width, count,
                          to + offset, block);
        });
      }
    }
  }

  // dx = dy / s^Beta - 2 * factor * Beta * x * sum of dy * x / s^(Beta + 1)
  void put_gradients(Block& block, std::byte* to) const {
    if constexpr (std::is_same_v<Number, float>) {
      const Dim& slid = dims_[slid_];
      const int64_t columns = block.pitch[slid_];
      for (std::vector<double>* const numbers : {&block.terms, &block.straight})
        numbers->resize(static_cast<size_t>(block.count + 2 * block.padding + kRun));
      const float* const x = inside(block.in[0], block);
      const float* const dy = inside(block.in[1], block);
      double* const terms = block.terms.data() + block.padding;
      double* const straight = block.straight.data() + block.padding;
      for (int64_t i = 0; i < block.count; i += kRun) {
        put_terms(x + i, dy + i, x + i - slid.before * columns, columns, std::min(kRun, block.count - i),
                  straight + i, terms + i);
      }
      std::fill_n(block.terms.data(), block.padding, 0.0);
      std::fill_n(terms + block.count, block.padding, 0.0);
      clear_gaps(terms, block);
      for_runs(block, inputs_, [&](int64_t offset, int64_t i, int64_t count) {
        put_differences(x + i, straight + i, terms + i - slid.after * columns, columns, count, to + offset,
                        block);
      });
    } else {
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
  uint32_t quarters_;  // 4 * Beta, where it counts
  bool is_by_inverse_;
  LittlePowers little_;
  Store store_wide_;
  int64_t item_;
  bool is_sliding_ = false;
  bool is_large_ = false;  // of packed runs
  int64_t work_ = kLocalWork;
  std::array<Dim, 3> dims_;
  size_t blocked_ = kOuter;
  size_t slid_ = kInner;  // along which windows across channels go
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
  const bool has_little = LittlePowers(shape).most >= 0 && shape.is_across && size < kFewTaps;
  const bool is_half = type == DataType::kFloat16 && !is_gradient;
  if (request.inputs[0].type == type && (is_half ? are_singles_enough(shape) : has_little))
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
