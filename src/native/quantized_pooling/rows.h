// Pooling row by row: columns are summed over a window's rows, then neighbouring sums, then requantised.
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
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/outputs.h"
#include "quantized_pooling/sums.h"

ANYDML_ISA_BEGIN
namespace {

class RowPooling final : public Plan {
 public:
  // Where it pays, and scratch is bounded; see the limits.
  static bool suits(const Geometry& g) {
    const Window& width = g.windows[2];
    if (g.window_taps() > kMostTaps || width.extent() > kMostColumns / 2) return false;
    if (width.size / kEight + kEight > kMostNeighbours) return false;
    const bool one = width.output == 1 || (width.size >= 32 && width.stride >= width.size);
    const bool sparse = width.stride > 4 * width.size;
    return !one && !sparse && width.edges() <= kMostEdges;
  }

  RowPooling(const Geometry& geometry, std::string description)
      : Plan(std::move(description)), geometry_(geometry), segments_(segments_of(geometry.windows[2])) {
    const auto& [depth, height, width] = geometry_.windows;
    const int64_t fitting = (kMostColumns - width.extent()) / width.stride + 1;
    tile_ = std::min(width.output, fitting);
    columns_ = (tile_ - 1) * width.stride + width.extent();
    row_step_ = height.dilation / std::gcd(height.stride, height.dilation);
    has_eights_ = width.size >= kFewNeighbours;
    rows_at_once_ = std::min<int64_t>(depth.size * height.size, kMostRows);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t rows = geometry_.rows();
    const int threads = threads_for(geometry_.bytes());
    const int64_t parts = std::min<int64_t>(threads, rows);
    std::vector<Scratch> scratch;
    for (int64_t i = 0; i < parts; ++i) scratch.emplace_back(*this);
    parallel_for(parts, threads, [&](int64_t i) {
      Worker worker{*this, inputs, outputs, scratch[static_cast<size_t>(i)]};
      for_each_rows(geometry_, share_begin(i, parts, rows), share_begin(i + 1, parts, rows),
                    [&](const Rows& r) { worker.pool(r); });
    });
  }

 private:
  static constexpr int64_t kMostTaps = 65793;  // 255 * 65793 < 2^24
  static constexpr int64_t kMostColumns = 16 << 10;
  static constexpr int64_t kMostNeighbours = 256;
  static constexpr int64_t kMostRows = 1024;
  static constexpr int64_t kMostEdges = 4096;
  static constexpr int64_t kEight = 8;
  static constexpr int64_t kFewNeighbours = 12;
  static constexpr int64_t kSlack = 64;  // what whole vectors read beyond the last column

  // What one thread needs: at most some 700 KiB.
  struct Scratch {
    explicit Scratch(const RowPooling& plan)
        : columns(static_cast<size_t>(plan.columns_ + plan.slack())),
          eights(plan.has_eights_ ? columns.size() : 0),
          written(static_cast<size_t>(plan.tile_ + kSlack)),
          outputs(static_cast<size_t>(plan.tile_ + kSlack)),
          added(static_cast<size_t>(plan.rows_at_once_)),
          removed(added.size()),
          taps(static_cast<size_t>(kMostNeighbours)) {}

    std::vector<uint32_t> columns;  // sums of columns over the window's rows
    std::vector<uint32_t> eights;   // sums of eight taps along the width
    std::vector<uint32_t> written;
    std::vector<uint8_t> outputs;
    std::vector<const std::byte*> added, removed;
    std::vector<const uint32_t*> taps;
    ChannelLines lines;
  };

  // Where eights are made, they are made of what lies behind the last column too.
  int64_t slack() const { return kSlack + (has_eights_ ? kEight * geometry_.windows[2].dilation : 0); }

  struct Worker {
    const RowPooling& plan;
    const void* const* inputs;
    void* const* outputs;
    Scratch& scratch;

    void pool(const Rows& rows) {
      const Geometry& g = plan.geometry_;
      const auto* in =
          static_cast<const std::byte*>(inputs[0]) + rows.batch * g.batch.in + rows.channel * g.channels.in;
      auto* out = static_cast<std::byte*>(outputs[0]) + rows.batch * g.batch.out +
                  rows.channel * g.channels.out + rows.depth * g.windows[0].out_stride;
      scratch.lines.set(g.quantization(inputs, rows.channel), g.window_taps());
      const Taps depth = g.windows[0].taps(rows.depth);
      for (int64_t begin = 0; begin < g.windows[2].output; begin += plan.tile_) {
        pool_tile(in, out, depth, rows, begin);
      }
    }

    // Rows whose windows' rows are on the same grid follow each other, so that sums can be carried on.
    void pool_tile(const std::byte* in, std::byte* out, const Taps& depth, const Rows& rows, int64_t begin) {
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
        sum_rows(in + (origin + first) * width.in_stride, depth, now, before, sums + first, last - first);
      }
      const auto beyond = static_cast<uint32_t>(zero_point() * depth.inside * now.inside);
      std::fill(sums, sums + first, beyond);
      std::fill(sums + last, sums + columns, beyond);
    }

