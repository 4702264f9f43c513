// Packed rows of a few columns, in pairs, and as many of them as fill whole vectors: which lanes of these
// belong together.
#pragma once

#include <algorithm>
#include <numeric>

#include "platform/isa.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// Rows come in the order of the walk, up or down in memory; vectors lie as memory does.
template <class Accumulator, int kColumns, bool kDown>
class RowGroup {
 public:
  using V = Vector<Accumulator>;
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Accumulator));
  static_assert(kColumns <= kLanes);
  static constexpr int kRows = std::lcm(2 * kColumns, kLanes) / kColumns;
  static constexpr int kPairs = kRows / 2;
  static constexpr int kVectors = kRows * kColumns / kLanes;

  // Of a pair's first row what is in one vector, of its second one what is in the other.
  template <int kVector>
  ANYDML_INLINE static V blend(V first, V second) {
    return shuffled(first, second, [](int lane) {
      const int place = kVector * kLanes + lane;
      return is_second(place) ? kLanes + lane : lane;
    });
  }

  // For each second row the first one; in the lanes of first rows, anything.
  template <int kVector>
  ANYDML_INLINE static V first_rows(const V* rows) {
    constexpr int kFrom = std::clamp(kDown ? kVector : kVector - 1, 0, std::max(kVectors - 2, 0));
    return shuffled(rows[kFrom], rows[std::min(kFrom + 1, kVectors - 1)], [](int lane) {
      const int place = kVector * kLanes + lane;
      return is_second(place) ? place + (kDown ? kColumns : -kColumns) - kFrom * kLanes : kAny;
    });
  }

  // The second row of a pair, in the lowest lanes.
  template <int kRowUnroll>
  ANYDML_INLINE static V second_row(const V* rows) {
    constexpr int kRow = 2 * kRowUnroll + 1;
    constexpr int kPlace = (kDown ? kRows - 1 - kRow : kRow) * kColumns;
    constexpr int kFrom = kPlace / kLanes;
    return shuffled(rows[kFrom], rows[std::min(kFrom + 1, kVectors - 1)],
                    [](int lane) { return lane < kColumns ? kPlace - kFrom * kLanes + lane : kAny; });
  }

  // Of as many vectors as there are pairs, for each row the lowest lanes of its pair's.
  template <int kVector>
  ANYDML_INLINE static V broadcast_lane(const V* accumulators) {
    constexpr int kOne = pair_of(kVector * kLanes);
    constexpr int kOther = pair_of(kVector * kLanes + kLanes - 1);
    constexpr int kFirst = std::min(kOne, kOther);
    constexpr int kLast = std::max(kOne, kOther);
    constexpr int kNext = std::min(kFirst + 1, kLast);
    V broadcast_lane = shuffled(accumulators[kFirst], accumulators[kNext], [](int lane) {
      const int place = kVector * kLanes + lane;
      const int column = place % kColumns;
      return pair_of(place) == kFirst ? column : pair_of(place) == kNext ? kLanes + column : kAny;
    });
    for_each_index<kLast - kNext>([&]<int kMore> {
      constexpr int kRowUnroll = kNext + 1 + kMore;
      broadcast_lane = shuffled(broadcast_lane, accumulators[kRowUnroll], [](int lane) {
        const int place = kVector * kLanes + lane;
        return pair_of(place) == kRowUnroll ? kLanes + place % kColumns : lane;
      });
    });
    return broadcast_lane;
  }

 private:
  static constexpr int kAny = -1;

  static constexpr int row_of(int place) { return kDown ? kRows - 1 - place / kColumns : place / kColumns; }
  static constexpr int pair_of(int place) { return row_of(place) / 2; }
  static constexpr bool is_second(int place) { return row_of(place) % 2 == 1; }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
