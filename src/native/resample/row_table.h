// Sums along a row whose elements are interpolated: eight outputs at once, which shuffle what they are made
// of out of the same few elements. Most blocks of eight are alike but for where they begin.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "platform/isa.h"
#include "resample/table.h"
#include "simd/eight.h"

ANYDML_ISA_BEGIN
namespace {

// From where eight outputs' first elements are taken: a vector of eight, two of them, or anywhere.
enum class Reach : int32_t { kEight, kSixteen, kAny };

struct Pattern {
  int64_t lanes[kEight];  // the first elements, from the block's
  double counts[kEight];
  int64_t weights;  // where they begin: for each tap those of the eight outputs
  int32_t taps;     // the most of them
  bool is_full;     // whether all have as many
  Reach reach;
};

struct Block {
  int64_t base;
  int64_t pattern;
};

// Of pixels of `width` elements, which lie next to each other: element c of output o is made of the elements
// c of inputs.
class RowTable {
 public:
  RowTable() = default;
  RowTable(const Table& table, int64_t width) : width_(width), size_(table.size() * width) {
    std::unordered_map<std::string, int64_t> known;
    for (int64_t j = 0; j < size_; j += kEight) blocks_.push_back(block_of(table, j, known));
  }

  int64_t size() const { return size_; }
  int64_t blocks() const { return static_cast<int64_t>(blocks_.size()); }

  // Sums of blocks, of elements of which `from` would be the first one.
  template <class Store>
  ANYDML_INLINE void sum(int64_t begin, int64_t end, const double* from, const Store& store) const {
    for (int64_t b = begin; b < end; ++b) {
      const Block& block = blocks_[static_cast<size_t>(b)];
      const Pattern& pattern = patterns_[static_cast<size_t>(block.pattern)];
      store(b * kEight, sum_of(pattern, from + block.base));
    }
  }

 private:
  Block block_of(const Table& table, int64_t j, std::unordered_map<std::string, int64_t>& known) {
    Pattern pattern{};
    int64_t lanes[kEight]{};
    int64_t base = INT64_MAX;
    int64_t last = 0;
    int64_t fewest = INT64_MAX;
    for (int64_t i = 0; i < kEight; ++i) {
      const int64_t o = (j + i) / width_;
      const int64_t taps = j + i < size_ ? table.count_of(o) : 0;
      pattern.counts[i] = static_cast<double>(taps);
      pattern.taps = std::max(pattern.taps, static_cast<int32_t>(taps));
      fewest = std::min(fewest, taps);
      if (taps == 0) continue;
      lanes[i] = table.first_of(o) * width_ + (j + i) % width_;
      base = std::min(base, lanes[i]);
      last = std::max(last, lanes[i]);
    }
    if (pattern.taps == 0) base = last = 0;
    pattern.is_full = fewest == pattern.taps;
    pattern.reach = last - base < kEight       ? Reach::kEight
                    : last - base < 2 * kEight ? Reach::kSixteen
                                               : Reach::kAny;
    std::vector<double> weights(static_cast<size_t>(pattern.taps * kEight));
    for (int64_t i = 0; i < kEight; ++i) {
      const auto taps = static_cast<int64_t>(pattern.counts[i]);
      if (taps == 0) continue;
      pattern.lanes[i] = lanes[i] - base;
      const double* const of_output = table.weights_of((j + i) / width_);
      for (int64_t t = 0; t < taps; ++t) weights[static_cast<size_t>(t * kEight + i)] = of_output[t];
    }
    std::string key;
    const auto append = [&](const void* from, size_t bytes) {
      key.append(static_cast<const char*>(from), bytes);
    };
    append(pattern.lanes, sizeof(pattern.lanes));
    append(pattern.counts, sizeof(pattern.counts));
    append(weights.data(), weights.size() * sizeof(double));
    const auto [found, is_new] = known.emplace(std::move(key), static_cast<int64_t>(patterns_.size()));
    if (is_new) {
      pattern.weights = static_cast<int64_t>(weights_.size());
      weights_.insert(weights_.end(), weights.begin(), weights.end());
      patterns_.push_back(pattern);
    }
    return {base, found->second};
  }

