// The inner loops of pooling with small windows, for strips of 32 outputs.
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

using Shorts = Lanes<uint16_t, 16>;
using Floats = Lanes<float, 8>;

struct StripSums {
  Shorts first, second;

  ANYDML_INLINE static StripSums at(const uint16_t* from) {
    return {load_lanes<Shorts>(from), load_lanes<Shorts>(from + 16)};
  }
  ANYDML_INLINE void store(uint16_t* to) const {
    store_lanes(to, first);
    store_lanes(to + 16, second);
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
ANYDML_INLINE Shorts even_bytes(Shorts v) { return v & all_lanes<Shorts>(uint16_t{0xff}); }
ANYDML_INLINE Shorts odd_bytes(Shorts v) { return v >> 8; }
ANYDML_INLINE Shorts pair_sums(Shorts v) {
#if defined(ANYDML_POOLING_AVX2)
  return as<Shorts>(_mm256_maddubs_epi16(as<__m256i>(v), _mm256_set1_epi8(1)));
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
    const Shorts v = load_lanes<Shorts>(row + offset) ^ flips;
    return kMasked ? v & load_lanes<Shorts>(keep + offset) : v;
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
    // An odd window is pairs and one more byte: behind them for outputs at even places, before them for
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

// As memcpy, for the few bytes of a strip.
inline void copy_bytes(std::byte* to, const std::byte* from, int64_t size) {
  using Vector = Lanes<uint8_t, 32>;
  using Half = Lanes<uint8_t, 16>;
  if (size >= 32) {
    for (int64_t i = 0; i < size - 32; i += 32) store_lanes(to + i, load_lanes<Vector>(from + i));
    store_lanes(to + size - 32, load_lanes<Vector>(from + size - 32));
  } else if (size >= 16) {
    store_lanes(to, load_lanes<Half>(from));
    store_lanes(to + size - 16, load_lanes<Half>(from + size - 16));
  } else {
    std::memcpy(to, from, static_cast<size_t>(size));
  }
}

// What of a strip's columns is padding.
struct StripEdge {
  std::vector<uint8_t> keep;            // columns: all bits of those inside the input, none of others
  std::array<uint16_t, kStrip> taps{};  // outside, of each output in the order of sums
};

struct StripRows {
  const std::byte* first;
  int64_t pitch;
  int64_t count;
  // So far behind a row lies that of the next block. It is asked for while this one is at work, so that
  // memory never rests: a strip takes too little of each row for the processor to foresee them.
  int64_t ahead;
  const StripEdge* edge = nullptr;
  int64_t zero_point = 0;  // of the padding at an edge
};

template <int kStride, bool kDilated, bool kMasked, int kTaps>
void sum_rows_of(const StripRows& rows, int64_t taps, int64_t dilation, uint8_t flip, uint16_t* sums) {
  if (kTaps != 0) taps = kTaps;
  const auto flips = all_lanes<Shorts>(static_cast<uint16_t>(flip * 0x101));
  const std::byte* row = rows.first;
  const int64_t count = rows.count, pitch = rows.pitch, ahead = rows.ahead;  // not changed by what is stored
  const uint8_t* keep = nullptr;
  StripSums padding{};
  if constexpr (kMasked) {
    const auto zero_points = all_lanes<Shorts>(static_cast<uint16_t>(rows.zero_point));
    keep = rows.edge->keep.data();
    padding = StripSums::at(rows.edge->taps.data());
    padding = {padding.first * zero_points, padding.second * zero_points};
  }
  for (int64_t r = 0; r < count; ++r, row += pitch) {
    prefetch_line(row + ahead);
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

// Rows of sums to be added up: the sum of a strip of outputs is that of one row of each of `count` taps. From
// one strip of outputs to the next below, each tap goes `step` on.
struct SumTaps {
  const uint16_t* const* taps;
  int64_t count;
  int64_t step;
  // Where taps are equally far from each other: a strip `grid` below shares all but `shift` of them.
  int64_t tap_step;
  int64_t grid;
  int64_t shift;
};

constexpr int kCarried = -1;

// Gives each strip's sums to `results`, in order but where sums are carried on.
template <int kTaps, class Results>
void add_rows(const SumTaps& t, int64_t rows, const Results& results) {
  if constexpr (kTaps == kCarried) {
    const uint16_t* const first = t.taps[0];
    for (int64_t g = 0; g < std::min(t.grid, rows); ++g) {
      const uint16_t* top = first + g * t.step;
      auto sums = StripSums::at(top);
      for (int64_t k = 1; k < t.count; ++k) sums += StripSums::at(top + k * t.tap_step);
      Results to = results.every(t.grid, g);
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

// Calls add(integral constant) with the number of taps, where it is one that gains by being known.
template <class Add>
void with_taps(const SumTaps& taps, const Add& add) {
  if (taps.grid > 0 && 2 * taps.shift + 1 < taps.count) return add(std::integral_constant<int, kCarried>{});
  if (taps.count == 1) return add(std::integral_constant<int, 1>{});
  if (taps.count == 2) return add(std::integral_constant<int, 2>{});
  if (taps.count == 3) return add(std::integral_constant<int, 3>{});
  add(std::integral_constant<int, 0>{});
}

// What becomes of strips of sums, one below the other: they are stored.
struct StoredSums {
  uint16_t* to;
  int64_t step = kStrip;

  // From the one so far below on, every so many.
  StoredSums every(int64_t grid, int64_t first) const { return {to + first * step, grid * step}; }
  ANYDML_INLINE void put(const StripSums& sums) {
    sums.store(to);
    to += step;
  }
};

// Rows of input, in the order of a block's taps, from which a strip's windows take `column` and what is
// behind.
struct WindowRows {
  const std::byte* const* rows;
  int64_t column;
  int64_t step;      // from one strip of outputs to the next below
  int64_t tap_step;  // from tap to tap
  int64_t grid;      // a strip so far below begins kShift taps further down
  int64_t ahead;
  const StripEdge* edge = nullptr;
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
  int64_t ahead;

  ANYDML_INLINE StripSums next() {
    const std::byte* const row = *at + column;
    prefetch_line(row + ahead);
    at += tap_step;
    return sum_taps<kStride, kDilated, kMasked>(row, keep, kTaps, dilation, flips);
  }
};

// Square windows, of which one below the other share all but kShift rows.
template <int kStride, bool kDilated, int kTaps, int kShift>
struct WindowKind {
  static constexpr int stride = kStride;

  static bool suits(const Window& height, const Window& width) {
    return height.size == kTaps && width.size == kTaps && width.stride == kStride &&
           (width.dilation > 1) == kDilated &&
           height.stride / std::gcd(height.stride, height.dilation) == kShift;
  }

  // Gives the sums of each strip to `results`; those of rows that windows share stay in registers.
  template <bool kMasked, class Results>
  static void sum(const WindowRows w, int64_t dilation, uint8_t flip, int64_t outputs,
                  const Results& results) {
    const uint8_t* keep = nullptr;
    StripSums padding{};
    if constexpr (kMasked) {
      const auto zero_points = all_lanes<Shorts>(static_cast<uint16_t>(kTaps * w.zero_point));
      keep = w.edge->keep.data();
      padding = StripSums::at(w.edge->taps.data());
      padding = {padding.first * zero_points, padding.second * zero_points};
    }
    const auto flips = all_lanes<Shorts>(static_cast<uint16_t>(flip * 0x101));
    for (int64_t y = 0; y < std::min(w.grid, outputs); ++y) {
      RowSums<kStride, kDilated, kMasked, kTaps> rows{
          w.rows + y * w.step, w.column, w.tap_step, dilation, keep, flips, w.ahead};
      Results to = results.every(w.grid, y);
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

// Calls call(kind) with that of these windows, and tells whether there is one.
template <class Call>
bool with_window_kind(const Window& height, const Window& width, const Call& call) {
  const auto found = [&](auto kind) { return kind.suits(height, width) && (call(kind), true); };
  return found(WindowKind<1, false, 3, 1>{}) || found(WindowKind<1, true, 3, 1>{}) ||
         found(WindowKind<2, false, 2, 2>{}) || found(WindowKind<2, false, 3, 2>{}) ||
         found(WindowKind<2, true, 3, 1>{});
}

// Where in the strip the output is whose line is at place i of a table of lines.
constexpr int64_t line_place(int64_t i, int64_t stride) {
  const int64_t vector = i / 16, half = i / 8 % 2, lane = i % 8;
#if defined(ANYDML_POOLING_AVX2)
  const int64_t word = lane / 4 * 8 + half * 4 + lane % 4;
#else
  const int64_t word = 2 * lane + half;
#endif
  return stride == 1 ? 2 * word + vector : 16 * vector + word;
}

// One for each output of a strip, in the order of line_place().
struct StripLines {
  float slopes[kStrip];
  float adds[kStrip];
  float rounders[kStrip];
};

// Or the strips of outputs that they become. kPlain: all lines are.
template <int kStride, bool kPlain>
class StripOutputs {
 public:
  StripOutputs(const Quantization& z, int64_t offset, bool is_signed, const StripLines& lines, std::byte* out,
               int64_t pitch)
      // The float of bits 0x4b000000 + S is 2^23 + S.
      : base_(all_lanes<Floats>(0x1p23F + static_cast<float>(offset))),
        low_(all_lanes<Floats>(Line::kRounder + static_cast<float>(z.lowest - z.output_zero_point))),
        high_(all_lanes<Floats>(Line::kRounder + static_cast<float>(z.highest - z.output_zero_point))),
        zero_point_(static_cast<int16_t>(z.output_zero_point - (is_signed ? 0 : 128))),
        flip_(is_signed ? 0 : 0x80),
        lines_(&lines),
        out_(out),
        pitch_(pitch) {}

  StripOutputs every(int64_t grid, int64_t first) const {
    StripOutputs others = *this;
    others.out_ += first * pitch_;
    others.pitch_ *= grid;
    return others;
  }

#if defined(ANYDML_POOLING_AVX2)
  ANYDML_INLINE void put(const StripSums& sums) {
    const StripLines& lines = *lines_;
    const __m256i first = rounded(as<__m256i>(sums.first), lines, 0);
    const __m256i second = rounded(as<__m256i>(sums.second), lines, 16);
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
  // With the zero point, less 128 of unsigned bytes.
  ANYDML_INLINE __m256i rounded(__m256i sums, const StripLines& lines, int64_t place) const {
    const __m256i high = _mm256_set1_epi16(0x4b00);
    const __m256i first = rounded_half(_mm256_unpacklo_epi16(sums, high), lines, place);
    const __m256i second = rounded_half(_mm256_unpackhi_epi16(sums, high), lines, place + 8);
    return _mm256_adds_epi16(_mm256_packs_epi32(first, second), _mm256_set1_epi16(zero_point_));
  }
  ANYDML_INLINE __m256i rounded_half(__m256i sums, const StripLines& lines, int64_t place) const {
    const __m256 scaled = _mm256_mul_ps(_mm256_sub_ps(_mm256_castsi256_ps(sums), as<__m256>(base_)),
                                        _mm256_loadu_ps(lines.slopes + place));
    if constexpr (kPlain) return _mm256_cvtps_epi32(scaled);
    __m256 y = _mm256_add_ps(_mm256_add_ps(scaled, _mm256_loadu_ps(lines.adds + place)),
                             _mm256_loadu_ps(lines.rounders + place));
    y = _mm256_max_ps(_mm256_min_ps(y, as<__m256>(high_)), as<__m256>(low_));
    return _mm256_sub_epi32(_mm256_castps_si256(y), _mm256_castps_si256(_mm256_set1_ps(Line::kRounder)));
  }
#else
  ANYDML_INLINE void put(const StripSums& sums) {
    const StripLines& lines = *lines_;
    using Bytes = Lanes<uint8_t, 32>;
    using Half = Lanes<uint8_t, 16>;
    const auto zero_points = all_lanes<Bytes>(static_cast<uint8_t>(zero_point_ ^ flip_));
    const Shorts first = rounded(sums.first, lines, 0);
    const Shorts second = rounded(sums.second, lines, 16);
    if constexpr (kStride == 1) {
      store_lanes(out_, as<Bytes>(first | (second << 8)) + zero_points);
    } else {
      const Half halves[2] = {convert<Half>(first), convert<Half>(second)};
      store_lanes(out_, load_lanes<Bytes>(halves) + zero_points);
    }
    out_ += pitch_;
  }

 private:
  using Ints = Lanes<uint32_t, 8>;

  // The low bytes, without the zero point.
  ANYDML_INLINE Shorts rounded(Shorts sums, const StripLines& lines, int64_t place) const {
    const Ints pairs = as<Ints>(sums);
    const Ints even = rounded_half(pairs & all_lanes<Ints>(0xffffU), lines, place);
    const Ints odd = rounded_half(pairs >> 16, lines, place + 8);
    return as<Shorts>((even & all_lanes<Ints>(0xffU)) | ((odd & all_lanes<Ints>(0xffU)) << 16));
  }
  ANYDML_INLINE Ints rounded_half(Ints sums, const StripLines& lines, int64_t place) const {
    const Floats scaled =
        (as<Floats>(sums | all_lanes<Ints>(0x4b000000U)) - base_) * load_lanes<Floats>(lines.slopes + place);
    Floats y = scaled;
    if constexpr (kPlain) {
      y = y + all_lanes<Floats>(Line::kRounder);
    } else {
      y = y + load_lanes<Floats>(lines.adds + place) + load_lanes<Floats>(lines.rounders + place);
    }
    return as<Ints>(larger(smaller(y, high_), low_));
  }
#endif

  Floats base_, low_, high_;
  int16_t zero_point_;
  uint8_t flip_;
  const StripLines* lines_;
  std::byte* out_;
  int64_t pitch_;
};

}  // namespace
ANYDML_ISA_END
