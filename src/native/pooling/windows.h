// Pooling of a part of a row, whatever is pooled: of each row of elements under the windows those that the
// part needs are read once as numbers, and then combined tap by tap, some neighbouring places at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pooling/geometry.h"
#include "pooling/rows.h"

ANYDML_ISA_BEGIN
namespace {

struct Sum {
  template <class Number>
  static constexpr Number kStart = 0;
  template <class Number>
  ANYDML_INLINE static Number of(Number sum, Number x) {
    return sum + x;
  }
};

// A number is larger than a NaN, which is what there is before the first element.
struct Maximum {
  template <class Number>
  static constexpr Number kStart = std::is_floating_point_v<Number> ? std::numeric_limits<Number>::quiet_NaN()
                                                                    : std::numeric_limits<Number>::min();
  template <class Number>
  ANYDML_INLINE static Number of(Number most, Number x) {
    if constexpr (std::is_floating_point_v<Number>) {
      return static_cast<int>(x > most) | static_cast<int>(most != most) ? x : most;
    } else {
      return x > most ? x : most;
    }
  }
};

// The same of windows with a number above the lowest value, in fewer instructions; the lowest value
// elsewhere.
struct QuickMaximum {
  template <class Number>
  static constexpr Number kStart = std::is_floating_point_v<Number> ? -std::numeric_limits<Number>::infinity()
                                                                    : std::numeric_limits<Number>::min();
  template <class Number>
  ANYDML_INLINE static Number of(Number most, Number x) {
    return x > most ? x : most;
  }
};

#if defined(ANYDML_ISA_AVX2)
// The later of two places, or the one there was: of lanes of 32 bits a selection takes three times as long as
// this. Places ascend from 0 on.
template <class Place, class Mask>
ANYDML_INLINE Place later_place(Mask is_later, Place later, Place place) {
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(place[0])>, int32_t>) {
    return (Place)_mm256_max_epi32((__m256i)(later & is_later), (__m256i)place);
  } else {
    return is_later ? later : place;
  }
}
#else
template <class Place, class Mask>
ANYDML_INLINE Place later_place(Mask is_later, Place later, Place place) {
  return is_later ? later : place;
}
#endif

// Whether quick maxima are right: where there is no number above the lowest value, NaN counts.
template <class Number>
bool are_certain_maxima(const Number* most, int64_t count) {
  if constexpr (!std::is_floating_point_v<Number>) return true;
  int32_t others = 0;
  for (int64_t i = 0; i < count; ++i)
    others |= static_cast<int32_t>(!(most[i] > QuickMaximum::kStart<Number>));
  return others == 0;
}

// The window of neighbouring places: one tap after the other.
template <class Combine, class Number>
void combine_places(const Number* from, int64_t step, int64_t count, Number* to) {
  const auto run = [&](int64_t every) {
    for (int64_t i = 0; i < count; ++i) to[i] = Combine::of(to[i], from[i * every]);
  };
  if (step == 1) {
    run(1);
  } else if (step == 2) {
    run(2);
  } else {
    run(step);
  }
}

// The window of one place: its taps in lanes, which are as many on every instruction set.
template <class Combine, class Number>
Number combined_taps(const Number* from, int64_t step, int64_t count) {
  constexpr int64_t kLanes = 16;
  alignas(64) Number lanes[kLanes];
  std::fill_n(lanes, kLanes, Combine::template kStart<Number>);
  const auto add = [&](const Number* some) {
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = Combine::of(lanes[j], some[j]);
  };
  int64_t i = 0;
  if (step == 1) {
    for (; i + kLanes <= count; i += kLanes) add(from + i);
  }
  while (i < count) {
    alignas(64) Number some[kLanes];
    int64_t j = 0;
    for (; j < kLanes && i < count; ++j, ++i) some[j] = from[i * step];
    std::fill_n(some + j, kLanes - j, Combine::template kStart<Number>);
    add(some);
  }
#pragma GCC unroll 4
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
    for (int64_t j = 0; j < width; ++j) lanes[j] = Combine::of(lanes[j], lanes[j + width]);
  }
  return lanes[0];
}

// What `Combine` makes of elements of T as numbers, after `prepare`; with indices of what is found.
template <class T, class Number, class Combine, bool kWithIndices, class Prepare>
class PartWindows {
 public:
  PartWindows(const Nest& nest, const Part& part, const Prepare& prepare, Number* numbers, int64_t* indices)
      : nest_(nest),
        row_(nest.row.window),
        part_(part),
        prepare_(prepare),
        numbers_(numbers),
        indices_(indices) {
    std::fill_n(numbers_, part.size, Combine::template kStart<Number>);
    if constexpr (kWithIndices) std::fill_n(indices_, part.size, int64_t{-1});
    goes_along_taps_ = std::min(row_.taps, row_.size) > 2 * row_.places;
  }

