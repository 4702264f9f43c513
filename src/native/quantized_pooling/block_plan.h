// The plan of pooling block by block: what is made once of sizes and strides, and of scales and zero points.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/isa.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/requantize.h"
#include "quantized_pooling/strips.h"
#include "quantized_pooling/tuning.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

struct BlockPlan {
  // Why it declines; empty where it pays, and scratch memory is bounded.
  static std::string declined(const Geometry& g) {
    if (g.window_taps() > most_taps(16)) return "sums of more than 16 bits";
    const auto& [depth, height, width] = g.windows;
    if (depth.extent() > kMostBlockExtent || height.extent() > kMostBlockExtent ||
        width.extent() > kMostBlockColumns) {
      return "windows are too large";
    }
    if (width.sums_each_alone()) return "each window along a row is summed by itself";
    if (width.stride > 2) return "a stride of more than 2 along rows";
    if (height.stride > kSparseStride * height.size) return "windows leave most rows unread";
    int64_t classes = 1;
    bool fits = without_padding(width).border_outputs() <= kMostBlockColumns;
    for (const Window& window : g.windows) {
      const int64_t border = window.border_outputs();
      fits = fits && border <= kMostBlockBorder;
      classes *= std::min(border, kMostBlockBorder) + 1;
    }
    if (!fits || classes > kMostClasses) return "too many windows reach into padding";
    return fitted(g) ? "" : "blocks need too much scratch memory";
  }

  explicit BlockPlan(const Geometry& geometry) : geometry(geometry), block(*fitted(geometry)) {
    const auto& [depth, height, width] = geometry.windows;
    for (size_t i = 0; i < 3; ++i) segments[i] = segments_of(geometry.windows[i]);
    const bool dilated = width.size > 1 && width.dilation > 1;
    const bool single = width.stride == 1;
    sum_rows =
        single ? sum_rows_for<1, false>(width.size, dilated) : sum_rows_for<2, false>(width.size, dilated);
    sum_border_rows =
        single ? sum_rows_for<1, true>(width.size, dilated) : sum_rows_for<2, true>(width.size, dilated);
    make_strips();
    make_counts();
    spanned = bytes_spanned();
    const double written = static_cast<double>(geometry.channels.size * geometry.batch.size) *
                           static_cast<double>(depth.output * height.output * width.output);
    non_temporal = width.out_stride == 1 && height.out_stride == width.output && block.tiles == 1 &&
                   written >= static_cast<double>(kStreamFrom);
    keeps_rows_in_registers = with_register_window(height, width, [](auto) {});
    reads_input = width.in_stride == 1 && !(width.size == 1 && width.stride == 2);
    writes_output = width.out_stride == 1 && tile_begin(1) >= kStrip && !non_temporal;
    outputs_per_channel = geometry.batch.size * depth.output * height.output * width.output;
  }

  // With the tables of maps, which are of two strips for a border where the last one overlaps.
  static_assert(kMostScratch + 2 * kMostClasses * int64_t{sizeof(StripMaps)} <= 1 << 20);
  static constexpr int64_t kSlack = 128;  // bytes that whole vectors read and write beyond the last column

  // The sizes of a block (loop blocking).
  struct Block {
    int64_t tiles;       // along the width
    int64_t strips;      // of a tile, at most
    int64_t rows;        // of outputs
    int64_t slices;      // of outputs
    int64_t input_rows;  // that the rows need
    int64_t pitch;       // of copied rows of input
    int64_t ring;        // slices whose sums are kept, 0 where windows have no depth

    int64_t sums() const { return input_rows * kStrip; }
    int64_t slice_sums() const { return strips * rows * kStrip; }
    // With a row of padding.
    int64_t copied_input() const { return (input_rows + 1) * pitch + kSlack; }
    int64_t copied_output() const { return rows * strips * kStrip + kSlack; }
    int64_t scratch() const {
      return 2 * (sums() + ring * slice_sums() + rows * kStrip) + copied_input() + copied_output();
    }
  };

