// Convolution of few channels by few results in each group, depthwise above all: taps are added to runs of
// places of a grid, without panels.
//
//   sums[place] += (w[tap] - zw) * (b[place + shift of the tap] - zb)
//
// Two taps are one multiplication of differences of 16 bits. With VNNI four taps that lie side by side are
// one of bytes as they are, and what zero points add is taken off afterwards, as in byte_convolution.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "integer/byte_tiles.h"
#include "integer/grid_product.h"
#include "integer/known.h"
#include "integer/micro_kernel.h"
#include "platform/cpu_features.h"
#include "platform/isa.h"

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

// Taps that are added at once: where their runs begin in the grid, in places, and their weights. Two of 16
// bits, or four of 8 from `first` on.
struct Taps {
  int64_t first, second;
  int32_t weights;
};

// sums[x] = sum over taps of w1 * grid[first + x] + w2 * grid[second + x]
ANYDML_NOINLINE inline void sum_pairs(const int16_t* grid, const Taps* taps, int64_t count, int64_t places,
                                      int32_t* sums) {
  // As vectors have them, low halves of 16 bytes before high ones.
  int32_t ordered[kRun];
  for (int64_t x = 0; x < places; x += kRun) {
    Sums low = {}, high = {};
    for (int64_t i = 0; i < count; ++i) {
      Sums first, second;
      std::memcpy(&first, grid + taps[i].first + x, sizeof(Sums));
      std::memcpy(&second, grid + taps[i].second + x, sizeof(Sums));
      const Sums weights = repeated(taps[i].weights);
      low = multiplied(low, low_pairs(first, second), weights);
      high = multiplied(high, high_pairs(first, second), weights);
    }
    int32_t halves[2][kLanesOfSums];
    std::memcpy(halves[0], &low, sizeof(low));
    std::memcpy(halves[1], &high, sizeof(high));
    for (int64_t lane = 0; lane < kLanesOfSums; lane += 4) {
      std::memcpy(ordered + 2 * lane, halves[0] + lane, 4 * sizeof(int32_t));
      std::memcpy(ordered + 2 * lane + 4, halves[1] + lane, 4 * sizeof(int32_t));
    }
    std::memcpy(sums + x, ordered, sizeof(ordered));
  }
}

#if defined(ANYDML_BYTE_TILES)
// sums[x] = sum over taps of the dot product of four weights and grid[first + x] to grid[first + x + 3]
ANYDML_VNNI ANYDML_NOINLINE inline void sum_fours(const uint8_t* grid, const Taps* taps, int64_t count,
                                                  int64_t places, int32_t* sums) {
  // Of 16 bytes the four from each of the first four, of the next four, and of those behind.
  const __m512i windows[3] = {
      _mm512_maskz_broadcast_i32x4(0xffff, _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6)),
      _mm512_maskz_broadcast_i32x4(0xffff, _mm_setr_epi8(4, 5, 6, 7, 5, 6, 7, 8, 6, 7, 8, 9, 7, 8, 9, 10)),
      _mm512_maskz_broadcast_i32x4(
          0xffff, _mm_setr_epi8(8, 9, 10, 11, 9, 10, 11, 12, 10, 11, 12, 13, 11, 12, 13, 14))};
  for (int64_t x = 0; x < places; x += 64) {
    __m512i all[4] = {};
    for (int64_t i = 0; i < count; ++i) {
      const __m512i bytes = _mm512_loadu_si512(grid + taps[i].first + x);
      const __m512i behind = _mm512_loadu_si512(grid + taps[i].first + x + 4);
      const __m512i weights = _mm512_set1_epi32(taps[i].weights);
      all[0] = _mm512_dpbusd_epi32(all[0], _mm512_shuffle_epi8(bytes, windows[0]), weights);
      all[1] = _mm512_dpbusd_epi32(all[1], _mm512_shuffle_epi8(bytes, windows[1]), weights);
      all[2] = _mm512_dpbusd_epi32(all[2], _mm512_shuffle_epi8(bytes, windows[2]), weights);
      all[3] = _mm512_dpbusd_epi32(all[3], _mm512_shuffle_epi8(behind, windows[2]), weights);
    }
    transpose_sixteens(all, sums + x, 64);
  }
}
#endif

class WindowProductPlan final : public GridProduct {
 public:
  static bool is_taken(const Problem& problem) {
    const Depth& depth = problem.depth;
    return problem.rows <= kFewResults && depth.channels <= kFewResults && depth.count() <= kMostProducts &&
           Grid(depth, 1, std::min(kUnit, depth.width.places), kUnit).places() * depth.channels *
                   cell_size() <=
               2 * kGridBytes;
  }

