// The lanes that reductions compute on. They do not depend on each other, and so are as many as a register
// holds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "simd/bits_as.h"
#include "simd/half.h"
#include "simd/vector.h"
#include "stores/prefetch.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_ISA_AVX512)
inline constexpr int kWideBytes = 64;
inline constexpr uint8_t kAllDoubles = 0xff;
#elif defined(ANYDML_VECTORS)
inline constexpr int kWideBytes = kVectorBytes;
#else
inline constexpr int kWideBytes = 0;
#endif
template <class A>
inline constexpr int kWideLanes = kWideBytes == 0 ? 1 : kWideBytes / static_cast<int>(sizeof(A));
template <class A>
using Wide = Lanes<A, kWideLanes<A>>;

// Lanes of 16 bytes, for rows of no more elements: registers that are wider cross a line of the caches with
// most of these.
template <class A>
using NarrowLanes = Lanes<A, std::min(kWideLanes<A>, 16 / static_cast<int>(sizeof(A)))>;

template <class A>
using SignedOf = std::conditional_t<
    sizeof(A) == 1, int8_t,
    std::conditional_t<sizeof(A) == 2, int16_t, std::conditional_t<sizeof(A) == 4, int32_t, int64_t>>>;

template <int kBytes>
using UnsignedOf = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

template <class V>
ANYDML_INLINE V load_lanes_at(const std::byte* from) {
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <class V>
ANYDML_INLINE void store_lanes_at(std::byte* to, V v) {
  std::memcpy(to, &v, sizeof(V));
}

// As many elements of T as there are numbers of A in a register, widened.
template <class T, class A>
ANYDML_INLINE Wide<A> load_wide_lanes(const std::byte* from) {
  if constexpr (std::is_same_v<T, A>) return load_lanes_at<Wide<A>>(from);
#if defined(ANYDML_ISA_AVX512)
  if constexpr (std::is_same_v<T, float>) {
    return (Wide<A>)_mm512_maskz_cvtps_pd(kAllDoubles, (__m256)load_vector<Vector<float>>(from));
  } else if constexpr (std::is_same_v<T, Half> && std::is_same_v<A, float>) {
    return (Wide<A>)_mm512_maskz_cvtph_ps(kAllLanes, (__m256i)load_vector<Vector<uint16_t>>(from));
  } else if constexpr (std::is_same_v<T, Half>) {
    const __m256 singles = _mm256_cvtph_ps((__m128i)load_vector<Vector<uint16_t, 8>>(from));
    return (Wide<A>)_mm512_maskz_cvtps_pd(kAllDoubles, singles);
  }
#else
  if constexpr (!std::is_same_v<T, A>) return load_lanes<T, A>(from);
#endif
}

#if defined(ANYDML_ISA_AVX512)
// The first bytes of a register, and those of `others` behind them.
template <class V>
ANYDML_INLINE V load_bytes(const std::byte* from, int64_t count, V others) {
  const uint64_t mask = ~(~uint64_t{0} << count);
  if constexpr (sizeof(V) == 64) {
    return (V)_mm512_mask_loadu_epi8((__m512i)others, mask, from);
  } else if constexpr (sizeof(V) == 32) {
    return (V)_mm256_mask_loadu_epi8((__m256i)others, static_cast<uint32_t>(mask), from);
  } else {
    return (V)_mm_mask_loadu_epi8((__m128i)others, static_cast<uint16_t>(mask), from);
  }
}
#endif

#if defined(ANYDML_VECTORS)
// The lower or upper half of a vector.
template <int kHalf, class V>
ANYDML_INLINE auto half_of(V v) {
  constexpr int kLanes = sizeof(V) / sizeof(v[0]) / 2;
  return [&]<int... kLane>(std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(v, v, (kLane + kHalf * kLanes)...);
  }(std::make_integer_sequence<int, kLanes>{});
}
#endif

#if defined(ANYDML_VECTORS)
// Of two vectors of blocks of so many bytes the lower or upper halves of all blocks, one behind the other.
template <int kHalf, int kBlockBytes>
struct HalfBlocks {
  template <class V>
  ANYDML_INLINE V operator()(V a, V b) const {
    // The widest elements that halves are made of, as shuffles of those are fastest.
    constexpr int kBytes = kBlockBytes / 2 < 8 ? kBlockBytes / 2 : 8;
    constexpr int kHalfLanes = kBlockBytes / 2 / kBytes;
    using Bits = Lanes<UnsignedOf<kBytes>, static_cast<int>(sizeof(V)) / kBytes>;
    return bits_as<V>(shuffled(bits_as<Bits>(a), bits_as<Bits>(b), [](int lane) {
      return (2 * (lane / kHalfLanes) + kHalf) * kHalfLanes + lane % kHalfLanes;
    }));
  }
};
#endif

// Whether any lane has one of these bits.
template <class V>
ANYDML_INLINE bool has_bits(V v, uint64_t bits) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(V) == 64) {
    return _mm512_test_epi64_mask((__m512i)v, _mm512_set1_epi64(static_cast<int64_t>(bits))) != 0;
  }
