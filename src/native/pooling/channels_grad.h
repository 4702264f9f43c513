// Gradients of maxima where channels lie last: a tile of the output adds up, in double precision, what all
// windows that reach into it have for it, in their order, some channels at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "pooling/channels.h"
#include "pooling/geometry.h"
#include "pooling/rows.h"

ANYDML_ISA_BEGIN
namespace {

// Windows have their gradients at the first of their maxima.
template <class T>
class ChannelsGradPlan final : public Plan {
 public:
  // Null where channels do not lie last in all tensors, are few, or a row of a tile has too many elements. Of
  // the dimensions, batch and channels first, `other` is the step of the output.
  static std::unique_ptr<Plan> of(std::vector<Dimension> dimensions, const std::string& description) {
    const Sliding& channels = dimensions[1].window;
    if (channels.in_stride != kItem || channels.out_stride != kItem || dimensions[1].other != kItem ||
        channels.size < kDoubles) {
      return nullptr;
    }
    const int64_t parts = std::max<int64_t>(1, channels.size / kLeastChannels);
    const int64_t pitch = divided_up(divided_up(channels.size, parts), kDoubles) * kDoubles;
    int64_t step = pitch;
    for (size_t d = dimensions.size(); d-- > 2; step *= dimensions[d].window.size) {
      if (step > kTile) return nullptr;
      dimensions[d].index_step = step;
    }
    dimensions[0].index_step = dimensions[1].index_step = 0;
    std::rotate(dimensions.begin() + 1, dimensions.begin() + 2, dimensions.end());
    Nest nest(std::move(dimensions));
    if (nest.outer.size() > kMostOuter || !WindowTaps::are_few(nest)) return nullptr;
    return std::unique_ptr<Plan>(new ChannelsGradPlan(std::move(nest), parts, pitch,
                                                      std::string(description).append(", channels last")));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const x = static_cast<const std::byte*>(inputs[0]);
    const auto* const gradient = static_cast<const std::byte*>(inputs[1]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t tiles = nest_.outer[0].window.size * down_ * parts_;
    const int threads = threads_for(bytes_);
    const int64_t calls = std::min(calls_for(bytes_, threads), tiles);
    parallel_for(calls, threads, [&](int64_t call) {
      std::vector<double> sums(static_cast<size_t>(rows_ * nest_.outer[1].index_step));
      WindowTaps window(nest_);
      for (int64_t i = share_begin(call, calls, tiles); i < share_begin(call + 1, calls, tiles); ++i) {
        const int64_t part = i % parts_;
        const int64_t tile = i / parts_ % down_;
        const int64_t first = share_begin(part, parts_, channels());
        const Channels those{i / parts_ / down_, first, share_begin(part + 1, parts_, channels()) - first};
        const Range rows{tile * rows_, std::min((tile + 1) * rows_, nest_.outer[1].window.size)};
        std::fill(sums.begin(), sums.end(), 0.0);
        add_windows(those, rows, x, gradient, window, sums.data());
        put(those, rows, sums.data(), out);
      }
    });
  }

 private:
  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kDoubles = 8;
  // Of eight cache lines: parts lie apart in memory, and took a quarter more time where they were of two.
  static constexpr int64_t kLeastChannels = 512 / kItem;
  // Sums of a tile fit the second cache.
  static constexpr int64_t kTile = 1 << 16;

  // Some channels of an image.
  struct Channels {
    int64_t image;
    int64_t first;
    int64_t count;
  };

  ChannelsGradPlan(Nest nest, int64_t parts, int64_t pitch, std::string description)
      : Plan(std::move(description)), nest_(std::move(nest)), parts_(parts), pitch_(pitch) {
    const Dimension& height = nest_.outer[1];
    rows_ = std::clamp<int64_t>(kTile / height.index_step, 1, height.window.size);
    down_ = divided_up(height.window.size, rows_);
    int64_t places = channels();
    int64_t elements = channels();
    for (size_t d = 0; d < nest_.outer.size(); ++d) {
      const Sliding& window = nest_.outer[d].window;
      places *= window.places * std::min({window.taps, window.size, int64_t{16}});
      elements *= window.size;
      if (d > 1) places_.push_back({window.places, 0, window.out_stride});
      if (d > 1) elements_.push_back({window.size, 0, nest_.outer[d].other});
    }
    bytes_ = (places + 2 * elements) * kItem;
  }

  int64_t channels() const { return nest_.row.window.size; }

  void add_windows(const Channels& those, const Range& rows, const std::byte* x, const std::byte* gradient,
                   WindowTaps& window, double* sums) const {
    const Dimension& height = nest_.outer[1];
    const Range reach = reaching(height.window, rows);
    for (int64_t row = reach.begin; row < reach.end; ++row) {
      const auto [first, last] = height.window.inside(row);
      const int64_t origin = height.window.origin(row);
      // Whether all taps lie in the tile.
      const bool is_inside = first == last || (rows.holds(origin + first * height.window.dilation) &&
                                               rows.holds(origin + (last - 1) * height.window.dilation));
      Part part{{those.image, row}, those.first, those.count};
      const std::byte* const from = gradient + those.image * nest_.outer[0].window.out_stride +
                                    row * height.window.out_stride + those.first * kItem;
      LoopCursor cursor(places_, 0);
      for (int64_t i = 0; i < steps_of(places_); ++i, cursor.advance()) {
        for (size_t d = 2; d < std::min(nest_.outer.size(), kMostOuter); ++d)
          part.place[d] = cursor.index(d - 2);
        window.move_to(part);
        if (window.taps().empty()) continue;
        alignas(64) double gradients[2 * kLeastChannels];
        std::fill(gradients + pitch_ - kDoubles, gradients + pitch_, 0.0);
        load_row<T>(from + cursor.out(), kItem, those.count, gradients);
        const int64_t base = window.origin().index - rows.begin * height.index_step;
        const Target to{sums, base, is_inside ? 0 : rows.size() * height.index_step};
        add_window(part, window, x, gradients, to);
      }
    }
  }

  // Sums of a tile, where a window's origin lies, and how many there are, if that is to be asked.
  struct Target {
    double* sums;
    int64_t base;
    int64_t size;

    bool holds(int64_t i) const { return size == 0 || (i >= 0 && i < size); }
  };

  void add_window(const Part& part, const WindowTaps& window, const std::byte* x, double* gradients,
                  const Target& to) const {
    Comparable<T> most[2 * kLeastChannels];
    IndexOf<T> indices[2 * kLeastChannels];
    channel_maxima<T, true>(x + window.origin().offset + part.first * kItem, window.taps(), part.size, most,
                            indices);
    for (int64_t c = 0; c < part.size; ++c) {
      const int64_t at = to.base + indices[c];
      if (to.holds(at)) to.sums[at + c] += gradients[c];
    }
  }

  void put(const Channels& those, const Range& rows, const double* sums, std::byte* out) const {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      std::byte* const to =
          out + those.image * nest_.outer[0].other + row * nest_.outer[1].other + those.first * kItem;
      LoopCursor cursor(elements_, 0);
      for (int64_t i = 0; i < steps_of(elements_); ++i, cursor.advance(), sums += pitch_) {
        store_row<T>(sums, those.count, kItem, to + cursor.out());
      }
    }
  }

  Nest nest_;  // batch and what windows slide along around the channels; indices are those of sums
  int64_t parts_;
  int64_t pitch_;     // of the sums of a part's channels
  int64_t rows_ = 1;  // of a tile, along the first dimension that windows slide along
  int64_t down_ = 1;
  std::vector<Loop> places_;  // along the others
  std::vector<Loop> elements_;
  int64_t bytes_ = 0;
};

}  // namespace
ANYDML_ISA_END
