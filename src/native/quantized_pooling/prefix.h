// A box filter by prefix sums: running sums of columns over a window's rows, then differences of the prefix
// sums along a row, so that an output costs the same whatever the window's size and dilation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "quantized_pooling/column_sums.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/lanes.h"
#include "quantized_pooling/outputs.h"
#include "quantized_pooling/tuning.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// to[x + lag] = to[x] + from[x], from to[x] = 0 for x < lag on: sums of every lag-th column before x + lag.
template <class Sum>
void prefix_sums(Sum* to, const Sum* from, int64_t count, int64_t lag) {
  using Sums = Vector<Sum, 8>;
  std::fill_n(to, lag, Sum{0});
  int64_t x = 0;
  if (lag == 1) {
    Sum sum = 0;
    for (; x < count; ++x) to[x + 1] = sum = static_cast<Sum>(sum + from[x]);
    return;
  }
  if (lag >= 8) {
    for (; x + 8 <= count; x += 8) {
      store_vector(to + x + lag, load_vector<Sums>(to + x) + load_vector<Sums>(from + x));
    }
  }
  for (; x < count; ++x) to[x + lag] = static_cast<Sum>(to[x] + from[x]);
}

// A pass over depth and height costs as many rows for each that enters as the other dimension has taps.
inline Geometry with_shorter_depth(Geometry geometry) {
  if (geometry.windows[0].taps_inside() > geometry.windows[1].taps_inside()) {
    std::swap(geometry.windows[0], geometry.windows[1]);
  }
  return geometry;
}

// Sum holds the sum of a window; prefix sums and those of columns wrap.
template <class Sum>
class PrefixPooling final : public Plan {
 public:
  PrefixPooling(const Geometry& geometry, std::string description)
      : Plan(std::move(description)), geometry_(with_shorter_depth(geometry)) {
    const Window& width = geometry_.windows[2];
    const int64_t extent = std::min(width.extent(), width.input);
    const int64_t fitting = std::max<int64_t>(kPrefixColumns - extent, extent) / width.stride + 1;
    tile_ = std::min(width.output, fitting);
    columns_ = std::min((tile_ - 1) * width.stride + extent, width.input);
    lag_ = std::min(width.dilation, width.input);
    row_step_ = RunningColumns<Sum>::grid(geometry_.windows[1]);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t rows = geometry_.rows();
    const int threads = threads_for(geometry_.bytes());
    const int64_t parts = std::min<int64_t>(threads, rows);
    parallel_for(parts, threads, [&](int64_t i) {
      Worker worker(*this, inputs, outputs);
      for_each_row_range(geometry_, share_begin(i, parts, rows), share_begin(i + 1, parts, rows),
                         [&](const RowRange& r) { worker.pool(r); });
    });
  }

 private:
  // A window of a tile, in columns of scratch memory: its sum is prefixes[end] - prefixes[begin].
  struct TileWindow {
    uint32_t begin;
    uint32_t end;
    uint32_t inside;
    uint32_t counted;
  };

  // One thread with its scratch memory.
  class Worker {
   public:
    Worker(const PrefixPooling& plan, const void* const* inputs, void* const* outputs)
        : plan_(plan),
          g_(plan.geometry_),
          inputs_(inputs),
          outputs_(outputs),
          running_(plan.geometry_),
          columns_(static_cast<size_t>(plan.columns_)),
          prefixes_(static_cast<size_t>(plan.columns_ + plan.lag_)),
          windows_(static_cast<size_t>(plan.tile_)) {}

    void pool(const RowRange& rows) {
      const auto* in = static_cast<const std::byte*>(inputs_[0]) + rows.batch * g_.batch.in +
                       rows.channel * g_.channels.in;
      auto* out = static_cast<std::byte*>(outputs_[0]) + rows.batch * g_.batch.out +
                  rows.channel * g_.channels.out + rows.depth * g_.windows[0].out_stride;
      set_channel(rows.channel);
      const Taps depth = g_.windows[0].taps(rows.depth);
      for (int64_t begin = 0; begin < g_.windows[2].output; begin += plan_.tile_) {
        set_tile(begin);
        pool_tile(in, out + begin * g_.windows[2].out_stride, depth, rows);
      }
    }

