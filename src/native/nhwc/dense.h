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
#include <type_traits>
#include <utility>
#include <vector>

#include "convolution/weights.h"
#include "core/kernel_plan.h"
#include "dense/ahead.h"
#include "dense/singles.h"
#include "dense/tile.h"
#include "dense/tuning.h"
#include "nhwc/fused_activation.h"
#include "nhwc/gathering.h"
#include "nhwc/nan.h"
#include "nhwc/tuning.h"
#include "nhwc/windows.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

struct DenseShape {
  bool is_half;  // else singles; sums are singles anyway
  Sides sides;   // its channels are those of the input
  int64_t channel_in;
  int64_t results;
  // The filter's, in bytes: of each tap in its order, from channel to channel, from result to result.
  std::vector<int64_t> tap_offsets;
  int64_t channel_step;
  int64_t result_step;
  bool has_bias;
  int64_t bias_step;
  Fused fused;
  bool has_added = false;  // singles that are added to results, and lie as these do

  int64_t item() const { return is_half ? 2 : 4; }
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
    is_direct_ = shape_.tap_offsets.size() == 1 && !shape_.is_half && shape_.channel_in == kItem && is_even &&
                 !take_one_set(step_) && has_no_padding(height) && has_no_padding(width);
    has_padding_ = lies_on_padding(height) || lies_on_padding(width);
    row_ = depth_ + (take_one_set(depth_ * kItem) ? kLineSingles : 0);
    const int64_t own = channels * kItem;
    is_copied_ =
        lies_on_padding(width) || take_one_set(step_) || shape_.channel_in != kItem || shape_.is_half;
    if (is_copied_) {
      place_ = own + (take_one_set(width.stride * own) ? kLineSingles * kItem : 0);
    } else {
      place_ = width.in_stride;
    }
    together_ = width.dilation == 1 && place_ == own ? width.taps : 1;
    line_ = ((width.places - 1) * width.stride + (width.taps - 1) * width.dilation + 1) * std::abs(place_);
    by_lines_ = width.taps > 1 && width.places >= kLinePlaces && width.stride <= width.taps && line_ > 0 &&
                line_ + width.places * kPanel * kItem <= kMostLineBytes;
  }

  // Panel by panel, of each a row after the other; the last may be of half the width. Behind the last column
  // zeros fill a vector.
  struct Weights {
    Singles64 filter;
    std::vector<float> bias;
  };

  // Blocks of tiles of rows, or of lines, by parts of the columns; and what each needs, in singles.
  struct Division {
    int64_t blocks;
    int64_t parts;
    int64_t room;
    int64_t tasks() const { return blocks * parts; }
  };

  void run(const void* const* inputs, void* const* outputs) const override {
    const std::shared_ptr<const Weights> weights = this->weights(inputs);
    const auto* const added = shape_.has_added ? static_cast<const std::byte*>(inputs[3]) : nullptr;
    const int threads = threads_for(work());
    const Division division = divided(tasks_of(threads));
    const int64_t workers = std::min<int64_t>(threads, division.tasks());
    const Scratch rooms(workers * division.room * 4);
    parallel_for(division.tasks(), threads, [&](int64_t i, int worker) {
      compute(division, *weights, static_cast<const std::byte*>(inputs[0]),
              static_cast<std::byte*>(outputs[0]), i, rooms.floats() + worker * division.room, added);
    });
  }

  // In bytes that could be moved meanwhile.
  int64_t work() const { return rows_ * depth_ * shape_.results / kMultiplicationsOfAByte; }
  int64_t weights_bytes() const { return depth_ * shape_.results * kItem; }
  static int64_t tasks_of(int threads) { return threads > 1 ? threads * kDenseTasks : 1; }
  std::shared_ptr<const Weights> weights(const void* const* inputs) const {
    return known_ ? known_ : packed(inputs);
  }

  // Into so many tasks or more, where there are as many tiles.
  Division divided(int64_t tasks) const {
    // The columns are shared out too where the weights are more than what they weigh, into half as many
    // tasks, so that fewer read the same; for each share the rows are brought together anew.
    const bool has_few_rows = shape_.results > rows_;
    const int64_t most = is_direct_ ? tasks : std::max<int64_t>(1, shape_.results / kGatheringColumns);
    const int64_t parts = has_few_rows ? std::min({panels(), tasks, most}) : 1;
    const int64_t wanted = std::max<int64_t>(1, tasks / (has_few_rows ? 2 : 1) / parts);
    if (by_lines_) return divided_lines(parts, wanted);
    // More where the weights, which each block reads, are many.
    const int64_t most_bytes =
        std::clamp(depth_ * shape_.results * kItem / 2, kGatheredBytes, kMostGatheredBytes);
    const int64_t blocks =
        std::min(tiles(), std::max(tiles() * kMostRows * row_ * kItem / most_bytes, wanted));
    return {blocks, parts, is_direct_ ? 0 : (tiles() + blocks - 1) / blocks * kMostRows * row_};
  }

  // A task of a division, with room of its own.
  void compute(const Division& division, const Weights& weights, const std::byte* from, std::byte* to,
               int64_t task, float* room, const std::byte* added = nullptr) const {
    const auto share = [](int64_t i, int64_t count, int64_t all) {
      return Range{share_begin(i, count, all), share_begin(i + 1, count, all)};
    };
    const Range columns = share(task % division.parts, division.parts, panels());
    const int64_t block = task / division.parts;
    if (by_lines_) {
      const int64_t blocks = division.blocks / shape_.sides.batch;
      const Range lines = share(block % blocks, blocks, shape_.sides.height.places);
      return multiply_lines(weights, from, {to, added}, block / blocks, lines, columns, room);
    }
    multiply_rows(weights, from, {to, added}, room, share(block, division.blocks, tiles()), columns);
  }

  bool has_prepack() const override { return true; }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override { return prepacked(inputs); }
  std::unique_ptr<DenseConvolution> prepacked(const void* const* inputs) const {
    if (inputs[1] == nullptr || (shape_.has_bias && inputs[2] == nullptr)) return nullptr;
    auto plan = std::make_unique<DenseConvolution>(shape_, description());
    plan->known_ = packed(inputs);
    return plan;
  }

  int64_t prepack_bytes() const override {
    return known_ ? (known_->filter.size() + static_cast<int64_t>(known_->bias.size())) * kItem : 0;
  }

 private:
  static constexpr int64_t kItem = sizeof(float);
  static constexpr int64_t kLanes = kColumnLanes;

  using Range = std::pair<int64_t, int64_t>;

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
  int64_t columns_of(int64_t panel) const { return vectors() - panel * 2 > 1 ? kPanel : kLanes; }
  int64_t tiles() const { return (rows_ + kMostRows - 1) / kMostRows; }

  std::shared_ptr<const Weights> packed(const void* const* inputs) const {
    const auto columns = static_cast<size_t>(vectors() * kLanes);
    const auto weights = std::make_shared<Weights>(
        Weights{Singles64(depth_ * vectors() * kLanes), std::vector<float>(columns)});
    const auto* const filter = static_cast<const std::byte*>(inputs[1]);
    const auto* const bias = static_cast<const std::byte*>(inputs[2]);
    for (int64_t c = 0; shape_.has_bias && c < shape_.results; ++c) {
      weights->bias[static_cast<size_t>(c)] = load_float(shape_.is_half, bias + c * shape_.bias_step);
    }
    parallel_for(panels(), threads_for(depth_ * shape_.results * kItem), [&](int64_t panel) {
      const int64_t first = panel * kPanel;
      const int64_t width = std::min(kPanel, vectors() * kLanes - first);
      const int64_t count = std::min(kPanel, shape_.results - first);
      float* to = weights->filter.data() + first * depth_;
      for (const int64_t offset : shape_.tap_offsets) {
        const std::byte* from = filter + offset + first * shape_.result_step;
        for (int64_t k = 0; k < shape_.sides.channels; ++k, to += width, from += shape_.channel_step) {
          for (int64_t c = 0; c < count; ++c)
            to[c] = load_float(shape_.is_half, from + c * shape_.result_step);
          std::fill(to + count, to + width, 0.0f);
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
              sum = std::fma(load_float(shape_.is_half, at + k * shape_.channel_in), w[k * panel.width], sum);
          }
        }
        results[c] = sum;
      }
    }
  }

  // The results' tensor, and the one that is added to it, or null.
  struct Ends {
    std::byte* to;
    const std::byte* added;
  };
  // Where rows of results go, from where all do.
  struct Places {
    Ends ends;
    std::array<int64_t, kMostRows> offsets;
  };

  // Writes some columns of rows of results, from one on.
  ANYDML_NOINLINE void finish(const Places& places, int64_t first, int64_t columns, const float* results,
                              int64_t rows, int64_t width) const {
    if (shape_.is_half) return write<Half>(places, first, columns, results, rows, width);
    write<float>(places, first, columns, results, rows, width);
  }

  template <class T>
  ANYDML_INLINE void write(const Places& places, int64_t first, int64_t columns, const float* results,
                           int64_t rows, int64_t width) const {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    using Lane = std::conditional_t<std::is_same_v<T, float>, Columns, FewSingles>;
    constexpr auto kStep = static_cast<int64_t>(sizeof(Lane) / sizeof(float));
    for (int64_t i = 0; i < rows; ++i, results += width) {
      const int64_t offset = places.offsets[static_cast<size_t>(i)] + first * kSize;
      std::byte* const to = places.ends.to + offset;
      for (int64_t c = 0; c < columns; c += kStep) {
        const auto* const from = reinterpret_cast<const std::byte*>(results + c);
        // A sum of zeros is 0, whatever their signs.
        Lane y = load_numbers<float, float, Lane>(from) + 0.0f;
        if (places.ends.added != nullptr)
          y = y + first_lanes_of<Lane>(places.ends.added + offset + c * kItem, columns - c);
        y = shape_.fused.applied<float>(y);
        if (c + kStep <= columns) {
          store_numbers<T, float, Lane>(to + c * kSize, y);
        } else {
          store_first_lanes<T, Lane>(to + c * kSize, columns - c, y);
        }
      }
    }
  }

  // A vector of which no more than `count` elements are read.
  template <class Lane>
  ANYDML_INLINE static Lane first_lanes_of(const std::byte* from, int64_t count) {
    if (count >= static_cast<int64_t>(sizeof(Lane) / sizeof(float)))
      return load_numbers<float, float, Lane>(from);
    alignas(64) std::byte last[sizeof(Lane)] = {};
    std::memcpy(last, from, static_cast<size_t>(count * kItem));
    return load_numbers<float, float, Lane>(last);
  }

  // Likewise written: by a mask where there is one, as a copy of so few elements takes as long as a tile's
  // products of some of the depth.
  template <class T, class Lane>
  ANYDML_INLINE static void store_first_lanes(std::byte* to, int64_t count, Lane y) {
#if defined(ANYDML_ISA_AVX512)
    if constexpr (std::is_same_v<T, float>) {
      _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), (__m512)y);
      return;
    }
