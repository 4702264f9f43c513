// CONVOLUTION on planes, in every form: results of a group by panels of places, which are read where each tap
// shifts them to.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "convolution/axes.h"
#include "convolution/outputs.h"
#include "convolution/part.h"
#include "convolution/planes.h"
#include "convolution/row_tile.h"
#include "convolution/tuning.h"
#include "convolution/weights.h"
#include "convolution/window_tile.h"
#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"

ANYDML_ISA_BEGIN

class PlanesConvolution final : public Plan {
 public:
  // `parts` are the phases of a transposed convolution, or the convolution itself; places that no tap reaches
  // are of parts without taps.
  PlanesConvolution(const ConvolutionShape& shape, const std::vector<SpatialAxes>& parts,
                    std::string description)
      : Plan(std::move(description)), shape_(shape), writer_(shape.is_half, shape.fused, shape.activation) {
    parts_.reserve(parts.size());
    for (const SpatialAxes& axes : parts) parts_.emplace_back(shape_, axes, packed_);
    for (const ConvolutionPart& part : parts_) {
      blocks_.push_back(part.blocks(shape_, 1));
      work_ += part.work(shape_);
    }
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const int threads = threads_for(work_);
    std::vector<PartBlocks> shared;
    for (size_t i = 0; threads > 1 && i < parts_.size(); ++i)
      shared.push_back(parts_[i].blocks(shape_, threads));
    const std::vector<PartBlocks>& blocks = threads > 1 ? shared : blocks_;
    const std::shared_ptr<const PackedWeights> weights =
        known_ ? known_ : packed(inputs, !is_packed_by_block(blocks));
    std::vector<int64_t> ends;
    int64_t units = 0;
    int64_t floats = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      units += blocks[i].units(shape_);
      ends.push_back(units);
      const int64_t rows = weights->filter == nullptr ? parts_[i].rows_floats(shape_) : 0;
      floats = std::max(floats, parts_[i].planes_floats(shape_, blocks[i]) +
                                    parts_[i].sums_floats(shape_, blocks[i]) + rows);
    }
    floats = (floats + OutputWriter::kMostSums + kChunk * kPanel + kAligned - 1) / kAligned * kAligned;
    const int64_t tasks = threads == 1 ? 1 : std::min<int64_t>(units, threads * kTasksOfAThread);
    const int64_t workers = std::min<int64_t>(threads, tasks);
    const Scratch memory(workers * floats * 4);
    parallel_for(tasks, threads, [&](int64_t task, int worker) {
      Worker some{*this, *weights, inputs, outputs, memory.floats() + worker * floats};
      size_t part = 0;
      for (int64_t i = share_begin(task, tasks, units); i < share_begin(task + 1, tasks, units); ++i) {
        if (is_cancelled()) return;
        while (i >= ends[part]) ++part;
        some.compute(parts_[part], blocks[part], i - (part == 0 ? 0 : ends[part - 1]));
      }
    });
  }

  bool has_prepack() const override { return true; }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    if (inputs[1] == nullptr || (shape_.has_bias && inputs[2] == nullptr)) return nullptr;
    std::unique_ptr<PlanesConvolution> plan(new PlanesConvolution(*this));
    plan->known_ = packed(inputs, true);
    return plan;
  }
  int64_t prepack_bytes() const override {
    return known_ ? (packed_ + static_cast<int64_t>(known_->biases.size())) * 4 : 0;
  }

 private:
  // Floats of a line of memory.
  static constexpr int64_t kAligned = 16;

  // The weights of some results of a group, in bytes from result to result and from product to product.
  struct FilterView {
    const std::byte* first;
    int64_t result_step;
    int64_t step;
    const float* biases;  // of all results
    int64_t result = 0;   // the first of them

    const std::byte* of(int64_t number) const { return first + (number - result) * result_step; }
  };

  // A block of places of an image's group, and a share of the results.
  struct Unit {
    PlaceBlock block;
    int64_t group;
    int64_t images;
    const std::byte* planes;
    int64_t begin, end;
    const std::byte* in;  // the group's first element in the first image
    std::byte* out;       // the block's first place of the group's first result
    const PanelRuns* runs;
  };

  // A thread's, with what it remembers of the block before.
  struct Worker {
    const PlanesConvolution& plan;
    const PackedWeights& weights;
    const void* const* inputs;
    void* const* outputs;
    float* memory;
    PanelRuns rest = {};  // of a block that is smaller than others
    const PartBlocks* rest_of = nullptr;
    std::array<int64_t, 3> rest_size = {};
    // Blocks that are whole images, whose planes have their padding: of so many images and groups.
    const PartBlocks* padded_of = nullptr;
    std::array<int64_t, 2> padded = {};
    std::array<std::vector<RowChains>, 2> chains = {};  // rows alone, and as many as hide their latency

    void compute(const ConvolutionPart& part, const PartBlocks& blocks, int64_t unit);
    FilterView view(const ConvolutionPart& part, int64_t group) const {
      const ConvolutionShape& shape = plan.shape_;
      const int64_t first = group * shape.results;
      const float* const biases = weights.biases.data() + first;
      if (weights.filter == nullptr && !part.reads_in_place(shape))
        return {nullptr, part.row.size() * 4, 4, biases};
      if (weights.filter == nullptr) {
        const auto* const filter = static_cast<const std::byte*>(inputs[1]);
        return {filter + part.row.first() + group * shape.group_filter, shape.result_filter, part.step,
                biases};
      }
      const float* const filter = weights.filter.get() + part.packed + first * part.row.size();
      return {reinterpret_cast<const std::byte*>(filter), part.row.size() * 4, 4, biases};
    }
    void multiply(const ConvolutionPart& part, const PartBlocks& blocks, const Unit& unit) const;
    void find_chains(const ConvolutionPart& part, const PlaceBlock& block);
    template <class Item>
    void multiply_along_rows(const ConvolutionPart& part, Unit unit, int64_t end) const;
    void pack_rows(const ConvolutionPart& part, int64_t group, int64_t result, int64_t rows, float* to) const;
    static void copy_panel(const ProductChunk& chunk, int64_t vectors, float* to, WindowTile& tile);
    void copy_last(const ProductChunk& chunk, int64_t lanes, int64_t width, WindowTile& tile) const;
    void repair(const ConvolutionPart& part, const Unit& unit, const FilterView& filter, int64_t result,
                int64_t rows, int64_t width, int64_t image, int64_t panel, float* sums) const;
    static bool is_whole(const ConvolutionPart& part, const std::array<int64_t, 3>& place);
    float exact_sum(const ConvolutionPart& part, const std::byte* in, const FilterView& filter,
                    int64_t result, const std::array<int64_t, 3>& place) const;
  };

  // Whether each weight that is not read where it is belongs to one block of places alone, for which it is
  // packed when its turn comes.
  bool is_packed_by_block(const std::vector<PartBlocks>& blocks) const {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const auto& count = blocks[i].count;
      if (!parts_[i].reads_in_place(shape_) && shape_.batch * count[0] * count[1] * count[2] > 1)
        return false;
    }
    return true;
  }

  std::shared_ptr<const PackedWeights> packed(const void* const* inputs, bool all_parts) const {
    const auto found = std::make_shared<PackedWeights>();
    const int64_t all = shape_.groups * shape_.results;
    const auto* const bias = static_cast<const std::byte*>(inputs[2]);
    found->biases.resize(static_cast<size_t>(all));
    for (int64_t i = 0; shape_.has_bias && i < all; ++i)
      found->biases[static_cast<size_t>(i)] = load_float(shape_.is_half, bias + i * shape_.bias_step);
    if (!all_parts) return found;
    found->filter.reset(new float[static_cast<size_t>(packed_)]);
    const auto* const filter = static_cast<const std::byte*>(inputs[1]);
    const int threads = threads_for(packed_ * 8);
    const int64_t tasks = std::min<int64_t>(all, threads * kTasksOfAThread);
    int64_t most = 0;
    for (const ConvolutionPart& part : parts_) most = std::max(most, part.row.size());
    parallel_for(tasks, threads, [&](int64_t task) {
      const std::unique_ptr<float[]> room(new float[static_cast<size_t>(most)]);
      for (int64_t i = share_begin(task, tasks, all); i < share_begin(task + 1, tasks, all); ++i) {
        const std::byte* const from =
            filter + i / shape_.results * shape_.group_filter + i % shape_.results * shape_.result_filter;
        for (const ConvolutionPart& part : parts_)
          part.row.pack(shape_.is_half, from, found->filter.get() + part.packed + i * part.row.size(),
                        room.get());
      }
    });
    return found;
  }

  ConvolutionShape shape_;
  OutputWriter writer_;
  std::vector<ConvolutionPart> parts_;
  std::vector<PartBlocks> blocks_;  // for one thread
  int64_t packed_ = 0;              // weights of all parts
  int64_t work_ = 0;
  std::shared_ptr<const PackedWeights> known_;

  PlanesConvolution(const PlanesConvolution& other)
      : Plan(other.description()),
        shape_(other.shape_),
        writer_(other.writer_),
        parts_(other.parts_),
        blocks_(other.blocks_),
        packed_(other.packed_),
        work_(other.work_) {}
};