  ANYDML_INLINE Eight sum_of(const Pattern& pattern, const double* from) const {
#if defined(ANYDML_ISA_AVX512)
    const __m512i lanes = _mm512_loadu_si512(pattern.lanes);
    if (pattern.reach == Reach::kEight) {
      return sum_by(pattern, from, [&](const double* at) {
        return (Eight)_mm512_maskz_permutexvar_pd(0xff, lanes, _mm512_loadu_pd(at));
      });
    }
    if (pattern.reach == Reach::kSixteen) {
      return sum_by(pattern, from, [&](const double* at) {
        return (Eight)_mm512_permutex2var_pd(_mm512_loadu_pd(at), lanes, _mm512_loadu_pd(at + kEight));
      });
    }
    return sum_by(pattern, from, [&](const double* at) {
      return (Eight)_mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, lanes, at, 8);
    });
#elif defined(ANYDML_ISA_AVX2)
    const auto* const lanes = reinterpret_cast<const __m256i*>(pattern.lanes);
    const __m256i low = _mm256_loadu_si256(lanes);
    const __m256i high = _mm256_loadu_si256(lanes + 1);
    if (pattern.reach == Reach::kEight) {
      // Shuffles of both halves and a choice, as gathers take longer: of numbers below 8 the last two bits.
      const auto order_of = [](__m256i lane) {
        const __m256i first = _mm256_slli_epi64(lane, 1);
        return _mm256_or_si256(first, _mm256_slli_epi64(_mm256_add_epi64(first, _mm256_set1_epi64x(1)), 32));
      };
      const auto is_behind = [](__m256i lane) {
        return _mm256_castsi256_pd(_mm256_cmpgt_epi64(lane, _mm256_set1_epi64x(3)));
      };
      const __m256i orders[] = {order_of(low), order_of(high)};
      const __m256d behind[] = {is_behind(low), is_behind(high)};
      return sum_by(pattern, from, [&](const double* at) {
        const __m256i first = _mm256_castpd_si256(_mm256_loadu_pd(at));
        const __m256i second = _mm256_castpd_si256(_mm256_loadu_pd(at + kEight / 2));
        const auto picked = [&](int half) {
          const __m256i a = _mm256_permutevar8x32_epi32(first, orders[half]);
          const __m256i b = _mm256_permutevar8x32_epi32(second, orders[half]);
          return (Vector<double>)_mm256_blendv_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b),
                                                  behind[half]);
        };
        return Eight{picked(0), picked(1)};
      });
    }
    return sum_by(pattern, from, [&](const double* at) {
      return Eight{(Vector<double>)_mm256_i64gather_pd(at, low, 8),
                   (Vector<double>)_mm256_i64gather_pd(at, high, 8)};
    });
#else
    return sum_by(pattern, from, [&](const double* at) {
      double picked[kEight];
      for (int64_t i = 0; i < kEight; ++i) picked[i] = at[pattern.lanes[i]];
      return load_eight(picked);
    });
#endif
  }

  template <class Pick>
  ANYDML_INLINE Eight sum_by(const Pattern& pattern, const double* from, const Pick& pick) const {
    const double* weights = weights_.data() + pattern.weights;
    if (pattern.is_full) {
      if (pattern.taps == 2) {
        return pick(from) * load_eight(weights) + pick(from + width_) * load_eight(weights + kEight);
      }
      if (pattern.taps == 0) return Eight{};
      Eight sum = pick(from) * load_eight(weights);
      for (int32_t t = 1; t < pattern.taps; ++t) {
        sum = sum + pick(from += width_) * load_eight(weights += kEight);
      }
      return sum;
    }
    // Elements that an output has no weight for may be infinite or NaN, and are left out rather than
    // multiplied by 0.
    const Eight counts = load_eight(pattern.counts);
    Eight sum{};
    for (int32_t t = 0; t < pattern.taps; ++t, from += width_, weights += kEight) {
      const Eight product = pick(from) * load_eight(weights);
      sum = where_larger(counts, all_eight(t), t == 0 ? product : sum + product, sum);
    }
    return sum;
  }

  int64_t width_ = 1;
  int64_t size_ = 0;
  std::vector<Block> blocks_;
  std::vector<Pattern> patterns_;
  std::vector<double> weights_;
};

}  // namespace
ANYDML_ISA_END
