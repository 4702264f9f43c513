// The geometry of separable windows, which combine the taps along one dimension once for all windows that
// have them. A row of each of several planes at a time lies side by side with what padding there is between
// them, or several channels that lie last lie between the elements of a row, so that taps are combined along
// all of them at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pooling/geometry.h"

ANYDML_ISA_BEGIN
namespace {

// Places of a row up to which several planes are pooled at once.
constexpr int64_t kNarrow = 64;

// How far ahead in a plane its next rows are fetched into the caches, in bytes: those of several planes are
// read in turn, each a few lines at a time, which the processor by itself fetches too late.
constexpr int64_t kAhead = 1 << 10;

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

// Which rows of elements, or what is made of them, a buffer's slots hold: a window's rows stay as long as the
// next ones have them too.
class RowSlots {
 public:
  // Rows that are combined at once: as many as a window of 3 x 3 x 3 has.
  static constexpr int64_t kMost = 9;

  // For windows of so many rows, which stay only where there is room for all.
  explicit RowSlots(int64_t rows) : count_(std::min(rows, kMost)), stay_(rows <= kMost) {}

  int64_t count() const { return count_; }
  bool stay() const { return stay_; }

  void forget() { held_.fill(nullptr); }

  // The slot of the row that lies at `from`; calls fill(slot) where it is in none.
  template <class Fill>
  int64_t of(const std::byte* from, const Fill& fill) {
    for (int64_t i = 0; stay_ && i < count_; ++i) {
      if (held_[static_cast<size_t>(i)] != from) continue;
      used_[static_cast<size_t>(i)] = batch_;
      return i;
    }
    // In the place of the oldest one that is not to be combined now.
    while (used_[static_cast<size_t>(next_)] == batch_) advance();
    const int64_t slot = next_;
    used_[static_cast<size_t>(slot)] = batch_;
    held_[static_cast<size_t>(slot)] = from;
    advance();
    fill(slot);
    return slot;
  }

  // What comes is combined with others.
  void end_batch() { ++batch_; }

 private:
  void advance() { next_ = next_ + 1 == count_ ? 0 : next_ + 1; }

  int64_t count_;
  bool stay_;
  std::array<const std::byte*, kMost> held_{};
  std::array<int64_t, kMost> used_{};  // the last batch of rows that a slot was in
  int64_t batch_ = 1;
  int64_t next_ = 0;
};

// Where the elements of rows lie in a buffer, in which those that have the same place in their steps follow
// each other, and where what is made of them does.
class SeparableGeometry {
 public:
  const Nest& nest() const { return nest_; }
  int64_t pitch() const { return pitch_; }
  bool is_of_channels() const { return is_of_channels_; }
  int64_t place_step() const { return place_step_; }
  int64_t plane_step() const { return plane_step_; }
  // With those between places.
  int64_t numbers_of(int64_t planes) const { return is_of_channels_ ? slot_ : planes * plane_step_; }
  int64_t at_once() const { return at_once_; }
  int64_t places_at_once() const { return places_; }

 protected:
  // With so many numbers behind the last one of each place in a step.
  SeparableGeometry(Nest nest, bool is_of_channels, int64_t behind)
      : nest_(std::move(nest)),
        row_(nest_.row.window),
        is_of_channels_(is_of_channels),
        places_(is_of_channels ? channels_at_once(nest_).places : row_.places),
        pitch_(pitch_of(row_, places_)),
        at_once_(is_of_channels ? channels_at_once(nest_).channels : planes_at_once(nest_)),
        place_step_(is_of_channels ? at_once_ : 1),
        plane_step_(is_of_channels ? 1 : pitch_ / row_.stride),
        slot_(is_of_channels ? places_ * at_once_ : at_once_ * plane_step_),
        all_(at_once_ * pitch_ + (is_of_channels ? 0 : (row_.taps - 1) * row_.dilation)),
        phase_(divided_up(all_, row_.stride) + behind),
        slots_(rows_of(nest_)) {
    require(nest_.outer.size() <= kMostOuter, "dimensions of pooling");
    for (int64_t k = 0; k < row_.taps; ++k) taps_.push_back(offset_of(k * row_.dilation, place_step_));
  }

  // Under a window, as many as matter.
  static int64_t rows_of(const Nest& nest) {
    int64_t rows = 1;
    for (const Dimension& dimension : nest.outer) {
      rows *= std::min({dimension.window.taps, dimension.window.size, RowSlots::kMost + 1});
    }
    return rows;
  }

  // Of an element.
  int64_t offset_of(int64_t i, int64_t step) const {
    return i % row_.stride * phase_ + i / row_.stride * step;
  }

  // Of the elements under the windows of a part of a row, from its first window's origin on, those that are
  // no padding.
  Range elements_of(int64_t first_place) const {
    const int64_t origin = row_.origin(first_place);
    const int64_t first = std::clamp<int64_t>(-origin, 0, pitch_);
    return {first, std::clamp<int64_t>(row_.size - origin, first, pitch_)};
  }

  Nest nest_;
  Sliding row_;
  bool is_of_channels_;  // which lie between the places of rows
  int64_t places_;       // of a row, or of a part of it
  int64_t pitch_;
  int64_t at_once_;            // planes, or channels
  int64_t place_step_;         // of numbers
  int64_t plane_step_;         // of planes with those between one and the next
  int64_t slot_;               // numbers of all places
  int64_t all_;                // elements of the rows in a buffer
  int64_t phase_;              // from those of a place in a step to those of the next one
  RowSlots slots_;             // as they are at first
  std::vector<int64_t> taps_;  // of a row: where their elements lie
};

}  // namespace
ANYDML_ISA_END
