// Statistics and results of groups that are lines: runs of elements side by side (rows), or elements a step
// apart, of as many lines side by side as there are lanes (columns). A line stays in a cache from pass to
// pass, and exponentials are kept, so that each is computed once.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "movement/copy.h"
#include "normalization/exponential.h"
#include "normalization/geometry.h"
#include "normalization/statistics.h"
#include "normalization/tuning.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/math.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN

// One tensor of a line, or of lines side by side: vectors of kLanes elements, `step` bytes apart; an only
// element, where it is the same for all lanes.
struct Vectors {
  const std::byte* at = nullptr;
  int64_t step = 0;
  bool is_one = false;
};

struct Line {
  std::array<Vectors, 4> in;
  std::byte* out;
  int64_t out_step;
  int64_t count;     // of vectors
  int64_t whole;     // those of them that are full, which come first
  int64_t lanes;     // of the others
  int64_t back;      // how many lanes these begin before what is theirs; 0 where there is nothing before them
  int64_t elements;  // of a group
  double* room;      // for the line's elements
};

template <class T>
ANYDML_INLINE Wide vector_at(const Vectors& x, int64_t i) {
  const std::byte* const at = x.at + i * x.step;
  return x.is_one ? broadcast_wide(widen<T, double>(at)) : load_wide_lanes<T>(at);
}
// Of which there are but some lanes: the last ones, or, where nothing is before them, the first.
template <class T>
ANYDML_INLINE Wide part_at(const Line& line, const Vectors& x, int64_t i) {
  if (x.is_one) return vector_at<T>(x, i);
  const std::byte* const at = x.at + i * x.step;
  if (line.back > 0) return load_wide_lanes<T>(at - line.back * static_cast<int64_t>(sizeof(T)));
  T some[kLanes];
  std::memcpy(some, at, static_cast<size_t>(line.lanes) * sizeof(T));
  for (int64_t k = line.lanes; k < kLanes; ++k) some[k] = some[line.lanes - 1];
  return load_wide_lanes<T>(reinterpret_cast<const std::byte*>(some));
}

// A vector that counts whole.
struct Every {
  template <bool kColumns>
  ANYDML_INLINE Wide counted(const Wide& x) const {
    return x;
  }
};
// One of which in rows only the lanes count that are its own.
struct Part {
  int64_t begin;
  int64_t end;

  template <bool kColumns>
  ANYDML_INLINE Wide counted(const Wide& x) const {
    return kColumns ? x : some_lanes(x, begin, end);
  }
};

// Calls body(i, x, lanes) for each vector of the first tensor.
template <class T, class Body>
ANYDML_INLINE void for_vectors(const Line& line, const Body& body) {
  for (int64_t i = 0; i < line.whole; ++i) {
    body(i, load_wide_lanes<T>(line.in[0].at + i * line.in[0].step), Every{});
  }
  const Part part{line.back, line.back + line.lanes};
  for (int64_t i = line.whole; i < line.count; ++i) body(i, part_at<T>(line, line.in[0], i), part);
}

// The results of a part, of which in rows those before it are the same once more.
template <class T, bool kColumns>
ANYDML_INLINE void put_part(const Line& line, int64_t i, const Wide& y) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  std::byte* const to = line.out + i * line.out_step;
  if (!kColumns && line.back > 0) return store_wide_lanes<T>(to - line.back * kItem, y);
  std::byte some[kLanes * sizeof(T)];
  store_wide_lanes<T>(some, y);
  std::memcpy(to, some + line.back * kItem, static_cast<size_t>(line.lanes * kItem));
}

