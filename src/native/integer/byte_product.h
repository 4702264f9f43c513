// Products of bytes that are packed as they are, for the micro-kernels of byte_tiles.h.
//
//   sum over k of (a - za) * (b - zb) = sum of a * b - za * sum of b - zb * (sum of a - count * za)
//
// modulo 2^32, in which the left side is known to fit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "integer/byte_packing.h"
#include "integer/byte_tiles.h"
#include "integer/known.h"
#include "integer/product.h"
#include "platform/cpu_features.h"

#if defined(ANYDML_BYTE_TILES)

ANYDML_ISA_BEGIN
namespace {

class ByteProductPlan final : public BlockedProduct {
 public:
  static bool is_taken(const Problem& problem) {
    return has_vnni() && problem.depth.count() <= kMostProducts;
  }

  // A right matrix that is packed once, and copies of the other inputs that are known.
  struct Known {
    std::vector<uint8_t> cells;
    std::vector<int32_t> totals;  // of its columns
    KnownInputs inputs;
  };

  ByteProductPlan(Problem problem, std::string description, std::shared_ptr<const Known> known = nullptr)
      : BlockedProduct(std::move(problem), std::move(description), kTile, kTile,
                       has_amx() ? kAmxProductsPerByte : kVnniProductsPerByte),
        known_(std::move(known)),
        use_amx_(has_amx()),
        read_a_(reader_of<int8_t, true>(p_.a_type)),
        read_b_(reader_of<uint8_t, true>(p_.b_type)) {
    depth_ = std::min(kByteDepthBlock, padded(p_.depth.count(), kTileDepth));
    // Of few products the sums of some rows stay in the first cache until they are outputs.
    rows_ = std::min(depth_ * task_.columns <= kFewCells ? 2 * kTile : kRowBlock, task_.rows);
    room_.a = take(rows_ * depth_, 1);
    // The last panel is read to the end of a tile.
    room_.b = take(known_ ? 0 : task_.columns * depth_ + kTileBytes, 1);
    room_.row = take(kLinePiece + kTileDepth, 1);
    room_.columns = take(TileColumns::kDepth * task_.columns, 1);
    room_.flips = take(task_.columns, 1);
    room_.sums = take(task_.rows * task_.columns, sizeof(int32_t));
    room_.row_totals = take(task_.rows, sizeof(int32_t));
    room_.column_totals = take(task_.columns, sizeof(int32_t));
    room_.column_zeros = take(task_.columns, sizeof(int32_t));
    room_.end = take(0, 1);
    for (int64_t k = 0; k < depth_; k += kTileDepth) offsets_.push_back(k / kTileDepth * kTileBytes);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    if (!known_) return BlockedProduct::run(inputs, outputs);
    BlockedProduct::run(known_->inputs.with(inputs).data(), outputs);
  }

  bool has_prepack() const override { return p_.depth.taps() == 1; }

  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    const bool is_one = std::all_of(p_.outer.begin(), p_.outer.end(),
                                    [](const Outer& each) { return each.size == 1 || each.b == 0; });
    // A bias that stays too is copied, where all rows have the same one.
    const bool has_one_bias = (p_.rows == 1 || p_.bias_row == 0) &&
                              std::all_of(p_.outer.begin(), p_.outer.end(),
                                          [](const Outer& each) { return each.size == 1 || each.bias == 0; });
    if (inputs[p_.b] == nullptr || !is_one || p_.depth.height.places != 1 ||
        (p_.column_bias.at(inputs, 0) != nullptr && !has_one_bias)) {
      return nullptr;
    }
    auto known = std::make_shared<Known>();
    if (!known->inputs.copy(p_, inputs, p_.rows)) return nullptr;
    pack_all(inputs, *known);
    return std::make_unique<ByteProductPlan>(p_, description(), std::move(known));
  }

  int64_t prepack_bytes() const override {
    return known_ ? static_cast<int64_t>(known_->cells.size() + known_->totals.size() * sizeof(int32_t)) : 0;
  }

 private:
  struct Room {
    int64_t a, b, row, columns, flips, sums, row_totals, column_totals, column_zeros, end;
  };

