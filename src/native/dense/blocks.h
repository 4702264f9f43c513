// A product by blocks: panels of columns, packed as deep as they are summed apart, by tiles of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "dense/packing.h"
#include "dense/product.h"
#include "dense/tile.h"
#include "dense/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// What a thread has for its own.
struct Workspace {
  float* panels;
  float* rows;
  float* totals;
  std::byte* staging;
};

inline int64_t depth_at_once(const Product& p) { return std::min(kDepth, p.depth); }
// From packed panel to panel: a line more than a panel has, so that they do not take each other's place in a
// cache.
inline int64_t panel_step(const Product& p) { return depth_at_once(p) * kPanel + kLineSingles; }

// Whether rows are read where they are, though they may be apart.
template <class Item>
bool reads_rows(const Product& p, int64_t columns) {
  if (sizeof(Item) != 4) return false;
  if (columns <= kFewPanels * kPanel) return true;
  return p.a.column == 4 && std::abs(p.a.row) * kMostRows <= kNearRows;
}

template <class Item>
class BlockedProduct {
 public:
  // `known` is the right matrix if it is packed already, panel by panel of the whole depth.
  BlockedProduct(const Product& product, const Operands& operands, const Item* known, const Workspace& work)
      : p_(product), operands_(operands), known_(known), work_(work) {}

  void multiply(Range rows, Range columns) {
    const int64_t high = p_.depth > kDepth ? kBlockRows : rows.size();
    const auto part = [](int64_t begin, int64_t step, int64_t end) {
      return Range{begin, std::min(begin + step, end)};
    };
    Block block{part(rows.begin, high, rows.end), part(columns.begin, kBlockColumns, columns.end),
                part(0, kDepth, p_.depth)};
    for (bool is_last = false;;) {
      Block next = block;
      next.depth = part(block.depth.end, kDepth, p_.depth);
      if (next.depth.begin == p_.depth) {
        next.depth = part(0, kDepth, p_.depth);
        next.rows = part(block.rows.end, high, rows.end);
        if (next.rows.begin == rows.end) {
          next.rows = part(rows.begin, high, rows.end);
          next.columns = part(block.columns.end, kBlockColumns, columns.end);
          is_last = next.columns.begin == columns.end;
        }
      }
      pack(block);
      ahead_panel_ = ahead_panels_ = 0;
      if (!is_last && known_ != nullptr) look_ahead(next);
      multiply_block(block);
      if (is_last || is_cancelled()) return;
      block = next;
    }
  }

 private:
  static constexpr auto kItem = static_cast<int64_t>(sizeof(Item));

  struct Block {
    Range rows;
    Range columns;
    Range depth;
    int64_t panels() const { return divided_up(columns.size(), kPanel); }
  };

  const Item* known(const Block& block) const { return known_ + block.columns.begin * p_.depth; }
  const std::byte* b_of(const Block& block) const {
    return operands_.b + block.depth.begin * p_.b.row + block.columns.begin * p_.b.column;
  }
  const std::byte* a_of(Range rows, Range depth) const {
    return operands_.a + rows.begin * p_.a.row + depth.begin * p_.a.column;
  }

  // Whether panels are read where they were packed before.
  bool reads_panels() const { return std::is_same_v<Item, float> && known_ != nullptr; }

  void pack(const Block& block) {
    if (reads_panels()) return;
    if (known_ == nullptr) {
      pack_panels<Item, float>(b_of(block), p_.b, block.depth.size(), block.columns.size(), work_.panels,
                               panel_step(p_), work_.staging);
      return;
    }
    for (int64_t panel = 0; panel < block.panels(); ++panel) {
      const int64_t width = width_of(block.columns.size() - panel * kPanel);
      const Item* const from = known(block) + panel * kPanel * p_.depth + block.depth.begin * width;
      widen_run<Item>(reinterpret_cast<const std::byte*>(from), work_.panels + panel * panel_step(p_),
                      block.depth.size() * width);
    }
  }

  // The tiles for rows that lie as pack_rows packs them, in either way, or elsewhere.
  static const auto& tiles_of(const Rows& rows) {
    if (rows.row_step == kPackedRowStep * 4 && rows.step == 4) return kTilesOfSteps<kPackedRowStep * 4, 4>;
    if (rows.row_step == 4 && rows.step == kGroupRows * 4) return kTilesOfSteps<4, kGroupRows * 4>;
    return kMultiplyTile;
  }

