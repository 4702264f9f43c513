// Short rows by shuffles of bytes: rows that follow each other in the output repeat one pattern of blocks of
// 16 bytes, each of which is a shuffle of 16 bytes of the input, with a constant where it has none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "movement/tuning.h"
#include "platform/isa.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(ANYDML_VECTORS) && \
    (defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512) || defined(__aarch64__))
#define ANYDML_SHUFFLES_BYTES
using ByteVector = Vector<uint8_t, 16>;

// Bytes of `v` by their numbers; 0 where a number is 0x80.
ANYDML_INLINE ByteVector bytes_of(ByteVector v, ByteVector numbers) {
#if defined(__aarch64__)
  return (ByteVector)vqtbl1q_u8((uint8x16_t)v, (uint8x16_t)numbers);
#else
  return (ByteVector)_mm_shuffle_epi8((__m128i)v, (__m128i)numbers);
#endif
}
#endif

class RowShuffles {
 public:
  static constexpr int64_t kConstant = INT64_MIN;

  RowShuffles() = default;
  // `from` has for each byte of a row where it comes from, or kConstant; rows of the input are `step` apart,
  // and those of the output follow each other. The constant is repeated through 16 bytes, from a row's begin.
  RowShuffles(const std::vector<int64_t>& from, int64_t step, [[maybe_unused]] const std::byte* constant)
      : row_(static_cast<int64_t>(from.size())), step_(step) {
#if defined(ANYDML_SHUFFLES_BYTES)
    const int64_t rows = kBlock / std::gcd(row_, kBlock);
    const int64_t last = *std::ranges::max_element(from);
    if (rows * row_ > kMostShuffled || last == kConstant) return;
    for (int64_t at = 0; at < rows * row_; at += kBlock) {
      Block block{};
      int64_t low = INT64_MAX;
      int64_t high = INT64_MIN;
      const auto place = [&](int64_t i) {
        const int64_t in = from[static_cast<size_t>((at + i) % row_)];
        return in == kConstant ? in : in + (at + i) / row_ * step;
      };
      for (int64_t i = 0; i < kBlock; ++i) {
        if (place(i) == kConstant) continue;
        low = std::min(low, place(i));
        high = std::max(high, place(i));
      }
      if (low <= high && high - low >= kBlock) return;
      if (low > high) low = high = last;
      for (int64_t i = 0; i < kBlock; ++i) {
        const bool is_constant = place(i) == kConstant;
        const auto b = static_cast<size_t>(i);
        block.numbers[b] = static_cast<uint8_t>(is_constant ? 0x80 : place(i) - low);
        block.constant[b] =
            is_constant ? static_cast<uint8_t>(constant[(at + i) % row_ % kBlock]) : uint8_t{0};
      }
      block.in = low;
      last_read_ = std::max(last_read_, low + kBlock);
      blocks_.push_back(block);
    }
    rows_ = rows;
#endif
  }

  // Of a group, which is put together at once; 0 where these rows can not be.
  int64_t rows() const { return rows_; }

  // How many of `rows` rows are in groups of which nothing is read behind `end`, from the first row on.
  int64_t rows_before(int64_t end, int64_t rows) const {
    if (rows_ == 0 || last_read_ > end) return 0;
    int64_t groups = rows / rows_;
    if (step_ > 0) groups = std::min(groups, (end - last_read_) / (rows_ * step_) + 1);
    return groups * rows_;
  }

  // Whole groups.
  void copy(int64_t rows, const std::byte* in, std::byte* out) const {
#if defined(ANYDML_SHUFFLES_BYTES)
    for (int64_t r = 0; r < rows; r += rows_, in += rows_ * step_) {
      for (const Block& block : blocks_) {
        const auto bytes = load_vector<ByteVector>(in + block.in);
        const auto numbers =
            load_vector<ByteVector>(reinterpret_cast<const std::byte*>(block.numbers.data()));
        const auto others =
            load_vector<ByteVector>(reinterpret_cast<const std::byte*>(block.constant.data()));
        store_vector(out, bytes_of(bytes, numbers) | others);
        out += kBlock;
      }
    }
#else
    (void)rows, (void)in, (void)out;
#endif
  }

 private:
  static constexpr int64_t kBlock = 16;
  struct Block {
    std::array<uint8_t, 16> numbers;
    std::array<uint8_t, 16> constant;
    int64_t in;
  };

  int64_t row_ = 1;
  int64_t step_ = 0;
  int64_t rows_ = 0;
  int64_t last_read_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace
ANYDML_ISA_END
