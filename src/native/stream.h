// Copies that go around the caches.
//
// An ordinary store reads the line that it writes into, and drives another one out. Of an output larger than
// the caches nothing is left when it is read again, so that a streaming store, which writes whole lines and
// reads none, saves a third of a copy's traffic. In a smaller output it would lose what the caches hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define ANYDML_STREAM_SSE2
#endif

namespace anydml {

inline constexpr int64_t kLine = 64;

// An output of that many bytes is streamed: it would not stay in the caches.
inline constexpr int64_t kStreamFrom = int64_t{16} << 20;

// How far `to` is from the next line's first byte.
inline int64_t to_next_line(const std::byte* to) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kLine);
}

// Writes the line at `to`, which is aligned. 16 bytes at a time, on every instruction set: the processor
// gathers them, and memory is the limit.
inline void stream_line(std::byte* to, const std::byte* from) {
#if defined(ANYDML_STREAM_SSE2)
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

// As memcpy; what does not fill a line is stored in the ordinary way, and so nothing beyond the bytes is
// touched.
inline void stream_copy(std::byte* to, const std::byte* from, int64_t size) {
  const int64_t head = std::min(to_next_line(to), size);
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + kLine <= size; i += kLine) stream_line(to + i, from + i);
  std::memcpy(to + i, from + i, static_cast<size_t>(size - i));
}

// Streamed lines before it are seen by whoever sees what is written after it. Each thread that streams calls
// it once, when it is done.
inline void stream_fence() {
#if defined(ANYDML_STREAM_SSE2)
  _mm_sfence();
#endif
}

}  // namespace anydml
