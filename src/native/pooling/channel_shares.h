// Gradients of averages where channels lie last, as a gather: every element adds up its shares of the windows
// that hold it, in the order of these, some channels at a time. A row of windows' shares is computed once,
// and stays until rows of elements need others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
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
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

template <class T>
class ChannelSharesPlan final : public Plan {
 public:
  // Null where channels do not lie last in both tensors, are few, or the shares of all rows of windows over
  // an element are too many. Of the dimensions, batch and channels first, elements are the output's and
  // places the gradient's.
  static std::unique_ptr<Plan> of(const std::vector<Dimension>& dimensions, const std::string& description) {
    const Sliding& channels = dimensions[1].window;
    if (channels.in_stride != kItem || channels.out_stride != kItem || channels.size < kLeast ||
        dimensions.size() > kMostOuter + 2) {
      return nullptr;
    }
    std::unique_ptr<ChannelSharesPlan> plan(
        new ChannelSharesPlan(dimensions, std::string(description).append(", channels last")));
    return plan->slots_ * plan->slot_ <= kMostShares ? std::move(plan) : nullptr;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const gradient = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t all = steps_of(rows_);
    const int threads = threads_for(bytes_);
    const int64_t calls = std::min(calls_for(bytes_, threads), all);
    parallel_for(calls, threads, [&](int64_t call) {
      Shares shares(*this);
      StagedWriter writer(is_streamed_);
      int64_t number = share_begin(call, calls, all);
      const int64_t end = share_begin(call + 1, calls, all);
      for (LoopCursor cursor(rows_, number); number < end; ++number, cursor.advance()) {
        const int64_t first = share_begin(cursor.index(1), parts_, channels_.size);
        const int64_t count = share_begin(cursor.index(1) + 1, parts_, channels_.size) - first;
        shares.begin(count);
        add_rows(0, cursor, gradient + cursor.in() + first * kItem, 1, shares);
        put(shares, count, out + cursor.out() + first * kItem, writer);
      }
    });
  }

 private:
  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kLeast = 8;
  static constexpr auto kLanes = static_cast<int64_t>(sizeof(Doubles) / sizeof(double));
  // Channels that are summed at once, in registers.
  static constexpr int64_t kBlock = 16;
  // Of two cache lines.
  static constexpr int64_t kLeastChannels = 128 / kItem;
  // That fit the second cache.
  static constexpr int64_t kMostShares = 1 << 16;

  // Of rows of windows, those of an element's row and others that may serve the next one.
  class Shares {
   public:
    explicit Shares(const ChannelSharesPlan& plan)
        : slot_(plan.slot_),
          numbers_(plan.slots_ * plan.slot_ * static_cast<int64_t>(sizeof(double))),
          held_(static_cast<size_t>(plan.slots_)) {}

    void begin(int64_t channels) {
      if (channels != channels_) std::fill(held_.begin(), held_.end(), Held{});
      channels_ = channels;
      ++row_;
      rows.clear();
    }

