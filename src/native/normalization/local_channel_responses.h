// The responses of a tile of channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "normalization/local_channels.h"
#include "normalization/local_response.h"
#include "normalization/local_series.h"
#include "normalization/sixteen.h"
#include "normalization/window_sums.h"
#include "platform/isa.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN

// y = x / s^Beta
template <class T>
template <class Along>
bool LocalChannelsPlan<T>::put_little_responses(Along is_along, const Tile& tile, const Rows& x,
                                                std::byte* to, int64_t step, Room& room) const {
  const int64_t pitch = this->pitch(is_along);
  const int64_t rows = tile.rows;
  const int64_t columns = tile.columns;
  const float* from = numbers_of(is_along, tile, is_along ? 0 : before_, is_along ? 0 : after_, x, room.ahead,
                                 room.singles.numbers);
  const int64_t own = before_ * stride(is_along);
  const LittlePowersOf<T> little = room.little;
  Largest<float> largest;
  for_window([&](auto window) ANYDML_INLINE_LAMBDA {
    for (int64_t r = 0; r < rows; ++r, from += pitch, to += step) {
      for_columns(is_along, columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
        const Sixteen sum = squares_around(from + c, stride(is_along), window);
        largest.add(sum);
        put_numbers(to, c,
                    each_part([&](Singles of, Singles squares)
                                  ANYDML_INLINE_LAMBDA { return little.times(of, little.slope(squares)); },
                              lanes_at(from + own + c), sum));
      });
    }
  });
  return largest.is_below(little_.most);
}

template <class T>
void LocalChannelsPlan<T>::put_responses(const Tile& tile, const Rows& x, std::byte* to, int64_t step,
                                         Room& room) const {
  const int64_t own = before_ * stride(is_along_);
  const auto put_of = [&](auto& buffers, const auto& for_part) ANYDML_INLINE_LAMBDA {
    const auto* const numbers = numbers_of(is_along_, tile, is_along_ ? 0 : before_, is_along_ ? 0 : after_,
                                           x, room.ahead, buffers.numbers);
    const WindowSums sums = sums_at(numbers, true);
    for_runs(tile.rows, tile.columns, [&](int64_t count, const auto& place) ANYDML_INLINE_LAMBDA {
      for_part(
          count, [&](int64_t i) ANYDML_INLINE_LAMBDA { return sums.at(place(i).number); },
          [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA {
            const Place at = place(i);
            put_numbers(to + at.row * step, at.column, lanes_at(numbers + own + at.number) * powers.of);
          });
    });
  };
  if constexpr (std::is_same_v<T, Half>) {
    if (has_singles_)
      return put_of(room.singles, [&](auto... each) ANYDML_INLINE_LAMBDA { powers_.for_singles(each...); });
  }
  put_of(room.doubles, [&](auto... each) ANYDML_INLINE_LAMBDA { powers_.for_doubles(each...); });
}

ANYDML_ISA_END