#endif
    alignas(64) std::byte last[sizeof(Lane) / sizeof(float) * sizeof(T)];
    store_numbers<T, float, Lane>(last, y);
    std::memcpy(to, last, static_cast<size_t>(count) * sizeof(T));
  }

  // Tiles of rows, as even as can be, by panels of columns.
  void multiply_rows(const Weights& weights, const std::byte* from, const Ends& ends, float* gathered,
                     Range block, Range columns) const {
    const int64_t begin = share_begin(block.first, tiles(), rows_);
    const int64_t end = share_begin(block.second, tiles(), rows_);
    const std::byte* rows = from + begin * step_;
    int64_t step = step_;
    if (!is_direct_) {
      Gathering{shape_.sides, shape_.is_half, shape_.channel_in, row_, step_}.gather(from, begin, end,
                                                                                     gathered);
      rows = reinterpret_cast<const std::byte*>(gathered);
      step = row_ * kItem;
    }
    // With room for what is read with the last.
    alignas(sizeof(Columns)) float results[kMostRows * kPanel + kLanesOf<float>];
    for (int64_t first = columns.first; first < columns.second;) {
      const int64_t last = std::min(first + panels_at_once(), columns.second);
      const int64_t slots = (block.second - block.first) * (last - first) * depth_;
      Ahead ahead;
      if (last < columns.second) {
        const int64_t next = std::min(last - first, columns.second - last) * kPanel * depth_ * kItem;
        ahead.add(weights.filter.data() + last * kPanel * depth_, next, next / slots + 1);
      }
      for (int64_t t = block.first; t < block.second; ++t) {
        const int64_t row = share_begin(t, tiles(), rows_);
        const int64_t count = share_begin(t + 1, tiles(), rows_) - row;
        const std::byte* const own = rows + (row - begin) * step;
        Places places{ends, {}};
        ResultPlace place(shape_.sides, row);
        for (int64_t k = 0; k < count; ++k, place.move(shape_.sides))
          places.offsets[static_cast<size_t>(k)] = place.out(shape_.sides);
        if (last == columns.second) {
          ahead = Ahead();
          const int64_t out = std::abs(shape_.sides.width.out_stride) * count;
          if (is_direct_) ahead.add(own + count * step, count * step, kLine);
          const int64_t next = places.offsets[0] + count * shape_.sides.width.out_stride;
          ahead.add(ends.to + next, out, kLine);
          if (ends.added != nullptr) ahead.add(ends.added + next, out, kLine);
        }
        for (int64_t panel = first; panel < last; ++panel) {
          const int64_t width = columns_of(panel);
          const Panel of{weights.filter.data() + panel * kPanel * depth_,
                         weights.bias.data() + panel * kPanel, width};
          DenseTile tile{
              own,           step,      kItem, depth_, reinterpret_cast<const std::byte*>(of.weights),
              width * kItem, of.biases, 0};
          ahead.prefetch(tile);
          kMultiplyTile[width == kPanel][static_cast<size_t>(count - 1)](tile, results);
          const int64_t some = std::min(kPanel, shape_.results - panel * kPanel);
          if (has_padding_ && may_have_nan(results, count * width))
            repair(of, from, row, count, some, results);
          finish(places, panel * kPanel, some, results, count, width);
        }
      }
      first = last;
    }
  }

  // Panels that pass over a tile of rows after each other: so many that they stay in the second cache beside
  // what the tiles read and write.
  int64_t panels_at_once() const {
    const int64_t panel = depth_ * kPanel * kItem;
    if (panels() * panel <= kWeightsAtOnce) return panels();
    return std::max<int64_t>(1, kWeightsOfBlock / panel);
  }

  // Whether rows so far apart take each other's place in the first cache.
  static bool take_one_set(int64_t step) { return kMostRows > 8 && step % 4096 == 0; }

  // Without rows that are gathered: of each line of results, windows lie a step apart in the lines of the
  // input, or in copies that have the padding of both sides (lines.h).
  struct Lines {
    int64_t image;
    Range range;
    // What lies under the first tap at the first line's first place, bytes from line to line, and to what
    // other taps multiply there.
    const std::byte* first;
    int64_t step;
    std::vector<int64_t> offsets;
  };
  Division divided_lines(int64_t parts, int64_t wanted) const;
  void multiply_lines(const Weights& weights, const std::byte* from, const Ends& ends, int64_t image,
                      Range range, Range columns, float* room) const;
  void copy_lines(const std::byte* picture, int64_t begin, int64_t end, std::byte* to) const;
  void multiply_panels(const Weights& weights, const std::byte* from, const Ends& ends, const Lines& lines,
                       Range panels, float* sums) const;
  int64_t parts_at_once() const;
  // How many lines before the one of a window's first tap the one of its last tap lies.
  int64_t reach() const {
    return std::max<int64_t>(0, shape_.sides.height.taps - 1) * shape_.sides.height.dilation;
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