inline void PlanesConvolution::Worker::compute(const ConvolutionPart& part, const PartBlocks& blocks,
                                               int64_t number) {
  const ConvolutionShape& shape = plan.shape_;
  const int64_t share = number % blocks.rows;
  number /= blocks.rows;
  Unit unit{};
  unit.begin = share_begin(share, blocks.rows, shape.results);
  unit.end = share_begin(share + 1, blocks.rows, shape.results);
  unit.in = static_cast<const std::byte*>(inputs[0]);
  unit.out = static_cast<std::byte*>(outputs[0]);
  for (size_t d = 3; d-- > 0;) {
    const SpatialAxis& axis = part.axes[d];
    unit.block.first[d] = number % blocks.count[d] * blocks.size[d];
    unit.block.size[d] = std::min(blocks.size[d], axis.along.places - unit.block.first[d]);
    number /= blocks.count[d];
    unit.in += axis.in_first;
    unit.out += axis.out_first + unit.block.first[d] * axis.along.out_stride;
  }
  const int64_t groups = blocks.group_blocks(shape);
  unit.group = number % groups * blocks.groups;
  const int64_t end = std::min(unit.group + blocks.groups, shape.groups);
  const int64_t image = number / groups * blocks.images;
  unit.images = std::min(blocks.images, shape.batch - image);
  unit.in += image * shape.batch_in + unit.group * shape.group_in;
  unit.out += image * shape.batch_out + unit.group * shape.results * shape.result_out;
  if (part.is_along_rows) {
    find_chains(part, unit.block);
    return shape.is_half ? multiply_along_rows<Half>(part, unit, end)
                         : multiply_along_rows<float>(part, unit, end);
  }
  unit.runs = &blocks.runs;
  if (unit.block.size != blocks.size) {
    if (rest_of != &blocks || rest_size != unit.block.size)
      rest.find(part.axes, blocks.slices, unit.block.size, blocks.width);
    rest_of = &blocks;
    rest_size = unit.block.size;
    unit.runs = &rest;
  }
  if (part.taps > 0 && !part.is_direct) {
    const PlaneWriter writer(shape.is_half, (end - unit.group) * shape.channels, shape.channel_in,
                             blocks.plane, blocks.size);
    const std::array<int64_t, 2> made{unit.images, end - unit.group};
    const bool is_padded = padded_of == &blocks && made[0] <= padded[0] && made[1] <= padded[1];
    for (int64_t i = 0; i < unit.images; ++i) {
      writer.write(part.axes, blocks.slices, unit.block, unit.in + i * shape.batch_in,
                   memory + i * part.image_floats(shape, blocks), is_padded);
    }
    if (!is_padded) {
      padded_of = blocks.count == std::array<int64_t, 3>{1, 1, 1} ? &blocks : nullptr;
      padded = made;
    }
  }
  unit.planes = reinterpret_cast<const std::byte*>(memory);
  for (; unit.group < end; ++unit.group) {
    multiply(part, blocks, unit);
    unit.in += shape.group_in;
    unit.out += shape.results * shape.result_out;
    unit.planes += shape.channels * blocks.plane * 4;
  }
}

