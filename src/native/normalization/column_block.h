// Blocks of columns: groups side by side whose elements are a step apart, as lines of single precision in a
// buffer. Memory is read and written by pieces of rows that are as long as the buffer allows, as elements
// that are lanes of one line lie far from the next ones; and halves are converted once for all passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/layout.h"
#include "movement/copy.h"
#include "normalization/geometry.h"
#include "normalization/line.h"
#include "normalization/sixteen.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/scratch.h"
#include "simd/half.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Sixteen singles or halves as singles, and back.
ANYDML_INLINE void widen_sixteen(const std::byte* from, bool is_half, std::byte* to) {
  store_sixteen<float>(to, is_half ? load_sixteen<Half>(from) : load_sixteen<float>(from));
}
ANYDML_INLINE void narrow_sixteen(const std::byte* from, bool is_half, std::byte* to) {
  const Sixteen x = load_sixteen<float>(from);
  is_half ? store_sixteen<Half>(to, x) : store_sixteen<float>(to, x);
}

// A buffer of some rows of some columns: a line of vectors for each sixteen columns, one line after the
// other.
class ColumnBlock {
 public:
  // Of so many numbers at most. There is a line of the cache between lines, so that not all begin in one set.
  ColumnBlock(int64_t most_rows, int64_t most_lines, bool is_half)
      : is_half_(is_half),
        item_(is_half ? sizeof(Half) : sizeof(float)),
        pitch_((most_rows + 1) * kLineBytes),
        numbers_(most_lines * pitch_) {}

  std::byte* line(int64_t number) const { return numbers_.bytes() + number * pitch_; }

  // Of rows `step` bytes apart; of columns that are one where they are `is_one`. Lanes behind the last column
  // are copies of it.
  void load(const std::byte* from, int64_t step, int64_t rows, int64_t columns, bool is_one) const {
    const int64_t piece = kLanes * item_;
    const int64_t whole = is_one ? 0 : columns / kLanes;
    const int64_t lines = divided_up(columns, kLanes);
    const int64_t pitch = pitch_;
    const bool is_half = is_half_;
    for (int64_t r = 0; r < rows; r += kRowsAtOnce, from += kRowsAtOnce * step) {
      const int64_t some_rows = std::min(kRowsAtOnce, rows - r);
      std::byte* to = line(0) + r * kLineBytes;
      for (int64_t i = 0; i < whole; ++i, to += pitch) {
        for (int64_t k = 0; k < some_rows; ++k) {
          widen_sixteen(from + k * step + i * piece, is_half, to + k * kLineBytes);
        }
      }
      for (int64_t i = whole; i < lines; ++i, to += pitch) {
        for (int64_t k = 0; k < some_rows; ++k) {
          std::byte some[kLineBytes];
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            const int64_t column = is_one ? 0 : std::min(i * kLanes + lane, columns - 1);
            std::memcpy(some + lane * item_, from + k * step + column * item_, static_cast<size_t>(item_));
          }
          widen_sixteen(some, is_half, to + k * kLineBytes);
        }
      }
    }
  }

  // Past the caches, or not.
  void put(int64_t rows, int64_t columns, std::byte* to, int64_t step, bool is_streamed) const {
    constexpr int64_t kRowBytes = kMostOfLarge * kLineBytes;
    alignas(64) std::byte some_in_order[kRowsAtOnce * kRowBytes];
    const int64_t piece = kLanes * item_;
    const int64_t whole = columns / kLanes;
    const int64_t pitch = pitch_;
    const int64_t rest = (columns - whole * kLanes) * item_;
    const bool is_half = is_half_;
    for (int64_t r = 0; r < rows; r += kRowsAtOnce, to += kRowsAtOnce * step) {
      const int64_t some_rows = std::min(kRowsAtOnce, rows - r);
      const std::byte* from = line(0) + r * kLineBytes;
      std::byte* const in_order = is_streamed ? some_in_order : to;
      const int64_t apart = is_streamed ? kRowBytes : step;
      for (int64_t i = 0; i < whole; ++i, from += pitch) {
        for (int64_t k = 0; k < some_rows; ++k) {
          narrow_sixteen(from + k * kLineBytes, is_half, in_order + k * apart + i * piece);
        }
      }
      for (int64_t k = 0; k < some_rows && rest > 0; ++k) {
        std::byte some[kLineBytes];
        narrow_sixteen(from + k * kLineBytes, is_half, some);
        std::memcpy(in_order + k * apart + whole * piece, some, static_cast<size_t>(rest));
      }
      for (int64_t k = 0; k < some_rows && is_streamed; ++k) {
        stream_copy(to + k * step, some_in_order + k * kRowBytes, columns * item_);
      }
    }
  }

  // The line of so many rows as one that is computed in place.
  Line as_line(int64_t number, int64_t rows, float* room) const {
    std::byte* const at = line(number);
    return {{Vectors{at, kLineBytes, false}}, at, kLineBytes, rows, rows, kLanes, 0, rows, room, is_half_};
  }

  // That stay in the first cache.
  static constexpr int64_t kNumbers = 1 << 13;
  static constexpr int64_t kMostLines = 16;
  // Of so many bytes in tensors past the caches, whose pieces of rows have to be longer: 2026-11-27, Xeon
  // (AVX-512), hardmax of halves of 64 channels of 56 x 56 took 1.6 times as long by pieces of 256 bytes as
  // of 1024 or 2048.
  static constexpr int64_t kBytesOfLarge = 1 << 17;
  static constexpr int64_t kMostOfLarge = 64;

 private:
  // Of which each line has a piece that is gone along, as lines lie on pages of their own.
  static constexpr int64_t kRowsAtOnce = 4;

  bool is_half_;
  int64_t item_;
  int64_t pitch_;
  Scratch numbers_;
};

