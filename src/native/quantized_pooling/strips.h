// The inner loops of a separable box filter with small windows, for strips of 32 outputs.
//
// A strip's windows are summed along the width for every row of input, then down the rows, then over slices.
// Sums of 16 bits are enough. They lie in two vectors: of a stride of 1, the first has the sums of the
// outputs at even places and the second those at odd ones, because neighbouring bytes are added in pairs; of
// a stride of 2, where a vector holds every other window already, the first has those of the first 16
// outputs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "platform/isa.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/lanes.h"
#include "quantized_pooling/requantize.h"
#include "stores/nontemporal.h"

#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
#include <immintrin.h>
#define ANYDML_POOLING_AVX2
#endif

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kStrip = 32;

using Shorts = Vector<uint16_t, 16>;
using Floats = Vector<float, 8>;

struct StripSums {
  Shorts first, second;

  ANYDML_INLINE static StripSums at(const uint16_t* from) {
    return {load_vector<Shorts>(from), load_vector<Shorts>(from + 16)};
  }
  ANYDML_INLINE void store(uint16_t* to) const {
    store_vector(to, first);
    store_vector(to + 16, second);
  }
  ANYDML_INLINE friend StripSums operator+(const StripSums& a, const StripSums& b) {
    return {a.first + b.first, a.second + b.second};
  }
  ANYDML_INLINE friend StripSums operator-(const StripSums& a, const StripSums& b) {
    return {a.first - b.first, a.second - b.second};
  }
  ANYDML_INLINE void operator+=(const StripSums& other) { *this = *this + other; }
  ANYDML_INLINE void operator-=(const StripSums& other) { *this = *this - other; }
};

// The bytes at even places of 32, those at odd ones, and their sums, pair by pair.
ANYDML_INLINE Shorts even_bytes(Shorts v) { return v & broadcast_to<Shorts>(uint16_t{0xff}); }
ANYDML_INLINE Shorts odd_bytes(Shorts v) { return v >> 8; }
ANYDML_INLINE Shorts pair_sums(Shorts v) {
#if defined(ANYDML_POOLING_AVX2)
  return bits_as<Shorts>(_mm256_maddubs_epi16(bits_as<__m256i>(v), _mm256_set1_epi8(1)));
#else
  return even_bytes(v) + odd_bytes(v);
#endif
}

// The sums along the width: tap k of the output at place x of the strip is the byte k * dilation + x *
// stride. No byte beyond the last output's last tap is read, but for a stride of 2 and one tap. kMasked: only
// bytes that `keep` has set are taken.
template <int kStride, bool kDilated, bool kMasked>
ANYDML_INLINE StripSums sum_taps(const std::byte* row, const uint8_t* keep, int64_t taps, int64_t dilation,
                                 Shorts flips) {
  const auto bytes = [=](int64_t offset) {
    const Shorts v = load_vector<Shorts>(row + offset) ^ flips;
    return kMasked ? v & load_vector<Shorts>(keep + offset) : v;
  };
  if constexpr (kStride == 1 && kDilated) {
    const Shorts start = bytes(0);
    StripSums sums{even_bytes(start), odd_bytes(start)};
    for (int64_t k = 1; k < taps; ++k) {
      const Shorts v = bytes(k * dilation);
      sums += {even_bytes(v), odd_bytes(v)};
    }
    return sums;
  } else if constexpr (kStride == 1) {
    if (taps % 2 == 0) {
      StripSums sums{};
      for (int64_t k = 0; k < taps; k += 2) sums += {pair_sums(bytes(k)), pair_sums(bytes(k + 1))};
      return sums;
    }
    // An odd window is pairs and one more byte: after them for outputs at even places, before them for
    // others.
    if (taps == 1) return {even_bytes(bytes(0)), odd_bytes(bytes(0))};
    const Shorts first = bytes(0), last = bytes(taps - 1);
    Shorts between{};
    for (int64_t k = 2; k + 1 < taps; k += 2) between += pair_sums(bytes(k));
    return {pair_sums(first) + between + even_bytes(last), odd_bytes(first) + between + pair_sums(last)};
  } else if constexpr (kDilated) {
    StripSums sums{even_bytes(bytes(0)), even_bytes(bytes(32))};
    for (int64_t k = 1; k < taps; ++k) {
      sums += {odd_bytes(bytes(k * dilation - 1)), odd_bytes(bytes(k * dilation + 31))};
    }
    return sums;
  } else {
    StripSums sums{};
    if (taps == 1) return {even_bytes(bytes(0)), even_bytes(bytes(32))};
    for (int64_t k = 0; k + 1 < taps; k += 2) sums += {pair_sums(bytes(k)), pair_sums(bytes(k + 32))};
    if (taps % 2 != 0) sums += {odd_bytes(bytes(taps - 2)), odd_bytes(bytes(taps + 30))};
    return sums;
  }
}

