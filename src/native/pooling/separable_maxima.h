// Maxima of separable windows with the taps that they lie at: rows first, then columns, as the first of equal
// ones in row-major order counts. What is made of a row of elements stays as long as the next window has it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pooling/geometry.h"
#include "pooling/separable_geometry.h"
#include "pooling/windows.h"
#include "simd/strided_copy.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// Rows of places of some planes at once, in a buffer: the largest of all taps of T, floats, and the first tap
// that has it.
template <class Element>
class SeparableMaxima : public SeparableGeometry {
 public:
  using T = Element;
  using Number = float;
  using Numbers = Singles;
  static constexpr int64_t kItem = sizeof(T);
  static constexpr int64_t kEach = sizeof(Numbers) / sizeof(Number);
  static constexpr bool kHasIndices = true;
  using Indices = Lanes<int32_t, static_cast<int>(kEach)>;

  SeparableMaxima(Nest nest, bool is_of_channels) : SeparableGeometry(std::move(nest), is_of_channels, 0) {}

 private:
  static constexpr Number kStart = QuickMaximum::kStart<Number>;
  // Numbers that are combined with others, from the first place's on, the taps where they lie, or none where
  // all lie at the same, and what indices count up to that.
  struct Source {
    Number* numbers;
    int32_t* where;
    int32_t index;
  };
  // Vectors at once, and what they go over behind the last number.
  static constexpr int64_t kMany = 4;
  static constexpr int64_t kBehind = kMany * kEach;

 public:
  struct Buffers {
    explicit Buffers(const SeparableMaxima& plan)
        : slot(plan.slot_ + kBehind),
          // What is between rows is never written.
          elements(static_cast<size_t>(plan.all_ + kBehind), T(kStart)),
          span(static_cast<size_t>(plan.phase_ * plan.row_.stride + kBehind), kStart),
          rows(static_cast<size_t>(slot * plan.slots_.count())),
          indices(rows.size()),
          numbers(static_cast<size_t>(slot)),
          where(numbers.size()),
          results(std::is_same_v<T, Number> ? 0 : numbers.size()),
          room(plan.row_.stride > 1 ? elements.size() : 0),
          slots(plan.slots_) {
      for (size_t k = 0; k < plan.taps_.size(); ++k) {
        const int64_t index = static_cast<int64_t>(k) * plan.row_.dilation * plan.nest_.row.index_step;
        taps.push_back({span.data() + plan.taps_[k], nullptr, static_cast<int32_t>(index)});
      }
    }

    int64_t slot;
    std::vector<T> elements;
    std::vector<Number> span;  // a row of elements
    std::vector<Source> taps;  // in it
    std::vector<Number> rows;  // what is made of their taps
    std::vector<int32_t> indices;
    std::vector<Number> numbers;
    std::vector<int32_t> where;  // the taps of the maxima, as what indices count from a window's origin
    std::vector<T> results;
    std::vector<T> room;
    RowSlots slots;                                  // of numbers
    std::array<Source, RowSlots::kMost> batch_of{};  // rows to be combined
    int64_t count = 0;
    bool is_begun = false;
    int64_t first = 0;  // place of the part of a row
  };

  // Of the part's windows in planes from the one on that lies at `in`: in buffers.numbers, by the steps of
  // planes and places, and the taps of maxima in buffers.where.
  void pool(const Part& part, int64_t planes, const std::byte* in, Buffers& buffers) const {
    if (buffers.first != part.first) {
      buffers.first = part.first;
      buffers.slots.forget();
    }
    buffers.is_begun = false;
    add(1, part, planes, in + part.first * row_.stride * row_.in_stride, 0, buffers);
    combine_rows(numbers_of(planes), buffers);
  }

  // The same numbers as elements.
  const std::byte* round(const Part&, int64_t planes, Buffers& buffers) const {
    auto* const numbers = reinterpret_cast<std::byte*>(buffers.numbers.data());
    if constexpr (std::is_same_v<T, Number>) return numbers;
    auto* const to = reinterpret_cast<std::byte*>(buffers.results.data());
    for (int64_t i = 0; i < numbers_of(planes); i += kEach) {
      const auto x =
          load_numbers<Number, Number, Numbers>(numbers + i * static_cast<int64_t>(sizeof(Number)));
      store_numbers<T, Number, Numbers>(to + i * kItem, x);
    }
    return to;
  }

