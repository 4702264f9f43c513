// Local responses and their gradients by short windows across channels, in tiles that stay in the first
// cache.
//
// A tile has rows of columns: channels of some places, or places of all channels where these lie last. Its
// elements are read where they lie, squared into a buffer with zeros around them, and taken with sums of that
// sixteen at a time: by the series of `local_series.h`, or where a sum of the tile is no little one, all of
// it anew in double precision, or that of halves in single precision. Channels go by groups, each from the
// first place to the last, so that memory is gone over as it lies, and what a group needs of its neighbours
// is in the second cache yet; large results go past the caches.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "normalization/geometry.h"
#include "normalization/local_response.h"
#include "normalization/local_series.h"
#include "normalization/tuning.h"
#include "normalization/window_sums.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/half.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

template <class T>
class LocalChannelsPlan final : public Plan {
 public:
  LocalChannelsPlan(const Request& request, const LocalResponse& shape, bool is_gradient)
      : Plan(std::string(is_gradient ? "gradients of local responses" : "local responses") +
             ", columns of channels"),
        is_gradient_(is_gradient),
        out_(request.inputs.size()),
        little_(shape),
        powers_(shape, is_gradient),
        twice_(2 * shape.factor * shape.beta),
        has_singles_(std::is_same_v<T, Half> && are_singles_enough(shape)) {
    std::vector<Axis> axes = axes_of(request.inputs, request.outputs, std::vector<bool>(4, false));
    for (const Axis& axis : axes) elements_ *= axis.size;
    const Axis channels = axes[1];
    axes.erase(axes.begin() + 1);
    Geometry geometry = geometry_of(axes, out_);
    around_ = std::move(geometry.kept);
    const Axis& run = geometry.run;
    is_along_ =
        channels.size > 1 && (run.size == 1 || std::abs(channels.steps[out_]) < std::abs(run.steps[out_]));
    rows_ = is_along_ ? run : channels;
    columns_ = is_along_ ? channels : run;
    before_ = std::min(shape.before, channels.size - 1);
    after_ = std::min(shape.after, channels.size - 1);
    window_ = before_ + 1 + after_;
    if (is_along_) {
      at_once_ = std::clamp(kLineTile / columns_.size, int64_t{1}, rows_.size);
      per_around_ = parts_of(rows_.size, at_once_);
    } else {
      const int64_t share = columns_.size * count_of(around_) / kColumnBlocks / kRun + 1;
      at_once_ = std::clamp(share * kRun, kRun, is_gradient ? kMostColumns / 4 : kMostColumns);
      per_around_ = parts_of(columns_.size, at_once_);
    }
    is_packed_ = columns_.steps[out_] == kItem;
    is_large_ = elements_ * kItem >= kStreamFrom && is_packed_;
  }

