// Rows of coordinates, written one behind the other.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>
#if defined(ANYDML_ISA_AVX512)
#include <immintrin.h>
#endif

#include "platform/isa.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

constexpr size_t kMostColumns = 8;
constexpr int64_t kCoordinate = sizeof(uint32_t);
// Elements of a word from which on vectors are compressed, as that takes as long for few.
constexpr int kManyOfWord = 10;

// The dimensions that coordinates are along, and the steps of the output in bytes.
struct Table {
  std::vector<int64_t> sizes;
  int64_t row_step;
  int64_t column_step;

  int64_t row_bytes() const { return static_cast<int64_t>(sizes.size()) * kCoordinate; }
  bool is_packed() const {
    return row_step == row_bytes() && (column_step == kCoordinate || sizes.size() == 1);
  }
};

// Writes the rows of elements in row-major order. Of those of one line, which are along the last dimension,
// all coordinates but the last are the same: they are kept, and found anew where a line ends. Of packed rows
// the number of columns is known to the compiler; 0 stands for any.
template <int kColumns>
class Rows {
 public:
  Rows(const Table& table, int64_t element, std::byte* row)
      : columns_(kColumns == 0 ? table.sizes.size() : static_cast<size_t>(kColumns)),
        line_(table.sizes.back()),
        row_step_(table.row_step),
        column_step_(table.column_step),
        row_(row) {
    std::ranges::copy(table.sizes, sizes_.begin());
    find_line(element);
  }

  // The elements from the first one on, where a word has a bit.
  ANYDML_INLINE void write(int64_t first, uint64_t word) {
#if defined(ANYDML_ISA_AVX512)
    if constexpr (kColumns == 1 || kColumns == 2) {
      if (first + 64 <= end_ && std::popcount(word) >= kManyOfWord) {
        write_vectors(static_cast<uint32_t>(first - end_ + line_), word);
        return;
      }
    }
#endif
    for (; word != 0; word &= word - 1) {
      const int64_t element = first + std::countr_zero(word);
      if (element >= end_) {
        if (element < end_ + line_) {
          next_line();
        } else {
          find_line(element);
        }
      }
      write_row(static_cast<uint32_t>(element - end_ + line_));
    }
  }

 private:
  ANYDML_INLINE void write_row(uint32_t last) {
    if constexpr (kColumns == 0) {
      for (size_t i = 0; i + 1 < columns_; ++i) {
        store(row_ + static_cast<int64_t>(i) * column_step_, others_[i]);
      }
      store(row_ + static_cast<int64_t>(columns_ - 1) * column_step_, last);
      row_ += row_step_;
    } else {
      std::memcpy(row_, others_.data(), (kColumns - 1) * kCoordinate);
      store(row_ + (kColumns - 1) * kCoordinate, last);
      row_ += kColumns * kCoordinate;
    }
  }

#if defined(ANYDML_ISA_AVX512)
  // All 64 are of one line.
  ANYDML_INLINE void write_vectors(uint32_t last, uint64_t word) {
    if constexpr (kColumns == 1) {
      const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      for (int i = 0; i < 4; ++i, word >>= 16) {
        const auto those = static_cast<__mmask16>(word);
        const __m512i numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(last + 16 * i)));
        const int count = std::popcount(static_cast<uint16_t>(those));
        _mm512_mask_storeu_epi32(row_, static_cast<__mmask16>((1U << count) - 1),
                                 _mm512_maskz_compress_epi32(those, numbers));
        row_ += count * kCoordinate;
      }
    } else {
      // The last coordinate is the upper half.
      constexpr int64_t kNext = int64_t{1} << 32;
      const __m512i lanes =
          _mm512_setr_epi64(0, kNext, 2 * kNext, 3 * kNext, 4 * kNext, 5 * kNext, 6 * kNext, 7 * kNext);
      for (int i = 0; i < 8; ++i, word >>= 8) {
        const auto those = static_cast<__mmask8>(word);
        const auto first = static_cast<int64_t>(static_cast<uint64_t>(last + 8 * i) << 32 | others_[0]);
        const __m512i rows = _mm512_add_epi64(lanes, _mm512_set1_epi64(first));
        const int count = std::popcount(static_cast<uint8_t>(those));
        _mm512_mask_storeu_epi64(row_, static_cast<__mmask8>((1U << count) - 1),
                                 _mm512_maskz_compress_epi64(those, rows));
        row_ += count * 2 * kCoordinate;
      }
    }
  }
#endif

  void next_line() {
    end_ += line_;
    for (size_t i = columns_ - 1; i-- > 0;) {
      if (++others_[i] < sizes_[i]) return;
      others_[i] = 0;
    }
  }

  ANYDML_NOINLINE void find_line(int64_t element) {
    int64_t line = element / line_;
    end_ = (line + 1) * line_;
    for (size_t i = columns_ - 1; i-- > 0; line /= sizes_[i]) {
      others_[i] = static_cast<uint32_t>(line % sizes_[i]);
    }
  }

  size_t columns_;
  std::array<int64_t, kMostColumns> sizes_{};
  std::array<uint32_t, kMostColumns> others_{};  // the coordinates but the last
  int64_t line_;
  int64_t end_ = 0;  // the first element behind the line
  int64_t row_step_;
  int64_t column_step_;
  std::byte* row_;
};

}  // namespace
ANYDML_ISA_END
