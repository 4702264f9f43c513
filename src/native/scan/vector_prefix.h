// What vectorised scans along contiguous elements consist of, upwards and downwards: the order of traversal,
// loads of whole and partial cache lines, and the prefix scan within a vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// The order of traversal: offsets in bytes of the elements of a part of a row, whose lowest element is at 0.
template <class T, bool kDown>
struct IndexOrder {
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kPerLine = kLine / kSize;

  // The offset of the i-th traversed of `size` elements, or the lowest one of the `count` elements from it
  // on.
  static int64_t element(int64_t size, int64_t i, int64_t count = 1) {
    return kSize * (kDown ? size - i - count : i);
  }
  static const std::byte* prefetch_address(const std::byte* from) {
    return ANYDML_ISA::prefetch_address(from, kDown);
  }
  // The offset of the k-th traversed of the `count` equal parts of a line.
  static constexpr int64_t part(int k, int count) { return (kDown ? count - 1 - k : k) * (kLine / count); }
};

// The elements of a cache line in registers, in the order of traversal: as vectors of accumulators, or as
// scalars.
template <class T, class X, bool kDown>
struct Line {
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int kCount = kLine / kSize * sizeof(AccumulatorOf<T>) / sizeof(X);

  explicit Line(const std::byte* in) {
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) {
      const std::byte* const from = in + IndexOrder<T, kDown>::part(k, kCount);
      if constexpr (std::is_same_v<X, T>) {
        x[k] = load<T>(from);
      } else {
        x[k] = load_wide<T, AccumulatorOf<T>>(from);
      }
    }
  }

  X x[kCount];
};

// Calls body(line, at) for each whole line of the `size` elements at `in` from the i-th on, as long as it
// returns true, with the line's offset; returns the first element that is not done. Beside non-temporal
// stores, each line is loaded before the outputs of the one before it are stored (a software pipeline): where
// a store and a later load have the same offset in two pages, some processors let the load wait until the
// store is done.
template <class T, class X, bool kDown, bool kIsNonTemporal, class Body>
ANYDML_INLINE int64_t over_lines(const std::byte* in, int64_t size, int64_t i, const Body& body) {
  using Order = IndexOrder<T, kDown>;
  constexpr int64_t kPerLine = Order::kPerLine;
  if constexpr (!kIsNonTemporal) {
    for (; i + kPerLine <= size; i += kPerLine) {
      const int64_t at = Order::element(size, i, kPerLine);
      if (!body(Line<T, X, kDown>(in + at), at)) break;
    }
    return i;
  }
  if (i + kPerLine > size) return i;
  Line<T, X, kDown> next(in + Order::element(size, i, kPerLine));
  for (bool is_last = false; !is_last; i += kPerLine) {
    const auto line = next;
    is_last = i + 2 * kPerLine > size;
    if (!is_last) next = Line<T, X, kDown>(in + Order::element(size, i + kPerLine, kPerLine));
    if (!body(line, Order::element(size, i, kPerLine))) return i;
  }
  return i;
}

// The elements of a cache line that is not full, filled up with the identity. What is traversed before them
// may be read, as much as fills a granule.
template <class T, class Operation, bool kDown>
class PartialLine {
 public:
  PartialLine(const std::byte* in, int64_t count) {
    constexpr int64_t kSize = sizeof(T);
    std::byte one[kSize];
    narrow<T, AccumulatorOf<T>>(one, static_cast<AccumulatorOf<T>>(Operation::kIdentity));
    const auto identity = (Granule)(Vector<BitsOf<T>, kGranule / kSize>{} + load<BitsOf<T>>(one));
    const int64_t size = count * kSize;
#pragma GCC unroll 4
    for (int k = 0; k < kGranules; ++k) {
      const int64_t left = size - k * kGranule;
      Granule& granule = granules_[Order::part(k, kGranules) / kGranule];
      if (left >= kGranule) {
        granule = load_vector<Granule>(in + (kDown ? left - kGranule : k * kGranule));
      } else if (left <= 0) {
        granule = identity;
      } else if (kDown) {
        granule = ByteRealigner(left).of(identity, load_vector<Granule>(in));
      } else {
        granule = ByteRealigner(kGranule - left).of(load_vector<Granule>(in + size - kGranule), identity);
      }
    }
  }

  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(granules_); }
  // The k-th traversed of the granules, or of the vectors.
  ANYDML_INLINE Granule granule(int k) const { return granules_[Order::part(k, kGranules) / kGranule]; }
  ANYDML_INLINE Vector<AccumulatorOf<T>> vector(int k) const {
    if constexpr (std::is_same_v<T, AccumulatorOf<T>>) {
      return (Vector<T>)side_by_side<Vector<uint8_t>>(granules_ + Order::part(k, kGranules / 2) / kGranule);
    } else {
      return widen_row<T, Vector<AccumulatorOf<T>>>(granule(k));
    }
  }

 private:
  using Order = IndexOrder<T, kDown>;
  static constexpr int kGranules = kLine / kGranule;

  Granule granules_[kGranules];
};

// The prefix scan of a vector's lanes by shifts (Hillis and Steele),
//   p'(i) = p(i - d) o p(i)  for d = 1, 2, ...
template <class Accumulator, class Operation, bool kDown>
class VectorPrefix {
 public:
  using V = Vector<Accumulator>;
  static constexpr int kLanes = kVectorBytes / sizeof(Accumulator);

