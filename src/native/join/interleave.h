// Byte interleaving of very short runs: whole vectors of the output are put together in registers.
//
// The rows follow each other in all inputs and in the output. Two count:
//  - byte shuffles: 16 bytes of the output, or 64 where the processor can, are shuffled together from one
//    source vector of each input that has a part in them, whatever the sizes of the runs;
//  - transposition, for many inputs with runs of 1, 2 or 4 bytes: squares of 16, 8 or 4 inputs by as many
//  rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "join/tuning.h"
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
inline Bytes16 blend(Bytes16 a, Bytes16 b) { return vorrq_u8(a, b); }
#else
using Bytes16 = __m128i;
inline Bytes16 shuffle(Bytes16 bytes, Bytes16 indices) { return _mm_shuffle_epi8(bytes, indices); }
inline Bytes16 blend(Bytes16 a, Bytes16 b) { return _mm_or_si128(a, b); }
#endif
#else
// Byte by byte a shuffle would lose to copying run by run.
constexpr bool kHasShuffles = false;
struct Bytes16 {
  uint8_t bytes[kVector];
};
inline Bytes16 shuffle(Bytes16 bytes, Bytes16) { return bytes; }
inline Bytes16 blend(Bytes16 a, Bytes16) { return a; }
#endif

// The rows of one input that are joined at once, `bytes` from `begin` on.
struct InputRows {
  const std::byte* begin;
  int64_t bytes;
};

// Prefetches the rows of many inputs, in the order in which they are copied: where each input gives only a
// few lines at a time, the hardware prefetcher follows none of them. Lines are requested one by one, since
// the copy would wait for many requests at once.
class Prefetcher {
 public:
  explicit Prefetcher(std::span<const InputRows> in, int64_t bytes = kPrefetchedBytes) : in_(in) {
    // The hardware prefetches few inputs.
    if (in.size() <= kFewInputs) input_ = in.size();
    advance(bytes);
  }

  // Tells that so many more bytes have been copied.
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
  std::span<const InputRows> in_;
  size_t input_ = 0;
  int64_t next_ = 0;  // byte of that input
  int64_t due_ = 0;
};

// One shuffle: out[i] = source[indices[i]], or 0 where indices[i] is kNone.
constexpr uint8_t kNone = 0x80;

struct ShuffleSource {
  size_t input;
  int64_t offset;  // from the period's first byte in the input
  std::array<uint8_t, kMostVector> indices;
};

inline Bytes16 load_bytes(const std::byte* from) {
  Bytes16 bytes;
  std::memcpy(&bytes, from, kVector);
  return bytes;
}

// The sources of one vector of the output in every period.
struct Pattern {
  const InputRows* in;
  const int64_t* sizes;
  int64_t rows;  // of a period
  const ShuffleSource* sources;
  int64_t first;  // period
  int64_t periods;
  int64_t out_step;
};

// Writes one vector of every period, and not period by period, so that the indices stay in registers.
template <size_t kSources>
inline void shuffle_rows(const Pattern pattern, std::byte* out) {
  const std::byte* at[kSources];
  int64_t step[kSources];
  Bytes16 indices[kSources];
  for (size_t i = 0; i < kSources; ++i) {
    const ShuffleSource& source = pattern.sources[i];
    step[i] = pattern.rows * pattern.sizes[source.input];
    at[i] = pattern.in[source.input].begin + (pattern.first * step[i] + source.offset);
    std::memcpy(&indices[i], source.indices.data(), kVector);
  }
  for (int64_t period = 0; period < pattern.periods; ++period, out += pattern.out_step) {
    Bytes16 joined = shuffle(load_bytes(at[0]), indices[0]);
    at[0] += step[0];
    for (size_t i = 1; i < kSources; ++i) {
      joined = blend(joined, shuffle(load_bytes(at[i]), indices[i]));
      at[i] += step[i];
    }
    std::memcpy(out, &joined, kVector);
  }
}

