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
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "dense/tile.h"
#include "dense/tuning.h"
#include "nhwc/fused_activation.h"
#include "nhwc/gathering.h"
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
                 !take_one_set(step_) && has_no_padding(height) && has_no_padding(width);
    has_padding_ = lies_on_padding(height) || lies_on_padding(width);
    row_ = depth_ + (take_one_set(depth_ * kItem) ? kLineSingles : 0);
    const int64_t own = channels * kItem;
    is_copied_ = lies_on_padding(width) || take_one_set(step_);
    if (is_copied_) {
      place_ = own + (take_one_set(width.stride * own) ? kLineSingles * kItem : 0);
    } else {
      place_ = width.in_stride;
    }
    together_ = width.dilation == 1 && place_ == own ? width.taps : 1;
    line_ = ((width.places - 1) * width.stride + (width.taps - 1) * width.dilation + 1) * std::abs(place_);
    by_lines_ = width.taps > 1 && shape_.channel_in == kItem && width.places >= kLinePlaces &&
                width.stride <= width.taps && line_ > 0 &&
                line_ + width.places * kPanel * kItem <= kMostLineBytes;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const std::shared_ptr<const Weights> weights = known_ ? known_ : packed(inputs);
    const auto* const from = static_cast<const std::byte*>(inputs[0]);
    auto* const to = static_cast<std::byte*>(outputs[0]);
    if (by_lines_) return run_lines(*weights, from, to);
    const int threads = threads_for(rows_ * depth_ * shape_.results / kMultiplicationsOfAByte);
    const int64_t many = threads > 1 ? threads * kDenseTasks : 1;
    // The columns are shared out too where the weights are more than what they weigh; for each share the rows
    // are brought together anew.
    const int64_t most = is_direct_ ? many : std::max<int64_t>(1, shape_.results / kGatheringColumns);
    const int64_t parts = shape_.results > rows_ ? std::min({panels(), many, most}) : 1;
    const int64_t tiles = (rows_ + kMostRows - 1) / kMostRows;
    const int64_t size = tiles * kMostRows * row_ * kItem;
    // More where the weights, which each block reads, are many.
    const int64_t most_bytes =
        std::clamp(depth_ * shape_.results * kItem / 2, kGatheredBytes, kMostGatheredBytes);
    const int64_t blocks = std::min(tiles, std::max(size / most_bytes, (many + parts - 1) / parts));
    const int64_t room = is_direct_ ? 0 : (tiles + blocks - 1) / blocks * kMostRows * row_;
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
    ResultPlace place(shape_.sides, row);
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
    constexpr int64_t kStep = sizeof(Singles) / kItem;
    for (int64_t i = 0; i < rows; ++i, results += width) {
      std::byte* const to = places.to[static_cast<size_t>(i)];
      for (int64_t c = 0; c < places.columns; c += kStep) {
        const auto* const from = reinterpret_cast<const std::byte*>(results + c);
        // A sum of zeros is 0, whatever their signs.
        const Singles y = shape_.fused.applied<float>(load_numbers<float, float, Singles>(from) + 0.0f);
        if (c + kStep <= places.columns) {
          store(to + c * kItem, y);
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
      Gathering{shape_.sides, shape_.channel_in, row_, step_}.gather(from, begin, end, gathered);
      rows = reinterpret_cast<const std::byte*>(gathered);
      step = row_ * kItem;
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
        ResultPlace place(shape_.sides, row);
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

  // Whether rows so far apart take each other's place in the first cache.
  static bool take_one_set(int64_t step) { return kMostRows > 8 && step % 4096 == 0; }

  // Without rows that are gathered: of each line of results, windows lie a step apart in the lines of the
  // input, or in copies that have the padding of both sides.
  void run_lines(const Weights& weights, const std::byte* from, std::byte* to) const {
    const int64_t batch = shape_.sides.batch;
    const Sliding& height = shape_.sides.height;
    const Sliding& width = shape_.sides.width;
    const int threads = threads_for(rows_ * depth_ * shape_.results / kMultiplicationsOfAByte);
    const int64_t many = threads > 1 ? threads * kDenseTasks : 1;
    const int64_t most = std::max<int64_t>(1, shape_.results / kGatheringColumns);
    const int64_t parts = shape_.results > rows_ ? std::min({panels(), many, most}) : 1;
    const int64_t reach = (height.taps - 1) * height.dilation;
    const int64_t at_once = std::max<int64_t>(1, (kLinesBytes / line_ - reach - 1) / height.stride + 1);
    const int64_t blocks =
        std::min(height.places, std::max((height.places + at_once - 1) / at_once, many / parts / batch));
    const int64_t lines = (height.places + blocks - 1) / blocks;
    const int64_t sums = lines * width.places * kPanel;
    const int64_t copied = is_copied_ ? ((lines - 1) * height.stride + reach + 1) * line_ / kItem : 0;
    const int64_t tasks = batch * blocks * parts;
    // With room for what is read with the last.
    const int64_t room = sums + copied + kLanesOf<float>;
    const std::unique_ptr<float[]> rooms(
        new float[static_cast<size_t>(std::min<int64_t>(threads, tasks) * room)]);
    parallel_for(tasks, threads, [&](int64_t i, int worker) {
      const int64_t block = i / parts % blocks;
      const int64_t part = i % parts;
      const int64_t image = i / parts / blocks;
      float* const own = rooms.get() + worker * room;
      const Range some{share_begin(block, blocks, height.places),
                       share_begin(block + 1, blocks, height.places)};
      const std::byte* const picture = from + image * shape_.sides.batch_in;
      const int64_t origin = height.origin(some.first);
      const std::byte* first = picture + origin * height.in_stride + width.origin(0) * width.in_stride;
      int64_t line = height.in_stride;
      if (is_copied_) {
        auto* const copies = reinterpret_cast<std::byte*>(own + sums);
        copy_lines(picture, origin, height.origin(some.second - 1) + reach + 1, copies);
        first = copies;
        line = line_;
      }
      for (int64_t panel = share_begin(part, parts, panels()); panel < share_begin(part + 1, parts, panels());
           ++panel) {
        add_lines(weights, first, line, some, panel, own);
        finish_lines(weights, from, to, image, some, panel, own);
      }
    });
  }

  // Lines of the input with what lies under the filter beside them, zeros for padding; those that there are.
  void copy_lines(const std::byte* picture, int64_t begin, int64_t end, std::byte* to) const {
    const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
    const auto own = static_cast<size_t>(channels * kItem);
    const int64_t places = line_ / place_;
    const int64_t first = std::clamp<int64_t>(-width.origin(0), 0, places);
    const int64_t last = std::clamp<int64_t>(width.size - width.origin(0), first, places);
    for (int64_t i = begin; i < end; ++i, to += line_) {
      if (i < 0 || i >= height.size) continue;
      const std::byte* const line = picture + i * height.in_stride + width.origin(0) * width.in_stride;
      std::memset(to, 0, static_cast<size_t>(first * place_));
      if (place_ == width.in_stride && place_ == channels * kItem) {
        std::memcpy(to + first * place_, line + first * place_, static_cast<size_t>((last - first) * place_));
      } else {
        for (int64_t x = first; x < last; ++x) {
          std::memcpy(to + x * place_, line + x * width.in_stride, own);
        }
      }
      std::memset(to + last * place_, 0, static_cast<size_t>((places - last) * place_));
    }
  }

  // The sums of lines of results in a panel, taps that follow each other at once: their weights stay in the
  // caches for all lines. A line's taps on padding above and below are left out, which adds zeros less.
  void add_lines(const Weights& weights, const std::byte* first, int64_t line, Range lines, int64_t panel,
                 float* sums) const {
    const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
    const bool is_whole = vectors() - panel * 2 > 1;
    const int64_t columns = is_whole ? kPanel : kLanes;
    const float* const biases = weights.bias.data() + panel * kPanel;
    const float* of_taps = weights.filter.data() + panel * kPanel * depth_;
    const int64_t tiles = (width.places + kMostRows - 1) / kMostRows;
    DenseTile tile{nullptr, width.stride * place_, kItem,  together_ * channels,
                   nullptr, columns * kItem,       biases, 0};
    for (int64_t y = 0; y < height.taps; ++y) {
      for (int64_t x = 0; x < width.taps; x += together_, of_taps += together_ * channels * columns) {
        tile.weights = reinterpret_cast<const std::byte*>(of_taps);
        for (int64_t i = lines.first; i < lines.second; ++i) {
          const auto [top, bottom] = height.inside(i);
          if (y < top || y >= bottom) continue;
          const int64_t below = height.origin(i) - height.origin(lines.first) + y * height.dilation;
          const std::byte* const from = first + below * line + x * width.dilation * place_;
          const bool is_first = y == top && x == 0;
          tile.start_step = is_first ? 0 : columns;
          for (int64_t t = 0; t < tiles; ++t) {
            const int64_t place = share_begin(t, tiles, width.places);
            const int64_t count = share_begin(t + 1, tiles, width.places) - place;
            float* const to = sums + ((i - lines.first) * width.places + place) * columns;
            tile.from = from + place * tile.row_step;
            tile.start = is_first ? biases : to;
            kMultiplyTile[is_whole][static_cast<size_t>(count - 1)](tile, to);
          }
        }
      }
    }
  }

  void finish_lines(const Weights& weights, const std::byte* from, std::byte* to, int64_t image, Range lines,
                    int64_t panel, float* sums) const {
    const auto& [batch, batch_in, batch_out, channels, height, width] = shape_.sides;
    const int64_t columns = vectors() - panel * 2 > 1 ? kPanel : kLanes;
    const float* const biases = weights.bias.data() + panel * kPanel;
    const Panel of{weights.filter.data() + panel * kPanel * depth_, biases, columns};
    Places places{{}, std::min(kPanel, shape_.results - panel * kPanel)};
    for (int64_t i = lines.first; i < lines.second; ++i) {
      const auto [top, bottom] = height.inside(i);
      std::byte* const line = to + image * batch_out + i * height.out_stride + panel * kPanel * kItem;
      for (int64_t x = 0; x < width.places; x += kMostRows) {
        const int64_t count = std::min<int64_t>(kMostRows, width.places - x);
        float* const results = sums + ((i - lines.first) * width.places + x) * columns;
        for (int64_t k = 0; k < count; ++k) {
          places.to[static_cast<size_t>(k)] = line + (x + k) * width.out_stride;
          if (top >= bottom) std::copy_n(biases, columns, results + k * columns);
        }
        if (has_padding_ && has_nan(results, count * columns)) {
          const int64_t row = (image * height.places + i) * width.places + x;
          repair(of, from, row, count, places.columns, results);
        }
        finish(places, results, count, columns);
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
  int64_t row_ = 0;  // elements from one gathered row to the next
  // Of lines: whether they are copied, bytes from place to place and of a copied line, and taps whose
  // elements follow each other.
  bool by_lines_ = false;
  bool is_copied_ = false;
  int64_t place_ = 0;
  int64_t line_ = 0;
  int64_t together_ = 1;
  std::shared_ptr<const Weights> known_;
};

ANYDML_ISA_END
