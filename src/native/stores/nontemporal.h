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
#include <utility>

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

// An output of that many bytes is streamed: it would not stay in the caches.
inline constexpr int64_t kStreamFrom = int64_t{16} << 20;

// How far `to` is from the next line's first byte.
inline int64_t to_next_line(const std::byte* to) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % kLine);
}

// So far ahead of what is read, on its way up or down, memory is asked for more, where nothing else says:
// some processors foresee too little where outputs go around the caches meanwhile.
inline constexpr int64_t kPrefetchDistance = 4 << 10;
inline const std::byte* prefetch_address(const std::byte* from, bool down) {
  return down ? from - kPrefetchDistance : from + kPrefetchDistance;
}

// Asks memory for the line at `from`, or where that is no memory, for nothing. Compilers take calls of it for
// calls of what does nothing, and leave them out, unless they see its body in their place.
ANYDML_INLINE void prefetch_line([[maybe_unused]] const std::byte* from) {
#if defined(ANYDML_STREAM_SSE2)
  _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1);
#elif defined(__GNUC__)
  __builtin_prefetch(from, 0, 2);
#endif
}

// Writes the line at `to`, which is aligned. The processor gathers what it is given in pieces; the fewer they
// are, the less often it waits for memory.
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

// As memcpy; what does not fill a line is stored in the ordinary way, and so nothing beyond the bytes is
// touched.
inline void stream_copy(std::byte* to, const std::byte* from, int64_t size) {
  const int64_t head = std::min(to_next_line(to), size);
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + kLine <= size; i += kLine) stream_line(to + i, from + i);
  std::memcpy(to + i, from + i, static_cast<size_t>(size - i));
}

// Streams what comes in pieces, one behind the other: those that end within a line meet in a buffer. As much
// as does not fill a line, at either end, is stored in the ordinary way.
class LineWriter {
 public:
  LineWriter() = default;
  explicit LineWriter(std::byte* to) { start(to); }
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  ~LineWriter() { store_ends(); }

  // What comes next goes to `to`; nothing of what came before may be left.
  void start(std::byte* to) {
    begin_ = filled_ = (kLine - to_next_line(to)) % kLine;
    line_ = to - begin_;
  }

  // Asks memory for as many lines at `ahead`, unless that is null, one by one: asked for all at once they are
  // waited for.
  void append(const std::byte* from, int64_t size, const std::byte* ahead = nullptr) {
    if (filled_ > 0) {
      const int64_t count = std::min(size, kLine - filled_);
      std::memcpy(buffer_ + filled_, from, static_cast<size_t>(count));
      filled_ += count;
      if (filled_ < kLine) return;
      if (begin_ > 0) {
        store_ends();
      } else {
        stream_line(line_, buffer_);
      }
      begin_ = 0;
      line_ += kLine;
      from += count;
      size -= count;
    }
    for (; size >= kLine; size -= kLine, from += kLine, line_ += kLine) {
      stream_line(line_, from);
      if (ahead != nullptr) prefetch_line(std::exchange(ahead, ahead + kLine));
    }
    filled_ = size;
    if (size > 0) std::memcpy(buffer_, from, static_cast<size_t>(size));
  }

 private:
  void store_ends() {
    if (filled_ > begin_) {
      std::memcpy(line_ + begin_, buffer_ + begin_, static_cast<size_t>(filled_ - begin_));
    }
  }

  int64_t begin_ = 0;   // of what is stored in this line
  int64_t filled_ = 0;  // its end
  std::byte* line_ = nullptr;
  alignas(32) std::byte buffer_[kLine];
};

// Streamed lines before it are seen by whoever sees what is written after it. Each thread that streams calls
// it once, when it is done.
inline void stream_fence() {
#if defined(ANYDML_STREAM_SSE2)
  _mm_sfence();
#endif
}

ANYDML_ISA_END
