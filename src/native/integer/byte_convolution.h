// Convolutions of bytes by the micro-kernels of byte_tiles.h, which read a grid: four channels of a place lie
// side by side, and so do places, so that a tap's columns are the grid's own, shifted (direct convolution,
// without im2col).
//
//   sum of (a - za) * (b - zb) = sum of a * b - za * sum of b - zb * (sum of a - count * za)
//
// modulo 2^32. Padding is zb. Filters are packed tap by tap, once where they stay, else beforehand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "integer/byte_tiles.h"
#include "integer/grid_product.h"
#include "integer/known.h"
#include "platform/cpu_features.h"

#if defined(ANYDML_BYTE_TILES)

ANYDML_ISA_BEGIN
namespace {

class ByteConvolutionPlan final : public GridProduct {
 public:
  static bool is_taken(const Problem& problem) {
    return has_vnni() && problem.depth.count() <= kMostProducts &&
           Grid(problem.depth, 1, std::min(2 * kTile, problem.depth.width.places), kTile).places() *
                   bytes_of_place(problem.depth) <=
               2 * kGridBytes;
  }

  // Filters that are packed: panels of 16 results, group by group, and the sums of their elements.
  struct Filters {
    std::unique_ptr<int8_t[]> cells;
    std::vector<int32_t> totals;
    KnownInputs inputs;
  };

  ByteConvolutionPlan(const Problem& problem, std::string description,
                      std::shared_ptr<const Filters> known = nullptr)
      : GridProduct(problem, std::move(description), kTile, bytes_of_place(problem.depth), kTile,
                    has_amx() ? kAmxProductsPerByte : kVnniProductsPerByte),
        known_(std::move(known)),
        use_amx_(has_amx()),
        flip_a_(p_.a_type == DataType::kUint8 ? 0x80 : 0),
        flip_b_(p_.b_type == DataType::kInt8 ? 0x80 : 0) {
    const Depth& depth = p_.depth;
    channel_fours_ = divided_up(depth.channels, 4);
    // An odd number of lines, so that those of a tile fall into different sets of the first cache.
    four_bytes_ = (divided_up(grid_.places() * 4, 64) | 1) * 64;
    set_steps();
    room_.grid = take(fours_of_taps() * four_bytes_, 1);
    room_.rows = take(rows_of_grid(), sizeof(Grid::Row));
    room_.lines = take(4 * line_bytes(), 1);
    room_.sums = take(2 * kTile * kStrip, sizeof(int32_t));
    room_.totals = take(grid_.run({0, shape_.rows, 0, shape_.columns}), sizeof(int32_t));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    if (known_) {
      const std::vector<const void*> all = known_->inputs.with(inputs);
      each_block(all.data(), outputs, [&](const Block& block, std::byte* out, std::byte* room) {
        compute(block, *known_, all.data(), out, room);
      });
    } else {
      const Filters filters = packed(inputs);
      each_block(inputs, outputs, [&](const Block& block, std::byte* out, std::byte* room) {
        compute(block, filters, inputs, out, room);
      });
    }
  }

  bool has_prepack() const override { return true; }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    if (inputs[p_.a] == nullptr || inputs[p_.b] != nullptr) return nullptr;
    auto known = std::make_shared<Filters>(packed(inputs));
    if (!known->inputs.copy(p_, inputs, p_.rows * groups())) return nullptr;
    return std::make_unique<ByteConvolutionPlan>(p_, description(), std::move(known));
  }
  int64_t prepack_bytes() const override {
    return known_ ? (groups() * panels() + 1) * panel_bytes() +
                        static_cast<int64_t>(known_->totals.size() * sizeof(int32_t))
                  : 0;
  }

 private:
  // Four products of a step: a filter's channels from there on, at a tap; none where `row` is negative.
  struct Four {
    int64_t channel, row, column;
  };
  struct Room {
    int64_t grid, rows, lines, sums, totals;
  };