// An inline memcpy for the few bytes of a strip.
inline void copy_bytes(std::byte* to, const std::byte* from, int64_t size) {
  using Whole = Vector<uint8_t, 32>;
  using Half = Vector<uint8_t, 16>;
  if (size >= 32) {
    for (int64_t i = 0; i < size - 32; i += 32) store_vector(to + i, load_vector<Whole>(from + i));
    store_vector(to + size - 32, load_vector<Whole>(from + size - 32));
  } else if (size >= 16) {
    store_vector(to, load_vector<Half>(from));
    store_vector(to + size - 16, load_vector<Half>(from + size - 16));
  } else {
    std::memcpy(to, from, static_cast<size_t>(size));
  }
}

// The padding among a strip's columns.
struct StripBorder {
  std::vector<uint8_t> keep;            // for each column a mask: all bits inside the input, none outside
  std::array<uint16_t, kStrip> taps{};  // taps outside, of each output in the order of sums
};

struct StripRows {
  const std::byte* first;
  int64_t pitch;
  int64_t count;
  // The distance from a row to that of the next block, which is prefetched meanwhile: a strip takes too
  // little of each row for the hardware prefetcher.
  int64_t next_block;
  const StripBorder* border = nullptr;
  int64_t zero_point = 0;  // of the padding at a border
};

template <int kStride, bool kDilated, bool kMasked, int kTaps>
void sum_rows_of(const StripRows& rows, int64_t taps, int64_t dilation, uint8_t flip, uint16_t* sums) {
  if (kTaps != 0) taps = kTaps;
  const auto flips = broadcast_to<Shorts>(static_cast<uint16_t>(flip * 0x101));
  const std::byte* row = rows.first;
  const int64_t count = rows.count, pitch = rows.pitch,
                next_block = rows.next_block;  // not changed by what is stored
  const uint8_t* keep = nullptr;
  StripSums padding{};
  if constexpr (kMasked) {
    const auto zero_points = broadcast_to<Shorts>(static_cast<uint16_t>(rows.zero_point));
    keep = rows.border->keep.data();
    padding = StripSums::at(rows.border->taps.data());
    padding = {padding.first * zero_points, padding.second * zero_points};
  }
  for (int64_t r = 0; r < count; ++r, row += pitch) {
    prefetch_line(row + next_block);
    auto sum = sum_taps<kStride, kDilated, kMasked>(row, keep, taps, dilation, flips);
    if constexpr (kMasked) sum += padding;
    sum.store(sums + r * kStrip);
  }
}

using SumRows = void (*)(const StripRows&, int64_t taps, int64_t dilation, uint8_t flip, uint16_t* sums);

// Counts known to the compiler leave no inner loop.
template <int kStride, bool kMasked>
SumRows sum_rows_for(int64_t taps, bool dilated) {
  if (dilated) {
    return taps == 3 ? sum_rows_of<kStride, true, kMasked, 3> : sum_rows_of<kStride, true, kMasked, 0>;
  }
  switch (taps) {
    case 2:
      return sum_rows_of<kStride, false, kMasked, 2>;
    case 3:
      return sum_rows_of<kStride, false, kMasked, 3>;
    case 5:
      return sum_rows_of<kStride, false, kMasked, 5>;
    case 7:
      return sum_rows_of<kStride, false, kMasked, 7>;
    default:
      return sum_rows_of<kStride, false, kMasked, 0>;
  }
}

// Rows of sums to be added up: the sum of a strip of outputs is that of one row of each of `count` taps. Each
// tap advances by `step` from one strip of outputs to the next below.
struct SumTaps {
  const uint16_t* const* taps;
  int64_t count;
  int64_t step;
  // Where taps are equally far apart, a strip `grid` below shares all but `shift` of them.
  int64_t tap_step;
  int64_t grid;
  int64_t shift;
};

