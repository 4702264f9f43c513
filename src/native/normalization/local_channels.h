// Local responses and their gradients by short windows across channels, in strips that stay in the first
// cache.
//
// A tile has rows of columns: channels of some places, or places of all channels where these lie last. It is
// computed by strips, sixteen columns or some rows, whose elements are put as numbers into a buffer with
// zeros around them, and taken with sums of their squares sixteen at a time: by the series of
// `local_series.h`, or where a sum of the strip is no little one, in double precision, or that of halves in
// single precision. Channels go by groups, each from the first place to the last, so that memory is gone over
// as it lies, and what a group needs of its neighbours is in the second cache yet; large results go past the
// caches.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include "stores/nontemporal.h"
#include "stores/row_writers.h"

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
      at_once_ = std::clamp(share * kRun, kRun, kMostColumns);
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
      Room room(little_);
      const int64_t end = share_begin(call + 1, calls, blocks);
      for (int64_t i = share_begin(call, calls, blocks); i < end; ++i) {
        const Walk walk(around_, i / per_around_);
        for (size_t k = 0; k < out_; ++k)
          room.in[k] = static_cast<const std::byte*>(inputs[k]) + walk.offset(k);
        room.out = static_cast<std::byte*>(outputs[0]) + walk.offset(out_);
        put_block(i % per_around_, room);
      }
      room.results.end();
      if (is_large_) stream_fence();
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);
  // How far elements are fetched ahead, in bytes, where channels lie last.
  static constexpr int64_t kAhead = 4096;
  // Channels of a group, columns of a tile, and elements of a tile and of a strip where channels lie last.
  static constexpr int64_t kChannels = 32;
  static constexpr int64_t kTileColumns = 256;
  static constexpr int64_t kLineTile = 1 << 11;
  static constexpr int64_t kLineStrip = 1 << 9;
  // The most columns of a block, and blocks for threads.
  static constexpr int64_t kMostColumns = 1 << 12;
  static constexpr int64_t kColumnBlocks = 16;

  struct Tile {
    int64_t row;
    int64_t rows;
    int64_t column;
    int64_t columns;
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
    std::vector<Number> numbers;
    std::vector<Number> sums;  // and what is made of them
    std::vector<Number> terms;
  };

  // Results of a tile that go past the caches, piece by piece while the next one is computed: all at once
  // would be waited for. The pieces are those of rows, or of a single one.
  struct Results {
    std::array<std::vector<std::byte>, 2> of_tiles;
    size_t turn = 0;
    RowWriters writers{nullptr};
    int64_t rows = 0;
    std::byte* next = nullptr;  // where the rows end
    const std::byte* from = nullptr;
    int64_t bytes = 0;
    int64_t size = 1;   // of a piece
    int64_t pitch = 0;  // from a piece to the next
    int64_t sent = 0;

    // Begins rows of `length` bytes, which lie `step` bytes apart.
    void begin(int64_t count, std::byte* to, int64_t length, int64_t step) {
      end();
      const bool is_one = count == 1 || length == step;
      if (!is_one || to != next) writers.begin_apart(is_one ? 1 : count, to, step);
      if (is_one) writers.begin(count, to, length);
      rows = count;
      next = is_one ? to + count * length : nullptr;
    }
    void end() {
      send(bytes);
      if (next != nullptr) writers.end(rows);
    }
    // A tile of `all` bytes, whose pieces lie `apart`.
    void add(const std::byte* tile, int64_t all, int64_t piece, int64_t apart) {
      from = tile;
      bytes = all;
      size = piece;
      pitch = apart;
      sent = 0;
    }
    // Until so many bytes are sent.
    void send(int64_t until) {
      for (; sent < until; sent += size, from += pitch)
        writers.append(rows == 1 ? 0 : sent / size, from, std::min(size, bytes - sent), nullptr);
    }
  };

  struct Room {
    std::array<const std::byte*, 2> in{};
    std::byte* out = nullptr;
    std::array<std::vector<std::byte>, 2> apart;
    Results results;
    Buffers<float> singles;
    Buffers<double> doubles;
    int64_t ahead = kAhead;
    LittlePowersOf<T> little;
    explicit Room(const LittlePowers& powers) : little(powers) {}
  };

  static int64_t parts_of(int64_t size, int64_t most) { return (size + most - 1) / most; }

  void put_block(int64_t block, Room& room) const {
    if (is_along_) {
      const int64_t first = block * at_once_;
      return put_tile({first, std::min(at_once_, rows_.size - first), 0, columns_.size}, room);
    }
    const int64_t begin = share_begin(block, per_around_, columns_.size);
    const int64_t columns = share_begin(block + 1, per_around_, columns_.size) - begin;
    const int64_t tiles = parts_of(columns, kTileColumns);
    for (int64_t row = 0; row < rows_.size; row += kChannels) {
      const int64_t rows = std::min(kChannels, rows_.size - row);
      if (is_large_)
        room.results.begin(rows, room.out + row * rows_.steps[out_] + begin * kItem, columns * kItem,
                           rows_.steps[out_]);
      for (int64_t i = 0; i < tiles; ++i) {
        const int64_t first = share_begin(i, tiles, columns);
        const int64_t end = share_begin(i + 1, tiles, columns);
        // The next tile.
        room.ahead = i + 1 < tiles ? (end - first) * kItem : rows * rows_.steps[0] - first * kItem;
        put_tile({row, rows, begin + first, end - first}, room);
      }
    }
  }

  // By strips: some rows where windows go along rows, or sixteen columns.
  void put_tile(const Tile& tile, Room& room) const {
    Results& results = room.results;
    const bool goes_there = !is_large_ && is_packed_ && tile.columns >= kLanes;
    std::byte* const there = room.out + tile.row * rows_.steps[out_] + tile.column * columns_.steps[out_];
    std::byte* to = there;
    int64_t step = rows_.steps[out_];
    if (!goes_there) {
      // From line to line where they are sent row by row.
      step = tile.columns * kItem;
      if (is_large_ && !is_along_) step = parts_of(step, kLine) * kLine;
      to = sized(results.of_tiles[results.turn], tile.rows * step + kLanes * kItem);
    }
    const int64_t at_once = is_along_ ? std::max(kLineStrip / tile.columns, int64_t{1}) : kLanes;
    const int64_t all = is_along_ ? tile.rows : tile.columns;
    const int64_t strips = parts_of(all, at_once);
    for (int64_t i = 0; i < strips; ++i) {
      const int64_t first = i * at_once;
      if (is_along_) {
        const int64_t rows = std::min(at_once, all - first);
        put_strip({tile.row + first, rows, tile.column, tile.columns}, to + first * step, step, room);
      } else {
        const int64_t column = std::max(std::min(first, all - kLanes), int64_t{0});
        put_strip({tile.row, tile.rows, tile.column + column, std::min(kLanes, all)}, to + column * kItem,
                  step, room);
      }
      results.send((i + 1) * results.bytes / strips);
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
    results.turn ^= 1;
    if (!is_along_) return results.add(to, tile.rows * tile.columns * kItem, tile.columns * kItem, step);
    // Rows side by side are one.
    const int64_t rows = rows_.steps[out_] == step ? 1 : tile.rows;
    const int64_t size = tile.rows / rows * step;
    for (int64_t r = 0; r < rows; ++r) {
      if (there + r * rows_.steps[out_] != results.next)
        results.begin(1, there + r * rows_.steps[out_], 0, 0);
      results.end();
      results.add(to + r * size, size, at_once * step, at_once * step);
      results.next += size;
    }
  }
  void put_strip(const Tile& tile, std::byte* to, int64_t step, Room& room) const {
    const Rows x = rows_of(0, tile, halo(), room);
    if (is_gradient_) {
      const Rows dy = rows_of(1, tile, is_along_ ? 0 : std::max(before_, after_), room);
      const bool is_done = is_along_ ? put_little_gradients(AlongRows{}, tile, x, dy, to, step, room)
                                     : put_little_gradients(AcrossRows{}, tile, x, dy, to, step, room);
      if (!is_done) put_gradients(tile, x, dy, to, step, room);
    } else {
      const bool is_done = is_along_ ? put_little_responses(AlongRows{}, tile, x, to, step, room)
                                     : put_little_responses(AcrossRows{}, tile, x, to, step, room);
      if (!is_done) put_responses(tile, x, to, step, room);
    }
  }

  // Rows around a tile's that its results are made of.
  int64_t halo() const { return is_along_ ? 0 : is_gradient_ ? before_ + after_ : std::max(before_, after_); }

  Rows rows_of(size_t tensor, const Tile& tile, int64_t around, Room& room) const {
    const int64_t step = rows_.steps[tensor];
    const int64_t apart = columns_.steps[tensor];
    const std::byte* const from = room.in[tensor] + tile.column * apart;
    if (apart == kItem && tile.columns >= kLanes) return {from, 0, step};
    return copied_rows(tensor, tile, around, room);
  }
  Rows copied_rows(size_t tensor, const Tile& tile, int64_t around, Room& room) const {
    const int64_t step = rows_.steps[tensor];
    const int64_t apart = columns_.steps[tensor];
    const std::byte* const from = room.in[tensor] + tile.column * apart;
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

  // What follows is told whether windows go along rows: by a constant in single precision.
  using AlongRows = std::true_type;
  using AcrossRows = std::false_type;

  // Calls body(c) for sixteen columns at a time, of which the last begin before those before them end; a
  // strip across whose rows windows go has no more.
  template <class Along, class Body>
  ANYDML_INLINE static void for_columns(Along, int64_t columns, const Body& body) {
    if constexpr (std::is_same_v<Along, AcrossRows>) {
      body(int64_t{0});
    } else {
      const int64_t last = std::max(columns - kLanes, int64_t{0});
      for (int64_t c = 0; c < columns; c += kLanes) body(std::min(c, last));
    }
  }

  // Numbers of a strip's buffers from a row to the next, and from one number of a window to the next.
  int64_t pitch(bool is_along) const { return is_along ? columns_.size + std::max(before_, after_) : kLanes; }
  static constexpr int64_t stride(bool is_along) { return is_along ? 1 : kLanes; }

  // Buffers of rows from `begin` on, zeros where the tensor has none, of which put(row, to) writes columns;
  // where windows go along rows, with `gap` zeros before all and as many as these need behind each.
  template <class Along, class Number, class Put>
  ANYDML_INLINE const Number* fill(Along is_along, const Tile& tile, int64_t begin, int64_t end, int64_t gap,
                                   std::vector<Number>& numbers, const Put& put) const {
    const int64_t pitch = this->pitch(is_along);
    const int64_t columns = tile.columns;
    const int64_t last = std::min(end, rows_.size);
    Number* const first = sized(numbers, gap + (end - begin) * pitch + 2 * kLanes);
    std::fill_n(first, gap, Number{0});
    Number* to = first + gap;
    int64_t r = begin;
    for (; r < 0; ++r, to += kLanes) std::fill_n(to, kLanes, Number{0});
    for (; r < last; ++r, to += pitch) {
      put(r, to);
      if (is_along) std::fill_n(to + columns, kLanes, Number{0});
    }
    for (; r < end; ++r, to += kLanes) std::fill_n(to, kLanes, Number{0});
    // Lanes behind the last column count, too.
    if (is_along) std::fill_n(to - pitch + columns, 2 * kLanes, Number{0});
    return first;
  }
  template <class Along, class Number>
  ANYDML_INLINE const Number* numbers_of(Along is_along, const Tile& tile, int64_t before, int64_t after,
                                         const Rows& x, int64_t ahead, std::vector<Number>& numbers) const {
    const int64_t columns = tile.columns;
    const std::byte* const first = x.at(0);
    const int64_t step = x.step;
    return fill(is_along, tile, tile.row - before, tile.row + tile.rows + after, is_along ? before_ : 0,
                numbers, [=](int64_t row, Number* to) ANYDML_INLINE_LAMBDA {
                  const std::byte* const from = first + row * step;
                  for_columns(is_along, columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
                    fetch(is_along, from + c * kItem, ahead);
                    put_lanes(to + c, numbers_at<Number>(from, c));
                  });
                });
  }
  // Of the next tile into the second cache, and of the next strip into the first one.
  ANYDML_INLINE static void fetch(bool is_along, const std::byte* from, int64_t ahead) {
    prefetch_line(from + ahead);
    __builtin_prefetch(from + (is_along ? kLineStrip : kLanes) * kItem, 0, 3);
  }

  // Zeros around rows whose columns are written.
  void clear_around(const Tile& tile, int64_t begin, int64_t end, int64_t gap, double* numbers) const {
    const int64_t pitch = this->pitch(is_along_);
    std::fill_n(numbers, gap, 0.0);
    double* to = numbers + gap;
    for (int64_t r = begin; r < end; ++r, to += pitch) {
      const int64_t columns = r < 0 || r >= rows_.size ? 0 : is_along_ ? tile.columns : pitch;
      std::fill_n(to + columns, pitch - columns, 0.0);
    }
    std::fill_n(to, is_along_ ? kLanes : 0, 0.0);
  }
  // Room that begins with a line, as vectors of sixteen would lie across lines.
  template <class Number>
  ANYDML_INLINE static Number* sized(std::vector<Number>& numbers, int64_t count) {
    constexpr auto kInLine = kLine / static_cast<int64_t>(sizeof(Number));
    const auto size = static_cast<size_t>(count + kInLine);
    if (numbers.size() < size) numbers.resize(size);
    return numbers.data() + to_next_line(reinterpret_cast<const std::byte*>(numbers.data())) /
                                static_cast<int64_t>(sizeof(Number));
  }
  template <class Number>
  ANYDML_INLINE static Lanes16<Number> numbers_at(const std::byte* row, int64_t column) {
    if constexpr (std::is_same_v<Number, double>) {
      return load_wide_lanes<T>(row + column * kItem);
    } else {
      return load_sixteen<T>(row + column * kItem);
    }
  }
  // Sums of windows of squares in single precision, each of which is added without being rounded.
  template <class Count>
  ANYDML_INLINE static Sixteen squares_around(const float* at, int64_t stride, Count window) {
    const Sixteen first = lanes_at(at);
    Sixteen sum = first * first;
    const auto add = [&](int64_t k) ANYDML_INLINE_LAMBDA {
      sum = each_part([](Singles x, Singles of) ANYDML_INLINE_LAMBDA { return multiply_add(x, x, of); },
                      lanes_at(at + k * stride), sum);
    };
    if constexpr (std::is_same_v<Count, int64_t>) {
      for (int64_t k = 1; k < window; ++k) add(k);
    } else {
      ANYDML_UNROLL(8)
      for (int64_t k = 1; k < Count::value; ++k) add(k);
    }
    return sum;
  }
  // Sums of windows that begin at a row of a buffer.
  template <class Number>
  WindowSums<Number> sums_at(const Number* row, bool are_squared = false) const {
    return {row, is_along_ ? 1 : kLanes, window_, are_squared};
  }
  // Calls body(window) with the window's size as a constant where it is the usual one.
  template <class Body>
  ANYDML_INLINE auto for_window(const Body& body) const {
    return window_ == 5 ? body(std::integral_constant<int, 5>{}) : body(window_);
  }

  // The results of a strip, false where they are not within single precision.
  template <class Along>
  bool put_little_responses(Along is_along, const Tile& tile, const Rows& x, std::byte* to, int64_t step,
                            Room& room) const;
  template <class Along>
  bool put_little_gradients(Along is_along, const Tile& tile, const Rows& x, const Rows& dy, std::byte* to,
                            int64_t step, Room& room) const;
  // Those of any.
  void put_responses(const Tile& tile, const Rows& x, std::byte* to, int64_t step, Room& room) const;
  void put_gradients(const Tile& tile, const Rows& x, const Rows& dy, std::byte* to, int64_t step,
                     Room& room) const;

  ANYDML_INLINE static void put_numbers(std::byte* row, int64_t column, const Sixteen& x) {
    store_sixteen<T>(row + column * kItem, x);
  }
  ANYDML_INLINE static void put_numbers(std::byte* row, int64_t column, const Wide& x) {
    store_wide_lanes<T>(row + column * kItem, x);
  }
  // Where sixteen elements are: the row of a strip, the column of that, and the number in a buffer.
  struct Place {
    int64_t row;
    int64_t column;
    int64_t number;
  };
  // Calls body(count, place) for runs of a strip's rows, element i of which is at place(i).
  template <class Body>
  ANYDML_INLINE void for_runs(int64_t rows, int64_t columns, const Body& body) const {
    const bool is_along = is_along_;
    const int64_t pitch = this->pitch(is_along);
    const int64_t count = is_along ? columns : rows * kLanes;
    const int64_t last = std::max(columns - kLanes, int64_t{0});
    for (int64_t r = 0; r < (is_along ? rows : 1); ++r) {
      for (int64_t begin = 0; begin < count; begin += kRun) {
        body(std::min(kRun, count - begin), [=](int64_t i) ANYDML_INLINE_LAMBDA {
          const int64_t column = std::min(begin + i, last);
          return is_along ? Place{r, column, r * pitch + column} : Place{(begin + i) / kLanes, 0, begin + i};
        });
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
