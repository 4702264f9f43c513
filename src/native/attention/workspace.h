// What a thread works on, and with.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "attention/tuning.h"
#include "attention/weights.h"
#include "dense/tile.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "simd/convert.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kSingle = sizeof(float);

inline int64_t padded(int64_t count, int64_t by) { return divided_up(count, by) * by; }

// What a thread works with: some 60 KiB, and for each element of a key and a value 4 bytes of as many rows
// and keys as a block has; about 1 MiB at most.
struct Workspace {
  Rows rows;
  Added added;
  alignas(64) std::array<float, kKeys * std::max(kPanel, kFewRows)> weights;
  std::array<float, kDepth> row;
  std::array<float, kDepth> key_bias;
  std::array<float, kColumns> value_bias;
  float* query;  // a column for each row of a panel, or a row each of few
  float* keys;
  float* values;
  float* sums;

  // Halves are converted some at a time.
  static int64_t deep(int64_t depth) { return padded(depth, kWidest) + kConvertedAtOnce; }
  static int64_t wide(int64_t columns) { return padded(columns, std::max(kWidest, kPanel)); }
  // What those four take.
  static int64_t floats(int64_t height, int64_t depth, int64_t columns) {
    return padded((height + kKeys) * (deep(depth) + wide(columns)), 16);
  }

  void place(float* at, int64_t height, int64_t depth, int64_t columns) {
    query = at;
    keys = query + height * deep(depth);
    values = keys + kKeys * deep(depth);
    sums = values + kKeys * wide(columns);
  }
};

// A block of rows, which are the queries of heads that share one of keys, head by head; and columns of
// values.
struct Block {
  int64_t sequence, head, first, count, column, columns;
  int64_t past;  // keys of the sequence that are past
  int64_t most;  // keys that some row sees
  bool is_few;   // whether keys are lanes, not rows
};

// Rows of a block side by side.
struct RowPanel {
  int64_t first;
  int64_t count;
  int64_t width;
};

// Rows of a matrix, in bytes.
struct Matrix {
  const std::byte* at;
  int64_t step;
};

ANYDML_ISA_END