// Rows of places of a block as many at a time as hide each other's latency, where the same taps of them lie
// on elements; and one at a time.
inline void PlanesConvolution::Worker::find_chains(const ConvolutionPart& part, const PlaceBlock& block) {
  const auto& [slabs, lines, row] = part.axes;
  for (std::vector<RowChains>& each : chains) each.clear();
  const int64_t step = view(part, 0).step * row.along.taps;
  for (int64_t z = 0; z < block.size[0]; ++z) {
    const int64_t slab = block.first[0] + z;
    const auto [first_z, last_z] = slabs.along.inside(slab);
    for (int64_t y = 0; y < block.size[1];) {
      const int64_t line = block.first[1] + y;
      const auto [first, last] = lines.along.inside(line);
      const bool are_more = y + kChainsOfRows <= block.size[1] &&
                            lines.along.inside(line + kChainsOfRows - 1) == std::pair{first, last};
      const int64_t from =
          (slabs.along.origin(slab) + first_z * slabs.along.dilation) * slabs.along.in_stride +
          (lines.along.origin(line) + first * lines.along.dilation) * lines.along.in_stride +
          row.along.origin(0) * row.along.in_stride;
      chains[are_more ? 1 : 0].push_back({from, z * slabs.along.out_stride + y * lines.along.out_stride,
                                          (first_z * lines.along.taps + first) * step, last_z - first_z,
                                          last - first});
      y += are_more ? kChainsOfRows : 1;
    }
  }
}

