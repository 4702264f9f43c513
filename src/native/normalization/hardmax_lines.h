// HARDMAX of lines.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "normalization/line.h"
#include "normalization/sixteen.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/singles.h"
#include "simd/bits_as.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// 1 for the first of the largest numbers of a group, 0 for all others; the first element, where none is a
// number.
struct HardmaxLine {
  static constexpr bool kNeedsRoom = false;

  // Of a line in rows: the first of its largest numbers, and where it is, -1 where there is no number.
  struct Found {
    float most;
    int64_t place;
  };
  template <class T>
  static Found first_of(const Line& line) {
    const Lanes lanes = lanes_of<T, false>(line);
    // By halves, without branches, which nobody could foresee.
    SixteenSingles all = lanes.most;
    ANYDML_UNROLL(4)
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t k = 0; k < half; ++k) all[k] = all[k + half] > all[k] ? all[k + half] : all[k];
    }
    struct Places {
      SingleBits parts[kSingleParts];
    };
    const auto most = bits_as<Sixteen>(lanes.most);
    auto found = bits_as<Places>(lanes.vector);
    const auto own = bits_as<Places>(kNumbers);
    for (int64_t p = 0; p < kSingleParts; ++p) {
      constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
      found.parts[p] =
          most.parts[p] == Singles{} + all[0] ? found.parts[p] + own.parts[p] : SingleBits{} + kNone;
    }
    auto places = bits_as<std::array<uint32_t, kLanes>>(found);
    ANYDML_UNROLL(4)
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t k = 0; k < half; ++k) places[k] = std::min(places[k], places[k + half]);
    }
    return {all[0], place_of<T>(line, kItem<T>, 0, all[0], places[0])};
  }

  // Of sixteen columns.
  static void first_of_columns(const Line& line, std::array<float, kLanes>& most,
                               std::array<int64_t, kLanes>& places) {
    const Lanes lanes = lanes_of<float, true>(line);
    most = lanes.most;
    for (size_t k = 0; k < kLanes; ++k) {
      places[k] = place_of<float>(line, line.in[0].step, static_cast<int64_t>(k), most[k], lanes.vector[k]);
    }
  }

  template <class T, bool kColumns>
  void compute(const Line& line) const {
    const T one(1.0F);
    if constexpr (kColumns) {
      static_assert(std::is_same_v<T, float>);
      std::array<float, kLanes> most;
      std::array<int64_t, kLanes> places;
      first_of_columns(line, most, places);
      for (int64_t i = 0; i < line.count; ++i) {
        std::memset(line.out + i * line.out_step, 0, static_cast<size_t>(line.lanes) * sizeof(T));
      }
      for (int64_t k = 0; k < line.lanes; ++k) {
        const int64_t place = std::max<int64_t>(0, places[static_cast<size_t>(k)]);
        store(line.out + place * line.out_step + k * kItem<T>, one);
      }
    } else {
      const int64_t place = std::max<int64_t>(0, first_of<T>(line).place);
      std::memset(line.out, 0, static_cast<size_t>(line.elements) * sizeof(T));
      store(line.out + place * kItem<T>, one);
    }
  }

 private:
  template <class T>
  static constexpr auto kItem = static_cast<int64_t>(sizeof(T));

  static constexpr std::array<uint32_t, kLanes> kNumbers{0, 1, 2,  3,  4,  5,  6,  7,
                                                         8, 9, 10, 11, 12, 13, 14, 15};

  // The largest of each lane, and the first vector that has it; in rows the place where that begins.
  struct Lanes {
    SixteenSingles most;
    std::array<uint32_t, kLanes> vector;
  };
  template <class T, bool kColumns>
  static Lanes lanes_of(const Line& line) {
    Sixteen most = sixteen(-std::numeric_limits<float>::infinity());
    SingleBits first[kSingleParts]{};
    const auto add = [&](int64_t i, const Sixteen& x) ANYDML_INLINE_LAMBDA {
#pragma GCC unroll 16
      for (int64_t p = 0; p < kSingleParts; ++p) {
        const auto is_larger = x.parts[p] > most.parts[p];
        most.parts[p] = is_larger ? x.parts[p] : most.parts[p];
        first[p] = is_larger ? SingleBits{} + static_cast<uint32_t>(i) : first[p];
      }
    };
    const auto& [at, step, is_one] = line.in[0];
    constexpr int64_t kPlaces = kColumns ? 1 : kLanes;
    int64_t i = 0;
    for (; i < line.whole; ++i) add(i * kPlaces, load_sixteen<T>(at + i * step));
    if (!kColumns && 0 < i && i < line.count) {
      // With elements before them once more, none of which is larger there.
      const int64_t place = line.elements - kLanes;
      add(place, load_sixteen<T>(at + place * kItem<T>));
      i = line.count;
    }
    for (; i < line.count; ++i) {
      T room[kLanes];
      std::fill_n(room, kLanes, T(-std::numeric_limits<float>::infinity()));
      std::memcpy(room, at + i * step, static_cast<size_t>(line.lanes) * sizeof(T));
      add(i * kPlaces, load_sixteen<T>(reinterpret_cast<const std::byte*>(room)));
    }
    Lanes found;
    found.most = numbers_of(most);
    std::memcpy(found.vector.data(), first, sizeof(first));
    return found;
  }

  // Where nothing is larger than the lowest number, that of the first number.
  template <class T>
  static int64_t place_of(const Line& line, int64_t step, int64_t lane, float most, int64_t place) {
    if (most > -std::numeric_limits<float>::infinity()) return place;
    for (int64_t i = 0; i < line.elements; ++i) {
      const auto x = widen<T, float>(line.in[0].at + i * step + lane * kItem<T>);
      if (x == x) return i;
    }
    return -1;
  }
};

ANYDML_ISA_END
