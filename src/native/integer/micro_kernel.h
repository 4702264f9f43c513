// Micro-kernels: a tile of sums in registers, to which panels that are packed for it are multiplied.
//
// Bytes, less their zero points, are packed as integers of 16 bits, two products for each sum beside each
// other, which every instruction set multiplies and adds in one or two instructions. All other types are
// packed as integers of 64 bits, and wrap. Integers have the same sums in any order, so that tiles have the
// size that suits an instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

// Four or more sums of 32 bits.
#if defined(ANYDML_ISA_AVX512)
using Sums = __m512i;
ANYDML_INLINE Sums multiplied(Sums sums, Sums a, Sums b) {
  return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b));
}
ANYDML_INLINE Sums repeated(int32_t pair) { return _mm512_set1_epi32(pair); }
constexpr int kTileRows = 12;
#elif defined(ANYDML_ISA_AVX2)
using Sums = __m256i;
ANYDML_INLINE Sums multiplied(Sums sums, Sums a, Sums b) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
}
ANYDML_INLINE Sums repeated(int32_t pair) { return _mm256_set1_epi32(pair); }
constexpr int kTileRows = 6;
#elif defined(__SSE2__)
using Sums = __m128i;
ANYDML_INLINE Sums multiplied(Sums sums, Sums a, Sums b) { return _mm_add_epi32(sums, _mm_madd_epi16(a, b)); }
ANYDML_INLINE Sums repeated(int32_t pair) { return _mm_set1_epi32(pair); }
constexpr int kTileRows = 6;
#elif defined(__aarch64__) && defined(ANYDML_VECTORS)
using Sums = int32x4_t;
ANYDML_INLINE Sums multiplied(Sums sums, Sums a, Sums b) {
  const int16x8_t left = vreinterpretq_s16_s32(a);
  const int16x8_t right = vreinterpretq_s16_s32(b);
  const int32x4_t low = vmull_s16(vget_low_s16(left), vget_low_s16(right));
  return vaddq_s32(sums, vpaddq_s32(low, vmull_high_s16(left, right)));
}
ANYDML_INLINE Sums repeated(int32_t pair) { return vdupq_n_s32(pair); }
constexpr int kTileRows = 6;
#else
struct Sums {
  int32_t lanes[4];
};
ANYDML_INLINE Sums multiplied(Sums sums, Sums a, Sums b) {
  for (int i = 0; i < 4; ++i) {
    int16_t left[2], right[2];
    std::memcpy(left, &a.lanes[i], sizeof(left));
    std::memcpy(right, &b.lanes[i], sizeof(right));
    sums.lanes[i] += left[0] * right[0] + left[1] * right[1];
  }
  return sums;
}
ANYDML_INLINE Sums repeated(int32_t pair) { return {{pair, pair, pair, pair}}; }
constexpr int kTileRows = 4;
#endif
constexpr int kTileVectors = 2;
constexpr int kLanesOfSums = static_cast<int>(sizeof(Sums) / sizeof(int32_t));

// How elements are packed, and what sums are held in.
struct Bytes {
  using Cell = int16_t;
  using Sum = int32_t;
  static constexpr int kDepth = 2;  // products that lie beside each other in a panel
  static constexpr int kRows = kTileRows;
  static constexpr int kColumns = kTileVectors * kLanesOfSums;
};
struct Words {
  using Cell = int64_t;
  using Sum = int64_t;
  static constexpr int kDepth = 1;
  static constexpr int kRows = 4;
  static constexpr int kColumns = 16;
};

// sums[r, c] += sum over k of a[k, r] * b[k, c], for the first kCount rows of a panel
template <int kCount>
ANYDML_NOINLINE void add_tile(Bytes, const int16_t* a, const int16_t* b, int64_t steps, int32_t* sums,
                              int64_t stride) {
  Sums tile[kCount][kTileVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) {
      std::memcpy(&tile[r][v], sums + r * stride + v * kLanesOfSums, sizeof(Sums));
    }
  }
  for (int64_t k = 0; k < steps; ++k) {
    Sums columns[kTileVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) {
      std::memcpy(&columns[v], b + (k * kTileVectors + v) * 2 * kLanesOfSums, sizeof(Sums));
    }
#pragma GCC unroll 16
    for (int r = 0; r < kCount; ++r) {
      int32_t pair;
      std::memcpy(&pair, a + (k * kTileRows + r) * 2, sizeof(pair));
      const Sums row = repeated(pair);
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) tile[r][v] = multiplied(tile[r][v], row, columns[v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kTileVectors; ++v) {
      std::memcpy(sums + r * stride + v * kLanesOfSums, &tile[r][v], sizeof(Sums));
    }
  }
}

template <int kCount>
ANYDML_NOINLINE void add_tile(Words, const int64_t* a, const int64_t* b, int64_t steps, int64_t* sums,
                              int64_t stride) {
  uint64_t tile[kCount][Words::kColumns] = {};
  for (int64_t k = 0; k < steps; ++k) {
#pragma GCC unroll 4
    for (int r = 0; r < kCount; ++r) {
      const auto row = static_cast<uint64_t>(a[k * Words::kRows + r]);
      for (int c = 0; c < Words::kColumns; ++c) {
        tile[r][c] += row * static_cast<uint64_t>(b[k * Words::kColumns + c]);
      }
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int c = 0; c < Words::kColumns; ++c) {
      int64_t& sum = sums[r * stride + c];
      sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + tile[r][c]);
    }
  }
}

// The sum of the products of two lines.
inline int32_t dot(Bytes, const int16_t* a, const int16_t* b, int64_t count) {
  int32_t sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}
inline int64_t dot(Words, const int64_t* a, const int64_t* b, int64_t count) {
  uint64_t sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += static_cast<uint64_t>(a[k]) * static_cast<uint64_t>(b[k]);
  return static_cast<int64_t>(sum);
}

// A tile of a panel that has only `rows` of them.
template <class Kind>
void add_tile(const typename Kind::Cell* a, const typename Kind::Cell* b, int64_t steps, int64_t rows,
              typename Kind::Sum* sums, int64_t stride) {
  if (rows == 1) return add_tile<1>(Kind{}, a, b, steps, sums, stride);
  if (rows <= Kind::kRows / 3) return add_tile<Kind::kRows / 3>(Kind{}, a, b, steps, sums, stride);
  if (rows <= 2 * Kind::kRows / 3) return add_tile<2 * Kind::kRows / 3>(Kind{}, a, b, steps, sums, stride);
  add_tile<Kind::kRows>(Kind{}, a, b, steps, sums, stride);
}

}  // namespace
ANYDML_ISA_END