#endif
  return !all_of<uint64_t>((v & bits) == 0);
}

// The larger one in each lane; y where one of them is NaN.
template <class A, class V>
ANYDML_INLINE V larger(V x, V y) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(V) == 64) {
    const auto a = (__m512i)x;
    const auto b = (__m512i)y;
    if constexpr (std::is_same_v<A, int8_t>) return (V)_mm512_max_epi8(a, b);
    if constexpr (std::is_same_v<A, int16_t>) return (V)_mm512_max_epi16(a, b);
    if constexpr (std::is_same_v<A, int32_t>) return (V)_mm512_maskz_max_epi32(kAllLanes, a, b);
    if constexpr (std::is_same_v<A, int64_t>) return (V)_mm512_maskz_max_epi64(kAllDoubles, a, b);
  }
#endif
#if defined(ANYDML_ISA_AVX2)
  if constexpr (sizeof(V) == kVectorBytes) {
    if constexpr (std::is_same_v<A, int8_t>) return (V)_mm256_max_epi8((__m256i)x, (__m256i)y);
    if constexpr (std::is_same_v<A, int16_t>) return (V)_mm256_max_epi16((__m256i)x, (__m256i)y);
    if constexpr (std::is_same_v<A, int32_t>) return (V)_mm256_max_epi32((__m256i)x, (__m256i)y);
  }
#endif
  if constexpr (std::is_same_v<A, float>) return lane_max<float>(x, y);
  return x > y ? x : y;
}

// Keeps the larger one in each lane, and the index of where it was found first.
template <class A, class V, class I>
ANYDML_INLINE void take_larger(V x, I row, V& best, I& index) {
#if defined(ANYDML_ISA_AVX512)
  if constexpr (sizeof(V) == kWideBytes) {
    const auto a = (__m512i)x;
    const auto b = (__m512i)best;
    const auto i = (__m512i)index;
    const auto r = (__m512i)row;
    if constexpr (std::is_same_v<A, float>) {
      const __mmask16 better = _mm512_cmp_ps_mask((__m512)x, (__m512)best, _CMP_GT_OQ);
      best = (V)_mm512_mask_mov_epi32(b, better, a);
      index = (I)_mm512_mask_mov_epi32(i, better, r);
    } else if constexpr (sizeof(A) == 1) {
      index = (I)_mm512_mask_mov_epi8(i, _mm512_cmpgt_epi8_mask(a, b), r);
      best = larger<A>(x, best);
    } else if constexpr (sizeof(A) == 2) {
      index = (I)_mm512_mask_mov_epi16(i, _mm512_cmpgt_epi16_mask(a, b), r);
      best = larger<A>(x, best);
    } else if constexpr (sizeof(A) == 4) {
      index = (I)_mm512_mask_mov_epi32(i, _mm512_cmpgt_epi32_mask(a, b), r);
      best = larger<A>(x, best);
    } else {
      index = (I)_mm512_mask_mov_epi64(i, _mm512_cmpgt_epi64_mask(a, b), r);
      best = larger<A>(x, best);
    }
  } else
#endif
  {
    const auto better = x > best;
    index = better ? row : index;
    best = better ? x : best;
  }
}

// Keeps the larger one in each lane, and of equal ones the lower number.
template <class A, class V, class I>
ANYDML_INLINE void take_first(V x, I number, V& best, I& index) {
#if defined(ANYDML_VECTORS)
  const auto better = (x > best) | ((x == best) & (number < index));
#else
  const bool better = (x > best) | ((x == best) & (number < index));
#endif
  index = better ? number : index;
  best = better ? x : best;
}

// Exclusive or with the bits of a number, in each lane.
template <class A, class V>
ANYDML_INLINE V flipped(V x, V mask) {
  if constexpr (sizeof(V) == sizeof(A)) {
    using Bits = SignedOf<A>;
    return bits_as<A>(static_cast<Bits>(bits_as<Bits>(x) ^ bits_as<Bits>(mask)));
  } else {
    using Bits = Lanes<uint64_t, static_cast<int>(sizeof(V) / sizeof(uint64_t))>;
    return bits_as<V>(bits_as<Bits>(x) ^ bits_as<Bits>(mask));
  }
}

ANYDML_ISA_END