  static int64_t bytes_of_place(const Depth& depth) { return padded(depth.channels, 4); }
  int64_t groups() const { return p_.outer[1].size; }
  int64_t panels() const { return divided_up(p_.rows, kTile); }
  int64_t panel_bytes() const { return static_cast<int64_t>(fours_.size()) * 4 * kTile; }
  int64_t line_bytes() const { return padded(grid_.pitch, Grid::kReadAtOnce); }
  int64_t rows_of_grid() const {
    return grid_.height.count() * grid_.width.count() * (shape_.rows + grid_.height.reach());
  }
  // What of the grid the steps of a tap read.
  int64_t fours_of_taps() const { return depths_.four_step == 4 ? 1 : padded(channel_fours_, depths_.fours); }

  template <class T>
  static T* at(std::byte* room, int64_t place) {
    return reinterpret_cast<T*>(room + place);
  }

  // Steps are as long as channels fill; those of up to four channels are of taps that lie side by side.
  void set_steps() {
    const Depth& depth = p_.depth;
    const bool of_taps = channel_fours_ == 1 && depth.width.dilation == 1;
    constexpr int64_t kMost = kTileDepth / 4;
    const int64_t all = of_taps ? divided_up(depth.width.taps, depth.width.stride) : channel_fours_;
    const int64_t fours = divided_up(all, divided_up(all, kMost));
    const int64_t stride = of_taps ? depth.width.stride : 1;
    for (int64_t row = 0; row < depth.height.taps; ++row) {
      for (int64_t first = 0; first < (of_taps ? std::min(stride, depth.width.taps) : depth.width.taps);
           ++first) {
        for (int64_t begin = 0; begin < all; begin += fours) {
          const int64_t place = grid_.offset(row, first) * 4;
          offsets_.push_back(of_taps ? place + begin * 4 : place + begin * four_bytes_);
          for (int64_t i = begin; i < begin + fours; ++i) {
            const int64_t column = of_taps ? first + i * stride : first;
            const int64_t channel = of_taps ? 0 : i * 4;
            const bool is_there = column < depth.width.taps && channel < depth.channels;
            fours_.push_back({channel, is_there ? row : -1, column});
          }
        }
      }
    }
    depths_ = {offsets_.data(), static_cast<int64_t>(offsets_.size()), fours, of_taps ? 4 : four_bytes_};
  }

  Filters packed(const void* const* inputs) const {
    const int64_t bytes = panel_bytes();
    Filters filters;
    filters.cells =
        std::make_unique_for_overwrite<int8_t[]>(static_cast<size_t>((groups() * panels() + 1) * bytes));
    filters.totals.resize(static_cast<size_t>(groups() * panels() * kTile));
    const auto* const a = static_cast<const std::byte*>(inputs[p_.a]);
    parallel_for(groups() * panels(), threads_, [&](int64_t index) {
      const int64_t first = index % panels() * kTile;
      const std::byte* const from = a + index / panels() * p_.outer[1].a + first * p_.a_row;
      int8_t* const cells = filters.cells.get() + index * bytes;
      std::fill_n(cells, bytes, int8_t{0});
      for (int64_t r = 0; r < std::min(kTile, p_.rows - first); ++r) {
        filters.totals[static_cast<size_t>(index * kTile + r)] = pack_filter(from + r * p_.a_row, r, cells);
      }
    });
    // One row of ones, whose products are the sums of B.
    int8_t* const ones = filters.cells.get() + groups() * panels() * bytes;
    std::fill_n(ones, bytes, int8_t{0});
    for (size_t k = 0; k < fours_.size(); ++k) {
      if (fours_[k].row < 0) continue;
      std::fill_n(ones + cell_of(static_cast<int64_t>(k), 0),
                  std::min<int64_t>(4, p_.depth.channels - fours_[k].channel), int8_t{1});
    }
    return filters;
  }