#if defined(ANYDML_ISA_AVX512)
// Likewise 64 bytes of the output, from sources of 32 bytes: whole vectors of an input, each across two
// lines, would take twice the time from memory.
inline __m512i load_half(const std::byte* from) {
  return _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

template <size_t kSources>
[[gnu::target("avx512vbmi")]] inline void shuffle_rows_to_64(const Pattern pattern, std::byte* out) {
  const std::byte* at[kSources];
  int64_t step[kSources];
  __m512i indices[kSources];
  __mmask64 taken[kSources];
  for (size_t i = 0; i < kSources; ++i) {
    const ShuffleSource& source = pattern.sources[i];
    step[i] = pattern.rows * pattern.sizes[source.input];
    at[i] = pattern.in[source.input].begin + (pattern.first * step[i] + source.offset);
    indices[i] = _mm512_loadu_si512(source.indices.data());
    taken[i] = ~_mm512_movepi8_mask(indices[i]);
  }
  for (int64_t period = 0; period < pattern.periods; ++period, out += pattern.out_step) {
    __m512i joined = _mm512_maskz_permutexvar_epi8(taken[0], indices[0], load_half(at[0]));
    at[0] += step[0];
    for (size_t i = 1; i < kSources; ++i) {
      const __m512i bytes = load_half(at[i]);
      joined = _mm512_mask_permutexvar_epi8(joined, taken[i], indices[i], bytes);
      at[i] += step[i];
    }
    _mm512_storeu_si512(out, joined);
  }
}
#endif

using ShuffleRows = void (*)(Pattern pattern, std::byte* out);

// The sources of a vector: of at most 8 inputs, one of which may have more bytes in it than a source has.
constexpr size_t kMostSources = 10;

// The shuffles of an instruction set: bytes of a vector of the output and of a source, and a function for
// each number of sources.
struct Shuffles {
  int64_t bytes;
  int64_t source_bytes;
  std::array<ShuffleRows, kMostSources> copies;
};

template <size_t... kSources>
constexpr Shuffles shuffles_of_16(std::index_sequence<kSources...>) {
  return {16, 16, {shuffle_rows<kSources + 1>...}};
}
#if defined(ANYDML_ISA_AVX512)
template <size_t... kSources>
constexpr Shuffles shuffles_of_64(std::index_sequence<kSources...>) {
  return {64, 32, {shuffle_rows_to_64<kSources + 1>...}};
}
#endif

inline Shuffles choose_shuffles() {
  constexpr std::make_index_sequence<kMostSources> kCounts;
#if defined(ANYDML_ISA_AVX512)
  if (__builtin_cpu_supports("avx512vbmi")) return shuffles_of_64(kCounts);
#endif
  return shuffles_of_16(kCounts);
}

// The sources of every vector of the output until the pattern repeats: a period of several rows.
class Interleave {
 public:
  Interleave() = default;
  explicit Interleave(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {
    const int64_t row = std::accumulate(sizes_.begin(), sizes_.end(), int64_t{0});
    const int64_t rows = shuffles_.bytes / std::gcd(row, shuffles_.bytes);
    const int64_t vectors = rows * row / shuffles_.bytes;
    declined_ = why_not(row, vectors);
    if (!declined_.empty()) return;
    rows_ = rows;
    make_sources(vectors);
  }

  int64_t vector() const { return shuffles_.bytes; }
  // Why shuffles would not pay; empty where they do.
  const std::string& declined() const { return declined_; }
  int64_t rows() const { return rows_; }

  // Writes the first rows of `count`, from inputs of which each has `readable` rows, and returns how many:
  // whole periods, and only those whose sources lie in the inputs.
  int64_t copy(std::span<const InputRows> in, int64_t count, int64_t readable, std::byte* out) const {
    int64_t periods = count / rows_;
    for (const ShuffleSource& source : sources_) {
      const int64_t step = rows_ * sizes_[source.input];
      const int64_t last = readable * sizes_[source.input] - shuffles_.source_bytes - source.offset;
      periods = std::min(periods, last < 0 ? 0 : last / step + 1);
    }
    const int64_t out_step = static_cast<int64_t>(counts_.size()) * shuffles_.bytes;
    const int64_t most = std::max(kFewestPeriods, kShuffledBytes / out_step);
    for (int64_t first = 0; first < periods; first += most) {
      const int64_t some = std::min(most, periods - first);
      const ShuffleSource* source = sources_.data();
      std::byte* to = out + first * out_step;
      for (const size_t sources : counts_) {
        shuffles_.copies[sources - 1]({in.data(), sizes_.data(), rows_, source, first, some, out_step}, to);
        source += sources;
        to += shuffles_.bytes;
      }
    }
    return periods * rows_;
  }

 private:
  std::string why_not(int64_t row, int64_t vectors) const {
    if (!kHasShuffles) return "this instruction set has no byte shuffle";
    const auto inputs = static_cast<int64_t>(sizes_.size());
    if (inputs > kMostShuffledInputs) return "more than " + std::to_string(kMostShuffledInputs) + " inputs";
    const int64_t most = vectors <= 2 ? kFewVectorsFactor * kShuffledRun : kShuffledRun;
    return row > most * inputs ? "runs of more than " + std::to_string(most) + " bytes on average" : "";
  }

  void make_sources(int64_t vectors) {
    std::vector<int64_t> taken(sizes_.size(), 0);
    size_t input = 0;
    int64_t left = sizes_[0];
    for (int64_t v = 0; v < vectors; ++v) {
      const auto first = static_cast<int64_t>(sources_.size());
      for (size_t place = 0; place < static_cast<size_t>(shuffles_.bytes); ++place, --left) {
        while (left == 0) left = sizes_[input = (input + 1) % sizes_.size()];
        auto source =
            std::ranges::find_if(sources_.begin() + first, sources_.end(), [&](const ShuffleSource& each) {
              return each.input == input && taken[input] - each.offset < shuffles_.source_bytes;
            });
        if (source == sources_.end()) {
          source = sources_.insert(source, {input, taken[input], {}});
          source->indices.fill(kNone);
        }
        source->indices[place] = static_cast<uint8_t>(taken[input]++ - source->offset);
      }
      counts_.push_back(sources_.size() - static_cast<size_t>(first));
    }
  }

  Shuffles shuffles_ = choose_shuffles();
  std::vector<int64_t> sizes_;
  std::string declined_;
  int64_t rows_ = 0;            // of a period
  std::vector<size_t> counts_;  // sources of each vector
  std::vector<ShuffleSource> sources_;
};

#if defined(__GNUC__)
// Lane i of row r of the output is lane r of row i of the inputs.
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

// Transposes inputs by rows in squares: writes whole squares of all inputs, and returns how many rows these
// are. The last square overlaps the one before it; where there are fewer inputs than lanes, the rows of a
// square overlap, and what the last one writes beyond its end belongs to the row that is left.
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