  // Scans each four lanes.
  ANYDML_INLINE static V scan_quads(V x) {
    x = combine_on_fma_port<Operation>(shifted<1>(x, kAll), x);
    if constexpr (kLanes <= 4) return combine_on_fma_port<Operation>(carried_over(x, kAll), x);
    return combine_on_fma_port<Operation>(shifted<2>(x, kAll), x);
  }
  // Scans all lanes.
  ANYDML_INLINE static V all(V x) {
    x = scan_quads(x);
    if constexpr (kLanes <= 4) return x;
    return combine_on_fma_port<Operation>(carried_over(x, kAll), x);
  }

  // Joins the first half, in the order of traversal, of one vector and the second half of the other.
  ANYDML_INLINE static V halves_of(V first, V second) { return halves_of(first, second, kAll); }
  // Broadcasts the last lane that is traversed of the first half, or of all.
  ANYDML_INLINE static V middle_of(V x) { return broadcast_lane<kLanes / 2 - 1>(x, kAll); }
  ANYDML_INLINE static V last_of(V x) { return broadcast_lane<kLanes - 1>(x, kAll); }
  // Shifts the lanes by one in the order of traversal, and takes the last lane of `before` in.
  ANYDML_INLINE static V shift_in(V before, V y) { return shift_in(before, y, kAll); }
  // The same across the first `count` of `y`, one vector behind the other.
  ANYDML_INLINE static void shift_in(V before, V* y, int count) {
#pragma GCC unroll 4
    for (int k = 0; k < count; ++k) {
      const V own = y[k];
      y[k] = shift_in(before, own);
      before = own;
    }
  }

 private:
  static constexpr auto kAll = std::make_integer_sequence<int, kLanes>{};

  // The lane that is traversed as the i-th, and the other way round.
  static constexpr int place(int i) { return kDown ? kLanes - 1 - i : i; }

  // Shifts within halves, as far as one instruction does, and takes the identity in. For sums that is 0,
  // which the byte shifts of x86 take in by themselves; compilers do not find them.
  template <int kDistance, int... kPlace>
  ANYDML_INLINE static V shifted(V x, std::integer_sequence<int, kPlace...>) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    if constexpr (std::is_same_v<Operation, Sum>) {
      constexpr int kBytes = kDistance * sizeof(Accumulator);
      const auto bits = (__m256i)x;
      return (V)(kDown ? _mm256_srli_si256(bits, kBytes) : _mm256_slli_si256(bits, kBytes));
    }
#endif
    constexpr auto from = [](int to) {
      const int i = place(to);
      return i % (kLanes / 2) < kDistance ? kLanes + to : place(i - kDistance);
    };
    return __builtin_shufflevector(x, broadcast(static_cast<Accumulator>(Operation::kIdentity)),
                                   from(kPlace)...);
  }
  // Broadcasts the first half's total to the lanes of the second half.
  template <int... kPlace>
  ANYDML_INLINE static V carried_over(V x, std::integer_sequence<int, kPlace...>) {
#if defined(ANYDML_ISA_AVX512)
    if constexpr (std::is_same_v<Operation, Sum>) {
      constexpr int kHalf = (1 << kLanes / 2) - 1;
      constexpr __mmask8 kSecond = kDown ? kHalf : kHalf << kLanes / 2;
      const auto bits = (__m256i)x;
      if constexpr (kLanes == 4) return (V)_mm256_maskz_permutex_epi64(kSecond, bits, kDown ? 0xaa : 0x55);
      if constexpr (kLanes == 8)
        return (V)_mm256_maskz_permutexvar_epi32(kSecond, _mm256_set1_epi32(place(3)), bits);
    }
#endif
    constexpr auto from = [](int to) { return place(to) < kLanes / 2 ? kLanes + to : place(kLanes / 2 - 1); };
    return __builtin_shufflevector(x, broadcast(static_cast<Accumulator>(Operation::kIdentity)),
                                   from(kPlace)...);
  }
  template <int kFrom, int... kPlace>
  ANYDML_INLINE static V broadcast_lane(V x, std::integer_sequence<int, kPlace...>) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    if constexpr (kLanes == 8)
      return (V)_mm256_permutevar8x32_epi32((__m256i)x, _mm256_set1_epi32(place(kFrom)));
#endif
    constexpr auto from = [](int) { return place(kFrom); };
    return __builtin_shufflevector(x, x, from(kPlace)...);
  }
  template <int... kPlace>
  ANYDML_INLINE static V halves_of(V first, V second, std::integer_sequence<int, kPlace...>) {
    constexpr auto from = [](int to) { return place(to) < kLanes / 2 ? to : kLanes + to; };
    return __builtin_shufflevector(first, second, from(kPlace)...);
  }
  template <int... kPlace>
  ANYDML_INLINE static V shift_in(V before, V y, std::integer_sequence<int, kPlace...>) {
    constexpr auto from = [](int to) {
      return place(to) == 0 ? kLanes + place(kLanes - 1) : place(place(to) - 1);
    };
    return __builtin_shufflevector(y, before, from(kPlace)...);
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
