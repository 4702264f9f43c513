// The lanes of packed rows of a few columns, which are scanned in pairs of rows: how the rows of a group, as
// many as fill whole vectors, are spread over the lanes of these, and the shuffles between them.
#pragma once

#include <algorithm>
#include <numeric>

#include "platform/isa.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// Rows are numbered in the order of traversal, upwards or downwards in memory; lanes in the order of memory.
template <class Accumulator, int kColumns, bool kDown>
class RowGroup {
 public:
  using V = Vector<Accumulator>;
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Accumulator));
  static_assert(kColumns <= kLanes);
  static constexpr int kRows = std::lcm(2 * kColumns, kLanes) / kColumns;
  static constexpr int kPairs = kRows / 2;
  static constexpr int kVectors = kRows * kColumns / kLanes;

  // Takes the lanes of pairs' first rows from one vector, and those of second rows from the other.
  template <int kVector>
  ANYDML_INLINE static V blend(V first, V second) {
    return shuffled(first, second, [](int lane) {
      const int place = kVector * kLanes + lane;
      return is_second(place) ? kLanes + lane : lane;
    });
  }

  // Gives the first row of each pair in the lanes of the second; the other lanes have any value.
  template <int kVector>
  ANYDML_INLINE static V first_rows(const V* rows) {
    constexpr int kFrom = std::clamp(kDown ? kVector : kVector - 1, 0, std::max(kVectors - 2, 0));
    return shuffled(rows[kFrom], rows[std::min(kFrom + 1, kVectors - 1)], [](int lane) {
      const int place = kVector * kLanes + lane;
      return is_second(place) ? place + (kDown ? kColumns : -kColumns) - kFrom * kLanes : kAny;
    });
  }

  // Gives the second row of a pair, in the lowest lanes.
  template <int kPair>
  ANYDML_INLINE static V second_row(const V* rows) {
    constexpr int kRow = 2 * kPair + 1;
    constexpr int kPlace = (kDown ? kRows - 1 - kRow : kRow) * kColumns;
    constexpr int kFrom = kPlace / kLanes;
    return shuffled(rows[kFrom], rows[std::min(kFrom + 1, kVectors - 1)],
                    [](int lane) { return lane < kColumns ? kPlace - kFrom * kLanes + lane : kAny; });
  }

  // Gives each row the lowest lanes of the vector of its pair.
  template <int kVector>
  ANYDML_INLINE static V distribute(const V* accumulators) {
    constexpr int kOne = pair_of(kVector * kLanes);
    constexpr int kOther = pair_of(kVector * kLanes + kLanes - 1);
    constexpr int kFirst = std::min(kOne, kOther);
    constexpr int kLast = std::max(kOne, kOther);
    constexpr int kNext = std::min(kFirst + 1, kLast);
    V lanes = shuffled(accumulators[kFirst], accumulators[kNext], [](int lane) {
      const int place = kVector * kLanes + lane;
      const int column = place % kColumns;
      return pair_of(place) == kFirst ? column : pair_of(place) == kNext ? kLanes + column : kAny;
    });
    for_each_index<kLast - kNext>([&]<int kMore> {
      constexpr int kPair = kNext + 1 + kMore;
      lanes = shuffled(lanes, accumulators[kPair], [](int lane) {
        const int place = kVector * kLanes + lane;
        return pair_of(place) == kPair ? kLanes + place % kColumns : lane;
      });
    });
    return lanes;
  }

 private:
  static constexpr int kAny = -1;

  static constexpr int row_of(int place) { return kDown ? kRows - 1 - place / kColumns : place / kColumns; }
  static constexpr int pair_of(int place) { return row_of(place) / 2; }
  static constexpr bool is_second(int place) { return row_of(place) % 2 == 1; }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
