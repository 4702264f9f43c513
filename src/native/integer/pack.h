// Packing: elements less their zero points, as panels for the micro-kernels.
//
// A panel has for each step of kDepth products what a tile needs next to each other: of A kRows rows, of B
// kColumns columns. Rows of B are read one by one, also those that a convolution never writes: the elements
// under one tap of the filter, at all places of a block (implicit im2col).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/layout.h"
#include "integer/micro_kernel.h"
#include "integer/tuning.h"
#include "platform/isa.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// cells[i] = element i - zeros[i * kZeroStep]
template <class Cell>
using Read = void (*)(const std::byte* from, int64_t step, int64_t count, const Cell* zeros, Cell* cells);

template <class T, class Cell, bool kOneZero>
void read_cells(const std::byte* from, int64_t step, int64_t count, const Cell* zeros, Cell* cells) {
  const Cell zero = zeros[0];
  const auto difference = [=](const std::byte* at, int64_t i) {
    return static_cast<Cell>(static_cast<Cell>(load<T>(at)) - (kOneZero ? zero : zeros[i]));
  };
  // Elements that follow each other become vectors.
  if (step == sizeof(T)) {
    for (int64_t i = 0; i < count; ++i) {
      cells[i] = difference(from + i * static_cast<int64_t>(sizeof(T)), i);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) cells[i] = difference(from + i * step, i);
  }
}

template <class Cell, bool kOneZero>
Read<Cell> reader_of(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return read_cells<int8_t, Cell, kOneZero>;
    case DataType::kUint8:
      return read_cells<uint8_t, Cell, kOneZero>;
    default:
      break;
  }
  if constexpr (sizeof(Cell) == 8) {
    switch (type) {
      case DataType::kInt16:
        return read_cells<int16_t, Cell, kOneZero>;
      case DataType::kUint16:
        return read_cells<uint16_t, Cell, kOneZero>;
      case DataType::kInt32:
        return read_cells<int32_t, Cell, kOneZero>;
      case DataType::kUint32:
        return read_cells<uint32_t, Cell, kOneZero>;
      default:
        break;
    }
  }
  return nullptr;
}

// A window along one spatial dimension of the input: tap k at place o lies at o * stride + k * dilation -
// padding.
struct Spatial {
  int64_t size = 1;  // of the input
  int64_t step = 0;  // in bytes
  int64_t taps = 1;
  int64_t places = 1;  // of the output
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t padding = 0;

  int64_t first(int64_t tap) const { return tap * dilation - padding; }
};

// Where the elements of both operands lie: a sum has the products over channels and taps, a product of
// matrices over channels alone, of one tap.
struct Depth {
  int64_t channels;
  int64_t a_step, b_step;     // from channel to channel
  int64_t a_rows, a_columns;  // from tap to tap
  Spatial height, width;

  int64_t taps() const { return height.taps * width.taps; }
  int64_t count() const { return channels * taps(); }
  // Whether B is a matrix, whose columns are the places of one line.
  bool is_matrix() const {
    return taps() == 1 && height.places == 1 && width.padding == 0 && width.stride == 1 &&
           height.padding == 0 && width.places <= width.size;
  }
  // Whether it is one whose columns are closer runs than its rows.
  bool is_transposed() const { return is_matrix() && std::abs(b_step) < std::abs(width.step); }
};

// A product's place among channels and taps.
struct Tap {
  int64_t channel, row, column;

  Tap(const Depth& depth, int64_t k)
      : channel(k / depth.taps()),
        row(k / depth.width.taps % depth.height.taps),
        column(k % depth.width.taps) {}
  void advance(const Depth& depth) {
    if (++column < depth.width.taps) return;
    column = 0;
    if (++row < depth.height.taps) return;
    row = 0;
    ++channel;
  }
};

