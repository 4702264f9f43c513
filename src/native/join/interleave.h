// Very short runs of rows that follow each other in all inputs and in the output: many of them to a vector.
//
// Two ways:
//  - 16 bytes of the output, or where the processor can, 64, come from a window of each input that has a part
//    in them, whatever the sizes of the runs. A shuffle of each window puts its bytes to where they belong,
//    and zeros elsewhere;
//  - many inputs with runs of 1, 2 or 4 bytes: squares of 16, 8 or 4 inputs by as many rows are transposed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "platform/isa.h"
#include "simd/transpose.h"
#include "stores/nontemporal.h"
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
#include <immintrin.h>
#define ANYDML_SHUFFLES
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define ANYDML_SHUFFLES
#endif

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kVector = 16;
constexpr int64_t kMostVector = 64;

#if defined(ANYDML_SHUFFLES)
constexpr bool kHasShuffles = true;
#if defined(__ARM_NEON)
using Bytes16 = uint8x16_t;
inline Bytes16 shuffle(Bytes16 bytes, Bytes16 indices) { return vqtbl1q_u8(bytes, indices); }
inline Bytes16 either(Bytes16 a, Bytes16 b) { return vorrq_u8(a, b); }
#else
using Bytes16 = __m128i;
inline Bytes16 shuffle(Bytes16 bytes, Bytes16 indices) { return _mm_shuffle_epi8(bytes, indices); }
inline Bytes16 either(Bytes16 a, Bytes16 b) { return _mm_or_si128(a, b); }
#endif
#else
// Byte by byte it would lose to copying run by run.
constexpr bool kHasShuffles = false;
struct Bytes16 {
  uint8_t bytes[kVector];
};
inline Bytes16 shuffle(Bytes16 bytes, Bytes16) { return bytes; }
inline Bytes16 either(Bytes16 a, Bytes16) { return a; }
#endif

// The rows of one input that are joined at once, `bytes` from `begin` on.
struct InputRows {
  const std::byte* begin;
  int64_t bytes;
};

// Asks memory for the rows of the inputs, in the order in which they are copied and some way ahead of that:
// of many inputs, each only a few lines at a time, the processor foresees nothing. Line by line, as what is
// asked for all at once is waited for.
class Prefetcher {
 public:
  explicit Prefetcher(std::span<const InputRows> in, int64_t bytes = 4 << 10) : in_(in) {
    // Few are foreseen.
    if (in.size() <= kFewInputs) input_ = in.size();
    advance(bytes);
  }

  // So many bytes have been copied.
  void advance(int64_t bytes) {
    for (due_ += bytes; due_ >= kLine && input_ < in_.size(); due_ -= kLine) {
      prefetch_line(in_[input_].begin + next_);
      next_ += kLine;
      if (next_ >= in_[input_].bytes) {
        next_ = 0;
        ++input_;
      }
    }
  }

 private:
  static constexpr size_t kFewInputs = 8;

  std::span<const InputRows> in_;
  size_t input_ = 0;
  int64_t next_ = 0;  // of its bytes
  int64_t due_ = 0;
};

// out[i] = window[indices[i]], or 0 where indices[i] is kNone.
constexpr uint8_t kNone = 0x80;

struct Window {
  size_t input;
  int64_t offset;  // from the period's first byte in the input
  std::array<uint8_t, kMostVector> indices;
};

inline Bytes16 load_bytes(const std::byte* from) {
  Bytes16 bytes;
  std::memcpy(&bytes, from, kVector);
  return bytes;
}

// What one vector of every period is made of.
struct Pattern {
  const InputRows* in;
  const int64_t* sizes;
  int64_t rows;  // of a period
  const Window* windows;
  int64_t first;  // of so many periods
  int64_t periods;
  int64_t out_step;
};

// A vector of every period, and not period by period, so that the indices stay in registers.
template <size_t kWays>
inline void copy_windows(const Pattern pattern, std::byte* out) {
  const std::byte* at[kWays];
  int64_t step[kWays];
  Bytes16 indices[kWays];
  for (size_t way = 0; way < kWays; ++way) {
    const Window& window = pattern.windows[way];
    step[way] = pattern.rows * pattern.sizes[window.input];
    at[way] = pattern.in[window.input].begin + (pattern.first * step[way] + window.offset);
    std::memcpy(&indices[way], window.indices.data(), kVector);
  }
  for (int64_t period = 0; period < pattern.periods; ++period, out += pattern.out_step) {
    Bytes16 joined = shuffle(load_bytes(at[0]), indices[0]);
    at[0] += step[0];
    for (size_t way = 1; way < kWays; ++way) {
      joined = either(joined, shuffle(load_bytes(at[way]), indices[way]));
      at[way] += step[way];
    }
    std::memcpy(out, &joined, kVector);
  }
}

