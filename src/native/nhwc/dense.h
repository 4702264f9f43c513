// CONVOLUTION as a product of matrices (im2col and GEMM), where all channels are in every result, and those
// of the results lie last.
//
// A row of the left one is what lies under the filter at a place; in each column of the right one stands what
// that weighs in a channel of the result. Every result is one chain of fused multiply-adds, from the bias on,
// through the taps in their order and each tap's channels: the same bits everywhere. Padding is multiplied as
// zeros; where a weight that is not finite makes NaN of that, the sum is made anew without it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "dense/tile.h"
#include "nhwc/fused_activation.h"
#include "nhwc/nan.h"
#include "nhwc/tuning.h"
#include "nhwc/windows.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

struct DenseShape {
  Sides sides;  // its channels are those of the input
  int64_t channel_in;
  int64_t results;
  // The filter's, in bytes: of each tap in its order, from channel to channel, from result to result.
  std::vector<int64_t> tap_offsets;
  int64_t channel_step;
  int64_t result_step;
  bool has_bias;
  int64_t bias_step;
  Fused fused;

  int64_t depth() const { return static_cast<int64_t>(tap_offsets.size()) * sides.channels; }
};

class DenseConvolution final : public Plan {
 public:
  DenseConvolution(DenseShape shape, const std::string& description)
      : Plan(description), shape_(std::move(shape)), depth_(shape_.depth()) {
    const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
    rows_ = batch * height.places * width.places;
    step_ = width.stride * width.in_stride;
    const int64_t line = height.stride * height.in_stride;
    const bool is_even = (height.places == 1 || line == width.places * step_) &&
                         (batch == 1 || batch_in == height.places * width.places * step_);
    is_direct_ = shape_.tap_offsets.size() == 1 && shape_.channel_in == kItem && is_even &&
                 has_no_padding(height) && has_no_padding(width);
    has_padding_ = lies_on_padding(height) || lies_on_padding(width);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const std::shared_ptr<const Weights> weights = known_ ? known_ : packed(inputs);
    const auto* const from = static_cast<const std::byte*>(inputs[0]);
    auto* const to = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(rows_ * depth_ * shape_.results / kMultiplicationsOfAByte);
    const int64_t many = threads > 1 ? threads * kDenseTasks : 1;
    // The columns are shared out too where the weights are more than what they weigh; for each share the rows
    // are brought together anew.
    const int64_t most = is_direct_ ? many : std::max<int64_t>(1, shape_.results / kGatheringColumns);
    const int64_t parts = shape_.results > rows_ ? std::min({panels(), many, most}) : 1;
    const int64_t tiles = (rows_ + kMostRows - 1) / kMostRows;
    const int64_t size = tiles * kMostRows * depth_ * kItem;
    const int64_t blocks = std::min(tiles, std::max(size / kGatheredBytes, (many + parts - 1) / parts));
    const int64_t room = is_direct_ ? 0 : (tiles + blocks - 1) / blocks * kMostRows * depth_;
    const int64_t workers = std::min<int64_t>(threads, blocks * parts);
    const std::unique_ptr<float[]> gathered(new float[static_cast<size_t>(workers * room)]);
    parallel_for(blocks * parts, threads, [&](int64_t i, int worker) {
      const int64_t block = i / parts;
      const int64_t part = i % parts;
      compute(*weights, from, to, gathered.get() + worker * room, tiles,
              {share_begin(block, blocks, tiles), share_begin(block + 1, blocks, tiles)},
              {share_begin(part, parts, panels()), share_begin(part + 1, parts, panels())});
    });
  }

