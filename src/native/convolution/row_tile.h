// The micro-kernel of depthwise convolutions whose rows are read where they lie: vectors of neighbouring
// places, of which each tap is an unaligned load, masked where lanes lie on padding.
//
// Every result is one chain of fused multiply-adds, as in window_tile.h; padding is no part of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "dense/tile.h"
#include "nhwc/fused_activation.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/half.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Whether rows of such elements are read so: there are masked loads of them.
template <class Item>
inline constexpr bool kReadsRows =
#if defined(ANYDML_ISA_AVX512)
    true;
#elif defined(ANYDML_ISA_AVX2)
    sizeof(Item) == 4;
#else
    false;
#endif

inline constexpr int64_t kMostRowStride = 2;

#if defined(ANYDML_ISA_AVX512)
using LaneMask = __mmask16;
constexpr LaneMask lanes_between(int64_t begin, int64_t end) {
  const auto below = [](int64_t lane) { return (1U << std::clamp<int64_t>(lane, 0, kColumnLanes)) - 1; };
  return static_cast<LaneMask>(below(end) & ~below(begin));
}
#else
using LaneMask = std::array<int32_t, kColumnLanes>;
constexpr LaneMask lanes_between(int64_t begin, int64_t end) {
  LaneMask mask{};
  for (int64_t i = 0; i < kColumnLanes; ++i) mask[static_cast<size_t>(i)] = begin <= i && i < end ? -1 : 0;
  return mask;
}
#endif

// Of a tap and a vector of places: those places for which it lies on elements, and these elements, of as many
// vectors as the stride spreads them over.
struct TapLanes {
  LaneMask places;
  std::array<LaneMask, kMostRowStride> elements;

  // Of places from `begin` on to before `end`.
  static constexpr TapLanes between(int64_t begin, int64_t end, int64_t stride) {
    TapLanes found{lanes_between(begin, end), {}};
    for (size_t i = 0; i < found.elements.size(); ++i) {
      const int64_t before = static_cast<int64_t>(i) * kColumnLanes;
      found.elements[i] = lanes_between(begin * stride - before, (end - 1) * stride + 1 - before);
    }
    return found;
  }
};

// Rows of places, whose sums hide each other's latency, in bytes from those of the tile: below each other, or
// the same of groups that follow each other; and the slabs and rows of taps that lie on elements.
struct RowChains {
  int64_t from;
  int64_t to;
  int64_t weights;
  int64_t slabs;
  int64_t rows;
};

// Steps are in bytes.
struct RowTile {
  const std::byte* from;
  int64_t chain_step;  // from chain to chain
  std::array<int64_t, 3> tap_steps;
  const std::byte* weights;
  std::array<int64_t, 3> weight_steps;
  int64_t chain_weights;  // where chains have weights of their own
  int64_t columns;        // taps of a row
  const float* biases;
  int64_t chain_biases;
  std::byte* to;
  int64_t result_step;    // from chain to chain
  int64_t vectors;        // that follow each other along the row and have the same lanes
  const TapLanes* lanes;  // of each tap of a row
  LaneMask results;
  const Fused* fused;
};

inline constexpr int64_t kChainsOfRows = 4;  // or of groups
using MultiplyRows = void (*)(const RowTile&, const RowChains* chains, int64_t count);

#if defined(ANYDML_ISA_AVX512) || defined(ANYDML_ISA_AVX2)
// Every kStride-th element; others of the range are read too.
template <class Item, int kStride>
ANYDML_INLINE Columns load_places(const std::byte* from, const TapLanes& lanes) {
#if defined(ANYDML_ISA_AVX512)
  const LaneMask low = lanes.elements[0];
  const LaneMask high = lanes.elements[1];
  if constexpr (sizeof(Item) == 4) {
    const __m512 first = _mm512_maskz_loadu_ps(low, from);
    if constexpr (kStride == 1) return (Columns)first;
    const __m512 second = _mm512_maskz_loadu_ps(high, from + sizeof(first));
    return __builtin_shufflevector((Columns)first, (Columns)second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22,
                                   24, 26, 28, 30);
  } else {
    if constexpr (kStride == 1)
      return (Columns)_mm512_maskz_cvtph_ps(kAllLanes, _mm256_maskz_loadu_epi16(low, from));
    const auto both = static_cast<__mmask32>(low | static_cast<uint32_t>(high) << kColumnLanes);
    const __m256i halves = _mm512_maskz_cvtepi32_epi16(kAllLanes, _mm512_maskz_loadu_epi16(both, from));
    return (Columns)_mm512_maskz_cvtph_ps(kAllLanes, halves);
  }
#else
  const auto some = [&](size_t i) {
    const auto* const at = reinterpret_cast<const float*>(from + i * sizeof(Columns));
    return (Columns)_mm256_maskload_ps(at, bits_as<__m256i>(lanes.elements[i]));
  };
  if constexpr (kStride == 1) return some(0);
  return __builtin_shufflevector(some(0), some(1), 0, 2, 4, 6, 8, 10, 12, 14);
#endif
}

