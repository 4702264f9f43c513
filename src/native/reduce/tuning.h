// Tuning parameters of reductions. Those without a measurement are first choices, not measured again.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace tuning {

// Bytes of the accumulators of a row: so many that no addition waits for the one before.
inline constexpr int64_t kRowBytes = 512;
// The same for rows of fewer elements, and for functions with many numbers.
inline constexpr int64_t kShortRowBytes = 128;
// The most of a group of narrow columns.
inline constexpr int64_t kNarrowBytes = 2048;
// The least that a kernel accumulates at a time, the longest vector of any instruction set.
inline constexpr int64_t kLeastBytes = 64;

// Lines of so many bytes, and of indices, are transposed where there are lines beside them: 16 bytes of each
// of as many lines as a register has lanes at a time. On one thread of a Xeon with AVX-512, 2026-11-26, 1 MiB
// in the caches, in time by that of a tree for each line: sums of float32 in lines of 8 0.6, of 16 0.8, of
// 24 1.1, of float16 in lines of 8 0.3, of 32 0.85, of 48 1.0; the largest of bytes in lines of 32 0.4, of
// 96 1.05; indices of float32 in lines of 8 0.4, of 32 0.75, of 48 1.1, of bytes in lines of 96 0.6.
inline constexpr int64_t kTransposedBytes = 96;
inline constexpr int64_t kTransposedIndexBytes = 160;
// The same of the segments of lines that have several, which are combined lane by lane, with no tree for
// each; and the elements up to which lines are shuffled, where they fill no square. There sums of float32 in
// segments of 8 take 0.9 of the time of segment by segment, of 16 1.7, of float16 in segments of 16 0.85, of
// 32 1.6; the largest of bytes in segments of 8 2.9, of 32 0.85, of 64 1.5; indices of float16 in segments of
// 32 1.6.
inline constexpr int64_t kTransposedSegmentBytes = 40;
inline constexpr int64_t kShuffledRows = 7;

// Segments of up to so many bytes are columns of their own, where lines have so many of them.
inline constexpr int64_t kFoldedBytes = 96;
inline constexpr int64_t kFoldedRows = 4;

// Planes of so few columns, by the bytes of their accumulators, and rows are reduced a few at a time, with no
// transposition; but rows of kCellBytes and less take longer than those of a tile. On one thread of a Xeon
// with AVX-512, 2026-11-26, 1 MiB in the caches, in time by that of a tile: the largest of bytes, 7 rows of
// 11 0.4, of 5 0.65, of 3 1.1, of 2 1.35; sums of float32, 7 rows of 5, 0.55; by that of narrow columns 40
// rows of 5 0.75, 300 rows 1.9. Of few rows more columns are, and of many rows no columns that fill several
// vectors: the same day, 4 MiB, in time to read them and by columns, sums of float32, 3 rows of 17 2.0
// and 6.2, the largest of int32, 5 rows of 64 1.4 and 1.6, 16 rows of 65 1.45 and 1.45, sums of float32, 17
// rows of 32 1.6 and 1.3; indices of float32, 64 rows of 32 1.45 and 1.05, of bytes, 64 rows of 128 1.5
// and 1.15, of float32, 64 rows of 16 1.4 and 1.6; sums of float32, 64 rows of 16 1.4 and 1.05, 16 rows of
// 16 1.4 and 1.65.
inline constexpr int64_t kPlaneBytes = 128;
inline constexpr int64_t kVectorPlaneRows = 24;
inline constexpr int64_t kFewPlaneRows = 8;
inline constexpr int64_t kWidePlaneBytes = 1024;
inline constexpr int64_t kPlaneRows = 128;
inline constexpr int64_t kCellBytes = 4;
inline constexpr int kPlanesAtOnce = 4;

