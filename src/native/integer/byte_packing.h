// Matrices of bytes whose rows are runs, packed for the micro-kernels of byte_tiles.h by whole vectors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "integer/byte_tiles.h"
#include "integer/tuning.h"
#include "platform/isa.h"

#if defined(ANYDML_BYTE_TILES)

ANYDML_ISA_BEGIN
namespace {

// The first lanes of a vector, of which `count` are left.
ANYDML_INLINE __mmask64 first_lanes(int64_t count) {
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << std::max<int64_t>(count, 0)) - 1;
}

// Of a run: from[i] ^ flips[i] in those lanes, and zeros in all others, which are not read.
ANYDML_INLINE __m512i flipped_run(const std::byte* from, __mmask64 lanes, __m512i flips) {
  return _mm512_xor_si512(_mm512_maskz_loadu_epi8(lanes, from), _mm512_maskz_mov_epi8(lanes, flips));
}

// Rows of A as panels, and totals[r] += the sum of what is packed of a row.
ANYDML_VNNI ANYDML_NOINLINE inline void pack_row_runs(const std::byte* a, int64_t row_step, int64_t rows,
                                                      int64_t count, int64_t flip, int8_t* panels,
                                                      int32_t* totals) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  const __m512i ones = _mm512_set1_epi8(1);
  const int64_t steps = divided_up(count, kTileDepth);
  for (int64_t r = 0; r < padded(rows, kTile); ++r) {
    int8_t* to = panels + r / kTile * steps * kTileBytes + r % kTile * kTileDepth;
    if (r >= rows) {
      for (int64_t k = 0; k < steps; ++k) _mm512_storeu_si512(to + k * kTileBytes, _mm512_setzero_si512());
      continue;
    }
    __m512i sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < count; k += kTileDepth, to += kTileBytes) {
      const __m512i cells = flipped_run(a + r * row_step + k, first_lanes(count - k), flips);
      _mm512_storeu_si512(to, cells);
      sum = _mm512_dpbusd_epi32(sum, ones, cells);
    }
    totals[r] += sum_of_lanes(sum);
  }
}

// Columns of B as panels of kTile, from rows of them: four rows at a time become the cells of one step.
ANYDML_NOINLINE inline void pack_column_runs(const std::byte* b, int64_t row_step, int64_t columns,
                                             int64_t count, int64_t flip, uint8_t* panels) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  const int64_t panel = divided_up(count, 4) * kTileDepth;
  for (int64_t c = 0; c < columns; c += 64, panels += 4 * panel) {
    const __mmask64 lanes = first_lanes(columns - c);
    const int64_t whole = std::min<int64_t>(divided_up(columns - c, kTile), 4);
    uint8_t* to = panels;
    for (int64_t k = 0; k < count; k += 4, to += kTileDepth) {
      const auto row = [&](int64_t i) {
        return k + i < count ? flipped_run(b + (k + i) * row_step + c, lanes, flips) : _mm512_setzero_si512();
      };
      const __m512i rows[4] = {row(0), row(1), row(2), row(3)};
      if (whole == 4) {
        interleave_four_vectors(rows, to, panel);
      } else {
        uint8_t four[4 * kTileDepth];
        interleave_four_vectors(rows, four, kTileDepth);
        for (int64_t p = 0; p < whole; ++p)
          _mm512_storeu_si512(to + p * panel, _mm512_loadu_si512(four + p * kTileDepth));
      }
    }
  }
}

}  // namespace
ANYDML_ISA_END
#endif
