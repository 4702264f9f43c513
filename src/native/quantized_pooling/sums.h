// Sums of rows of bytes, column by column, and sums of neighbouring columns.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "platform/isa.h"
#include "quantized_pooling/lanes.h"
#include "simd/unaligned.h"
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
#include <immintrin.h>
#elif defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>
#endif

ANYDML_ISA_BEGIN
namespace {

using RowPointers = std::span<const std::byte* const>;

// Sums of columns, which wrap: only what comes out in the end has to fit.
class ColumnSums {
 public:
  // sums[x] = (keep ? sums[x] : 0) + (bytes added at x) - (bytes removed at x)
  static void update(uint32_t* sums, int64_t columns, int64_t step, uint8_t flip, RowPointers added,
                     RowPointers removed, bool keep) {
    if (step != 1 || columns < kLanes) {
      return update_plainly(sums, columns, step, flip, added, removed, keep);
    }
    // Counts known to the compiler leave no inner loop.
    if (!keep && added.size() == 1) return update_packed<1, 0>(sums, columns, flip, added, removed, keep);
    if (!keep && added.size() == 2) return update_packed<2, 0>(sums, columns, flip, added, removed, keep);
    if (!keep && added.size() == 3) return update_packed<3, 0>(sums, columns, flip, added, removed, keep);
    if (keep && added.size() == 1 && removed.size() == 1) {
      return update_packed<1, 1>(sums, columns, flip, added, removed, keep);
    }
    if (keep && added.size() == 3 && removed.size() == 3) {
      return update_packed<3, 3>(sums, columns, flip, added, removed, keep);
    }
    update_packed<-1, -1>(sums, columns, flip, added, removed, keep);
  }

 private:
  static constexpr int64_t kLanes = 8;
  using Vector = Lanes<uint32_t, kLanes>;
  using Bytes = Lanes<uint8_t, kLanes>;

  static void update_plainly(uint32_t* sums, int64_t columns, int64_t step, uint8_t flip, RowPointers added,
                             RowPointers removed, bool keep) {
    if (!keep) std::fill_n(sums, columns, uint32_t{0});
    const auto byte = [=](const std::byte* row, int64_t x) {
      return static_cast<uint32_t>(load<uint8_t>(row + x * step) ^ flip);
    };
    for (const std::byte* row : added) {
      for (int64_t x = 0; x < columns; ++x) sums[x] = static_cast<uint32_t>(sums[x] + byte(row, x));
    }
    for (const std::byte* row : removed) {
      for (int64_t x = 0; x < columns; ++x) sums[x] = static_cast<uint32_t>(sums[x] - byte(row, x));
    }
  }

