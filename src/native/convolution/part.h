// A convolution by its phases, each of which is one of its own, and how it is divided into blocks of places.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "convolution/axes.h"
#include "convolution/outputs.h"
#include "convolution/row_tile.h"
#include "convolution/tuning.h"
#include "convolution/weights.h"
#include "convolution/window_tile.h"
#include "nhwc/fused_activation.h"
#include "normalization/activation.h"
#include "platform/isa.h"
#include "platform/parallel.h"

ANYDML_ISA_BEGIN

// Steps are in bytes. Channels and results are those of a group.
struct ConvolutionShape {
  bool is_half;
  int64_t batch, batch_in, batch_out;
  int64_t groups, group_in, group_filter;
  int64_t channels, channel_in, channel_filter;
  int64_t results, result_filter, result_out;
  bool has_bias;
  int64_t bias_step;
  Fused fused;
  RunActivation activation;

  int64_t item() const { return is_half ? 2 : 4; }
};

// Products that are summed one after the other: of some taps all channels, or some of one tap's.
struct ProductChunk {
  int64_t tap, taps;
  int64_t channel, channels;
};

inline std::vector<ProductChunk> chunks_of(int64_t taps, int64_t channels) {
  std::vector<ProductChunk> chunks;
  if (channels > kChunk) {
    const int64_t pieces = (channels + kChunk - 1) / kChunk;
    for (int64_t i = 0; i < taps * pieces; ++i) {
      const int64_t first = share_begin(i % pieces, pieces, channels);
      chunks.push_back({i / pieces, 1, first, share_begin(i % pieces + 1, pieces, channels) - first});
    }
  } else {
    const int64_t most = std::max<int64_t>(1, kChunk / channels);
    const int64_t pieces = (taps + most - 1) / most;
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t first = share_begin(i, pieces, taps);
      chunks.push_back({first, share_begin(i + 1, pieces, taps) - first, 0, channels});
    }
  }
  // Results that are their biases.
  if (chunks.empty()) chunks.push_back({0, 0, 0, channels});
  return chunks;
}

class ConvolutionPart;

// How a part is divided into blocks, and what a block has.
struct PartBlocks {
  std::array<int64_t, 3> size{};   // of a block; those at the end may be smaller
  std::array<int64_t, 3> count{};  // along each axis
  int64_t rows = 1;                // shares of the results
  int64_t groups = 1;              // whose planes are made at a time
  int64_t images = 1;              // whose places are multiplied by the same weights, one after the other
  std::array<Slices, 3> slices;
  int64_t plane = 0;             // from channel to channel, in floats
  std::vector<int64_t> offsets;  // of each tap, or of each of its channels too, in bytes
  PanelRuns runs;                // of a whole block
  int64_t width = 0;             // lanes of a panel

  int64_t units(const ConvolutionShape& shape) const {
    return image_blocks(shape) * group_blocks(shape) * count[0] * count[1] * count[2] * rows;
  }
  int64_t image_blocks(const ConvolutionShape& shape) const { return (shape.batch + images - 1) / images; }
  int64_t group_blocks(const ConvolutionShape& shape) const { return (shape.groups + groups - 1) / groups; }
};

class ConvolutionPart {
 public:
  SpatialAxes axes;
  FilterRow row;
  int64_t taps;
  bool has_padding = false;
  // Whether each channel's places are read where they are.
  bool is_direct = false;
  // Whether places are multiplied along rows, which are read where they are; which vectors of a row need no
  // masks, and the masks of each tap of the others, behind those of one of them.
  bool is_along_rows = false;
  int64_t whole_begin = 0, whole_end = 0;
  std::vector<TapLanes> tap_lanes;
  // Channels that have offsets of their own.
  int64_t products_apart = 1;
  std::vector<ProductChunk> chunks;
  // The first of its weights among those that are packed; and the step of those that are not, 0 for none.
  int64_t packed;
  int64_t step;

  // `count` are the weights of the parts before.
  ConvolutionPart(const ConvolutionShape& shape, const SpatialAxes& given, int64_t& count)
      : axes(given), row{given, shape.channels, shape.channel_filter}, taps(row.taps()) {
    if (taps == 0) {
      for (SpatialAxis& axis : axes) axis.along.taps = 0;
    }
    row.axes = axes;
    for (const SpatialAxis& axis : axes) has_padding = has_padding || axis.has_padding();
    const Sliding& width = axes[2].along;
    const bool is_side_by_side = width.places == 1 || width.stride * width.in_stride == shape.item();
    is_direct = taps == 1 && !shape.is_half && !has_padding && axes[0].along.places == 1 &&
                axes[1].along.places == 1 && is_side_by_side;
    is_along_rows = reads_rows(shape);
    // Of few channels each product has an offset of its own, and the loop over channels is left out.
    products_apart = !is_direct && shape.channels < kFewChannels ? shape.channels : 1;
    chunks = chunks_of(taps * products_apart, shape.channels / products_apart);
    packed = count;
    step = row.step();
    count += shape.groups * shape.results * row.size();
  }

