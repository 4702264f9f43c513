// Very short runs of rows that follow each other: many of them to a vector.
//
// Two ways, for joins whose every row follows the one before in all inputs and in the output:
//  - few inputs: 16 bytes of the output come from a window of at most 16 bytes of each input, whatever the
//  sizes of
//    the runs. A shuffle of each window puts its bytes to where they belong, and zeros elsewhere;
//  - many inputs with runs of 1, 2 or 4 bytes: squares of 16, 8 or 4 inputs by as many rows are transposed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "isa.h"
#include "memory.h"
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

// out[i] = in[indices[i]], or 0 where indices[i] is kNone.
constexpr uint8_t kNone = 0x80;

struct Window {
  size_t input;
  int64_t offset;  // from the period's first byte in the input
  std::array<uint8_t, kVector> indices;
};

// Shuffles for every vector of the output until the pattern repeats.
class Interleave {
 public:
  Interleave() = default;
  explicit Interleave(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {
    const int64_t row = std::accumulate(sizes_.begin(), sizes_.end(), int64_t{0});
    const auto inputs = static_cast<int64_t>(sizes_.size());
    if (!kHasShuffles || inputs > kMostWays || row > kMostPerRun * inputs) return;
    rows_ = kVector / std::gcd(row, kVector);
    while (rows_ * row < kSmallestPeriod) rows_ *= 2;
    vectors_ = rows_ * row / kVector;
    make_windows();
  }

  bool pays() const { return ways_ > 0; }

  // Writes the first rows of `count`, from inputs of which each has `readable` rows from in[i] on, and
  // returns how many: whole periods, and only such whose windows lie in the inputs.
  int64_t copy(const std::vector<const std::byte*>& in, int64_t count, int64_t readable,
               std::byte* out) const {
    int64_t periods = count / rows_;
    for (const Window& window : windows_) {
      const int64_t step = rows_ * sizes_[window.input];
      const int64_t last = readable * sizes_[window.input] - kVector - window.offset;
      periods = std::min(periods, last < 0 ? 0 : last / step + 1);
    }
    kCopies[static_cast<size_t>(ways_ - 1)](*this, in, periods, out);
    return periods * rows_;
  }

 private:
  static constexpr int64_t kMostWays = 8;
  static constexpr int64_t kMostPerRun = 8;
  static constexpr int64_t kSmallestPeriod = 256;

  void make_windows() {
    std::vector<std::vector<Window>> vectors(static_cast<size_t>(vectors_));
    std::vector<int64_t> taken(sizes_.size(), 0);
    for (int64_t r = 0, place = 0; r < rows_; ++r) {
      for (size_t input = 0; input < sizes_.size(); ++input) {
        for (int64_t i = 0; i < sizes_[input]; ++i, ++place) {
          add(vectors[static_cast<size_t>(place / kVector)], input, taken[input]++, place % kVector);
        }
      }
    }
    for (const auto& vector : vectors) ways_ = std::max(ways_, static_cast<int64_t>(vector.size()));
    for (auto& vector : vectors) {
      // Where there are fewer, one is read again, and gives nothing.
      Window nothing = vector.front();
      nothing.indices.fill(kNone);
      vector.resize(static_cast<size_t>(ways_), nothing);
      windows_.insert(windows_.end(), vector.begin(), vector.end());
    }
  }

  static void add(std::vector<Window>& vector, size_t input, int64_t offset, int64_t place) {
    auto window = std::ranges::find(vector, input, &Window::input);
    if (window == vector.end()) {
      vector.push_back({input, offset, {}});
      window = vector.end() - 1;
      window->indices.fill(kNone);
    }
    window->indices[static_cast<size_t>(place)] = static_cast<uint8_t>(offset - window->offset);
  }

  template <size_t kWays>
  static void copy_ways(const Interleave& self, const std::vector<const std::byte*>& in, int64_t periods,
                        std::byte* out) {
    std::array<const std::byte*, kMostWays> at{};
    std::array<int64_t, kMostWays> step{};
    for (size_t i = 0; i < in.size(); ++i) {
      at[i] = in[i];
      step[i] = self.rows_ * self.sizes_[i];
    }
    const int64_t vectors = self.vectors_;
    for (int64_t period = 0; period < periods; ++period) {
      const Window* window = self.windows_.data();
      for (int64_t v = 0; v < vectors; ++v, out += kVector) {
        Bytes16 joined = part(at, *window++);
        for (size_t way = 1; way < kWays; ++way) joined = either(joined, part(at, *window++));
        store(out, joined);
      }
      for (size_t i = 0; i < kMostWays; ++i) at[i] += step[i];
    }
  }

  static Bytes16 part(const std::array<const std::byte*, kMostWays>& at, const Window& window) {
    const auto indices = load<Bytes16>(reinterpret_cast<const std::byte*>(window.indices.data()));
    return shuffle(load<Bytes16>(at[window.input] + window.offset), indices);
  }

  using Copy = void (*)(const Interleave&, const std::vector<const std::byte*>&, int64_t, std::byte*);
  static constexpr std::array<Copy, kMostWays> kCopies{copy_ways<1>, copy_ways<2>, copy_ways<3>,
                                                       copy_ways<4>, copy_ways<5>, copy_ways<6>,
                                                       copy_ways<7>, copy_ways<8>};

  std::vector<int64_t> sizes_;
  int64_t rows_ = 0;     // of a period
  int64_t vectors_ = 0;  // of a period
  int64_t ways_ = 0;     // windows for each vector
  std::vector<Window> windows_;
};

#if defined(__GNUC__)
template <class Lane>
using Lanes __attribute__((vector_size(kVector))) = Lane;

template <class Lane, size_t... kIndex>
inline void interleave_halves(const Lanes<Lane>& a, const Lanes<Lane>& b, Lanes<Lane>& low, Lanes<Lane>& high,
                              std::index_sequence<kIndex...>) {
  constexpr int kLanes = sizeof...(kIndex);
  low = __builtin_shufflevector(a, b,
                                (static_cast<int>(kIndex) / 2 + static_cast<int>(kIndex) % 2 * kLanes)...);
  high = __builtin_shufflevector(
      a, b, (static_cast<int>(kIndex) / 2 + kLanes / 2 + static_cast<int>(kIndex) % 2 * kLanes)...);
}

// A square of lanes: out row r, lane i = in row i, lane r. Each round interleaves row i with row i + half.
template <class Lane>
inline void transpose_square(const std::byte* const* in, int64_t offset, std::byte* out, int64_t out_step) {
  constexpr size_t kLanes = kVector / sizeof(Lane);
  Lanes<Lane> rows[kLanes];
  for (size_t i = 0; i < kLanes; ++i) rows[i] = load<Lanes<Lane>>(in[i] + offset);
  for (size_t round = 1; round < kLanes; round *= 2) {
    Lanes<Lane> next[kLanes];
    for (size_t i = 0; i < kLanes / 2; ++i) {
      interleave_halves<Lane>(rows[i], rows[i + kLanes / 2], next[2 * i], next[2 * i + 1],
                              std::make_index_sequence<kLanes>{});
    }
    std::copy_n(next, kLanes, rows);
  }
  for (size_t i = 0; i < kLanes; ++i) store(out + static_cast<int64_t>(i) * out_step, rows[i]);
}

// Inputs by rows, in squares: writes whole squares, and returns how many rows and inputs they cover.
template <class Lane>
inline std::pair<int64_t, int64_t> transpose(const std::vector<const std::byte*>& in, int64_t count,
                                             std::byte* out, int64_t out_step) {
  constexpr int64_t kLanes = kVector / sizeof(Lane);
  const int64_t rows = count / kLanes * kLanes;
  const int64_t inputs = static_cast<int64_t>(in.size()) / kLanes * kLanes;
  for (int64_t i = 0; i < inputs; i += kLanes) {
    for (int64_t row = 0; row < rows; row += kLanes) {
      constexpr auto kSize = static_cast<int64_t>(sizeof(Lane));
      transpose_square<Lane>(in.data() + i, row * kSize, out + row * out_step + i * kSize, out_step);
    }
  }
  return {rows, inputs};
}
#endif

}  // namespace
ANYDML_ISA_END
