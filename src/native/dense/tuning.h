// The tuning numbers of this family. None of them changes a bit of a result but kDepth, which is part of the
// order of additions.
#pragma once

#include <cstdint>

#include "dense/tile.h"
#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Singles of a line.
inline constexpr int64_t kLineSingles = 16;

// The depth of a panel, whose products are summed apart: sums of many products keep their accuracy, and tiles
// of rows as deep stay in the first cache.
inline constexpr int64_t kDepth = 512;
// From packed row to packed row, in singles: an odd number of lines, so that rows do not take each other's
// place in a cache.
inline constexpr int64_t kPackedRowStep = kDepth + kLineSingles;
// Columns that are packed at a time, in whole panels: of that depth they fill half of the second cache, or a
// quarter, 512 KiB with AVX-512 and 256 KiB elsewhere. Lines of them are read in long runs.
inline constexpr int64_t kBlockColumns = 8 * kPanel;
// Rows of a block whose sums of a part of the depth are kept: 384 KiB of them.
inline constexpr int64_t kBlockRows = 384;
// Rows that are packed at a time, in whole tiles: where they lie side by side, a line of each of the depth
// has most of them.
inline constexpr int64_t kGroupTiles = 4;
inline constexpr int64_t kGroupRows = kGroupTiles * kMostRows;
// Rows are read where they are, though apart in memory, if only so many panels are multiplied by them, or if
// those of a tile lie within so many bytes: there no two of them take each other's place in the first cache.
inline constexpr int64_t kFewPanels = 2;
inline constexpr int64_t kNearRows = 16 << 10;
// Rows up to which columns are read where they are, as packing them would take longer than the products; how
// deep that is done at a time, so that memory is read in long runs; and columns whose sums are kept.
inline constexpr int64_t kFewRows = 2 * kMostRows;
inline constexpr int64_t kReadDepth = 64;
inline constexpr int64_t kReadColumns = 2048;
// How many rows of the matrix are added to the sums of one row at a time: so few streams as processors
// prefetch by themselves.
inline constexpr int64_t kRowDepth = 8;
// Rows that are multiplied at once by columns that lie side by side, as many as kMultiplyRowsAcross has.
inline constexpr int64_t kRowsAcross = 4;
// The depth up to which neither matrix is packed: of products of so few numbers, and of outer products and
// the like.
inline constexpr int64_t kSmallProduct = 32 * 32;
inline constexpr int64_t kSmallDepth = 32;
inline constexpr int64_t kOuterDepth = 4;
// What packing takes, in rows of products that take as long: of columns, and of rows for each block of
// columns.
inline constexpr double kPackedColumns = 8;
inline constexpr double kPackedRows = 0.15;
// Panels that a thread packs at a time, of a matrix that stays.
inline constexpr int64_t kPackedAtOnce = 4;
// Blocks for each thread among which a division is looked for, and what part of one all wait for the last
// thread.
inline constexpr int64_t kBlocksOfAThread = 4;
inline constexpr double kLateBlocks = 0.1;
// What a call of a loop over blocks moves, or multiplies meanwhile: some microseconds, beside which it takes
// little to begin it.
inline constexpr int64_t kBytesOfCall = 64 << 10;

ANYDML_ISA_END
