// What slides along height and width and treats each channel by itself, where channels lie last: some
// neighbouring places and channels at a time, tap by tap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "nhwc/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"

ANYDML_ISA_BEGIN

// A window along one dimension: at place o, its tap k lies at o * stride - start + k * dilation.
struct Sliding {
  int64_t size;
  int64_t places;
  int64_t taps;
  int64_t stride;
  int64_t start;
  int64_t end;
  int64_t dilation;
  int64_t in_stride;
  int64_t out_stride;

  int64_t origin(int64_t place) const { return place * stride - start; }

  // The first tap that lies on an element, and the one behind the last.
  std::pair<int64_t, int64_t> inside(int64_t place) const {
    const int64_t at = origin(place);
    const int64_t first = at >= 0 ? 0 : std::min(taps, (dilation - 1 - at) / dilation);
    return {first, std::max(first, taps_before(size, at))};
  }

  // How many taps lie on elements, or on those and on declared padding.
  int64_t counted(int64_t place, bool with_padding) const {
    if (with_padding) return taps_before(size + end, origin(place));
    const auto [first, last] = inside(place);
    return last - first;
  }

 private:
  int64_t taps_before(int64_t limit, int64_t at) const {
    const int64_t before = limit - 1 - at;
    return before < 0 ? 0 : std::min(taps, (dilation == 1 ? before : before / dilation) + 1);
  }
};

struct Sides {
  int64_t batch;
  int64_t batch_in;
  int64_t batch_out;
  int64_t channels;
  Sliding height;
  Sliding width;
};

// An Operation has the type of its elements, Element, that of its numbers, Number, of lanes of them, V, and
// of what a run reads beside the input, Parameters, made of its inputs; start(parameters, channel, taps),
// add(parameters, sum, x, tap, channel) and end(parameters, sum, row, column), on lanes of them. One whose
// parameters take time to make has can_prepare(inputs) and bytes(parameters), too. One that has quick_start()
// and add_quickly(sum, x) is computed by these, and anew where is_doubtful(sum).
template <class Operation>
class ChannelWindows final : public Plan {
 public:
  ChannelWindows(const Sides& sides, Operation operation, std::string description)
      : Plan(std::move(description)), sides_(sides), operation_(std::move(operation)) {
    const Sliding& width = sides_.width;
    const auto is_whole = [&](int64_t place) {
      return width.inside(place) == std::pair{int64_t{0}, width.taps};
    };
    while (left_ < width.places && !is_whole(left_)) ++left_;
    right_ = left_;
    while (right_ < width.places && is_whole(right_)) ++right_;
    const int64_t rows = sides_.batch * sides_.height.places;
    const int64_t most = sides_.channels / kStep;
    const int64_t under = sides_.height.taps * width.size * kStep * kItem;
    const int64_t bytes = sides_.batch * sides_.height.size * width.size * sides_.channels * kItem;
    near_ = std::max<int64_t>(1, (bytes > kNearImages ? kRowBytes : kWindowBytes) / under) * kStep;
    if (near_ > kAlone * kLanes) near_ -= near_ % (kAlone * kLanes);
    parts_ = std::clamp<int64_t>((kWindowRows + rows - 1) / rows, 1, std::max<int64_t>(most, 1));
  }

