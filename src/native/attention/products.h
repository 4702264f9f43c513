// Products of small matrices in single precision (GEBP), without fused multiply-adds: each sum is one chain,
// in the order of the inner dimension, whatever the tile that it is in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention/tuning.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

// Element k of row i of the left matrix lies at left + i * left_row + k * left_step, in bytes; rows of the
// right one are right_row bytes apart, those of the result out_row floats. Columns are a multiple of kWidest.
struct Product {
  const std::byte* left;
  int64_t left_row;
  int64_t left_step;
  const std::byte* right;
  int64_t right_row;
  float* out;
  int64_t out_row;
  int64_t rows;
  int64_t depth;
  int64_t columns;
  const float* factors;  // of the rows of what the product is added to; null where there is nothing
};

// out[i][c] = factor[i] * out[i][c] + sum over k of left[i][k] * right[k][c]
template <int kRows, int kVectors>
ANYDML_NOINLINE void multiply_tile(const Product& product, int64_t row, int64_t column) {
  constexpr int64_t kLanes = sizeof(Singles) / sizeof(float);
  Singles sums[kRows][kVectors]{};
  const std::byte* left = product.left + row * product.left_row;
  const std::byte* right = product.right + column * static_cast<int64_t>(sizeof(float));
  const int64_t left_row = product.left_row;
  for (int64_t k = 0; k < product.depth; ++k, left += product.left_step, right += product.right_row) {
    Singles y[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) std::memcpy(&y[v], right + v * sizeof(Singles), sizeof(Singles));
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const float x = load<float>(left + i * left_row);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = sums[i][v] + y[v] * x;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    float* const out = product.out + (row + i) * product.out_row + column;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Singles sum = sums[i][v];
      if (product.factors != nullptr) {
        Singles before;
        std::memcpy(&before, out + v * kLanes, sizeof(Singles));
        sum = before * product.factors[row + i] + sum;
      }
      std::memcpy(out + v * kLanes, &sum, sizeof(Singles));
    }
  }
}

template <int kRows>
void multiply_rows(const Product& product, int64_t row) {
  constexpr int64_t kLanes = sizeof(Singles) / sizeof(float);
  int64_t column = 0;
  // Two sums alone would wait for each other.
  if constexpr (kRows == 1) {
    for (; column + 4 * kLanes <= product.columns; column += 4 * kLanes) {
      multiply_tile<kRows, 4>(product, row, column);
    }
  }
  for (; column + 2 * kLanes <= product.columns; column += 2 * kLanes) {
    multiply_tile<kRows, 2>(product, row, column);
  }
  for (; column < product.columns; column += kLanes) multiply_tile<kRows, 1>(product, row, column);
}

inline void multiply(const Product& product) {
  int64_t row = 0;
  for (; row + kTileRows <= product.rows; row += kTileRows) multiply_rows<kTileRows>(product, row);
  if constexpr (kTileRows > 4) {
    for (; row + 4 <= product.rows; row += 4) multiply_rows<4>(product, row);
  }
  for (; row < product.rows; ++row) multiply_rows<1>(product, row);
}

ANYDML_ISA_END
