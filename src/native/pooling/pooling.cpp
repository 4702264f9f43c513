// Pooling of tensors of any strides: averages, norms, and maxima with their indices, in one to three spatial
// dimensions.
#include "nhwc/pooling.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
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
#include "pooling/channels.h"
#include "pooling/geometry.h"
#include "pooling/half_sums.h"
#include "pooling/roots.h"
#include "pooling/rows.h"
#include "pooling/separable_geometry.h"
#include "pooling/separable_plan.h"
#include "pooling/whole.h"
#include "pooling/windows.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// What is written of a part: its numbers, and their indices where they are wanted.
struct Written {
  std::byte* numbers;
  std::byte* indices;
};

constexpr auto kAsTheyAre = [](auto*, int64_t) {};

// Averages, sums of all taps divided by how many are counted; or norms, roots of sums of powers. They are one
// operation, as they are compiled once then.
template <class T>
struct Sums {
  using Element = T;
  using Number = double;
  using Combine = Sum;

  int64_t p = 0;  // of a norm; 0 of averages

  // Whether what is summed is made of an element in registers.
  bool is_simple() const { return p <= kMostInRegisters; }
  bool is_average() const { return p == 0; }

  void run(const Nest& nest, const Part& part, const std::byte* in, const Written& out) const {
    double sums[kPart];
    const auto powers = [&](double* numbers, int64_t count) { prepare(numbers, count); };
    PartWindows<T, double, Sum, false, decltype(powers)>(nest, part, powers, sums, nullptr).add(0, in, 0);
    finish(nest, part, sums);
    store_row<T>(sums, part.size, nest.row.window.out_stride, out.numbers);
  }

  // The same along channels, which have a count in common.
  void run_channels(const Nest& nest, const Part& part, const std::byte* in, const WindowTaps& window,
                    const Written& out) const {
    constexpr auto kItem = static_cast<int64_t>(sizeof(T));
    const std::byte* const from = in + window.origin().offset + part.first * kItem;
    const int64_t step = nest.row.window.out_stride;
    std::byte results[kPart * kItem];
    std::byte* const to = step == kItem ? out.numbers : results;
    if (is_average()) {
      const double count = counted_around(nest, part) * nest.row.counted[static_cast<size_t>(part.first)];
      channel_sums<T, 0>(from, window.taps(), part.size, count, to);
    } else if (p == 1) {
      channel_sums<T, 1>(from, window.taps(), part.size, 1, to);
    } else {
      channel_sums<T, 2>(from, window.taps(), part.size, 1, to);
    }
    if (step == kItem) return;
    for (int64_t i = 0; i < part.size; ++i) store(out.numbers + i * step, load<T>(results + i * kItem));
  }

  void prepare(double* numbers, int64_t count) const {
    if (p != 0) raise(numbers, count, p);
  }
  static double counted_around(const Nest& nest, const Part& part) {
    double count = 1;
    for (size_t d = 0; d < nest.outer.size(); ++d) {
      count *= nest.outer[d].counted[static_cast<size_t>(part.place[d])];
    }
    return count;
  }
  void finish(const Nest& nest, const Part& part, double* sums) const {
    if (p != 0) return take_roots(sums, part.size, p);
    const double count = counted_around(nest, part);
    const double* const counted = nest.row.counted.data() + part.first;
    for (int64_t i = 0; i < part.size; ++i) sums[i] /= count * counted[i];
  }
};

template <class T, bool kIndices>
struct Maxima {
  using Element = T;
  using Number = std::conditional_t<std::is_same_v<T, Half>, float, T>;
  using Combine = QuickMaximum;
  static constexpr bool kWithIndices = kIndices;

  int64_t index_item = 0;  // bytes of an index, none where they are not wanted

  static constexpr bool is_simple() { return true; }

  void run(const Nest& nest, const Part& part, const std::byte* in, const Written& out) const {
    Number most[kPart];
    int64_t indices[kWithIndices ? kPart : 1];
    bool is_known = false;
    if constexpr (!kWithIndices) {
      PartWindows<T, Number, QuickMaximum, false, decltype(kAsTheyAre)>(nest, part, kAsTheyAre, most, nullptr)
          .add(0, in, 0);
      is_known = are_certain(most, part.size);
    }
    if (!is_known) {
      PartWindows<T, Number, Maximum, kWithIndices, decltype(kAsTheyAre)>(nest, part, kAsTheyAre, most,
                                                                          indices)
          .add(0, in, 0);
      clear_empty(nest, part, most);
    }
    store_row<T>(most, part.size, nest.row.window.out_stride, out.numbers);
    if constexpr (kWithIndices) put_indices(indices, part.size, 0, 0, nest.row.other, out.indices);
  }

