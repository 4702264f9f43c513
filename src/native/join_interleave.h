// Very short runs of rows that follow each other in all inputs and in the output: many of them to a vector.
//
// Two ways:
//  - 16 bytes of the output come from a window of at most 16 bytes of each input that has a part in them,
//    whatever the sizes of the runs. A shuffle of each window puts its bytes to where they belong, and zeros
//    elsewhere;
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

#include "isa.h"
#include "stream.h"
#include "transpose.h"
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

// Asks memory for the rows of the inputs some way ahead of the one whose turn it is: of many inputs, each
// only a few lines at a time, the processor foresees nothing.
class Ahead {
 public:
  explicit Ahead(std::span<const InputRows> in) : in_(in) {
    // Few are foreseen.
    if (in.size() <= kFewInputs) next_ = in.size();
  }
  void turn_of(size_t input) {
    for (; next_ < in_.size() && next_ <= input + kInputs; ++next_) {
      for (int64_t i = 0; i < in_[next_].bytes; i += kLine) prefetch_line(in_[next_].begin + i);
    }
  }

 private:
  static constexpr size_t kFewInputs = 8;
  static constexpr size_t kInputs = 8;

  std::span<const InputRows> in_;
  size_t next_ = 0;
};

// out[i] = in[indices[i]], or 0 where indices[i] is kNone.
constexpr uint8_t kNone = 0x80;

struct Window {
  size_t input;
  int64_t offset;  // from the period's first byte in the input
  std::array<uint8_t, kVector> indices;
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
    at[way] = pattern.in[window.input].begin + window.offset;
    step[way] = pattern.rows * pattern.sizes[window.input];
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

using CopyWindows = void (*)(Pattern pattern, std::byte* out);
template <size_t... kWays>
constexpr std::array<CopyWindows, sizeof...(kWays)> copies_of_windows(std::index_sequence<kWays...>) {
  return {copy_windows<kWays + 1>...};
}
inline constexpr auto kCopiesOfWindows = copies_of_windows(std::make_index_sequence<8>{});

// The windows of every vector of the output until the pattern repeats: a period of several rows.
class Interleave {
 public:
  Interleave() = default;
  explicit Interleave(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {
    const int64_t row = std::accumulate(sizes_.begin(), sizes_.end(), int64_t{0});
    const auto inputs = static_cast<int64_t>(sizes_.size());
    if (!kHasShuffles || inputs > kMostInputs || row > kMostPerRun * inputs) return;
    rows_ = kVector / std::gcd(row, kVector);
    make_windows(rows_ * row / kVector);
  }

  bool pays() const { return !windows_.empty(); }
  int64_t rows() const { return rows_; }

  // Writes the first rows of `count`, from inputs of which each has `readable` rows, and returns how many:
  // whole periods, and only such whose windows lie in the inputs.
  int64_t copy(std::span<const InputRows> in, int64_t count, int64_t readable, std::byte* out) const {
    int64_t periods = count / rows_;
    for (const Window& window : windows_) {
      const int64_t step = rows_ * sizes_[window.input];
      const int64_t last = readable * sizes_[window.input] - kVector - window.offset;
      periods = std::min(periods, last < 0 ? 0 : last / step + 1);
    }
    const int64_t out_step = static_cast<int64_t>(ways_.size()) * kVector;
    Ahead ahead(in);
    const Window* window = windows_.data();
    for (const size_t ways : ways_) {
      ahead.turn_of(window[ways - 1].input);
      kCopiesOfWindows[ways - 1]({in.data(), sizes_.data(), rows_, window, periods, out_step}, out);
      window += ways;
      out += kVector;
    }
    return periods * rows_;
  }

 private:
  static constexpr int64_t kMostInputs = 8;
  static constexpr int64_t kMostPerRun = 8;

  void make_windows(int64_t vectors) {
    std::vector<int64_t> taken(sizes_.size(), 0);
    size_t input = 0;
    int64_t left = sizes_[0];
    for (int64_t v = 0; v < vectors; ++v) {
      const auto first = static_cast<int64_t>(windows_.size());
      for (size_t place = 0; place < kVector; ++place, --left) {
        while (left == 0) left = sizes_[input = (input + 1) % sizes_.size()];
        auto window = std::ranges::find(windows_.begin() + first, windows_.end(), input, &Window::input);
        if (window == windows_.end()) {
          window = windows_.insert(window, {input, taken[input], {}});
          window->indices.fill(kNone);
        }
        window->indices[place] = static_cast<uint8_t>(taken[input]++ - window->offset);
      }
      ways_.push_back(windows_.size() - static_cast<size_t>(first));
    }
  }

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
  Ahead ahead(in);
  for (int64_t first = 0; first < inputs; first += kGroup) {
    const int64_t last = std::min(first + kGroup, inputs);
    ahead.turn_of(static_cast<size_t>(last));
    for (int64_t row = 0; row < rows; row += kLanes) {
      for (int64_t each = first; each < last; each += kLanes) {
        const int64_t i = std::min(each, end);
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