    // The sums over the rows of `now`: those of `before`, carried on, where that is less work.
    void sum_rows(const std::byte* in, const Taps& depth, const Taps& now, const Taps& before, uint32_t* sums,
                  int64_t columns) {
      const Window& height = plan.geometry_.windows[1];
      const int64_t previous_end = before.first + before.inside * height.dilation;
      const int64_t shared = before.inside > 0 && now.inside > 0 && now.first < previous_end
                                 ? std::min((previous_end - now.first) / height.dilation, now.inside)
                                 : 0;
      const int64_t added = now.inside - shared;
      const int64_t removed = before.inside - shared;
      const bool carry = added + removed + 1 < now.inside && depth.inside * now.inside <= plan.rows_at_once_;
      if (carry) {
        const auto skip = shared * height.tap_step;
        update(sums, columns, rows_at(in, depth, now.start + skip, added, scratch.added),
               rows_at(in, depth, before.start, removed, scratch.removed), true);
      } else {
        sum_afresh(in, depth, now, sums, columns);
      }
    }

    void sum_afresh(const std::byte* in, const Taps& depth, const Taps& now, uint32_t* sums,
                    int64_t columns) {
      const Window& height = plan.geometry_.windows[1];
      bool keep = false;
      if (depth.inside * now.inside == 0) std::fill_n(sums, columns, uint32_t{0});
      if (depth.inside * now.inside <= plan.rows_at_once_) {
        if (depth.inside * now.inside > 0) {
          update(sums, columns, rows_at(in, depth, now.start, now.inside, scratch.added), {}, false);
        }
        return;
      }
      const Taps one{0, 0, 1, 1, 1};
      for (int64_t d = 0; d < depth.inside; ++d) {
        const std::byte* slice = in + depth.start + d * plan.geometry_.windows[0].tap_step;
        for (int64_t h = 0; h < now.inside; h += plan.rows_at_once_) {
          const int64_t count = std::min(plan.rows_at_once_, now.inside - h);
          const int64_t start = now.start + h * height.tap_step;
          update(sums, columns, rows_at(slice, one, start, count, scratch.added), {}, keep);
          keep = true;
        }
      }
    }

    void update(uint32_t* sums, int64_t columns, RowPointers added, RowPointers removed, bool keep) {
      const Geometry& g = plan.geometry_;
      ColumnSums::update(sums, columns, g.windows[2].in_stride, g.in.flip(), added, removed, keep);
    }

    RowPointers rows_at(const std::byte* in, const Taps& depth, int64_t start, int64_t count,
                        std::vector<const std::byte*>& rows) {
      const auto& [d, h, w] = plan.geometry_.windows;
      size_t used = 0;
      for (int64_t kd = 0; kd < depth.inside; ++kd) {
        for (int64_t kh = 0; kh < count; ++kh) {
          rows[used++] = in + depth.start + kd * d.tap_step + start + kh * h.tap_step;
        }
      }
      return {rows.data(), used};
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

    // The columns, or sums of eight of them, whose sum is a window's.
    std::span<const uint32_t* const> neighbours(int64_t outputs, const Window& width) {
      const uint32_t* columns = scratch.columns.data();
      size_t used = 0;
      int64_t k = 0;
      if (plan.has_eights_) {
        const uint32_t* eights = make_eights((outputs - 1) * width.stride + width.extent(), width.dilation);
        for (; k + kEight <= width.size; k += kEight) scratch.taps[used++] = eights + k * width.dilation;
      }
      for (; k < width.size; ++k) scratch.taps[used++] = columns + k * width.dilation;
      return {scratch.taps.data(), used};
    }

    // eights[x] = columns[x] + columns[x + dilation] + ... + columns[x + 7 * dilation]
    const uint32_t* make_eights(int64_t columns, int64_t dilation) {
      uint32_t* eights = scratch.eights.data();
      const int64_t count = columns - 7 * dilation;
      add_neighbours(eights, scratch.columns.data(), count + 6 * dilation, dilation);
      add_neighbours(eights, eights, count + 4 * dilation, 2 * dilation);
      add_neighbours(eights, eights, count, 4 * dilation);
      return eights;
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
      const Quantization& z = scratch.lines.quantization();
      const int64_t rows = depth.inside * height.inside;
      const int64_t offset = rows * plan.geometry_.windows[2].size * zero_point();
      for (const Segment& segment : plan.segments_) {
        const int64_t from = std::max(segment.begin, begin) - begin;
        const int64_t to = std::min(segment.end, end) - begin;
        if (from >= to) continue;
        const int64_t count = depth.counted * height.counted * segment.counted;
        if (const Line* line = scratch.lines.get(count, to - from)) {
          requantize_row(*line, z, sums, offset, from, to, row);
          continue;
        }
        for (int64_t x = from; x < to; ++x) {
          row[x] = static_cast<uint8_t>(requantize(sums[x] - offset, count, z));
        }
      }
    }

    int64_t zero_point() const { return scratch.lines.quantization().input_zero_point; }
  };

  Geometry geometry_;
  std::vector<Segment> segments_;
  int64_t tile_;      // outputs along the width that are made at once
  int64_t columns_;   // columns that these need
  int64_t row_step_;  // distance of rows of outputs whose windows' rows are on the same grid
  bool has_eights_;
  int64_t rows_at_once_;
};

}  // namespace
ANYDML_ISA_END
