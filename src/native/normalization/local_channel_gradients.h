// The gradients of a tile of channels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "normalization/local_channels.h"
#include "normalization/local_response.h"
#include "normalization/local_series.h"
#include "normalization/sixteen.h"
#include "normalization/wide.h"
#include "normalization/window_sums.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

// dx = dy / s^Beta - 2 * factor * Beta * x * sum of dy * x / s^(Beta + 1)
// Windows of the terms of that sum are turned around. Of little sums:
//   terms = dy * x * (1 + q), dx = (dy + (dy * p - twice * x * sum of terms)) / Bias^Beta
template <class T>
template <class Along>
bool LocalChannelsPlan<T>::put_little_gradients(Along is_along, const Tile& tile, const Rows& x,
                                                const Rows& dy, std::byte* to, int64_t step,
                                                Room& room) const {
  const int64_t before = is_along ? 0 : before_;
  const int64_t after = is_along ? 0 : after_;
  const int64_t begin = tile.row - after;
  const int64_t end = tile.row + tile.rows + before;
  const int64_t pitch = this->pitch(is_along);
  const int64_t rows = tile.rows;
  const int64_t columns = tile.columns;
  const int64_t ahead = room.ahead;
  const std::byte* const first = dy.at(0);
  const int64_t dy_step = dy.step;
  // From the first number of a window of squares to its own, and from the first row of terms to the tile's.
  const int64_t own = before_ * stride(is_along);
  const int64_t in = after * kLanes;
  const float* const numbers =
      numbers_of(is_along, tile, after + before, before + after, x, ahead, room.singles.numbers);
  float* const around = sized(room.singles.sums, (end - begin) * pitch + kLanes);
  const LittlePowersOf<T> little = room.little;
  return for_window([&](auto window) ANYDML_INLINE_LAMBDA {
    Largest<float> largest;
    for (int64_t i = 0; i < (end - begin) * pitch; i += pitch) {
      for_columns(is_along, columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
        const Sixteen sum = squares_around(numbers + i + c, stride(is_along), window);
        largest.add(sum);
        put_lanes(around + i + c, sum);
      });
    }
    if (!largest.is_below(little_.most)) return false;
    const float* const terms =
        fill(is_along, tile, begin, end, is_along ? after_ : 0, room.singles.terms,
             [&](int64_t row, float* to_terms) ANYDML_INLINE_LAMBDA {
               const int64_t i = (row - begin) * pitch;
               const std::byte* const from = first + row * dy_step;
               for_columns(is_along, columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
                 fetch(is_along, from + c * kItem, ahead);
                 put_lanes(to_terms + c, each_part(
                                             [&](Singles of, Singles of_y, Singles sum) ANYDML_INLINE_LAMBDA {
                                               const Singles term = of * of_y;
                                               return multiply_add(term, little.slope_of_less(sum), term);
                                             },
                                             lanes_at(numbers + own + i + c), numbers_at<float>(from, c),
                                             lanes_at(around + i + c)));
               });
             });
    Sixteen zeros{};
    const std::byte* from = first + tile.row * dy_step;
    for (int64_t i = 0; i < rows * pitch; i += pitch, from += dy_step, to += step) {
      const WindowSums<float> sums{terms + i, stride(is_along), window, false};
      for_columns(is_along, columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
        const Sixteen dx = each_part(
            [&](Singles of, Singles of_y, Singles squares, Singles sum)
                ANYDML_INLINE_LAMBDA { return little.gradient(of, of_y, little.slope(squares), sum); },
            lanes_at(numbers + in + own + i + c), numbers_at<float>(from, c), lanes_at(around + in + i + c),
            sums.at(c, window));
        zeros = each_part([](Singles of, Singles zero)
                              ANYDML_INLINE_LAMBDA { return multiply_add(of, Singles{}, zero); },
                          dx, zeros);
        put_numbers(to, c, dx);
      });
    }
    // Of gradients that are infinite, or near that, differences of singles would be NaN.
    return are_between(zeros, -1, 1);
  });
}

template <class T>
void LocalChannelsPlan<T>::put_gradients(const Tile& tile, const Rows& x, const Rows& dy, std::byte* to,
                                         int64_t step, Room& room) const {
  const int64_t before = is_along_ ? 0 : before_;
  const int64_t after = is_along_ ? 0 : after_;
  const int64_t begin = tile.row - after;
  const int64_t end = tile.row + tile.rows + before;
  const int64_t gap = is_along_ ? after_ : 0;
  const int64_t pitch = this->pitch(is_along_);
  const int64_t own = before_ * stride(is_along_);
  const int64_t in = after * kLanes;
  const double* const numbers =
      numbers_of(is_along_, tile, after + before, before + after, x, room.ahead, room.doubles.numbers);
  double* const powers_of = sized(room.doubles.sums, (end - begin) * pitch + kLanes);
  double* const terms = sized(room.doubles.terms, gap + (end - begin) * pitch + 2 * kLanes);
  // Rows that the tensor has.
  const int64_t first = std::max(begin, int64_t{0});
  const int64_t base = (first - begin) * pitch;
  const WindowSums<double> squares = sums_at(numbers + base, true);
  for_runs(std::min(end, rows_.size) - first, tile.columns,
           [&](int64_t count, const auto& place) ANYDML_INLINE_LAMBDA {
             powers_.for_doubles(
                 count, [&](int64_t i) ANYDML_INLINE_LAMBDA { return squares.at(place(i).number); },
                 [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA {
                   const Place at = place(i);
                   const int64_t number = base + at.number;
                   put_wide(powers_of + number, powers.of);
                   put_wide(terms + gap + number, numbers_at<double>(dy.at(first + at.row), at.column) *
                                                      wide_at(numbers + own + number) * powers.less);
                 });
           });
  clear_around(tile, begin, end, gap, terms);
  const Wide twice = broadcast_wide(twice_);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t i = r * pitch;
    const WindowSums<double> sums = sums_at<double>(terms + i);
    for_columns(is_along_, tile.columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
      put_numbers(to + r * step, c,
                  numbers_at<double>(dy.at(tile.row + r), c) * wide_at(powers_of + in + i + c) -
                      twice * wide_at(numbers + in + own + i + c) * sums.at(c));
    });
  }
}

ANYDML_ISA_END