// Lines along which products lie, as panels of kWidth of them: cells[k / kDepth][line][k % kDepth].
// read_line(i, k, n, cells) reads n elements of one of them. They are scattered by pieces that stay in the
// first cache.
template <class Kind, int kWidth, class ReadLine>
void pack_lines(int64_t lines, int64_t count, typename Kind::Cell* line, typename Kind::Cell* panels,
                const ReadLine& read_line) {
  using Cell = typename Kind::Cell;
  const int64_t steps = (count + Kind::kDepth - 1) / Kind::kDepth;
  for (int64_t first = 0; first < lines; first += kWidth, panels += kWidth * steps * Kind::kDepth) {
    for (int64_t begin = 0; begin < count; begin += kLinePiece) {
      const int64_t piece = std::min(kLinePiece, count - begin);
      const int64_t piece_steps = (piece + Kind::kDepth - 1) / Kind::kDepth;
      for (int64_t i = 0; i < kWidth; ++i) {
        if (first + i < lines) {
          read_line(first + i, begin, piece, line);
          std::fill(line + piece, line + piece_steps * Kind::kDepth, Cell{0});
        } else {
          std::fill_n(line, piece_steps * Kind::kDepth, Cell{0});
        }
        Cell* to = panels + begin * kWidth + i * Kind::kDepth;
        for (int64_t k = 0; k < piece_steps; ++k, to += kWidth * Kind::kDepth) {
          std::memcpy(to, line + k * Kind::kDepth, sizeof(Cell) * Kind::kDepth);
        }
      }
    }
  }
}

// Rows of A.
template <class Kind, int kWidth = Kind::kRows>
void pack_rows(const Depth& depth, const std::byte* a, int64_t row_step, int64_t rows, int64_t begin,
               int64_t end, Read<typename Kind::Cell> read, const typename Kind::Cell* zeros,
               typename Kind::Cell* line, typename Kind::Cell* panels) {
  // Filters of one tap, and dense ones, are read as one run.
  const bool is_run = depth.taps() == 1 || (depth.a_rows == depth.width.taps * depth.a_columns &&
                                            depth.a_step == depth.taps() * depth.a_columns);
  const int64_t step = depth.taps() == 1 ? depth.a_step : depth.a_columns;
  const auto read_line = [&](int64_t r, int64_t at, int64_t piece, typename Kind::Cell* cells) {
    const std::byte* const from = a + r * row_step;
    if (is_run) return read(from + (begin + at) * step, step, piece, zeros + r, cells);
    Tap tap(depth, begin + at);
    for (int64_t k = 0; k < piece;) {
      const int64_t count = std::min(depth.width.taps - tap.column, piece - k);
      read(from + tap.channel * depth.a_step + tap.row * depth.a_rows + tap.column * depth.a_columns,
           depth.a_columns, count, zeros + r, cells + k);
      k += count;
      tap.column += count - 1;
      tap.advance(depth);
    }
  };
  pack_lines<Kind, kWidth>(rows, end - begin, line, panels, read_line);
}

// Columns of a matrix B that is transposed: each is a run.
template <class Kind>
void pack_runs(const Depth& depth, const std::byte* b, int64_t first, int64_t columns, int64_t begin,
               int64_t end, Read<typename Kind::Cell> read, const typename Kind::Cell* zeros,
               typename Kind::Cell* line, typename Kind::Cell* panels) {
  b += first * depth.width.step + begin * depth.b_step;
  const auto read_line = [&](int64_t c, int64_t at, int64_t piece, typename Kind::Cell* cells) {
    read(b + c * depth.width.step + at * depth.b_step, depth.b_step, piece, zeros + c, cells);
  };
  pack_lines<Kind, Kind::kColumns>(columns, end - begin, line, panels, read_line);
}