// Writes result(i, x, at) for each vector x of the first tensor, at(k) being that of another. A row's part is
// read before anything is written, as the output may lie over the input.
template <class T, bool kColumns, class Result>
ANYDML_INLINE void map_line(const Line& line, const Result& result) {
  const auto of_part = [&](int64_t i) ANYDML_INLINE_LAMBDA {
    return result(i, part_at<T>(line, line.in[0], i),
                  [&](size_t k) ANYDML_INLINE_LAMBDA { return part_at<T>(line, line.in[k], i); });
  };
  const bool has_last = !kColumns && line.whole < line.count;
  const Wide last = has_last ? of_part(line.whole) : Wide{};
  for (int64_t i = 0; i < line.whole; ++i) {
    const Wide x = load_wide_lanes<T>(line.in[0].at + i * line.in[0].step);
    store_wide_lanes<T>(line.out + i * line.out_step, result(i, x, [&](size_t k) ANYDML_INLINE_LAMBDA {
                          return vector_at<T>(line.in[k], i);
                        }));
  }
  if (has_last) return put_part<T, kColumns>(line, line.whole, last);
  for (int64_t i = line.whole; i < line.count; ++i) put_part<T, kColumns>(line, i, of_part(i));
}

// One number for all lanes in rows, those of the lanes in columns.
template <bool kColumns, class Join>
ANYDML_INLINE Wide joined_lanes(const Wide& x, const Join& join) {
  if constexpr (kColumns) return x;
  return broadcast_wide(joined(x, join));
}
template <bool kColumns>
ANYDML_INLINE Wide added_lanes(const Wide& x) {
  return joined_lanes<kColumns>(x, [](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return a + b; });
}

// Applies a function of numbers to all lanes, or to one of which all are copies.
template <bool kColumns, class Function>
ANYDML_INLINE Wide for_lanes(const Wide& x, const Function& function) {
  if constexpr (!kColumns) {
    double first;
    std::memcpy(&first, &x, sizeof(first));
    return broadcast_wide(function(first));
  }
  std::array<double, kLanes> lanes;
  put_wide(lanes.data(), x);
  for (double& lane : lanes) lane = function(lane);
  return wide_at(lanes.data());
}

// The largest of each lane, in single precision; of a NaN and a number, the number.
template <class T>
ANYDML_INLINE Wide largest_of(const Line& line) {
  constexpr auto kVectors = static_cast<int64_t>(kLanes * sizeof(float) / sizeof(Singles));
  constexpr auto kStep = static_cast<int64_t>(sizeof(Singles) / sizeof(float) * sizeof(T));
  Singles most[2][kVectors];
  for (auto& each : most) {
    for (Singles& vector : each) vector = Singles{} - std::numeric_limits<float>::infinity();
  }
  const auto add = [&](int64_t i, Singles(&to)[kVectors]) ANYDML_INLINE_LAMBDA {
    const std::byte* const at = line.in[0].at + i * line.in[0].step;
#pragma GCC unroll 16
    for (int64_t v = 0; v < kVectors; ++v) {
      to[v] = lane_max<float>(load_numbers<T, float, Singles>(at + v * kStep), to[v]);
    }
  };
  // Two, as one would wait for itself.
  int64_t i = 0;
  for (; i + 2 <= line.whole; i += 2) {
    add(i, most[0]);
    add(i + 1, most[1]);
  }
  if (i < line.whole) add(i, most[0]);
  std::array<float, kLanes> lanes;
#pragma GCC unroll 16
  for (int64_t v = 0; v < kVectors; ++v) {
    const Singles both = lane_max<float>(most[0][v], most[1][v]);
    std::memcpy(lanes.data() + v * static_cast<int64_t>(sizeof(Singles) / sizeof(float)), &both,
                sizeof(both));
  }
  Wide all = load_wide_lanes<float>(reinterpret_cast<const std::byte*>(lanes.data()));
  for (i = line.whole; i < line.count; ++i) {
    all = each_of([](Doubles a, Doubles b) { return lane_max<double>(a, b); },
                  part_at<T>(line, line.in[0], i), all);
  }
  return all;
}

// y = e^(x - most) / sum, or x - most - ln(sum). With the logarithm, elements that equal the largest are
// counted apart, as in `Softmax`.
struct SoftmaxLine {
  static constexpr bool kNeedsRoom = true;

  bool is_logarithm;

