// Population count of elements of any size.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/layout.h"
#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)
// The bits of each byte of a vector: by a table of those of four bits, where bytes can be shuffled by others.
template <class V>
ANYDML_INLINE V bits_of_bytes(V x) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2,
                                         3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i four = _mm256_set1_epi8(15);
  const __m256i low = _mm256_and_si256((__m256i)x, four);
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16((__m256i)x, 4), four);
  return (V)_mm256_add_epi8(_mm256_shuffle_epi8(table, low), _mm256_shuffle_epi8(table, high));
#else
  using Words = Vector<uint32_t>;
  const Words words = (Words)x;
  const Words pairs = words - ((words >> 1) & 0x55555555);
  const Words fours = (pairs & 0x33333333) + ((pairs >> 2) & 0x33333333);
  return (V)((fours + (fours >> 4)) & 0x0f0f0f0f);
#endif
}

// Elements of several bytes, whose counts are added.
template <class Bits>
void count_bits(const int64_t* /*constants*/, const std::byte* x, const std::byte* /*y*/,
                const std::byte* /*z*/, std::byte* out, int64_t count) {
  using V = Vector<Bits>;
  constexpr int64_t kLanes = kVectorBytes / sizeof(Bits);
  for (int64_t start = 0; start < count; start += kWholeElements) {
    Bits counts[kWholeElements];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kWholeElements; i += kLanes) {
      V sums = bits_of_bytes(load_vector<V>(x + (start + i) * static_cast<int64_t>(sizeof(Bits))));
      if constexpr (sizeof(Bits) == 8) sums += sums >> 32;
      if constexpr (sizeof(Bits) >= 4) sums += sums >> 16;
      sums += sums >> 8;
      std::memcpy(counts + i, &sums, sizeof(sums));
    }
    for (int64_t i = 0; i < kWholeElements; ++i) store(out + start + i, static_cast<uint8_t>(counts[i]));
  }
}
template <>
inline void count_bits<uint8_t>(const int64_t* /*constants*/, const std::byte* x, const std::byte* /*y*/,
                                const std::byte* /*z*/, std::byte* out, int64_t count) {
  for (int64_t i = 0; i < count; i += kVectorBytes)
    store_vector(out + i, bits_of_bytes(load_vector<Vector<uint8_t>>(x + i)));
}
#else
// Element by element.
template <class Bits>
void count_bits(const int64_t* /*constants*/, const std::byte* x, const std::byte* /*y*/,
                const std::byte* /*z*/, std::byte* out, int64_t count) {
  for (int64_t i = 0; i < (count + kWholeElements - 1) / kWholeElements * kWholeElements; ++i) {
    const auto bits = load<Bits>(x + i * static_cast<int64_t>(sizeof(Bits)));
    store(out + i, static_cast<uint8_t>(std::popcount(bits)));
  }
}
#endif

inline Pass bit_count(DataType type) {
  switch (size_of(type)) {
    case 1:
      return count_bits<uint8_t>;
    case 2:
      return count_bits<uint16_t>;
    case 4:
      return count_bits<uint32_t>;
    case 8:
      return count_bits<uint64_t>;
    default:
      return nullptr;
  }
}

ANYDML_ISA_END
