// The gradients of a tile of channels.
#pragma once

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
// Of little sums, with root^2 = factor / Bias:
//   terms = dy * (root * x) * (1 + q), dx = (dy + (dy * p - twice * x * sum of terms)) / Bias^Beta
template <class T>
void LocalChannelsPlan<T>::put_gradients(const Tile& tile, const Rows& x, const Rows& dy, std::byte* to,
                                         int64_t step, Room& room) const {
  const int64_t before = is_along_ ? 0 : before_;
  const int64_t after = is_along_ ? 0 : after_;
  // Windows of terms are turned around.
  const int64_t begin = tile.row - after;
  const int64_t end = tile.row + tile.rows + before;
  const int64_t gap = is_along_ ? after_ : 0;
  const auto slopes_at = [&](auto& buffers, int64_t row) ANYDML_INLINE_LAMBDA {
    return buffers.slopes.data() + (row - begin) * tile.pitch;
  };
  const auto squares_at = [&](const auto* squares, int64_t row) ANYDML_INLINE_LAMBDA {
    return sums_at(tile, squares + (row - begin) * tile.pitch);
  };
  const auto room_for_slopes = [&](auto& buffers) {
    buffers.slopes.resize(static_cast<size_t>((end - begin) * tile.pitch + kLanes));
  };
  const float* const squares = squares_of(tile, after + before, before + after, x, room.singles.squares);
  room_for_slopes(room.singles);
  const LittlePowers little = little_;  // which no store can change
  const bool is_little = for_window([&](auto window) ANYDML_INLINE_LAMBDA {
    Largest<float> largest;
    Largest<float> largest_gradient;
    fill(tile, begin, end, gap, room.singles.terms, [&](int64_t row, float* terms) ANYDML_INLINE_LAMBDA {
      const WindowSums<float> sums = squares_at(squares, row);
      float* const slopes = slopes_at(room.singles, row);
      const std::byte* const x_row = x.at(row);
      const std::byte* const dy_row = dy.at(row);
      for_columns(tile.columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
        const Sixteen sum = sums.at(c, window);
        const Sixteen gradients = load_sixteen<T>(dy_row + c * kItem);
        largest.add(sum);
        largest_gradient.add(gradients * gradients);
        put_lanes(slopes + c, each_part([&](Singles around)
                                            ANYDML_INLINE_LAMBDA { return little.template slope<T>(around); },
                                        sum));
        put_lanes(terms + c, each_part(
                                 [&](Singles of, Singles of_y, Singles around) ANYDML_INLINE_LAMBDA {
                                   const Singles term = of * little.root * of_y;
                                   return multiply_add(term, little.slope_of_less(around), term);
                                 },
                                 load_sixteen<T>(x_row + c * kItem), gradients, sum));
      });
    });
    // Of infinite gradients, and of some near that, differences of singles would be NaN.
    if (!(largest.of_all() <= little.most && largest_gradient.of_all() <= kMostGradient * kMostGradient))
      return false;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const std::byte* const x_row = x.at(tile.row + r);
      const std::byte* const dy_row = dy.at(tile.row + r);
      const float* const slopes = slopes_at(room.singles, tile.row + r);
      const WindowSums<float> sums = sums_at(tile, room.singles.terms.data() + r * tile.pitch);
      for_columns(tile.columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
        store_sixteen<T>(to + r * step + c * kItem,
                         each_part(
                             [&](Singles of, Singles of_y, Singles p, Singles sum) ANYDML_INLINE_LAMBDA {
                               const Singles less = of * little.twice * sum;
                               return little.template times_sum<T>(of_y, multiply_add(of_y, p, -less));
                             },
                             load_sixteen<T>(x_row + c * kItem), load_sixteen<T>(dy_row + c * kItem),
                             lanes_at(slopes + c), sums.at(c, window)));
      });
    }
    return true;
  });
  if (is_little) return;
  const double* const wide = squares_of(tile, after + before, before + after, x, room.doubles.squares);
  room_for_slopes(room.doubles);
  fill(tile, begin, end, gap, room.doubles.terms, [&](int64_t row, double* terms) ANYDML_INLINE_LAMBDA {
    const WindowSums<double> sums = squares_at(wide, row);
    double* const powers_of = slopes_at(room.doubles, row);
    for_runs(
        {row, 1, 0, tile.columns, 0}, [&](int64_t, int64_t count, const auto& column) ANYDML_INLINE_LAMBDA {
          powers_.for_doubles(
              count, [&](int64_t i) ANYDML_INLINE_LAMBDA { return sums.at(column(i)); },
              [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA {
                const int64_t c = column(i);
                put_wide(powers_of + c, powers.of);
                put_wide(terms + c,
                         numbers_at<double>(dy.at(row), c) * numbers_at<double>(x.at(row), c) * powers.less);
              });
        });
  });
  const Wide twice = broadcast_wide(twice_);
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t row = tile.row + r;
    const WindowSums<double> sums = sums_at(tile, room.doubles.terms.data() + r * tile.pitch);
    for_columns(tile.columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
      put_numbers(to + r * step, c,
                  numbers_at<double>(dy.at(row), c) * wide_at(slopes_at(room.doubles, row) + c) -
                      twice * numbers_at<double>(x.at(row), c) * sums.at(c));
    });
  }
}

ANYDML_ISA_END
