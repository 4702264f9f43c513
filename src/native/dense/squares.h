// Columns that lie side by side in memory, each for itself, as vectors of all of them: squares are transposed
// in registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "dense/tile.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/bits_as.h"
#include "simd/half.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Whether columns of them are transposed so.
template <class Item>
inline constexpr bool kTransposesColumns =
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    true;
#elif defined(ANYDML_VECTORS) && defined(__GNUC__)
    sizeof(Item) == 4;
#else
    false;
#endif

#if defined(ANYDML_VECTORS) && defined(__GNUC__)
// A row of squares of which square kSquare is read from memory; of the first, all others are made 0.
template <int kSquare, class Row>
ANYDML_INLINE Row with_square(Row row, const std::byte* from) {
#if defined(ANYDML_ISA_AVX512)
  const __m128i square = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if constexpr (sizeof(Row) == 64) {
    if constexpr (kSquare == 0) return (Row)_mm512_inserti32x4(_mm512_setzero_si512(), square, 0);
    return (Row)_mm512_mask_broadcast_i32x4((__m512i)row, 0xf << 4 * kSquare, square);
  } else if constexpr (sizeof(Row) == 32) {
    if constexpr (kSquare == 0) return (Row)_mm256_inserti128_si256(_mm256_setzero_si256(), square, 0);
    return (Row)_mm256_mask_broadcast_i32x4((__m256i)row, 0xf << 4 * kSquare, square);
  }
#elif defined(ANYDML_ISA_AVX2)
  const __m128i square = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if constexpr (sizeof(Row) == 32) {
    if constexpr (kSquare == 0) return (Row)_mm256_inserti128_si256(_mm256_setzero_si256(), square, 0);
    return (Row)_mm256_inserti128_si256((__m256i)row, square, kSquare);
  }
#endif
  std::memcpy(reinterpret_cast<std::byte*>(&row) + kSquare * kSquareBytes, from, kSquareBytes);
  return row;
}

// A vector of transposed elements as singles.
template <class Item, class Row>
ANYDML_INLINE Columns singles_of(const Row& row) {
  if constexpr (sizeof(Item) == 4) {
    return bits_as<Columns>(row);
  } else {
#if defined(ANYDML_ISA_AVX512)
    return (Columns)_mm512_maskz_cvtph_ps(kAllLanes, (__m256i)row);
#elif defined(ANYDML_ISA_AVX2)
    return (Columns)_mm256_cvtph_ps((__m128i)row);
#endif
  }
}

template <class Item>
struct Squares {
  using Bits = std::conditional_t<sizeof(Item) == 4, uint32_t, uint16_t>;
  // Elements of a column in a square, squares of a row, and squares that are read from a column at once: a
  // whole line where registers hold as many, as columns that are a power of two apart take each other's place
  // in the first cache.
  static constexpr int64_t kAtOnce = kSquareBytes / static_cast<int64_t>(sizeof(Item));
  static constexpr int64_t kSquares = kColumnLanes / kAtOnce;
  static constexpr int64_t kPieces = kColumnLanes >= 16 && sizeof(Item) == 4 ? 4 : 2;
  static constexpr int64_t kDeep = kPieces * kAtOnce;
  using Row = SquareRow<Bits, kSquares>;
};

// Calls each(k, vector) for kDeep elements of as many columns as a vector has lanes. What lies kAhead bytes
// behind is prefetched meanwhile, unless processors do that as fast by themselves.
template <class Item, int64_t kAhead = 4 * kLine, class Each>
ANYDML_INLINE void for_each_of_columns(const std::byte* first, int64_t step, const Each& each) {
  using S = Squares<Item>;
  typename S::Row rows[S::kPieces][S::kAtOnce]{};
  [&]<int... kSquare>(std::integer_sequence<int, kSquare...>) {
    (
        [&] {
          const std::byte* from = first + kSquare * S::kAtOnce * step;
#pragma GCC unroll 8
          for (int64_t i = 0; i < S::kAtOnce; ++i, from += step) {
            // Each address from the one before: all of them at once would leave their registers.
            asm volatile("" : "+r"(from));
            if constexpr (kAhead > 0) prefetch_line(from + kAhead);
#pragma GCC unroll 4
            for (int64_t piece = 0; piece < S::kPieces; ++piece)
              rows[piece][i] = with_square<kSquare>(rows[piece][i], from + piece * kSquareBytes);
          }
        }(),
        ...);
  }(std::make_integer_sequence<int, S::kSquares>{});
#pragma GCC unroll 4
  for (int64_t piece = 0; piece < S::kPieces; ++piece) {
    transpose<typename S::Bits, S::kSquares>(rows[piece]);
#pragma GCC unroll 8
    for (int64_t i = 0; i < S::kAtOnce; ++i) each(piece * S::kAtOnce + i, singles_of<Item>(rows[piece][i]));
  }
}

// Element k of as many columns.
template <class Item>
ANYDML_INLINE Columns element_of_columns(const std::byte* from, int64_t step) {
  float w[kColumnLanes];
  for (int64_t c = 0; c < kColumnLanes; ++c) w[c] = static_cast<float>(load<Item>(from + c * step));
  return load<Columns>(reinterpret_cast<const std::byte*>(w));
}
#endif

ANYDML_ISA_END
