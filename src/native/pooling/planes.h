// Pooling of planes whose rows are narrow: a row of each of several planes at a time, side by side with what
// padding there is between them, so that taps are combined along all of them at once. Numbers of each place
// are combined in the same order as row by row.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "pooling/channels.h"
#include "pooling/geometry.h"
#include "pooling/rows.h"
#include "pooling/windows.h"
#include "simd/byte_runs.h"
#include "simd/strided_copy.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Places of a row up to which several planes are pooled at once.
constexpr int64_t kNarrow = 64;

// Elements of a row of a plane in the buffer, a multiple of the stride: from the first place's window to the
// last's.
inline int64_t pitch_of(const Sliding& row) {
  const int64_t extent = (row.places - 1) * row.stride + (row.taps - 1) * row.dilation + 1;
  return divided_up(extent, row.stride) * row.stride;
}

// How many planes are pooled at once; 0 where rows are pooled part by part.
inline int64_t planes_at_once(const Nest& nest) {
  const Sliding& row = nest.row.window;
  if (nest.outer.empty() || nest.outer[0].slides()) return 0;
  if (row.places > kPart || std::min(row.taps, row.size) > 2 * row.places) return 0;
  const int64_t pitch = pitch_of(row);
  const int64_t behind = (row.taps - 1) * row.dilation;
  const int64_t most = std::min((kSpan - behind) / pitch, kPart / (pitch / row.stride));
  if (most < 1) return 0;
  return row.places > kNarrow ? 1 : std::min(most, nest.outer[0].window.size);
}

// As many numbers as a register holds.
template <class Number>
struct NumbersOf {
#if defined(ANYDML_VECTORS)
  using type = Vector<Number>;
#else
  using type = Number;
#endif
};
template <>
struct NumbersOf<float> {
  using type = Singles;
};
template <>
struct NumbersOf<double> {
  using type = Doubles;
};

// Whether indices are found with the numbers.
template <class Operation>
constexpr bool has_indices_of() {
  if constexpr (requires { Operation::kWithIndices; }) return Operation::kWithIndices;
  return false;
}

// Rows of places of some planes at once, in a buffer: what `Operation` makes of all taps.
template <class Operation>
class PlaneRows {
 public:
  using T = typename Operation::Element;
  using Number = typename Operation::Number;
  using Combine = typename Operation::Combine;
  using Numbers = typename NumbersOf<Number>::type;
  static constexpr int64_t kItem = sizeof(T);
  static constexpr int64_t kEach = sizeof(Numbers) / sizeof(Number);
  static constexpr bool kHasIndices = has_indices_of<Operation>();
  using Indices = Lanes<int32_t, static_cast<int>(kEach)>;
  static_assert(!kHasIndices || sizeof(Number) == sizeof(int32_t));

  PlaneRows(Nest nest, Operation operation)
      : nest_(std::move(nest)),
        operation_(operation),
        row_(nest_.row.window),
        pitch_(pitch_of(row_)),
        places_(pitch_ / row_.stride),
        at_once_(planes_at_once(nest_)) {
    require(nest_.outer.size() <= kMostOuter, "dimensions of pooling");
    int64_t rows = 1;
    bool is_one = true;
    for (const Dimension& dimension : nest_.outer) {
      is_one = is_one && rows == 1;
      rows *= std::min({dimension.window.taps, dimension.window.size, kMostRows + 1});
    }
    stay_ = is_one && rows <= kMostRows;
    slots_ = std::min(rows, kMostRows);
    all_ = at_once_ * pitch_ + (row_.taps - 1) * row_.dilation;
    phase_ = divided_up(all_, row_.stride);
    for (int64_t k = 0; k < row_.taps; ++k) {
      const int64_t element = k * row_.dilation;
      taps_.push_back({element % row_.stride * phase_ + element / row_.stride,
                       static_cast<int32_t>(kHasIndices ? element * nest_.row.index_step : 0)});
    }
  }

 private:
  // Rows of elements that are combined at once, each converted once, and kept for the next window.
  static constexpr int64_t kMostRows = 8;
  // What vectors go over behind the last number.
  static constexpr int64_t kBehind = 256;

