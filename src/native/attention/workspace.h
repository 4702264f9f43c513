// What a thread works on, and with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "attention/tuning.h"
#include "attention/weights.h"
#include "movement/copy.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kSingle = sizeof(float);

inline int64_t padded(int64_t count) { return divided_up(count, kWidest) * kWidest; }

// What a thread works with: some 100 KiB, and 512 bytes for each element of a key and a value, up to 1 MiB.
struct Workspace {
  Rows rows;
  Added added;
  alignas(64) std::array<float, kKeys * kMostRows> weights;
  alignas(64) std::array<float, kKeys> ones;
  std::array<float, kDepth> row;
  std::array<float, kDepth> key_bias;
  std::array<float, kColumns> value_bias;
  std::unique_ptr<float[]> room;  // of the four below
  float* query;                   // a column for each row, so that products are vectors of rows
  float* keys;
  float* values;
  float* sums;

  void reserve(int64_t height, int64_t depth, int64_t columns) {
    ones.fill(1);
    room.reset(new float[static_cast<size_t>((height + kKeys) * (padded(depth) + padded(columns)))]);
    query = room.get();
    keys = query + height * padded(depth);
    values = keys + kKeys * padded(depth);
    sums = values + kKeys * padded(columns);
  }
};

// A block of rows, which are the queries of heads that share one of keys, head by head; and columns of
// values.
struct Block {
  int64_t sequence, head, first, count, width, column, columns;
  int64_t past;  // keys of the sequence that are past
  int64_t most;  // keys that some row sees
  bool is_few;   // whether keys are lanes, not rows

  // Of its scores, in elements.
  int64_t row_step() const { return is_few ? kKeys : 1; }
  int64_t key_step() const { return is_few ? 1 : width; }
};

// Rows of a matrix, in bytes.
struct Matrix {
  const std::byte* at;
  int64_t step;
};

ANYDML_ISA_END
