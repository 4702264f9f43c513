// Micro-kernels of bytes as they are: AMX's tiles, or VNNI's dot products of four.
//
// Both multiply signed bytes by unsigned ones. So elements of A are made signed and those of B unsigned, by
// their highest bit, which moves a zero point as it moves the elements; what zero points add to sums is taken
// off afterwards, by sums of rows and of columns (byte_product.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "platform/isa.h"

#if defined(ANYDML_ISA_AVX512) && defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 11)
#define ANYDML_BYTE_TILES

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kTile = 16;       // rows of A, columns of B
constexpr int64_t kTileDepth = 64;  // products
constexpr int64_t kTileBytes = kTile * kTileDepth;

// How matrices are packed: A as [k / 64][row][k % 64], B as [k / 4][column][k % 4]. A step, which a tile of
// both has, is of 64 products; in convolutions, of fewer where channels are few.
struct TileRows {
  using Cell = int8_t;
  static constexpr int kDepth = kTileDepth;
  static constexpr int kRows = kTile;
};
struct TileColumns {
  using Cell = uint8_t;
  static constexpr int kDepth = 4;
  static constexpr int kColumns = kTile;
};

// Where the tiles of a depth lie. Those of A follow each other; of B each four products of a step lie
// `four_step` bytes behind those before them.
struct TileDepths {
  const int64_t* offsets;  // of B's steps, in bytes
  int64_t steps;
  int64_t fours;  // of a step
  int64_t four_step;

  int64_t a_step() const { return fours * 4 * kTile; }
};

// sums[r, c] += sum over k of a[r, k] * b[k, c], for one or two panels of 16 rows and of 16 columns.
struct TileOperands {
  const int8_t* a;
  const uint8_t* b;
  int64_t a_panel, b_panel;  // from panel to panel
  TileDepths depths;
  int32_t* sums;
  int64_t stride;  // of rows of sums
  bool is_first;   // whether sums are 0 before
};

#define ANYDML_AMX [[gnu::target("amx-tile,amx-int8")]]

// The registers' shapes by the fours of a step: 0 to 3 are sums, 4 and 5 rows of A, 6 and 7 columns of B. A
// table, as what was just written byte by byte would be waited for.
struct TileShapes {
  alignas(64) uint8_t of[kTileDepth / 4 + 1][64] = {};

  constexpr TileShapes() {
    for (int fours = 0; fours <= kTileDepth / 4; ++fours) {
      of[fours][0] = 1;
      for (int i = 0; i < 8; ++i) {
        of[fours][16 + 2 * i] = static_cast<uint8_t>(i == 4 || i == 5 ? 4 * fours : kTileDepth);
        of[fours][48 + i] = static_cast<uint8_t>(i >= 6 ? fours : kTile);
      }
    }
  }
};
constexpr TileShapes kTileShapes;

ANYDML_AMX inline void configure_tiles(int64_t fours) { _tile_loadconfig(kTileShapes.of[fours]); }
ANYDML_AMX inline void release_tiles() { _tile_release(); }

template <int kRowPanels, int kColumnPanels>
ANYDML_AMX ANYDML_NOINLINE void add_amx_tiles(const TileOperands& of, const int8_t* a, int32_t* to) {
  const auto sums = [&](int64_t r, int64_t c) { return to + r * kTile * of.stride + c * kTile; };
  const int64_t sum_step = of.stride * static_cast<int64_t>(sizeof(int32_t));
  asm volatile("" : : : "memory");
  if (of.is_first) {
    _tile_zero(0);
    if constexpr (kColumnPanels > 1) _tile_zero(1);
    if constexpr (kRowPanels > 1) _tile_zero(2);
    if constexpr (kRowPanels > 1 && kColumnPanels > 1) _tile_zero(3);
  } else {
    _tile_loadd(0, sums(0, 0), sum_step);
    if constexpr (kColumnPanels > 1) _tile_loadd(1, sums(0, 1), sum_step);
    if constexpr (kRowPanels > 1) _tile_loadd(2, sums(1, 0), sum_step);
    if constexpr (kRowPanels > 1 && kColumnPanels > 1) _tile_loadd(3, sums(1, 1), sum_step);
  }
  const int64_t a_step = of.depths.a_step();
  const int64_t a_row = of.depths.fours * 4;
  const int64_t four_step = of.depths.four_step;
  for (int64_t k = 0; k < of.depths.steps; ++k, a += a_step) {
    const uint8_t* const b = of.b + of.depths.offsets[k];
    _tile_loadd(4, a, a_row);
    _tile_loadd(6, b, four_step);
    _tile_dpbsud(0, 4, 6);
    if constexpr (kColumnPanels > 1) {
      _tile_loadd(7, b + of.b_panel, four_step);
      _tile_dpbsud(1, 4, 7);
    }
    if constexpr (kRowPanels > 1) {
      _tile_loadd(5, a + of.a_panel, a_row);
      _tile_dpbsud(2, 5, 6);
      if constexpr (kColumnPanels > 1) _tile_dpbsud(3, 5, 7);
    }
  }
  _tile_stored(0, sums(0, 0), sum_step);
  if constexpr (kColumnPanels > 1) _tile_stored(1, sums(0, 1), sum_step);
  if constexpr (kRowPanels > 1) _tile_stored(2, sums(1, 0), sum_step);
  if constexpr (kRowPanels > 1 && kColumnPanels > 1) _tile_stored(3, sums(1, 1), sum_step);
}