    // The shares of the windows whose gradients lie at `from`; calls fill(shares) where they are not there.
    template <class Fill>
    void add(const std::byte* from, const Fill& fill) {
      const auto found =
          std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return held.from == from; });
      const auto oldest = [&] {
        return std::min_element(held_.begin(), held_.end(),
                                [](const Held& a, const Held& b) { return a.row < b.row; });
      };
      const auto slot = found != held_.end() ? found : oldest();
      auto* const shares = reinterpret_cast<double*>(numbers_.bytes()) + (slot - held_.begin()) * slot_;
      if (found == held_.end()) fill(shares);
      *slot = {from, row_};
      rows.push_back(shares);
    }

    int64_t channels() const { return channels_; }

    std::vector<const double*> rows;        // of windows over the elements' row, in their order
    std::vector<const double*> of_element;  // those of windows over an element

   private:
    struct Held {
      const std::byte* from = nullptr;
      int64_t row = 0;  // of elements, the last one that had it
    };

    int64_t slot_;
    int64_t channels_ = 0;
    int64_t row_ = 0;
    Scratch numbers_;
    std::vector<Held> held_;
  };

  ChannelSharesPlan(const std::vector<Dimension>& dimensions, std::string description)
      : Plan(std::move(description)),
        channels_(dimensions[1].window),
        outer_(dimensions.begin() + 2, dimensions.end() - 1),
        width_(dimensions.back()),
        slots_(rows_over_an_element(outer_)),
        parts_(parts_of(channels_, slots_ * width_.window.places)),
        pitch_(pitch_of(channels_, parts_)),
        slot_(width_.window.places * pitch_) {
    const Sliding& batch = dimensions[0].window;
    rows_ = {{batch.size, batch.out_stride, batch.in_stride}, {parts_, 0, 0}};
    int64_t places = batch.size * channels_.size * width_.window.places;
    for (const Dimension& dimension : outer_) {
      rows_.push_back({dimension.window.size, 0, dimension.window.in_stride});
      places *= dimension.window.places;
    }
    for (int64_t i = 0; i < width_.window.size; ++i) columns_.push_back(reaching(width_.window, {i, i + 1}));
    const int64_t elements = steps_of(rows_) * width_.window.size * pitch_;
    bytes_ = (3 * elements + places) * kItem;
    const bool is_packed = parts_ == 1 && width_.window.in_stride == channels_.size * kItem;
    is_streamed_ = is_packed && elements * kItem >= kStreamFrom;
  }

  // How many rows of windows hold one element.
  static int64_t rows_over_an_element(const std::vector<Dimension>& outer) {
    int64_t rows = 1;
    for (const Dimension& dimension : outer) {
      const Sliding& window = dimension.window;
      rows *= std::min(divided_up(window.taps, window.stride), std::max<int64_t>(window.places, 1));
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

  // The rows of windows over the elements' row, in the dimensions from the d-th one on; `count` is what is
  // divided by in those before.
  void add_rows(size_t d, const LoopCursor& cursor, const std::byte* from, double count,
                Shares& shares) const {
    if (d == outer_.size()) {
      shares.add(from, [&](double* to) { fill(from, count, shares.channels(), to); });
      return;
    }
    const Dimension& dimension = outer_[d];
    const int64_t element = cursor.index(d + 2);
    const Range places = reaching(dimension.window, {element, element + 1});
    for (int64_t place = places.begin; place < places.end; ++place) {
      add_rows(d + 1, cursor, from + place * dimension.window.out_stride,
               count * dimension.counted[static_cast<size_t>(place)], shares);
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
  void fill(const std::byte* from, double count, int64_t channels, double* to) const {
    for (int64_t place = 0; place < width_.window.places; ++place, to += pitch_) {
      const Quotient quotient(count * width_.counted[static_cast<size_t>(place)]);
      const std::byte* const gradients = from + place * width_.window.out_stride;
      const auto fill_at = [&](int64_t c) { fill_block(gradients + c * kItem, quotient, to + c); };
      if (for_blocks(channels, fill_at)) continue;
      T few[kBlock]{};
      std::memcpy(few, gradients, static_cast<size_t>(channels * kItem));
      fill_block(reinterpret_cast<const std::byte*>(few), quotient, to);
    }
  }
  static void fill_block(const std::byte* from, const Quotient& quotient, double* to) {
    ANYDML_UNROLL(4)
    for (int64_t c = 0; c < kBlock; c += kLanes) {
      const Doubles share = quotient.of(load_numbers<T, double, Doubles>(from + c * kItem));
      std::memcpy(to + c, &share, sizeof(share));
    }
  }

  void put(Shares& shares, int64_t count, std::byte* out, StagedWriter& writer) const {
    const Sliding& window = width_.window;
    for (int64_t i = 0; i < window.size; ++i, out += window.in_stride) {
      std::byte* const to = writer.reserve(out, count * kItem);
      const Range& places = columns_[static_cast<size_t>(i)];
      shares.of_element.clear();
      for (const double* const row : shares.rows) {
        for (int64_t place = places.begin; place < places.end; ++place) {
          shares.of_element.push_back(row + place * pitch_);
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
  static void put_block(const std::vector<const double*>& sources, int64_t c, std::byte* to) {
    constexpr int kVectors = kBlock / kLanes;
    Doubles sums[kVectors]{};
    for (const double* const source : sources) {
      ANYDML_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        Doubles share;
        std::memcpy(&share, source + c + v * kLanes, sizeof(share));
        sums[v] = sums[v] + share;
      }
    }
    ANYDML_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      store_numbers<T, double, Doubles>(to + v * kLanes * kItem, sums[v]);
    }
  }

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
