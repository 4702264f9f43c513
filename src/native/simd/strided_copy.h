// Strided copies: of runs, of elements apart from each other, and of many short runs at a time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "core/layout.h"
#include "platform/isa.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

// Up to this size a copy by vectors takes less time than a call of memcpy. Inherited, not measured again.
constexpr int64_t kInlineCopy = 256;

// 16 bytes, the widest that every instruction set moves at once.
struct Chunk {
  uint64_t halves[2];
};

// 32 bytes, which most move: a vector, as GCC moves a structure of them by halves, and puts it on the stack,
// too.
#if defined(ANYDML_VECTORS)
using WideChunk = Vector<uint64_t>;
#else
struct WideChunk {
  uint64_t quarters[4];
};
#endif

// Inlined, as load() and store() are compiled for the baseline, and must not pass vectors.
template <class T>
ANYDML_INLINE T load_chunk(const std::byte* from) {
  T chunk;
  std::memcpy(&chunk, from, sizeof(T));
  return chunk;
}
template <class T>
ANYDML_INLINE void store_chunk(std::byte* to, T chunk) {
  std::memcpy(to, &chunk, sizeof(T));
}

// Copies `size` bytes as two values, which overlap where size < 2 * sizeof(T).
template <class T>
inline void copy_ends(std::byte* to, const std::byte* from, int64_t size) {
  const int64_t last = size - static_cast<int64_t>(sizeof(T));
  const T front = load_chunk<T>(from);
  const T back = load_chunk<T>(from + last);
  store_chunk(to, front);
  store_chunk(to + last, back);
}

// An inline memcpy of few bytes, for which a call would take longer than the copy.
inline void copy_short(std::byte* to, const std::byte* from, int64_t size) {
  constexpr int64_t kChunk = sizeof(WideChunk);
  if (size > kInlineCopy) {
    std::memcpy(to, from, static_cast<size_t>(size));
  } else if (size >= kChunk) {
    for (int64_t i = 0; i < size - kChunk; i += kChunk) store_chunk(to + i, load_chunk<WideChunk>(from + i));
    store_chunk(to + size - kChunk, load_chunk<WideChunk>(from + size - kChunk));
  } else if (size >= 16) {
    copy_ends<Chunk>(to, from, size);
  } else if (size >= 8) {
    copy_ends<uint64_t>(to, from, size);
  } else if (size >= 4) {
    copy_ends<uint32_t>(to, from, size);
  } else if (size >= 2) {
    copy_ends<uint16_t>(to, from, size);
  } else if (size == 1) {
    *to = *from;
  }
}

// Runs of one size, in_step apart in the input and out_step in the output.
struct Runs {
  int64_t count;
  int64_t size;
  int64_t in_step;
  int64_t out_step;
};

// Runs are passed by value: a store to bytes might change anything that a reference refers to.
using CopyRuns = void (*)(Runs runs, const std::byte* in, std::byte* out);

inline void copy_runs_of_any_size(const Runs runs, const std::byte* in, std::byte* out) {
  for (int64_t i = 0; i < runs.count; ++i) {
    copy_short(out + i * runs.out_step, in + i * runs.in_step, runs.size);
  }
}

// Copies by vectors of at most 32 bytes: those of 64, across two lines each, take twice the time from memory.
template <size_t kSize>
ANYDML_INLINE void copy_known(std::byte* to, const std::byte* from) {
  constexpr size_t kChunk = sizeof(WideChunk);
  if constexpr (kSize > kChunk) {
    store_chunk(to, load_chunk<WideChunk>(from));
    copy_known<kSize - kChunk>(to + kChunk, from + kChunk);
  } else {
    std::memcpy(to, from, kSize);
  }
}

// Copies runs of a size known when compiled, by a few loads and stores.
template <size_t kSize>
inline void copy_runs_of(const Runs runs, const std::byte* in, std::byte* out) {
  if (runs.in_step == kSize) {
    for (int64_t i = 0; i < runs.count; ++i) copy_known<kSize>(out + i * runs.out_step, in + i * kSize);
  } else {
    for (int64_t i = 0; i < runs.count; ++i)
      copy_known<kSize>(out + i * runs.out_step, in + i * runs.in_step);
  }
}