// Pieces of rows of a block's results, in one of two buffers in the second cache, from which they are sent to
// where they belong while the next block is computed: of halves, which take half as much there as a block of
// singles. 2026-11-27, Xeon (AVX-512), one thread: softmax of halves of 64 channels of 56 x 56 takes 0.84
// times as long, and means and variances of singles would take 1.25 times as long.
class BlockRows {
 public:
  // The pieces are an odd number of cache lines apart, so that not all begin in one set.
  BlockRows(int64_t rows, int64_t bytes, bool is_streamed)
      : is_streamed_(is_streamed),
        step_((divided_up(bytes, kLine) | 1) * kLine),
        size_(rows * step_),
        room_(2 * size_) {}

  // Where the results of a block are to be written, and how far apart rows lie there.
  std::byte* begin() const { return room_.bytes() + turn_ * size_; }
  int64_t step() const { return step_; }
  // When they are there, and those before them are sent.
  void finish(int64_t rows, int64_t bytes, std::byte* to, int64_t to_step) {
    from_ = begin();
    turn_ ^= 1;
    rows_ = rows;
    bytes_ = bytes;
    to_ = to;
    to_step_ = to_step;
  }

  // One of so many shares of the rows.
  void send_share(int64_t share, int64_t shares) const {
    const int64_t end = share_begin(share + 1, shares, rows_);
    for (int64_t r = share_begin(share, shares, rows_); r < end; ++r) {
      const std::byte* const row = from_ + r * step_;
      std::byte* const to = to_ + r * to_step_;
      is_streamed_ ? stream_copy(to, row, bytes_) : void(std::memcpy(to, row, static_cast<size_t>(bytes_)));
    }
  }

 private:
  bool is_streamed_;
  int64_t step_;
  int64_t size_;
  Scratch room_;
  int64_t turn_ = 0;
  // Of the block that is sent.
  const std::byte* from_ = nullptr;
  int64_t rows_ = 0;
  int64_t bytes_ = 0;
  std::byte* to_ = nullptr;
  int64_t to_step_ = 0;
};

// The rows of the next block come while there is something to compute, some of them beside each line of this
// one.
ANYDML_INLINE void prefetch_share(int64_t line, int64_t lines, const std::byte* from, int64_t step,
                                  int64_t rows, int64_t bytes) {
  const int64_t end = share_begin(line + 1, lines, rows);
  for (int64_t r = share_begin(line, lines, rows); r < end; ++r) prefetch_lines(from + r * step, bytes);
}

ANYDML_ISA_END