constexpr int kSliding = -1;

// Passes each strip's sums to `results`: in order, or with running sums grid by grid.
template <int kTaps, class Results>
void add_rows(const SumTaps& t, int64_t rows, const Results& results) {
  if constexpr (kTaps == kSliding) {
    const uint16_t* const first = t.taps[0];
    for (int64_t g = 0; g < std::min(t.grid, rows); ++g) {
      const uint16_t* top = first + g * t.step;
      auto sums = StripSums::at(top);
      for (int64_t k = 1; k < t.count; ++k) sums += StripSums::at(top + k * t.tap_step);
      Results to = results.strided(t.grid, g);
      to.put(sums);
      for (int64_t y = g + t.grid; y < rows; y += t.grid) {
        for (int64_t i = 0; i < t.shift; ++i, top += t.tap_step) {
          sums -= StripSums::at(top);
          sums += StripSums::at(top + t.count * t.tap_step);
        }
        to.put(sums);
      }
    }
  } else {
    const int64_t count = kTaps > 0 ? kTaps : t.count;
    Results to = results;
    for (int64_t y = 0; y < rows; ++y) {
      auto sums = StripSums::at(t.taps[0] + y * t.step);
      for (int64_t k = 1; k < count; ++k) sums += StripSums::at(t.taps[k] + y * t.step);
      to.put(sums);
    }
  }
}

// Calls add(integral constant) with the number of taps, where loops gain by knowing it.
template <class Add>
void with_taps(const SumTaps& taps, const Add& add) {
  if (taps.grid > 0 && 2 * taps.shift + 1 < taps.count) return add(std::integral_constant<int, kSliding>{});
  if (taps.count == 1) return add(std::integral_constant<int, 1>{});
  if (taps.count == 2) return add(std::integral_constant<int, 2>{});
  if (taps.count == 3) return add(std::integral_constant<int, 3>{});
  add(std::integral_constant<int, 0>{});
}

// A consumer of strips of sums, one below the other, that stores them.
struct StoredSums {
  uint16_t* to;
  int64_t step = kStrip;

  // The consumer of every `grid`-th strip from `first` on.
  StoredSums strided(int64_t grid, int64_t first) const { return {to + first * step, grid * step}; }
  ANYDML_INLINE void put(const StripSums& sums) {
    sums.store(to);
    to += step;
  }
};

// Rows of input, in the order of a block's taps, from which a strip's windows take the columns from `column`
// on.
struct WindowRows {
  const std::byte* const* rows;
  int64_t column;
  int64_t step;      // from one strip of outputs to the next below
  int64_t tap_step;  // from tap to tap
  int64_t grid;      // a strip so far below begins kShift taps further down
  int64_t next_block;
  const StripBorder* border = nullptr;
  int64_t zero_point = 0;
};

// The sums along the width of a strip's rows, one after the other.
template <int kStride, bool kDilated, bool kMasked, int kTaps>
struct RowSums {
  const std::byte* const* at;
  int64_t column;
  int64_t tap_step;
  int64_t dilation;
  const uint8_t* keep;
  Shorts flips;
  int64_t next_block;

  ANYDML_INLINE StripSums next() {
    const std::byte* const row = *at + column;
    prefetch_line(row + next_block);
    at += tap_step;
    return sum_taps<kStride, kDilated, kMasked>(row, keep, kTaps, dilation, flips);
  }
};

// Square windows whose sums of rows stay in registers; one below the other they share all but kShift rows.
template <int kStride, bool kDilated, int kTaps, int kShift>
struct RegisterWindow {
  static constexpr int stride = kStride;

  static bool suits(const Window& height, const Window& width) {
    return height.size == kTaps && width.size == kTaps && width.stride == kStride &&
           (width.dilation > 1) == kDilated &&
           height.stride / std::gcd(height.stride, height.dilation) == kShift;
  }