  // Block by block of the depth all panels, each as long as the block.
  void pack_all(const void* const* inputs, Known& known) const {
    const int64_t count = p_.depth.count();
    const int64_t width = padded(p_.columns(), kTile);
    known.cells.assign(static_cast<size_t>(width * padded(count, kTileDepth) + kTileBytes), 0);
    known.totals.assign(static_cast<size_t>(width), 0);
    std::vector<std::byte> room(static_cast<size_t>(room_.end));
    const auto* const b = static_cast<const std::byte*>(inputs[p_.b]);
    std::fill_n(at<uint8_t>(room.data(), room_.flips), task_.columns, static_cast<uint8_t>(flip_b()));
    for (int64_t begin = 0; begin < count; begin += depth_) {
      const int64_t end = std::min(count, begin + depth_);
      const int64_t panel = panel_bytes(begin, end);
      for (int64_t first = 0; first < p_.columns(); first += task_.columns) {
        const int64_t columns = std::min(task_.columns, p_.columns() - first);
        uint8_t* const to = known.cells.data() + width * begin + first / kTile * panel;
        pack_block(b, first, columns, begin, end, 0, room.data(), to);
        for (int64_t c = 0; c < columns; c += kTile) {
          add_column_totals(to + c / kTile * panel, panel / kTileDepth, known.totals.data() + first + c);
        }
      }
    }
  }

  // Of a panel of columns.
  static int64_t panel_bytes(int64_t begin, int64_t end) {
    return divided_up(end - begin, TileColumns::kDepth) * kTileDepth;
  }

  template <class T>
  static T* at(std::byte* room, int64_t place) {
    return reinterpret_cast<T*>(room + place);
  }

  // What is subtracted from elements as they are read: half of the range, from those of the other sign.
  int64_t flip_a() const { return p_.a_type == DataType::kUint8 ? 128 : 0; }
  int64_t flip_b() const { return p_.b_type == DataType::kInt8 ? -128 : 0; }
  int32_t zero_a(const void* const* inputs, int64_t row) const {
    return static_cast<int32_t>(p_.a_zero.integer(inputs, row) - flip_a());
  }
  int32_t zero_b(const void* const* inputs, int64_t column) const {
    return static_cast<int32_t>(p_.b_zero.integer(inputs, column) - flip_b());
  }

  void begin_call() const override {
    if (use_amx_) configure_tiles(kTileDepth / 4);
  }
  void end_call() const override {
    if (use_amx_) release_tiles();
  }

  void compute(const Block& block, const void* const* inputs, std::byte* room,
               RowWriter& writer) const override {
    auto* const zeros = at<int32_t>(room, room_.column_zeros);
    if (p_.b_zero.step == 0) {
      std::fill_n(zeros, block.columns, zero_b(inputs, 0));
    } else {
      for (int64_t c = 0; c < block.columns; ++c) zeros[c] = zero_b(inputs, block.first_column + c);
    }
    std::fill_n(at<uint8_t>(room, room_.flips), block.columns, static_cast<uint8_t>(flip_b()));
    std::fill_n(at<int32_t>(room, room_.row_totals), padded(block.rows, kTile), 0);
    auto* const totals = at<int32_t>(room, room_.column_totals);
    if (known_) {
      std::copy_n(known_->totals.data() + block.first_column, block.columns, totals);
    } else {
      std::fill_n(totals, padded(block.columns, kTile), 0);
    }
    const int64_t count = p_.depth.count();
    for (int64_t begin = 0; begin < count && (begin == 0 || !is_cancelled()); begin += depth_) {
      add_block(block, begin, std::min(count, begin + depth_), inputs, room, writer);
    }
  }

  // What a zero point that is the same for all rows adds to the sums of columns, instead of their totals.
  void scale_totals(const Block& block, const void* const* inputs, int32_t* totals) const {
    const auto zero = static_cast<uint32_t>(zero_a(inputs, 0));
    for (int64_t c = 0; c < block.columns; ++c)
      totals[c] = static_cast<int32_t>(zero * static_cast<uint32_t>(totals[c]));
  }