 public:
  struct Buffers {
    explicit Buffers(const PlaneRows& plan)
        : slot(plan.phase_ * plan.row_.stride + kBehind),
          // What is between rows is never written.
          elements(static_cast<size_t>(plan.all_ + kBehind), T(Combine::template kStart<Number>)),
          spans(static_cast<size_t>(slot * plan.slots_), Combine::template kStart<Number>),
          numbers(static_cast<size_t>(plan.at_once_ * plan.places_ + kBehind)),
          where(kHasIndices ? numbers.size() : 0),
          results(numbers.size()),
          room(plan.row_.stride > 1 ? elements.size() : 0) {}

    int64_t slot;
    std::vector<T> elements;
    std::vector<Number> spans;
    std::vector<Number> numbers;
    std::vector<int32_t> where;  // the taps of the maxima, as what indices count from a window's origin
    std::vector<T> results;
    std::vector<T> room;
    std::array<const std::byte*, kMostRows> held{};  // whose numbers are in a slot
    std::array<const Number*, kMostRows> rows{};     // to be combined
    std::array<int32_t, kMostRows> index{};          // of their first taps, from the window's origin
    std::array<int64_t, kMostRows> used{};           // the last batch of rows that a slot was in
    int64_t count = 0;
    int64_t batch = 1;
    int64_t next = 0;
    // Divisors of averages and their reciprocals, and what all of them have in common.
    std::vector<double> divisors;
    std::vector<double> reciprocals;
    double around = 0;
  };

  // What is made of the part's windows in planes from the one on that lies at `in`: in buffers.numbers, those
  // of a plane places() behind those of the one before, and the taps of maxima in buffers.where.
  void pool(const Part& part, int64_t planes, const std::byte* in, Buffers& buffers) const {
    const int64_t count = planes * places_;
    std::fill_n(buffers.numbers.data(), count, Combine::template kStart<Number>);
    add(1, part, planes, in, 0, buffers);
    combine(count, buffers);
    finish(part, planes, buffers);
  }

  const Nest& nest() const { return nest_; }
  const Operation& operation() const { return operation_; }
  int64_t pitch() const { return pitch_; }
  int64_t places() const { return places_; }
  int64_t at_once() const { return at_once_; }

 private:
  void finish(const Part& part, int64_t planes, Buffers& buffers) const {
    if constexpr (requires { operation_.is_average(); }) {
      if (operation_.is_average()) return divide(part, planes, buffers);
    }
    for (int64_t p = 0; p < planes; ++p) {
      operation_.finish(nest_, part, buffers.numbers.data() + p * places_);
    }
  }

  // By how many taps are counted.
  void divide(const Part& part, int64_t planes, Buffers& buffers) const {
    const auto size = static_cast<size_t>(at_once_ * places_ + kEach);
    if (const double around = Operation::counted_around(nest_, part); buffers.around != around) {
      buffers.around = around;
      buffers.divisors.assign(size, 1);
      buffers.reciprocals.assign(size, 1);
      for (int64_t p = 0; p < at_once_; ++p) {
        for (int64_t i = 0; i < row_.places; ++i) {
          const double divisor = around * nest_.row.counted[static_cast<size_t>(i)];
          buffers.divisors[static_cast<size_t>(p * places_ + i)] = divisor;
          buffers.reciprocals[static_cast<size_t>(p * places_ + i)] = 1 / divisor;
        }
      }
    }
    double* const sums = buffers.numbers.data();
    for (int64_t i = 0; i < planes * places_; i += kEach) {
      Doubles sum, divisor, reciprocal;
      std::memcpy(&sum, sums + i, sizeof(sum));
      std::memcpy(&divisor, buffers.divisors.data() + i, sizeof(divisor));
      std::memcpy(&reciprocal, buffers.reciprocals.data() + i, sizeof(reciprocal));
      sum = Quotient(divisor, reciprocal).of(sum);
      std::memcpy(sums + i, &sum, sizeof(sum));
    }
  }