// The elements under a tap, at `count` places from `begin` on. Padding is the zero point: a difference of 0.
template <class Cell>
void read_row(const Depth& depth, const std::byte* b, const Tap& tap, int64_t begin, int64_t count,
              Read<Cell> read, const Cell* zeros, Cell* cells, Cell padding = 0) {
  const Spatial& height = depth.height;
  const Spatial& width = depth.width;
  b += tap.channel * depth.b_step;
  const int64_t left = width.first(tap.column);
  // Places whose element is inside: the least o with o * stride + left >= 0, and the end.
  const int64_t least = left >= 0 ? 0 : std::min(width.places, (-left - 1) / width.stride + 1);
  const int64_t end = left >= width.size
                          ? least
                          : std::clamp((width.size - 1 - left) / width.stride + 1, least, width.places);
  int64_t row = begin / width.places;
  int64_t column = begin % width.places;
  while (count > 0) {
    const int64_t run = std::min(width.places - column, count);
    const int64_t y = row * height.stride + height.first(tap.row);
    const bool is_inside = y >= 0 && y < height.size;
    const int64_t from = is_inside ? std::clamp(least - column, int64_t{0}, run) : run;
    const int64_t to = is_inside ? std::clamp(end - column, from, run) : run;
    std::fill(cells, cells + from, padding);
    if (from < to) {
      const int64_t x = (column + from) * width.stride + left;
      read(b + y * height.step + x * width.step, width.stride * width.step, to - from, zeros + from,
           cells + from);
    }
    std::fill(cells + to, cells + run, padding);
    cells += run;
    zeros += run;
    count -= run;
    column = 0;
    ++row;
  }
}

// Two rows, element by element; shifted to where the second one comes in memory.
template <int kCount>
ANYDML_INLINE void interleave(const int16_t* first, const int16_t* second, int16_t* to) {
  constexpr int kLow = std::endian::native == std::endian::little ? 0 : 16;
  uint32_t pairs[kCount];
  for (int i = 0; i < kCount; ++i) {
    pairs[i] = uint32_t{static_cast<uint16_t>(first[i])} << kLow | uint32_t{static_cast<uint16_t>(second[i])}
                                                                       << (16 - kLow);
  }
  std::memcpy(to, pairs, sizeof(pairs));
}

// Columns of B as panels: cells[k / kDepth][column][k % kDepth]. `rows` has room for kDepth rows of them.
template <class Kind>
void pack_columns(const Depth& depth, const std::byte* b, int64_t first, int64_t columns, int64_t begin,
                  int64_t end, Read<typename Kind::Cell> read, const typename Kind::Cell* zeros,
                  typename Kind::Cell* rows, typename Kind::Cell* panels) {
  using Cell = typename Kind::Cell;
  const int64_t steps = (end - begin + Kind::kDepth - 1) / Kind::kDepth;
  const int64_t padded = (columns + Kind::kColumns - 1) / Kind::kColumns * Kind::kColumns;
  Cell* const second = rows + padded;
  std::fill(rows + columns, rows + padded, Cell{0});
  if constexpr (Kind::kDepth == 2) std::fill(second + columns, second + padded, Cell{0});
  Tap tap(depth, begin);
  for (int64_t step = 0; step < steps; ++step) {
    read_row(depth, b, tap, first, columns, read, zeros, rows);
    tap.advance(depth);
    if constexpr (Kind::kDepth == 2) {
      if (begin + 2 * step + 1 < end) {
        read_row(depth, b, tap, first, columns, read, zeros, second);
        tap.advance(depth);
      } else {
        std::fill_n(second, columns, Cell{0});
      }
    }
    for (int64_t c = 0; c < padded; c += Kind::kColumns) {
      Cell* const to = panels + (c * steps + step * Kind::kColumns) * Kind::kDepth;
      if constexpr (Kind::kDepth == 2) {
        interleave<Kind::kColumns>(rows + c, second + c, to);
      } else {
        std::copy_n(rows + c, Kind::kColumns, to);
      }
    }
  }
}

}  // namespace
ANYDML_ISA_END
