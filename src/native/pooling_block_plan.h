// What pooling block by block makes of sizes and strides, once, and of scales and zero points.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "isa.h"
#include "pooling_geometry.h"
#include "pooling_requantize.h"
#include "pooling_strips.h"
#include "stream.h"

ANYDML_ISA_BEGIN
namespace {

struct BlockPlan {
  // Where it pays, and scratch is bounded; see the limits.
  static bool suits(const Geometry& g) {
    if (g.window_taps() > kMostTaps) return false;
    const auto& [depth, height, width] = g.windows;
    if (depth.extent() > kMostExtent || height.extent() > kMostExtent || width.extent() > kMostColumns) {
      return false;
    }
    const bool one = width.output == 1 || (width.size >= 32 && width.stride >= width.size);
    if (one || width.stride > 2 || height.stride > 4 * height.size) return false;
    int64_t kinds = 1;
    for (const Window& window : g.windows) {
      if (window.edges() > kMostEdges) return false;
      kinds *= window.edges() + 1;
    }
    return kinds <= kMostKinds && fitted(g).has_value();
  }

  explicit BlockPlan(const Geometry& geometry) : geometry_(geometry), block_(*fitted(geometry)) {
    const auto& [depth, height, width] = geometry_.windows;
    for (size_t i = 0; i < 3; ++i) segments_[i] = segments_of(geometry_.windows[i]);
    const bool dilated = width.size > 1 && width.dilation > 1;
    const bool single = width.stride == 1;
    sum_rows_ =
        single ? sum_rows_for<1, false>(width.size, dilated) : sum_rows_for<2, false>(width.size, dilated);
    sum_edges_ =
        single ? sum_rows_for<1, true>(width.size, dilated) : sum_rows_for<2, true>(width.size, dilated);
    make_tiles();
    make_counts();
    span_ = span();
    const double written = static_cast<double>(geometry_.channels.size * geometry_.batch.size) *
                           static_cast<double>(depth.output * height.output * width.output);
    streams_ = width.out_stride == 1 && height.out_stride == width.output && tiles_ == 1 &&
               written >= static_cast<double>(kStreamFrom);
    writes_output_ = width.out_stride == 1 && tile_begin(1) >= kStrip && !streams_;
    outputs_per_channel_ = geometry_.batch.size * depth.output * height.output * width.output;
  }

  static constexpr int64_t kMostTaps = 257;  // so that 16 bits hold a sum
  static constexpr int64_t kMostExtent = 512;
  static constexpr int64_t kMostColumns = 4096;
  static constexpr int64_t kMostEdges = 256;
  static constexpr int64_t kMostKinds = 512;  // of lines for a strip
  static constexpr int64_t kMostScratch = 640 << 10;
  // With the tables of lines, which are of two strips for an edge where the last one overlaps.
  static_assert(kMostScratch + 2 * kMostKinds * int64_t{sizeof(StripLines)} <= 1 << 20);
  static constexpr int64_t kBlockBytes = 32 << 10;  // of input, so that a block stays in the nearest cache
  static constexpr int64_t kBlockRows = 128;
  static constexpr int64_t kSlack = 128;  // what whole vectors read and write beyond the last column

  // How much is made at once.
  struct Block {
    int64_t tiles;       // along the width
    int64_t strips;      // of a tile, at most
    int64_t rows;        // of outputs
    int64_t slices;      // of outputs
    int64_t input_rows;  // that these rows need
    int64_t pitch;       // of copied rows of input
    int64_t ring;        // slices whose sums are kept, 0 where windows have no depth

    int64_t sums() const { return input_rows * kStrip; }
    int64_t slice_sums() const { return strips * rows * kStrip; }
    int64_t copied_input() const { return input_rows * pitch + kSlack; }
    int64_t copied_output() const { return rows * strips * kStrip + kSlack; }
    int64_t scratch() const {
      return 2 * (sums() + ring * slice_sums() + rows * kStrip) + copied_input() + copied_output();
    }
  };

