// Pooling by separable windows: the taps of each row of elements are combined once, and then rows. A row of
// each of several planes at a time, side by side with what padding there is between them, or several channels
// that lie last between the elements of a row, so that taps are combined along all of them at once.
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
#include "pooling/roots.h"
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
inline int64_t pitch_of(const Sliding& row, int64_t places) {
  const int64_t extent = (places - 1) * row.stride + (row.taps - 1) * row.dilation + 1;
  return divided_up(extent, row.stride) * row.stride;
}

// How many planes are pooled at once; 0 where rows are pooled part by part.
inline int64_t planes_at_once(const Nest& nest) {
  const Sliding& row = nest.row.window;
  if (nest.outer.empty() || nest.outer[0].slides()) return 0;
  if (row.places > kPart || std::min(row.taps, row.size) > 2 * row.places) return 0;
  const int64_t pitch = pitch_of(row, row.places);
  const int64_t behind = (row.taps - 1) * row.dilation;
  const int64_t most = std::min((kSpan - behind) / pitch, kPart / (pitch / row.stride));
  if (most < 1) return 0;
  return row.places > kNarrow ? 1 : std::min(most, nest.outer[0].window.size);
}

// How many channels that lie last are pooled at once, and places of a row: as many as fit the first cache.
// None where fewer than 4 places do. Of the nest, the channels are the outermost dimension.
struct ChannelsAtOnce {
  int64_t channels = 0;
  int64_t places = 0;
};
inline ChannelsAtOnce channels_at_once(const Nest& nest) {
  constexpr int64_t kMostChannels = 128;
  constexpr int64_t kLeast = 8;
  constexpr int64_t kLeastPlaces = 4;
  const Sliding& row = nest.row.window;
  const int64_t all = nest.outer[0].window.size;
  const int64_t parts = divided_up(all, kMostChannels);
  const int64_t channels = parts == 1 ? all : divided_up(divided_up(all, parts), kLeast) * kLeast;
  const int64_t elements = kSpan / channels - ((row.taps - 1) * row.dilation + 1);
  if (elements < (kLeastPlaces - 1) * row.stride || std::min(row.taps, row.size) > 2 * row.places) return {};
  const int64_t most = std::clamp<int64_t>(elements / row.stride + 1, kLeastPlaces, kSpan / 2 / channels);
  return {channels, divided_up(row.places, divided_up(row.places, most))};
}