   private:
    void set_channel(int64_t channel) {
      if (channel == channel_) return;
      channel_ = channel;
      quantization_ = g_.quantization(inputs_, channel);
      for (int64_t i = 0; i < RequantizeBatch::kMost; ++i) batch_.set_quantization(i, quantization_);
    }

    void set_tile(int64_t begin) {
      if (begin == tile_begin_) return;
      tile_begin_ = begin;
      const Window& width = g_.windows[2];
      outputs_of_tile_ = std::min(plan_.tile_, width.output - begin);
      int64_t end = 0;
      first_column_ = width.input;
      for (int64_t i = 0; i < outputs_of_tile_; ++i) {
        const Taps taps = width.taps(begin + i);
        if (taps.inside == 0) continue;
        first_column_ = std::min(first_column_, taps.first);
        end = std::max(end, taps.first + (taps.inside - 1) * plan_.lag_ + 1);
      }
      columns_of_tile_ = std::max<int64_t>(end - first_column_, 0);
      for (int64_t i = 0; i < outputs_of_tile_; ++i) {
        const Taps taps = width.taps(begin + i);
        const int64_t first = taps.inside == 0 ? 0 : taps.first - first_column_;
        windows_[static_cast<size_t>(i)] = {
            static_cast<uint32_t>(first), static_cast<uint32_t>(first + taps.inside * plan_.lag_),
            static_cast<uint32_t>(taps.inside), static_cast<uint32_t>(taps.counted)};
      }
    }

    void pool_tile(const std::byte* in, std::byte* out, const Taps& depth, const RowRange& rows) {
      const Window& height = g_.windows[1];
      const int64_t grids = std::min(plan_.row_step_, rows.end - rows.begin);
      in += first_column_ * g_.windows[2].in_stride;
      for (int64_t grid = 0; grid < grids; ++grid) {
        Taps before{};
        for (int64_t oh = rows.begin + grid; oh < rows.end; oh += plan_.row_step_) {
          const Taps taps = height.taps(oh);
          running_.move(columns_.data(), columns_of_tile_, in, depth, before, taps);
          prefix_sums(prefixes_.data(), columns_.data(), columns_of_tile_, plan_.lag_);
          pool_row(out + oh * height.out_stride, depth.inside * taps.inside, depth.counted * taps.counted);
          before = taps;
        }
      }
    }

    void pool_row(std::byte* out, int64_t inside, int64_t counted) {
      const int64_t out_stride = g_.windows[2].out_stride;
      for (int64_t first = 0; first < outputs_of_tile_; first += RequantizeBatch::kMost) {
        const int64_t count = std::min(RequantizeBatch::kMost, outputs_of_tile_ - first);
        for (int64_t i = 0; i < count; ++i) {
          const TileWindow& window = windows_[static_cast<size_t>(first + i)];
          const auto sum = static_cast<Sum>(prefixes_[window.end] - prefixes_[window.begin]);
          batch_.sums[i] = static_cast<double>(static_cast<int64_t>(sum));
          batch_.set_counts(i, inside * window.inside, counted * window.counted, quantization_);
        }
        batch_.requantize(count);
        std::byte* const to = out + first * out_stride;
        if (out_stride == 1) {
          std::memcpy(to, batch_.outputs, static_cast<size_t>(count));
        } else {
          for (int64_t i = 0; i < count; ++i) store(to + i * out_stride, batch_.outputs[i]);
        }
      }
    }

    const PrefixPooling& plan_;
    const Geometry& g_;
    const void* const* inputs_;
    void* const* outputs_;
    RunningColumns<Sum> running_;
    std::vector<Sum> columns_;   // sums of the tile's columns over a window's rows
    std::vector<Sum> prefixes_;  // of these
    std::vector<TileWindow> windows_;
    RequantizeBatch batch_{};
    Quantization quantization_{};
    int64_t channel_ = -1;
    int64_t tile_begin_ = -1;
    int64_t outputs_of_tile_ = 0;
    int64_t first_column_ = 0;  // of the tile
    int64_t columns_of_tile_ = 0;
  };

  Geometry geometry_;
  int64_t tile_;      // outputs along the width that are made at once
  int64_t columns_;   // columns that these need, at most
  int64_t lag_;       // from one tap of a window to the next
  int64_t row_step_;  // from a row of outputs to the next whose windows' rows are on the same grid
};

}  // namespace
ANYDML_ISA_END