  int64_t places() const { return axes[0].along.places * axes[1].along.places * axes[2].along.places; }
  bool reads_in_place(const ConvolutionShape& shape) const {
    return taps == 0 || (!shape.is_half && step != 0);
  }

  // In bytes that could be moved meanwhile.
  int64_t work(const ConvolutionShape& shape) const {
    const double of_result = std::max<double>(8, static_cast<double>(row.size()) / kMultiplicationsOfAByte);
    double all = of_result * static_cast<double>(shape.batch * shape.groups * shape.results);
    for (const SpatialAxis& axis : axes) all *= static_cast<double>(axis.along.places);
    return static_cast<int64_t>(std::min(all, 0x1p60));
  }

  PartBlocks blocks(const ConvolutionShape& shape, int threads) const {
    PartBlocks found;
    auto& size = found.size;
    for (size_t d = 0; d < 3; ++d) size[d] = axes[d].along.places;
    const auto fits = [&] { return shape.channels * plane_of(slices(shape, size)) <= kPlanesFloats; };
    const auto halve = [&](size_t d, int64_t least, const auto& is_done) {
      least = std::min(least, size[d]);
      while (!is_done() && size[d] > least) size[d] = std::max(least, (size[d] + 1) / 2);
    };
    if (shape.groups > 1) {
      const int64_t of_group = shape.channels * plane_of(slices(shape, size));
      const int64_t near = std::max(kNearFloats / std::max<int64_t>(1, of_group), kNearGroups);
      const int64_t most = kPlanesFloats / std::max<int64_t>(1, of_group);
      found.groups = std::clamp<int64_t>(std::min(near, most), 1, shape.groups);
    }
    if (is_along_rows) {
      found.groups = std::clamp<int64_t>(kPlanesFloats / places(), 1, shape.groups);
    }
    if (is_direct) size[2] = std::min(size[2], kDirectPlaces);
    for (size_t d = 0; d < 3 && !is_direct && !is_along_rows; ++d) halve(d, d == 2 ? kLeastRow : 1, fits);
    const int64_t floats = shape.channels * plane_of(slices(shape, size));
    const bool is_whole = size[0] * size[1] * size[2] == places();
    if (shape.groups == 1 && is_whole && !is_along_rows) {
      const int64_t most =
          is_direct ? kDirectPlaces / places() : kImagesFloats / std::max<int64_t>(1, floats);
      found.images = std::clamp<int64_t>(most, 1, shape.batch);
    }
    const int64_t wanted = threads == 1 ? 1 : threads * kUnitsOfAThread;
    const auto is_shared = [&] {
      for (size_t d = 0; d < 3; ++d) found.count[d] = (axes[d].along.places + size[d] - 1) / size[d];
      return found.units(shape) >= wanted;
    };
    while (!is_shared() && found.images > 1) found.images = (found.images + 1) / 2;
    while (!is_shared() && found.groups > 1) found.groups = (found.groups + 1) / 2;
    for (size_t d = 0; d < (is_along_rows ? 2 : 3); ++d) halve(d, d == 2 ? 2 * kLeastRow : 1, is_shared);
    while (!is_shared() && found.rows * 2 * kMostRows <= shape.results) found.rows *= 2;
    if (is_along_rows) return found;
    found.slices = slices(shape, size);
    found.plane = plane_of(found.slices);
    found.offsets = offsets(found.slices, found.plane);
    found.width = std::min(most_vectors(shape.results),
                           (lanes_of(found.slices, size) + kColumnLanes - 1) / kColumnLanes) *
                  kColumnLanes;
    found.runs.find(axes, found.slices, size, found.width);
    return found;
  }

  // Planes of an image, in floats.
  int64_t image_floats(const ConvolutionShape& shape, const PartBlocks& blocks) const {
    return blocks.groups * shape.channels * blocks.plane;
  }
  int64_t panels(const PartBlocks& blocks) const {
    return (blocks.runs.lanes() + blocks.width - 1) / blocks.width * blocks.images;
  }
  // Results of a block, so many that their sums of a strip of some panels stay in the second cache; blocks
  // are as even as can be.
  int64_t most_rows(const PartBlocks& blocks, int64_t results) const {
    const int64_t strip = std::min(panels(blocks), kPanelsOfStrip) * blocks.width;
    const int64_t most = std::min(kRowsOfBlock, kSumsFloats / strip);
    const int64_t count = std::max<int64_t>(1, (results + most / 2) / most);
    return std::min(kRowsOfBlock, (results + count - 1) / count);
  }
  // What a thread needs for planes, and for sums, in floats.
  int64_t planes_floats(const ConvolutionShape& shape, const PartBlocks& blocks) const {
    if (taps == 0 || is_along_rows) return 0;
    const int64_t planes =
        is_direct ? shape.channels * kMostLanes : image_floats(shape, blocks) * blocks.images;
    return planes + kMostLanes;
  }
  // Of results whose weights are packed at a time, with room for halves.
  int64_t rows_floats(const ConvolutionShape& shape) const {
    return reads_in_place(shape) ? 0 : (packed_rows(shape) + 1) * row.size();
  }
  int64_t packed_rows(const ConvolutionShape& shape) const {
    const int64_t tiles =
        std::max<int64_t>(1, kPackedFloats / (std::max<int64_t>(1, row.size()) * kMostRows));
    return std::min(tiles * kMostRows, shape.results);
  }
  int64_t sums_floats(const ConvolutionShape& shape, const PartBlocks& blocks) const {
    if (chunks.size() == 1 || is_along_rows) return 0;
    // A strip has a panel at least.
    return std::max(
        std::min(kSumsFloats, std::min(shape.results, kRowsOfBlock) * panels(blocks) * blocks.width),
        std::min(shape.results, kRowsOfBlock) * blocks.width);
  }

