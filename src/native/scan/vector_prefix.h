// Elements that lie next to each other, a line and a vector at a time, in either direction.
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

// Where the elements of a part of a row lie, whose lowest is at 0.
template <class T, bool kDown>
struct IndexOrder {
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kPerLine = kLine / kSize;

  // The i-th traversed of `size`, or the lowest of the `count` from it on.
  static int64_t element(int64_t size, int64_t i, int64_t count = 1) {
    return kSize * (kDown ? size - i - count : i);
  }
  // What is read so much later than `from`.
  static const std::byte* ahead(const std::byte* from) { return prefetch_address(from, kDown); }
  // The k-th traversed of the `count` vectors that make up a line.
  static constexpr int64_t piece(int k, int count) { return (kDown ? count - 1 - k : k) * (kLine / count); }
};

// A line's elements, on the walk: as vectors of tallies, or one by one.
template <class T, class X, bool kDown>
struct Line {
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int kCount = kLine / kSize * sizeof(AccumulatorOf<T>) / sizeof(X);

  explicit Line(const std::byte* in) {
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) {
      const std::byte* const from = in + IndexOrder<T, kDown>::piece(k, kCount);
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
// returns true, with where the line lies; returns how far it came. Of outputs that go around the caches, each
// line is read before those of the one before it leave: where a store and a load behind it fall into the same
// place of two pages, some processors let the load wait until the store is done.
template <class T, class X, bool kDown, bool kStreams, class Body>
ANYDML_INLINE int64_t over_lines(const std::byte* in, int64_t size, int64_t i, const Body& body) {
  using At = IndexOrder<T, kDown>;
  constexpr int64_t kPerLine = At::kPerLine;
  if constexpr (!kStreams) {
    for (; i + kPerLine <= size; i += kPerLine) {
      const int64_t at = At::element(size, i, kPerLine);
      if (!body(Line<T, X, kDown>(in + at), at)) break;
    }
    return i;
  }
  if (i + kPerLine > size) return i;
  Line<T, X, kDown> next(in + At::element(size, i, kPerLine));
  for (bool is_last = false; !is_last; i += kPerLine) {
    const auto line = next;
    is_last = i + 2 * kPerLine > size;
    if (!is_last) next = Line<T, X, kDown>(in + At::element(size, i + kPerLine, kPerLine));
    if (!body(line, At::element(size, i, kPerLine))) return i;
  }
  return i;
}

// A line's elements, or fewer with as many behind them as fill one, which change nothing. What lies before
// them on the walk may be read, as much as makes a piece.
template <class T, class Operation, bool kDown>
class PartialLine {
 public:
  PartialLine(const std::byte* in, int64_t count) {
    constexpr int64_t kSize = sizeof(T);
    std::byte one[kSize];
    narrow<T, AccumulatorOf<T>>(one, static_cast<AccumulatorOf<T>>(Operation::kIdentity));
    const auto nothing = (Piece)(Vector<BitsOf<T>, kPiece / kSize>{} + load<BitsOf<T>>(one));
    const int64_t size = count * kSize;
#pragma GCC unroll 4
    for (int k = 0; k < kPieces; ++k) {
      const int64_t left = size - k * kPiece;
      Piece& piece = pieces_[At::piece(k, kPieces) / kPiece];
      if (left >= kPiece) {
        piece = load_vector<Piece>(in + (kDown ? left - kPiece : k * kPiece));
      } else if (left <= 0) {
        piece = nothing;
      } else if (kDown) {
        piece = ByteRealigner(left).of(nothing, load_vector<Piece>(in));
      } else {
        piece = ByteRealigner(kPiece - left).of(load_vector<Piece>(in + size - kPiece), nothing);
      }
    }
  }

  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(pieces_); }
  // The k-th on the walk of the pieces, or of the vectors.
  ANYDML_INLINE Piece piece(int k) const { return pieces_[At::piece(k, kPieces) / kPiece]; }
  ANYDML_INLINE Vector<AccumulatorOf<T>> vector(int k) const {
    if constexpr (std::is_same_v<T, AccumulatorOf<T>>) {
      return (Vector<T>)side_by_side<Vector<uint8_t>>(pieces_ + At::piece(k, kPieces / 2) / kPiece);
    } else {
      return widen_row<T, Vector<AccumulatorOf<T>>>(piece(k));
    }
  }

 private:
  using At = IndexOrder<T, kDown>;
  static constexpr int kPieces = kLine / kPiece;

  Piece pieces_[kPieces];
};

// A vector's elements, combined among themselves. With p what they come to so far,
//   p'(i) = p(i - d) o p(i)  for d = 1, 2, ...
template <class Accumulator, class Operation, bool kDown>
class VectorPrefix {
 public:
  using V = Vector<Accumulator>;
  static constexpr int kLanes = kVectorBytes / sizeof(Accumulator);

  // Up to each element, of each four on end,
  ANYDML_INLINE static V scan_quads(V x) {
    x = combine_on_fma_port<Operation>(shifted<1>(x, kAll), x);
    if constexpr (kLanes <= 4) return combine_on_fma_port<Operation>(carried_over(x, kAll), x);
    return combine_on_fma_port<Operation>(shifted<2>(x, kAll), x);
  }
  // and of all.
  ANYDML_INLINE static V all(V x) {
    x = scan_quads(x);
    if constexpr (kLanes <= 4) return x;
    return combine_on_fma_port<Operation>(carried_over(x, kAll), x);
  }

  // The first half's elements of one, the second's of the other.
  ANYDML_INLINE static V halves_of(V first, V second) { return halves_of(first, second, kAll); }
  // The last traversed of the first half, or of all, to each element.
  ANYDML_INLINE static V middle_of(V x) { return broadcast_lane<kLanes / 2 - 1>(x, kAll); }
  ANYDML_INLINE static V last_of(V x) { return broadcast_lane<kLanes - 1>(x, kAll); }
  // Each moved on by one, to make room for the first of `before`.
  ANYDML_INLINE static V shift_in(V before, V y) { return shift_in(before, y, kAll); }

 private:
  static constexpr auto kAll = std::make_integer_sequence<int, kLanes>{};

  // The place in a vector of the i-th traversed of its elements, and the other way round.
  static constexpr int place(int i) { return kDown ? kLanes - 1 - i : i; }

  // Within halves, as processors shift no further at once. Of sums, zeros come in, which they do in the same
  // step; compilers do not find it.
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
  // The first half's tally, to each of the second.
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
    constexpr auto from = [](int to) { return place(to) == 0 ? kLanes + to : place(place(to) - 1); };
    return __builtin_shufflevector(y, before, from(kPlace)...);
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