  // Of what is under the windows' taps in the dimensions from the d-th one on.
  void add(size_t d, const std::byte* from, int64_t index) {
    if (d == nest_.outer.size()) return add_row(from, index);
    const Dimension& dimension = nest_.outer[d];
    const Sliding& window = dimension.window;
    const auto [first, last] = window.inside(part_.place[d]);
    int64_t element = window.origin(part_.place[d]) + first * window.dilation;
    for (int64_t k = first; k < last; ++k, element += window.dilation) {
      add(d + 1, from + element * window.in_stride, index + element * dimension.index_step);
    }
  }

 private:
  void add_row(const std::byte* from, int64_t index) {
    const int64_t origin = row_.origin(part_.first);
    const int64_t across = (part_.size - 1) * row_.stride;  // from the first place's window to the last's
    const int64_t end = std::min(row_.taps, floored(row_.size - 1 - origin, row_.dilation) + 1);
    int64_t tap = std::max<int64_t>(0, raised(-origin - across, row_.dilation));
    // Far taps have elements between them that no other tap has.
    const int64_t at_once = row_.dilation > across + 1 ? 1 : (kSpan - 1 - across) / row_.dilation + 1;
    while (tap < end) {
      const int64_t behind = std::min(end, tap + at_once);
      add_span(from, index, tap, behind);
      tap = behind;
    }
  }

  // Of some taps, all of whose elements are read at once.
  void add_span(const std::byte* from, int64_t index, int64_t tap, int64_t behind) {
    const int64_t origin = row_.origin(part_.first);
    const int64_t across = (part_.size - 1) * row_.stride;
    const int64_t first = std::max<int64_t>(0, origin + tap * row_.dilation);
    const int64_t last = std::min(row_.size, origin + across + (behind - 1) * row_.dilation + 1);
    if (first >= last) return;
    Number span[kSpan];
    load_row<T>(from + first * row_.in_stride, row_.in_stride, last - first, span);
    prepare_(span, last - first);
    if (goes_along_taps_) return add_taps(span, first, index, tap, behind);
    for (int64_t k = tap; k < behind; ++k) {
      const int64_t shift = origin + k * row_.dilation;
      const int64_t begin = std::max<int64_t>(0, raised(-shift, row_.stride));
      const int64_t end = std::min(part_.size, floored(row_.size - 1 - shift, row_.stride) + 1);
      const int64_t element = shift + begin * row_.stride;
      if (begin >= end) continue;
      if constexpr (kWithIndices) {
        take_places(span + element - first, end - begin, index + element * nest_.row.index_step, begin);
      } else {
        combine_places<Combine>(span + element - first, row_.stride, end - begin, numbers_ + begin);
      }
    }
  }

  void add_taps(const Number* span, int64_t first, int64_t index, int64_t tap, int64_t behind) {
    for (int64_t i = 0; i < part_.size; ++i) {
      const auto [inside, outside] = row_.inside(part_.first + i);
      const int64_t begin = std::max(tap, inside);
      const int64_t count = std::min(behind, outside) - begin;
      if (count <= 0) continue;
      const int64_t element = row_.origin(part_.first + i) + begin * row_.dilation;
      const Number* const from = span + element - first;
      const Number found = combined_taps<Combine>(from, row_.dilation, count);
      if constexpr (kWithIndices) {
        if (!is_taken(numbers_[i], found, indices_[i])) continue;
        int64_t k = 0;
        while (found == found && from[k * row_.dilation] != found) ++k;
        indices_[i] = index + (element + k * row_.dilation) * nest_.row.index_step;
        numbers_[i] = found;
      } else {
        numbers_[i] = Combine::of(numbers_[i], found);
      }
    }
  }

  // Whether an element comes in the place of what was found before: of equal ones the first stays.
  ANYDML_INLINE static bool is_taken(Number most, Number x, int64_t index) {
    if constexpr (std::is_floating_point_v<Number>) {
      return (x > most) | (index < 0) | ((most != most) & (x == x));
    } else {
      return (x > most) | (index < 0);
    }
  }

  void take_places(const Number* from, int64_t count, int64_t index, int64_t begin) {
    const int64_t stride = row_.stride;
    const int64_t step = stride * nest_.row.index_step;
    Number* const numbers = numbers_ + begin;
    int64_t* const indices = indices_ + begin;
    for (int64_t i = 0; i < count; ++i) {
      const Number x = from[i * stride];
      const bool taken = is_taken(numbers[i], x, indices[i]);
      numbers[i] = taken ? x : numbers[i];
      indices[i] = taken ? index + i * step : indices[i];
    }
  }

  const Nest& nest_;
  const Sliding& row_;
  const Part& part_;
  const Prepare& prepare_;
  Number* numbers_;
  int64_t* indices_;
  bool goes_along_taps_;
};

// How many places of a row are pooled at once: as many as elements between them can be read for, where these
// are not mostly such that no window has.
inline int64_t places_at_once(const Sliding& row) {
  constexpr int64_t kWidest = 64;
  if (row.stride > kWidest) return 1;
  return std::clamp<int64_t>(kSpan / 2 / row.stride, 1, std::min(kPart, row.places));
}

}  // namespace
ANYDML_ISA_END