  // Of what is under the windows' taps in the dimensions from the d-th one on.
  void add(size_t d, const Part& part, int64_t planes, const std::byte* from, int64_t index,
           Buffers& buffers) const {
    if (d == std::min(nest_.outer.size(), kMostOuter)) {
      if (buffers.count == slots_) combine(planes * places_, buffers);
      if constexpr (kHasIndices)
        buffers.index[static_cast<size_t>(buffers.count)] = static_cast<int32_t>(index);
      buffers.rows[static_cast<size_t>(buffers.count++)] = numbers_of(planes, from, buffers);
      return;
    }
    const Dimension& dimension = nest_.outer[d];
    const Sliding& window = dimension.window;
    const auto [first, last] = window.inside(part.place[d]);
    int64_t element = window.origin(part.place[d]) + first * window.dilation;
    for (int64_t k = first; k < last; ++k, element += window.dilation) {
      add(d + 1, part, planes, from + element * window.in_stride,
          index + k * window.dilation * dimension.index_step, buffers);
    }
  }

  // Rows of elements side by side, as numbers: those that have the same place in their steps follow each
  // other.
  const Number* numbers_of(int64_t planes, const std::byte* from, Buffers& buffers) const {
    for (int64_t i = 0; stay_ && i < slots_; ++i) {
      if (buffers.held[static_cast<size_t>(i)] != from) continue;
      buffers.used[static_cast<size_t>(i)] = buffers.batch;
      return buffers.spans.data() + i * buffers.slot;
    }
    // In the place of the oldest one that is not to be combined now.
    const auto advance = [&] { buffers.next = buffers.next + 1 == slots_ ? 0 : buffers.next + 1; };
    while (buffers.used[static_cast<size_t>(buffers.next)] == buffers.batch) advance();
    buffers.used[static_cast<size_t>(buffers.next)] = buffers.batch;
    buffers.held[static_cast<size_t>(buffers.next)] = from;
    Number* const span = buffers.spans.data() + buffers.next * buffers.slot;
    advance();
    const int64_t count = std::min(row_.size, pitch_ - row_.start);
    if constexpr (std::is_same_v<T, Number> && kItem == 1) {
      if (row_.stride > 1) {
        take_apart(planes, from, count, span);
        return span;
      }
    }
    const bool is_as_it_is = std::is_same_v<T, Number> && row_.stride == 1;
    auto* const elements =
        reinterpret_cast<std::byte*>(is_as_it_is ? static_cast<void*>(span) : buffers.elements.data());
    for (int64_t p = 0; p < (count > 0 ? planes : 0); ++p, from += nest_.outer[0].window.in_stride) {
      std::byte* const to = elements + (p * pitch_ + row_.start) * kItem;
      if (row_.in_stride == kItem) {
        copy_short(to, from, count * kItem);
      } else {
        for (int64_t i = 0; i < count; ++i) store(to + i * kItem, load<T>(from + i * row_.in_stride));
      }
    }
    if (!is_as_it_is)
      convert(elements, planes * pitch_ + (row_.taps - 1) * row_.dilation, span, buffers.room);
    return span;
  }

  // Bytes of the planes' rows, which are numbers as they are, to where those of the same place in their steps
  // follow each other. What is between rows stays as it is.
  void take_apart(int64_t planes, const std::byte* from, int64_t count, T* span) const {
    const int64_t step = row_.stride;
    for (int64_t i = 0; i < std::min(step, count); ++i) {
      const int64_t at = row_.start + i;
      T* const to = span + at % step * phase_ + at / step;
      read_rows(from + i * row_.in_stride, nest_.outer[0].window.in_stride, step * row_.in_stride, planes,
                divided_up(count - i, step), 0, reinterpret_cast<std::byte*>(to), places_);
    }
  }

  void convert(const std::byte* elements, int64_t count, Number* span, std::vector<T>& room) const {
    if (row_.stride == 1) return put_numbers(elements, count, span);
    // Pointers of their own: a byte that is stored might change any that is reached through another.
    T* const apart = room.data();
    const auto phase = [=, this](int64_t first, int64_t stride) {
      const int64_t size = divided_up(count - first, stride);
      const std::byte* const from = elements + first * kItem;
      Number* const to = span + first * phase_;
      if constexpr (std::is_same_v<T, Number>) {
        for (int64_t i = 0; i < size; ++i) to[i] = load<T>(from + i * stride * kItem);
        operation_.prepare(to, size);
      } else {
        for (int64_t i = 0; i < size; ++i) apart[i] = load<T>(from + i * stride * kItem);
        put_numbers(reinterpret_cast<const std::byte*>(apart), size, to);
      }
    };
    for (int64_t first = 0; first < std::min(row_.stride, count); ++first) {
      row_.stride == 2 ? phase(first, 2) : phase(first, row_.stride);
    }
  }
  void put_numbers(const std::byte* from, int64_t count, Number* to) const {
    // The next phase begins where this one ends.
    const int64_t whole = count / kEach * kEach;
    for (int64_t i = 0; i < whole; i += kEach) {
      const auto x = load_numbers<T, Number, Numbers>(from + i * kItem);
      std::memcpy(to + i, &x, sizeof(x));
    }
    for (int64_t i = whole; i < count; ++i) to[i] = widen<T, Number>(from + i * kItem);
    operation_.prepare(to, count);
  }

