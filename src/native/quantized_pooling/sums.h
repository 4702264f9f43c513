// Reductions: sums of consecutive bytes, of one run or of several at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

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

// The sum of consecutive bytes.
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
using ByteVector = __m256i;
inline ByteVector load_bytes(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline ByteVector broadcast_byte(uint8_t value) { return _mm256_set1_epi8(static_cast<char>(value)); }
inline ByteVector bit_and(ByteVector a, ByteVector b) { return _mm256_and_si256(a, b); }
inline ByteVector bit_xor(ByteVector a, ByteVector b) { return _mm256_xor_si256(a, b); }
inline ByteVector sums_of_8(ByteVector v) { return _mm256_sad_epu8(v, _mm256_setzero_si256()); }
inline ByteVector add(ByteVector a, ByteVector b) { return _mm256_add_epi64(a, b); }
inline __m128i halves(ByteVector v) {
  return _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}
// Lane i is the sum of v[i] across its lanes.
inline ByteVector sums_across(const ByteVector (&v)[4]) {
  const ByteVector a = add(_mm256_unpacklo_epi64(v[0], v[1]), _mm256_unpackhi_epi64(v[0], v[1]));
  const ByteVector b = add(_mm256_unpacklo_epi64(v[2], v[3]), _mm256_unpackhi_epi64(v[2], v[3]));
  return add(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}
// Stores integers below 2^52 as doubles.
inline void store_doubles(double* to, ByteVector v) {
  const __m256d base = _mm256_set1_pd(0x1p52);
  _mm256_storeu_pd(to, _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(v), base), base));
}
#define ANYDML_SUMS_OF_8
#elif defined(__x86_64__) || defined(_M_X64)
using ByteVector = __m128i;
inline ByteVector load_bytes(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }
inline ByteVector broadcast_byte(uint8_t value) { return _mm_set1_epi8(static_cast<char>(value)); }
inline ByteVector bit_and(ByteVector a, ByteVector b) { return _mm_and_si128(a, b); }
inline ByteVector bit_xor(ByteVector a, ByteVector b) { return _mm_xor_si128(a, b); }
inline ByteVector sums_of_8(ByteVector v) { return _mm_sad_epu8(v, _mm_setzero_si128()); }
inline ByteVector add(ByteVector a, ByteVector b) { return _mm_add_epi64(a, b); }
inline __m128i halves(ByteVector v) { return v; }
inline ByteVector sums_across(const ByteVector (&v)[2]) {
  return add(_mm_unpacklo_epi64(v[0], v[1]), _mm_unpackhi_epi64(v[0], v[1]));
}
inline void store_doubles(double* to, ByteVector v) {
  const __m128d base = _mm_set1_pd(0x1p52);
  _mm_storeu_pd(to, _mm_sub_pd(_mm_or_pd(_mm_castsi128_pd(v), base), base));
}
#define ANYDML_SUMS_OF_8
#endif

#if defined(ANYDML_SUMS_OF_8)
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
  const ByteVector flips = broadcast_byte(flip);
  const auto sums = [=](int64_t i) { return sums_of_8(bit_xor(load_bytes(bytes + i), flips)); };
  ByteVector total = sums(0);
  int64_t i = kSize;
  if (count >= 8 * kSize) {
    // Several accumulators, as the additions of one wait for each other.
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
  // The bytes of the last vector that have not been counted.
  const ByteVector last = bit_xor(load_bytes(bytes + (count - kSize)), flips);
  total = add(total, sums_of_8(bit_and(last, load_bytes(kLastBytes.data() + (count - i)))));
  const __m128i both = halves(total);
  return _mm_cvtsi128_si64(_mm_add_epi64(both, _mm_unpackhi_epi64(both, both)));
}

constexpr int64_t kByteVector = sizeof(ByteVector);
constexpr int64_t kRunsAtOnce = kByteVector / 8;

// The sums of some runs of `count` bytes, each `pitch` after the one before. Where they are shorter than a
// vector, bytes before them are read, and discarded.
inline void sum_runs(const std::byte* bytes, int64_t pitch, int64_t count, uint8_t flip, double* sums) {
  const ByteVector flips = broadcast_byte(flip);
  const ByteVector last = load_bytes(kLastBytes.data() + count % kByteVector);
  ByteVector totals[kRunsAtOnce];
  const auto vector = [=](int64_t run, int64_t i) {
    return bit_xor(load_bytes(bytes + run * pitch + i), flips);
  };
  for (int64_t run = 0; run < kRunsAtOnce; ++run) {
    totals[run] = sums_of_8(bit_and(vector(run, count - kByteVector), last));
  }
  for (int64_t i = 0; i + kByteVector <= count; i += kByteVector) {
    for (int64_t run = 0; run < kRunsAtOnce; ++run) {
      totals[run] = add(totals[run], sums_of_8(vector(run, i)));
    }
  }
  store_doubles(sums, sums_across(totals));
}
#else
inline int64_t sum_bytes(const std::byte* bytes, int64_t count, uint8_t flip) {
  using Bytes = Vector<uint8_t, 16>;
  using Sums = Vector<uint16_t, 16>;
  using Wide = Vector<uint32_t, 8>;
  constexpr int64_t kMostVectors = 256;  // so many bytes in each lane are at most 65280
  const Bytes flips = broadcast_to<Bytes>(flip);
  const auto vector = [=](int64_t i) { return convert<Sums>(load_vector<Bytes>(bytes + 16 * i) ^ flips); };
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
    const Wide pairs = (bits_as<Wide>(even) & broadcast_to<Wide>(0xffffU)) + (bits_as<Wide>(even) >> 16);
    for (int l = 0; l < 8; ++l) sum += pairs[l];
  }
  for (int64_t i = count / 16 * 16; i < count; ++i) sum += load<uint8_t>(bytes + i) ^ flip;
  return sum;
}
#endif

}  // namespace
ANYDML_ISA_END
