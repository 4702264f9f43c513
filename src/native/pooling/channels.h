// Pooling where what no window slides along is packed, such as channels that lie last: some neighbouring
// channels stay in registers while the window's taps are gone through, as addresses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pooling/geometry.h"
#include "pooling/rows.h"
#include "pooling/windows.h"
#include "simd/half.h"

ANYDML_ISA_BEGIN
namespace {

// From a window's origin: in bytes, and in what indices count.
struct Tap {
  int64_t offset;
  int64_t index;
};

// More taps than so many are not listed.
constexpr int64_t kMostListed = 1 << 14;

// The taps of a window that lie on elements, row-major; they stay from place to place where the same ones do.
class WindowTaps {
 public:
  explicit WindowTaps(const Nest& nest) : nest_(nest) {}

  static bool are_few(const Nest& nest) {
    int64_t taps = 1;
    for (const Dimension& dimension : nest.outer) {
      taps *= std::min(dimension.window.taps, dimension.window.size);
      if (taps > kMostListed) return false;
    }
    return are_near(nest);
  }

  // Whether 32 bits hold what indices count from a window's origin.
  static bool are_near(const Nest& nest) {
    const auto far = [](const Dimension& dimension) {
      const Sliding& window = dimension.window;
      return static_cast<double>(window.taps - 1) * static_cast<double>(window.dilation) *
             static_cast<double>(dimension.index_step);
    };
    double all = far(nest.row);
    for (const Dimension& dimension : nest.outer) all += far(dimension);
    return all <= std::numeric_limits<int32_t>::max();
  }

  void move_to(const Part& part) {
    origin_ = {0, 0};
    bool is_same = true;
    for (size_t d = 0; d < std::min(nest_.outer.size(), kMostOuter); ++d) {
      const Dimension& dimension = nest_.outer[d];
      const auto inside = dimension.window.inside(part.place[d]);
      is_same = is_same && inside == inside_[d];
      inside_[d] = inside;
      const int64_t origin = dimension.window.origin(part.place[d]);
      origin_.offset += origin * dimension.window.in_stride;
      origin_.index += origin * dimension.index_step;
    }
    if (is_same) return;
    taps_.assign(1, {0, 0});
    for (size_t d = 0; d < std::min(nest_.outer.size(), kMostOuter); ++d) {
      const Dimension& dimension = nest_.outer[d];
      if (!dimension.slides()) continue;
      std::vector<Tap>& found = found_;
      found.clear();
      for (const Tap& tap : taps_) {
        for (int64_t k = inside_[d].first; k < inside_[d].second; ++k) {
          const int64_t element = k * dimension.window.dilation;
          found.push_back({tap.offset + element * dimension.window.in_stride,
                           tap.index + element * dimension.index_step});
        }
      }
      std::swap(taps_, found);
    }
  }

  const Tap& origin() const { return origin_; }
  const std::vector<Tap>& taps() const { return taps_; }

 private:
  const Nest& nest_;
  Tap origin_{};
  std::array<std::pair<int64_t, int64_t>, kMostOuter> inside_{{{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}};
  std::vector<Tap> taps_{Tap{0, 0}};  // all, where nothing is around a row
  std::vector<Tap> found_;
};

// Whether rows are such channels, and enough of them.
inline bool has_channels(const Nest& nest, int64_t item) {
  const Sliding& row = nest.row.window;
  return !nest.row.slides() && row.in_stride == item && row.size >= 8 && WindowTaps::are_few(nest);
}

// Calls body<vectors>(at) so that all channels are gone through, vector v from channel at(v) on: several at
// once, as each waits for its sum; some of the last channels perhaps twice.
template <int64_t kLanes, class Body>
ANYDML_INLINE void for_channels(int64_t channels, const Body& body) {
  constexpr int kMany = 4;
  int64_t c = 0;
  const auto at = [&](int v) { return std::min(c + v * kLanes, channels - kLanes); };
  for (; c + kLanes < channels; c += kMany * kLanes) body.template operator()<kMany>(at);
  if (c < channels) body.template operator()<1>(at);
}

// x / count, rounded once, of whole counts and of sums that are not -0: by Markstein's correction of a
// product with the reciprocal, which is as exact as a division and takes a quarter of its time.
class Quotient {
 public:
  explicit Quotient(double count) : Quotient(Doubles{} + count, Doubles{} + 1 / count) {}
  Quotient(Doubles count, Doubles reciprocal) : count_(count), reciprocal_(reciprocal) {}

  // Of what is infinite, or no number, nothing is left to correct.
  ANYDML_INLINE Doubles of(Doubles x) const {
#if defined(ANYDML_ISA_AVX512)
    const auto q = (__m512d)(x * reciprocal_);
    const __m512d left = _mm512_fnmadd_pd(q, (__m512d)count_, (__m512d)x);
    const __mmask8 is_number = _mm512_cmp_pd_mask(left, left, _CMP_ORD_Q);
    return (Doubles)_mm512_mask3_fmadd_pd(left, (__m512d)reciprocal_, q, is_number);
#elif defined(ANYDML_ISA_AVX2)
    const auto q = (__m256d)(x * reciprocal_);
    const __m256d left = _mm256_fnmadd_pd(q, (__m256d)count_, (__m256d)x);
    const __m256d is_number = _mm256_cmp_pd(left, left, _CMP_ORD_Q);
    return (Doubles)_mm256_fmadd_pd(_mm256_and_pd(left, is_number), (__m256d)reciprocal_, q);
#else
    return x / count_;
#endif
  }