// x * y + z where the tap lies on an element y.
template <class Item, int kStride>
ANYDML_INLINE Columns add_where(const TapLanes& lanes, Columns x, const std::byte* y, Columns z) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(Item) == 4 && kStride == 1) {
    // One instruction, which reads no more than these elements: compilers make two of the intrinsics.
    asm("vfmadd231ps %2, %1, %0%{%3%}"
        : "+v"(z)
        : "v"(x), "m"(*reinterpret_cast<const char(*)[sizeof(Columns)]>(y)), "Yk"(lanes.places));
    return z;
  }
  return (Columns)_mm512_mask3_fmadd_ps((__m512)x, (__m512)load_places<Item, kStride>(y, lanes), (__m512)z,
                                        lanes.places);
#else
  const Columns sum = multiply_add(x, load_places<Item, kStride>(y, lanes), z);
  return (Columns)_mm256_blendv_ps((__m256)z, (__m256)sum, bits_as<__m256>(lanes.places));
#endif
}

template <class Item>
ANYDML_INLINE void store_where(const LaneMask& mask, std::byte* to, Columns y) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(Item) == 4) {
    _mm512_mask_storeu_ps(to, mask, (__m512)y);
  } else {
    const __m256i halves = _mm512_maskz_cvtps_ph(kAllLanes, (__m512)y, _MM_FROUND_TO_NEAREST_INT);
    _mm256_mask_storeu_epi16(to, mask, halves);
  }
#else
  _mm256_maskstore_ps(reinterpret_cast<float*>(to), bits_as<__m256i>(mask), (__m256)y);
#endif
}

// y[i][p] = bias + sum over taps t that lie on elements of w[t] * x[i][p * kStride + t], of a vector of
// places of each chain, and of those that follow it. kApart: each chain has weights and a bias of its own.
template <class Item, int kStride, bool kApart, bool kMasked>
ANYDML_NOINLINE void multiply_rows(const RowTile& tile, const RowChains* chains, int64_t count) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(Item));
  constexpr int kChains = kChainsOfRows;
  const int64_t apart = tile.chain_weights;
  const auto [slab_step, row_step, column_step] = tile.tap_steps;
  const int64_t weight_step = tile.weight_steps[2];
  const int64_t chain_step = tile.chain_step;
  const int64_t columns = tile.columns;
  const int64_t vectors = tile.vectors;
  const Fused& fused = *tile.fused;
  for (const RowChains* const end = chains + count; chains < end; ++chains) {
    const std::byte* from = tile.from + chains->from;
    std::byte* to = tile.to + chains->to;
    for (int64_t vector = 0; vector < vectors; ++vector) {
      Columns sums[kChains];
#pragma GCC unroll 4
      for (int i = 0; i < kChains; ++i) sums[i] = tile.biases[kApart ? i * tile.chain_biases : 0] - Columns{};
      for (int64_t z = 0; z < chains->slabs; ++z) {
        const std::byte* line = from + z * slab_step;
        const std::byte* weights = tile.weights + chains->weights + z * tile.weight_steps[0];
        for (int64_t y = 0; y < chains->rows; ++y, line += row_step, weights += tile.weight_steps[1]) {
          const std::byte* at = line;
          const std::byte* weight = weights;
          const TapLanes* lanes = tile.lanes;
          const auto add = [&] {
            Columns w = load<float>(weight) - Columns{};
#pragma GCC unroll 4
            for (int i = 0; i < kChains; ++i) {
              const std::byte* const places = at + i * chain_step;
              if (kApart) w = load<float>(weight + i * apart) - Columns{};
              sums[i] = kMasked ? add_where<Item, kStride>(*lanes, w, places, sums[i])
                                : multiply_add(w, load_numbers<Item, float, Columns>(places), sums[i]);
            }
            at += column_step;
            weight += weight_step;
            ++lanes;
          };
          // Three at a time, as most windows have as many or a few more: a branch less to mispredict.
          int64_t x = 0;
          for (; x + 3 <= columns; x += 3) {
            add();
            add();
            add();
          }
          for (; x < columns; ++x) add();
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < kChains; ++i) {
        // A sum of zeros is 0, whatever their signs.
        const Columns y = fused.applied<float>(sums[i] + 0.0f);
        store_where<Item>(tile.results, to + i * tile.result_step, y);
      }
      from += kColumnLanes * kStride * kItem;
      to += kColumnLanes * kItem;
    }
  }
}

// By the stride, less 1, whether chains are rows of one group, and whether there are masks: where these take
// no time, they are there.
template <class Item>
inline constexpr bool kMasks = sizeof(Item) != 4;
template <class Item>
inline constexpr MultiplyRows kMultiplyRows[kMostRowStride][2][2]{
    {{multiply_rows<Item, 1, true, kMasks<Item>>, multiply_rows<Item, 1, true, true>},
     {multiply_rows<Item, 1, false, kMasks<Item>>, multiply_rows<Item, 1, false, true>}},
    {{multiply_rows<Item, 2, true, true>, multiply_rows<Item, 2, true, true>},
     {multiply_rows<Item, 2, false, true>, multiply_rows<Item, 2, false, true>}}};
#else
template <class Item>
inline constexpr MultiplyRows kMultiplyRows[kMostRowStride][2][2]{};
#endif

ANYDML_ISA_END