  // Of the rows that are there, tap by tap.
  void combine(int64_t count, Buffers& buffers) const {
    constexpr int64_t kMany = 4;
    const int64_t end = divided_up(count, kEach) * kEach;
    int64_t i = 0;
    for (; i + kMany * kEach <= end; i += kMany * kEach) combine_some<kMany>(i, buffers);
    for (; i < end; i += kEach) combine_some<1>(i, buffers);
    buffers.count = 0;
    ++buffers.batch;
  }
  template <int64_t kMany>
  ANYDML_INLINE void combine_some(int64_t i, Buffers& buffers) const {
    Number* const numbers = buffers.numbers.data() + i;
    Numbers all[kMany];
    [[maybe_unused]] Indices where[kMany];
    [[maybe_unused]] int32_t* const indices = kHasIndices ? buffers.where.data() + i : nullptr;
    // One by one, as all would go through memory.
#pragma GCC unroll 4
    for (int64_t v = 0; v < kMany; ++v) {
      std::memcpy(&all[v], numbers + v * kEach, sizeof(Numbers));
      if constexpr (kHasIndices) std::memcpy(&where[v], indices + v * kEach, sizeof(Indices));
    }
    for (int64_t row = 0; row < buffers.count; ++row) {
      const Number* const from = buffers.rows[static_cast<size_t>(row)] + i;
      const int32_t index = buffers.index[static_cast<size_t>(row)];
      for (const RowTap& tap : taps_) {
        [[maybe_unused]] const Indices here = Indices{} + (index + tap.index);
#pragma GCC unroll 4
        for (int64_t v = 0; v < kMany; ++v) {
          Numbers x;
          std::memcpy(&x, from + tap.offset + v * kEach, sizeof(x));
          if constexpr (kHasIndices) {
            const auto is_larger = x > all[v];
            all[v] = is_larger ? x : all[v];
            where[v] = is_larger ? here : where[v];
          } else if constexpr (std::is_same_v<Combine, QuickMaximum>) {
            all[v] = lane_max<Number>(x, all[v]);
          } else {
            all[v] = Combine::of(all[v], x);
          }
        }
      }
    }
#pragma GCC unroll 4
    for (int64_t v = 0; v < kMany; ++v) {
      std::memcpy(numbers + v * kEach, &all[v], sizeof(Numbers));
      if constexpr (kHasIndices) std::memcpy(indices + v * kEach, &where[v], sizeof(Indices));
    }
  }

  // From a place's number on, in the buffer, and in what indices count.
  struct RowTap {
    int64_t offset;
    int32_t index;
  };

  Nest nest_;
  Operation operation_;
  Sliding row_;
  int64_t pitch_;
  int64_t places_;  // of a plane, with those between it and the next
  int64_t at_once_;
  int64_t all_ = 0;           // elements of the rows in a buffer
  int64_t phase_ = 0;         // those of each place in a step
  std::vector<RowTap> taps_;  // of a row
  bool stay_ = false;         // whether rows are those of a window that slides along one dimension
  int64_t slots_ = 1;
};

