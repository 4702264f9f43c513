// Copies of a row: of units, which are elements or runs of bytes, at a step in the input and one in the
// output.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "movement/copy.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "simd/strided_copy.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

template <class Bits>
inline void copy_strided(const Runs runs, const std::byte* in, std::byte* out) {
  copy_elements<Bits>({runs.count, runs.in_step, runs.out_step}, in, out);
}

// Writes the first `size` bytes of a pattern, which is as often in a chunk as it fits, `period` bytes in all.
inline void repeat_pattern(const std::byte* pattern, int64_t period, int64_t size, std::byte* out) {
  constexpr int64_t kWide = sizeof(WideChunk);
  const auto chunk = load_chunk<WideChunk>(pattern);
  if (period == kWide) {
    for (; size >= 4 * kWide; size -= 4 * kWide, out += 4 * kWide) {
      for (int64_t i = 0; i < 4 * kWide; i += kWide) store_chunk(out + i, chunk);
    }
  }
  for (; size >= kWide; size -= period, out += period) store_chunk(out, chunk);
  copy_short(out, pattern, size);
}

// Repeats a unit of any size. A short one is written many times at once, of a longer one what is written
// already is copied behind itself.
inline void repeat_run(const Runs runs, const std::byte* in, std::byte* out) {
  const int64_t size = runs.count * runs.size;
  constexpr int64_t kWide = sizeof(WideChunk);
  if (runs.size <= kWide) {
    std::byte pattern[2 * kWide];
    int64_t period = 0;
    for (; period + runs.size <= kWide; period += runs.size) copy_short(pattern + period, in, runs.size);
    copy_short(pattern + period, in, runs.size);
    return repeat_pattern(pattern, period, size, out);
  }
  copy_short(out, in, runs.size);
  int64_t block = runs.size;
  for (int64_t done = block; done < size; done += block) {
    if (done == 2 * block && block < kPortion / 4) block = done;
    copy_short(out + done, out, std::min(block, size - done));
  }
}

// Bytes from which on an element of equal bytes is repeated by a call: processors have an instruction for it
// that reads no line that it fills (1 MiB in 25 us instead of 37, 2026-11-26, one thread of a Xeon).
constexpr int64_t kFilled = 4 << 10;

template <class Bits>
inline void repeat_element(const Runs runs, const std::byte* in, std::byte* out) {
  constexpr int64_t kWide = sizeof(WideChunk);
  const auto element = load<Bits>(in);
  Bits pattern[kWide / sizeof(Bits)];
  for (Bits& each : pattern) each = element;
  const int64_t size = runs.count * runs.size;
  const auto byte = static_cast<uint8_t>(element);
  if (size >= kFilled && element == static_cast<Bits>(static_cast<Bits>(~Bits{0}) / 0xff * byte)) {
    std::memset(out, byte, static_cast<size_t>(size));
    return;
  }
  repeat_pattern(reinterpret_cast<const std::byte*>(pattern), kWide, size, out);
}

#if defined(ANYDML_VECTORS)
// Where the instruction set has no shuffles of bytes, plain loops take less time than what compilers make of
// them.
constexpr bool kShufflesVectors = !kCompact;

// Elements that lie one behind the other backward.
template <class Bits>
inline void copy_reversed(const Runs runs, const std::byte* in, std::byte* out) {
  constexpr int64_t kSize = sizeof(Bits);
  constexpr int kLanes = kVectorBytes / sizeof(Bits);
  int64_t i = 0;
  if constexpr (kShufflesVectors) {
    for (; i + kLanes <= runs.count; i += kLanes) {
      const auto v = load_vector<Vector<Bits>>(in - (i + kLanes - 1) * kSize);
      store_vector(out + i * kSize, shuffled(v, v, [](int lane) { return kLanes - 1 - lane; }));
      // The last vector begins where it ends with the row.
      if (const int64_t left = runs.count - i - kLanes; 0 < left && left < kLanes) i -= kLanes - left;
    }
  }
  for (; i < runs.count; ++i) store(out + i * kSize, load<Bits>(in - i * kSize));
}

// Where lane l of every kStep-th element comes from, which is element kStep * l, while the elements come part
// by part: with the first of them those of the part before it, later ones stay in their lanes.
template <int kStep, int kLanes, int kPart>
struct LaneOfEvery {
  constexpr int operator()(int lane) const {
    const int element = kStep * lane;
    const int part = element / kLanes;
    if (part == kPart) return kLanes + element % kLanes;
    return kPart == 1 && part == 0 ? element : lane;
  }
};