  // As many rows as kAdded and kRemoved say, or, where that is -1, as there are.
  template <int kAdded, int kRemoved>
  static void update_packed(uint32_t* sums, int64_t columns, uint8_t flip, RowPointers added,
                            RowPointers removed, bool keep) {
    const size_t added_count = kAdded < 0 ? added.size() : kAdded;
    const size_t removed_count = kRemoved < 0 ? removed.size() : kRemoved;
    const std::byte* const* plus = added.data();
    const std::byte* const* minus = removed.data();
    const Bytes flips = all_lanes<Bytes>(flip);
    const auto updated = [=](Vector sum, int64_t x) {
      for (size_t i = 0; i < added_count; ++i) sum += convert<Vector>(load_lanes<Bytes>(plus[i] + x) ^ flips);
      for (size_t i = 0; i < removed_count; ++i) {
        sum -= convert<Vector>(load_lanes<Bytes>(minus[i] + x) ^ flips);
      }
      return sum;
    };
    const auto before = [=](int64_t x) { return keep ? load_lanes<Vector>(sums + x) : Vector{}; };
    // The last block may overlap the one before it, and so takes the old sums first.
    const int64_t last = columns - kLanes;
    const Vector old = before(last);
    for (int64_t x = 0; x < last; x += kLanes) store_lanes(sums + x, updated(before(x), x));
    store_lanes(sums + last, updated(old, last));
  }
};

// to[x] = from[x] + from[x + distance], for whole vectors; `to` may be `from`.
inline void add_neighbours(uint32_t* to, const uint32_t* from, int64_t count, int64_t distance) {
  using Vector = Lanes<uint32_t, 8>;
  for (int64_t x = 0; x < count; x += 8) {
    store_lanes(to + x, load_lanes<Vector>(from + x) + load_lanes<Vector>(from + x + distance));
  }
}

// The sum of consecutive bytes.
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
using ByteVector = __m256i;
inline ByteVector load_bytes(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline ByteVector all_bytes(uint8_t value) { return _mm256_set1_epi8(static_cast<char>(value)); }
inline ByteVector common_bits(ByteVector a, ByteVector b) { return _mm256_and_si256(a, b); }
inline ByteVector flipped(ByteVector a, ByteVector b) { return _mm256_xor_si256(a, b); }
inline ByteVector sum_of_eights(ByteVector v) { return _mm256_sad_epu8(v, _mm256_setzero_si256()); }
inline ByteVector add(ByteVector a, ByteVector b) { return _mm256_add_epi64(a, b); }
inline __m128i halves(ByteVector v) {
  return _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
// At place i, the sum of v[i].
inline ByteVector sums_across(const ByteVector (&v)[4]) {
  const ByteVector a = add(_mm256_unpacklo_epi64(v[0], v[1]), _mm256_unpackhi_epi64(v[0], v[1]));
  const ByteVector b = add(_mm256_unpacklo_epi64(v[2], v[3]), _mm256_unpackhi_epi64(v[2], v[3]));
  return add(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}
// Of integers below 2^52.
inline void store_doubles(double* to, ByteVector v) {
  const __m256d base = _mm256_set1_pd(0x1p52);
  _mm256_storeu_pd(to, _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(v), base), base));
}
#define ANYDML_SUMS_OF_EIGHTS
#elif defined(__x86_64__) || defined(_M_X64)
using ByteVector = __m128i;
inline ByteVector load_bytes(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
inline ByteVector all_bytes(uint8_t value) { return _mm_set1_epi8(static_cast<char>(value)); }
inline ByteVector common_bits(ByteVector a, ByteVector b) { return _mm_and_si128(a, b); }
inline ByteVector flipped(ByteVector a, ByteVector b) { return _mm_xor_si128(a, b); }
inline ByteVector sum_of_eights(ByteVector v) { return _mm_sad_epu8(v, _mm_setzero_si128()); }
inline ByteVector add(ByteVector a, ByteVector b) { return _mm_add_epi64(a, b); }
inline __m128i halves(ByteVector v) { return v; }
inline ByteVector sums_across(const ByteVector (&v)[2]) {
  return add(_mm_unpacklo_epi64(v[0], v[1]), _mm_unpackhi_epi64(v[0], v[1]));
}
inline void store_doubles(double* to, ByteVector v) {
  const __m128d base = _mm_set1_pd(0x1p52);
  _mm_storeu_pd(to, _mm_sub_pd(_mm_or_pd(_mm_castsi128_pd(v), base), base));
}
#define ANYDML_SUMS_OF_EIGHTS
#endif

#if defined(ANYDML_SUMS_OF_EIGHTS)
// At kLastBytes + n: a vector whose last n bytes are set, and no others.
inline constexpr auto kLastBytes = [] {
  std::array<uint8_t, 2 * sizeof(ByteVector)> bytes{};
  std::fill(bytes.begin() + sizeof(ByteVector), bytes.end(), uint8_t{0xff});
  return bytes;
}();

inline int64_t sum_bytes(const std::byte* bytes, int64_t count, uint8_t flip) {
  constexpr int64_t kSize = sizeof(ByteVector);
  int64_t sum = 0;
  if (count < kSize) {
    for (int64_t i = 0; i < count; ++i) sum += load<uint8_t>(bytes + i) ^ flip;
    return sum;
  }
  const ByteVector flips = all_bytes(flip);
  const auto sums = [=](int64_t i) { return sum_of_eights(flipped(load_bytes(bytes + i), flips)); };
  ByteVector total = sums(0);
  int64_t i = kSize;
  if (count >= 8 * kSize) {
    // Several chains of sums, each of which waits for itself alone.
    ByteVector b = sums(kSize), c = sums(2 * kSize), d = sums(3 * kSize);
    for (i = 4 * kSize; i + 4 * kSize <= count; i += 4 * kSize) {
      total = add(total, sums(i));
      b = add(b, sums(i + kSize));
      c = add(c, sums(i + 2 * kSize));
      d = add(d, sums(i + 3 * kSize));
    }
    total = add(add(total, b), add(c, d));
  }
  for (; i + kSize <= count; i += kSize) total = add(total, sums(i));
  // Of the last vector, what has not been counted.
  const ByteVector last = flipped(load_bytes(bytes + (count - kSize)), flips);
  total = add(total, sum_of_eights(common_bits(last, load_bytes(kLastBytes.data() + (count - i)))));
  const __m128i both = halves(total);
  return _mm_cvtsi128_si64(_mm_add_epi64(both, _mm_unpackhi_epi64(both, both)));
}

constexpr int64_t kByteVector = sizeof(ByteVector);
constexpr int64_t kRunsAtOnce = kByteVector / 8;

// The sums of some runs of `count` bytes, each `pitch` after the one before. Where they are shorter than a
// vector, bytes before them are read, and discarded.
inline void sum_runs(const std::byte* bytes, int64_t pitch, int64_t count, uint8_t flip, double* sums) {
  const ByteVector flips = all_bytes(flip);
  const ByteVector last = load_bytes(kLastBytes.data() + count % kByteVector);
  ByteVector totals[kRunsAtOnce];
  const auto vector = [=](int64_t run, int64_t i) {
    return flipped(load_bytes(bytes + run * pitch + i), flips);
  };
  for (int64_t run = 0; run < kRunsAtOnce; ++run) {
    totals[run] = sum_of_eights(common_bits(vector(run, count - kByteVector), last));
  }
  for (int64_t i = 0; i + kByteVector <= count; i += kByteVector) {
    for (int64_t run = 0; run < kRunsAtOnce; ++run) {
      totals[run] = add(totals[run], sum_of_eights(vector(run, i)));
    }
  }
  store_doubles(sums, sums_across(totals));
}
#else
inline int64_t sum_bytes(const std::byte* bytes, int64_t count, uint8_t flip) {
  using Bytes = Lanes<uint8_t, 16>;
  using Sums = Lanes<uint16_t, 16>;
  using Wide = Lanes<uint32_t, 8>;
  constexpr int64_t kMostVectors = 256;  // so many bytes in each lane are at most 65280
  const Bytes flips = all_lanes<Bytes>(flip);
  const auto vector = [=](int64_t i) { return convert<Sums>(load_lanes<Bytes>(bytes + 16 * i) ^ flips); };
  int64_t sum = 0;
  for (int64_t i = 0; i < count / 16;) {
    const int64_t end = std::min(count / 16, i + kMostVectors);
    Sums even{}, odd{};
    for (; i + 1 < end; i += 2) {
      even += vector(i);
      odd += vector(i + 1);
    }
    if (i < end) even += vector(i++);
    even += odd;
    const Wide pairs = (as<Wide>(even) & all_lanes<Wide>(0xffffU)) + (as<Wide>(even) >> 16);
    for (int l = 0; l < 8; ++l) sum += pairs[l];
  }
  for (int64_t i = count / 16 * 16; i < count; ++i) sum += load<uint8_t>(bytes + i) ^ flip;
  return sum;
}
#endif

}  // namespace
ANYDML_ISA_END