 private:
  // Of what is under the windows' taps in the dimensions from the d-th one on.
  void add(size_t d, const Part& part, int64_t planes, const std::byte* from, int64_t index,
           Buffers& buffers) const {
    if (d == std::min(nest_.outer.size(), kMostOuter)) {
      if (buffers.count == slots_.count()) combine_rows(numbers_of(planes), buffers);
      const int64_t slot = slot_of(planes, from, buffers);
      Source& row = buffers.batch_of[static_cast<size_t>(buffers.count++)];
      row = slot_at(slot, buffers);
      row.index = static_cast<int32_t>(index);
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
    return {buffers.rows.data() + i * buffers.slot, buffers.indices.data() + i * buffers.slot, 0};
  }

  // Where there is what is made of the taps in rows of elements that lie side by side.
  int64_t slot_of(int64_t planes, const std::byte* from, Buffers& buffers) const {
    return buffers.slots.of(from, [&](int64_t slot) {
      read(planes, from, buffers);
      combine(buffers.taps.data(), row_.taps, numbers_of(planes), false, slot_at(slot, buffers));
    });
  }

  // Rows of elements side by side, as numbers: those that have the same place in their steps follow each
  // other.
  void read(int64_t planes, const std::byte* from, Buffers& buffers) const {
    Number* const span = buffers.span.data();
    if (is_of_channels_) {
      T* const elements = elements_in(buffers);
      read_channels(planes, from, buffers.first, elements);
      if constexpr (!std::is_same_v<T, Number>) {
        put_numbers(reinterpret_cast<const std::byte*>(elements), phase_ * row_.stride, span);
      }
      return;
    }
    const Range inside = elements_of(0);
    const bool is_as_it_is = std::is_same_v<T, Number> && row_.stride == 1;
    auto* const elements =
        reinterpret_cast<std::byte*>(is_as_it_is ? static_cast<void*>(span) : buffers.elements.data());
    for (int64_t p = 0; p < planes; ++p, from += nest_.outer[0].window.in_stride) {
      std::byte* const to = elements + (p * pitch_ + inside.begin) * kItem;
      if (row_.in_stride == kItem) {
        prefetch_lines(from + kAhead, inside.size() * kItem);
        copy_short(to, from, inside.size() * kItem);
      } else {
        for (int64_t i = 0; i < inside.size(); ++i) {
          store(to + i * kItem, load<T>(from + i * row_.in_stride));
        }
      }
    }
    if (!is_as_it_is)
      convert(elements, planes * pitch_ + (row_.taps - 1) * row_.dilation, span, buffers.room);
  }

  static T* elements_in(Buffers& buffers) {
    if constexpr (std::is_same_v<T, Number>) {
      return buffers.span.data();
    } else {
      return buffers.elements.data();
    }
  }

  // Channels of each element of a part of a row, to where those of the same place in their steps follow each
  // other, with padding around them.
  void read_channels(int64_t planes, const std::byte* from, int64_t place, T* elements) const {
    const auto [first, end] = elements_of(place);
    const auto pad = [&](int64_t i) { std::fill_n(elements + offset_of(i, at_once_), at_once_, T(kStart)); };
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

  void convert(const std::byte* elements, int64_t count, Number* span, std::vector<T>& room) const {
    if (row_.stride == 1) return put_numbers(elements, count, span);
    // Pointers of their own: what is stored might change any that is reached through another.
    T* const apart = room.data();
    const auto phase = [=, this](int64_t first, int64_t stride) {
      const int64_t size = divided_up(count - first, stride);
      const std::byte* const from = elements + first * kItem;
      Number* const to = span + first * phase_;
      if constexpr (std::is_same_v<T, Number>) {
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
  void put_numbers(const std::byte* from, int64_t count, Number* to) const {
    // The next phase begins where this one ends, and comes later.
    for (int64_t i = 0; i < count; i += kEach) {
      const auto x = load_numbers<T, Number, Numbers>(from + i * kItem);
      std::memcpy(to + i, &x, sizeof(x));
    }
  }

  // The rows that are there, one after the other.
  void combine_rows(int64_t count, Buffers& buffers) const {
    const Source to{buffers.numbers.data(), buffers.where.data(), 0};
    combine(buffers.batch_of.data(), buffers.count, count, buffers.is_begun, to);
    buffers.is_begun = true;
    buffers.count = 0;
    buffers.slots.end_batch();
  }

  // One source after the other; before them what there is already, if it has been begun.
  void combine(const Source* sources, int64_t size, int64_t count, bool is_begun, const Source& to) const {
    for (int64_t i = 0; i < count; i += kMany * kEach) combine_some(sources, size, i, is_begun, to);
  }
  ANYDML_INLINE void combine_some(const Source* sources, int64_t size, int64_t i, bool is_begun,
                                  const Source& to) const {
    Numbers all[kMany];
    Indices where[kMany];
    // One by one, as all would go through memory.
#pragma GCC unroll 4
    for (int64_t v = 0; v < kMany; ++v) {
      all[v] = Numbers{} + kStart;
      where[v] = Indices{};
      if (!is_begun) continue;
      std::memcpy(&all[v], to.numbers + i + v * kEach, sizeof(Numbers));
      std::memcpy(&where[v], to.where + i + v * kEach, sizeof(Indices));
    }
    for (const Source* source = sources; source != sources + size; ++source) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kMany; ++v) {
        Numbers x;
        std::memcpy(&x, source->numbers + i + v * kEach, sizeof(x));
        Indices here = Indices{} + source->index;
        if (source->where != nullptr) {
          Indices tap;
          std::memcpy(&tap, source->where + i + v * kEach, sizeof(tap));
          here = here + tap;
        }
        const auto is_larger = x > all[v];
        where[v] = later_place(is_larger, here, where[v]);
        all[v] = lane_max<Number>(x, all[v]);
      }
    }
#pragma GCC unroll 4
    for (int64_t v = 0; v < kMany; ++v) {
      std::memcpy(to.numbers + i + v * kEach, &all[v], sizeof(Numbers));
      std::memcpy(to.where + i + v * kEach, &where[v], sizeof(Indices));
    }
  }
};

}  // namespace
ANYDML_ISA_END
