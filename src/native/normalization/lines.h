// Statistics and results of groups that are lines: runs of elements side by side (rows), or elements a step
// apart, of as many lines side by side as there are lanes (columns, which columns.h goes over). A line stays
// in a cache from pass to pass, and exponentials are kept, so that each is computed once.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "movement/copy.h"
#include "normalization/geometry.h"
#include "normalization/line.h"
#include "normalization/sixteen.h"
#include "normalization/statistics.h"
#include "normalization/tuning.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "pointwise/half_arithmetic.h"
#include "pointwise/math.h"
#include "simd/half.h"
#include "simd/transpose.h"
#include "stores/nontemporal.h"
#include "stores/row_stream.h"

ANYDML_ISA_BEGIN

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias + added, squares being of differences from the
// mean.
struct MomentsLine {
  static constexpr bool kNeedsRoom = false;

  bool is_centred;
  bool is_scaled;
  double epsilon;
  std::array<bool, 4> has{};

  template <class T, bool kColumns>
  void compute(const Line& line) const {
    const Wide share = broadcast_wide(1 / static_cast<double>(line.elements));
    Wide mean{};
    if (is_centred) {
      Wide sum{};
      for_vectors<T>(line, [&](int64_t, const Wide& x, const auto& lanes)
                               ANYDML_INLINE_LAMBDA { sum = sum + lanes.template counted<kColumns>(x); });
      mean = each_of([&](Doubles x) ANYDML_INLINE_LAMBDA { return x / static_cast<double>(line.elements); },
                     added_lanes<kColumns>(sum));
    }
    Wide factor = broadcast_wide(1);
    if (is_scaled) {
      Wide squares{};
      for_vectors<T>(line, [&](int64_t, const Wide& x, const auto& lanes) ANYDML_INLINE_LAMBDA {
        const Wide apart = x - mean;
        squares = squares + lanes.template counted<kColumns>(apart * apart);
      });
      const Wide variance = added_lanes<kColumns>(squares) * share;
      factor = for_lanes<kColumns>(variance,
                                   [&](auto x) ANYDML_INLINE_LAMBDA { return 1.0 / root_of(x + epsilon); });
    }
    if constexpr (std::is_same_v<T, Half>) {
      return map_in_singles(line, mean, factor);
    }
    if constexpr (!kColumns) {
      if (has[1] && has[2] && !has[3]) {
        return map_line<T, kColumns>(line, [&](int64_t, const Wide& x, const auto& at) ANYDML_INLINE_LAMBDA {
          return (x - mean) * factor * at(1) + at(2);
        });
      }
    }
    map_line<T, kColumns>(line, [&](int64_t, const Wide& x, const auto& at) ANYDML_INLINE_LAMBDA {
      Wide y = (x - mean) * factor;
      if (has[1]) y = y * at(1);
      if (has[2]) y = y + at(2);
      if (has[3]) y = y + at(3);
      return y;
    });
  }

 private:
  // Halves in single precision, of which the mean has two, so that nothing is lost of elements next to it.
  void map_in_singles(const Line& line, const Wide& mean, const Wide& factor) const {
    const Sixteen high = as_sixteen(mean);
    // An infinite mean has no rest.
    const Sixteen low =
        as_sixteen(each_of([](Doubles rest) ANYDML_INLINE_LAMBDA { return rest == rest ? rest : Doubles{}; },
                           mean - as_wide(high)));
    const Sixteen by = as_sixteen(factor);
    const auto times = [](Singles x, Singles y) ANYDML_INLINE_LAMBDA { return x * y; };
    const auto plus = [](Singles x, Singles y) ANYDML_INLINE_LAMBDA { return x + y; };
    map_sixteens<Half, false>(line, [&](const Sixteen& x, const auto& at) ANYDML_INLINE_LAMBDA {
      Sixteen y = each_part([](Singles v, Singles h, Singles l, Singles f)
                                ANYDML_INLINE_LAMBDA { return ((v - h) - l) * f; },
                            x, high, low, by);
      if (has[1]) y = each_part(times, y, at(1));
      if (has[2]) y = each_part(plus, y, at(2));
      if (has[3]) y = each_part(plus, y, at(3));
      return y;
    });
  }
};

// y = x / max(norm, epsilon)
struct NormLine {
  static constexpr bool kNeedsRoom = false;

  bool is_of_squares;
  double epsilon;