// A nest whose rows are channels, as one of them between which rows lie along the width.
inline Nest with_channels_between(Nest nest) {
  std::swap(nest.row, nest.outer.back());
  std::rotate(nest.outer.begin(), nest.outer.end() - 1, nest.outer.end());
  return nest;
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

  PlaneRows(Nest nest, Operation operation, bool is_of_channels = false)
      : nest_(std::move(nest)),
        operation_(operation),
        row_(nest_.row.window),
        is_of_channels_(is_of_channels),
        places_(is_of_channels ? channels_at_once(nest_).places : row_.places),
        pitch_(pitch_of(row_, places_)),
        at_once_(is_of_channels ? channels_at_once(nest_).channels : planes_at_once(nest_)),
        place_step_(is_of_channels ? at_once_ : 1),
        plane_step_(is_of_channels ? 1 : pitch_ / row_.stride),
        slot_(is_of_channels ? places_ * at_once_ : at_once_ * plane_step_) {
    require(nest_.outer.size() <= kMostOuter, "dimensions of pooling");
    int64_t rows = 1;
    for (const Dimension& dimension : nest_.outer) {
      rows *= std::min({dimension.window.taps, dimension.window.size, kMostRows + 1});
    }
    stay_ = rows <= kMostRows;
    slots_ = std::min(rows, kMostRows);
    all_ = at_once_ * pitch_ + (is_of_channels ? 0 : (row_.taps - 1) * row_.dilation);
    phase_ = divided_up(all_, row_.stride);
    for (int64_t k = 0; k < row_.taps; ++k) {
      const int64_t element = k * row_.dilation;
      taps_.push_back({static_cast<int32_t>(kHasIndices ? element * nest_.row.index_step : 0),
                       element % row_.stride * phase_ + element / row_.stride * place_step_});
    }
  }

 private:
  // Numbers that are combined with others, from the first place's on; of maxima, the taps where they lie, or
  // none where all lie at the same, and what indices count up to that.
  template <class From>
  struct SourceOf {
    From* numbers;
    int32_t* where;
    int32_t index;
  };
  using Source = SourceOf<Number>;
  // Elements as they are read, halves as singles.
  using Read = std::conditional_t<std::is_floating_point_v<Number>, float, Number>;
  // A tap of a row, from where its elements lie.
  struct RowTap {
    int32_t index;
    int64_t offset;
  };

  // Rows that are combined at once, and kept for the next window: as many as one of 3 x 3 x 3 has.
  static constexpr int64_t kMostRows = 9;
  // Vectors at once, and what they go over behind the last number.
  static constexpr int64_t kMany = 4;
  static constexpr int64_t kBehind = kMany * kEach;

 public:
  struct Buffers {
    explicit Buffers(const PlaneRows& plan)
        : slot(plan.slot_ + kBehind),
          // What is between rows is never written.
          elements(static_cast<size_t>(plan.all_ + kBehind), T(Combine::template kStart<Number>)),
          span(static_cast<size_t>(plan.phase_ * plan.row_.stride + kBehind),
               Read(Combine::template kStart<Number>)),
          rows(static_cast<size_t>(slot * plan.slots_)),
          indices(kHasIndices ? rows.size() : 0),
          numbers(static_cast<size_t>(slot)),
          where(kHasIndices ? numbers.size() : 0),
          results(numbers.size()),
          room(plan.row_.stride > 1 ? elements.size() : 0) {
      for (const RowTap& tap : plan.taps_) taps.push_back({span.data() + tap.offset, nullptr, tap.index});
    }

    int64_t slot;
    std::vector<T> elements;
    std::vector<Read> span;            // a row of elements
    std::vector<SourceOf<Read>> taps;  // in it
    std::vector<Number> rows;          // what is made of their taps
    std::vector<int32_t> indices;
    std::vector<Number> numbers;
    std::vector<int32_t> where;  // the taps of the maxima, as what indices count from a window's origin
    std::vector<T> results;
    std::vector<T> room;
    std::array<const std::byte*, kMostRows> held{};  // whose numbers are in a slot
    std::array<Source, kMostRows> batch_of{};        // rows to be combined
    std::array<int64_t, kMostRows> used{};           // the last batch of rows that a slot was in
    int64_t count = 0;
    bool is_begun = false;
    int64_t batch = 1;
    int64_t next = 0;
    int64_t first = 0;  // place of the part of a row
    // Divisors of averages and their reciprocals, and what all of them have in common.
    std::vector<double> divisors;
    std::vector<double> reciprocals;
    double around = 0;
  };

  // What is made of the part's windows in planes from the one on that lies at `in`: in buffers.numbers, by
  // the steps of planes and places, and the taps of maxima in buffers.where.
  void pool(const Part& part, int64_t planes, const std::byte* in, Buffers& buffers) const {
    if (buffers.first != part.first) {
      buffers.first = part.first;
      buffers.held.fill(nullptr);
      buffers.around = 0;
    }
    buffers.is_begun = false;
    add(1, part, planes, in + part.first * row_.stride * row_.in_stride, 0, buffers);
    combine_rows(numbers_of(planes), buffers);
  }

  // The same numbers as elements, rounded once.
  const std::byte* round(const Part& part, int64_t planes, Buffers& buffers) const {
    auto* const numbers = reinterpret_cast<std::byte*>(buffers.numbers.data());
    const int64_t count = numbers_of(planes);
    if constexpr (std::is_same_v<T, Number>) return numbers;
    auto* const to = reinterpret_cast<std::byte*>(buffers.results.data());
    bool is_average = false;
    if constexpr (requires { operation_.is_average(); }) {
      is_average = operation_.is_average();
      if (is_average) {
        divide_by(part, buffers);
      } else {
        // Of what is between places, too.
        operation_.finish(nest_, Part{part.place, 0, count}, buffers.numbers.data());
      }
    }
    for (int64_t i = 0; i < count; i += kEach) {
      auto x = load_numbers<Number, Number, Numbers>(numbers + i * static_cast<int64_t>(sizeof(Number)));
      if constexpr (requires { operation_.is_average(); }) {
        if (is_average) {
          Doubles divisor, reciprocal;
          std::memcpy(&divisor, buffers.divisors.data() + i, sizeof(divisor));
          std::memcpy(&reciprocal, buffers.reciprocals.data() + i, sizeof(reciprocal));
          x = Quotient(divisor, reciprocal).of(x);
        }
      }
      store_numbers<T, Number, Numbers>(to + i * kItem, x);
    }
    return to;
  }

  const Nest& nest() const { return nest_; }
  const Operation& operation() const { return operation_; }
  int64_t pitch() const { return pitch_; }
  bool is_of_channels() const { return is_of_channels_; }
  int64_t place_step() const { return place_step_; }
  int64_t plane_step() const { return plane_step_; }
  // With those between places.
  int64_t numbers_of(int64_t planes) const { return is_of_channels_ ? slot_ : planes * plane_step_; }
  int64_t at_once() const { return at_once_; }
  int64_t places_at_once() const { return places_; }

 private:
  // By how many taps are counted.
  void divide_by(const Part& part, Buffers& buffers) const {
    const double around = Operation::counted_around(nest_, part);
    if (buffers.around == around) return;
    buffers.around = around;
    buffers.divisors.assign(static_cast<size_t>(slot_ + kEach), 1);
    buffers.reciprocals.assign(static_cast<size_t>(slot_ + kEach), 1);
    for (int64_t i = 0; i < part.size; ++i) {
      const double divisor = around * nest_.row.counted[static_cast<size_t>(part.first + i)];
      const double reciprocal = 1 / divisor;
      for (int64_t p = 0; p < at_once_; ++p) {
        const auto at = static_cast<size_t>(p * plane_step_ + i * place_step_);
        buffers.divisors[at] = divisor;
        buffers.reciprocals[at] = reciprocal;
      }
    }
  }

  // Of what is under the windows' taps in the dimensions from the d-th one on.
  void add(size_t d, const Part& part, int64_t planes, const std::byte* from, int64_t index,
           Buffers& buffers) const {
    if (d == std::min(nest_.outer.size(), kMostOuter)) {
      if (buffers.count == slots_) combine_rows(numbers_of(planes), buffers);
      const int64_t slot = slot_of(planes, from, buffers);
      Source& row = buffers.batch_of[static_cast<size_t>(buffers.count++)];
      row = slot_at(slot, buffers);
      row.index = static_cast<int32_t>(kHasIndices ? index : 0);
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

  static Source slot_at(int64_t i, Buffers& buffers) {
    return {buffers.rows.data() + i * buffers.slot,
            kHasIndices ? buffers.indices.data() + i * buffers.slot : nullptr, 0};
  }

  // Where there is what is made of the taps in rows of elements that lie side by side.
  int64_t slot_of(int64_t planes, const std::byte* from, Buffers& buffers) const {
    for (int64_t i = 0; stay_ && i < slots_; ++i) {
      if (buffers.held[static_cast<size_t>(i)] != from) continue;
      buffers.used[static_cast<size_t>(i)] = buffers.batch;
      return i;
    }
    // In the place of the oldest one that is not to be combined now.
    const auto advance = [&] { buffers.next = buffers.next + 1 == slots_ ? 0 : buffers.next + 1; };
    while (buffers.used[static_cast<size_t>(buffers.next)] == buffers.batch) advance();
    buffers.used[static_cast<size_t>(buffers.next)] = buffers.batch;
    buffers.held[static_cast<size_t>(buffers.next)] = from;
    const int64_t slot = buffers.next;
    advance();
    read(planes, from, buffers);
    combine<Read>(buffers.taps.data(), row_.taps, numbers_of(planes), false, slot_at(slot, buffers));
    return slot;
  }

  // Rows of elements side by side, as numbers: those that have the same place in their steps follow each
  // other.
  void read(int64_t planes, const std::byte* from, Buffers& buffers) const {
    Read* const span = buffers.span.data();
    if (is_of_channels_) {
      T* const elements = elements_of(buffers);
      read_channels(planes, from, buffers.first, elements);
      if constexpr (!std::is_same_v<T, Read>) {
        put_numbers(reinterpret_cast<const std::byte*>(elements), phase_ * row_.stride, span);
      }
      return;
    }
    const int64_t count = std::min(row_.size, pitch_ - row_.start);
    if constexpr (kItem == 1) {
      if (row_.stride > 1) {
        return take_apart(planes, from, count, span);
      }
    }
    const bool is_as_it_is = std::is_same_v<T, Read> && row_.stride == 1;
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
  }

  static T* elements_of(Buffers& buffers) {
    if constexpr (std::is_same_v<T, Read>) {
      return buffers.span.data();
    } else {
      return buffers.elements.data();
    }
  }

  // Channels of each element of a part of a row, to where those of the same place in their steps follow each
  // other, with padding around them.
  void read_channels(int64_t planes, const std::byte* from, int64_t place, T* elements) const {
    const int64_t origin = row_.origin(place);
    const int64_t first = std::clamp<int64_t>(-origin, 0, pitch_);
    const int64_t end = std::clamp<int64_t>(row_.size - origin, first, pitch_);
    const auto at = [&](int64_t i) { return i % row_.stride * phase_ + i / row_.stride * at_once_; };
    const auto pad = [&](int64_t i) {
      std::fill_n(elements + at(i), at_once_, T(Combine::template kStart<Number>));
    };
    for (int64_t i = 0; i < first; ++i) pad(i);
    for (int64_t i = end; i < pitch_; ++i) pad(i);
    auto* const to = reinterpret_cast<std::byte*>(elements);
    const int64_t bytes = planes * kItem;
    from += (first - row_.start) * row_.in_stride;
    if (row_.stride == 1 && row_.in_stride == bytes && planes == at_once_) {
      if (first < end) std::memcpy(to + first * bytes, from, static_cast<size_t>((end - first) * bytes));
      return;
    }
    int64_t of_step = first % row_.stride;
    int64_t step = first / row_.stride;
    for (int64_t i = first; i < end; ++i, from += row_.in_stride) {
      copy_short(to + (of_step * phase_ + step * at_once_) * kItem, from, bytes);
      if (++of_step == row_.stride) {
        of_step = 0;
        ++step;
      }
    }
  }

  // Bytes of the planes' rows, which are numbers as they are, to where those of the same place in their steps
  // follow each other. What is between rows stays as it is.
  void take_apart(int64_t planes, const std::byte* from, int64_t count, T* span) const {
    const int64_t step = row_.stride;
    for (int64_t i = 0; i < std::min(step, count); ++i) {
      const int64_t at = row_.start + i;
      T* const to = span + at % step * phase_ + at / step;
      read_rows(from + i * row_.in_stride, nest_.outer[0].window.in_stride, step * row_.in_stride, planes,
                divided_up(count - i, step), 0, reinterpret_cast<std::byte*>(to), plane_step_);
    }
  }

  void convert(const std::byte* elements, int64_t count, Read* span, std::vector<T>& room) const {
    if (row_.stride == 1) return put_numbers(elements, count, span);
    // Pointers of their own: a byte that is stored might change any that is reached through another.
    T* const apart = room.data();
    const auto phase = [=, this](int64_t first, int64_t stride) {
      const int64_t size = divided_up(count - first, stride);
      const std::byte* const from = elements + first * kItem;
      Read* const to = span + first * phase_;
      if constexpr (std::is_same_v<T, Read>) {
        for (int64_t i = 0; i < size; ++i) to[i] = load<T>(from + i * stride * kItem);
      } else {
        for (int64_t i = 0; i < size; ++i) apart[i] = load<T>(from + i * stride * kItem);
        put_numbers(reinterpret_cast<const std::byte*>(apart), size, to);
      }
    };
    for (int64_t first = 0; first < std::min(row_.stride, count); ++first) {
      row_.stride == 2 ? phase(first, 2) : phase(first, row_.stride);
    }
  }
  void put_numbers(const std::byte* from, int64_t count, Read* to) const {
    using Many = typename NumbersOf<Read>::type;
    // The next phase begins where this one ends, and comes later.
    for (int64_t i = 0; i < count; i += static_cast<int64_t>(sizeof(Many) / sizeof(Read))) {
      const auto x = load_numbers<T, Read, Many>(from + i * kItem);
      std::memcpy(to + i, &x, sizeof(x));
    }
  }

  // The rows that are there, one after the other.
  void combine_rows(int64_t count, Buffers& buffers) const {
    const Source to{buffers.numbers.data(), kHasIndices ? buffers.where.data() : nullptr, 0};
    combine<Number>(buffers.batch_of.data(), buffers.count, count, buffers.is_begun, to);
    buffers.is_begun = true;
    buffers.count = 0;
    ++buffers.batch;
  }

  // One source after the other; before them what there is already, if it has been begun.
  template <class From>
  void combine(const SourceOf<From>* sources, int64_t size, int64_t count, bool is_begun,
               const Source& to) const {
    for (int64_t i = 0; i < count; i += kMany * kEach) combine_some(sources, size, i, is_begun, to);
  }
  template <class From>
  ANYDML_INLINE void combine_some(const SourceOf<From>* sources, int64_t size, int64_t i, bool is_begun,
                                  const Source& to) const {
    Numbers all[kMany];
    [[maybe_unused]] Indices where[kMany];
    // One by one, as all would go through memory.
#pragma GCC unroll 4
    for (int64_t v = 0; v < kMany; ++v) {
      all[v] = Numbers{} + Combine::template kStart<Number>;
      if constexpr (kHasIndices) where[v] = Indices{};
      if (!is_begun) continue;
      std::memcpy(&all[v], to.numbers + i + v * kEach, sizeof(Numbers));
      if constexpr (kHasIndices) std::memcpy(&where[v], to.where + i + v * kEach, sizeof(Indices));
    }
    for (const SourceOf<From>* source = sources; source != sources + size; ++source) {
      const From* const from = source->numbers + i;
#pragma GCC unroll 4
      for (int64_t v = 0; v < kMany; ++v) {
        Numbers x;
        if constexpr (std::is_same_v<From, Number>) {
          std::memcpy(&x, from + v * kEach, sizeof(x));
        } else {
          x = load_numbers<From, Number, Numbers>(reinterpret_cast<const std::byte*>(from + v * kEach));
          if (operation_.p != 0) x = power_of(x, operation_.p);
        }
        if constexpr (kHasIndices) {
          Indices here = Indices{} + source->index;
          if (source->where != nullptr) {
            Indices tap;
            std::memcpy(&tap, source->where + i + v * kEach, sizeof(tap));
            here = here + tap;
          }
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
#pragma GCC unroll 4
    for (int64_t v = 0; v < kMany; ++v) {
      std::memcpy(to.numbers + i + v * kEach, &all[v], sizeof(Numbers));
      if constexpr (kHasIndices) std::memcpy(to.where + i + v * kEach, &where[v], sizeof(Indices));
    }
  }

  Nest nest_;
  Operation operation_;
  Sliding row_;
  bool is_of_channels_;  // which lie between the places of rows
  int64_t places_;       // of a row, or of a part of it
  int64_t pitch_;
  int64_t at_once_;           // planes, or channels
  int64_t place_step_;        // of numbers
  int64_t plane_step_;        // of planes with those between one and the next
  int64_t slot_;              // numbers of all places
  int64_t all_ = 0;           // elements of the rows in a buffer
  int64_t phase_ = 0;         // those of each place in a step
  std::vector<RowTap> taps_;  // of a row
  bool stay_ = false;         // whether there is room for all rows of a window
  int64_t slots_ = 1;
};

template <class Operation>
class PlanesPlan final : public Plan {
 public:
  PlanesPlan(Nest nest, Operation operation, std::string description, bool is_of_channels)
      : Plan(std::move(description)), pooled_(std::move(nest), operation, is_of_channels) {
    int64_t taps = std::min(row().taps, row().size);
    for (const Dimension& dimension : pooled_.nest().outer) {
      rows_.push_back({dimension.window.places, dimension.other, dimension.window.out_stride});
      taps *= std::min(dimension.window.taps, dimension.window.size);
      order_.push_back(order_.size());
    }
    bytes_ = steps_of(rows_) * row().places * std::min<int64_t>(taps, 64) * kItem;
    const Dimension& planes = pooled_.nest().outer[0];
    const int64_t at_once = pooled_.at_once();
    rows_[0] = {divided_up(planes.window.size, at_once), at_once * planes.other,
                at_once * planes.window.out_stride};
    // One image after the other.
    if (is_of_channels && rows_.size() > 2) {
      std::swap(rows_[0], rows_[1]);
      std::swap(order_[0], order_[1]);
    }
    const auto at = std::min<std::ptrdiff_t>(2, std::ssize(rows_) - 1);
    of_parts_ = static_cast<size_t>(at);
    rows_.insert(rows_.begin() + at, {divided_up(row().places, pooled_.places_at_once()),
                                      pooled_.places_at_once() * pooled_.nest().row.other,
                                      pooled_.places_at_once() * row().out_stride});
    order_.insert(order_.begin() + at, kMostOuter);
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
        const int64_t first = cursor.index(of_parts_) * pooled_.places_at_once();
        Part part{{}, first, std::min(pooled_.places_at_once(), row().places - first)};
        for (size_t d = 0; d < rows_.size(); ++d) {
          if (order_[d] < kMostOuter) part.place[order_[d]] = cursor.index(d);
        }
        const int64_t plane = part.place[0] *= pooled_.at_once();
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
    const std::byte* const results = pooled_.round(part, planes, buffers);
    // Runs of neighbours: the channels of a place, or the places of a plane.
    const int64_t places = part.size;
    const bool has_channels = pooled_.is_of_channels();
    const Runs runs =
        has_channels
            ? Runs{places,         planes,     pooled_.place_step(), each.window.out_stride,
                   row.out_stride, each.other, nest().row.other}
            : Runs{planes,           places,    pooled_.plane_step(), row.out_stride, each.window.out_stride,
                   nest().row.other, each.other};
    if (runs.is_packed(kItem)) {
      std::memcpy(out, results, static_cast<size_t>(runs.count * runs.size * kItem));
    } else {
      for (int64_t r = 0; r < runs.count; ++r) {
        std::byte* const to = out + r * runs.out_step;
        const std::byte* const from = results + r * runs.step * kItem;
        if (runs.out_each == kItem) {
          copy_short(to, from, runs.size * kItem);
        } else {
          for (int64_t i = 0; i < runs.size; ++i) store(to + i * runs.out_each, load<T>(from + i * kItem));
        }
      }
    }
    if constexpr (Rows::kHasIndices) {
      const int64_t step = row.stride * nest().row.index_step;
      const int64_t first = origin_index(part);
      for (int64_t r = 0; r < runs.count; ++r) {
        operation.put_indices(buffers.where.data() + r * runs.step, runs.size,
                              first + r * (has_channels ? step : each.index_step),
                              has_channels ? each.index_step : step, runs.other_each,
                              indices + r * runs.other_step);
      }
    }
    if constexpr (requires { operation.are_certain(buffers.numbers.data(), 0); }) {
      bool are_certain = true;
      for (int64_t r = 0; r < runs.count; ++r) {
        are_certain &= operation.are_certain(buffers.numbers.data() + r * runs.step, runs.size);
      }
      for (int64_t p = 0; !are_certain && p < planes; ++p) {
        Part own = part;
        own.place[0] += p;
        operation.run(
            nest(), own, in,
            {out + p * each.window.out_stride, indices == nullptr ? nullptr : indices + p * each.other});
      }
    }
  }

  // Of numbers that lie side by side: their steps in the buffer, in the output, and in the indices.
  struct Runs {
    int64_t count;
    int64_t size;
    int64_t step;
    int64_t out_each;
    int64_t out_step;
    int64_t other_each;
    int64_t other_step;

    bool is_packed(int64_t item) const { return step == size && out_each == item && out_step == size * item; }
  };

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
  std::vector<size_t> order_;  // of which dimensions they are
  size_t of_parts_ = 0;        // the loop along the row
  int64_t bytes_ = 0;
};

}  // namespace
ANYDML_ISA_END
