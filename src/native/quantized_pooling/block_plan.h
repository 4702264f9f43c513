// What pooling block by block makes of sizes and strides, once, and of scales and zero points.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "platform/isa.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/requantize.h"
#include "quantized_pooling/strips.h"
#include "stores/nontemporal.h"

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
    if (without_padding(width).edges() > kMostColumns) return false;
    return kinds <= kMostKinds && fitted(g).has_value();
  }

  explicit BlockPlan(const Geometry& geometry) : geometry(geometry), block(*fitted(geometry)) {
    const auto& [depth, height, width] = geometry.windows;
    for (size_t i = 0; i < 3; ++i) segments[i] = segments_of(geometry.windows[i]);
    const bool dilated = width.size > 1 && width.dilation > 1;
    const bool single = width.stride == 1;
    sum_rows =
        single ? sum_rows_for<1, false>(width.size, dilated) : sum_rows_for<2, false>(width.size, dilated);
    sum_edges =
        single ? sum_rows_for<1, true>(width.size, dilated) : sum_rows_for<2, true>(width.size, dilated);
    make_strips();
    make_counts();
    spanned = bytes_spanned();
    const double written = static_cast<double>(geometry.channels.size * geometry.batch.size) *
                           static_cast<double>(depth.output * height.output * width.output);
    streams = width.out_stride == 1 && height.out_stride == width.output && block.tiles == 1 &&
              written >= static_cast<double>(kStreamFrom);
    has_window_kind = with_window_kind(height, width, [](auto) {});
    reads_input = width.in_stride == 1 && !(width.size == 1 && width.stride == 2);
    writes_output = width.out_stride == 1 && tile_begin(1) >= kStrip && !streams;
    outputs_per_channel = geometry.batch.size * depth.output * height.output * width.output;
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
    // And a row of padding.
    int64_t copied_input() const { return (input_rows + 1) * pitch + kSlack; }
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

  // Some 32 outputs from `begin` on; the last of a tile overlaps the one before it. What its outputs divide
  // by, beside the rows' and slices' share, is its kind.
  struct Strip {
    int64_t begin;
    size_t kind;
    StripEdge edge;  // empty where all is inside
  };
  using Counts = std::array<int64_t, kStrip>;

  int64_t tile_begin(int64_t tile) const { return geometry.windows[2].output * tile / block.tiles; }
  int64_t strips_of(int64_t tile) const { return (tile_begin(tile + 1) - tile_begin(tile) - 1) / kStrip + 1; }
  int64_t strip_begin(int64_t tile, int64_t i) const {
    const int64_t begin = tile_begin(tile);
    return std::max(begin, std::min(begin + i * kStrip, tile_begin(tile + 1) - kStrip));
  }
  int64_t strip_end(int64_t tile, int64_t begin) const {
    return std::min(begin + kStrip, tile_begin(tile + 1));
  }

  // Most strips of a wide row are alike: all inside the input. Those that are not are made once.
  bool is_inside(int64_t begin, int64_t end) const { return inside.first <= begin && end <= inside.second; }
  const Strip& strip_at_edge(int64_t begin) const {
    return *std::lower_bound(edges.begin(), edges.end(), begin,
                             [](const Strip& strip, int64_t value) { return strip.begin < value; });
  }

  static Window without_padding(Window window) {
    window.include_padding = false;
    return window;
  }

  void make_strips() {
    const Window& width = geometry.windows[2];
    inside = without_padding(width).middle();
    Counts middle;
    middle.fill(width.size);
    kinds.push_back(middle);
    for (int64_t tile = 0; tile < block.tiles; ++tile) {
      for (int64_t i = 0; i < strips_of(tile); ++i) {
        const int64_t begin = strip_begin(tile, i), end = strip_end(tile, begin);
        if (is_inside(begin, end)) continue;
        const bool padded = first_column(begin) < 0 || last_column(end - 1) >= width.input;
        edges.push_back({begin, kind_at(begin), padded ? edge_at(begin) : StripEdge{}});
      }
    }
  }

  size_t kind_at(int64_t begin) {
    Counts counts;
    size_t segment = 0;
    for (int64_t i = 0; i < kStrip; ++i) {
      while (segment + 1 < segments[2].size() && segments[2][segment].end <= begin + i) ++segment;
      counts[static_cast<size_t>(i)] = segments[2][segment].counted;
    }
    const auto found = std::find(kinds.begin(), kinds.end(), counts);
    if (found != kinds.end()) return static_cast<size_t>(found - kinds.begin());
    kinds.push_back(counts);
    return kinds.size() - 1;
  }

  StripEdge edge_at(int64_t begin) const {
    const Window& width = geometry.windows[2];
    const int64_t columns = kStrip * width.stride + width.extent();
    StripEdge edge;
    std::vector<std::byte> outside;
    for (int64_t x = first_column(begin); x < first_column(begin) + columns; ++x) {
      const bool inside = 0 <= x && x < width.input;
      edge.keep.push_back(inside ? 0xff : 0);
      outside.push_back(std::byte{!inside});
    }
    sum_rows({outside.data(), 0, 1, 0}, width.size, width.dilation, 0, edge.taps.data());
    return edge;
  }

  // Rows are of one class where windows have equally many counted rows and slices.
  void make_counts() {
    for (const Segment& slices : segments[0]) {
      for (const Segment& rows : segments[1]) {
        row_classes.push_back(index_of(slices.counted * rows.counted, row_counts));
      }
    }
    for (const int64_t rows : row_counts) {
      for (const Counts& kind : kinds) {
        for (const int64_t columns : kind) count_of.push_back(index_of(rows * columns, counts));
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
    return o * geometry.windows[2].stride - geometry.windows[2].start_padding;
  }
  int64_t last_column(int64_t o) const { return first_column(o) + geometry.windows[2].extent() - 1; }

  // The tensor's bytes lie between these two, from its first element on.
  std::pair<int64_t, int64_t> bytes_spanned() const {
    std::pair<int64_t, int64_t> span{0, 1};
    const auto widen = [&](int64_t size, int64_t stride) {
      if (size > 1) (stride < 0 ? span.first : span.second) += (size - 1) * stride;
    };
    widen(geometry.batch.size, geometry.batch.in);
    widen(geometry.channels.size, geometry.channels.in);
    for (const Window& window : geometry.windows) widen(window.input, window.in_stride);
    return span;
  }

  int64_t row_blocks() const { return (geometry.windows[1].output - 1) / block.rows + 1; }
  int64_t slice_blocks() const { return (geometry.windows[0].output - 1) / block.slices + 1; }
  int64_t units_per_channel() const {
    return geometry.batch.size * slice_blocks() * block.tiles * row_blocks();
  }

  Geometry geometry;
  Block block;
  std::array<std::vector<Segment>, 3> segments;
  std::pair<int64_t, int64_t> inside;  // outputs along the width whose windows have no padding
  std::vector<Strip> edges;            // strips with others, in the order of their outputs
  std::vector<Counts> kinds;
  std::vector<int64_t> row_counts;  // of each class of rows
  std::vector<size_t> row_classes;  // for each segment of slices and of rows
  std::vector<int64_t> counts;      // all that occur
  std::vector<size_t> count_of;     // which one, for each class of rows, kind of strip and output of it
  SumRows sum_rows, sum_edges;
  std::pair<int64_t, int64_t> spanned;
  int64_t outputs_per_channel;
  // In place, where whole vectors may be: what is padding there is masked.
  bool reads_input, writes_output;
  bool streams;
  bool has_window_kind;  // whose sums are kept in registers
};

// The lines of one quantisation.
struct BlockRequantizer {
  explicit BlockRequantizer(const BlockPlan& plan) : tables(plan.row_counts.size() * plan.kinds.size()) {}
  BlockRequantizer(const BlockPlan& plan, const Quantization& z) : BlockRequantizer(plan) { set(plan, z); }

  void set(const BlockPlan& plan, const Quantization& z) {
    if (quantization == z) return;
    quantization = z;
    lines.resize(plan.counts.size());
    plain = has_lines = true;
    const int64_t taps = plan.geometry.window_taps();
    const bool thorough = plan.outputs_per_channel >= 512;
    for (size_t i = 0; i < lines.size() && has_lines; ++i) {
      has_lines = LineFinder(z, plan.counts[i], taps).find(thorough, lines[i]);
      plain = plain && lines[i].plain();
    }
    if (!has_lines) return;
    const size_t* count = plan.count_of.data();
    for (StripLines& table : tables) {
      for (int64_t place = 0; place < kStrip; ++place) {
        const int64_t stride = plan.geometry.windows[2].stride;
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