// Bytes of the accumulators of a strip of columns, which stay in the first cache, and the most columns. On
// one thread of an AMD EPYC of Zen 5, 2026-11-25, sums of 4096 rows of 32 KiB took 2.2 times the time to read
// them in strips of 2048, without prefetches, and take 1.5.
inline constexpr int64_t kStripBytes = 32 << 10;
inline constexpr int64_t kStripColumns = 4096;
// How far ahead it is prefetched, by the same measurement: 512 and 2048 took 1.6, 4096 took 2.1. Rows that
// follow each other, and whose accumulators stay in registers, are prefetched kPrefetchDistance ahead, behind
// the last row too, as the next plane is there: on a Xeon with AVX-512 (2 cores, one thread, 2026-11-26)
// indices of bytes, 64 rows of 32 in planes, take 1.23 times the time to read them, and took 1.9 with 1024.
inline constexpr int64_t kPrefetchBytes = 1024;
// Where there are so many times as many rows as are combined at a time, the next ones are prefetched, of the
// same columns. On one thread of a Xeon with AVX-512, 2026-11-26, in time by that of a reading: sums of 192
// rows of 65536 floats 0.62, with kPrefetchBytes 0.81, over 17 columns 0.9 and 1.1; but of 12 rows of a
// million 1.5 and 0.92. The same day lines of 100 halves 1.0 with kPrefetchDistance, and 1.4 with no
// prefetch.
inline constexpr int64_t kManyRows = 4;
// So many strips there are for each thread, so that one which is slow holds up nobody.
inline constexpr int64_t kThreadStrips = 2;
// The least bytes of a row of a strip, where there are strips for every thread.
inline constexpr int64_t kStripLeastBytes = 512;
// The rows of a strip that are combined with its accumulators at a time; of products of floats, which are
// looked at behind each fifth, or each sixteenth.
inline constexpr int64_t kRowsAtOnce = 8;
inline constexpr int64_t kRowsOfProducts = 15;
// Narrow columns are chosen where they have so many groups of rows.
inline constexpr int64_t kNarrowGroups = 16;

// Lines that are not adjacent are copied in tiles of that many bytes.
inline constexpr int64_t kTileBytes = 16 << 10;
// How far ahead lines that are transposed are prefetched, into the first cache and into the second one, which
// has room for what comes while a tile is combined. On one thread of a Xeon with AVX-512, 2026-11-26, 24 MiB,
// in time to read them: the largest of float32 in lines of 7 1.5, with the second cache alone 1.7, with 1024
// bytes into the first one 1.9; of bytes in lines of 11 2.1, 2.3 and 5.4; sums of float16 in lines of 7 1.8,
// 1.8 and 4.9.
inline constexpr int64_t kTileNear = 2 << 10;
inline constexpr int64_t kTileAhead = 8 << 10;
// The most lines of a tile, whose results of 8 bytes are staged together.
inline constexpr int64_t kTileLines = 1024;
// Few columns between rows are tiled with them up to so many bytes.
inline constexpr int64_t kMostCellBytes = 1024;
// Lines along another dimension are taken for adjacent ones where those are fewer.
inline constexpr int64_t kFewLines = 16;

// A reduction with fewer than that many outputs, or strips of outputs, is cut into chunks of that many bytes
// at least, so that all threads of any machine are busy; their results have at most that many bytes. Of less
// than kThreadBytes for each strip not even the strips have a thread each.
inline constexpr int64_t kChunkedBelow = 64;
inline constexpr int64_t kThreadBytes = 128 << 10;
inline constexpr int64_t kChunkBytes = 64 << 10;
// Of indices so many bytes at least for each accumulator of a chunk. On one thread of a Xeon with AVX-512,
// 2026-11-26, 4 MiB, in time to read them, and with 64 KiB for a chunk: indices of halves over the outer and
// inner axes of 1024 x 64 x 32 1.2 and 1.9, of bytes over 131072 rows of 32 1.2 and 1.7, of 16 bits over rows
// of 8 1.05 and 1.7.
inline constexpr int64_t kAccumulatedBytes = 256;
inline constexpr int64_t kPartialBytes = 512 << 10;
// Of partial results that have so many bytes together, which are mostly in other processors' caches, threads
// combine so many columns each, or more.
inline constexpr int64_t kCombinedBytes = 128 << 10;
inline constexpr int64_t kCombined = 16;
// Bytes that a thread reads before it asks whether to stop.
inline constexpr int64_t kAskedBytes = 256 << 10;

// Segments of fewer bytes are reduced so many at a time, before those of the next line: as many as a set of
// the first cache has room for, whose steps are mostly a power of 2; and how many lines ahead they are
// prefetched.
inline constexpr int64_t kShortSegmentBytes = 2048;
inline constexpr int64_t kSegments = 16;
inline constexpr int64_t kPrefetchLines = 4;
// The most lines whose results are stored at a time; where their largest elements are looked for once more,
// no more than stay in the first cache.
inline constexpr int64_t kBatchLines = 64;
inline constexpr int64_t kBatchBytes = 32 << 10;

}  // namespace tuning
ANYDML_ISA_END
