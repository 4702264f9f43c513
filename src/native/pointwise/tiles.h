// Loop tiling of tensors of the same sizes: their elements are dealt out in tiles that fit the first cache.
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
#include "pointwise/lanes.h"
#include "pointwise/tuning.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

inline constexpr int kMostTensors = 12;

// The inputs' strides, and after them the outputs'.
struct Dimension {
  int64_t size = 1;
  std::array<int64_t, kMostTensors> strides{};
};

// Tiles of rows and columns, which are the two innermost dimensions after those are merged that are one in
// the memory of all tensors.
class Tiles {
 public:
  // Of tensors of the same sizes, the inputs first; `widest` is the size of the program's widest numbers.
  Tiles(const std::vector<Layout>& tensors, size_t inputs, int64_t widest)
      : tile_elements_(kTileBytes / widest) {
    for (const Layout& each : tensors) items_.push_back(size_of(each.type));
    for (size_t d = 0; d < tensors[inputs].sizes.size(); ++d) {
      Dimension dimension{tensors[inputs].sizes[d], {}};
      for (size_t k = 0; k < tensors.size(); ++k) dimension.strides[k] = tensors[k].strides[d];
      if (dimension.size > 1) outer_.push_back(dimension);
    }
    fold(inputs);
    columns_ = take(outer_.size());
    choose_rows();
    if (height_ == 1 && has_whole_rows()) width_ = std::min(columns_.size, tile_elements_ * kContiguousTiles);
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

  size_t tensors() const { return items_.size(); }
  int64_t item(size_t tensor) const { return items_[tensor]; }

  // The most elements of a tile, but for contiguous ones.
  int64_t tile_elements() const { return tile_elements_; }

  // Gives `body` what is computed at once: a tile, or its rows, each as a tile of its own, where they are
  // long.
  template <class Body>
  void for_each_part(int64_t i, Body body) const {
    Tile tile = at(i);
    if (!rows_apart_) return body(std::as_const(tile));
    const int64_t rows = std::exchange(tile.rows, 1);
    for (int64_t row = 0; row < rows; ++row) {
      body(std::as_const(tile));
      for (size_t k = 0; k < items_.size(); ++k) tile.offsets[k] += rows_.strides[k];
    }
  }

  // Whether the elements of a tile follow each other in a tensor's memory.
  bool is_packed(size_t k) const {
    const bool rows_follow =
        height_ == 1 || rows_apart_ || (width_ == columns_.size && follows(k, rows_, columns_));
    return columns_.strides[k] == items_[k] && rows_follow;
  }

  // Whether all elements of a tile are one.
  bool is_broadcast(size_t k) const { return (height_ == 1 || rows_apart_) && columns_.strides[k] == 0; }

  // Copies a tile's elements to contiguous memory.
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
  // Fills memory with one element, up to the end of a vector: of a row it takes less than a call of memset.
  void fill(size_t k, int64_t columns, const std::byte* from, std::byte* to) const {
    switch (items_[k]) {
      case 1:
        return fill_lanes<uint8_t>(columns, from, to);
      case 2:
        return fill_lanes<uint16_t>(columns, from, to);
      case 4:
        return fill_lanes<uint32_t>(columns, from, to);
      default:
        return fill_lanes<uint64_t>(columns, from, to);
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
    if (height_ == 1 || rows_apart_) return count + ", rows of " + std::to_string(columns_.size);
    return count + (transposed_ ? ", transposed tiles of " : ", tiles of ") + std::to_string(height_) +
           " x " + std::to_string(width_);
  }

 private:
  static bool follows(size_t k, const Dimension& outer, const Dimension& inner) {
    return outer.strides[k] == inner.size * inner.strides[k];
  }

  // Whether in each tensor the elements of a row are contiguous, or one.
  bool has_whole_rows() const {
    bool all = true;
    for (size_t k = 0; k < items_.size(); ++k)
      all = all && (columns_.strides[k] == items_[k] || columns_.strides[k] == 0);
    return all;
  }

  // Sorts dimensions by the first output's strides, and merges those that are one in the memory of all
  // tensors.
  void fold(size_t out) {
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

  // Removes the dimension before that one, and returns it; where there is none, one of a single element.
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

  // Where some tensor is transposed, tiles are square enough that whole lines of it are read too. Where
  // columns are few, a tile has as many rows as fit.
  void choose_rows() {
    for (size_t k = 0; k < items_.size(); ++k) {
      if (std::abs(columns_.strides[k]) <= kTransposedStride) continue;
      for (size_t d = outer_.size(); d > 0; --d) {
        if (std::abs(outer_[d - 1].strides[k]) != items_[k]) continue;
        rows_ = take(d);
        transposed_ = true;
        width_ = kTransposedWidth;
        height_ = tile_elements_ / kTransposedWidth;
        return;
      }
    }
    width_ = std::min(columns_.size, tile_elements_);
    if (columns_.size > tile_elements_ / 2 || outer_.empty()) return;
    rows_ = take(outer_.size());
    height_ = tile_elements_ / width_;
    rows_apart_ = width_ >= kLeastRow && has_whole_rows();
    // Rows that are read in place need no room: more of them, so that a tile is sought less often.
    if (rows_apart_) height_ *= kContiguousTiles;
  }

  template <class T>
  void copy(size_t k, const Tile& tile, const std::byte* from, std::byte* to) const {
    const int64_t stride = columns_.strides[k];
    if (tile.rows > 1 && rows_.strides[k] == sizeof(T) && stride != 0)
      return copy_columns<T>(tile, stride, from, to);
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

  template <class T>
  static void fill_lanes(int64_t columns, const std::byte* from, std::byte* to) {
    // Half as many stores where registers hold more, as those of the output wait before them.
    constexpr int kLanes = static_cast<int>(sizeof(Singles) / sizeof(float)) * kLanesOf<T> / kLanesOf<float>;
    const Lanes<T, kLanes> lanes = Lanes<T, kLanes>{} + load<T>(from);
    for (int64_t i = 0; i < columns; i += kLanes) std::memcpy(to + i * sizeof(T), &lanes, sizeof(lanes));
  }

  // Copies column by column, as these are contiguous.
  template <class T>
  static void copy_columns(const Tile& tile, int64_t stride, const std::byte* from, std::byte* to) {
    for (int64_t i = 0; i < tile.columns; ++i, from += stride, to += sizeof(T)) {
      for (int64_t row = 0; row < tile.rows; ++row)
        store(to + row * tile.columns * sizeof(T), load<T>(from + row * sizeof(T)));
    }
  }

  int64_t tile_elements_;
  std::vector<int64_t> items_;
  std::vector<Dimension> outer_;
  Dimension rows_;
  Dimension columns_;
  int64_t width_ = 1;
  int64_t height_ = 1;
  int64_t per_row_ = 1;
  int64_t per_plane_ = 1;
  int64_t planes_ = 1;
  bool transposed_ = false;
  bool rows_apart_ = false;
};

ANYDML_ISA_END
