// A row, or a few, by a matrix that is read once, where it is: along its rows, or across them by transposing
// squares in registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "dense/product.h"
#include "dense/tuning.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Vectors of columns whose sums are in registers while a part of the depth passes.
inline constexpr int64_t kRowVectors = 4;

// sums[c] += sum over k of x[k] * b[k][c], of kVectors vectors or, of one, so many columns; from 0 on if they
// are the first. What the next call reads, behind these columns, is prefetched meanwhile.
template <class Item, int kVectors>
ANYDML_INLINE void add_rows(const float* x, const std::byte* b, int64_t step, int64_t depth, bool is_first,
                            float* sums, int64_t columns = kVectors * kColumnLanes) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  constexpr int64_t kBytes = kVectors * kColumnLanes * kItem;
  const bool is_whole = columns == kVectors * kColumnLanes;
  Columns y[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const auto* const at = reinterpret_cast<const std::byte*>(sums + v * kColumnLanes);
    y[v] = is_first ? Columns{} : load_numbers<float, float, Columns>(at);
  }
  for (int64_t k = 0; k < depth; ++k, b += step) {
    const Columns each = x[k] - Columns{};
    const std::byte* from = b;
    std::byte rest[kBytes];
    if (!is_whole) {
      std::memset(rest, 0, kBytes);
      std::memcpy(rest, b, static_cast<size_t>(columns * kItem));
      from = rest;
    } else {
#pragma GCC unroll 8
      for (int64_t i = 0; i < kBytes; i += kLine) prefetch_line(b + kBytes + i);
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto w = load_numbers<Item, float, Columns>(from + v * kColumnLanes * kItem);
      y[v] = multiply_add(each, w, y[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    store_numbers<float, float>(reinterpret_cast<std::byte*>(sums + v * kColumnLanes), y[v]);
  }
}

// sums[c] = sum over k of x[k] * b[k][c], of at most kReadColumns columns that lie side by side, behind which
// there is room for a vector.
template <class Item>
ANYDML_NOINLINE void multiply_row_along(const float* x, const std::byte* b, int64_t step, int64_t depth,
                                        int64_t columns, float* sums) {
  constexpr int64_t kAtOnce = kRowVectors * kColumnLanes;
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  for (int64_t k = 0; k < depth; k += kReadDepth) {
    const int64_t deep = std::min(kReadDepth, depth - k);
    const std::byte* const from = b + k * step;
    int64_t c = 0;
    for (; c + kAtOnce <= columns; c += kAtOnce) {
      add_rows<Item, kRowVectors>(x + k, from + c * kItem, step, deep, k == 0, sums + c);
    }
    for (; c < columns; c += kColumnLanes) {
      add_rows<Item, 1>(x + k, from + c * kItem, step, deep, k == 0, sums + c,
                        std::min(kColumnLanes, columns - c));
    }
  }
}

// Whether a row of them is multiplied across.
template <class Item>
inline constexpr bool kMultipliesAcross =
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

// sums[r][c] = sum over k of x[r][k] * b[k][c], of a panel of columns, each of which lies side by side in
// memory, `step` behind the one before. Rows of x are kDepth apart.
template <class Item, int kRows>
ANYDML_NOINLINE void multiply_rows_across(const float* x, const std::byte* b, int64_t step, int64_t depth,
                                          float* sums) {
  using Bits = std::conditional_t<sizeof(Item) == 4, uint32_t, uint16_t>;
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  constexpr int64_t kAtOnce = kSquareBytes / kItem;
  constexpr int64_t kSquares = kColumnLanes / kAtOnce;
  // Squares that are read from a column at once, a whole line where registers hold as many: columns that are
  // a power of two apart take each other's place in the first cache.
  constexpr int64_t kPieces = kColumnLanes >= 16 && kItem == 4 ? 4 : 2;
  constexpr int64_t kAhead = 4 * kLine;
  using Row = SquareRow<Bits, kSquares>;
  Columns y[kRows][2]{};
  int64_t k = 0;
  for (; k + kPieces * kAtOnce <= depth; k += kPieces * kAtOnce) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      Row rows[kPieces][kAtOnce]{};
      [&]<int... kSquare>(std::integer_sequence<int, kSquare...>) {
        (
            [&] {
              const std::byte* from = b + (v * kColumnLanes + kSquare * kAtOnce) * step + k * kItem;
#pragma GCC unroll 8
              for (int64_t i = 0; i < kAtOnce; ++i, from += step) {
                // Each address from the one before: all of them at once would leave their registers.
                asm volatile("" : "+r"(from));
                prefetch_line(from + kAhead);
#pragma GCC unroll 4
                for (int64_t piece = 0; piece < kPieces; ++piece)
                  rows[piece][i] = with_square<kSquare>(rows[piece][i], from + piece * kSquareBytes);
              }
            }(),
            ...);
      }(std::make_integer_sequence<int, kSquares>{});
#pragma GCC unroll 4
      for (int64_t piece = 0; piece < kPieces; ++piece) {
        transpose<Bits, kSquares>(rows[piece]);
#pragma GCC unroll 8
        for (int64_t i = 0; i < kAtOnce; ++i) {
          const Columns w = singles_of<Item>(rows[piece][i]);
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            y[r][v] = multiply_add(x[r * kDepth + k + piece * kAtOnce + i] - Columns{}, w, y[r][v]);
          }
        }
      }
    }
  }
  for (; k < depth; ++k) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      float w[kColumnLanes];
      const std::byte* const from = b + v * kColumnLanes * step + k * kItem;
      for (int64_t c = 0; c < kColumnLanes; ++c) w[c] = static_cast<float>(load<Item>(from + c * step));
      const auto all = load_numbers<float, float, Columns>(reinterpret_cast<const std::byte*>(w));
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) y[r][v] = multiply_add(x[r * kDepth + k] - Columns{}, all, y[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      auto* const to = reinterpret_cast<std::byte*>(sums + r * kPanel + v * kColumnLanes);
      store_numbers<float, float>(to, y[r][v]);
    }
  }
}

using MultiplyRowsAcross = void (*)(const float* x, const std::byte* b, int64_t step, int64_t depth,
                                    float* sums);
// By the rows, less 1.
template <class Item>
inline constexpr MultiplyRowsAcross kMultiplyRowsAcross[]{
    multiply_rows_across<Item, 1>, multiply_rows_across<Item, 2>, multiply_rows_across<Item, 3>,
    multiply_rows_across<Item, 4>};
#endif

ANYDML_ISA_END
