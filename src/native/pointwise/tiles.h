// The elements of several tensors of the same sizes, dealt out in tiles that are worked on one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "platform/isa.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

inline constexpr int kMostTensors = 9;
// That the widest numbers of a tile have: few enough that a program's intermediate results stay in the first
// cache.
inline constexpr int64_t kTileBytes = 4096;
// As many tiles make one where nothing has to be brought together first.
inline constexpr int64_t kLongTile = 4;

// The inputs, and behind them the output.
struct Dimension {
  int64_t size = 1;
  std::array<int64_t, kMostTensors> strides{};
};

// Tiles of rows and columns, the two innermost dimensions once neighbours that all tensors walk as one are
// merged.
class Tiles {
 public:
  // Of numbers of `widest` bytes at most.
  Tiles(const std::vector<Layout>& inputs, const Layout& output, int64_t widest)
      : most_(kTileBytes / widest) {
    for (const Layout& each : inputs) items_.push_back(size_of(each.type));
    items_.push_back(size_of(output.type));
    for (size_t d = 0; d < output.sizes.size(); ++d) {
      Dimension dimension{output.sizes[d], {}};
      for (size_t i = 0; i < inputs.size(); ++i) dimension.strides[i] = inputs[i].strides[d];
      dimension.strides[inputs.size()] = output.strides[d];
      if (dimension.size > 1) outer_.push_back(dimension);
    }
    fold();
    columns_ = take(outer_.size());
    choose_rows();
    if (is_long()) width_ = std::min(columns_.size, most_ * kLongTile);
    per_row_ = (columns_.size + width_ - 1) / width_;
    per_plane_ = per_row_ * ((rows_.size + height_ - 1) / height_);
    for (const Dimension& dimension : outer_) planes_ *= dimension.size;
  }

  int64_t count() const { return planes_ * per_plane_; }
  int64_t elements() const { return planes_ * rows_.size * columns_.size; }

  struct Tile {
    int64_t rows;
    int64_t columns;
    std::array<int64_t, kMostTensors> offsets;
  };

  Tile at(int64_t i) const {
    const int64_t column = i % per_row_ * width_;
    const int64_t row = i % per_plane_ / per_row_ * height_;
    Tile tile{std::min(height_, rows_.size - row), std::min(width_, columns_.size - column), {}};
    for (size_t k = 0; k < items_.size(); ++k)
      tile.offsets[k] = row * rows_.strides[k] + column * columns_.strides[k];
    i /= per_plane_;
    for (auto dimension = outer_.rbegin(); dimension != outer_.rend(); ++dimension) {
      for (size_t k = 0; k < items_.size(); ++k)
        tile.offsets[k] += i % dimension->size * dimension->strides[k];
      i /= dimension->size;
    }
    return tile;
  }

  int64_t item(size_t tensor) const { return items_[tensor]; }

  // How many elements of any type fill kTileBytes at most.
  int64_t most() const { return most_; }

  // Whether the elements of a tile follow each other in a tensor's memory.
  bool is_packed(size_t k) const {
    const bool rows_follow = height_ == 1 || (width_ == columns_.size && follows(k, rows_, columns_));
    return columns_.strides[k] == items_[k] && rows_follow;
  }

  // Whether it is the same element in each of a tile.
  bool is_same(size_t k) const { return height_ == 1 && columns_.strides[k] == 0; }

  // A tile's elements, one behind the other.
  void gather(size_t k, const Tile& tile, const std::byte* from, std::byte* to) const {
    switch (items_[k]) {
      case 1:
        return copy<uint8_t>(k, tile, from, to);
      case 2:
        return copy<uint16_t>(k, tile, from, to);
      case 4:
        return copy<uint32_t>(k, tile, from, to);
      default:
        return copy<uint64_t>(k, tile, from, to);
    }
  }
  void scatter(size_t k, const Tile& tile, const std::byte* from, std::byte* to) const {
    const int64_t item = items_[k];
    const int64_t stride = columns_.strides[k];
    for (int64_t row = 0; row < tile.rows; ++row, from += tile.columns * item, to += rows_.strides[k]) {
      if (stride == item) {
        std::memcpy(to, from, static_cast<size_t>(tile.columns * item));
        continue;
      }
      for (int64_t i = 0; i < tile.columns; ++i)
        std::memcpy(to + i * stride, from + i * item, static_cast<size_t>(item));
    }
  }