// Depthwise: of each row the vectors that need no masks in one run. The groups are those up to `end`. Rows
// that have no others below them with the same taps are computed for several groups at a time: a chain alone
// would wait for each of its sums.
template <class Item>
void PlanesConvolution::Worker::multiply_along_rows([[maybe_unused]] const ConvolutionPart& part,
                                                    [[maybe_unused]] Unit unit,
                                                    [[maybe_unused]] int64_t end) const {
  if constexpr (kReadsRows<Item>) {
    constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
    const ConvolutionShape& shape = plan.shape_;
    const auto& [slabs, lines, row] = part.axes;
    FilterView filter = view(part, unit.group);
    RowTile tile{};
    tile.tap_steps = {slabs.along.dilation * slabs.along.in_stride,
                      lines.along.dilation * lines.along.in_stride, row.along.dilation * kItem};
    tile.columns = row.along.taps;
    tile.weight_steps = {lines.along.taps * row.along.taps * filter.step, row.along.taps * filter.step,
                         filter.step};
    tile.fused = &shape.fused;
    const int64_t vectors = (row.along.places + kColumnLanes - 1) / kColumnLanes;
    const auto& multiply = kMultiplyRows<Item>[row.along.stride - 1];
    const bool is_packed = filter.first != nullptr;
    int64_t done = unit.group;  // up to which rows alone are computed
    for (; unit.group < end; ++unit.group) {
      if (is_cancelled()) return;
      filter = view(part, unit.group);
      const bool is_alone = unit.group >= done;
      const bool are_many = is_alone && is_packed && unit.group + kChainsOfRows <= end;
      const int64_t of_group = are_many ? view(part, unit.group + 1).first - filter.first : 0;
      if (is_alone) done = unit.group + (are_many ? kChainsOfRows : 1);
      if (!is_packed) {
        pack_rows(part, unit.group, unit.begin, unit.end - unit.begin, memory);
        filter.first = reinterpret_cast<const std::byte*>(memory);
        filter.result = unit.begin;
      }
      for (int64_t r = unit.begin; r < unit.end; ++r) {
        tile.biases = filter.biases + r;
        tile.weights = filter.of(r);
        for (int64_t v = 0; v < vectors; v += tile.vectors) {
          const bool is_masked = v < part.whole_begin || v >= part.whole_end;
          tile.vectors = is_masked ? 1 : part.whole_end - part.whole_begin;
          tile.from = unit.in + v * kColumnLanes * row.along.stride * kItem;
          tile.to = unit.out + r * shape.result_out + v * kColumnLanes * kItem;
          tile.lanes = part.lanes_of_vector(v);
          tile.results = lanes_between(0, row.along.places - v * kColumnLanes);
          const auto each = [&](size_t more) {
            multiply[more][is_masked ? 1 : 0](tile, chains[more].data(),
                                              static_cast<int64_t>(chains[more].size()));
          };
          if (!chains[1].empty()) {
            tile.chain_step = lines.along.stride * lines.along.in_stride;
            tile.result_step = lines.along.out_stride;
            each(1);
          }
          if (is_alone && !chains[0].empty()) {
            // Of one group all chains are the same.
            tile.chain_step = are_many ? shape.group_in : 0;
            tile.result_step = are_many ? shape.results * shape.result_out : 0;
            tile.chain_weights = of_group;
            tile.chain_biases = are_many ? shape.results : 0;
            each(0);
          }
        }
      }
      unit.in += shape.group_in;
      unit.out += shape.results * shape.result_out;
    }
  }
}