  // Passes the sums of each strip to `results`.
  template <bool kMasked, class Results>
  static void sum(const WindowRows w, int64_t dilation, uint8_t flip, int64_t outputs,
                  const Results& results) {
    const uint8_t* keep = nullptr;
    StripSums padding{};
    if constexpr (kMasked) {
      const auto zero_points = broadcast_to<Shorts>(static_cast<uint16_t>(kTaps * w.zero_point));
      keep = w.border->keep.data();
      padding = StripSums::at(w.border->taps.data());
      padding = {padding.first * zero_points, padding.second * zero_points};
    }
    const auto flips = broadcast_to<Shorts>(static_cast<uint16_t>(flip * 0x101));
    for (int64_t y = 0; y < std::min(w.grid, outputs); ++y) {
      RowSums<kStride, kDilated, kMasked, kTaps> rows{
          w.rows + y * w.step, w.column, w.tap_step, dilation, keep, flips, w.next_block};
      Results to = results.strided(w.grid, y);
      int64_t left = (outputs - y - 1) / w.grid + 1;
      if constexpr (kTaps == 3 && kShift == 1) {
        StripSums first = rows.next(), second = rows.next();
        // Two at a time have two rows in common.
        for (; left > 1; left -= 2) {
          const StripSums third = rows.next();
          const StripSums shared = padding + second + third;
          to.put(first + shared);
          second = rows.next();
          to.put(shared + second);
          first = third;
        }
        if (left > 0) to.put(padding + first + second + rows.next());
      } else if constexpr (kTaps == 3) {
        StripSums first = rows.next();
        for (; left > 0; --left) {
          const StripSums sums = padding + first + rows.next();
          first = rows.next();
          to.put(sums + first);
        }
      } else {
        for (; left > 0; --left) {
          const StripSums first = rows.next();
          to.put(padding + first + rows.next());
        }
      }
    }
  }
};

// Calls call(window) with the RegisterWindow of these windows, and tells whether there is one.
template <class Call>
bool with_register_window(const Window& height, const Window& width, const Call& call) {
  const auto found = [&](auto kind) { return kind.suits(height, width) && (call(kind), true); };
  return found(RegisterWindow<1, false, 3, 1>{}) || found(RegisterWindow<1, true, 3, 1>{}) ||
         found(RegisterWindow<2, false, 2, 2>{}) || found(RegisterWindow<2, false, 3, 2>{}) ||
         found(RegisterWindow<2, true, 3, 1>{});
}

// The place in the strip of the output whose map is at index i of a table of maps.
constexpr int64_t map_place(int64_t i, int64_t stride) {
  const int64_t vector = i / 16, half = i / 8 % 2, lane = i % 8;
#if defined(ANYDML_POOLING_AVX2)
  const int64_t word = lane / 4 * 8 + half * 4 + lane % 4;
#else
  const int64_t word = 2 * lane + half;
#endif
  return stride == 1 ? 2 * word + vector : 16 * vector + word;
}

// A map for each output of a strip, in the order of map_place().
struct StripMaps {
  float slopes[kStrip];
  float adds[kStrip];
  float rounders[kStrip];
};

// A consumer of strips of sums that requantises them. kIsScale: no map has an offset.
template <int kStride, bool kIsScale>
class StripOutputs {
 public:
  StripOutputs(const Quantization& z, int64_t offset, bool is_signed, const StripMaps& maps, std::byte* out,
               int64_t pitch)
      // The float of bits 0x4b000000 + S is 2^23 + S.
      : base_(broadcast_to<Floats>(0x1p23F + static_cast<float>(offset))),
        low_(broadcast_to<Floats>(AffineMap::kRounder + static_cast<float>(z.lowest - z.output_zero_point))),
        high_(
            broadcast_to<Floats>(AffineMap::kRounder + static_cast<float>(z.highest - z.output_zero_point))),
        zero_point_(static_cast<int16_t>(z.output_zero_point - (is_signed ? 0 : 128))),
        flip_(is_signed ? 0 : 0x80),
        maps_(&maps),
        out_(out),
        pitch_(pitch) {}

