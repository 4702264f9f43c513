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
void LocalChannelsPlan<T>::put_responses(const Tile& tile, const Rows& x, std::byte* to, int64_t step,
                                         Room& room) const {
  const int64_t before = is_along_ ? 0 : before_;
  const int64_t after = is_along_ ? 0 : after_;
  const float* const squares = squares_of(tile, before, after, x, room.singles.squares);
  const LittlePowers little = little_;  // which no store can change
  const float most = for_window([&](auto window) ANYDML_INLINE_LAMBDA {
    Largest<float> largest;
    for (int64_t r = 0; r < tile.rows; ++r) {
      const std::byte* const from = x.at(tile.row + r);
      std::byte* const row = to + r * step;
      const WindowSums<float> sums = sums_at(tile, squares + r * tile.pitch);
      for_columns(tile.columns, [&](int64_t c) ANYDML_INLINE_LAMBDA {
        const Sixteen sum = sums.at(c, window);
        largest.add(sum);
        store_sixteen<T>(row + c * kItem, each_part(
                                              [&](Singles of, Singles around) ANYDML_INLINE_LAMBDA {
                                                return little.template times<T>(
                                                    of, little.template slope<T>(around));
                                              },
                                              load_sixteen<T>(from + c * kItem), sum));
      });
    }
    return largest.of_all();
  });
  if (most <= little.most) return;
  const auto for_parts_of = [&](const auto* around, const auto& for_part) ANYDML_INLINE_LAMBDA {
    using Number = std::remove_cvref_t<decltype(*around)>;
    for_runs(tile, [&](int64_t r, int64_t count, const auto& column) ANYDML_INLINE_LAMBDA {
      const std::byte* const from = x.at(tile.row + r);
      const WindowSums<Number> sums = sums_at(tile, around + r * tile.pitch);
      for_part(
          count, [&](int64_t i) ANYDML_INLINE_LAMBDA { return sums.at(column(i)); },
          [&](int64_t i, const auto& powers) ANYDML_INLINE_LAMBDA {
            put_numbers(to + r * step, column(i), numbers_at<Number>(from, column(i)) * powers.of);
          });
    });
  };
  if constexpr (std::is_same_v<T, Half>) {
    if (has_singles_)
      return for_parts_of(squares, [&](auto... each) ANYDML_INLINE_LAMBDA { powers_.for_singles(each...); });
  }
  for_parts_of(squares_of(tile, before, after, x, room.doubles.squares),
               [&](auto... each) ANYDML_INLINE_LAMBDA { powers_.for_doubles(each...); });
}

ANYDML_ISA_END