#define ANYDML_VNNI [[gnu::target("avx512vnni")]]

// As many rows of a panel from `first` on by one or two panels of columns.
template <int kRows, int kColumnPanels>
ANYDML_VNNI ANYDML_NOINLINE void add_vnni_rows(const TileOperands& of, const int8_t* a, int32_t* sums) {
  __m512i tile[kRows][kColumnPanels];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < kColumnPanels; ++c) {
      tile[r][c] =
          of.is_first ? _mm512_setzero_si512() : _mm512_loadu_si512(sums + r * of.stride + c * kTile);
    }
  }
  const int64_t row_bytes = of.depths.fours * 4;
  for (int64_t k = 0; k < of.depths.steps; ++k, a += of.depths.a_step()) {
    const uint8_t* b = of.b + of.depths.offsets[k];
    for (int64_t i = 0; i < row_bytes; i += 4, b += of.depths.four_step) {
      __m512i columns[kColumnPanels];
#pragma GCC unroll 2
      for (int c = 0; c < kColumnPanels; ++c) columns[c] = _mm512_loadu_si512(b + c * of.b_panel);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        int32_t four;
        std::memcpy(&four, a + r * row_bytes + i, sizeof(four));
        const __m512i row = _mm512_set1_epi32(four);
#pragma GCC unroll 2
        for (int c = 0; c < kColumnPanels; ++c) tile[r][c] = _mm512_dpbusd_epi32(tile[r][c], columns[c], row);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < kColumnPanels; ++c) _mm512_storeu_si512(sums + r * of.stride + c * kTile, tile[r][c]);
  }
}

// The first `rows` of a panel.
template <int kColumnPanels>
void add_vnni_tile(const TileOperands& of, const int8_t* a, int32_t* sums, int64_t rows) {
  const int64_t row_bytes = of.depths.fours * 4;
  int64_t r = 0;
  for (; rows - r > 4; r += 8) add_vnni_rows<8, kColumnPanels>(of, a + r * row_bytes, sums + r * of.stride);
  a += r * row_bytes;
  sums += r * of.stride;
  if (rows - r > 1) {
    add_vnni_rows<4, kColumnPanels>(of, a, sums);
  } else if (rows - r == 1) {
    add_vnni_rows<1, kColumnPanels>(of, a, sums);
  }
}

// One or two panels of columns by `rows` rows, which are panels, and after which sums have room for whole
// ones.
inline void add_tiles(const TileOperands& of, int64_t rows, bool are_two, bool use_amx) {
  const int8_t* a = of.a;
  int32_t* sums = of.sums;
  const int64_t at_once = use_amx ? 2 * kTile : kTile;
  for (int64_t r = 0; r < rows; r += at_once) {
    if (!use_amx) {
      const int64_t count = std::min(kTile, rows - r);
      are_two ? add_vnni_tile<2>(of, a, sums, count) : add_vnni_tile<1>(of, a, sums, count);
    } else if (rows - r > kTile) {
      are_two ? add_amx_tiles<2, 2>(of, a, sums) : add_amx_tiles<2, 1>(of, a, sums);
    } else {
      are_two ? add_amx_tiles<1, 2>(of, a, sums) : add_amx_tiles<1, 1>(of, a, sums);
    }
    a += at_once / kTile * of.a_panel;
    sums += at_once * of.stride;
  }
}

ANYDML_INLINE int32_t sum_of_lanes(__m512i lanes) {
  // GCC takes what extracts without masks for uninitialised.
  const __m256i eight = _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xff, lanes, 0),
                                         _mm512_maskz_extracti64x4_epi64(0xff, lanes, 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

// totals[r] += sum over k of a[r, k], of a panel.
ANYDML_VNNI ANYDML_NOINLINE inline void add_row_totals(const int8_t* a, int64_t depths, int32_t* totals) {
  const __m512i ones = _mm512_set1_epi8(1);
  for (int64_t r = 0; r < kTile; ++r) {
    __m512i sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < depths; ++k) {
      sum = _mm512_dpbusd_epi32(sum, ones, _mm512_loadu_si512(a + k * kTileBytes + r * kTileDepth));
    }
    totals[r] += sum_of_lanes(sum);
  }
}

