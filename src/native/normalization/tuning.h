// The tuning numbers of this family. The first four are part of the order of additions.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Elements of a chunk, which stays in the first cache for its second reading.
inline constexpr int64_t kChunkElements = 1 << 12;
// Tiles below which each is cut into parts, four times as many at most,
inline constexpr int64_t kFewTiles = 64;
// of so many elements at least.
inline constexpr int64_t kPartElements = 1 << 15;
// Tiles for each thread from which on threads do not share their parts.
inline constexpr int64_t kTilesEach = 4;
// Elements of a row of softmax up to which rows are transposed, and computed side by side: what has to be
// done once for each row would take longer than its elements.
inline constexpr int64_t kTurnedRow = 63;

// Threads are chosen by bytes that could be copied in the time that elements take, so many each: 1.5 to 3
// times a copy of FLOAT32 by lines, where halves take as long as singles, and more by buffers of doubles.
inline constexpr int64_t kSoftmaxWork = 24;
inline constexpr int64_t kLineWork = 16;
inline constexpr int64_t kBufferWork = 32;
inline constexpr int64_t kLocalWork = 48;

// Lines below which those of kPartElements and more are cut into parts.
inline constexpr int64_t kFewLines = 4;

// Elements of a line that stays in the second cache, with 8 bytes for each where exponentials are kept; and
// of lines side by side, of which two at least do so.
inline constexpr int64_t kLineElements = 1 << 16;
inline constexpr int64_t kColumnElements = 1 << 11;

// Bytes of a row whose results go past the caches by way of a buffer: of shorter ones the buffer takes longer
// than it saves, and longer ones would leave the first cache, and the second, before they are sent.
inline constexpr int64_t kLeastStreamed = 768;
inline constexpr int64_t kMostStreamed = 1 << 16;

ANYDML_ISA_END