// Every kStep-th element. The last one is not read with its neighbours, which may be another's.
template <class Bits, int kStep>
inline void copy_every(const Runs runs, const std::byte* in, std::byte* out) {
  constexpr int64_t kSize = sizeof(Bits);
  constexpr int kLanes = kVectorBytes / sizeof(Bits);
  int64_t i = 0;
  if constexpr (kShufflesVectors) {
    for (; i + kLanes < runs.count; i += kLanes) {
      const std::byte* const from = in + kStep * i * kSize;
      auto v = load_vector<Vector<Bits>>(from);
      for_each_index<kStep - 1>([&]<int kBefore>() {
        constexpr int kPart = kBefore + 1;
        const auto next = load_vector<Vector<Bits>>(from + kPart * kVectorBytes);
        v = shuffled(v, next, LaneOfEvery<kStep, kLanes, kPart>{});
      });
      store_vector(out + i * kSize, v);
      // The last vector begins where it ends before the last element.
      if (const int64_t left = runs.count - 1 - i - kLanes; 0 < left && left < kLanes) i -= kLanes - left;
    }
  }
  for (; i < runs.count; ++i) store(out + i * kSize, load<Bits>(in + kStep * i * kSize));
}
#endif

template <class Bits>
CopyRuns choose_copy_of_row(int64_t in_step, int64_t out_step) {
  constexpr int64_t kSize = sizeof(Bits);
  if (out_step == kSize && in_step == 0) return repeat_element<Bits>;
#if defined(ANYDML_VECTORS)
  if (out_step == kSize && in_step == -kSize) return copy_reversed<Bits>;
  if (out_step == kSize && in_step == 2 * kSize) return copy_every<Bits, 2>;
  if (out_step == kSize && in_step == 3 * kSize) return copy_every<Bits, 3>;
  if (out_step == kSize && in_step == 4 * kSize) return copy_every<Bits, 4>;
#endif
  return copy_strided<Bits>;
}

inline CopyRuns choose_copy_of_row(int64_t unit, int64_t in_step, int64_t out_step) {
  switch (unit) {
    case 1:
      return choose_copy_of_row<uint8_t>(in_step, out_step);
    case 2:
      return choose_copy_of_row<uint16_t>(in_step, out_step);
    case 4:
      return choose_copy_of_row<uint32_t>(in_step, out_step);
    case 8:
      return choose_copy_of_row<uint64_t>(in_step, out_step);
    default:
      return in_step == 0 && out_step == unit ? repeat_run : choose_copy_of_runs(unit);
  }
}

// Likewise lane l of a part of kCount interleaved runs, which come run by run.
template <int kCount, int kLanes, int kPart, int kRun>
struct LaneOfInterleaved {
  constexpr int operator()(int lane) const {
    const int place = kPart * kLanes + lane;
    const int run = place % kCount;
    if (run == kRun) return kLanes + place / kCount;
    return kRun == 1 && run == 0 ? place / kCount : lane;
  }
};

// Interleaves kCount runs of elements, which are in_step apart, `count` elements of each.
using Interleave = void (*)(int64_t count, int64_t in_step, const std::byte* in, std::byte* out);

template <class Bits, int kCount>
void interleave(int64_t count, int64_t in_step, const std::byte* in, std::byte* out) {
  constexpr int64_t kSize = sizeof(Bits);
  int64_t i = 0;
#if defined(ANYDML_VECTORS)
  constexpr int kLanes = kVectorBytes / sizeof(Bits);
  if constexpr (kShufflesVectors) {
    for (; i + kLanes <= count; i += kLanes) {
      Vector<Bits> runs[kCount];
      for (int k = 0; k < kCount; ++k) runs[k] = load_vector<Vector<Bits>>(in + k * in_step + i * kSize);
      for_each_index<kCount>([&]<int kPart>() {
        auto v = runs[0];
        for_each_index<kCount - 1>([&]<int kBefore>() {
          constexpr int kRun = kBefore + 1;
          v = shuffled(v, runs[kRun], LaneOfInterleaved<kCount, kLanes, kPart, kRun>{});
        });
        store_vector(out + (i * kCount + kPart * kLanes) * kSize, v);
      });
    }
  }
#endif
  for (; i < count; ++i) {
    for (int k = 0; k < kCount; ++k)
      store(out + (i * kCount + k) * kSize, load<Bits>(in + k * in_step + i * kSize));
  }
}

template <class Bits>
Interleave choose_interleave(int64_t count) {
  if (count == 2) return interleave<Bits, 2>;
  if (count == 3) return interleave<Bits, 3>;
  return count == 4 ? interleave<Bits, 4> : nullptr;
}

// Null where there are too many runs.
inline Interleave choose_interleave(int64_t unit, int64_t count) {
  switch (unit) {
    case 1:
      return choose_interleave<uint8_t>(count);
    case 2:
      return choose_interleave<uint16_t>(count);
    case 4:
      return choose_interleave<uint32_t>(count);
    case 8:
      return choose_interleave<uint64_t>(count);
    default:
      return nullptr;
  }
}

// Each of many elements several times, one behind the other: `columns` copies of each of `rows`, which are
// in_step apart.
using RepeatEach = void (*)(int64_t rows, int64_t columns, int64_t in_step, const std::byte* in,
                            std::byte* out);