  // The output overlaps no input.
  void run(const void* const* inputs, void* const* outputs) const override {
    const int64_t blocks = count_of(around_) * per_around_;
    const int threads = threads_for(kLocalWork * elements_);
    const int64_t calls = std::min(calls_for(kLocalWork * elements_, threads), blocks);
    parallel_for(calls, threads, [&](int64_t call) {
      Room room;
      const int64_t end = share_begin(call + 1, calls, blocks);
      for (int64_t i = share_begin(call, calls, blocks); i < end; ++i) {
        const Walk walk(around_, i / per_around_);
        for (size_t k = 0; k < out_; ++k)
          room.in[k] = static_cast<const std::byte*>(inputs[k]) + walk.offset(k);
        room.out = static_cast<std::byte*>(outputs[0]) + walk.offset(out_);
        put_block(i % per_around_, room);
      }
      for (auto& writer : room.writers) writer.reset();
      if (is_large_) stream_fence();
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);
  // How far elements are fetched ahead, in bytes: all streams together are more than a processor follows.
  static constexpr int64_t kAhead = 1024;
  static constexpr float kMostGradient = 0x1p60F;  // that singles are enough for
  // Channels of a group, columns of a tile, and elements of a tile where channels lie last.
  static constexpr int64_t kChannels = 8;
  static constexpr int64_t kTileColumns = 256;
  static constexpr int64_t kLineTile = 1 << 11;
  // The most columns of a block, and blocks for threads.
  static constexpr int64_t kMostColumns = 1 << 12;
  static constexpr int64_t kColumnBlocks = 16;

  struct Tile {
    int64_t row;
    int64_t rows;
    int64_t column;
    int64_t columns;
    int64_t pitch;  // of its buffers
  };

  // Packed elements of some rows of a tensor, in memory of their own where they lie apart there.
  struct Rows {
    const std::byte* first;
    int64_t begin;
    int64_t step;
    const std::byte* at(int64_t row) const { return first + (row - begin) * step; }
  };

  template <class Number>
  struct Buffers {
    std::vector<Number> squares;
    std::vector<Number> terms;
    std::vector<Number> slopes;
  };

  struct Room {
    std::array<const std::byte*, 2> in{};
    std::byte* out = nullptr;
    std::array<std::vector<std::byte>, 2> apart;
    std::vector<std::byte> results;
    Buffers<float> singles;
    Buffers<double> doubles;
    std::array<std::optional<LineWriter>, kChannels> writers;
    std::array<std::byte*, kChannels> next{};  // where they go on
  };

  static int64_t parts_of(int64_t size, int64_t most) { return (size + most - 1) / most; }

  void put_block(int64_t block, Room& room) const {
    if (is_along_) {
      const int64_t first = block * at_once_;
      return put_tile(tile_of(first, std::min(at_once_, rows_.size - first), 0, columns_.size), room);
    }
    const int64_t begin = share_begin(block, per_around_, columns_.size);
    const int64_t columns = share_begin(block + 1, per_around_, columns_.size) - begin;
    const int64_t tiles = parts_of(columns, kTileColumns);
    for (int64_t row = 0; row < rows_.size; row += kChannels) {
      for (int64_t i = 0; i < tiles; ++i) {
        const int64_t first = share_begin(i, tiles, columns);
        put_tile(tile_of(row, std::min(kChannels, rows_.size - row), begin + first,
                         share_begin(i + 1, tiles, columns) - first),
                 room);
      }
    }
  }
  Tile tile_of(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    const int64_t whole = (columns + kLanes - 1) / kLanes * kLanes;
    return {row, rows, column, columns, is_along_ ? columns + std::max(before_, after_) : whole};
  }

  void put_tile(const Tile& tile, Room& room) const {
    const Rows x = rows_of(0, tile, halo(), room);
    const bool goes_there = !is_large_ && is_packed_ && tile.columns >= kLanes;
    std::byte* const there = room.out + tile.row * rows_.steps[out_] + tile.column * columns_.steps[out_];
    std::byte* to = there;
    int64_t step = rows_.steps[out_];
    if (!goes_there) {
      step = tile.columns * kItem;
      room.results.resize(static_cast<size_t>(tile.rows * step + kLanes * kItem));
      to = room.results.data();
    }
    if (is_gradient_) {
      const Rows dy = rows_of(1, tile, is_along_ ? 0 : std::max(before_, after_), room);
      put_gradients(tile, x, dy, to, step, room);
    } else {
      put_responses(tile, x, to, step, room);
    }
    if (goes_there) return;
    if (!is_large_) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int64_t c = 0; c < tile.columns; ++c)
          std::memcpy(there + r * rows_.steps[out_] + c * columns_.steps[out_], to + r * step + c * kItem,
                      static_cast<size_t>(kItem));
      }
      return;
    }
    // Rows side by side are one.
    const int64_t rows = rows_.steps[out_] == step ? 1 : tile.rows;
    for (int64_t r = 0; r < rows; ++r) {
      const auto slot = static_cast<size_t>(r % kChannels);
      std::byte* const at = there + r * rows_.steps[out_];
      const int64_t size = step * tile.rows / rows;
      if (at != room.next[slot]) room.writers[slot].emplace(at);
      room.writers[slot]->append(to + r * step, size);
      room.next[slot] = at + size;
    }
  }

  // Rows around a tile's that its results are made of.
  int64_t halo() const { return is_along_ ? 0 : is_gradient_ ? before_ + after_ : std::max(before_, after_); }

  Rows rows_of(size_t tensor, const Tile& tile, int64_t around, Room& room) const {
    const int64_t step = rows_.steps[tensor];
    const int64_t apart = columns_.steps[tensor];
    const std::byte* const from = room.in[tensor] + tile.column * apart;
    if (apart == kItem && tile.columns >= kLanes) return {from, 0, step};
    const int64_t begin = std::max(tile.row - around, int64_t{0});
    const int64_t end = std::min(tile.row + tile.rows + around, rows_.size);
    const int64_t pitch =
        (tile.columns + kLanes) * kItem;  // with zeros, as lanes behind the last column count
    std::vector<std::byte>& to = room.apart[tensor];
    to.assign(static_cast<size_t>((end - begin) * pitch), std::byte{0});
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < tile.columns; ++c)
        std::memcpy(to.data() + (r - begin) * pitch + c * kItem, from + r * step + c * apart,
                    static_cast<size_t>(kItem));
    }
    return {to.data(), begin, pitch};
  }

  // Calls body(c) for sixteen columns at a time, of which the last begin before those before them end.
  template <class Body>
  ANYDML_INLINE static void for_columns(int64_t columns, const Body& body) {
    const int64_t last = std::max(columns - kLanes, int64_t{0});
    for (int64_t c = 0; c < columns; c += kLanes) body(std::min(c, last));
  }

  // Buffers of rows from `begin` on, zeros where the tensor has none, of which put(row, to) writes columns;
  // where windows go along rows, with `gap` zeros before all and as many as these need behind each.
  template <class Number, class Put>
  ANYDML_INLINE void fill(const Tile& tile, int64_t begin, int64_t end, int64_t gap,
                          std::vector<Number>& numbers, const Put& put) const {
    numbers.resize(static_cast<size_t>(gap + (end - begin) * tile.pitch + 2 * kLanes));
    std::fill_n(numbers.data(), gap, Number{0});
    Number* to = numbers.data() + gap;
    for (int64_t r = begin; r < end; ++r, to += tile.pitch) {
      if (r < 0 || r >= rows_.size) {
        std::fill_n(to, tile.pitch, Number{0});
        continue;
      }
      put(r, to);
      if (is_along_) std::fill_n(to + tile.columns, kLanes, Number{0});
    }
    // Lanes behind the last column count, too.
    if (is_along_) std::fill_n(to - tile.pitch + tile.columns, 2 * kLanes, Number{0});
  }
  template <class Number>
  Number* squares_of(const Tile& tile, int64_t before, int64_t after, const Rows& x,
                     std::vector<Number>& squares) const {
    fill(tile, tile.row - before, tile.row + tile.rows + after, is_along_ ? before_ : 0, squares,
         [&](int64_t row, Number* to) ANYDML_INLINE_LAMBDA {
           const std::byte* const from = x.at(row);
           for_columns(tile.columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
             prefetch_line(from + c * kItem + kAhead);
             const auto of = numbers_at<Number>(from, c);
             put_lanes(to + c, of * of);
           });
         });
    return squares.data();
  }

  template <class Number>
  ANYDML_INLINE static Lanes16<Number> numbers_at(const std::byte* row, int64_t column) {
    if constexpr (std::is_same_v<Number, double>) {
      return load_wide_lanes<T>(row + column * kItem);
    } else {
      return load_sixteen<T>(row + column * kItem);
    }
  }
  // Sums of windows that begin at a row of a buffer.
  template <class Number>
  WindowSums<Number> sums_at(const Tile& tile, const Number* row) const {
    return {row, is_along_ ? 1 : tile.pitch, window_, false};
  }
  // Calls body(window) with the window's size as a constant where it is the usual one.
  template <class Body>
  ANYDML_INLINE auto for_window(const Body& body) const {
    return window_ == 5 ? body(std::integral_constant<int, 5>{}) : body(window_);
  }

  void put_responses(const Tile& tile, const Rows& x, std::byte* to, int64_t step, Room& room) const;
  void put_gradients(const Tile& tile, const Rows& x, const Rows& dy, std::byte* to, int64_t step,
                     Room& room) const;

  ANYDML_INLINE static void put_numbers(std::byte* row, int64_t column, const Sixteen& x) {
    store_sixteen<T>(row + column * kItem, x);
  }
  ANYDML_INLINE static void put_numbers(std::byte* row, int64_t column, const Wide& x) {
    store_wide_lanes<T>(row + column * kItem, x);
  }
  // Calls body(row, count, column) for runs of a tile's rows, element i of which is in column(i).
  template <class Body>
  ANYDML_INLINE static void for_runs(const Tile& tile, const Body& body) {
    const int64_t last = std::max(tile.columns - kLanes, int64_t{0});
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int64_t begin = 0; begin < tile.columns; begin += kRun) {
        body(r, std::min(kRun, tile.columns - begin),
             [=](int64_t i) ANYDML_INLINE_LAMBDA { return std::min(begin + i, last); });
      }
    }
  }

  bool is_gradient_;
  size_t out_;
  LittlePowers little_;
  PowersOfSums powers_;
  double twice_;
  bool has_singles_;
  int64_t elements_ = 1;
  std::vector<Axis> around_;
  Axis rows_;
  Axis columns_;
  bool is_along_;  // whether windows go along rows
  int64_t before_;
  int64_t after_;
  int64_t window_;
  int64_t at_once_;  // rows or columns of a block
  int64_t per_around_;
  bool is_packed_;
  bool is_large_;  // of packed rows
};

ANYDML_ISA_END