#if defined(ANYDML_ISA_AVX512)
// 64 bytes of the output, from windows of 32: whole vectors, across two lines of an input each, would take
// twice the time from memory.
inline __m512i load_half(const std::byte* from) {
  return _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

template <size_t kWays>
[[gnu::target("avx512vbmi")]] inline void copy_wide_windows(const Pattern pattern, std::byte* out) {
  const std::byte* at[kWays];
  int64_t step[kWays];
  __m512i indices[kWays];
  __mmask64 taken[kWays];
  for (size_t way = 0; way < kWays; ++way) {
    const Window& window = pattern.windows[way];
    step[way] = pattern.rows * pattern.sizes[window.input];
    at[way] = pattern.in[window.input].begin + (pattern.first * step[way] + window.offset);
    indices[way] = _mm512_loadu_si512(window.indices.data());
    taken[way] = ~_mm512_movepi8_mask(indices[way]);
  }
  for (int64_t period = 0; period < pattern.periods; ++period, out += pattern.out_step) {
    __m512i joined = _mm512_maskz_permutexvar_epi8(taken[0], indices[0], load_half(at[0]));
    at[0] += step[0];
    for (size_t way = 1; way < kWays; ++way) {
      const __m512i bytes = load_half(at[way]);
      joined = _mm512_mask_permutexvar_epi8(joined, taken[way], indices[way], bytes);
      at[way] += step[way];
    }
    _mm512_storeu_si512(out, joined);
  }
}
#endif

using CopyWindows = void (*)(Pattern pattern, std::byte* out);

// Of at most 8 inputs, one of which may have more bytes in a vector than a window has.
constexpr size_t kMostWays = 10;

// How many bytes of the output are made at once, of windows of so many, and by what: for each number of them.
struct Shuffles {
  int64_t bytes;
  int64_t window;
  std::array<CopyWindows, kMostWays> copies;
};

template <size_t... kWays>
constexpr Shuffles shuffles_of_16(std::index_sequence<kWays...>) {
  return {16, 16, {copy_windows<kWays + 1>...}};
}
#if defined(ANYDML_ISA_AVX512)
template <size_t... kWays>
constexpr Shuffles shuffles_of_64(std::index_sequence<kWays...>) {
  return {64, 32, {copy_wide_windows<kWays + 1>...}};
}
#endif

inline Shuffles choose_shuffles() {
  constexpr std::make_index_sequence<kMostWays> kWays;
#if defined(ANYDML_ISA_AVX512)
  if (__builtin_cpu_supports("avx512vbmi")) return shuffles_of_64(kWays);
#endif
  return shuffles_of_16(kWays);
}

// The windows of every vector of the output until the pattern repeats: a period of several rows.
class Interleave {
 public:
  Interleave() = default;
  explicit Interleave(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {
    const int64_t row = std::accumulate(sizes_.begin(), sizes_.end(), int64_t{0});
    const auto inputs = static_cast<int64_t>(sizes_.size());
    const int64_t rows = shuffles_.bytes / std::gcd(row, shuffles_.bytes);
    const int64_t vectors = rows * row / shuffles_.bytes;
    const int64_t most = vectors <= 2 ? 2 * kMostPerRun : kMostPerRun;
    if (!kHasShuffles || inputs > kMostInputs || row > most * inputs) return;
    rows_ = rows;
    make_windows(vectors);
  }

  int64_t vector() const { return shuffles_.bytes; }
  bool pays() const { return !windows_.empty(); }
  int64_t rows() const { return rows_; }

  // Writes the first rows of `count`, from inputs of which each has `readable` rows, and returns how many:
  // whole periods, and only such whose windows lie in the inputs.
  int64_t copy(std::span<const InputRows> in, int64_t count, int64_t readable, std::byte* out) const {
    int64_t periods = count / rows_;
    for (const Window& window : windows_) {
      const int64_t step = rows_ * sizes_[window.input];
      const int64_t last = readable * sizes_[window.input] - shuffles_.window - window.offset;
      periods = std::min(periods, last < 0 ? 0 : last / step + 1);
    }
    const int64_t out_step = static_cast<int64_t>(ways_.size()) * shuffles_.bytes;
    // So many periods at a time as the nearest cache holds.
    const int64_t most = std::max(kFewestPeriods, kPeriodBytes / out_step);
    for (int64_t first = 0; first < periods; first += most) {
      const int64_t some = std::min(most, periods - first);
      const Window* window = windows_.data();
      std::byte* to = out + first * out_step;
      for (const size_t ways : ways_) {
        shuffles_.copies[ways - 1]({in.data(), sizes_.data(), rows_, window, first, some, out_step}, to);
        window += ways;
        to += shuffles_.bytes;
      }
    }
    return periods * rows_;
  }

 private:
  static constexpr int64_t kMostInputs = 8;
  static constexpr int64_t kMostPerRun = 8;      // bytes; twice as many where a period has few vectors
  static constexpr int64_t kFewestPeriods = 16;  // that make up for the start of each shuffle
  static constexpr int64_t kPeriodBytes = 16384;

  void make_windows(int64_t vectors) {
    std::vector<int64_t> taken(sizes_.size(), 0);
    size_t input = 0;
    int64_t left = sizes_[0];
    for (int64_t v = 0; v < vectors; ++v) {
      const auto first = static_cast<int64_t>(windows_.size());
      for (size_t place = 0; place < static_cast<size_t>(shuffles_.bytes); ++place, --left) {
        while (left == 0) left = sizes_[input = (input + 1) % sizes_.size()];
        auto window = std::ranges::find_if(windows_.begin() + first, windows_.end(), [&](const Window& w) {
          return w.input == input && taken[input] - w.offset < shuffles_.window;
        });
        if (window == windows_.end()) {
          window = windows_.insert(window, {input, taken[input], {}});
          window->indices.fill(kNone);
        }
        window->indices[place] = static_cast<uint8_t>(taken[input]++ - window->offset);
      }
      ways_.push_back(windows_.size() - static_cast<size_t>(first));
    }
  }

  Shuffles shuffles_ = choose_shuffles();
  std::vector<int64_t> sizes_;
  int64_t rows_ = 0;          // of a period
  std::vector<size_t> ways_;  // windows of each vector
  std::vector<Window> windows_;
};

#if defined(__GNUC__)
// Out row r, lane i = in row i, lane r.
template <class Lane>
ANYDML_INLINE void transpose_square(std::span<const InputRows> in, int64_t offset, std::byte* out,
                                    int64_t out_step) {
  constexpr size_t kLanes = kSquareBytes / sizeof(Lane);
  SquareRow<Lane> rows[kLanes];
  for (size_t i = 0; i < kLanes; ++i) {
    rows[i] = load<SquareRow<Lane>>(in[std::min(i, in.size() - 1)].begin + offset);
  }
  transpose<Lane>(rows);
  for (size_t i = 0; i < kLanes; ++i) store(out + static_cast<int64_t>(i) * out_step, rows[i]);
}

// Inputs by rows, in squares: writes whole squares of all inputs, and returns how many rows these are. The
// last square overlaps the one before it; where there are fewer inputs than lanes, the rows of a square
// overlap, and what the last one writes beyond its end belongs to the row that is left.
template <class Lane>
inline int64_t transpose_inputs(std::span<const InputRows> in, int64_t count, std::byte* out,
                                int64_t out_step) {
  constexpr int64_t kSize = sizeof(Lane);
  constexpr int64_t kLanes = kSquareBytes / kSize;
  constexpr int64_t kGroup = kLine / kSize / 4;
  const auto inputs = static_cast<int64_t>(in.size());
  const int64_t rows = (inputs < kLanes ? count - 1 : count) / kLanes * kLanes;
  const int64_t end = std::max<int64_t>(inputs - kLanes, 0);
  Prefetcher prefetcher(in);
  for (int64_t first = 0; first < inputs; first += kGroup) {
    const int64_t last = std::min(first + kGroup, inputs);
    for (int64_t row = 0; row < rows; row += kLanes) {
      for (int64_t each = first; each < last; each += kLanes) {
        const int64_t i = std::min(each, end);
        prefetcher.advance(kLanes * kSquareBytes);
        transpose_square<Lane>(in.subspan(static_cast<size_t>(i)), row * kSize,
                               out + row * out_step + i * kSize, out_step);
      }
    }
  }
  return rows;
}
#endif

}  // namespace
ANYDML_ISA_END