  static std::optional<Block> fitted(const Geometry& g) {
    const auto& [depth, height, width] = g.windows;
    for (int64_t most = 2048; most >= kStrip; most /= 2) {
      Block b{};
      b.tiles = (width.output - 1) / most + 1;
      const int64_t outputs = (width.output - 1) / b.tiles + 1;
      b.strips = (outputs - 1) / kStrip + 1;
      b.pitch = (outputs - 1) * width.stride + width.extent();
      const bool deep = depth.size > 1;
      b.ring = deep ? depth.extent() : 0;
      const int64_t rows = std::clamp(kBlockBytes / (b.pitch * height.stride), int64_t{1}, kBlockRows);
      const int64_t blocks = (height.output - 1) / std::max(rows, std::min(height.extent(), kBlockRows)) + 1;
      b.rows = (height.output - 1) / blocks + 1;
      b.input_rows = (b.rows - 1) * height.stride + height.extent();
      const int64_t slices = 8 * kBlockBytes / (b.input_rows * b.pitch * depth.stride);
      b.slices = deep ? std::min(depth.output, std::max(4 * depth.extent(), slices)) : 1;
      if (b.scratch() <= kMostScratch) return b;
    }
    return std::nullopt;
  }

  // Some 32 outputs from `begin` on. What its outputs divide by, beside the rows' and slices' share, is its
  // kind; the last strip of a tile overlaps the one before it. Its input is read in place where whole vectors
  // may be: where there is padding, what lies there in memory is masked.
  struct Strip {
    int64_t begin;
    size_t kind;
    bool in_place;
    StripEdge edge;  // empty where all is inside
  };
  using Counts = std::array<int64_t, kStrip>;

  int64_t tile_begin(int64_t tile) const { return geometry_.windows[2].output * tile / tiles_; }

  void make_tiles() {
    tiles_ = block_.tiles;
    Counts middle;
    middle.fill(geometry_.windows[2].size);
    kinds_.push_back(middle);
    size_t segment = 0;
    for (int64_t tile = 0; tile < tiles_; ++tile) {
      const int64_t begin = tile_begin(tile), end = tile_begin(tile + 1);
      first_strip_.push_back(strips_.size());
      for (int64_t x = begin; x < end; x += kStrip) {
        const int64_t from = std::max(begin, std::min(x, end - kStrip));
        Counts counts;
        while (segment > 0 && segments_[2][segment].begin > from) --segment;
        for (int64_t i = 0; i < kStrip; ++i) {
          while (segment + 1 < segments_[2].size() && segments_[2][segment].end <= from + i) ++segment;
          counts[static_cast<size_t>(i)] = segments_[2][segment].counted;
        }
        size_t kind = 0;
        while (kind < kinds_.size() && kinds_[kind] != counts) ++kind;
        if (kind == kinds_.size()) kinds_.push_back(counts);
        const Window& width = geometry_.windows[2];
        const int64_t last = last_column(std::min(from + kStrip, end) - 1);
        const bool padded = first_column(from) < 0 || last >= width.input;
        const bool in_place = width.in_stride == 1 && !(width.size == 1 && width.stride == 2);
        strips_.push_back({from, kind, in_place, padded ? edge_at(from) : StripEdge{}});
      }
    }
    first_strip_.push_back(strips_.size());
  }

  StripEdge edge_at(int64_t begin) const {
    const Window& width = geometry_.windows[2];
    const int64_t columns = kStrip * width.stride + width.extent();
    StripEdge edge;
    std::vector<std::byte> outside;
    for (int64_t x = first_column(begin); x < first_column(begin) + columns; ++x) {
      const bool inside = 0 <= x && x < width.input;
      edge.keep.push_back(inside ? 0xff : 0);
      outside.push_back(std::byte{!inside});
    }
    sum_rows_({outside.data(), 0, 1}, width.size, width.dilation, 0, {outside.data(), 0}, edge.taps.data());
    return edge;
  }