  const TapLanes* lanes_of_vector(int64_t vector) const {
    const bool is_whole = whole_begin <= vector && vector < whole_end;
    const int64_t before = vector < whole_begin ? 0 : whole_end - whole_begin;
    return tap_lanes.data() + (is_whole ? 0 : vector - before + 1) * axes[2].along.taps;
  }

 private:
  // Whether rows are read where they are; finds their masks.
  bool reads_rows(const ConvolutionShape& shape) {
    const Sliding& along = axes[2].along;
    const bool is_known = shape.is_half ? kReadsRows<Half> : kReadsRows<float>;
    const bool is_side_by_side = along.in_stride == shape.item() && along.out_stride == shape.item();
    if (!is_known || is_direct || taps == 0 || shape.channels > 1 || shape.results > kResultsOfRows ||
        !is_side_by_side || along.stride > kMostRowStride || shape.activation.has_program()) {
      return false;
    }
    const auto begin_of = [&](int64_t vector, int64_t tap, int64_t limit) {
      const int64_t behind = limit - along.origin(vector * kColumnLanes) - tap * along.dilation;
      return behind > 0 ? (behind + along.stride - 1) / along.stride : 0;
    };
    const auto is_whole = [&](int64_t vector) {
      return begin_of(vector, 0, 0) == 0 && (vector + 1) * kColumnLanes <= along.places &&
             begin_of(vector, along.taps - 1, along.size) >= kColumnLanes;
    };
    const int64_t vectors = (along.places + kColumnLanes - 1) / kColumnLanes;
    while (whole_begin < vectors && !is_whole(whole_begin)) ++whole_begin;
    for (whole_end = vectors; whole_end > whole_begin && !is_whole(whole_end - 1);) --whole_end;
    if ((vectors - (whole_end - whole_begin)) * along.taps > kMostTapLanes) return false;
    tap_lanes.assign(static_cast<size_t>(along.taps), TapLanes::between(0, kColumnLanes, along.stride));
    for (int64_t vector = 0; vector < vectors; ++vector) {
      if (whole_begin <= vector && vector < whole_end) continue;
      const int64_t last = std::min(kColumnLanes, along.places - vector * kColumnLanes);
      for (int64_t k = 0; k < along.taps; ++k) {
        const int64_t end = std::min(last, begin_of(vector, k, along.size));
        tap_lanes.push_back(TapLanes::between(std::min(begin_of(vector, k, 0), end), end, along.stride));
      }
    }
    return true;
  }

  std::array<Slices, 3> slices(const ConvolutionShape& shape, const std::array<int64_t, 3>& size) const {
    std::array<Slices, 3> found;
    for (size_t d = 0; d < 3; ++d) {
      found[d] = shared_slices(axes[d].along, size[d]);
      if (axes[d].along.taps < 2) continue;
      Slices separate = separate_slices(axes[d].along, size[d]);
      // Lanes that are no places are fewer where each tap along a row has a slice of its own.
      const int64_t lines = d == 2 ? size[0] * size[1] - 1 : 0;
      const int64_t saved = lines * (found[d].length - separate.length);
      const bool saves_lanes = shape.results >= kManyResults && saved >= kColumnLanes &&
                               saved * kLanesWorthCopies > lines * size[2];
      if (separate.size() < found[d].size() || saves_lanes) found[d] = std::move(separate);
    }
    return found;
  }

  // No multiple of what lies in one place of a cache.
  static int64_t plane_of(const std::array<Slices, 3>& slices) {
    const int64_t size = slices[0].size() * slices[1].size() * slices[2].size();
    return (size + 31) / 32 * 32 + 16;
  }

  std::vector<int64_t> offsets(const std::array<Slices, 3>& slices, int64_t plane) const {
    const auto& [depth, height, width] = slices;
    const int64_t slab = width.length * height.length;
    std::vector<int64_t> found;
    for (size_t z = 0; z < depth.shift.size(); ++z) {
      for (size_t y = 0; y < height.shift.size(); ++y) {
        for (size_t x = 0; x < width.shift.size(); ++x) {
          const int64_t slice =
              (depth.slice[z] * height.count() + height.slice[y]) * width.count() + width.slice[x];
          const int64_t shift = depth.shift[z] * slab + height.shift[y] * width.length + width.shift[x];
          for (int64_t c = 0; c < products_apart; ++c)
            found.push_back(4 * (c * plane + slice * slab * depth.length + shift));
        }
      }
    }
    return found;
  }
};

ANYDML_ISA_END