inline void PlanesConvolution::Worker::multiply(const ConvolutionPart& part, const PartBlocks& blocks,
                                                const Unit& unit) const {
  const ConvolutionShape& shape = plan.shape_;
  const PanelRuns& runs = *unit.runs;
  const int64_t width = blocks.width;
  float* const sums = memory + part.planes_floats(shape, blocks);
  float* const tile_sums = sums + part.sums_floats(shape, blocks);
  FilterView filter = view(part, unit.group);
  const bool is_packed = filter.first != nullptr;
  // Where there are many tiles, a panel is copied to where its lanes follow each other: to vectors that cross
  // no lines of the first cache, and to few pages.
  float* const room = tile_sums + OutputWriter::kMostSums;
  float* const copies = unit.end - unit.begin >= kResultsWorthCopies && width <= kPanel ? room : nullptr;
  float* const packed_rows = room + kChunk * kPanel;
  const std::byte* direct = unit.in;
  for (size_t d = 0; d < 3; ++d) {
    const Sliding& along = part.axes[d].along;
    direct += along.origin(unit.block.first[d]) * along.in_stride;
  }
  WindowTile tile{};
  tile.result_step = filter.result_step;
  tile.step = filter.step;
  const int64_t image_panels = (runs.lanes() + width - 1) / width;
  const int64_t panels = image_panels * unit.images;
  const bool is_single = part.chunks.size() == 1;
  const int64_t most_rows = !is_packed  ? part.packed_rows(shape)
                            : is_single ? unit.end - unit.begin
                                        : part.most_rows(blocks, unit.end - unit.begin);
  for (int64_t row = unit.begin; row < unit.end; row += most_rows) {
    const int64_t rows = std::min(most_rows, unit.end - row);
    const int64_t tiles = (rows + kMostRows - 1) / kMostRows;
    if (!is_packed) {
      pack_rows(part, unit.group, row, rows, packed_rows);
      filter.first = reinterpret_cast<const std::byte*>(packed_rows);
      filter.result = row;
    }
    const int64_t strip = is_single ? panels : std::max<int64_t>(1, kSumsFloats / (rows * width));
    for (int64_t first = 0; first < panels; first += strip) {
      int64_t k = 0;
      for (const ProductChunk& chunk : part.chunks) {
        if (is_cancelled()) return;
        for (int64_t i = first; i < std::min(panels, first + strip); ++i) {
          const int64_t image = i / image_panels;
          const int64_t panel = i % image_panels;
          const int64_t lanes = std::min(width, runs.lanes() - panel * width);
          const int64_t vectors = (lanes + kColumnLanes - 1) / kColumnLanes;
          tile.places = unit.planes + (image * part.image_floats(shape, blocks) + panel * width) * 4;
          tile.channel_step = blocks.plane * 4;
          tile.offsets = blocks.offsets.data() + chunk.tap;
          tile.taps = chunk.taps;
          tile.channels = chunk.channels;
          if (part.is_direct) {
            tile.places = direct + image * shape.batch_in + panel * width * 4;
            tile.channel_step = shape.channel_in;
            if (lanes < vectors * kColumnLanes) copy_last(chunk, lanes, vectors * kColumnLanes, tile);
          }
          tile.places += chunk.channel * tile.channel_step;
          if (copies != nullptr) copy_panel(chunk, vectors, copies, tile);
          const auto [run, runs_end] = runs.of(panel);
          for (int64_t t = 0; t < tiles; ++t) {
            const int64_t r = row + share_begin(t, tiles, rows);
            const int64_t count = row + share_begin(t + 1, tiles, rows) - r;
            tile.weights = filter.of(r) + k * filter.step;
            tile.biases = k == 0 ? filter.biases + r : nullptr;
            float* const to = is_single ? tile_sums : sums + ((i - first) * rows + r - row) * width;
            kMultiplyWindow[static_cast<size_t>(vectors - 1)][static_cast<size_t>(count - 1)](tile, to);
            if (&chunk != &part.chunks.back()) continue;
            if (part.has_padding)
              repair(part, unit, filter, r, count, vectors * kColumnLanes, image, panel, to);
            plan.writer_.write(to, count, vectors * kColumnLanes, run, runs_end,
                               unit.out + image * shape.batch_out + r * shape.result_out, shape.result_out,
                               part.axes[2].along.out_stride);
          }
        }
        k += chunk.taps * chunk.channels;
      }
    }
  }
}