  std::string describe() const {
    const std::string count = std::to_string(elements()) + (elements() == 1 ? " element" : " elements");
    if (height_ == 1) return count + ", rows of " + std::to_string(columns_.size);
    return count + ", tiles of " + std::to_string(height_) + " x " + std::to_string(width_);
  }

 private:
  static bool follows(size_t k, const Dimension& outer, const Dimension& inner) {
    return outer.strides[k] == inner.size * inner.strides[k];
  }

  // Whether all have the elements of a row together, or one for all of them.
  bool is_long() const {
    bool all = height_ == 1;
    for (size_t k = 0; k < items_.size(); ++k) all = all && (is_packed(k) || is_same(k));
    return all;
  }

  // In the order of the output's memory, what all walk as one merged.
  void fold() {
    const size_t out = items_.size() - 1;
    std::ranges::stable_sort(outer_, std::ranges::greater{},
                             [&](const Dimension& each) { return std::abs(each.strides[out]); });
    std::vector<Dimension> folded;
    for (const Dimension& inner : outer_) {
      bool continues = !folded.empty();
      for (size_t k = 0; k < items_.size(); ++k) continues = continues && follows(k, folded.back(), inner);
      if (continues) {
        folded.back() = {folded.back().size * inner.size, inner.strides};
      } else {
        folded.push_back(inner);
      }
    }
    outer_ = std::move(folded);
  }

  // The dimension before that one, removed; where there is none, one of a single element.
  Dimension take(size_t end) {
    Dimension taken;
    if (end == 0) {
      std::ranges::copy(items_, taken.strides.begin());
      return taken;
    }
    taken = outer_[end - 1];
    outer_.erase(outer_.begin() + static_cast<std::ptrdiff_t>(end) - 1);
    return taken;
  }

  // Where some tensor lies across, tiles are such that whole lines are read of it as well; where columns are
  // few, there are as many rows as a tile has room for.
  void choose_rows() {
    for (size_t k = 0; k < items_.size(); ++k) {
      if (std::abs(columns_.strides[k]) <= kAcross) continue;
      for (size_t d = outer_.size(); d > 0; --d) {
        if (std::abs(outer_[d - 1].strides[k]) != items_[k]) continue;
        rows_ = take(d);
        width_ = kAcrossWidth;
        height_ = most_ / kAcrossWidth;
        return;
      }
    }
    width_ = std::min(columns_.size, most_);
    if (columns_.size > most_ / 2 || outer_.empty()) return;
    rows_ = take(outer_.size());
    height_ = most_ / width_;
  }

  template <class T>
  void copy(size_t k, const Tile& tile, const std::byte* from, std::byte* to) const {
    const int64_t stride = columns_.strides[k];
    if (tile.rows > 1 && rows_.strides[k] == sizeof(T)) return copy_columns<T>(tile, stride, from, to);
    for (int64_t row = 0; row < tile.rows; ++row, from += rows_.strides[k], to += tile.columns * sizeof(T)) {
      if (stride == sizeof(T)) {
        std::memcpy(to, from, static_cast<size_t>(tile.columns) * sizeof(T));
      } else if (stride == 0) {
        std::fill_n(reinterpret_cast<T*>(to), tile.columns, load<T>(from));
      } else {
        for (int64_t i = 0; i < tile.columns; ++i) store(to + i * sizeof(T), load<T>(from + i * stride));
      }
    }
  }

  // Along what lies together.
  template <class T>
  static void copy_columns(const Tile& tile, int64_t stride, const std::byte* from, std::byte* to) {
    for (int64_t i = 0; i < tile.columns; ++i, from += stride, to += sizeof(T)) {
      for (int64_t row = 0; row < tile.rows; ++row)
        store(to + row * tile.columns * sizeof(T), load<T>(from + row * sizeof(T)));
    }
  }

  static constexpr int64_t kAcross = 64;
  static constexpr int64_t kAcrossWidth = 32;

  int64_t most_;
  std::vector<int64_t> items_;
  std::vector<Dimension> outer_;
  Dimension rows_;
  Dimension columns_;
  int64_t width_ = 1;
  int64_t height_ = 1;
  int64_t per_row_ = 1;
  int64_t per_plane_ = 1;
  int64_t planes_ = 1;
};

ANYDML_ISA_END