  // What does not depend on the elements of B: of a result, and of filters that stay, of all.
  struct Result {
    RowScale scale;
    uint32_t zero;
    uint32_t total;  // of the weights
  };
  struct Filters {
    std::vector<Taps> taps;
    std::vector<Taps> ones;
    std::vector<Result> results;
    KnownInputs inputs;
  };

  WindowProductPlan(const Problem& problem, std::string description,
                    std::shared_ptr<const Filters> known = nullptr)
      : GridProduct(problem, std::move(description), kUnit, problem.depth.channels * cell_size(), kFewResults,
                    kProductsPerByte),
        known_(std::move(known)),
        in_fours_(cell_size() == 1),
        flip_a_(in_fours_ && p_.a_type == DataType::kUint8 ? 0x80 : 0),
        flip_b_(in_fours_ && p_.b_type == DataType::kInt8 ? 0x80 : 0),
        read_(reader_of<int16_t, true>(p_.b_type)) {
    set_taps();
    room_.rows = take(grid_.height.count() * grid_.width.count() * (shape_.rows + grid_.height.reach()),
                      sizeof(Grid::Row));
    room_.count = take(1, sizeof(int64_t));
    // Four bytes are read from the last place on, and as many behind.
    room_.grid = take(p_.depth.channels * grid_.places() + 8, static_cast<size_t>(cell_size()));
    room_.taps = take((p_.rows + 1) * p_.depth.channels * static_cast<int64_t>(taps_.size()), sizeof(Taps));
    room_.sums = take(2 * kStrip, sizeof(int32_t));
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    std::vector<const void*> all;
    if (known_) {
      all = known_->inputs.with(inputs);
      inputs = all.data();
    }
    each_block(inputs, outputs, [&](const Block& block, std::byte* out, std::byte* room) {
      compute(block, inputs, out, room);
    });
  }

  bool has_prepack() const override { return true; }
  std::unique_ptr<Plan> prepack(const void* const* inputs) const override {
    if (inputs[p_.a] == nullptr || inputs[p_.b] != nullptr) return nullptr;
    for (const Parameter& each :
         {p_.a_scale, p_.a_zero, p_.b_scale, p_.b_zero, p_.out_scale, p_.out_zero, p_.row_bias}) {
      if (each.input >= 0 && inputs[each.input] == nullptr) return nullptr;
    }
    auto known = std::make_shared<Filters>();
    const int64_t results = p_.rows * p_.outer[1].size;
    if (!known->inputs.copy(p_, inputs, results)) return nullptr;
    const int64_t count = p_.depth.channels * static_cast<int64_t>(taps_.size());
    known->taps.resize(static_cast<size_t>(results * count));
    known->ones.resize(static_cast<size_t>(count));
    read_taps(nullptr, 0, known->ones.data());
    const auto* const a = static_cast<const std::byte*>(inputs[p_.a]);
    for (int64_t i = 0; i < results; ++i) {
      const std::byte* const filter = a + i / p_.rows * p_.outer[1].a + i % p_.rows * p_.a_row;
      known->results.push_back(result_of(inputs, i, filter, known->taps.data() + i * count));
    }
    return std::make_unique<WindowProductPlan>(p_, description(), std::move(known));
  }
  int64_t prepack_bytes() const override {
    return known_ ? static_cast<int64_t>(known_->taps.size() * sizeof(Taps) +
                                         known_->results.size() * sizeof(Result))
                  : 0;
  }

 private:
  static constexpr int64_t kUnit = 64;
  static_assert(kUnit % kRun == 0 && kStrip % kUnit == 0);

  // Taps of a filter that are added at once, by the bytes from its first one; none is kNone.
  struct Group {
    int64_t first, second;
    std::array<int64_t, 4> taps;
  };
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  struct Room {
    int64_t rows, count, grid, taps, sums;
  };

  static int64_t cell_size() {
#if defined(ANYDML_BYTE_TILES)
    if (has_vnni()) return 1;
#endif
    return 2;
  }

  template <class T>
  static T* at(std::byte* room, int64_t place) {
    return reinterpret_cast<T*>(room + place);
  }