  static std::optional<Block> fitted(const Geometry& g) {
    const auto& [depth, height, width] = g.windows;
    for (int64_t most = kMostTileOutputs; most >= kStrip; most /= 2) {
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

  // 32 outputs from `begin` on; the last strip of a tile overlaps the one before it. Strips whose outputs
  // have the same counts of taps along the width are of one column class.
  struct Strip {
    int64_t begin;
    size_t column_class;
    StripBorder border;  // empty where all columns are inside
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
  const Strip& border_strip(int64_t begin) const {
    return *std::lower_bound(border_strips.begin(), border_strips.end(), begin,
                             [](const Strip& strip, int64_t value) { return strip.begin < value; });
  }

  static Window without_padding(Window window) {
    window.include_padding = false;
    return window;
  }

  void make_strips() {
    const Window& width = geometry.windows[2];
    inside = without_padding(width).interior();
    Counts middle;
    middle.fill(width.size);
    column_classes.push_back(middle);
    for (int64_t tile = 0; tile < block.tiles; ++tile) {
      for (int64_t i = 0; i < strips_of(tile); ++i) {
        const int64_t begin = strip_begin(tile, i), end = strip_end(tile, begin);
        if (is_inside(begin, end)) continue;
        const bool padded = first_column(begin) < 0 || last_column(end - 1) >= width.input;
        border_strips.push_back({begin, column_class_at(begin), padded ? border_at(begin) : StripBorder{}});
      }
    }
  }

  size_t column_class_at(int64_t begin) {
    Counts counts;
    size_t segment = 0;
    for (int64_t i = 0; i < kStrip; ++i) {
      while (segment + 1 < segments[2].size() && segments[2][segment].end <= begin + i) ++segment;
      counts[static_cast<size_t>(i)] = segments[2][segment].counted;
    }
    const auto found = std::find(column_classes.begin(), column_classes.end(), counts);
    if (found != column_classes.end()) return static_cast<size_t>(found - column_classes.begin());
    column_classes.push_back(counts);
    return column_classes.size() - 1;
  }

  StripBorder border_at(int64_t begin) const {
    const Window& width = geometry.windows[2];
    const int64_t columns = kStrip * width.stride + width.extent();
    StripBorder border;
    std::vector<std::byte> outside;
    for (int64_t x = first_column(begin); x < first_column(begin) + columns; ++x) {
      const bool inside = 0 <= x && x < width.input;
      border.keep.push_back(inside ? 0xff : 0);
      outside.push_back(std::byte{!inside});
    }
    sum_rows({outside.data(), 0, 1, 0}, width.size, width.dilation, 0, border.taps.data());
    return border;
  }

  // Rows are of one class where windows have equally many counted rows and slices.
  void make_counts() {
    for (const Segment& slices : segments[0]) {
      for (const Segment& rows : segments[1]) {
        row_classes.push_back(index_of(slices.counted * rows.counted, row_counts));
      }
    }
    for (const int64_t rows : row_counts) {
      for (const Counts& columns_of_class : column_classes) {
        for (const int64_t columns : columns_of_class) count_of.push_back(index_of(rows * columns, counts));
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

  // The range of the input's bytes, counted from its first element.
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
  std::vector<Strip> border_strips;    // strips with other outputs, in their order
  std::vector<Counts> column_classes;
  std::vector<int64_t> row_counts;  // of each class of rows
  std::vector<size_t> row_classes;  // for each segment of slices and of rows
  std::vector<int64_t> counts;      // all that occur
  std::vector<size_t> count_of;  // its index, for each class of rows, class of columns and output of a strip
  SumRows sum_rows, sum_border_rows;
  std::pair<int64_t, int64_t> spanned;
  int64_t outputs_per_channel;
  // Whether whole vectors are read and written in place; padding is masked.
  bool reads_input, writes_output;
  bool non_temporal;
  bool keeps_rows_in_registers;  // sums of rows that windows share
};

// The affine maps of one quantisation.
struct BlockRequantizer {
  explicit BlockRequantizer(const BlockPlan& plan)
      : tables(plan.row_counts.size() * plan.column_classes.size()) {}
  BlockRequantizer(const BlockPlan& plan, const Quantization& z) : BlockRequantizer(plan) { set(plan, z); }

  void set(const BlockPlan& plan, const Quantization& z) {
    if (quantization == z) return;
    quantization = z;
    maps.resize(plan.counts.size());
    is_scale = has_maps = true;
    const int64_t taps = plan.geometry.window_taps();
    const bool thorough = plan.outputs_per_channel >= kThoroughOutputs;
    for (size_t i = 0; i < maps.size() && has_maps; ++i) {
      has_maps = AffineMapFinder(z, plan.counts[i], taps).find(thorough, maps[i]);
      is_scale = is_scale && maps[i].is_scale();
    }
    if (!has_maps) return;
    const size_t* count = plan.count_of.data();
    for (StripMaps& table : tables) {
      for (int64_t place = 0; place < kStrip; ++place) {
        const int64_t stride = plan.geometry.windows[2].stride;
        const AffineMap& map = maps[count[map_place(place, stride)]];
        table.slopes[place] = map.slope;
        if (is_scale) continue;
        table.adds[place] = map.add;
        table.rounders[place] = map.rounder;
      }
      count += kStrip;
    }
  }

  std::optional<Quantization> quantization;
  std::vector<AffineMap> maps;  // for each count
  std::vector<StripMaps> tables;
  bool is_scale, has_maps;
};

}  // namespace
ANYDML_ISA_END