#if defined(ANYDML_VECTORS)
template <int kCount, int kLanes, int kPart>
struct LaneOfRepeated {
  constexpr int operator()(int lane) const { return (kPart * kLanes + lane) / kCount; }
};

// Whole vectors of elements that lie one behind the other; returns how many elements these are.
template <class Bits, int kCount>
int64_t repeat_vectors(int64_t count, const std::byte* in, std::byte* out) {
  constexpr int kLanes = kVectorBytes / sizeof(Bits);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes, in += kVectorBytes) {
    const auto v = load_vector<Vector<Bits>>(in);
    for_each_index<kCount>([&]<int kPart>() {
      store_vector(out, shuffled(v, v, LaneOfRepeated<kCount, kLanes, kPart>{}));
      out += kVectorBytes;
    });
  }
  return i;
}
#endif

template <class Bits>
void repeat_each(int64_t rows, int64_t columns, int64_t in_step, const std::byte* in, std::byte* out) {
  constexpr int64_t kSize = sizeof(Bits);
  int64_t row = 0;
#if defined(ANYDML_VECTORS)
  if (kShufflesVectors && in_step == kSize) {
    if (columns == 2) row = repeat_vectors<Bits, 2>(rows, in, out);
    if (columns == 3) row = repeat_vectors<Bits, 3>(rows, in, out);
    if (columns == 4) row = repeat_vectors<Bits, 4>(rows, in, out);
    out += row * columns * kSize;
  }
  const int64_t run = columns * kSize;
  if (run <= kVectorBytes) {
    // What a store writes beyond its element's copies, the next ones write over.
    for (; (rows - row) * run >= kVectorBytes; ++row, out += run) {
      store_vector(out, broadcast(load<Bits>(in + row * in_step)));
    }
  } else {
    for (; row < rows; ++row, out += run) {
      const auto v = broadcast(load<Bits>(in + row * in_step));
      for (int64_t i = 0; i < run - kVectorBytes; i += kVectorBytes) store_vector(out + i, v);
      store_vector(out + run - kVectorBytes, v);
    }
  }
#endif
  for (; row < rows; ++row, out += columns * kSize) {
    const auto element = load<Bits>(in + row * in_step);
    for (int64_t i = 0; i < columns; ++i) store(out + i * kSize, element);
  }
}

inline RepeatEach choose_repeat_each(int64_t unit) {
  switch (unit) {
    case 1:
      return repeat_each<uint8_t>;
    case 2:
      return repeat_each<uint16_t>;
    case 4:
      return repeat_each<uint32_t>;
    default:
      return repeat_each<uint64_t>;
  }
}

// A gather: units from offsets of the input to the output, one behind the other.
using CopyAt = void (*)(const int64_t* offsets, int64_t count, int64_t unit, const std::byte* in,
                        std::byte* out);

// Units of the size of T, or of up to twice as much, as two values that overlap.
template <class T>
void copy_at(const int64_t* offsets, int64_t count, int64_t unit, const std::byte* in, std::byte* out) {
  constexpr int64_t kSize = sizeof(T);
  if (unit == kSize) {
    int64_t i = 0;
#if defined(ANYDML_ISA_AVX512)
    // Fewer instructions for each, so that the processor looks further ahead.
    if constexpr (kSize == 4) {
      for (; i + 8 <= count; i += 8) {
        store_vector(out + i * kSize, _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), 0xff,
                                                                  _mm512_loadu_si512(offsets + i), in, 1));
      }
    } else if constexpr (kSize == 8) {
      for (; i + 8 <= count; i += 8) {
        store_vector(out + i * kSize, _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), 0xff,
                                                                  _mm512_loadu_si512(offsets + i), in, 1));
      }
    }
#endif
#pragma GCC unroll 8
    for (; i < count; ++i) store_chunk(out + i * kSize, load_chunk<T>(in + offsets[i]));
  } else {
    for (int64_t i = 0; i < count; ++i, out += unit) copy_ends<T>(out, in + offsets[i], unit);
  }
}

inline void copy_runs_at(const int64_t* offsets, int64_t count, int64_t unit, const std::byte* in,
                         std::byte* out) {
  for (int64_t i = 0; i < count; ++i, out += unit) copy_short(out, in + offsets[i], unit);
}

inline CopyAt choose_copy_at(int64_t unit) {
  if (unit > 64) return copy_runs_at;
  if (unit >= 32) return copy_at<WideChunk>;
  if (unit >= 16) return copy_at<Chunk>;
  if (unit >= 8) return copy_at<uint64_t>;
  if (unit >= 4) return copy_at<uint32_t>;
  return unit >= 2 ? copy_at<uint16_t> : copy_at<uint8_t>;
}

}  // namespace
ANYDML_ISA_END