  StripOutputs strided(int64_t grid, int64_t first) const {
    StripOutputs others = *this;
    others.out_ += first * pitch_;
    others.pitch_ *= grid;
    return others;
  }

#if defined(ANYDML_POOLING_AVX2)
  ANYDML_INLINE void put(const StripSums& sums) {
    const StripMaps& maps = *maps_;
    const __m256i first = rounded(bits_as<__m256i>(sums.first), maps, 0);
    const __m256i second = rounded(bits_as<__m256i>(sums.second), maps, 16);
    // Saturated as signed bytes.
    __m256i bytes = _mm256_packs_epi16(first, second);
    if constexpr (kStride == 1) {
      const __m256i zip =
          _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
      bytes = _mm256_shuffle_epi8(bytes, zip);
    } else {
      bytes = _mm256_permute4x64_epi64(bytes, 0xd8);
    }
    bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(flip_)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out_), bytes);
    out_ += pitch_;
  }

 private:
  // The outputs with the zero point, less 128 for unsigned bytes.
  ANYDML_INLINE __m256i rounded(__m256i sums, const StripMaps& maps, int64_t place) const {
    const __m256i high = _mm256_set1_epi16(0x4b00);
    const __m256i first = rounded_half(_mm256_unpacklo_epi16(sums, high), maps, place);
    const __m256i second = rounded_half(_mm256_unpackhi_epi16(sums, high), maps, place + 8);
    return _mm256_adds_epi16(_mm256_packs_epi32(first, second), _mm256_set1_epi16(zero_point_));
  }
  ANYDML_INLINE __m256i rounded_half(__m256i sums, const StripMaps& maps, int64_t place) const {
    const __m256 scaled = _mm256_mul_ps(_mm256_sub_ps(_mm256_castsi256_ps(sums), bits_as<__m256>(base_)),
                                        _mm256_loadu_ps(maps.slopes + place));
    if constexpr (kIsScale) return _mm256_cvtps_epi32(scaled);
    __m256 y = _mm256_add_ps(_mm256_add_ps(scaled, _mm256_loadu_ps(maps.adds + place)),
                             _mm256_loadu_ps(maps.rounders + place));
    y = _mm256_max_ps(_mm256_min_ps(y, bits_as<__m256>(high_)), bits_as<__m256>(low_));
    return _mm256_sub_epi32(_mm256_castps_si256(y), _mm256_castps_si256(_mm256_set1_ps(AffineMap::kRounder)));
  }
#else
  ANYDML_INLINE void put(const StripSums& sums) {
    const StripMaps& maps = *maps_;
    using Bytes = Vector<uint8_t, 32>;
    using Half = Vector<uint8_t, 16>;
    const auto zero_points = broadcast_to<Bytes>(static_cast<uint8_t>(zero_point_ ^ flip_));
    const Shorts first = rounded(sums.first, maps, 0);
    const Shorts second = rounded(sums.second, maps, 16);
    if constexpr (kStride == 1) {
      store_vector(out_, bits_as<Bytes>(first | (second << 8)) + zero_points);
    } else {
      const Half halves[2] = {convert<Half>(first), convert<Half>(second)};
      store_vector(out_, load_vector<Bytes>(halves) + zero_points);
    }
    out_ += pitch_;
  }

 private:
  using Ints = Vector<uint32_t, 8>;

  // The low bytes of the outputs without the zero point.
  ANYDML_INLINE Shorts rounded(Shorts sums, const StripMaps& maps, int64_t place) const {
    const Ints pairs = bits_as<Ints>(sums);
    const Ints even = rounded_half(pairs & broadcast_to<Ints>(0xffffU), maps, place);
    const Ints odd = rounded_half(pairs >> 16, maps, place + 8);
    return bits_as<Shorts>((even & broadcast_to<Ints>(0xffU)) | ((odd & broadcast_to<Ints>(0xffU)) << 16));
  }
  ANYDML_INLINE Ints rounded_half(Ints sums, const StripMaps& maps, int64_t place) const {
    const Floats scaled = (bits_as<Floats>(sums | broadcast_to<Ints>(0x4b000000U)) - base_) *
                          load_vector<Floats>(maps.slopes + place);
    Floats y = scaled;
    if constexpr (kIsScale) {
      y = y + broadcast_to<Floats>(AffineMap::kRounder);
    } else {
      y = y + load_vector<Floats>(maps.adds + place) + load_vector<Floats>(maps.rounders + place);
    }
    return bits_as<Ints>(lane_max(lane_min(y, high_), low_));
  }
#endif

  Floats base_, low_, high_;
  int16_t zero_point_;
  uint8_t flip_;
  const StripMaps* maps_;
  std::byte* out_;
  int64_t pitch_;
};

}  // namespace
ANYDML_ISA_END
