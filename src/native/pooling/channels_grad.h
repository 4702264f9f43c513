// Gradients of pooling where channels lie last, as a gather: every element adds up, in double precision, what
// the windows that hold it have for it, in the order of these, some channels at a time. What a row of windows
// has, of maxima with the taps that these lie at, is computed once, and stays until rows of elements need
// others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "pointwise/lanes.h"
#include "pooling/channels.h"
#include "pooling/geometry.h"
#include "pooling/rows.h"
#include "pooling/window_shares.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

// Of maxima, where windows have their gradients at the first of them, or of averages.
template <class T, bool kIsMaximum>
class ChannelsGradPlan final : public Plan {
 public:
  // Null where channels do not lie last in all tensors, are few, or the shares of all rows of windows over an
  // element are too many. Of the dimensions, batch and channels first, `other` is the step of the output.
  static std::unique_ptr<Plan> of(const std::vector<Dimension>& dimensions, const std::string& description) {
    const Sliding& channels = dimensions[1].window;
    if (channels.in_stride != kItem || channels.out_stride != kItem || dimensions[1].other != kItem ||
        channels.size < kLeast || dimensions.size() > kMostOuter + 2) {
      return nullptr;
    }
    std::unique_ptr<ChannelsGradPlan> plan(
        new ChannelsGradPlan(dimensions, std::string(description).append(", channels last")));
    if (plan->slots_ * plan->slot_ > kMostShares || (kIsMaximum && !WindowTaps::are_few(plan->nest_))) {
      return nullptr;
    }
    return plan;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const x = static_cast<const std::byte*>(inputs[0]);
    const auto* const gradient = static_cast<const std::byte*>(inputs[kIsMaximum ? 1 : 0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t all = steps_of(rows_);
    const int threads = threads_for(bytes_);
    const int64_t calls = std::min(calls_for(bytes_, threads), all);
    parallel_for(calls, threads, [&](int64_t call) {
      Rows shares(*this);
      WindowTaps window(nest_);
      StagedWriter writer(is_streamed_);
      int64_t number = share_begin(call, calls, all);
      const int64_t end = share_begin(call + 1, calls, all);
      for (LoopCursor cursor(rows_, number); number < end; ++number, cursor.advance()) {
        const int64_t first = share_begin(cursor.index(1), parts_, channels_.size);
        const int64_t count = share_begin(cursor.index(1) + 1, parts_, channels_.size) - first;
        shares.begin(count);
        Windows windows{gradient + cursor.in() + first * kItem,
                        x + cursor.index(0) * nest_.row.other + first * kItem,
                        {},
                        1,
                        0,
                        window};
        add_rows(0, cursor, windows, shares);
        put(shares, count, out + cursor.out() + first * kItem, writer);
      }
    });
  }

 private:
  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kLeast = 8;
  static constexpr int64_t kLanes = WindowShares<kIsMaximum>::kLanes;
  // Channels that are summed at once, in registers.
  static constexpr int64_t kBlock = 16;
  // Of two cache lines.
  static constexpr int64_t kLeastChannels = 128 / kItem;
  // That fit the second cache; of maxima, which are searched one by one elsewhere, more.
  static constexpr int64_t kMostShares = kIsMaximum ? 1 << 19 : 1 << 16;

  using Own = WindowShares<kIsMaximum>;
  using Share = typename Own::Share;
  using Source = typename Own::Source;

  // Of rows of windows, those of an element's row and others that may serve the next one.
  class Rows {
   public:
    explicit Rows(const ChannelsGradPlan& plan)
        : slot_(plan.slot_),
          numbers_(plan.slots_ * plan.slot_ * static_cast<int64_t>(sizeof(Share))),
          taps_(kIsMaximum ? plan.slots_ * plan.slot_ * static_cast<int64_t>(sizeof(int32_t)) : 0),
          held_(static_cast<size_t>(plan.slots_)),
          most(kIsMaximum ? static_cast<size_t>(plan.pitch_) : 0) {}

    void begin(int64_t channels) {
      if (channels != channels_) std::fill(held_.begin(), held_.end(), Held{});
      channels_ = channels;
      ++row_;
      rows.clear();
    }

    // The shares of the windows whose gradients lie at `from`, of which the elements are at a tap; calls
    // fill(shares, taps) where they are not there.
    template <class Fill>
    void add(const std::byte* from, int32_t tap, const Fill& fill) {
      const auto found =
          std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return held.from == from; });
      const auto oldest = [&] {
        return std::min_element(held_.begin(), held_.end(),
                                [](const Held& a, const Held& b) { return a.row < b.row; });
      };
      const auto slot = found != held_.end() ? found : oldest();
      const int64_t at = (slot - held_.begin()) * slot_;
      auto* const shares = reinterpret_cast<Share*>(numbers_.bytes()) + at;
      auto* const taps = kIsMaximum ? reinterpret_cast<int32_t*>(taps_.bytes()) + at : nullptr;
      if (found == held_.end()) fill(shares, taps);
      *slot = {from, row_};
      rows.push_back({shares, taps, tap});
    }

    int64_t channels() const { return channels_; }

   private:
    struct Held {
      const std::byte* from = nullptr;
      int64_t row = 0;  // of elements, the last one that had it
    };

    int64_t slot_;
    int64_t channels_ = 0;
    int64_t row_ = 0;
    Scratch numbers_;
    Scratch taps_;
    std::vector<Held> held_;

   public:
    std::vector<Source> rows;        // of windows over the elements' row, in their order
    std::vector<Source> of_element;  // those of windows over an element
    std::vector<float> most;         // of a window, in each channel
  };

