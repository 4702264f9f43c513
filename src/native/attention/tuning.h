// The tuning numbers of this family. None of them changes a bit of a result but kKeys, kDepth, kFewRows and
// kWidest, which are part of the order of additions.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Keys of a block: with AVX-512 their scores for a panel of 32 rows are 12 KiB, and stay in the first cache.
// A multiple of the rows of a register tile of products.
inline constexpr int64_t kKeys = 96;
// Rows of a block, which are queries of the heads that share keys: as many as keep their queries and sums,
// kBlockNumbers in all, in a second cache of 256 KiB beside the keys and the values; fewer where there are
// threads for them. Each block reads all keys and values.
inline constexpr int64_t kBlockRows = 384;
inline constexpr int64_t kBlockNumbers = 48 << 10;
// As few rows in all have keys for their lanes: which order of additions they get.
inline constexpr int64_t kFewRows = 4;
// Elements of a head whose products are summed at once, and columns of values that are computed at once.
inline constexpr int64_t kDepth = 1024;
inline constexpr int64_t kColumns = 1024;
// Lanes of the sums of few rows, to a multiple of which their elements are padded.
inline constexpr int64_t kWidest = 16;

// Blocks of rows for each thread, so that none waits long for the last.
inline constexpr int64_t kBlocksOfAThread = 2;

ANYDML_ISA_END
