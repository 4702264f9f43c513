// A separable box filter row by row: running sums of columns over a window's rows, then sums of neighbouring
// columns, then requantisation by a proven affine map. Sums have 24 bits, so that floats hold them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
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

ANYDML_ISA_BEGIN
namespace {

// to[x] = from[x] + from[x + distance], for whole vectors; `to` may be `from`.
inline void add_neighbours(uint32_t* to, const uint32_t* from, int64_t count, int64_t distance) {
  using Sums = Vector<uint32_t, 8>;
  for (int64_t x = 0; x < count; x += 8) {
    store_vector(to + x, load_vector<Sums>(from + x) + load_vector<Sums>(from + x + distance));
  }
}

class RowPooling final : public Plan {
 public:
  // Why it declines; empty where it pays, and scratch memory is bounded.
  static std::string declined(const Geometry& g) {
    const Window& width = g.windows[2];
    if (g.window_taps() > most_taps(24)) return "sums of more than 24 bits";
    if (width.extent() > kMostRowColumns / 2 || width.size / kGroup + kGroup > kMostNeighbours) {
      return "windows are too wide";
    }
    if (width.sums_each_alone()) return "each window along a row is summed by itself";
    if (width.stride > kSparseStride * width.size) return "windows leave most columns unread";
    return width.border_outputs() > kMostRowBorder ? "too many windows reach into padding" : "";
  }

  RowPooling(const Geometry& geometry, std::string description)
      : Plan(std::move(description)), geometry_(geometry), segments_(segments_of(geometry.windows[2])) {
    const auto& [depth, height, width] = geometry_.windows;
    const int64_t fitting = (kMostRowColumns - width.extent()) / width.stride + 1;
    tile_ = std::min(width.output, fitting);
    columns_ = (tile_ - 1) * width.stride + width.extent();
    row_step_ = RunningColumns<uint32_t>::grid(height);
    has_groups_ = width.size >= kFewNeighbours;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t rows = geometry_.rows();
    const int threads = threads_for(geometry_.bytes());
    const int64_t parts = std::min<int64_t>(threads, rows);
    std::vector<Scratch> scratch;
    for (int64_t i = 0; i < parts; ++i) scratch.emplace_back(*this);
    parallel_for(parts, threads, [&](int64_t i) {
      Worker worker{*this, inputs, outputs, scratch[static_cast<size_t>(i)]};
      for_each_row_range(geometry_, share_begin(i, parts, rows), share_begin(i + 1, parts, rows),
                         [&](const RowRange& r) { worker.pool(r); });
    });
  }

 private:
  static constexpr int64_t kGroup = 8;   // taps
  static constexpr int64_t kSlack = 64;  // what whole vectors read beyond the last column

  // The scratch memory of one thread: at most some 700 KiB.
  struct Scratch {
    explicit Scratch(const RowPooling& plan)
        : columns(static_cast<size_t>(plan.columns_ + plan.slack())),
          groups(plan.has_groups_ ? columns.size() : 0),
          written(static_cast<size_t>(plan.tile_ + kSlack)),
          outputs(static_cast<size_t>(plan.tile_ + kSlack)),
          running(plan.geometry_),
          taps(static_cast<size_t>(kMostNeighbours)) {}

    std::vector<uint32_t> columns;  // sums of columns over the window's rows
    std::vector<uint32_t> groups;   // sums of 8 taps along the width
    std::vector<uint32_t> written;
    std::vector<uint8_t> outputs;
    RunningColumns<uint32_t> running;
    std::vector<const uint32_t*> taps;
    AffineMapCache maps;
  };

  // Groups are made of what lies after the last column too.
  int64_t slack() const { return kSlack + (has_groups_ ? kGroup * geometry_.windows[2].dilation : 0); }

  struct Worker {
    const RowPooling& plan;
    const void* const* inputs;
    void* const* outputs;
    Scratch& scratch;

    void pool(const RowRange& rows) {
      const Geometry& g = plan.geometry_;
      const auto* in =
          static_cast<const std::byte*>(inputs[0]) + rows.batch * g.batch.in + rows.channel * g.channels.in;
      auto* out = static_cast<std::byte*>(outputs[0]) + rows.batch * g.batch.out +
                  rows.channel * g.channels.out + rows.depth * g.windows[0].out_stride;
      scratch.maps.set(g.quantization(inputs, rows.channel), g.window_taps());
      const Taps depth = g.windows[0].taps(rows.depth);
      for (int64_t begin = 0; begin < g.windows[2].output; begin += plan.tile_) {
        pool_tile(in, out, depth, rows, begin);
      }
    }

    // Rows whose windows' rows are on the same grid follow each other, so that sums are carried on.
    void pool_tile(const std::byte* in, std::byte* out, const Taps& depth, const RowRange& rows,
                   int64_t begin) {
      const Window& height = plan.geometry_.windows[1];
      const int64_t end = std::min(begin + plan.tile_, plan.geometry_.windows[2].output);
      const int64_t grids = std::min(plan.row_step_, rows.end - rows.begin);
      for (int64_t grid = 0; grid < grids; ++grid) {
        Taps before{};
        for (int64_t oh = rows.begin + grid; oh < rows.end; oh += plan.row_step_) {
          const Taps taps = height.taps(oh);
          sum_columns(in, depth, taps, before, begin, end);
          pool_row(out + oh * height.out_stride, depth, taps, begin, end);
          before = taps;
        }
      }
    }