  template <class T, bool kColumns>
  void compute(const Line& line) const {
    Wide sum{};
    if (is_of_squares) {
      for_vectors<T>(line, [&](int64_t, const Wide& x, const auto& lanes)
                               ANYDML_INLINE_LAMBDA { sum = sum + lanes.template counted<kColumns>(x * x); });
    } else {
      for_vectors<T>(line, [&](int64_t, const Wide& x, const auto& lanes) ANYDML_INLINE_LAMBDA {
        const Wide magnitude =
            each_of([](Doubles v) ANYDML_INLINE_LAMBDA { return magnitude_of<double>(v); }, x);
        sum = sum + lanes.template counted<kColumns>(magnitude);
      });
    }
    const Wide factor = for_lanes<kColumns>(added_lanes<kColumns>(sum), [&](auto x) ANYDML_INLINE_LAMBDA {
      const auto norm = is_of_squares ? root_of(x) : x;
      const decltype(x) least = decltype(x){} + epsilon;
      return 1.0 / (norm < least ? least : norm);
    });
    if constexpr (std::is_same_v<T, float> && kColumns) {
      if (line.is_of_halves) return map_halves(line, factor);
    }
    map_line<T, kColumns>(
        line, [&](int64_t, const Wide& x, const auto&) ANYDML_INLINE_LAMBDA { return x * factor; });
  }

 private:
  // Of halves as singles, which are narrowed once more: by one single where no product is next to a tie
  // between two halves, as few are, and by two where one is.
  static void map_halves(const Line& line, const Wide& factor) {
    // A factor that no single holds is one of zeros.
    const Wide held = each_of(
        [](Doubles f) ANYDML_INLINE_LAMBDA {
          constexpr double kMost = 0x1p127;
          return (f > kMost) & (f < std::numeric_limits<double>::infinity()) ? Doubles{} + kMost : f;
        },
        factor);
    const Sixteen high = as_sixteen(held);
    const Sixteen low = as_sixteen(held - as_wide(high));
    map_sixteens<float, true>(line, [&](const Sixteen& x, const auto&) ANYDML_INLINE_LAMBDA {
      const Sixteen products = x * high;
      bool are_right = true;
      for (int64_t p = 0; p < kSingleParts; ++p) {
        are_right = are_right && all_of<float>(is_apart(products.parts[p]));
      }
      if (are_right) [[likely]]
        return products;
      return each_part(rounded_once, x, products, high, low);
    });
  }

  // Whether a product is 1.5 units in the last place, which its error may have, from ties between halves that
  // are no subnormal ones, and none of these itself.
  ANYDML_INLINE static auto is_apart(Singles product) {
    constexpr uint32_t kTie = 1U << 12;  // among the 13 bits that halves have not
    constexpr uint32_t kNext = 4;
    constexpr uint32_t kBits = 2 * kTie - 2 * kNext;
    constexpr uint32_t kNormal = 113U << 24;  // 2^-14, without a sign
    const auto bits = bits_as<SingleBits>(product);
    return (((bits + (kTie + kNext)) & kBits) != 0) & ((bits + bits) - 1 >= kNormal - 1);
  }
  // By two singles h and l of a factor: product + (x * h - product + x * l), rounded to odd, so that halves
  // are rounded once.
  ANYDML_INLINE static Singles rounded_once(Singles v, Singles product, Singles h, Singles l) {
    const Singles rest = multiply_add(v, l, multiply_add(v, h, -product));
    // More than a unit in the last place together, which the sum takes up. Zero keeps its sign.
    const SinglePair sum = fast_two_sum(product, rest);
    return (rest < 0.0F) | (rest > 0.0F) ? rounded_to_odd(sum.high, sum.low) : product;
  }
};

// Whether the groups of some axes are such lines, short enough for a cache, and many enough for the threads.
inline bool has_lines(const Geometry& geometry, const std::vector<Layout>& inputs,
                      const std::vector<Layout>& outputs) {
  const bool is_rows = !geometry.by_columns();
  if (geometry.summed.size() != (is_rows ? 0U : 1U) || outputs.size() != 1) return false;
  const Axis& run = geometry.run;
  const int64_t item = size_of(outputs[0].type);
  const int64_t elements = is_rows ? run.size : geometry.summed[0].size;
  const int64_t most = is_rows ? kLineElements : kColumnElements;
  if (elements > most || (geometry.tiles() < kFewLines && elements >= kPartElements)) return false;
  for (size_t k = 0; k <= inputs.size(); ++k) {
    if (k < inputs.size() && (!inputs[k].present || inputs[k].type != outputs[0].type)) {
      if (inputs[k].present) return false;
      continue;
    }
    const bool is_parameter = k > 0 && k < inputs.size();
    if (run.steps[k] != item && !(is_parameter && run.steps[k] == 0)) return false;
  }
  return inputs.size() <= 4;
}