  // Of rows whose sums are complete.
  void write_rows(const Block& block, int64_t first, int64_t rows, const void* const* inputs, std::byte* room,
                  RowWriter& writer) const {
    const auto* const column_totals = at<int32_t>(room, room_.column_totals);
    const auto* const column_zeros = at<int32_t>(room, room_.column_zeros);
    const auto count = static_cast<uint32_t>(p_.depth.count());
    if (p_.a_zero.step == 0 && p_.b_zero.step == 0 && writer.is_run_of_integers()) {
      const auto of_b = static_cast<uint32_t>(column_zeros[0]);
      const uint32_t of_all = of_b * count * static_cast<uint32_t>(zero_a(inputs, 0));
      const auto* const row_totals = at<int32_t>(room, room_.row_totals);
      const int32_t* sums = sums_of(first, room);
      for (int64_t r = first; r < first + rows; ++r, sums += task_.columns) {
        const uint32_t of_row = of_b * static_cast<uint32_t>(row_totals[r]);
        writer.write_difference(sums, column_totals, block.first_row + r,
                                static_cast<int32_t>(of_all - of_row));
      }
      return;
    }
    for (int64_t r = first; r < first + rows; ++r) {
      const int64_t row = block.first_row + r;
      const auto zero = static_cast<uint32_t>(zero_a(inputs, block.parameters + row));
      const uint32_t total = static_cast<uint32_t>(at<int32_t>(room, room_.row_totals)[r]) - count * zero;
      int32_t* const sums = sums_of(r, room);
      uint32_t of_row = 0;
      if (p_.b_zero.step != 0) {
        for (int64_t c = 0; c < block.columns; ++c) {
          sums[c] = static_cast<int32_t>(static_cast<uint32_t>(sums[c]) -
                                         zero * static_cast<uint32_t>(column_totals[c]) -
                                         static_cast<uint32_t>(column_zeros[c]) * total);
        }
      } else {
        of_row = static_cast<uint32_t>(column_zeros[0]) * total;
        const uint32_t factor = p_.a_zero.step == 0 ? 1 : zero;
        for (int64_t c = 0; zero != 0 && c < block.columns; ++c) {
          sums[c] = static_cast<int32_t>(static_cast<uint32_t>(sums[c]) -
                                         factor * static_cast<uint32_t>(column_totals[c]));
        }
      }
      writer.write(static_cast<const int32_t*>(sums), row, block.parameters + row,
                   static_cast<int32_t>(-of_row));
    }
  }

  // Where there is one block of the depth, some rows follow others in the same memory.
  int32_t* sums_of(int64_t row, std::byte* room) const {
    const int64_t place = p_.depth.count() <= depth_ ? row % rows_ : row;
    return at<int32_t>(room, room_.sums) + place * task_.columns;
  }

