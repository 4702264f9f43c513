// Tuning parameters of the scans. Each says by what measurement it was chosen: machine, date, and the time
// before and after, where "of a copy" is a ratio to a copy of as many bytes. Those without one are inherited,
// not measured again.
//
// Two parameters that all families share stand elsewhere: kStreamFrom and kPrefetchDistance in
// stores/nontemporal.h, and kParallelFrom in platform/parallel.h.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace tuning {

// Rows

// The elements of a block of a row. A block, the next one and the staged outputs share the first cache.
// Inherited, not measured again.
inline constexpr int64_t kBlock = 1024;

// Rows of at least that many elements are scanned a vector at a time, shorter ones in groups of transposed
// tiles. 2026-11-22, machine not recorded, one thread: int64 rows of 32 took 1.36 of a copy in groups, and
// take 0.56.
inline constexpr int64_t kVectorRowsFrom = 16;

// Several threads share a row of more elements than that, where there are fewer rows than that: so few rows
// may leave threads of a large machine without work. Both inherited, not measured again.
inline constexpr int64_t kChainedFrom = 8 * kBlock;
inline constexpr int64_t kChainedRowsBelow = 512;
// Rows or planes are shared where they are no multiple of the threads, and fewer than that for each thread.
// Inherited, not measured again.
inline constexpr int64_t kSharedBelowPerThread = 4;

// They are shared from so many bytes on, where each thread has a chunk of each. 2026-11-25, a row of 1 MiB
// took 154 us on one thread, and takes 41 on 16 (Xeon, 16 cores); on two threads a row of 512 KiB takes 44
// us, where one takes 33 (AMD EPYC of Zen 5).
inline constexpr int64_t kSharedFrom = 1 << 20;

// The bytes of a chunk of a chained scan, which a thread finds in its second cache when it scans what it has
// reduced. Inherited, not measured again.
inline constexpr int64_t kChunkBytes = 64 << 10;
// The chunks that a thread reduces at most before it scans them. 2026-11-23, two threads, machine not
// recorded: one row of float16 took 1.8 of a copy where every chunk was reduced first, and takes 1.4.
inline constexpr int kMaxReducedAhead = 4;
// How long a thread waits for another one's chunk before it reduces that itself: a few times as long as a
// chunk takes. 2026-11-25, Xeon, 16 cores, PyTorch's threads spinning beside: a row of 128 MiB
// took 10 ms where threads waited until the other one was there again, and takes 2.9; 20 or 200 us in place
// of 50 make no difference.
inline constexpr std::chrono::microseconds kChunkPatience{50};

// The bytes for each thread that hold what is known of chunks: threads wait for each other when they are
// full. So a kernel takes no more than 1 MiB for each thread.
inline constexpr int64_t kChainBytesPerThread = 512 << 10;

// A tile of rows that the input has across: bytes of the input that are read at a stretch, in at most so many
// rows, and bytes of an output row that are written at a stretch; it fits the second cache. 2026-11-22,
// machine not recorded: 512 bytes at a stretch took 20 ms for 128 MiB of transposed float32, 1024 take 14 ms;
// of int32 18 ms and 14 ms.
inline constexpr int64_t kTransposeReadBytes = 1024;
inline constexpr int64_t kTransposeMostRows = 256;
inline constexpr int64_t kTransposeWriteBytes = 512;
// Rows that are contiguous in the input are prefetched so many tiles ahead. 2026-11-22, machine not recorded:
// one tile ahead was too late; transposed rows of float16 took 1.9 of a copy, and take 1.2.
inline constexpr int64_t kTransposePrefetchTiles = 8;

// Columns

// Fewer columns of integers than that have kernels of their own, with a scalar register for each. (For floats
// the limit is a vector.) 2026-11-22, machine not recorded: three columns take 0.25 to 0.4 times as long as
// with accumulators in memory.
inline constexpr int kNarrowIntegerColumns = 8;
// Bytes of packed rows that narrow columns of floats or integers write to the stage at once are a quarter of
// it. Inherited, not measured again.
inline constexpr int64_t kNarrowBatchDivisor = 4;

// The most vectors whose accumulators stay in registers. 2026-11-23, AMD EPYC (family 25, model 1): with 5 to
// 8 vectors in memory, columns take 10 to 45% longer.
inline constexpr int kRegisterVectors = 8;
// The rows that wider strips scan together. Inherited, not measured again.
inline constexpr int64_t kRowUnroll = 4;

// Bytes of a row of a strip. 2026-11-21, machine not recorded: memory reads and writes rows of 16 KiB nearly
// as fast as it copies; rows of a quarter of that take half as long again, rows of 512 bytes twice as long.
inline constexpr int64_t kNonTemporalStripBytes = 16 << 10;
// The same where outputs stay in the caches, with at most so many columns. Inherited, not measured again.
inline constexpr int64_t kCachedStripBytes = 8 << 10;
inline constexpr int64_t kCachedStripColumns = 2048;
// Strips are multiples of that many bytes of accumulators, which stay in registers: two cache lines of
// floats, four of integers. 2026-11-22, machine not recorded: two threads that wrote wider parts of the same
// rows in their caches took up to ten times as long as one, and strips of two lines of integers 60 us where
// those of four take 25 us.
inline constexpr int64_t kStripUnitBytes = 256;
// Threads write narrow strips where the input and the output of each have at most that many bytes, which fit
// its second cache. Inherited, not measured again.
inline constexpr int64_t kSecondCacheBytes = 1 << 20;

// Rows of outputs of at least that many bytes are written by non-temporal stores line by line. Packed rows
// are written as one stream up to that many bytes. 2026-11-22, machine not recorded, one thread: 17 columns
// of float32 took 1.47 of a copy through a stage, and take 0.85 as a stream. The two limits are inherited,
// not measured again.
inline constexpr int64_t kStreamedRowFrom = 512;
inline constexpr int64_t kMostPackedRow = 2 << 10;

// Strips of at most so many columns are cut into blocks, which several threads may scan, of that many bytes,
// which a thread finds in its second cache when it scans what it has reduced. Inherited, not measured again.
inline constexpr int64_t kMostBlockedColumns = 256;
inline constexpr int64_t kColumnBlockBytes = 64 << 10;
// From so many planes on, threads are busy without blocks, and a block would cost an addition for each
// element. Sums of float16 are cut even so, as sums of blocks are more accurate. 2026-11-22, not measured.
inline constexpr int64_t kUncutPlanesFrom = 512;

// A tile of columns that the input has across: bytes of a column, and bytes of a row. Rows of a tile are one
// cache line further apart, so that columns do not compete for a set of the first cache. Inherited, not
// measured again.
inline constexpr int64_t kPackedTileRowBytes = 1024;
inline constexpr int64_t kPackedTileColumnBytes = 256;
// Tiles are prefetched so many ahead: a column's part is too short for hardware prefetchers. 2026-11-22,
// machine not recorded: transposed columns of float32 took 1.8 of a copy, and take 1.1; of float16 2.1
// and 1.2.
inline constexpr int64_t kPackedTilesAhead = 2;

// Any layout

// The lines that are scanned side by side, element by element. Inherited, not measured again.
inline constexpr int64_t kStridedLines = 64;

}  // namespace tuning
ANYDML_ISA_END