// Copies runs of kCount vectors, the last of which may overlap the one before it.
template <int64_t kCount>
inline void copy_runs_of_vectors(const Runs runs, const std::byte* in, std::byte* out) {
  constexpr int64_t kChunk = sizeof(WideChunk);
  const int64_t last = runs.size - kChunk;
  for (int64_t i = 0; i < runs.count; ++i, in += runs.in_step, out += runs.out_step) {
    for (int64_t k = 0; k < kCount - 1; ++k)
      store_chunk(out + k * kChunk, load_chunk<WideChunk>(in + k * kChunk));
    store_chunk(out + last, load_chunk<WideChunk>(in + last));
  }
}

template <size_t... kSizes>
constexpr std::array<CopyRuns, sizeof...(kSizes)> copies_of_runs(std::index_sequence<kSizes...>) {
  return {copy_runs_of<kSizes + 1>...};
}

inline constexpr auto kCopiesOfRuns = copies_of_runs(std::make_index_sequence<64>{});

template <int64_t... kCounts>
constexpr std::array<CopyRuns, sizeof...(kCounts)> copies_of_vectors(
    std::integer_sequence<int64_t, kCounts...>) {
  return {copy_runs_of_vectors<kCounts + 1>...};
}

inline constexpr auto kCopiesOfVectors = copies_of_vectors(std::make_integer_sequence<int64_t, 8>{});

inline CopyRuns choose_copy_of_runs(int64_t size) {
  const auto last_byte = static_cast<size_t>(size - 1);
  if (last_byte < kCopiesOfRuns.size()) return kCopiesOfRuns[last_byte];
  const size_t vectors = last_byte / sizeof(WideChunk);
  return vectors < kCopiesOfVectors.size() ? kCopiesOfVectors[vectors] : copy_runs_of_any_size;
}

// The largest size that takes no more loads than `size` does; `size` itself where nothing is gained by that.
inline int64_t wide_size(int64_t size) {
  if (size > 64) return size;
  const auto bytes = static_cast<uint64_t>(size);
  return static_cast<int64_t>(size > 16 ? (bytes + 15) / 16 * 16 : std::bit_ceil(bytes));
}

using CopyElements = void (*)(Loop run, const std::byte* in, std::byte* out);

template <class Bits>
inline void copy_elements(const Loop run, const std::byte* in, std::byte* out) {
  constexpr int64_t kPacked = sizeof(Bits);
  if (run.in == kPacked && run.out == kPacked) {
    std::memcpy(out, in, static_cast<size_t>(run.size) * sizeof(Bits));
  } else if (run.out == kPacked) {
    for (int64_t i = 0; i < run.size; ++i) store(out + i * kPacked, load<Bits>(in + i * run.in));
  } else {
    for (int64_t i = 0; i < run.size; ++i) store(out + i * run.out, load<Bits>(in + i * run.in));
  }
}

inline CopyElements choose_copy_of_elements(int64_t element_size) {
  switch (element_size) {
    case 1:
      return copy_elements<uint8_t>;
    case 2:
      return copy_elements<uint16_t>;
    case 4:
      return copy_elements<uint32_t>;
    default:
      return copy_elements<uint64_t>;
  }
}

// Byte offsets in both tensors.
struct Offsets {
  int64_t in;
  int64_t out;
};

// The offsets that a nest of loops has reached at a step, counted with the last loop fastest.
inline Offsets offsets_at(std::span<const Loop> loops, int64_t step) {
  Offsets at{0, 0};
  for (size_t d = loops.size(); d-- > 1;) {
    const int64_t i = step % loops[d].size;
    step /= loops[d].size;
    at.in += i * loops[d].in;
    at.out += i * loops[d].out;
  }
  if (!loops.empty()) at = {at.in + step * loops[0].in, at.out + step * loops[0].out};
  return at;
}

// Copies the elements [first, last) of a nest of loops around a run; the first goes to `out`.
inline void copy_nest(std::span<const Loop> loops, const Loop& run, CopyElements copy, int64_t first,
                      int64_t last, const std::byte* in, std::byte* out) {
  const int64_t start = offsets_at(loops, first / run.size).out + first % run.size * run.out;
  while (first < last) {
    const int64_t begin = first % run.size;
    const int64_t count = std::min(run.size - begin, last - first);
    const Offsets at = offsets_at(loops, first / run.size);
    copy({count, run.in, run.out}, in + at.in + begin * run.in, out + (at.out + begin * run.out - start));
    first += count;
  }
}

}  // namespace
ANYDML_ISA_END