template <class Op, class T>
class LinesPlan final : public Plan {
 public:
  LinesPlan(Op op, Geometry geometry, const std::vector<Layout>& inputs, std::string description)
      : Plan(std::move(description)), op_(op), geometry_(std::move(geometry)), inputs_(inputs.size()) {
    for (size_t k = 0; k < inputs_; ++k) is_there_[k] = inputs[k].present;
    elements_ = geometry_.run.size;
    count_ = divided_up(elements_, kLanes);
    are_turned_ = Op::kNeedsRoom && inputs_ == 1 && elements_ <= kTurnedRow;
    is_large_ = geometry_.elements() * kItem >= kStreamFrom;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    if constexpr (Op::kNeedsRoom) {
      if (are_turned_) return run_turned(inputs[0], outputs[0]);
    }
    const int64_t work = geometry_.elements() * (Op::kNeedsRoom ? kSoftmaxWork : kLineWork);
    const int threads = threads_for(work);
    const int64_t lines = count_of(geometry_.kept);
    const int64_t calls = std::min(calls_for(work, threads), lines);
    const bool streams = is_large_ && inputs[0] != outputs[0] && elements_ * kItem >= kLeastStreamed &&
                         elements_ * kItem <= kMostStreamed;
    parallel_for(calls, threads, [&](int64_t call) {
      // Of two lines, in turn.
      const int64_t room_bytes = Op::kNeedsRoom ? 2 * (count_ + 1) * kLineBytes : 0;
      const int64_t row_bytes = (elements_ * kItem / kLine + 3) * kLine;
      const Scratch room(room_bytes + (streams ? row_bytes * (Op::kNeedsRoom ? 1 : 2) : 0));
      RowStream stream(room.bytes() + room_bytes, Op::kNeedsRoom ? 0 : row_bytes);
      int64_t number = share_begin(call, calls, lines);
      const int64_t end = share_begin(call + 1, calls, lines);
      Walk walk(geometry_.kept, number);
      const auto next_line = [&] {
        Line line = line_at(walk, inputs, outputs,
                            Op::kNeedsRoom ? room.floats() + number % 2 * (count_ + 1) * kLanes : nullptr);
        ++number;
        const int64_t offset = walk.offset(0);
        walk.advance();
        if (streams && number < end) line.ahead = walk.offset(0) - offset;
        if (streams) line.stream = &stream;
        return line;
      };
      // Calls body(line) with results in a buffer where they go past the caches.
      const auto put = [&](Line& line, const auto& body) ANYDML_INLINE_LAMBDA {
        if (streams) line.out = stream.begin(line.out);
        body(line);
        if (streams) stream.finish(elements_ * kItem);
      };
      if constexpr (Op::kNeedsRoom) {
        // What a line's results need takes long to come out of its sum: meanwhile the next line is begun.
        Line before = next_line();
        auto of_before = op_.template start<T>(before);
        const auto finish = [&](const Line& line) { op_.template finish<T>(line, of_before); };
        while (number < end) {
          const Line line = next_line();
          const auto of_line = op_.template start<T>(line);
          put(before, finish);
          before = line;
          of_before = of_line;
        }
        put(before, finish);
      } else {
        while (number < end) {
          Line line = next_line();
          put(line, [&](const Line& of) { op_.template compute<T, false>(of); });
        }
      }
    });
  }