  // What the next tile prefetches: of panels that were packed before, in their order, those of the next
  // block. Those that are packed then are not: they would be prefetched in vain where their lines are a power
  // of two apart.
  const std::byte* ahead(int64_t depth) {
    if (ahead_panel_ == ahead_panels_) return nullptr;
    const std::byte* const found = ahead_from_ + ahead_panel_ * kPanel * p_.depth * kItem + ahead_offset_;
    ahead_offset_ += depth / 2 * kLine;
    if (ahead_offset_ >= ahead_bytes_) {
      ahead_offset_ = 0;
      ++ahead_panel_;
    }
    return found;
  }

  void look_ahead(const Block& next) {
    ahead_from_ = reinterpret_cast<const std::byte*>(known(next) + next.depth.begin * kPanel);
    ahead_bytes_ = next.depth.size() * kPanel * kItem;
    ahead_offset_ = 0;
    ahead_panel_ = 0;
    ahead_panels_ = next.panels();
  }

  // Tiles of rows, as even as can be, by panels that are packed; what a part of the depth sums is added to
  // what the parts before it did.
  void multiply_block(const Block& block) {
    const bool is_read = reads_rows<Item>(p_, block.columns.size());
    const int64_t tiles = divided_up(block.rows.size(), kMostRows);
    const auto row_of = [&](int64_t tile) {
      return block.rows.begin + share_begin(tile, tiles, block.rows.size());
    };
    for (int64_t first = 0; first < tiles; first += kGroupTiles) {
      const int64_t last = std::min(first + kGroupTiles, tiles);
      const Range group{row_of(first), row_of(last)};
      Rows rows{a_of(group, block.depth), p_.a.row, p_.a.column};
      if (!is_read) {
        rows = pack_rows<Item>(rows.from, p_.a, group.size(), block.depth.size(), work_.rows);
      }
      for (int64_t t = first; t < last; ++t) {
        const Range tile{row_of(t), row_of(t + 1)};
        multiply_tiles(block, tile, rows);
        rows.from += tile.size() * rows.row_step;
      }
    }
  }

  // A tile of rows by the panels of a block.
  void multiply_tiles(const Block& block, Range rows, const Rows& from) {
    static constexpr float kZeros[kPanel]{};
    alignas(sizeof(Columns)) float results[kMostRows * kPanel];
    const auto& tiles = tiles_of(from);
    DenseTile tile{from.from, from.row_step, from.step, block.depth.size(), nullptr, 0, kZeros, 0};
    const bool is_first = block.depth.begin == 0;
    const bool is_last = block.depth.end == p_.depth;
    const bool is_stored = is_last && kItem == 4 && p_.is_plain() && p_.y.column == kItem;
    float* totals = work_.totals + (rows.begin - block.rows.begin) * block.panels() * kPanel;
    for (int64_t i = 0; i < block.panels(); ++i, totals += rows.size() * kPanel) {
      const int64_t column = block.columns.begin + i * kPanel;
      const Range panel{column, std::min(column + kPanel, block.columns.end)};
      const int64_t width = width_of(panel.size());
      const float* weights = work_.panels + i * panel_step(p_);
      if constexpr (std::is_same_v<Item, float>) {
        if (reads_panels()) weights = known(block) + i * kPanel * p_.depth + block.depth.begin * width;
      }
      tile.weights = reinterpret_cast<const std::byte*>(weights);
      tile.weights_step = width * 4;
      tile.added = is_first ? nullptr : totals;
      tile.added_step = width;
      tile.ahead = ahead(block.depth.size());
      const auto multiply = tiles[width > kColumnLanes][static_cast<size_t>(rows.size() - 1)];
      if (is_stored && panel.size() == width) {
        tile.results_step = p_.y.row / kItem;
        multiply(tile, reinterpret_cast<float*>(operands_.y + rows.begin * p_.y.row + column * kItem));
      } else {
        tile.results_step = width;
        multiply(tile, is_last ? results : totals);
        if (is_last) finish_tile<Item>(p_, operands_, rows, panel, results, width);
      }
    }
  }

  const Product& p_;
  Operands operands_;
  const Item* known_;
  Workspace work_;
  const std::byte* ahead_from_ = nullptr;
  int64_t ahead_bytes_ = 0;  // of a panel
  int64_t ahead_offset_ = 0;
  int64_t ahead_panel_ = 0;
  int64_t ahead_panels_ = 0;
};

ANYDML_ISA_END