  static constexpr bool kPrepares = requires(const Operation& each) { each.can_prepare(nullptr); };
  bool has_prepack() const override { return kPrepares; }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    if constexpr (kPrepares) {
      if (!operation_.can_prepare(inputs)) return nullptr;
      auto plan = std::make_unique<ChannelWindows>(sides_, operation_, description());
      plan->known_ = operation_.parameters(inputs);
      return plan;
    }
    return nullptr;
  }
  int64_t prepack_bytes() const override {
    if constexpr (kPrepares) return known_ ? Operation::bytes(*known_) : 0;
    return 0;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const Parameters made = known_ ? Parameters{} : operation_.parameters(inputs);
    const Parameters& parameters = known_ ? *known_ : made;
    const auto* const from = static_cast<const std::byte*>(inputs[0]);
    auto* const to = static_cast<std::byte*>(outputs[0]);
    const int64_t rows = sides_.batch * sides_.height.places;
    const auto taps = [](const Sliding& along) { return std::min({along.taps, along.size, kCountedTaps}); };
    const int64_t read =
        rows * sides_.width.places * sides_.channels * kItem * taps(sides_.height) * taps(sides_.width);
    const int threads = threads_for(read);
    const int64_t bands = std::min<int64_t>(rows, threads * kWindowBands);
    parallel_for(bands * parts_, threads, [&](int64_t i) {
      // Shares of whole steps, as far as there are any.
      const auto begin = [&](int64_t part) {
        return part == parts_ ? sides_.channels : share_begin(part, parts_, sides_.channels / kStep) * kStep;
      };
      const int64_t band = i / parts_;
      const int64_t end = begin(i % parts_ + 1);
      for (int64_t c = begin(i % parts_); c < end; c += near_) {
        for (int64_t r = share_begin(band, bands, rows); r < share_begin(band + 1, bands, rows); ++r) {
          Row(*this, parameters, from, to, r).run(c, std::min(c + near_, end));
        }
      }
    });
  }

 private:
  using Element = typename Operation::Element;
  using Number = typename Operation::Number;
  using Parameters = typename Operation::Parameters;
  using V = typename Operation::V;
  static constexpr int64_t kItem = sizeof(Element);
  static constexpr int64_t kLanes = sizeof(V) / sizeof(Number);
  static constexpr bool kIsQuick = requires(const Operation& each) { each.quick_start(); };
  // Two vectors of each of four places are as many sums as registers hold.
  static constexpr int kWide = 2;
  static constexpr int kPlaces = 4;
  // Of one place, as at the border, so many vectors: as many chains as hide what a multiply-add waits for.
  static constexpr int kAlone = kPrepares ? 4 : kWide;
  static constexpr int64_t kStep = kWide * kLanes;

  // Of the output.
  class Row {
   public:
    Row(const ChannelWindows& plan, const Parameters& parameters, const std::byte* from, std::byte* to,
        int64_t i)
        : plan_(plan), parameters_(parameters), row_(i % plan.sides_.height.places) {
      const Sides& sides = plan.sides_;
      const int64_t image = i / sides.height.places;
      std::tie(first_, last_) = sides.height.inside(row_);
      from_ = from + image * sides.batch_in;
      to_ = to + image * sides.batch_out + row_ * sides.height.out_stride;
    }

    void run(int64_t begin, int64_t end) const {
      const int64_t places = plan_.sides_.width.places;
      for (int64_t place = 0; place < places;) {
        if (place >= plan_.left_ && place < plan_.right_ && plan_.right_ - plan_.left_ >= kPlaces) {
          // The last ones with some that are done.
          channels<kPlaces>(std::min(place, plan_.right_ - kPlaces), begin, end);
          place = std::min(place + kPlaces, plan_.right_);
        } else {
          channels<1>(place, begin, end);
          ++place;
        }
      }
    }

   private:
    template <int kCount>
    void channels(int64_t place, int64_t begin, int64_t end) const {
      const auto taps = plan_.sides_.width.inside(place);
      int64_t c = begin;
      if constexpr (kCount == 1 && kAlone > kWide) {
        for (; c + kAlone * kLanes <= end; c += kAlone * kLanes) tile<1, kAlone>(place, taps, c);
      }
      for (; c + kStep <= end; c += kStep) tile<kCount, kWide>(place, taps, c);
      for (; c + kLanes <= end; c += kLanes) tile<kCount, 1>(place, taps, c);
      // What is left, with some that are done: nothing is read that was written.
      if (c < end) tile<kCount, 1>(place, taps, plan_.sides_.channels - kLanes);
    }

    template <int kCount, int kVectors>
    using Tile = std::array<std::array<V, kVectors>, kCount>;

    template <int kCount, int kVectors>
    void tile(int64_t place, std::pair<int64_t, int64_t> taps, int64_t c) const {
      const Sliding& width = plan_.sides_.width;
      const Operation& operation = plan_.operation_;
      const auto set_all = [](Tile<kCount, kVectors>& sums, auto start) {
        for (int v = 0; v < kVectors; ++v) {
          const V each = start(v);
          for (int i = 0; i < kCount; ++i) sums[i][v] = each;
        }
      };
      Tile<kCount, kVectors> sums;
      const auto add_exactly = [&] {
        set_all(sums, [&](int v) {
          return operation.start(parameters_, c + v * kLanes, (last_ - first_) * (taps.second - taps.first));
        });
        add_taps<kCount, kVectors>(place, taps, c, sums, [&](V sum, V x, int64_t tap, int64_t channel) {
          return operation.add(parameters_, sum, x, tap, channel);
        });
      };
      if constexpr (kIsQuick) {
        set_all(sums, [&](int) { return operation.quick_start(); });
        add_taps<kCount, kVectors>(place, taps, c, sums, [&](V sum, V x, int64_t, int64_t) {
          return operation.add_quickly(sum, x);
        });
        V least = sums[0][0];
        for (int i = 0; i < kCount; ++i) {
          for (int v = 0; v < kVectors; ++v) least = least < sums[i][v] ? least : sums[i][v];
        }
        if (operation.is_doubtful(least)) add_exactly();
      } else {
        add_exactly();
      }
      std::byte* to = to_ + place * width.out_stride + c * kItem;
      for (int i = 0; i < kCount; ++i, to += width.out_stride) {
        for (int v = 0; v < kVectors; ++v) {
          store_numbers<Element, Number, V>(to + v * kLanes * kItem,
                                            plan_.operation_.end(parameters_, sums[i][v], row_, place + i));
        }
      }
    }

    // Tap by tap, of some places and vectors of channels.
    template <int kCount, int kVectors, class Add>
    ANYDML_INLINE void add_taps(int64_t place, std::pair<int64_t, int64_t> taps, int64_t c,
                                Tile<kCount, kVectors>& sums, const Add& add) const {
      const Sliding& width = plan_.sides_.width;
      const Sliding& height = plan_.sides_.height;
      const auto [first, last] = taps;
      const int64_t step = width.stride * width.in_stride;
      const std::byte* const column = from_ + c * kItem;
      for (int64_t y = first_; y < last_; ++y) {
        const std::byte* const line = column + (height.origin(row_) + y * height.dilation) * height.in_stride;
        const std::byte* at = line + (width.origin(place) + first * width.dilation) * width.in_stride;
        for (int64_t x = first; x < last; ++x, at += width.dilation * width.in_stride) {
          for (int i = 0; i < kCount; ++i) {
            for (int v = 0; v < kVectors; ++v) {
              const auto* const from = at + i * step + v * kLanes * kItem;
              sums[i][v] =
                  add(sums[i][v], load_numbers<Element, Number, V>(from), y * width.taps + x, c + v * kLanes);
            }
          }
        }
      }
    }

    const ChannelWindows& plan_;
    const Parameters& parameters_;
    const int64_t row_;
    int64_t first_ = 0;
    int64_t last_ = 0;
    const std::byte* from_;
    std::byte* to_;
  };

  Sides sides_;
  Operation operation_;
  std::optional<Parameters> known_;
  // The places where all taps lie on elements.
  int64_t left_ = 0;
  int64_t right_ = 0;
  int64_t parts_ = 1;
  // Channels of a band that are done before the others.
  int64_t near_ = kStep;
};

ANYDML_ISA_END