  // Pairs of a row, or those of a row's phase that lie within four places.
  void set_taps() {
    const Spatial& width = p_.depth.width;
    for (int64_t row = 0; row < p_.depth.height.taps; ++row) {
      std::vector<bool> are_in(static_cast<size_t>(width.taps));
      for (int64_t column = 0; column < width.taps; ++column) {
        if (are_in[static_cast<size_t>(column)]) continue;
        const int64_t first = grid_.offset(row, column);
        const int64_t tap = row * p_.depth.a_rows;
        Group group = {first, first, {tap + column * p_.depth.a_columns, kNone, kNone, kNone}};
        for (int64_t other = column + 1; other < width.taps; ++other) {
          const int64_t at = grid_.offset(row, other);
          const int64_t place = in_fours_ ? at - first : 1;
          const bool is_beside = !in_fours_ || grid_.width.phase(other) == grid_.width.phase(column);
          if (!is_beside || place > 3 || are_in[static_cast<size_t>(other)]) continue;
          int64_t& free = group.taps[static_cast<size_t>(place)];
          if (free != kNone) continue;
          free = tap + other * p_.depth.a_columns;
          group.second = at;
          are_in[static_cast<size_t>(other)] = true;
        }
        taps_.push_back(group);
      }
    }
  }

  int64_t zero_a(const void* const* inputs, int64_t result) const {
    return p_.a_zero.integer(inputs, result) - (flip_a_ != 0 ? 128 : 0);
  }

  // `parameters` is its number among scales, zero points and biases.
  Result result_of(const void* const* inputs, int64_t parameters, const std::byte* filter, Taps* taps) const {
    const int64_t zero = zero_a(inputs, parameters);
    const int64_t total = read_taps(filter, in_fours_ ? 0 : zero, taps);
    return {row_scale(p_, inputs, parameters), static_cast<uint32_t>(in_fours_ ? zero : 0),
            static_cast<uint32_t>(total)};
  }

  // The taps of a filter, or ones instead of weights where that is null; returns the sum of the weights.
  int64_t read_taps(const std::byte* filter, int64_t zero, Taps* taps) const {
    const Depth& depth = p_.depth;
    int64_t total = 0;
    for (int64_t channel = 0; channel < depth.channels; ++channel) {
      const std::byte* const from = filter == nullptr ? nullptr : filter + channel * depth.a_step;
      const int64_t plane = channel * grid_.places();
      for (const Group& group : taps_) {
        int32_t weights[4] = {};
        for (size_t i = 0; i < 4; ++i) {
          if (group.taps[i] == kNone) continue;
          weights[i] = 1;
          if (from != nullptr) {
            const auto bits = static_cast<uint8_t>(load<uint8_t>(from + group.taps[i]) ^ flip_a_);
            const bool is_signed = in_fours_ || p_.a_type == DataType::kInt8;
            weights[i] = static_cast<int32_t>((is_signed ? static_cast<int8_t>(bits) : bits) - zero);
          }
          total += weights[i];
        }
        taps->first = group.first + plane;
        taps->second = group.second + plane;
        if (in_fours_) {
          const int8_t four[4] = {static_cast<int8_t>(weights[0]), static_cast<int8_t>(weights[1]),
                                  static_cast<int8_t>(weights[2]), static_cast<int8_t>(weights[3])};
          std::memcpy(&taps->weights, four, sizeof(four));
        } else {
          const int16_t two[2] = {static_cast<int16_t>(weights[0]), static_cast<int16_t>(weights[1])};
          std::memcpy(&taps->weights, two, sizeof(two));
        }
        ++taps;
      }
    }
    return total;
  }

  void sum(const Taps* taps, int64_t begin, int64_t places, std::byte* room, int32_t* sums) const {
    const int64_t count = p_.depth.channels * static_cast<int64_t>(taps_.size());
#if defined(ANYDML_BYTE_TILES)
    if (in_fours_) return sum_fours(at<uint8_t>(room, room_.grid) + begin, taps, count, places, sums);
#endif
    sum_pairs(at<int16_t>(room, room_.grid) + begin, taps, count, places, sums);
  }