  // Some windows of an image: where gradients lie, the image's elements, places, what is divided by, and the
  // tap that the elements are at.
  struct Windows {
    const std::byte* gradient;
    const std::byte* x;
    Part part;
    double count;
    int64_t tap;
    WindowTaps& taps;
  };

  ChannelsGradPlan(const std::vector<Dimension>& dimensions, std::string description)
      : Plan(std::move(description)),
        nest_(nest_of(dimensions)),
        channels_(dimensions[1].window),
        outer_(nest_.outer.begin(), nest_.outer.end() - 1),
        width_(nest_.outer.back()),
        slots_(rows_over_an_element(outer_)),
        parts_(parts_of(channels_, slots_ * width_.window.places)),
        pitch_(pitch_of(channels_, parts_)),
        slot_(width_.window.places * pitch_) {
    const Dimension& batch = dimensions[0];
    rows_ = {{batch.window.size, batch.window.out_stride, batch.other}, {parts_, 0, 0}};
    int64_t places = batch.window.size * channels_.size * width_.window.places;
    for (const Dimension& dimension : outer_) {
      rows_.push_back({dimension.window.size, 0, dimension.other});
      places *= dimension.window.places;
    }
    if constexpr (kIsMaximum) {
      for (const Dimension& dimension : nest_.outer) {
        places *= std::min({dimension.window.taps, dimension.window.size, int64_t{16}});
      }
    }
    for (int64_t i = 0; i < width_.window.size; ++i) columns_.push_back(reaching(width_.window, {i, i + 1}));
    const int64_t elements = steps_of(rows_) * width_.window.size * pitch_;
    bytes_ = (3 * elements + places) * kItem;
    const bool is_packed = parts_ == 1 && width_.other == channels_.size * kItem;
    is_streamed_ = is_packed && elements * kItem >= kStreamFrom;
  }

  // Of what windows slide along, around the channels, of which the second step is that of images. Indices
  // tell a window's taps apart.
  static Nest nest_of(const std::vector<Dimension>& dimensions) {
    std::vector<Dimension> those(dimensions.begin() + 2, dimensions.end());
    those.back().index_step = 1;
    for (size_t d = those.size() - 1; d-- > 0;) {
      those[d].index_step = those[d + 1].index_step * extent_of(those[d + 1].window);
    }
    those.push_back(dimensions[1]);
    those.back().other = dimensions[0].window.in_stride;
    those.back().index_step = 0;
    return Nest(std::move(those));
  }
  static int64_t extent_of(const Sliding& window) { return (window.taps - 1) * window.dilation + 1; }

  // How many rows of windows hold one element.
  static int64_t rows_over_an_element(const std::vector<Dimension>& outer) {
    int64_t rows = 1;
    for (const Dimension& dimension : outer) {
      const Sliding& window = dimension.window;
      rows *= std::min(divided_up(extent_of(window), window.stride), std::max<int64_t>(window.places, 1));
    }
    return rows;
  }

  // Of the channels, as few as have room: a part's lines lie apart in memory, which took twice the time of
  // all in a row.
  static int64_t parts_of(const Sliding& channels, int64_t windows) {
    const int64_t most = std::max<int64_t>(1, channels.size / kLeastChannels);
    int64_t parts = 1;
    const auto fits = [&] {
      const int64_t pitch = pitch_of(channels, parts);
      return windows * pitch <= kMostShares && pitch * kItem <= StagedWriter::kMost;
    };
    while (parts < most && !fits()) ++parts;
    return parts;
  }
  static int64_t pitch_of(const Sliding& channels, int64_t parts) {
    return divided_up(divided_up(channels.size, parts), kBlock) * kBlock;
  }

  // The rows of windows over the elements' row, in the dimensions from the d-th one on.
  void add_rows(size_t d, const LoopCursor& cursor, const Windows& windows, Rows& shares) const {
    if (d == outer_.size()) {
      shares.add(windows.gradient, static_cast<int32_t>(windows.tap), [&](Share* to, int32_t* taps) {
        fill(windows, shares.channels(), to);
        if constexpr (kIsMaximum) find(windows, shares, taps);
      });
      return;
    }
    const Dimension& dimension = outer_[d];
    const Sliding& window = dimension.window;
    const int64_t element = cursor.index(d + 2);
    const Range places = reaching(window, {element, element + 1});
    for (int64_t place = places.begin; place < places.end; ++place) {
      const int64_t behind = element - window.origin(place);
      if (behind % window.dilation != 0) continue;
      Windows those = windows;
      those.part.place[d] = place;
      those.gradient += place * window.out_stride;
      those.count *= dimension.counted[static_cast<size_t>(place)];
      those.tap += behind * dimension.index_step;
      add_rows(d + 1, cursor, those, shares);
    }
  }

