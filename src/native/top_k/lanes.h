// Comparisons of vectors of keys, counted lane by lane.
#pragma once

#include "platform/isa.h"
#include "simd/vector.h"

#if defined(ANYDML_VECTORS)

ANYDML_ISA_BEGIN
namespace {

#if defined(ANYDML_ISA_AVX512)
constexpr int kLaneBytes = 64;
#else
constexpr int kLaneBytes = kVectorBytes;
#endif

template <class Key>
using KeyLanes = Vector<Key, kLaneBytes / static_cast<int>(sizeof(Key))>;

// Adds 1 in each lane in which the first key is larger than the second one, or at least equal to it.
template <class V>
ANYDML_INLINE void add_where_above(V& rank, V first, V second) {
#if defined(ANYDML_ISA_AVX512)
  // A comparison makes a mask: to add under it saves a step.
  const auto a = (__m512i)first;
  const auto b = (__m512i)second;
  const auto from = (__m512i)rank;
  if constexpr (sizeof(first[0]) == 4) {
    rank = (V)_mm512_mask_add_epi32(from, _mm512_cmpgt_epi32_mask(a, b), from, _mm512_set1_epi32(1));
  } else {
    rank = (V)_mm512_mask_add_epi64(from, _mm512_cmpgt_epi64_mask(a, b), from, _mm512_set1_epi64(1));
  }
#else
  rank -= (V)(first > second);
#endif
}
template <class V>
ANYDML_INLINE void add_where_not_below(V& rank, V first, V second) {
#if defined(ANYDML_ISA_AVX512)
  const auto a = (__m512i)first;
  const auto b = (__m512i)second;
  const auto from = (__m512i)rank;
  if constexpr (sizeof(first[0]) == 4) {
    rank = (V)_mm512_mask_add_epi32(from, _mm512_cmpge_epi32_mask(a, b), from, _mm512_set1_epi32(1));
  } else {
    rank = (V)_mm512_mask_add_epi64(from, _mm512_cmpge_epi64_mask(a, b), from, _mm512_set1_epi64(1));
  }
#else
  rank -= (V)(first >= second);
#endif
}

}  // namespace
ANYDML_ISA_END

#endif