  void compute(const Block& block, const void* const* inputs, std::byte* out, std::byte* room) const {
    const int64_t zero_b = p_.b_zero.integer(inputs, 0);
    fill_grid(block, zero_b, room);
    // What zero points add, of bytes that are multiplied as they are.
    const auto flipped_zero = static_cast<uint32_t>(zero_b - (flip_b_ != 0 ? -128 : 0));
    const int64_t count = p_.depth.channels * static_cast<int64_t>(taps_.size());
    const int64_t first = block.parameters + block.first_result;
    const Taps* taps = at<Taps>(room, room_.taps);
    const Taps* ones = taps + p_.rows * count;
    Result own[kFewResults];
    const Result* results = own;
    if (known_) {
      taps = known_->taps.data() + first * count;
      ones = known_->ones.data();
      results = known_->results.data() + first;
    } else {
      auto* const to = at<Taps>(room, room_.taps);
      for (int64_t r = 0; r < block.results; ++r)
        own[r] = result_of(inputs, first + r, block.a + (block.first_result + r) * p_.a_row, to + r * count);
      if (std::any_of(own, own + block.results, [](const Result& each) { return each.zero != 0; }))
        read_taps(nullptr, 0, to + p_.rows * count);
    }
    int32_t addends[kFewResults] = {};
    bool have_zeros = false;
    for (int64_t r = 0; r < block.results && in_fours_; ++r) {
      have_zeros |= results[r].zero != 0;
      addends[r] = static_cast<int32_t>(
          -flipped_zero * (results[r].total - static_cast<uint32_t>(p_.depth.count()) * results[r].zero));
    }
    int32_t* const sums = at<int32_t>(room, room_.sums);
    const int64_t all = (block.part.rows - 1) * grid_.pitch + block.part.end - block.part.begin;
    for (int64_t begin = 0; begin < all; begin += kStrip) {
      const int64_t places = std::min(kStrip, all - begin);
      if (have_zeros) sum(ones, begin, places, room, sums + kStrip);
      const RowWriter writer = writer_of(block, inputs, out, begin, places);
      for (int64_t r = 0; r < block.results; ++r) {
        sum(taps + r * count, begin, places, room, sums);
        if (results[r].zero != 0) {
          for (int64_t i = 0; i < places; ++i) {
            sums[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) -
                                           results[r].zero * static_cast<uint32_t>(sums[kStrip + i]));
          }
        }
        writer.write(static_cast<const int32_t*>(sums), block.first_result + r, results[r].scale, addends[r]);
      }
    }
  }

  // Of a part that the thread had before only the elements are others.
  void fill_grid(const Block& block, int64_t zero_b, std::byte* room) const {
    auto* const rows = at<Grid::Row>(room, room_.rows);
    int64_t& count = *at<int64_t>(room, room_.count);
    if (!block.is_again) {
      count = 0;
      grid_.each_row(block.part, [&](const Grid::Row& row) { rows[count++] = row; });
    }
    const Depth& depth = p_.depth;
    const int64_t step = depth.width.stride * depth.width.step;
    const auto zero = static_cast<uint8_t>(zero_b ^ flip_b_);
    const auto zero_of_16 = static_cast<int16_t>(zero_b);
    for (int64_t channel = 0; channel < depth.channels; ++channel) {
      const std::byte* const from = block.b + channel * depth.b_step;
      for (int64_t i = 0; i < count; ++i) {
        const Grid::Row& row = rows[i];
        const int64_t begin = row.y < 0 ? 0 : row.begin;
        const int64_t end = row.y < 0 ? 0 : row.end;
        const std::byte* const elements = from + row.y * depth.height.step + row.x * depth.width.step;
        const int64_t place = channel * grid_.places() + row.place;
        if (in_fours_) {
          uint8_t* const to = at<uint8_t>(room, room_.grid) + place;
          if (block.is_again) {
            // Padding is there already.
            if (row.alike == 0) continue;
            read_rows(elements, depth.height.stride * depth.height.step, step, row.alike, end - begin,
                      flip_b_, reinterpret_cast<std::byte*>(to + begin), grid_.pitch);
            i += row.alike - 1;
            continue;
          }
          std::fill_n(to, begin, zero);
          std::fill(to + end, to + grid_.pitch, zero);
          read_bytes(elements, step, end - begin, flip_b_, reinterpret_cast<std::byte*>(to + begin));
        } else {
          int16_t* const to = at<int16_t>(room, room_.grid) + place;
          std::fill_n(to, begin, int16_t{0});
          if (begin < end) read_(elements, step, end - begin, &zero_of_16, to + begin);
          std::fill(to + end, to + grid_.pitch, int16_t{0});
        }
      }
    }
  }

  std::shared_ptr<const Filters> known_;
  bool in_fours_;
  // The highest bits, which make elements of A signed and those of B unsigned.
  uint8_t flip_a_, flip_b_;
  Read<int16_t> read_;
  std::vector<Group> taps_;
  Room room_ = {};
};

}  // namespace
ANYDML_ISA_END