 private:
  // Short rows, of which as many as there are lanes are transposed to columns, and back.
  void run_turned(const void* input, void* output) const {
    const int64_t work = geometry_.elements() * kSoftmaxWork;
    const int threads = threads_for(work);
    const int64_t rows = count_of(geometry_.kept);
    const int64_t groups = divided_up(rows, kLanes);
    const int64_t calls = std::min(calls_for(work, threads), groups);
    const bool streams = is_large_ && input != output && is_packed(0) && is_packed(1);
    parallel_for(calls, threads, [&](int64_t call) {
      const int64_t room_bytes = (elements_ + 1) * kLineBytes;
      const Scratch room(room_bytes + (streams ? elements_ * kLineBytes + 2 * kLine : 0));
      RowStream stream(room.bytes() + room_bytes, 0);
      T turned[kTurnedRow * kLanes];
      float singles[kTurnedRow * kLanes];
      auto* const own = reinterpret_cast<std::byte*>(turned);
      auto* const at = std::is_same_v<T, float> ? own : reinterpret_cast<std::byte*>(singles);
      constexpr auto kOwnStep = static_cast<int64_t>(kLanes * sizeof(T));
      constexpr auto kStep = static_cast<int64_t>(kLanes * sizeof(float));
      Line line{
          {Vectors{at, kStep, false}}, at, kStep, elements_, elements_, kLanes, 0, elements_, room.floats(),
          std::is_same_v<T, Half>};
      if (streams) line.stream = &stream;
      int64_t group = share_begin(call, calls, groups);
      const int64_t end = share_begin(call + 1, calls, groups);
      Walk walk(geometry_.kept, group * kLanes);
      for (; group < end; ++group) {
        const int64_t count = std::min(kLanes, rows - group * kLanes);
        std::array<const std::byte*, kLanes> from;
        std::array<std::byte*, kLanes> to;
        for (int64_t k = 0; k < count; ++k, walk.advance()) {
          from[static_cast<size_t>(k)] = static_cast<const std::byte*>(input) + walk.offset(0);
          to[static_cast<size_t>(k)] = static_cast<std::byte*>(output) + walk.offset(1);
        }
        turn(from, count, own);
        line.ahead = from[0] + kLanes * elements_ * kItem - at;
        if constexpr (std::is_same_v<T, float>) {
          op_.template compute<float, true>(line);
        } else {
          for (int64_t i = 0; i < elements_; ++i) {
            store_sixteen<float>(at + i * kStep, load_sixteen<T>(own + i * kOwnStep));
          }
          op_.template compute<float, true>(line);
          for (int64_t i = 0; i < elements_; ++i) {
            store_sixteen<T>(own + i * kOwnStep, load_sixteen<float>(at + i * kStep));
          }
        }
        if (streams) to[0] = stream.begin(to[0]);
        turn_back(own, to, count);
        if (streams) stream.finish(count * elements_ * kItem);
      }
    });
  }

  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));

  // Whether rows are everywhere the same distance apart.
  bool is_even(size_t tensor) const {
    return geometry_.kept.size() == 1 && geometry_.kept[0].steps[tensor] >= elements_ * kItem;
  }

  bool is_packed(size_t tensor) const {
    return is_even(tensor) && geometry_.kept[0].steps[tensor] == elements_ * kItem;
  }

  // Rows as lanes; those that are left over do what the first one does.
  void turn(const std::array<const std::byte*, kLanes>& rows, int64_t count, std::byte* to) const {
    int64_t lane = 0;
    if (is_even(0)) {
      gather_tile<Bits>({rows[0], kItem, geometry_.kept[0].steps[0]}, elements_, count, to, kLanes * kItem);
      lane = count;
    }
    for (; lane < kLanes; ++lane) {
      const std::byte* const row = rows[static_cast<size_t>(lane < count ? lane : 0)];
      std::byte* const column = to + lane * kItem;
      for (int64_t i = 0; i < elements_; ++i) store(column + i * kLanes * kItem, load<Bits>(row + i * kItem));
    }
  }
  void turn_back(const std::byte* from, const std::array<std::byte*, kLanes>& rows, int64_t count) const {
    if (is_even(1)) {
      return gather_tile<Bits>({from, kItem, kLanes * kItem}, count, elements_, rows[0],
                               geometry_.kept[0].steps[1]);
    }
    for (int64_t lane = 0; lane < count; ++lane) {
      std::byte* const row = rows[static_cast<size_t>(lane)];
      const std::byte* const column = from + lane * kItem;
      for (int64_t i = 0; i < elements_; ++i) store(row + i * kItem, load<Bits>(column + i * kLanes * kItem));
    }
  }

  Line line_at(const Walk& walk, const void* const* inputs, void* const* outputs, float* room) const {
    const Axis& run = geometry_.run;
    const int64_t width = run.size % kLanes;
    Line line{{}, nullptr, 0, count_, run.size / kLanes, width, 0, elements_, room};
    for (size_t k = 0; k < inputs_; ++k) {
      if (!is_there_[k]) continue;
      const auto* const at = static_cast<const std::byte*>(inputs[k]) + walk.offset(k);
      line.in[k] = {at, run.steps[k] * kLanes, run.steps[k] == 0};
    }
    line.out = static_cast<std::byte*>(outputs[0]) + walk.offset(inputs_);
    line.out_step = run.steps[inputs_] * kLanes;
    if (run.size >= kLanes) line.back = kLanes - width;
    return line;
  }

  Op op_;
  Geometry geometry_;
  size_t inputs_;
  std::array<bool, 4> is_there_{};
  bool are_turned_;
  bool is_large_;
  int64_t elements_;
  int64_t count_;
};

// Null where groups are no such lines.
template <class Op>
std::unique_ptr<Plan> lines_of(const Op& op, const Request& request, const Geometry& geometry,
                               const std::string& description) {
  if (geometry.by_columns() || request.attributes.has("Program") ||
      !has_lines(geometry, request.inputs, request.outputs)) {
    return nullptr;
  }
  const std::string at_once = std::string(description).append(", at once");
  if (request.outputs[0].type == DataType::kFloat32) {
    return std::make_unique<LinesPlan<Op, float>>(op, geometry, request.inputs, at_once);
  }
  return std::make_unique<LinesPlan<Op, Half>>(op, geometry, request.inputs, at_once);
}

ANYDML_ISA_END
