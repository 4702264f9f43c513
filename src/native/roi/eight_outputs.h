// The taps and samples of eight outputs of a row at a time, one vector for each that they have at most: which
// are transposed, so that a vector is gathered from a row of sums.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "platform/isa.h"
#include "roi/samples.h"
#include "simd/eight.h"

ANYDML_ISA_BEGIN
namespace {

ANYDML_INLINE Eight gather_eight(const double* from, const int64_t* lanes) {
#if defined(ANYDML_ISA_AVX512)
  return (Eight)_mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, _mm512_loadu_si512(lanes), from, 8);
#elif defined(ANYDML_VECTORS)
  using Four = Vector<double>;
  return {Four{from[lanes[0]], from[lanes[1]], from[lanes[2]], from[lanes[3]]},
          Four{from[lanes[4]], from[lanes[5]], from[lanes[6]], from[lanes[7]]}};
#else
  return by_lanes([&](int64_t i) { return from[lanes[i]]; });
#endif
}

// What outputs are made of, transposed: lane i of vector k is for number k of output i, and outputs that have
// fewer have any numbers there, as lanes behind the last output have.
class EightOutputs {
 public:
  // The sums over columns of sums over rows; 0 of an output that has no taps.
  void assign(const Taps& taps, int64_t outputs) {
    assign(taps, outputs, [&](const Tap& tap) { return Lane{tap.index - taps.lowest(), tap.weight}; });
    for (int64_t o = 0; o < outputs; ++o) {
      blocks_[static_cast<size_t>(o / kEight)].inside[o % kEight] = static_cast<double>(taps.inside(o));
    }
  }
  ANYDML_INLINE Eight sum(int64_t b, const double* of_rows) const {
    const Block& block = blocks_[static_cast<size_t>(b)];
    const Eight counts = load_eight(block.counts);
    Eight sum{};
    for (int64_t t = 0; t < block.most; ++t) {
      const auto place = static_cast<size_t>(block.begin + t * kEight);
      const Eight product =
          gather_eight(of_rows, lanes_.data() + place) * load_eight(numbers_.data() + place);
      sum = where_larger(counts, all_eight(static_cast<double>(t)), t == 0 ? product : sum + product, sum);
    }
    return sum;
  }
  // How many samples of the outputs are inside the input.
  ANYDML_INLINE Eight inside(int64_t b) const { return load_eight(blocks_[static_cast<size_t>(b)].inside); }

  // The largest of samples. There is one more element behind those that samples are at in a row.
  void assign(const Samples& samples, int64_t outputs) {
    assign(samples, outputs,
           [&](const Sample& sample) { return Lane{sample.low - samples.lowest(), sample.share}; });
  }
  // Compares the outputs' samples of a row, whose elements are blended, with the best so far and its number:
  // that of sample s of row r is r * most(b) + s.
  ANYDML_INLINE void compare(int64_t b, const double* of_rows, int64_t r, double* best, double* which) const {
    const Block& block = blocks_[static_cast<size_t>(b)];
    const Eight counts = load_eight(block.counts);
    Eight largest = load_eight(best);
    Eight number = load_eight(which);
    for (int64_t s = 0; s < block.most; ++s) {
      const auto place = static_cast<size_t>(block.begin + s * kEight);
      const int64_t* const lanes = lanes_.data() + place;
      const Eight share = load_eight(numbers_.data() + place);
      const Eight left = gather_eight(of_rows, lanes) * (all_eight(1) + all_eight(-1) * share);
      const Eight both = left + gather_eight(of_rows + 1, lanes) * share;
      const Eight at = all_eight(static_cast<double>(s));
      const Eight value = where_larger(counts, at, where_larger(share, Eight{}, both, left), largest);
      number = where_larger(value, largest, all_eight(static_cast<double>(r * block.most)) + at, number);
      largest = where_larger(value, largest, value, largest);
    }
    store_eight(best, largest);
    store_eight(which, number);
  }
  int64_t most(int64_t b) const { return blocks_[static_cast<size_t>(b)].most; }

 private:
  struct Lane {
    int64_t place;
    double number;
  };
  struct Block {
    int64_t begin;
    int64_t most;
    double counts[kEight];
    double inside[kEight];
  };

  template <class All, class LaneOf>
  void assign(const All& all, int64_t outputs, const LaneOf& lane_of) {
    blocks_.clear();
    int64_t size = 0;
    for (int64_t first = 0; first < outputs; first += kEight) {
      const int64_t end = std::min(first + kEight, outputs);
      Block block{size, 0, {}, {}};
      for (int64_t o = first; o < end; ++o) {
        const int64_t count = all.end(o) - all.begin(o);
        block.counts[o - first] = static_cast<double>(count);
        block.most = std::max(block.most, count);
      }
      size += block.most * kEight;
      lanes_.resize(static_cast<size_t>(block.begin));
      lanes_.resize(static_cast<size_t>(size), 0);
      numbers_.resize(static_cast<size_t>(size));
      for (int64_t o = first; o < end; ++o) {
        auto place = static_cast<size_t>(block.begin + o - first);
        for (auto each = all.begin(o); each != all.end(o); ++each, place += kEight) {
          const Lane lane = lane_of(*each);
          lanes_[place] = lane.place;
          numbers_[place] = lane.number;
        }
      }
      blocks_.push_back(block);
    }
  }

  std::vector<Block> blocks_;
  std::vector<int64_t> lanes_;
  std::vector<double> numbers_;
};

// The largest samples of a row of outputs, the first ones of those that are equal.
class LargestOfRow {
 public:
  // Where `is_dense`, of what is in the patch, whose columns are those of `columns`.
  template <class T>
  void find(const Plane& plane, const Samples& rows, int64_t i, const Samples& columns,
            const EightOutputs& eight, const Patch& patch, bool is_dense, int64_t outputs) {
    constexpr double kLeast = -std::numeric_limits<double>::infinity();
    found_.resize(static_cast<size_t>(outputs));
    if (is_dense) {
      const auto size = static_cast<size_t>((outputs + kEight - 1) / kEight * kEight);
      best_.assign(size, kLeast);
      which_.assign(size, 0.0);
      for (const Sample* row = rows.begin(i); row != rows.end(i); ++row) {
        const Tap taps[2]{{row->low, 1 - row->share}, {row->low + 1, row->share}};
        patch.weigh_rows(taps, taps + (row->share != 0 ? 2 : 1), sums_);
        for (int64_t j = 0; j < outputs; j += kEight) {
          eight.compare(j / kEight, sums_.data(), row - rows.begin(i), best_.data() + j, which_.data() + j);
        }
      }
    }
    for (int64_t j = 0; j < outputs; ++j) {
      Largest& found = found_[static_cast<size_t>(j)];
      const double best = is_dense ? best_[static_cast<size_t>(j)] : kLeast;
      if (best == kLeast) {  // one after the other where all are -inf or NaN, too
        found = largest_of<T>(plane, rows, i, columns, j);
        continue;
      }
      const auto number = static_cast<int64_t>(which_[static_cast<size_t>(j)]);
      const int64_t most = eight.most(j / kEight);
      found = {rows.begin(i) + number / most, columns.begin(j) + number % most, best};
    }
  }

  const Largest& of(int64_t j) const { return found_[static_cast<size_t>(j)]; }

 private:
  std::vector<Largest> found_;
  std::vector<double> sums_;
  std::vector<double> best_;
  std::vector<double> which_;
};

}  // namespace
ANYDML_ISA_END