  // Where a result's four products lie in a panel.
  int64_t cell_of(int64_t four, int64_t result) const {
    return (four / depths_.fours * kTile + result) * depths_.fours * 4 + four % depths_.fours * 4;
  }

  // Returns the sum of a filter's elements.
  int32_t pack_filter(const std::byte* from, int64_t result, int8_t* cells) const {
    const Depth& depth = p_.depth;
    int32_t total = 0;
    for (size_t k = 0; k < fours_.size(); ++k) {
      const Four& four = fours_[k];
      if (four.row < 0) continue;
      int8_t* const to = cells + cell_of(static_cast<int64_t>(k), result);
      const std::byte* const tap = from + four.row * depth.a_rows + four.column * depth.a_columns;
      for (int64_t i = 0; i < std::min<int64_t>(4, depth.channels - four.channel); ++i) {
        to[i] = static_cast<int8_t>(load<uint8_t>(tap + (four.channel + i) * depth.a_step) ^ flip_a_);
        total += to[i];
      }
    }
    return total;
  }

  void compute(const Block& block, const Filters& filters, const void* const* inputs, std::byte* out,
               std::byte* room) const {
    const auto zero = static_cast<uint8_t>(p_.b_zero.integer(inputs, 0) ^ flip_b_);
    fill_grid(block, zero, room);
    TileOperands tiles = {nullptr, nullptr, panel_bytes(), 4 * kTile, depths_, nullptr, kStrip, true};
    const int64_t all = (block.part.rows - 1) * grid_.pitch + block.part.end - block.part.begin;
    const auto zero_a = [&](int64_t result) {
      return static_cast<uint32_t>(p_.a_zero.integer(inputs, block.parameters + result)) -
             (flip_a_ != 0 ? 128u : 0u);
    };
    bool have_zeros = false;
    for (int64_t r = 0; r < (p_.a_zero.step == 0 ? 1 : block.results); ++r) {
      have_zeros |= zero_a(block.first_result + r) != 0;
    }
    auto* const totals = at<int32_t>(room, room_.totals);
    auto* const grid = at<uint8_t>(room, room_.grid);
    if (have_zeros) {
      tiles.a = filters.cells.get() + groups() * panels() * panel_bytes();
      for (int64_t c = 0; c < all; c += kTile) {
        tiles.b = grid + c * 4;
        tiles.sums = totals + c;
        add_vnni_tile<1>(tiles, tiles.a, tiles.sums, 1);
      }
    }
    if (use_amx_) configure_tiles(depths_.fours);
    auto* const sums = at<int32_t>(room, room_.sums);
    RowScale scales[2 * kTile];
    uint32_t zeros[2 * kTile];
    for (int64_t first = 0; first < block.results && !is_cancelled(); first += 2 * kTile) {
      const int64_t results = std::min(2 * kTile, block.results - first);
      const int64_t panel = block.group * panels() + (block.first_result + first) / kTile;
      for (int64_t r = 0; r < results; ++r) {
        const int64_t result = block.first_result + first + r;
        scales[r] = row_scale(p_, inputs, block.parameters + result);
        zeros[r] = zero_a(result);
      }
      tiles.a = filters.cells.get() + panel * panel_bytes();
      for (int64_t begin = 0; begin < all; begin += kStrip) {
        const int64_t places = std::min(kStrip, all - begin);
        for (int64_t c = 0; c < places; c += 2 * kTile) {
          tiles.b = grid + (begin + c) * 4;
          tiles.sums = sums + c;
          add_tiles(tiles, results, places - c > kTile, use_amx_);
        }
        const RowWriter writer = writer_of(block, inputs, out, begin, places);
        for (int64_t r = 0; r < results; ++r) {
          int32_t* const row = sums + r * kStrip;
          if (zeros[r] != 0) {
            for (int64_t c = 0; c < places; ++c) {
              row[c] = static_cast<int32_t>(static_cast<uint32_t>(row[c]) -
                                            zeros[r] * static_cast<uint32_t>(totals[begin + c]));
            }
          }
          const auto total = static_cast<uint32_t>(filters.totals[static_cast<size_t>(panel * kTile + r)]);
          const uint32_t all_of_a = total - static_cast<uint32_t>(p_.depth.count()) * zeros[r];
          writer.write(static_cast<const int32_t*>(row), block.first_result + first + r, scales[r],
                       static_cast<int32_t>(-uint32_t{zero} * all_of_a));
        }
      }
    }
    if (use_amx_) release_tiles();
  }

