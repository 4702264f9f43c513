// Convolution of few channels by few results in each group, depthwise above all: taps are added to rows of
// the output, without panels.
//
//   sums[y, x] += (w[i, j] - zw) * (b[y * sy + i * dy - py, x * sx + j * dx - px] - zb)
//
// Each row of the input that a block of the output needs is read once, as differences of 16 bits, and apart
// by the remainders modulo the stride, so that every tap reads a run. Two taps are one multiplication (madd).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "integer/micro_kernel.h"
#include "integer/product.h"

ANYDML_ISA_BEGIN
namespace {

// Elements of two runs in turn: the lower halves of each 16 bytes, or the upper ones.
#if defined(ANYDML_ISA_AVX512)
ANYDML_INLINE Sums low_pairs(Sums a, Sums b) { return _mm512_unpacklo_epi16(a, b); }
ANYDML_INLINE Sums high_pairs(Sums a, Sums b) { return _mm512_unpackhi_epi16(a, b); }
#elif defined(ANYDML_ISA_AVX2)
ANYDML_INLINE Sums low_pairs(Sums a, Sums b) { return _mm256_unpacklo_epi16(a, b); }
ANYDML_INLINE Sums high_pairs(Sums a, Sums b) { return _mm256_unpackhi_epi16(a, b); }
#elif defined(__SSE2__)
ANYDML_INLINE Sums low_pairs(Sums a, Sums b) { return _mm_unpacklo_epi16(a, b); }
ANYDML_INLINE Sums high_pairs(Sums a, Sums b) { return _mm_unpackhi_epi16(a, b); }
#elif defined(__aarch64__) && defined(ANYDML_VECTORS)
ANYDML_INLINE Sums low_pairs(Sums a, Sums b) {
  return vreinterpretq_s32_s16(vzip1q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
}
ANYDML_INLINE Sums high_pairs(Sums a, Sums b) {
  return vreinterpretq_s32_s16(vzip2q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
}
#else
ANYDML_INLINE Sums pairs_from(const Sums& a, const Sums& b, size_t first) {
  int16_t left[8], right[8], both[8];
  std::memcpy(left, &a, sizeof(left));
  std::memcpy(right, &b, sizeof(right));
  for (size_t i = 0; i < 4; ++i) {
    both[2 * i] = left[first + i];
    both[2 * i + 1] = right[first + i];
  }
  Sums result;
  std::memcpy(&result, both, sizeof(result));
  return result;
}
ANYDML_INLINE Sums low_pairs(Sums a, Sums b) { return pairs_from(a, b, 0); }
ANYDML_INLINE Sums high_pairs(Sums a, Sums b) { return pairs_from(a, b, 4); }
#endif
// Places that are computed together: their sums are two vectors, of the lower and of the upper halves.
constexpr int64_t kRun = 2 * kLanesOfSums;

// Two taps: where their runs begin in the line, and their weights.
struct TapPair {
  int64_t first, second;
  int32_t weights;
};

// sums[x] += sum over pairs of w1 * line[first + x] + w2 * line[second + x]
ANYDML_NOINLINE inline void add_taps(const int16_t* line, const TapPair* pairs, int64_t count, int64_t places,
                                     int32_t* sums) {
  for (int64_t x = 0; x < places; x += kRun) {
    Sums low, high;
    std::memcpy(&low, sums + x, sizeof(Sums));
    std::memcpy(&high, sums + x + kLanesOfSums, sizeof(Sums));
    for (int64_t i = 0; i < count; ++i) {
      Sums first, second;
      std::memcpy(&first, line + pairs[i].first + x, sizeof(Sums));
      std::memcpy(&second, line + pairs[i].second + x, sizeof(Sums));
      const Sums weights = repeated(pairs[i].weights);
      low = multiplied(low, low_pairs(first, second), weights);
      high = multiplied(high, high_pairs(first, second), weights);
    }
    std::memcpy(sums + x, &low, sizeof(Sums));
    std::memcpy(sums + x + kLanesOfSums, &high, sizeof(Sums));
  }
}

// The sums of a run in the order of places.
inline void put_in_order(const int32_t* sums, int64_t places, int32_t* to) {
  for (int64_t x = 0; x < places; x += 4) {
    const int64_t lane = x % kRun / 8 * 4;
    const int64_t half = x % 8 / 4 * kLanesOfSums;
    std::memcpy(to + x, sums + x / kRun * kRun + half + lane,
                static_cast<size_t>(std::min<int64_t>(4, places - x)) * sizeof(int32_t));
  }
}

class WindowProductPlan final : public BlockedProduct {
 public:
  static bool is_taken(const Problem& problem) {
    const Depth& depth = problem.depth;
    return problem.rows <= kFewResults && problem.b_scale.step == 0 && problem.b_zero.step == 0 &&
           depth.channels <= kFewResults && depth.taps() > 1 && depth.count() <= kMostProducts &&
           line_of(depth) <= kLongestLine;
  }

  WindowProductPlan(Problem problem, std::string description)
      : BlockedProduct(std::move(problem), std::move(description), kFewResults, kRun, kProductsPerByte,
                       kWindowBlock),
        read_(reader_of<int16_t, true>(p_.b_type)) {
    const Spatial& width = p_.depth.width;
    // Of the remainders that taps have, each once.
    for (int64_t tap = 0; tap < width.taps; ++tap) {
      const int64_t remainder = tap * width.dilation % width.stride;
      if (std::find(remainders_.begin(), remainders_.end(), remainder) == remainders_.end()) {
        remainders_.push_back(remainder);
      }
    }
    places_ = padded(std::min(width.places, task_.columns), kRun);
    run_ = places_ + (width.taps - 1) * width.dilation / width.stride + kRun;
    lines_ = std::min(p_.depth.height.places, task_.columns / width.places + 2);
    room_.line = take(run_ * static_cast<int64_t>(remainders_.size()), sizeof(int16_t));
    room_.pairs = take(pairs_of_row() * p_.depth.height.taps * p_.rows, sizeof(TapPair));
    room_.sums = take(p_.rows * lines_ * places_, sizeof(int32_t));
    room_.ordered = take(p_.rows * task_.columns, sizeof(int32_t));
  }

 private:
  static constexpr int64_t kLongestLine = 1 << 16;

  struct Room {
    int64_t line, pairs, sums, ordered;
  };

  static int64_t line_of(const Depth& depth) {
    return (kWindowBlock + kRun) + (depth.width.taps - 1) * depth.width.dilation / depth.width.stride + kRun;
  }
  int64_t pairs_of_row() const { return (p_.depth.width.taps + 1) / 2; }

  // The places of a block: of several rows all, else a part of one row.
  struct Places {
    int64_t first_row, rows, begin, end;
  };

  void compute(const Block& block, const void* const* inputs, std::byte* room,
               RowWriter& writer) const override {
    const int64_t width = p_.depth.width.places;
    const int64_t end = block.first_column + block.columns;
    const Places all = {block.first_column / width, (end - 1) / width - block.first_column / width + 1, 0,
                        width};
    if (all.rows > 1 && width <= places_) {
      add_places(block, all, inputs, room);
    } else {
      for (int64_t row = all.first_row; row < all.first_row + all.rows; ++row) {
        const int64_t first = row * width;
        add_places(block,
                   {row, 1, std::max(block.first_column - first, int64_t{0}), std::min(end - first, width)},
                   inputs, room);
      }
    }
    const auto* const ordered = reinterpret_cast<const int32_t*>(room + room_.ordered);
    for (int64_t r = 0; r < block.rows; ++r) {
      const int64_t row = block.first_row + r;
      writer.write(ordered + r * task_.columns, row, block.parameters + row);
    }
  }

  void add_places(const Block& block, const Places& places, const void* const* inputs,
                  std::byte* room) const {
    auto* const sums = reinterpret_cast<int32_t*>(room + room_.sums);
    std::fill_n(sums, p_.rows * lines_ * places_, 0);
    for (int64_t channel = 0; channel < p_.depth.channels && !is_cancelled(); ++channel) {
      add_channel(block, channel, places, inputs, room);
    }
    auto* const ordered = reinterpret_cast<int32_t*>(room + room_.ordered);
    for (int64_t r = 0; r < block.rows; ++r) {
      for (int64_t y = 0; y < places.rows; ++y) {
        write_in_order(sums + (r * lines_ + y) * places_, places, y, block, ordered + r * task_.columns);
      }
    }
  }

  // The part of a row of places that belongs to a block, whose columns begin and end within rows.
  void write_in_order(const int32_t* sums, const Places& places, int64_t y, const Block& block,
                      int32_t* ordered) const {
    const int64_t count = places.end - places.begin;
    const int64_t at = (places.first_row + y) * p_.depth.width.places + places.begin - block.first_column;
    if (at >= 0 && at + count <= block.columns) return put_in_order(sums, count, ordered + at);
    int32_t row[kWindowBlock];
    put_in_order(sums, count, row);
    const int64_t from = std::max<int64_t>(0, -at);
    const int64_t to = std::min(count, block.columns - at);
    std::copy(row + from, row + to, ordered + at + from);
  }

  void add_channel(const Block& block, int64_t channel, const Places& places, const void* const* inputs,
                   std::byte* room) const {
    const Spatial& height = p_.depth.height;
    auto* const line = reinterpret_cast<int16_t*>(room + room_.line);
    auto* const pairs = reinterpret_cast<TapPair*>(room + room_.pairs);
    auto* const sums = reinterpret_cast<int32_t*>(room + room_.sums);
    const auto zero = static_cast<int16_t>(p_.b_zero.integer(inputs, 0));
    for (int64_t r = 0; r < block.rows; ++r) {
      for (int64_t tap = 0; tap < height.taps; ++tap) {
        set_pairs(block, block.first_row + r, channel, tap, inputs,
                  pairs + (r * height.taps + tap) * pairs_of_row());
      }
    }
    const int64_t first = places.first_row * height.stride - height.padding;
    const int64_t last = first + (places.rows - 1) * height.stride + (height.taps - 1) * height.dilation;
    for (int64_t y = std::max<int64_t>(first, 0); y <= std::min(last, height.size - 1); ++y) {
      bool is_read = false;
      for (int64_t tap = 0; tap < height.taps; ++tap) {
        const int64_t from_first = y - first - tap * height.dilation;
        if (from_first < 0 || from_first % height.stride != 0) continue;
        const int64_t row = from_first / height.stride;
        if (row >= places.rows) continue;
        if (!is_read) {
          read_line(block.b + channel * p_.depth.b_step + y * height.step, places, zero, line);
          is_read = true;
        }
        for (int64_t r = 0; r < block.rows; ++r) {
          add_taps(line, pairs + (r * height.taps + tap) * pairs_of_row(), pairs_of_row(),
                   places.end - places.begin, sums + (r * lines_ + row) * places_);
        }
      }
    }
  }

  // A row's elements less their zero point, those of each remainder side by side; 0 where there are none.
  void read_line(const std::byte* from, const Places& places, int16_t zero, int16_t* line) const {
    const Spatial& width = p_.depth.width;
    for (const int64_t remainder : remainders_) {
      // Element i is at first + i * stride.
      const int64_t first = places.begin * width.stride + remainder - width.padding;
      const int64_t begin = first >= 0 ? 0 : std::min(run_, (-first + width.stride - 1) / width.stride);
      const int64_t end =
          first >= width.size ? begin : std::clamp((width.size - 1 - first) / width.stride + 1, begin, run_);
      std::fill(line, line + begin, int16_t{0});
      if (begin < end) {
        read_(from + (first + begin * width.stride) * width.step, width.stride * width.step, end - begin,
              &zero, line + begin);
      }
      std::fill(line + end, line + run_, int16_t{0});
      line += run_;
    }
  }

  // The taps of a row of a filter, of one channel and result.
  void set_pairs(const Block& block, int64_t result, int64_t channel, int64_t tap, const void* const* inputs,
                 TapPair* pairs) const {
    const Depth& depth = p_.depth;
    const std::byte* const from = block.a + result * p_.a_row + channel * depth.a_step + tap * depth.a_rows;
    const int64_t zero = p_.a_zero.integer(inputs, block.parameters + result);
    const auto weight = [&](int64_t column) {
      const std::byte* const at = from + column * depth.a_columns;
      const int64_t value = p_.a_type == DataType::kInt8 ? load<int8_t>(at) : load<uint8_t>(at);
      return static_cast<int16_t>(value - zero);
    };
    const auto begin = [&](int64_t column) {
      const int64_t at = column * depth.width.dilation;
      const auto found = std::find(remainders_.begin(), remainders_.end(), at % depth.width.stride);
      return (found - remainders_.begin()) * run_ + at / depth.width.stride;
    };
    for (int64_t column = 0; column < depth.width.taps; column += 2, ++pairs) {
      const bool are_two = column + 1 < depth.width.taps;
      const int16_t weights[2] = {weight(column), are_two ? weight(column + 1) : int16_t{0}};
      pairs->first = begin(column);
      pairs->second = are_two ? begin(column + 1) : pairs->first;
      std::memcpy(&pairs->weights, weights, sizeof(weights));
    }
  }

  Read<int16_t> read_;
  std::vector<int64_t> remainders_;
  int64_t places_;  // of a row of a block, in whole runs
  int64_t run_;     // elements of one remainder
  int64_t lines_;   // rows of places of a block
  Room room_;
};

}  // namespace
ANYDML_ISA_END