inline void PlanesConvolution::Worker::pack_rows(const ConvolutionPart& part, int64_t group, int64_t result,
                                                 int64_t rows, float* to) const {
  const ConvolutionShape& shape = plan.shape_;
  const auto* const filter = static_cast<const std::byte*>(inputs[1]) + group * shape.group_filter;
  const int64_t depth = part.row.size();
  for (int64_t i = 0; i < rows; ++i)
    part.row.pack(shape.is_half, filter + (result + i) * shape.result_filter, to + i * depth,
                  to + rows * depth);
}

// The products of a chunk, one after the other.
inline void PlanesConvolution::Worker::copy_panel(const ProductChunk& chunk, int64_t vectors, float* to,
                                                  WindowTile& tile) {
  static constexpr int64_t kNone = 0;
  const int64_t bytes = vectors * static_cast<int64_t>(sizeof(Columns));
  auto* at = reinterpret_cast<std::byte*>(to);
  for (int64_t tap = 0; tap < chunk.taps; ++tap) {
    const std::byte* from = tile.places + tile.offsets[tap];
    for (int64_t c = 0; c < chunk.channels; ++c, from += tile.channel_step, at += bytes) {
      for (int64_t v = 0; v < bytes; v += static_cast<int64_t>(sizeof(Columns)))
        store_vector(at + v, load_vector<Columns>(from + v));
    }
  }
  tile.places = reinterpret_cast<const std::byte*>(to);
  tile.offsets = &kNone;
  tile.channels = chunk.taps * chunk.channels;
  tile.taps = 1;
  tile.channel_step = bytes;
}