  template <class T, bool kColumns>
  void compute(const Line& line) const {
    const auto larger = [](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return lane_max<double>(a, b); };
    const Wide most = joined_lanes<kColumns>(largest_of<T>(line), larger);
    // Infinities among the elements leave nothing, nor does NaN, of which the sum is one.
    const Wide none = for_lanes<kColumns>(
        most, [](double x) { return std::fabs(x) < std::numeric_limits<double>::infinity() ? 0.0 : kNan; });
    is_logarithm ? take_logarithms<T, kColumns>(line, most, none)
                 : take_shares<T, kColumns>(line, most, none);
  }

 private:
  template <class T, bool kColumns>
  static void take_shares(const Line& line, const Wide& most, const Wide& none) {
    Wide sum = none;
    for_vectors<T>(line, [&](int64_t i, const Wide& x, const auto& lanes) ANYDML_INLINE_LAMBDA {
      const Wide e = each_of(
          [](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA { return small_exp2_of((a - b) * kLog2E); }, x, most);
      put_wide(line.room + i * kLanes, e);
      sum = sum + lanes.template counted<kColumns>(e);
    });
    const Wide share = for_lanes<kColumns>(added_lanes<kColumns>(sum), [](double x) { return 1 / x; });
    for (int64_t i = 0; i < line.whole; ++i) {
      store_wide_lanes<T>(line.out + i * line.out_step, wide_at(line.room + i * kLanes) * share);
    }
    for (int64_t i = line.whole; i < line.count; ++i) {
      put_part<T, kColumns>(line, i, wide_at(line.room + i * kLanes) * share);
    }
  }

  template <class T, bool kColumns>
  static void take_logarithms(const Line& line, const Wide& most, const Wide& none) {
    Wide others = none;
    Wide equal{};
    for_vectors<T>(line, [&](int64_t, const Wide& x, const auto& lanes) ANYDML_INLINE_LAMBDA {
      const Wide e = each_of(
          [](Doubles a, Doubles b) ANYDML_INLINE_LAMBDA {
            const Doubles power = small_exp2_of((a - b) * kLog2E);
            return a == b ? Doubles{} : power;
          },
          x, most);
      const Wide one = each_of([](Doubles a, Doubles b)
                                   ANYDML_INLINE_LAMBDA { return a == b ? Doubles{} + 1.0 : Doubles{}; },
                               x, most);
      others = others + lanes.template counted<kColumns>(e);
      equal = equal + lanes.template counted<kColumns>(one);
    });
    const Wide rest = added_lanes<kColumns>(others) + (added_lanes<kColumns>(equal) - broadcast_wide(1));
    const Wide logarithm = for_lanes<kColumns>(rest, [](double x) {
      return x <= 1 ? applied_to_one(x, [](Doubles t) ANYDML_INLINE_LAMBDA { return log1p_of(t); })
                    : applied_to_one(1 + x, [](Doubles t) ANYDML_INLINE_LAMBDA { return log_of(t); });
    });
    map_line<T, kColumns>(
        line, [&](int64_t, const Wide& x, const auto&) ANYDML_INLINE_LAMBDA { return x - most - logarithm; });
  }
};

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
      factor = for_lanes<kColumns>(variance, [&](double x) { return 1 / std::sqrt(x + epsilon); });
    }
    if (has[1] && has[2] && !has[3]) {
      return map_line<T, kColumns>(line, [&](int64_t, const Wide& x, const auto& at) ANYDML_INLINE_LAMBDA {
        return (x - mean) * factor * at(1) + at(2);
      });
    }
    map_line<T, kColumns>(line, [&](int64_t, const Wide& x, const auto& at) ANYDML_INLINE_LAMBDA {
      Wide y = (x - mean) * factor;
      if (has[1]) y = y * at(1);
      if (has[2]) y = y + at(2);
      if (has[3]) y = y + at(3);
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
    const Wide factor = for_lanes<kColumns>(added_lanes<kColumns>(sum), [&](double x) {
      const double norm = is_of_squares ? std::sqrt(x) : x;
      return 1 / (norm < epsilon ? epsilon : norm);
    });
    map_line<T, kColumns>(
        line, [&](int64_t, const Wide& x, const auto&) ANYDML_INLINE_LAMBDA { return x * factor; });
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
  if (elements > most || (geometry.tiles() < kFewTiles && elements >= kPartElements)) return false;
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
    by_columns_ = geometry_.by_columns();
    const Axis& run = geometry_.run;
    elements_ = by_columns_ ? geometry_.summed[0].size : run.size;
    per_line_ = by_columns_ ? divided_up(run.size, kLanes) : 1;
    count_ = by_columns_ ? elements_ : divided_up(run.size, kLanes);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t bytes = 2 * geometry_.elements() * static_cast<int64_t>(sizeof(T));
    const int threads = threads_for(bytes);
    const int64_t lines = count_of(geometry_.kept) * per_line_;
    const int64_t calls = std::min(calls_for(bytes, threads), lines);
    parallel_for(calls, threads, [&](int64_t call) {
      const std::unique_ptr<double[]> room(Op::kNeedsRoom ? new double[static_cast<size_t>(count_ * kLanes)]
                                                          : nullptr);
      int64_t number = share_begin(call, calls, lines);
      const int64_t end = share_begin(call + 1, calls, lines);
      Walk walk(geometry_.kept, number / per_line_);
      for (int64_t piece = number % per_line_; number < end; ++number) {
        const Line line = line_at(walk, piece * kLanes, inputs, outputs, room.get());
        by_columns_ ? op_.template compute<T, true>(line) : op_.template compute<T, false>(line);
        if (++piece == per_line_) {
          piece = 0;
          walk.advance();
        }
      }
    });
  }

 private:
  Line line_at(const Walk& walk, int64_t first, const void* const* inputs, void* const* outputs,
               double* room) const {
    const Axis& run = geometry_.run;
    const int64_t width = by_columns_ ? std::min(kLanes, run.size - first) : run.size % kLanes;
    Line line{{}, nullptr, 0, count_, 0, width, 0, elements_, room};
    const auto step = [&](size_t k) ANYDML_INLINE_LAMBDA {
      return by_columns_ ? geometry_.summed[0].steps[k] : run.steps[k] * kLanes;
    };
    for (size_t k = 0; k < inputs_; ++k) {
      if (!is_there_[k]) continue;
      const auto* const at = static_cast<const std::byte*>(inputs[k]) + walk.offset(k) + first * run.steps[k];
      line.in[k] = {at, step(k), run.steps[k] == 0};
    }
    line.out = static_cast<std::byte*>(outputs[0]) + walk.offset(inputs_) + first * run.steps[inputs_];
    line.out_step = step(inputs_);
    // Columns before are another thread's to write, where the output lies over the input.
    const bool has_before = run.size >= kLanes && !(by_columns_ && line.in[0].at == line.out);
    if (has_before) line.back = kLanes - width;
    line.whole = by_columns_ ? (width == kLanes ? count_ : 0) : run.size / kLanes;
    return line;
  }

  Op op_;
  Geometry geometry_;
  size_t inputs_;
  std::array<bool, 4> is_there_{};
  bool by_columns_;
  int64_t elements_;
  int64_t per_line_;
  int64_t count_;
};

// Null where groups are no such lines.
template <class Op>
std::unique_ptr<Plan> lines_of(const Op& op, const Request& request, const Geometry& geometry,
                               const std::string& description) {
  if (request.attributes.has("Program") || !has_lines(geometry, request.inputs, request.outputs))
    return nullptr;
  const std::string at_once = std::string(description).append(", at once");
  if (request.outputs[0].type == DataType::kFloat32) {
    return std::make_unique<LinesPlan<Op, float>>(op, geometry, request.inputs, at_once);
  }
  return std::make_unique<LinesPlan<Op, Half>>(op, geometry, request.inputs, at_once);
}

ANYDML_ISA_END
