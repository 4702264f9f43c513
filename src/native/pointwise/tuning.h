// The tuning numbers of pointwise programs, with what they were chosen by.
//
// Where a note names a date and no machine, the history does not record the machine. Numbers without a note
// are inherited, not measured again.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Bytes of a tile's widest numbers: few enough that a program's registers stay in the first cache.
// 2026-11-21, no ratio recorded.
inline constexpr int64_t kTileBytes = 4096;
// Tiles that make one where all tensors are contiguous, so that a row is left less often. 2026-11-21, with
// the strips below: as fast as a copy.
inline constexpr int64_t kContiguousTiles = 4;
// Elements from which on rows of which some operand is broadcast are read in place, one after the other,
// rather than gathered to a tile of several: what has just been copied to other lines is loaded late.
// 2026-11-25: sums of bytes with a row for all, in rows of 1021, take half the time (Xeon).
inline constexpr int64_t kLeastRow = 128;
// Elements of a row from which on it is computed from a line of its output on. 2026-11-25, with the above.
inline constexpr int64_t kAlignedFrom = 512;
// Tiles after which a thread asks whether it is to stop, which reads the clock: 64 KiB of bytes, within a
// millisecond of what takes longest.
inline constexpr int64_t kTilesPerQuestion = 16;
// Bytes of a strip of the tensor with the widest elements, where outputs are stored past the caches: memory
// is as fast as in a copy where reads and writes alternate often. 2026-11-21. Counted by the tensors'
// elements and not by the program's since 2026-11-25: 8-bit sums that are computed in double precision, 64
// elements at a time before, take half the time (Zen 5).
inline constexpr int64_t kStripBytes = 512;
// How far behind a strip of each input is prefetched meanwhile, into the first cache. On one thread of a Xeon
// with AVX-512 whose memory others used too, 2026-11-26, minima beside a copy of 32 MiB: sums 0.67, a chain
// of eight operators 0.83, SIGMOID of float16 1.29; into the second cache 0.78, 1.00, 1.38; 1024 as 2048.
inline constexpr int64_t kPrefetchBytes = 2048;
// Parts of each thread of an output that is stored past the caches, which threads take as they are free: some
// share their core with others. 2026-11-21, no ratio recorded.
inline constexpr int64_t kPartsPerThread = 16;
// Bytes between the registers of a program: equal elements of neighbours lie in different sets of a cache.
// Inherited, not measured again.
inline constexpr int64_t kRegisterPitch = kTileBytes + 192;
// The most registers: tensors, and intermediate results that are needed at a time.
inline constexpr int kMostRegisters = 24;
// A stride in bytes from which on a tensor counts as transposed, and the width of the tiles by which it is
// read. Inherited, not measured again.
inline constexpr int64_t kTransposedStride = 64;
inline constexpr int64_t kTransposedWidth = 32;
// The time that an exponential or a logarithm takes, in bytes that could be moved meanwhile. Inherited, not
// measured again.
inline constexpr int64_t kTranscendentalCost = 32;
// Elements from which on a program of bytes is computed for all 256 of them first, by each thread, and looked
// up; and the time that a byte takes which is looked up by itself. First choices.
inline constexpr int64_t kTableFrom = 4096;
inline constexpr int64_t kLookUpCost = 8;

ANYDML_ISA_END