  // Rows are of one class where windows have equally many counted rows and slices.
  void make_counts() {
    for (const Segment& slices : segments_[0]) {
      for (const Segment& rows : segments_[1]) {
        row_classes_.push_back(index_of(slices.counted * rows.counted, row_counts_));
      }
    }
    for (const int64_t rows : row_counts_) {
      for (const Counts& kind : kinds_) {
        for (const int64_t columns : kind) count_of_.push_back(index_of(rows * columns, counts_));
      }
    }
  }
  static size_t index_of(int64_t value, std::vector<int64_t>& values) {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found != values.end()) return static_cast<size_t>(found - values.begin());
    values.push_back(value);
    return values.size() - 1;
  }

  int64_t first_column(int64_t o) const {
    return o * geometry_.windows[2].stride - geometry_.windows[2].start_padding;
  }
  int64_t last_column(int64_t o) const { return first_column(o) + geometry_.windows[2].extent() - 1; }

  // The tensor's bytes lie between these two, from its first element on.
  std::pair<int64_t, int64_t> span() const {
    std::pair<int64_t, int64_t> span{0, 1};
    const auto widen = [&](int64_t size, int64_t stride) {
      if (size > 1) (stride < 0 ? span.first : span.second) += (size - 1) * stride;
    };
    widen(geometry_.batch.size, geometry_.batch.in);
    widen(geometry_.channels.size, geometry_.channels.in);
    for (const Window& window : geometry_.windows) widen(window.input, window.in_stride);
    return span;
  }

  int64_t row_blocks() const { return (geometry_.windows[1].output - 1) / block_.rows + 1; }
  int64_t slice_blocks() const { return (geometry_.windows[0].output - 1) / block_.slices + 1; }
  int64_t units_per_channel() const { return geometry_.batch.size * slice_blocks() * tiles_ * row_blocks(); }

  Geometry geometry_;
  Block block_;
  int64_t tiles_ = 1;
  std::array<std::vector<Segment>, 3> segments_;
  std::vector<Strip> strips_;
  std::vector<size_t> first_strip_;  // of each tile
  std::vector<Counts> kinds_;
  std::vector<int64_t> row_counts_;  // of each class of rows
  std::vector<size_t> row_classes_;  // for each segment of slices and of rows
  std::vector<int64_t> counts_;      // all that occur
  std::vector<size_t> count_of_;     // which one, for each class of rows, kind of strip and output of it
  SumRows sum_rows_, sum_edges_;
  std::pair<int64_t, int64_t> span_;
  int64_t outputs_per_channel_;
  bool writes_output_;  // in place
  bool streams_;
};

// The lines of one quantisation.
struct BlockRequantizer {
  explicit BlockRequantizer(const BlockPlan& plan) : tables(plan.row_counts_.size() * plan.kinds_.size()) {}
  BlockRequantizer(const BlockPlan& plan, const Quantization& z) : BlockRequantizer(plan) { set(plan, z); }

  void set(const BlockPlan& plan, const Quantization& z) {
    if (quantization == z) return;
    quantization = z;
    lines.resize(plan.counts_.size());
    plain = has_lines = true;
    const int64_t taps = plan.geometry_.window_taps();
    const bool thorough = plan.outputs_per_channel_ >= 512;
    for (size_t i = 0; i < lines.size() && has_lines; ++i) {
      has_lines = LineFinder(z, plan.counts_[i], taps).find(thorough, lines[i]);
      plain = plain && lines[i].plain();
    }
    if (!has_lines) return;
    const size_t* count = plan.count_of_.data();
    for (StripLines& table : tables) {
      for (int64_t place = 0; place < kStrip; ++place) {
        const int64_t stride = plan.geometry_.windows[2].stride;
        const Line& line = lines[count[line_place(place, stride)]];
        table.slopes[place] = line.slope;
        if (plain) continue;
        table.adds[place] = line.add;
        table.rounders[place] = line.rounder;
      }
      count += kStrip;
    }
  }

  std::optional<Quantization> quantization;
  std::vector<Line> lines;  // for each count
  std::vector<StripLines> tables;
  bool plain, has_lines;
};

}  // namespace
ANYDML_ISA_END
