// Products of few rows by a matrix that is read where it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dense/blocks.h"
#include "dense/packing.h"
#include "dense/product.h"
#include "dense/row.h"
#include "dense/tile.h"
#include "dense/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

template <class Item>
class FewRows {
 public:
  FewRows(const Product& product, const Operands& operands, const Workspace& work)
      : p_(product), operands_(operands), work_(work) {}

  // Few rows by panels that are not packed: of a part of the depth all of them, and then of the next.
  void multiply_few(Range columns) const {
    for (int64_t column = columns.begin; column < columns.end; column += kReadColumns) {
      const Range block{column, std::min(column + kReadColumns, columns.end)};
      const int64_t size = p_.rows * divided_up(block.size(), kPanel) * kPanel;
      float* const totals = work_.totals;
      for (int64_t k = 0; k < p_.depth; k += kDepth) {
        if (is_cancelled()) return;
        const Range depth{k, std::min(k + kDepth, p_.depth)};
        float* const sums = k == 0 ? totals : totals + size;
        multiply_where_they_are(block, depth, sums);
        if (is_stored()) break;
        for (int64_t i = 0; k != 0 && i < size; ++i) totals[i] += sums[i];
      }
      for (int64_t c = 0; c < block.size(); c += kPanel) {
        const Range panel{block.begin + c, std::min(block.begin + c + kPanel, block.end)};
        if (is_stored() && is_whole(panel.size())) continue;
        finish_tile<Item>(p_, operands_, {0, p_.rows}, panel, totals + c * p_.rows, kPanel);
      }
    }
  }

  void multiply_where_they_are(Range columns, Range depth, float* sums) const {
    static constexpr float kZeros[kPanel]{};
    const bool is_read = kItem == 4 && p_.a.column == kItem;
    Rows rows{operands_.a + depth.begin * p_.a.column, p_.a.row, p_.a.column};
    if (!is_read) {
      rows = pack_rows<Item>(rows.from, p_.a, p_.rows, depth.size(), work_.rows);
    }
    const int64_t tiles = divided_up(p_.rows, kMostRows);
    DenseTile tile{nullptr, rows.row_step, rows.step, 0, nullptr, 0, nullptr, 0};
    for (int64_t k = depth.begin; k < depth.end; k += kReadDepth) {
      tile.depth = std::min(kReadDepth, depth.end - k);
      for (int64_t c = 0; c < columns.size(); c += kPanel) {
        const std::byte* const from = operands_.b + k * p_.b.row + (columns.begin + c) * kItem;
        const int64_t count = std::min(kPanel, columns.size() - c);
        const int64_t width = width_of(count);
        // What comes next.
        for (int64_t i = 0; count == kPanel && i < tile.depth; ++i) {
          for (int64_t line = 0; line < kPanel * kItem; line += kLine)
            prefetch_line(from + i * p_.b.row + kPanel * kItem + line);
        }
        if (kItem == 4 && is_whole(count)) {
          tile.weights = from;
          tile.weights_step = p_.b.row;
        } else {
          // The last columns with those that fill their vectors.
          if (count < width) std::fill_n(work_.panels, tile.depth * width, 0.0f);
          for (int64_t i = 0; i < tile.depth; ++i)
            widen_run<Item>(from + i * p_.b.row, work_.panels + i * width, count);
          tile.weights = reinterpret_cast<const std::byte*>(work_.panels);
          tile.weights_step = width * 4;
        }
        const bool is_last = k + tile.depth == p_.depth && is_stored() && is_whole(count);
        tile.results_step = is_last ? p_.y.row / kItem : kPanel;
        for (int64_t t = 0; t < tiles; ++t) {
          const int64_t row = share_begin(t, tiles, p_.rows);
          float* const to = sums + c * p_.rows + row * kPanel;
          const bool is_first = k == depth.begin;
          tile.from = rows.from + row * rows.row_step + (k - depth.begin) * rows.step;
          tile.start = is_first ? kZeros : to;
          tile.start_step = is_first ? 0 : kPanel;
          std::byte* const y = operands_.y + row * p_.y.row + (columns.begin + c) * kItem;
          const auto high = static_cast<size_t>(share_begin(t + 1, tiles, p_.rows) - row - 1);
          kMultiplyTile[width > kColumnLanes][high](tile, is_last ? reinterpret_cast<float*>(y) : to);
        }
      }
    }
  }

  // One row by columns that lie side by side.
  void multiply_row(Range columns) const {
    for (int64_t column = columns.begin; column < columns.end; column += kReadColumns) {
      const int64_t count = std::min(kReadColumns, columns.end - column);
      for (int64_t k = 0; k < p_.depth; k += kDepth) {
        if (is_cancelled()) return;
        const int64_t depth = std::min(kDepth, p_.depth - k);
        widen_line<Item>(operands_.a + k * p_.a.column, p_.a.column, work_.rows, depth);
        float* const sums = k == 0 ? work_.totals : work_.totals + kReadColumns;
        multiply_row_along<Item>(work_.rows, operands_.b + k * p_.b.row + column * kItem, p_.b.row, depth,
                                 count, sums);
        for (int64_t i = 0; k != 0 && i < count; ++i) work_.totals[i] += sums[i];
      }
      for (int64_t c = 0; c < count; c += kPanel) {
        const Range panel{column + c, column + std::min(c + kPanel, count)};
        finish_tile<Item>(p_, operands_, {0, 1}, panel, work_.totals + c, kPanel);
      }
    }
  }

  // A few rows by columns of which each lies side by side.
  void multiply_across([[maybe_unused]] Range columns) const {
    if constexpr (kTransposesColumns<Item>) {
      const auto across = kMultiplyRowsAcross<Item>[p_.rows - 1];
      float* const totals = work_.totals;
      const int64_t size = p_.rows * kPanel;
      for (int64_t column = columns.begin; column < columns.end; column += kPanel) {
        // Of the last columns a whole panel, too: those before them are computed again.
        const int64_t begin = std::min(column, p_.columns - kPanel);
        for (int64_t k = 0; k < p_.depth; k += kDepth) {
          if (is_cancelled()) return;
          const int64_t depth = std::min(kDepth, p_.depth - k);
          for (int64_t row = 0; row < p_.rows; ++row) {
            widen_line<Item>(operands_.a + row * p_.a.row + k * p_.a.column, p_.a.column,
                             work_.rows + row * kDepth, depth);
          }
          float* const sums = k == 0 ? totals : totals + size;
          across(work_.rows, operands_.b + k * p_.b.row + begin * p_.b.column, p_.b.column, depth, sums);
          for (int64_t i = 0; k != 0 && i < size; ++i) totals[i] += sums[i];
        }
        const Range panel{column, std::min(column + kPanel, columns.end)};
        for (int64_t row = 0; column > begin && row < p_.rows; ++row) {
          float* const at = totals + row * kPanel;
          std::copy(at + (column - begin), at + kPanel, at);
        }
        finish_tile<Item>(p_, operands_, {0, p_.rows}, panel, totals, kPanel);
      }
    }
  }

 private:
  static constexpr auto kItem = static_cast<int64_t>(sizeof(Item));

  // Whether sums are results, and lie as these do: whole panels are then stored where they belong.
  bool is_stored() const { return kItem == 4 && p_.is_plain() && p_.y.column == kItem && p_.depth <= kDepth; }
  static bool is_whole(int64_t columns) { return columns == kPanel || columns == kColumnLanes; }

  const Product& p_;
  Operands operands_;
  Workspace work_;
};

ANYDML_ISA_END