 private:
  Doubles count_;
  Doubles reciprocal_;
};

// Norms of up to this exponent are of powers that are made in registers.
constexpr int64_t kMostInRegisters = 2;

// |x|^p, or x itself where p is 0.
template <int kP>
ANYDML_INLINE Doubles powers_of(Doubles x) {
  return kP == 0 ? x : kP == 1 ? magnitude_of<double>(x) : x * x;
}

// The averages of all taps, side by side, or their norms: sums of double precision.
template <class T, int kP>
void channel_sums(const std::byte* from, const std::vector<Tap>& taps, int64_t channels, double count,
                  std::byte* to) {
  constexpr int64_t kLanes = sizeof(Doubles) / sizeof(double);
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  const Quotient quotient(count);
  for_channels<kLanes>(channels, [&]<int kVectors>(const auto& at) {
    Doubles all[kVectors];
    int64_t places[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      all[v] = Doubles{};
      places[v] = at(v) * kItem;
    }
    for (const Tap& tap : taps) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        all[v] = all[v] + powers_of<kP>(load_numbers<T, double, Doubles>(from + tap.offset + places[v]));
      }
    }
    ANYDML_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) {
      const Doubles y = kP == 0 ? quotient.of(all[v]) : kP == 1 ? all[v] : square_root<double>(all[v]);
      store_numbers<T, double, Doubles>(to + places[v], y);
    }
  });
}

// Elements as numbers of lanes that are as wide as those of indices.
template <class T>
using Comparable = std::conditional_t<
    std::is_same_v<T, Half> || std::is_same_v<T, float>, float,
    std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_same_v<T, uint32_t>, uint32_t, int32_t>>>;
template <class T>
using IndexOf = std::conditional_t<sizeof(Comparable<T>) == 8, int64_t, int32_t>;

template <class T, int kLanes>
ANYDML_INLINE Lanes<Comparable<T>, kLanes> load_comparable(const std::byte* from) {
  using Number = Comparable<T>;
  if constexpr (std::is_same_v<Number, float>) {
    return load_numbers<T, float, Lanes<float, kLanes>>(from);
  } else {
#if defined(ANYDML_VECTORS)
    using Few = Vector<T, kLanes>;
    return __builtin_convertvector(load_vector<Few>(from), Vector<Number, kLanes>);
#else
    return static_cast<Number>(load<T>(from));
#endif
  }
}

// Of a channel, whatever is under its window: the first of the largest numbers, or of NaN where there is no
// number; none where there is no tap.
template <class T, class Number, class Index>
void exact_maximum(const std::byte* from, const std::vector<Tap>& taps, Number& most, Index& index) {
  bool is_first = true;
  for (const Tap& tap : taps) {
    const auto x = widen<T, Number>(from + tap.offset);
    if (is_first || x > most || (most != most && x == x)) {
      most = x;
      index = static_cast<Index>(tap.index);
    }
    is_first = false;
  }
}

// The largest of all taps, and the first of them that it lies at, if indices are wanted: there are some. Of
// NaN it is the lowest value.
template <class T, bool kIndices, int kLanes>
void largest_numbers(const std::byte* from, const std::vector<Tap>& taps, int64_t channels,
                     Comparable<T>* most, IndexOf<T>* indices) {
  using Number = Comparable<T>;
  using Index = IndexOf<T>;
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  constexpr Number kLowest = std::is_same_v<Number, float>
                                 ? static_cast<Number>(-std::numeric_limits<float>::infinity())
                                 : std::numeric_limits<Number>::lowest();
  using V = Lanes<Number, kLanes>;
  using I = Lanes<Index, kLanes>;
  for_channels<kLanes>(channels, [&]<int kVectors>(const auto& at) {
    V all[kVectors];
    I where[kVectors];
    int64_t places[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      places[v] = at(v);
      all[v] = V{} + kLowest;
      where[v] = I{} + static_cast<Index>(taps[0].index);
    }
    for (const Tap& tap : taps) {
      const I here = I{} + static_cast<Index>(tap.index);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const V x = load_comparable<T, kLanes>(from + tap.offset + places[v] * kItem);
        if constexpr (kIndices) {
          const auto is_larger = x > all[v];
          where[v] = later_place(is_larger, here, where[v]);
        }
        all[v] = lane_max<Number>(x, all[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(most + places[v], &all[v], sizeof(V));
      if constexpr (kIndices) std::memcpy(indices + places[v], &where[v], sizeof(I));
    }
  });
}

// The same, of NaN too, where there is no number.
template <class T, bool kIndices>
void channel_maxima(const std::byte* from, const std::vector<Tap>& taps, int64_t channels,
                    Comparable<T>* most, IndexOf<T>* indices) {
  using Number = Comparable<T>;
  constexpr int kLanes = kLanesOf<Number>;
  constexpr int kMost = std::is_same_v<Number, float> ? sizeof(Singles) / sizeof(float) : kLanes;
  if (channels >= kMost) {
    largest_numbers<T, kIndices, kMost>(from, taps, channels, most, indices);
  } else {
    largest_numbers<T, kIndices, kLanes>(from, taps, channels, most, indices);
  }
  if constexpr (std::is_same_v<Number, float>) {
    // Where there is no number above the lowest value, NaN counts.
    if (are_certain_maxima(most, channels)) return;
    for (int64_t c = 0; c < channels; ++c) {
      if (most[c] > QuickMaximum::kStart<Number>) continue;
      IndexOf<T> place = 0;
      exact_maximum<T>(from + c * static_cast<int64_t>(sizeof(T)), taps, most[c],
                       kIndices ? indices[c] : place);
    }
  }
}

}  // namespace
ANYDML_ISA_END
