// Gradients of pooling of planes: a row of the output at a time gathers, in double precision, what the
// windows that reach it have for it, in their order. Rows of windows stay until no row needs them any more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "pooling/channels.h"
#include "pooling/geometry.h"
#include "pooling/rows.h"
#include "pooling/separable_geometry.h"
#include "pooling/separable_maxima.h"
#include "pooling/window_shares.h"
#include "pooling/windows.h"

ANYDML_ISA_BEGIN
namespace {

// Of maxima, where windows have their gradients at the first of them, or of averages.
template <class T, bool kIsMaximum>
class PlanesGradPlan final : public Plan {
 public:
  // Null where there are other than two spatial dimensions, planes do not follow each other, rows are long,
  // or many windows hold an element. Of the dimensions, `other` is the step of the output.
  static std::unique_ptr<Plan> of(const std::vector<Dimension>& dimensions, const std::string& description) {
    if (dimensions.size() != 4) return nullptr;
    std::vector<Dimension> kept(dimensions.begin(), dimensions.begin() + 2);
    // One of a single element has nothing to say, whatever its strides are.
    std::erase_if(kept, [](const Dimension& dimension) { return dimension.window.size == 1; });
    if (kept.empty()) kept.push_back(dimensions[1]);
    kept = merged(std::move(kept));
    if (kept.size() != 1) return nullptr;
    kept.insert(kept.end(), dimensions.begin() + 2, dimensions.end());
    Nest nest(std::move(kept));
    if (planes_at_once(nest) == 0 || !WindowTaps::are_near(nest)) return nullptr;
    if (slots_of(nest.outer[1].window) > kMostSlots) return nullptr;
    return std::unique_ptr<Plan>(
        new PlanesGradPlan(std::move(nest), std::string(description).append(", rows of planes")));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const x = static_cast<const std::byte*>(inputs[0]);
    const auto* const gradient = static_cast<const std::byte*>(inputs[kIsMaximum ? 1 : 0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t planes = planes_.window.size;
    const int64_t tiles = divided_up(planes, at_once_) * down_;
    const int threads = threads_for(bytes_);
    const int64_t calls = std::min(calls_for(bytes_, threads), tiles);
    parallel_for(calls, threads, [&](int64_t call) {
      Buffers buffers(*this);
      for (int64_t i = share_begin(call, calls, tiles); i < share_begin(call + 1, calls, tiles); ++i) {
        const int64_t first = i / down_ * at_once_;
        const Planes those{first, std::min(at_once_, planes - first)};
        const int64_t tile = i % down_;
        gather(those, {tile * rows_, std::min((tile + 1) * rows_, height_.window.size)}, x, gradient, out,
               buffers);
      }
    });
  }

 private:
  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kLanes = WindowShares<kIsMaximum>::kLanes;
  static constexpr int kMany = 4;
  using Own = WindowShares<kIsMaximum>;
  using Share = typename Own::Share;
  using Source = typename Own::Source;
  // Positions of a row of planes whose windows fit the first cache.
  static constexpr int64_t kWidth = 512;
  // Elements of a tile, of which the windows of a few rows are gone through twice.
  static constexpr int64_t kTile = 1 << 15;
  // Rows of windows that hold an element.
  static constexpr int64_t kMostSlots = 16;

  struct Planes {
    int64_t first;
    int64_t count;
  };

  static int64_t slots_of(const Sliding& window) {
    return std::min(window.places, (window.taps - 1) * window.dilation / window.stride + 1);
  }

  PlanesGradPlan(Nest nest, std::string description)
      : Plan(std::move(description)),
        rows_of_(nest, false),
        nest_(std::move(nest)),
        planes_(nest_.outer[0]),
        height_(nest_.outer[1]),
        row_(nest_.row.window),
        at_once_(std::clamp<int64_t>(kWidth / rows_of_.pitch(), 1, rows_of_.at_once())),
        before_((row_.taps - 1) * row_.dilation),
        width_(before_ + divided_up(at_once_ * rows_of_.pitch(), kMany * kLanes) * kMany * kLanes),
        slots_(slots_of(height_.window)) {
    const Sliding& height = height_.window;
    rows_ = std::clamp<int64_t>(kTile / (at_once_ * rows_of_.pitch()), 1, height.size);
    down_ = divided_up(height.size, rows_);
    const auto taps = [](const Sliding& window) { return std::min({window.taps, window.size, int64_t{16}}); };
    const int64_t places = height.places * row_.places;
    // A tap takes a quarter of what an element does.
    bytes_ = planes_.window.size * kItem *
             (places + places * taps(height) * taps(row_) / 4 + 2 * height.size * row_.size);
  }

  // Rows of windows, each at the position of its origin: what it has for an element, and at which tap.
  struct Buffers {
    explicit Buffers(const PlanesGradPlan& plan)
        : shares(static_cast<size_t>(plan.slots_ * plan.width_)),
          taps(kIsMaximum ? shares.size() : 0, -1),
          sums(static_cast<size_t>(plan.width_)) {
      if constexpr (kIsMaximum) maxima.emplace(plan.rows_of_);
    }

    std::vector<Share> shares;
    std::vector<int32_t> taps;
    std::vector<double> sums;
    std::optional<typename SeparableMaxima<T>::Buffers> maxima;
  };

  void gather(const Planes& those, const Range& rows, const std::byte* x, const std::byte* gradient,
              std::byte* out, Buffers& buffers) const {
    const Sliding& height = height_.window;
    int64_t known = 0;
    std::vector<Source> sources;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const Range reach = reaching(height, {y, y + 1});
      sources.clear();
      for (int64_t r = reach.begin; r < reach.end; ++r) {
        const int64_t slot = r % slots_ * width_;
        Share* const shares = buffers.shares.data() + slot;
        int32_t* const taps = kIsMaximum ? buffers.taps.data() + slot : nullptr;
        if (r >= known) {
          put_windows(those, r, x, gradient, shares + before_, kIsMaximum ? taps + before_ : nullptr,
                      buffers);
          known = r + 1;
        }
        const int64_t down = y - height.origin(r);
        if (down % height.dilation != 0) continue;
        for (int64_t k = row_.taps; k-- > 0;) {
          const int64_t across = k * row_.dilation;
          const int64_t at = before_ - across;
          sources.push_back(
              {shares + at, kIsMaximum ? taps + at : nullptr,
               static_cast<int32_t>(down * height_.index_step + across * nest_.row.index_step)});
        }
      }
      add(sources, those.count * rows_of_.pitch(), buffers.sums.data());
      put(those, y, buffers.sums.data(), out);
    }
  }

  static void add(const std::vector<Source>& sources, int64_t count, double* sums) {
    for (int64_t i = 0; i < count; i += kMany * kLanes) {
      Doubles all[kMany];
      Own::template add<kMany>(sources, i, all);
      ANYDML_UNROLL(4)
      for (int64_t v = 0; v < kMany; ++v) std::memcpy(sums + i + v * kLanes, &all[v], sizeof(Doubles));
    }
  }

  // Of a row of windows of some planes.
  void put_windows(const Planes& those, int64_t row, const std::byte* x, const std::byte* gradient,
                   Share* shares, [[maybe_unused]] int32_t* taps, Buffers& buffers) const {
    const int64_t pitch = rows_of_.pitch();
    const Sliding& height = height_.window;
    const Part part{{those.first, row}, 0, row_.places};
    gradient += those.first * planes_.window.out_stride + row * height.out_stride;
    for (int64_t p = 0; p < those.count; ++p, gradient += planes_.window.out_stride) {
      Share numbers[kPart];
      load_row<T>(gradient, row_.out_stride, row_.places, numbers);
      if constexpr (!kIsMaximum) {
        const double count = planes_.counted[0] * height_.counted[static_cast<size_t>(row)];
        const double* const counted = nest_.row.counted.data();
        for (int64_t i = 0; i < row_.places; ++i) numbers[i] /= count * counted[i];
      }
      spread(numbers, shares + p * pitch);
    }
    if constexpr (kIsMaximum) {
      rows_of_.pool(part, those.count, x + those.first * planes_.window.in_stride, *buffers.maxima);
      const int64_t places = rows_of_.plane_step();
      const float* const most = buffers.maxima->numbers.data();
      const bool are_certain = are_certain_maxima(most, (those.count - 1) * places + row_.places);
      for (int64_t p = 0; p < those.count; ++p) {
        if (are_certain || are_certain_maxima(most + p * places, row_.places)) {
          spread(buffers.maxima->where.data() + p * places, taps + p * pitch);
        } else {
          Part own = part;
          own.place[0] += p;
          put_exact_taps(own, x, taps + p * pitch);
        }
      }
    }
  }

  // Where there may be no number, -1 where there is no element.
  void put_exact_taps(const Part& part, const std::byte* x, int32_t* taps) const {
    constexpr auto kAsTheyAre = [](float*, int64_t) {};
    float most[kPart];
    int64_t indices[kPart];
    PartWindows<T, float, Maximum, true, decltype(kAsTheyAre)>(nest_, part, kAsTheyAre, most, indices)
        .add(0, x, 0);
    const int64_t origin = height_.window.origin(part.place[1]) * height_.index_step;
    for (int64_t i = 0; i < row_.places; ++i) {
      if (indices[i] >= 0) indices[i] -= origin + row_.origin(i) * nest_.row.index_step;
    }
    spread(indices, taps);
  }

  template <class From, class To>
  void spread(const From* from, To* to) const {
    const int64_t stride = row_.stride;
    if (stride == 1) {
      for (int64_t i = 0; i < row_.places; ++i) to[i] = static_cast<To>(from[i]);
    } else {
      for (int64_t i = 0; i < row_.places; ++i) to[i * stride] = static_cast<To>(from[i]);
    }
  }

  // A row of the output, behind whose last window is nothing.
  void put(const Planes& those, int64_t y, const double* sums, std::byte* out) const {
    const int64_t reached = std::clamp<int64_t>(rows_of_.pitch() - row_.start, 0, row_.size);
    out += those.first * planes_.other + y * height_.other;
    for (int64_t p = 0; p < those.count; ++p, out += planes_.other, sums += rows_of_.pitch()) {
      store_row<T>(sums + row_.start, reached, nest_.row.other, out);
      for (int64_t i = reached; i < row_.size; ++i) store(out + i * nest_.row.other, T(0.0F));
    }
  }

  SeparableMaxima<T> rows_of_;
  Nest nest_;
  Dimension planes_;
  Dimension height_;
  Sliding row_;
  int64_t at_once_;  // planes
  int64_t before_;   // positions before a row's first one, which no window has
  int64_t width_;
  int64_t slots_;     // rows of windows that are kept
  int64_t rows_ = 1;  // of a tile
  int64_t down_ = 1;
  int64_t bytes_ = 0;
};

}  // namespace
ANYDML_ISA_END