  void add_block(const Block& block, int64_t begin, int64_t end, const void* const* inputs, std::byte* room,
                 RowWriter& writer) const {
    const int64_t depths = divided_up(end - begin, kTileDepth);
    const int64_t b_panel = panel_bytes(begin, end);
    const uint8_t* b = at<uint8_t>(room, room_.b);
    if (known_) {
      b = known_->cells.data() + padded(p_.columns(), kTile) * begin + block.first_column / kTile * b_panel;
    } else {
      pack_block(block.b, block.first_column, block.columns, begin, end,
                 static_cast<uint8_t>(zero_b(inputs, 0)), room, at<uint8_t>(room, room_.b));
      for (int64_t c = 0; c < block.columns; c += kTile) {
        add_column_totals(b + c / kTile * b_panel, b_panel / kTileDepth,
                          at<int32_t>(room, room_.column_totals) + c);
      }
    }
    if (end == p_.depth.count() && p_.a_zero.step == 0 && p_.b_zero.step == 0)
      scale_totals(block, inputs, at<int32_t>(room, room_.column_totals));
    const int64_t a_panel = depths * kTileBytes;
    auto* const a = at<int8_t>(room, room_.a);
    int8_t flips_of_rows[kRowBlock];
    std::fill_n(flips_of_rows, kRowBlock, static_cast<int8_t>(flip_a()));
    for (int64_t first = 0; first < block.rows; first += rows_) {
      const int64_t rows = std::min(rows_, block.rows - first);
      const std::byte* const rows_of_a = block.a + (block.first_row + first) * p_.a_row;
      int32_t* const row_totals = at<int32_t>(room, room_.row_totals) + first;
      if (p_.depth.taps() == 1 && p_.depth.a_step == 1) {
        pack_row_runs(rows_of_a + begin, p_.a_row, rows, end - begin, flip_a(), a, row_totals);
      } else {
        pack_rows<TileRows>(p_.depth, rows_of_a, p_.a_row, rows, begin, end, read_a_, flips_of_rows,
                            at<int8_t>(room, room_.row), a);
        for (int64_t r = 0; r < rows; r += kTile)
          add_row_totals(a + r / kTile * a_panel, depths, row_totals + r);
      }
      TileOperands tiles = {a,
                            b,
                            a_panel,
                            b_panel,
                            {offsets_.data(), depths, kTileDepth / 4, kTileDepth},
                            nullptr,
                            task_.columns,
                            begin == 0};
      for (int64_t c = 0; c < block.columns; c += 2 * kTile) {
        tiles.b = b + c / kTile * b_panel;
        tiles.sums = sums_of(first, room) + c;
        add_tiles(tiles, rows, block.columns - c > kTile, use_amx_);
      }
      if (end == p_.depth.count()) write_rows(block, first, rows, inputs, room, writer);
    }
  }

  // Columns of B as panels.
  void pack_block(const std::byte* b, int64_t first, int64_t columns, int64_t begin, int64_t end,
                  uint8_t padding, std::byte* room, uint8_t* panels) const {
    if (p_.depth.is_transposed()) {
      pack_runs<TileColumns>(p_.depth, b, first, columns, begin, end, read_b_, at<uint8_t>(room, room_.flips),
                             at<uint8_t>(room, room_.row), panels);
    } else if (p_.depth.is_matrix() && p_.depth.width.step == 1) {
      pack_column_runs(b + begin * p_.depth.b_step + first, p_.depth.b_step, columns, end - begin, flip_b(),
                       panels);
    } else {
      pack_fours(b, first, columns, begin, end, padding, room, panels);
    }
  }

  // Four rows at a time. What is padding is the zero point.
  void pack_fours(const std::byte* b, int64_t first, int64_t columns, int64_t begin, int64_t end,
                  uint8_t padding, std::byte* room, uint8_t* to) const {
    constexpr int64_t kRows = TileColumns::kDepth;
    const int64_t steps = divided_up(end - begin, kRows);
    const int64_t width = padded(columns, kTile);
    auto* const rows = at<uint8_t>(room, room_.columns);
    const auto* const flips = at<uint8_t>(room, room_.flips);
    for (int64_t i = 0; i < kRows; ++i) {
      std::fill(rows + i * width + columns, rows + (i + 1) * width, uint8_t{0});
    }
    Tap tap(p_.depth, begin);
    for (int64_t step = 0; step < steps; ++step, to += kTileDepth) {
      for (int64_t i = 0; i < kRows; ++i) {
        if (begin + step * kRows + i < end) {
          read_row(p_.depth, b, tap, first, columns, read_b_, flips, rows + i * width, padding);
          tap.advance(p_.depth);
        } else {
          std::fill_n(rows + i * width, columns, uint8_t{0});
        }
      }
      const int64_t panel = steps * kTileDepth;
      int64_t c = 0;
      for (; c + 4 * kTile <= width; c += 4 * kTile) {
        interleave_four_by_64(rows + c, width, to + c / kTile * panel, panel);
      }
      for (; c < width; c += kTile) interleave_four(rows + c, width, to + c / kTile * panel);
    }
  }

  std::shared_ptr<const Known> known_;
  bool use_amx_;
  Read<int8_t> read_a_;
  Read<uint8_t> read_b_;
  int64_t rows_, depth_;  // of a block that is packed
  std::vector<int64_t> offsets_;
  Room room_;
};

}  // namespace
ANYDML_ISA_END
#endif
