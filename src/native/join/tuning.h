// The tuning numbers of JOIN, with what they were chosen by.
//
// Where a note names a date and no machine, the history does not record the machine. Numbers without a note
// are inherited, not measured again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// Very short runs
// ---------------------------------------------------------------------------------------------

// Inputs that one shuffled vector can take bytes from. Inherited, not measured again.
constexpr int64_t kMostShuffledInputs = 8;
// The mean run up to which shuffles pay, and its multiple where a period has at most two vectors. 2026-11-22,
// one thread, ratio to a copy: at 1 MiB 4 inputs of 1 byte 2.4 -> 1.25, 3 of 4 bytes 2.7 -> 1.8.
constexpr int64_t kShuffledRun = 8;
constexpr int64_t kFewVectorsFactor = 2;
// Periods that are shuffled at a time stay in the first cache; fewer would not make up for the start of each
// shuffle. 2026-11-21 and 2026-11-22, no ratio recorded.
constexpr int64_t kShuffledBytes = 16384;
constexpr int64_t kFewestPeriods = 16;
constexpr int64_t kPeriodsOfABlock = 32;

// Short runs
// --------------------------------------------------------------------------------------------------

// The mean run from which on each is copied by itself. Inherited, not measured again.
constexpr int64_t kLongRun = 2048;
// The mean run from which on runs are appended to the output one by one, past the caches: shorter ones cost
// less in blocks, and leave no lines of the inputs half read. 2026-11-22: 16 runs of 200 bytes take 0.6 times
// as long without a block.
constexpr int64_t kAppendedRun = 256;
constexpr int64_t kAppendedRunOfFewInputs = 192;
// Inputs that a processor's prefetcher follows at once, run by run. 2026-11-22, no ratio recorded.
constexpr int64_t kHardwarePrefetchStreams = 16;
// Inputs that need no prefetch at all. 2026-11-21, no ratio recorded.
constexpr size_t kFewInputs = 8;
// Bytes of the inputs that are prefetched before they are copied: by a Prefetcher, and of runs that are
// copied one by one. Inherited, not measured again.
constexpr int64_t kPrefetchedBytes = 4 << 10;
constexpr int64_t kPrefetchedRunBytes = 2048;

// Rows interleaved: several rows are appended in turn, so that what an input has for them is read without a
// break. The mean run from which on that pays, the bytes of an input for all rows, and the most rows.
// 2026-11-22, one thread, ratio to a copy: 512 inputs of 2048 bytes 1.66 -> 1.17, 16 of 4096 bytes 1.45 ->
// 1.1.
constexpr int64_t kInterleavedRun = 768;
constexpr int64_t kInterleavedBytes = 16 << 10;
constexpr int64_t kMostInterleavedRows = 16;

// Tiles: a tile of 16 rows by a KiB stays in the first cache. The mean run and the row from which on tiles
// take less time than blocks. 2026-11-22, one thread, ratio to a copy: 512 inputs of 12 bytes 7.0 -> 3.7.
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileWidth = 1 << 10;
constexpr int64_t kTiledRun = 8;
constexpr int64_t kTiledRow = 4 << 10;

// Blocks
// ------------------------------------------------------------------------------------------------------

// Bytes of a block of the output: what is put together in scratch memory stays in the first cache with what
// it is made of; with many inputs in the second, since memory is read at its speed only where several lines
// of an input follow each other. Where rows are written in place, as much as the second cache holds; of long
// runs more, since a longer turn of each input is prefetched better. 2026-11-22: joins within the caches take
// 0.5 to 0.8 times as long with the larger blocks.
constexpr int64_t kSmallestBlock = 4 << 10;
constexpr int64_t kLargestBlock = 256 << 10;
constexpr int64_t kBlockOfLongRuns = 1 << 20;
constexpr int64_t kBlockBytesPerInput = 2048;
// Where in a page a thread's block begins: across two pages, or with vectors across lines, a block took up to
// twice the time. Neither the page nor the lines are those where large arrays begin. 2026-11-22, one thread,
// ratio to a copy: 2 inputs of 64 bytes 1.85 -> 0.95.
constexpr int64_t kPage = 4096;
constexpr uintptr_t kBlockInPage = 128;

}  // namespace
ANYDML_ISA_END
