// HARDMAX of lines.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "normalization/line.h"
#include "normalization/sixteen.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/singles.h"
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
    const Lanes lanes = lanes_of<T>(line);
    Found found{lanes.most[0], lanes.vector[0] * kLanes};
    for (size_t k = 1; k < kLanes; ++k) {
      const auto place = static_cast<int64_t>(lanes.vector[k] * kLanes + k);
      const bool is_before = lanes.most[k] == found.most && place < found.place;
      if (lanes.most[k] > found.most || is_before) found = {lanes.most[k], place};
    }
    return {found.most, place_of<T>(line, kItem<T>, 0, found.most, found.place)};
  }

  template <class T, bool kColumns>
  void compute(const Line& line) const {
    const T one(1.0F);
    if constexpr (kColumns) {
      const Lanes lanes = lanes_of<T>(line);
      std::array<int64_t, kLanes> places;
      for (int64_t k = 0; k < line.lanes; ++k) {
        const auto lane = static_cast<size_t>(k);
        places[lane] = place_of<T>(line, line.in[0].step, k, lanes.most[lane], lanes.vector[lane]);
      }
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

  // The largest of each lane, and the first vector that has it.
  struct Lanes {
    SixteenSingles most;
    std::array<uint32_t, kLanes> vector;
  };
  template <class T>
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
    for (int64_t i = 0; i < line.whole; ++i) add(i, load_sixteen<T>(at + i * step));
    for (int64_t i = line.whole; i < line.count; ++i) {
      T room[kLanes];
      std::fill_n(room, kLanes, T(-std::numeric_limits<float>::infinity()));
      std::memcpy(room, at + i * step, static_cast<size_t>(line.lanes) * sizeof(T));
      add(i, load_sixteen<T>(reinterpret_cast<const std::byte*>(room)));
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
