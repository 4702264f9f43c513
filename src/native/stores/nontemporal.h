// Non-temporal stores and prefetches of whole cache lines.
//
// An ordinary store first reads the line that it writes into, and evicts another one. An output larger than
// the caches is gone from them before it is read again, so that a non-temporal store, which writes whole
// lines and reads none, saves a third of a copy's traffic. For a smaller output it would lose what the caches
// hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"

#if defined(__SSE2__) || defined(_M_X64)
#if defined(__GNUC__)
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif
#define ANYDML_STREAM_SSE2
#endif

ANYDML_ISA_BEGIN

inline constexpr int64_t kLine = 64;

// Outputs of at least that many bytes are written by non-temporal stores: they would not stay in the caches.
inline constexpr int64_t kStreamFrom = int64_t{16} << 20;

// How far `to` is from the next line's first byte.
inline int64_t to_next_line(const std::byte* to) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kLine);
}

// The default prefetch distance in bytes, and the address to prefetch while `from` is read, upwards or
// downwards. Beside non-temporal stores the hardware prefetchers of some processors fetch too little by
// themselves.
inline constexpr int64_t kPrefetchDistance = 4 << 10;
inline const std::byte* prefetch_address(const std::byte* from, bool down) {
  return down ? from - kPrefetchDistance : from + kPrefetchDistance;
}

// Prefetches the line at `from` into the second cache; an address that is not mapped does no harm. It has to
// be inlined, as has all that does nothing else: compilers leave a call of it out as one without effect.
ANYDML_INLINE void prefetch_line([[maybe_unused]] const std::byte* from) {
#if defined(ANYDML_STREAM_SSE2)
  _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1);
#elif defined(__GNUC__)
  __builtin_prefetch(from, 0, 2);
#endif
}

// Prefetches the lines of `size` bytes, which lie in one more than they fill where they begin within one.
ANYDML_INLINE void prefetch_lines(const std::byte* from, int64_t size) {
  for (int64_t i = 0; i < size; i += kLine) prefetch_line(from + i);
  if (to_next_line(from) > 0) prefetch_line(from + size - 1);
}

// Writes the aligned line at `to` by non-temporal stores. The processor combines them in a buffer; the fewer
// they are, the less often it waits for memory.
ANYDML_INLINE void stream_line(std::byte* to, const std::byte* from) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
  auto* const line = reinterpret_cast<__m256i*>(to);
  const auto* const source = reinterpret_cast<const __m256i*>(from);
  const __m256i a = _mm256_loadu_si256(source);
  const __m256i b = _mm256_loadu_si256(source + 1);
  _mm256_stream_si256(line, a);
  _mm256_stream_si256(line + 1, b);
#elif defined(ANYDML_STREAM_SSE2)
  auto* const line = reinterpret_cast<__m128i*>(to);
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  const __m128i a = _mm_loadu_si128(source);
  const __m128i b = _mm_loadu_si128(source + 1);
  const __m128i c = _mm_loadu_si128(source + 2);
  const __m128i d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(line, a);
  _mm_stream_si128(line + 1, b);
  _mm_stream_si128(line + 2, c);
  _mm_stream_si128(line + 3, d);
#else
  std::memcpy(to, from, kLine);
#endif
}

// A memcpy by non-temporal stores. The ends that do not fill a line are written by ordinary stores, so that
// no byte beyond them is touched.
inline void stream_copy(std::byte* to, const std::byte* from, int64_t size) {
  const int64_t head = std::min(to_next_line(to), size);
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + kLine <= size; i += kLine) stream_line(to + i, from + i);
  std::memcpy(to + i, from + i, static_cast<size_t>(size - i));
}

// Orders non-temporal stores before everything that is written after it. Each thread that uses them calls it
// once, when it is done.
inline void stream_fence() {
#if defined(ANYDML_STREAM_SSE2)
  _mm_sfence();
#endif
}

ANYDML_ISA_END