// totals[c] += sum over k of b[k, c], of a panel.
ANYDML_VNNI ANYDML_NOINLINE inline void add_column_totals(const uint8_t* b, int64_t steps, int32_t* totals) {
  // Four chains, as each addition waits for the one before it.
  constexpr int64_t kChains = 4;
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums[kChains] = {_mm512_loadu_si512(totals)};
  int64_t k = 0;
  for (; k + kChains <= steps; k += kChains) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kChains; ++i) {
      sums[i] = _mm512_dpbusd_epi32(sums[i], _mm512_loadu_si512(b + (k + i) * kTileDepth), ones);
    }
  }
  for (; k < steps; ++k) {
    sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_loadu_si512(b + k * kTileDepth), ones);
  }
  const __m512i halves[2] = {_mm512_add_epi32(sums[0], sums[1]), _mm512_add_epi32(sums[2], sums[3])};
  _mm512_storeu_si512(totals, _mm512_add_epi32(halves[0], halves[1]));
}

// to[c][i] = rows[i][c], of 16 columns and 4 rows.
inline void interleave_four(const uint8_t* rows, int64_t step, uint8_t* to) {
  const auto row = [&](int64_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + i * step));
  };
  const __m128i low = _mm_unpacklo_epi8(row(0), row(1));
  const __m128i high = _mm_unpackhi_epi8(row(0), row(1));
  const __m128i low2 = _mm_unpacklo_epi8(row(2), row(3));
  const __m128i high2 = _mm_unpackhi_epi8(row(2), row(3));
  auto* const at = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(at, _mm_unpacklo_epi16(low, low2));
  _mm_storeu_si128(at + 1, _mm_unpackhi_epi16(low, low2));
  _mm_storeu_si128(at + 2, _mm_unpacklo_epi16(high, high2));
  _mm_storeu_si128(at + 3, _mm_unpackhi_epi16(high, high2));
}

// Lanes of 16 bytes as a matrix of 4 x 4, transposed; `step` bytes from vector to vector.
ANYDML_INLINE void transpose_sixteens(const __m512i (&rows)[4], void* to, int64_t step) {
  // GCC takes what shuffles do without masks for uninitialised.
  constexpr __mmask16 kAll = 0xffff;
  const __m512i even = _mm512_maskz_shuffle_i32x4(kAll, rows[0], rows[1], 0x88);
  const __m512i odd = _mm512_maskz_shuffle_i32x4(kAll, rows[0], rows[1], 0xdd);
  const __m512i even2 = _mm512_maskz_shuffle_i32x4(kAll, rows[2], rows[3], 0x88);
  const __m512i odd2 = _mm512_maskz_shuffle_i32x4(kAll, rows[2], rows[3], 0xdd);
  auto* const at = static_cast<std::byte*>(to);
  _mm512_storeu_si512(at, _mm512_maskz_shuffle_i32x4(kAll, even, even2, 0x88));
  _mm512_storeu_si512(at + step, _mm512_maskz_shuffle_i32x4(kAll, odd, odd2, 0x88));
  _mm512_storeu_si512(at + 2 * step, _mm512_maskz_shuffle_i32x4(kAll, even, even2, 0xdd));
  _mm512_storeu_si512(at + 3 * step, _mm512_maskz_shuffle_i32x4(kAll, odd, odd2, 0xdd));
}

// Likewise of 64 columns, for four panels: each 16 bytes of the rows' interleaved vectors belong to another
// one.
ANYDML_INLINE void interleave_four_vectors(const __m512i (&rows)[4], uint8_t* to, int64_t panel) {
  const __m512i low = _mm512_unpacklo_epi8(rows[0], rows[1]);
  const __m512i high = _mm512_unpackhi_epi8(rows[0], rows[1]);
  const __m512i low2 = _mm512_unpacklo_epi8(rows[2], rows[3]);
  const __m512i high2 = _mm512_unpackhi_epi8(rows[2], rows[3]);
  const __m512i columns[4] = {_mm512_unpacklo_epi16(low, low2), _mm512_unpackhi_epi16(low, low2),
                              _mm512_unpacklo_epi16(high, high2), _mm512_unpackhi_epi16(high, high2)};
  transpose_sixteens(columns, to, panel);
}
inline void interleave_four_by_64(const uint8_t* rows, int64_t step, uint8_t* to, int64_t panel) {
  const auto row = [&](int64_t i) { return _mm512_loadu_si512(rows + i * step); };
  const __m512i four[4] = {row(0), row(1), row(2), row(3)};
  interleave_four_vectors(four, to, panel);
}

}  // namespace
ANYDML_ISA_END
#endif
