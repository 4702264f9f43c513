// The tuning numbers of this family. None of them changes a bit of a result but kKeys, kDepth, kFewRows and
// kWidest, which are part of the order of additions.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Keys of a block: their scores for as many rows as a block has stay in the first caches.
inline constexpr int64_t kKeys = 64;
// Rows of a block, which are queries of the heads that share keys; of fewer where there are threads for them.
inline constexpr int64_t kMostRows = 64;
inline constexpr int64_t kFewestRows = 16;
// As few rows in all have keys for their lanes: which order of additions they get.
inline constexpr int64_t kFewRows = 4;
// Elements of a head whose products are summed at once, and columns of values that are computed at once.
inline constexpr int64_t kDepth = 1024;
inline constexpr int64_t kColumns = 1024;
// Rows and columns are padded to a multiple of the widest vector.
inline constexpr int64_t kWidest = 16;

// Rows of a register tile: two vectors of each are as many sums as registers hold.
#if defined(ANYDML_ISA_AVX512)
inline constexpr int kTileRows = 8;
#else
inline constexpr int kTileRows = 4;
#endif

// Multiplications that take as long as a byte of memory, for the number of threads.
inline constexpr int64_t kMultiplicationsOfAByte = 1;
// Blocks of rows for each thread, so that none waits long for the last.
inline constexpr int64_t kBlocksOfAThread = 2;

ANYDML_ISA_END