  void run_channels(const Nest& nest, const Part& part, const std::byte* in, const WindowTaps& window,
                    const Written& out) const {
    if (window.taps().empty()) return run(nest, part, in, out);
    Comparable<T> most[kPart];
    IndexOf<T> indices[kWithIndices ? kPart : 1];
    channel_maxima<T, kWithIndices>(
        in + window.origin().offset + part.first * static_cast<int64_t>(sizeof(T)), window.taps(), part.size,
        most, indices);
    store_row<T>(most, part.size, nest.row.window.out_stride, out.numbers);
    if constexpr (kWithIndices) {
      const int64_t step = nest.row.index_step;
      put_indices(indices, part.size, window.origin().index + part.first * step, step, nest.row.other,
                  out.indices);
    }
  }

  static void prepare(Number*, int64_t) {}
  static void finish(const Nest&, const Part&, Number*) {}

  static bool are_certain(const Number* most, int64_t count) { return are_certain_maxima(most, count); }

  // Where they are wanted, in their type: index + first + i * each
  template <class From>
  void put_indices(const From* indices, int64_t count, int64_t first, int64_t each, int64_t step,
                   std::byte* to) const {
    if (index_item == sizeof(uint32_t)) {
      store_indices<uint32_t>(indices, count, first, each, step, to);
    } else if (index_item != 0) {
      store_indices<uint64_t>(indices, count, first, each, step, to);
    }
  }
  template <class Index, class From>
  static void store_indices(const From* indices, int64_t count, int64_t first, int64_t each, int64_t step,
                            std::byte* to) {
    const auto index = [&](int64_t i) {
      return static_cast<Index>(std::max<int64_t>(indices[i] + (first + i * each), 0));
    };
    if (step == sizeof(Index)) {
      for (int64_t i = 0; i < count; ++i) store(to + i * static_cast<int64_t>(sizeof(Index)), index(i));
    } else {
      for (int64_t i = 0; i < count; ++i) store(to + i * step, index(i));
    }
  }

  // Of a window on padding alone the lowest value, which integers have already.
  static void clear_empty(const Nest& nest, const Part& part, Number* most) {
    if constexpr (std::is_floating_point_v<Number>) {
      constexpr Number kLowest = -std::numeric_limits<Number>::infinity();
      for (size_t d = 0; d < nest.outer.size(); ++d) {
        if (!nest.outer[d].has_elements(part.place[d])) return (void)std::fill_n(most, part.size, kLowest);
      }
      for (int64_t i = 0; i < part.size; ++i) {
        // Only where nothing was found it is not known.
        if (most[i] != most[i] && !nest.row.has_elements(part.first + i)) most[i] = kLowest;
      }
    }
  }
};

template <class Operation>
class PoolingPlan final : public Plan {
 public:
  PoolingPlan(Nest nest, Operation operation, int64_t item, std::string description)
      : Plan(std::move(description)), nest_(std::move(nest)), operation_(operation) {
    require(nest_.outer.size() <= kMostOuter, "dimensions of pooling");
    int64_t taps = 1;
    const auto count = [&](const Sliding& window) {
      constexpr int64_t kCounted = 16;
      taps *= std::min({window.taps, window.size, kCounted});
    };
    for (const Dimension& dimension : nest_.outer) {
      rows_.push_back({dimension.window.places, dimension.other, dimension.window.out_stride});
      count(dimension.window);
    }
    count(nest_.row.window);
    by_channels_ = operation_.is_simple() && has_channels(nest_, item);
    per_row_ = divided_up(nest_.row.window.places, places_at_once(nest_.row.window));
    // Halves are converted for each tap, which takes as long as singles.
    const auto each = std::max(item, static_cast<int64_t>(kIsOfFloats ? sizeof(float) : 1));
    bytes_ = steps_of(rows_) * nest_.row.window.places * taps * each;
  }

  static constexpr bool kIsOfFloats = std::is_floating_point_v<typename Operation::Number>;