    // Column x of the scratch is the input's column begin * stride - start_padding + x. Beyond the input it
    // holds as many zero points as there are rows: these add nothing once they are taken off again.
    void sum_columns(const std::byte* in, const Taps& depth, const Taps& now, const Taps& before,
                     int64_t begin, int64_t end) {
      const Window& width = plan.geometry_.windows[2];
      const int64_t origin = begin * width.stride - width.start_padding;
      const int64_t columns = (end - begin - 1) * width.stride + width.extent();
      const int64_t first = std::clamp<int64_t>(0 - origin, 0, columns);
      const int64_t last = std::clamp(width.input - origin, first, columns);
      uint32_t* sums = scratch.columns.data();
      if (first < last) {
        scratch.running.move(sums + first, last - first, in + (origin + first) * width.in_stride, depth,
                             before, now);
      }
      const auto beyond = static_cast<uint32_t>(zero_point() * depth.inside * now.inside);
      std::fill(sums, sums + first, beyond);
      std::fill(sums + last, sums + columns, beyond);
    }

    void pool_row(std::byte* out, const Taps& depth, const Taps& height, int64_t begin, int64_t end) {
      const Window& width = plan.geometry_.windows[2];
      const bool packed = width.out_stride == 1;
      auto* row = packed ? reinterpret_cast<uint8_t*>(out + begin) : scratch.outputs.data();
      const std::span<const uint32_t* const> taps = neighbours(end - begin, width);
      requantize_segments(write_sums(taps, end - begin, width.stride), depth, height, begin, end, row);
      if (packed) return;
      for (int64_t o = begin; o < end; ++o) store(out + o * width.out_stride, row[o - begin]);
    }

    // The columns, or groups of 8 of them, whose sum is a window's.
    std::span<const uint32_t* const> neighbours(int64_t outputs, const Window& width) {
      const uint32_t* columns = scratch.columns.data();
      size_t used = 0;
      int64_t k = 0;
      if (plan.has_groups_) {
        const uint32_t* groups = make_groups((outputs - 1) * width.stride + width.extent(), width.dilation);
        for (; k + kGroup <= width.size; k += kGroup) scratch.taps[used++] = groups + k * width.dilation;
      }
      for (; k < width.size; ++k) scratch.taps[used++] = columns + k * width.dilation;
      return {scratch.taps.data(), used};
    }

    // eights[x] = columns[x] + columns[x + dilation] + ... + columns[x + 7 * dilation]
    const uint32_t* make_groups(int64_t columns, int64_t dilation) {
      uint32_t* groups = scratch.groups.data();
      const int64_t count = columns - 7 * dilation;
      add_neighbours(groups, scratch.columns.data(), count + 6 * dilation, dilation);
      add_neighbours(groups, groups, count + 4 * dilation, 2 * dilation);
      add_neighbours(groups, groups, count, 4 * dilation);
      return groups;
    }

    const uint32_t* write_sums(std::span<const uint32_t* const> taps, int64_t outputs, int64_t stride) {
      uint32_t* sums = scratch.written.data();
      std::fill_n(sums, outputs, 0U);
      for (const uint32_t* tap : taps) {
        if (stride == 1) {
          for (int64_t x = 0; x < outputs; ++x) sums[x] += tap[x];
        } else {
          for (int64_t x = 0; x < outputs; ++x) sums[x] += tap[x * stride];
        }
      }
      return sums;
    }

    void requantize_segments(const uint32_t* sums, const Taps& depth, const Taps& height, int64_t begin,
                             int64_t end, uint8_t* row) {
      const Quantization& z = scratch.maps.quantization();
      const int64_t rows = depth.inside * height.inside;
      const int64_t offset = rows * plan.geometry_.windows[2].size * zero_point();
      for (const Segment& segment : plan.segments_) {
        const int64_t from = std::max(segment.begin, begin) - begin;
        const int64_t to = std::min(segment.end, end) - begin;
        if (from >= to) continue;
        const int64_t count = depth.counted * height.counted * segment.counted;
        if (const AffineMap* map = scratch.maps.get(count, to - from)) {
          requantize_row(*map, z, sums, offset, from, to, row);
          continue;
        }
        for (int64_t x = from; x < to; ++x) {
          row[x] = static_cast<uint8_t>(requantize(sums[x] - offset, count, z));
        }
      }
    }

    int64_t zero_point() const { return scratch.maps.quantization().input_zero_point; }
  };

  Geometry geometry_;
  std::vector<Segment> segments_;
  int64_t tile_;      // outputs along the width that are made at once
  int64_t columns_;   // columns that these need
  int64_t row_step_;  // from a row of outputs to the next whose windows' rows are on the same grid
  bool has_groups_;
};

}  // namespace
ANYDML_ISA_END