  // The channels of a block's part of the input, four by four; those that there are not are 0.
  void fill_grid(const Block& block, uint8_t zero, std::byte* room) const {
    auto* const rows = at<Grid::Row>(room, room_.rows);
    int64_t count = 0;
    grid_.each_row(block.part, [&](const Grid::Row& row) { rows[count++] = row; });
    const Depth& depth = p_.depth;
    for (int64_t four = 0; four < channel_fours_; ++four) {
      const int64_t channels = std::min<int64_t>(4, depth.channels - four * 4);
      const std::byte* const from = block.b + four * 4 * depth.b_step;
      uint8_t* const to = at<uint8_t>(room, room_.grid) + four * four_bytes_;
      std::fill_n(at<uint8_t>(room, room_.lines) + channels * line_bytes(), (4 - channels) * line_bytes(),
                  uint8_t{0});
      for (int64_t i = 0; i < count; ++i)
        fill_row(rows[i], from, channels, zero, room, to + rows[i].place * 4);
    }
  }

  void fill_row(const Grid::Row& row, const std::byte* from, int64_t channels, uint8_t zero, std::byte* room,
                uint8_t* to) const {
    const Depth& depth = p_.depth;
    from += row.y * depth.height.step + row.x * depth.width.step;
    const int64_t step = depth.width.stride * depth.width.step;
    const int64_t end = row.y < 0 ? 0 : row.end;
    const int64_t begin = row.y < 0 ? 0 : row.begin;
    if (depth.b_step == 1 && channels == 4) {
      const uint32_t zeros = zero * 0x01010101u;
      const uint32_t flips = flip_b_ * 0x01010101u;
      for (int64_t i = 0; i < grid_.pitch; ++i) {
        const bool is_there = i >= begin && i < end;
        const uint32_t cell = is_there ? load<uint32_t>(from + (i - begin) * step) ^ flips : zeros;
        std::memcpy(to + i * 4, &cell, sizeof(cell));
      }
      return;
    }
    auto* const lines = at<uint8_t>(room, room_.lines);
    for (int64_t c = 0; c < channels; ++c) {
      uint8_t* const line = lines + c * line_bytes();
      std::fill_n(line, begin, zero);
      read_bytes(from + c * depth.b_step, step, end - begin, flip_b_,
                 reinterpret_cast<std::byte*>(line + begin));
      std::fill(line + end, line + grid_.pitch, zero);
    }
    for (int64_t i = 0; i < grid_.pitch; i += 4 * kTile) {
      if (grid_.pitch - i <= kTile) {
        interleave_four(lines + i, line_bytes(), to + i * 4);
      } else {
        interleave_four_by_64(lines + i, line_bytes(), to + i * 4, 4 * kTile);
      }
    }
  }

  std::shared_ptr<const Filters> known_;
  bool use_amx_;
  // The highest bits, which make elements of A signed and those of B unsigned.
  uint8_t flip_a_, flip_b_;
  int64_t channel_fours_;
  int64_t four_bytes_;  // of the grid, from four channels to the next four
  std::vector<Four> fours_;
  std::vector<int64_t> offsets_;
  TileDepths depths_ = {};
  Room room_ = {};
};

}  // namespace
ANYDML_ISA_END
#endif