  bool writes_indices() const {
    if constexpr (has_indices_of<Operation>()) return operation_.index_item != 0;
    return false;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const bool is_of_indices = writes_indices();
    auto* const indices = is_of_indices ? static_cast<std::byte*>(outputs[1]) : nullptr;
    const Sliding& row = nest_.row.window;
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(rows_) * per_row_;
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      LoopCursor cursor(rows_, number / per_row_);
      WindowTaps window(nest_);
      for (int64_t of_row = number % per_row_; number < end; ++number) {
        // None of a few channels, behind many others.
        const auto begin = [&](int64_t i) {
          return i == per_row_ ? row.places : i == 0 ? 0 : share_begin(i, per_row_, row.places);
        };
        const int64_t first = begin(of_row);
        Part part{{}, first, begin(of_row + 1) - first};
        for (size_t d = 0; d < rows_.size(); ++d) part.place[d] = cursor.index(d);
        Written written{out + cursor.out() + first * row.out_stride, nullptr};
        if (is_of_indices) written.indices = indices + cursor.in() + first * nest_.row.other;
        if (by_channels_) {
          window.move_to(part);
          operation_.run_channels(nest_, part, in, window, written);
        } else {
          operation_.run(nest_, part, in, written);
        }
        if (++of_row == per_row_) {
          of_row = 0;
          cursor.advance();
        }
      }
    });
  }

 private:
  Nest nest_;
  Operation operation_;
  std::vector<Loop> rows_;  // of places, around the rows: steps in the indices and in the output
  int64_t per_row_ = 1;     // parts
  int64_t bytes_ = 0;
  bool by_channels_ = false;
};

std::string described(const char* what, const Request& request) {
  std::string words =
      std::string(what) + " of " + std::string(name_of(request.inputs[0].type)) + ", window of ";
  const char* by = "";
  for (const int64_t taps : request.attributes.integers("WindowSize")) {
    words += by;
    words += std::to_string(taps);
    by = "x";
  }
  return words;
}

// Averages, norms and maxima of floats.
template <class Operation>
constexpr bool has_whole_planes = false;
template <class T>
constexpr bool has_whole_planes<Sums<T>> = true;
template <>
constexpr bool has_whole_planes<Maxima<float, false>> = true;
template <>
constexpr bool has_whole_planes<Maxima<Half, false>> = true;

// Of planes at once, or rows at once: of all but integers of two bytes and more, which hardly any network
// pools, and the indices of integers.
template <class Operation>
constexpr bool has_rows_at_once = std::is_floating_point_v<typename Operation::Number> ||
                                  (sizeof(typename Operation::Number) == 1 && !has_indices_of<Operation>());

template <class Operation>
std::unique_ptr<Plan> pooled(const Request& request, Operation operation, const char* what) {
  const Layout& in = tensor(request.inputs, 0);
  const bool counts_padding =
      request.attributes.has("IncludePadding") && request.attributes.flag("IncludePadding");
  std::vector<Dimension> dimensions =
      dimensions_of(request.attributes, in, tensor(request.outputs, 0), counts_padding);
  if (request.outputs.size() > 1 && request.outputs[1].present) {
    const Layout& indices = request.outputs[1];
    require(indices.sizes == request.outputs[0].sizes, "indices of pooling");
    for (size_t d = 0; d < dimensions.size(); ++d) dimensions[d].other = indices.strides[d];
  }
  const int64_t item = size_of(in.type);
  int64_t bytes = item;
  for (const int64_t size : in.sizes) bytes *= size;
  Nest nest(merged(std::move(dimensions)), item);
  std::string description = described(what, request);
  const bool by_channels = operation.is_simple() && has_channels(nest, item);
  if constexpr (has_whole_planes<Operation>) {
    if (operation.is_simple() && is_of_whole_planes(nest, item)) {
      return std::make_unique<WholePlan<Operation>>(std::move(nest), operation,
                                                    description.append(", whole"));
    }
  }
  if constexpr (has_rows_at_once<Operation>) {
    const bool counts = !has_indices_of<Operation>() || WindowTaps::are_near(nest);
    if (const int64_t planes = by_channels || !counts ? 0 : planes_at_once(nest); planes > 0) {
      description.append(", planes at once: ").append(std::to_string(planes));
      return std::make_unique<SeparablePlan<Operation>>(std::move(nest), operation, std::move(description),
                                                        false);
    }
    // Of windows that share few elements, sums of singles and maxima with indices are as fast from registers,
    // without a buffer, and of few taps such sums are faster; those of halves, which are converted for each
    // tap there, only in memory, but for averages in pairs of singles.
    const auto has_gain = [&](const Sliding& row) {
      constexpr bool kIsSum = std::is_same_v<typename Operation::Combine, Sum>;
      constexpr bool kIsHalf = std::is_same_v<typename Operation::Element, Half>;
      constexpr int64_t kFew = 9;
      const auto has_few_taps = [&] {
        int64_t taps = 1;
        for (const Dimension& each : nest.outer) taps *= std::min(each.window.taps, kFew + 1);
        return taps <= kFew;
      };
      if (row.stride == 1 && !(kIsSum && !kIsHalf && has_few_taps())) return true;
      if (!(kIsSum || has_indices_of<Operation>())) return true;
      if constexpr (kIsSum && kIsHalf && HalfSums::kAreFast) {
        if (operation.is_average() && HalfColumns::hold(with_channels_between(nest))) return true;
      }
      return kIsHalf && bytes < kStreamFrom;
    };
    if (by_channels && counts && !nest.outer.empty() && nest.outer.back().slides() &&
        has_gain(nest.outer.back().window)) {
      Nest between = with_channels_between(nest);
      if (const ChannelsAtOnce at_once = channels_at_once(between); at_once.places > 0) {
        description.append(", channels at once: ").append(std::to_string(at_once.channels));
        return std::make_unique<SeparablePlan<Operation>>(std::move(between), operation,
                                                          std::move(description), true);
      }
    }
  }
  if (by_channels) description.append(", channels last");
  return std::make_unique<PoolingPlan<Operation>>(std::move(nest), operation, item, std::move(description));
}