  bool has_prepack() const override { return true; }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    if (inputs[1] == nullptr || (shape_.has_bias && inputs[2] == nullptr)) return nullptr;
    auto plan = std::make_unique<DenseConvolution>(shape_, description());
    plan->known_ = packed(inputs);
    return plan;
  }

  int64_t prepack_bytes() const override {
    return known_ ? static_cast<int64_t>(known_->filter.size() + known_->bias.size()) * kItem : 0;
  }

 private:
  static constexpr int64_t kItem = sizeof(float);
  static constexpr int64_t kLanes = kColumnLanes;

  using Range = std::pair<int64_t, int64_t>;

  // Panel by panel, of each a row after the other; the last may be of half the width. Behind the last column
  // zeros fill a vector.
  struct Weights {
    std::vector<float> filter;
    std::vector<float> bias;
  };

  // Of a window of one tap: whether it begins at the first element, and lies on elements throughout.
  static bool has_no_padding(const Sliding& along) {
    return along.origin(0) == 0 && along.origin(along.places - 1) < along.size;
  }

  static bool lies_on_padding(const Sliding& along) {
    const auto whole = std::pair{int64_t{0}, along.taps};
    return along.inside(0) != whole || along.inside(along.places - 1) != whole;
  }

  int64_t vectors() const { return (shape_.results + kLanes - 1) / kLanes; }
  int64_t panels() const { return (vectors() + 1) / 2; }

  std::shared_ptr<const Weights> packed(const void* const* inputs) const {
    const auto columns = static_cast<size_t>(vectors() * kLanes);
    const auto weights = std::make_shared<Weights>(
        Weights{std::vector<float>(static_cast<size_t>(depth_) * columns), std::vector<float>(columns)});
    const auto* const filter = static_cast<const std::byte*>(inputs[1]);
    const auto* const bias = static_cast<const std::byte*>(inputs[2]);
    for (int64_t c = 0; shape_.has_bias && c < shape_.results; ++c) {
      weights->bias[static_cast<size_t>(c)] = load<float>(bias + c * shape_.bias_step);
    }
    parallel_for(panels(), threads_for(depth_ * shape_.results * kItem), [&](int64_t panel) {
      const int64_t first = panel * kPanel;
      const int64_t width = std::min(kPanel, vectors() * kLanes - first);
      const int64_t count = std::min(kPanel, shape_.results - first);
      float* to = weights->filter.data() + first * depth_;
      for (const int64_t offset : shape_.tap_offsets) {
        const std::byte* from = filter + offset + first * shape_.result_step;
        for (int64_t k = 0; k < shape_.sides.channels; ++k, to += width, from += shape_.channel_step) {
          for (int64_t c = 0; c < count; ++c) to[c] = load<float>(from + c * shape_.result_step);
        }
      }
    });
    return weights;
  }

  // Weights and biases of a panel, in rows of some columns.
  struct Panel {
    const float* weights;
    const float* biases;
    int64_t width;
  };

  // Makes sums that are NaN anew, of the taps that lie on elements.
  ANYDML_NOINLINE void repair(const Panel& panel, const std::byte* from, int64_t row, int64_t rows,
                              int64_t columns, float* results) const {
    const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
    Place place(shape_.sides, row);
    for (int64_t i = 0; i < rows; ++i, place.move(shape_.sides), results += panel.width) {
      const auto [top, bottom] = height.inside(place.y);
      const auto [left, right] = width.inside(place.x);
      if (bottom - top == height.taps && right - left == width.taps) continue;
      const std::byte* const window = from + place.image * batch_in +
                                      height.origin(place.y) * height.in_stride +
                                      width.origin(place.x) * width.in_stride;
      for (int64_t c = 0; c < columns; ++c) {
        if (results[c] == results[c]) continue;
        float sum = panel.biases[c];
        for (int64_t y = top; y < bottom; ++y) {
          for (int64_t x = left; x < right; ++x) {
            const float* w = panel.weights + (y * width.taps + x) * channels * panel.width + c;
            const std::byte* const at =
                window + y * height.dilation * height.in_stride + x * width.dilation * width.in_stride;
            for (int64_t k = 0; k < channels; ++k)
              sum = std::fma(load<float>(at + k * shape_.channel_in), w[k * panel.width], sum);
          }
        }
        results[c] = sum;
      }
    }
  }

  // Where rows of results go.
  struct Places {
    std::array<std::byte*, kMostRows> to;
    int64_t columns;
  };

  ANYDML_NOINLINE void finish(const Places& places, const float* results, int64_t rows, int64_t width) const {
    constexpr int64_t kStep = kLanesOf<float>;
    for (int64_t i = 0; i < rows; ++i, results += width) {
      std::byte* const to = places.to[static_cast<size_t>(i)];
      for (int64_t c = 0; c < places.columns; c += kStep) {
        const auto* const from = reinterpret_cast<const std::byte*>(results + c);
        // A sum of zeros is 0, whatever their signs.
        const FewSingles y = shape_.fused.applied<float>(load_lanes<float, float>(from) + 0.0f);
        if (c + kStep <= places.columns) {
          store_lanes<float, float>(to + c * kItem, y);
        } else {
          std::memcpy(to + c * kItem, &y, static_cast<size_t>((places.columns - c) * kItem));
        }
      }
    }
  }

  // Tiles of rows, as even as can be, by panels of columns.
  void compute(const Weights& weights, const std::byte* from, std::byte* to, float* gathered, int64_t tiles,
               Range block, Range columns) const {
    const int64_t begin = share_begin(block.first, tiles, rows_);
    const int64_t end = share_begin(block.second, tiles, rows_);
    const std::byte* rows = from + begin * step_;
    int64_t step = step_;
    if (!is_direct_) {
      gather(from, begin, end, gathered);
      rows = reinterpret_cast<const std::byte*>(gathered);
      step = depth_ * kItem;
    }
    // With room for what is read with the last.
    alignas(sizeof(Columns)) float results[kMostRows * kPanel + kLanesOf<float>];
    for (int64_t panel = columns.first; panel < columns.second; ++panel) {
      const int64_t first = panel * kPanel;
      const bool is_whole = vectors() - panel * 2 > 1;
      const int64_t width = is_whole ? kPanel : kLanes;
      const float* const weights_of_panel = weights.filter.data() + first * depth_;
      DenseTile tile{nullptr,
                     step,
                     kItem,
                     depth_,
                     reinterpret_cast<const std::byte*>(weights_of_panel),
                     width * kItem,
                     weights.bias.data() + first,
                     0};
      Places places{{}, std::min(kPanel, shape_.results - first)};
      for (int64_t t = block.first; t < block.second; ++t) {
        const int64_t row = share_begin(t, tiles, rows_);
        const int64_t count = share_begin(t + 1, tiles, rows_) - row;
        tile.from = rows + (row - begin) * step;
        Place place(shape_.sides, row);
        for (int64_t i = 0; i < count; ++i, place.move(shape_.sides)) {
          places.to[static_cast<size_t>(i)] = to + place.out(shape_.sides) + first * kItem;
        }
        kMultiplyTile[is_whole][static_cast<size_t>(count - 1)](tile, results);
        if (has_padding_ && has_nan(results, count * width)) {
          repair({weights_of_panel, weights.bias.data() + first, width}, from, row, count, places.columns,
                 results);
        }
        finish(places, results, count, width);
      }
    }
  }

  // Of a result, in the order of the rows.
  struct Place {
    int64_t image, y, x;

    Place(const Sides& sides, int64_t row)
        : image(row / sides.width.places / sides.height.places),
          y(row / sides.width.places % sides.height.places),
          x(row % sides.width.places) {}

    void move(const Sides& sides) {
      if (++x < sides.width.places) return;
      x = 0;
      if (++y < sides.height.places) return;
      y = 0;
      ++image;
    }
    int64_t out(const Sides& sides) const {
      return image * sides.batch_out + y * sides.height.out_stride + x * sides.width.out_stride;
    }
  };

  // What lies under the filter at some places, a row for each, zeros for padding.
  void gather(const std::byte* from, int64_t begin, int64_t end, float* to) const {
    const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
    Place place(shape_.sides, begin);
    for (int64_t row = begin; row < end;) {
      // Of places side by side.
      const int64_t count = std::min(end - row, width.places - place.x);
      const auto [top, bottom] = height.inside(place.y);
      const std::byte* const image = from + place.image * batch_in;
      for (int64_t y = 0; y < height.taps; ++y) {
        const int64_t line = height.origin(place.y) + y * height.dilation;
        float* const part = to + y * width.taps * channels;
        if (y < top || y >= bottom) {
          for (int64_t i = 0; i < count; ++i) {
            std::fill_n(part + i * depth_, width.taps * channels, 0.0f);
          }
        } else if (shape_.channel_in == kItem) {
          gather_channels(image + line * height.in_stride, place.x, count, part);
        } else {
          gather_places(image + line * height.in_stride, place.x, count, part);
        }
      }
      row += count;
      to += count * depth_;
      place = Place(shape_.sides, row);
    }
  }

  // Where channels follow each other.
  void gather_channels(const std::byte* line, int64_t place, int64_t count, float* to) const {
    const int64_t channels = shape_.sides.channels;
    const Sliding& width = shape_.sides.width;
    const bool is_line = width.dilation == 1 && width.in_stride == channels * kItem;
    for (int64_t i = 0; i < count; ++i, to += depth_) {
      const auto [first, last] = width.inside(place + i);
      const std::byte* const at = line + width.origin(place + i) * width.in_stride;
      std::fill_n(to, first * channels, 0.0f);
      const int64_t step = is_line ? last - first : 1;
      for (int64_t x = first; x < last; x += step) {
        std::memcpy(to + x * channels, at + x * width.dilation * width.in_stride,
                    static_cast<size_t>(step * channels * kItem));
      }
      std::fill_n(to + last * channels, (width.taps - last) * channels, 0.0f);
    }
  }

  // Where they do not: one tap and channel of all places after the other, as channels may be few.
  void gather_places(const std::byte* line, int64_t place, int64_t count, float* to) const {
    const Sliding& width = shape_.sides.width;
    for (int64_t x = 0; x < width.taps; ++x) {
      const int64_t first = width.origin(place) + x * width.dilation;
      // Those before which, and at which, the tap lies on an element: 0 <= first + i * stride < size.
      const int64_t begin = std::clamp<int64_t>((width.stride - 1 - first) / width.stride, 0, count);
      const int64_t end =
          std::clamp<int64_t>((width.size - first + width.stride - 1) / width.stride, begin, count);
      for (int64_t c = 0; c < shape_.sides.channels; ++c, ++to) {
        const std::byte* const from = line + first * width.in_stride + c * shape_.channel_in;
        for (int64_t i = 0; i < begin; ++i) to[i * depth_] = 0;
        for (int64_t i = begin; i < end; ++i) to[i * depth_] = load<float>(from + i * step_);
        for (int64_t i = end; i < count; ++i) to[i * depth_] = 0;
      }
    }
  }

  DenseShape shape_;
  int64_t depth_;
  int64_t rows_ = 0;
  // From row to row, where the input itself is the left matrix.
  int64_t step_ = 0;
  bool is_direct_ = false;
  bool has_padding_ = false;
  std::shared_ptr<const Weights> known_;
};

ANYDML_ISA_END