// Nothing is read behind the last place.
inline void PlanesConvolution::Worker::copy_last(const ProductChunk& chunk, int64_t lanes, int64_t width,
                                                 WindowTile& tile) const {
  for (int64_t c = chunk.channel; c < chunk.channel + chunk.channels; ++c) {
    float* const to = memory + c * kMostLanes;
    copy_short(reinterpret_cast<std::byte*>(to), tile.places + c * tile.channel_step, lanes * 4);
    std::fill(to + lanes, to + width, 0.0f);
  }
  tile.places = reinterpret_cast<const std::byte*>(memory);
  tile.channel_step = kMostLanes * 4;
}

// Taps on padding add nothing, and are products with 0 above: NaN where a weight is not finite. Such sums are
// made anew, of the taps that lie on elements.
inline void PlanesConvolution::Worker::repair(const ConvolutionPart& part, const Unit& unit,
                                              const FilterView& filter, int64_t result, int64_t rows,
                                              int64_t width, int64_t image, int64_t panel,
                                              float* sums) const {
  if (!may_have_nan(sums, rows * width)) return;
  const std::byte* const in = unit.in + image * plan.shape_.batch_in;
  const auto [begin, end] = unit.runs->of(panel);
  for (int64_t i = 0; i < rows; ++i) {
    for (const PlaceRun* run = begin; run < end; ++run) {
      for (int64_t k = 0; k < run->count; ++k) {
        float& sum = sums[i * width + run->lane + k];
        if (sum == sum) continue;
        const std::array<int64_t, 3> place{unit.block.first[0] + run->place[0],
                                           unit.block.first[1] + run->place[1],
                                           unit.block.first[2] + run->place[2] + k};
        if (is_whole(part, place)) continue;
        sum = exact_sum(part, in, filter, result + i, place);
      }
    }
  }
}

// Whether all taps lie on elements.
inline bool PlanesConvolution::Worker::is_whole(const ConvolutionPart& part,
                                                const std::array<int64_t, 3>& place) {
  for (size_t d = 0; d < 3; ++d) {
    const Sliding& along = part.axes[d].along;
    if (along.inside(place[d]) != std::pair{int64_t{0}, along.taps}) return false;
  }
  return true;
}

inline float PlanesConvolution::Worker::exact_sum(const ConvolutionPart& part, const std::byte* in,
                                                  const FilterView& filter, int64_t result,
                                                  const std::array<int64_t, 3>& place) const {
  const ConvolutionShape& shape = plan.shape_;
  const auto& [depth, height, width] = part.axes;
  std::array<std::pair<int64_t, int64_t>, 3> inside;
  for (size_t d = 0; d < 3; ++d) inside[d] = part.axes[d].along.inside(place[d]);
  float sum = filter.biases[result];
  for (int64_t z = inside[0].first; z < inside[0].second; ++z) {
    for (int64_t y = inside[1].first; y < inside[1].second; ++y) {
      for (int64_t x = inside[2].first; x < inside[2].second; ++x) {
        const int64_t tap = (z * height.along.taps + y) * width.along.taps + x;
        const std::byte* from = in;
        const std::array<int64_t, 3> taps{z, y, x};
        for (size_t d = 0; d < 3; ++d) {
          const Sliding& along = part.axes[d].along;
          from += (along.origin(place[d]) + taps[d] * along.dilation) * along.in_stride;
        }
        const std::byte* w = filter.of(result) + tap * shape.channels * filter.step;
        for (int64_t c = 0; c < shape.channels; ++c, w += filter.step)
          sum = std::fma(load<float>(w), load_float(shape.is_half, from + c * shape.channel_in), sum);
      }
    }
  }
  return sum;
}

ANYDML_ISA_END