template <class T>
std::unique_ptr<Plan> maxima(const Request& request) {
  if (request.outputs.size() < 2 || !request.outputs[1].present) {
    // Where indices are found they may be left out, so that wide integers need no second kernel.
    constexpr bool kHasOwn = has_rows_at_once<Maxima<T, false>>;
    return pooled(request, Maxima<T, !kHasOwn>{}, "maxima");
  }
  const DataType type = request.outputs[1].type;
  require(type == DataType::kUint32 || type == DataType::kUint64, "the type of indices");
  return pooled(request, Maxima<T, true>{size_of(type)}, "maxima and indices");
}

// Whether one window holds all of each image, of enough images to share: nhwc/windows.h, which has a few
// places in registers, would have sums of few channels there.
bool is_global(const Request& request) {
  constexpr int64_t kEnough = 8;
  const Layout& out = tensor(request.outputs, 0);
  const bool has_one =
      std::all_of(out.sizes.begin() + 2, out.sizes.end(), [](int64_t size) { return size == 1; });
  int64_t taps = 1;
  for (const int64_t each : request.attributes.integers("WindowSize")) {
    taps *= std::clamp<int64_t>(each, 1, kMostListed + 1);
    if (taps > kMostListed) return false;
  }
  return has_one && out.sizes[0] >= kEnough;
}

bool is_of_floats(const Request& request, std::string& reason) {
  const DataType type = tensor(request.inputs, 0).type;
  if (type == DataType::kFloat32 || type == DataType::kFloat16) return true;
  reason = "no averages of " + std::string(name_of(type));
  return false;
}

}  // namespace

std::unique_ptr<Plan> make_average_pooling(const Request& request, std::string& reason) {
  if (!is_of_floats(request, reason)) return nullptr;
  if (!is_global(request)) {
    if (std::unique_ptr<Plan> plan = average_pooling_of_channels(request, reason)) return plan;
  }
  if (request.inputs[0].type == DataType::kFloat32) return pooled(request, Sums<float>{}, "averages");
  return pooled(request, Sums<Half>{}, "averages");
}

std::unique_ptr<Plan> make_lp_pooling(const Request& request, std::string& reason) {
  if (!is_of_floats(request, reason)) return nullptr;
  const int64_t p = request.attributes.integer("P");
  require(p > 0, "the exponent of a norm");
  if (request.inputs[0].type == DataType::kFloat32) return pooled(request, Sums<float>{p}, "norms");
  return pooled(request, Sums<Half>{p}, "norms");
}

std::unique_ptr<Plan> make_max_pooling(const Request& request, std::string& reason) {
  if (!is_global(request)) {
    if (std::unique_ptr<Plan> plan = max_pooling_of_channels(request, reason)) return plan;
  }
  switch (tensor(request.inputs, 0).type) {
    case DataType::kFloat32:
      return maxima<float>(request);
    case DataType::kFloat16:
      return maxima<Half>(request);
    case DataType::kInt8:
      return maxima<int8_t>(request);
    case DataType::kInt16:
      return maxima<int16_t>(request);
    case DataType::kInt32:
      return maxima<int32_t>(request);
    case DataType::kInt64:
      return maxima<int64_t>(request);
    case DataType::kUint8:
      return maxima<uint8_t>(request);
    case DataType::kUint16:
      return maxima<uint16_t>(request);
    case DataType::kUint32:
      return maxima<uint32_t>(request);
    case DataType::kUint64:
      return maxima<uint64_t>(request);
    default:
      reason = "no maxima of " + std::string(name_of(request.inputs[0].type));
      return nullptr;
  }
}

ANYDML_ISA_END
