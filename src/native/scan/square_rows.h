// Prefix scans of short rows of halves by transposed squares: 32 rows at a time, of which the first 8 and the
// last 8 elements are transposed, so that a register holds one element of each row, and transposed back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "simd/half.h"
#include "simd/squares.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_ISA_AVX512)

// On one thread of a Xeon with AVX-512, 2026-11-26, 1 MiB in the caches: sums of rows of 8, 11 and 15 take
// 103, 139 and 114 us, and took 134, 231 and 226 lane by lane (lane_rows.h).
template <class T, class Operation>
class SquareRows {
 public:
  static constexpr int64_t kRows = 32;
  static constexpr bool has(int64_t size) {
    return std::is_same_v<T, Half> && size >= kColumns && size < 2 * kColumns;
  }

  // Scans a multiple of kRows rows. `in` and `out` may be the same.
  ANYDML_NOINLINE static void scan(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step,
                                   int64_t rows, int64_t size, bool exclusive, bool down,
                                   StagedWriter& stage) {
    const int64_t last = size - kColumns;  // the first one of the last columns
    const int64_t bytes = kRows * size * static_cast<int64_t>(sizeof(uint16_t));
    alignas(64) std::byte tile[2 * kColumns * kLine];
    for (; rows > 0; rows -= kRows, in += kRows * in_step, out += kRows * out_step) {
      for (int64_t line = 0; line < bytes; line += kLine) {
        prefetch_line(in + kPrefetchDistance + line);
        stage.send_line();
      }
      load_columns(in, in_step, tile);
      if (last > 0) load_columns(in + last * kSize, in_step, tile + last * kLine);
      scan_columns(tile, size, exclusive, down);
      store_columns(tile, out, out_step);
      if (last > 0) store_columns(tile + last * kLine, out + last * kSize, out_step);
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(uint16_t);
  static constexpr int64_t kColumns = kSquareBytes / kSize;
  static constexpr int64_t kSquares = kRows / kColumns;
  using Row = SquareRow<uint16_t, kSquares>;
  using V = Vector<float, 16>;
  static constexpr __mmask16 kAll = 0xffff;
  static constexpr __mmask8 kAllQuarters = 0xff;

  ANYDML_INLINE static void load_columns(const std::byte* from, int64_t step, std::byte* tile) {
    Row columns[kColumns];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kColumns; ++i) {
      columns[i] = load_squares<uint16_t, kSquares>(from + i * step, kColumns * step);
    }
    transpose<uint16_t, kSquares>(columns);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kColumns; ++i) store_vector(tile + i * kLine, columns[i]);
  }

  ANYDML_INLINE static void store_columns(const std::byte* tile, std::byte* to, int64_t step) {
    Row rows[kColumns];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kColumns; ++i) rows[i] = load_vector<Row>(tile + i * kLine);
    transpose<uint16_t, kSquares>(rows);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kColumns; ++i)
      store_squares<uint16_t, kSquares>(rows[i], to + i * step, kColumns * step);
  }

  ANYDML_INLINE static void scan_columns(std::byte* tile, int64_t size, bool exclusive, bool down) {
    const int64_t step = down ? -kLine : kLine;
    std::byte* column = down ? tile + (size - 1) * kLine : tile;
    V accumulators[2];
    for (V& each : accumulators) each = V{} + static_cast<float>(Operation::kIdentity);
    for (int64_t k = 0; k < size; ++k, column += step) {
      __m256i halves[2];
#pragma GCC unroll 2
      for (int64_t h = 0; h < 2; ++h) {
        const V x =
            (V)_mm512_maskz_cvtph_ps(kAll, (__m256i)load_vector<Vector<uint16_t>>(column + h * kLine / 2));
        const V next = Operation::combine(accumulators[h], x);
        halves[h] = _mm512_maskz_cvtps_ph(kAll, (__m512)(exclusive ? accumulators[h] : next),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        accumulators[h] = next;
      }
      store_vector(column,
                   _mm512_maskz_inserti64x4(kAllQuarters, _mm512_castsi256_si512(halves[0]), halves[1], 1));
    }
  }
};

#endif  // ANYDML_ISA_AVX512

ANYDML_ISA_END