template <class Operation>
class PlanesPlan final : public Plan {
 public:
  PlanesPlan(Nest nest, Operation operation, std::string description)
      : Plan(std::move(description)), pooled_(std::move(nest), operation) {
    int64_t taps = std::min(row().taps, row().size);
    for (const Dimension& dimension : pooled_.nest().outer) {
      rows_.push_back({dimension.window.places, dimension.other, dimension.window.out_stride});
      taps *= std::min(dimension.window.taps, dimension.window.size);
    }
    bytes_ = steps_of(rows_) * row().places * std::min<int64_t>(taps, 64) * kItem;
    const Dimension& planes = pooled_.nest().outer[0];
    const int64_t at_once = pooled_.at_once();
    rows_[0] = {divided_up(planes.window.size, at_once), at_once * planes.other,
                at_once * planes.window.out_stride};
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    auto* const indices = Rows::kHasIndices ? static_cast<std::byte*>(outputs[1]) : nullptr;
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(rows_);
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    const Sliding& planes = nest().outer[0].window;
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      Buffers buffers(pooled_);
      for (LoopCursor cursor(rows_, number); number < end; ++number, cursor.advance()) {
        const int64_t plane = cursor.index(0) * pooled_.at_once();
        Part part{{plane}, 0, row().places};
        for (size_t d = 1; d < std::min(rows_.size(), kMostOuter); ++d) part.place[d] = cursor.index(d);
        const int64_t count = std::min(pooled_.at_once(), planes.size - plane);
        pooled_.pool(part, count, in + plane * planes.in_stride, buffers);
        put(part, count, in, out + cursor.out(), Rows::kHasIndices ? indices + cursor.in() : nullptr,
            buffers);
      }
    });
  }

 private:
  using Rows = PlaneRows<Operation>;
  using Buffers = typename Rows::Buffers;
  using T = typename Rows::T;
  using Number = typename Rows::Number;
  static constexpr int64_t kItem = Rows::kItem;

  const Nest& nest() const { return pooled_.nest(); }
  const Sliding& row() const { return nest().row.window; }

  // The results of some planes, from the part's one on: `in` is where the tensor lies.
  void put(const Part& part, int64_t planes, const std::byte* in, std::byte* out, std::byte* indices,
           Buffers& buffers) const {
    const Operation& operation = pooled_.operation();
    const Sliding& row = nest().row.window;
    const Dimension& each = nest().outer[0];
    const int64_t places = pooled_.places();
    const int64_t count = planes * places;
    const auto* results = reinterpret_cast<const std::byte*>(buffers.numbers.data());
    if constexpr (!std::is_same_v<T, Number>) {
      auto* const to = reinterpret_cast<std::byte*>(buffers.results.data());
      for (int64_t i = 0; i < count; i += Rows::kEach) {
        typename Rows::Numbers x;
        std::memcpy(&x, buffers.numbers.data() + i, sizeof(x));
        store_numbers<T, Number, typename Rows::Numbers>(to + i * kItem, x);
      }
      results = to;
    }
    bool are_certain = true;
    if constexpr (requires { operation.are_certain(buffers.numbers.data(), 0); }) {
      are_certain = operation.are_certain(buffers.numbers.data(), count - places + row.places);
    }
    for (int64_t p = 0; p < planes; ++p) {
      std::byte* const to = out + p * each.window.out_stride;
      std::byte* const where = indices == nullptr ? nullptr : indices + p * each.other;
      Part own = part;
      own.place[0] += p;
      if constexpr (requires { operation.are_certain(buffers.numbers.data(), 0); }) {
        if (!are_certain && !operation.are_certain(buffers.numbers.data() + p * places, row.places)) {
          operation.run(nest(), own, in, {to, where});
          continue;
        }
      }
      const std::byte* const from = results + p * places * kItem;
      if (row.out_stride == kItem) {
        copy_short(to, from, row.places * kItem);
      } else {
        for (int64_t i = 0; i < row.places; ++i) store(to + i * row.out_stride, load<T>(from + i * kItem));
      }
      if constexpr (Rows::kHasIndices) {
        operation.put_indices(buffers.where.data() + p * places, row.places, origin_index(own),
                              row.stride * nest().row.index_step, nest().row.other, where);
      }
    }
  }

  // What indices count up to the origin of a part's first window.
  int64_t origin_index(const Part& part) const {
    int64_t index = row().origin(part.first) * nest().row.index_step;
    for (size_t d = 0; d < std::min(nest().outer.size(), kMostOuter); ++d) {
      const Dimension& dimension = nest().outer[d];
      index += dimension.window.origin(part.place[d]) * dimension.index_step;
    }
    return index;
  }

  PlaneRows<Operation> pooled_;
  // Of places, around the rows, some planes at a time: steps in indices, and in the output.
  std::vector<Loop> rows_;
  int64_t bytes_ = 0;
};

}  // namespace
ANYDML_ISA_END