  // Blocks of channels, where there is a whole one: the last one ends with them, and so may have some twice.
  template <class Run>
  ANYDML_INLINE static bool for_blocks(int64_t channels, const Run& run) {
    for (int64_t c = 0; c + kBlock <= channels; c += kBlock) run(c);
    if (channels >= kBlock && channels % kBlock > 0) run(channels - kBlock);
    return channels >= kBlock;
  }

  // What each element has of each window of a row.
  void fill(const Windows& windows, int64_t channels, Share* to) const {
    for (int64_t place = 0; place < width_.window.places; ++place, to += pitch_) {
      const Quotient quotient(windows.count * width_.counted[static_cast<size_t>(place)]);
      const std::byte* const gradients = windows.gradient + place * width_.window.out_stride;
      const auto fill_at = [&](int64_t c) { fill_block(gradients + c * kItem, quotient, to + c); };
      if (for_blocks(channels, fill_at)) continue;
      T few[kBlock]{};
      std::memcpy(few, gradients, static_cast<size_t>(channels * kItem));
      fill_block(reinterpret_cast<const std::byte*>(few), quotient, to);
    }
  }
  static void fill_block(const std::byte* from, const Quotient& quotient, Share* to) {
    using Whole = std::conditional_t<std::is_same_v<Share, float>, FewSingles, Doubles>;
    ANYDML_UNROLL(4)
    for (int64_t c = 0; c < kBlock; c += sizeof(Whole) / sizeof(Share)) {
      auto share = load_numbers<T, Share, Whole>(from + c * kItem);
      if constexpr (!kIsMaximum) share = quotient.of(share);
      std::memcpy(to + c, &share, sizeof(share));
    }
  }

  // The taps of the maxima of a row of windows, -1 where no tap lies on an element.
  void find(const Windows& windows, Rows& shares, int32_t* taps) const {
    Part part = windows.part;
    for (int64_t place = 0; place < width_.window.places; ++place, taps += pitch_) {
      part.place[outer_.size()] = place;
      windows.taps.move_to(part);
      if (windows.taps.taps().empty()) {
        std::fill_n(taps, shares.channels(), -1);
      } else {
        channel_maxima<T, true>(windows.x + windows.taps.origin().offset, windows.taps.taps(),
                                shares.channels(), shares.most.data(), taps);
      }
    }
  }

  void put(Rows& shares, int64_t count, std::byte* out, StagedWriter& writer) const {
    const Sliding& window = width_.window;
    for (int64_t i = 0; i < window.size; ++i, out += width_.other) {
      std::byte* const to = writer.reserve(out, count * kItem);
      const Range& places = columns_[static_cast<size_t>(i)];
      shares.of_element.clear();
      for (const Source& row : shares.rows) {
        for (int64_t place = places.begin; place < places.end; ++place) {
          const auto tap = static_cast<int32_t>(row.tap + i - window.origin(place));
          const int64_t at = place * pitch_;
          shares.of_element.push_back({row.shares + at, kIsMaximum ? row.taps + at : nullptr, tap});
        }
      }
      const auto put_at = [&](int64_t c) {
        put_block(shares.of_element, c, to + c * kItem);
        writer.send_line();
      };
      if (for_blocks(count, put_at)) continue;
      T few[kBlock];
      put_block(shares.of_element, 0, reinterpret_cast<std::byte*>(few));
      std::memcpy(to, few, static_cast<size_t>(count * kItem));
    }
  }
  static void put_block(const std::vector<Source>& sources, int64_t c, std::byte* to) {
    constexpr int kVectors = kBlock / kLanes;
    Doubles sums[kVectors];
    Own::template add<kVectors>(sources, c, sums);
    ANYDML_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      store_numbers<T, double, Doubles>(to + v * kLanes * kItem, sums[v]);
    }
  }

  Nest nest_;
  Sliding channels_;
  std::vector<Dimension> outer_;  // that windows slide along around the width
  Dimension width_;
  int64_t slots_;               // rows of windows over an element
  int64_t parts_;               // of the channels
  int64_t pitch_;               // of a part's shares
  int64_t slot_;                // shares of a row of windows
  std::vector<Loop> rows_;      // images, parts, and rows of elements
  std::vector<Range> columns_;  // the places of windows over each element of a row
  int64_t bytes_ = 0;
  bool is_streamed_ = false;  // by non-temporal stores
};

}  // namespace
ANYDML_ISA_END
