// The tuning numbers of movement, with what they were chosen by.
//
// Numbers without a note are first choices, not measured against others.
#pragma once

#include <cstdint>

#include "platform/isa.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

// Bytes of the output that are put together at a time, in the first cache.
constexpr int64_t kPortion = 2 << 10;
// Runs of at least that many bytes are copied one by one, past the caches without a buffer.
constexpr int64_t kLongRun = 256;
// Bytes of a long run that are copied at a time; and bytes of shorter ones between the one that is copied and
// the one that is prefetched, as the hardware follows no steps from run to run.
constexpr int64_t kLongPortion = 64 << 10;
constexpr int64_t kBytesAhead = 8 << 10;

// Units of one row below which a table of offsets takes the place of nested loops, and its largest size.
constexpr int64_t kShortRow = 16;
constexpr int64_t kMostOffsets = 512;

// Tiles: what a tile has of a column, which lies in the lines of the input, in bytes and at most in rows; its
// bytes; and the output's rows up to which a tile has whole ones.
constexpr int64_t kTileRowBytes = 256;
constexpr int64_t kMostTileRows = 256;
// A column's bytes below which tiles are put together row by row, as no square of elements is full.
constexpr int64_t kFewestRowBytes = 16;
constexpr int64_t kTileBytes = 32 << 10;
constexpr int64_t kWholeRow = 512;
// A step from row to row of the output by multiples of which lines fall into few sets of the first cache.
constexpr int64_t kConflictingStep = 512;
// Bytes of a row of the output that one thread writes: ends that fill no line cost as much as some kilobytes.
constexpr int64_t kStrip = 128 << 10;

// Several outputs of one input are written in turn, so many bytes at a time, so that what they read together
// is still in the second cache.
constexpr int64_t kTurnBytes = 256 << 10;
// Blocks in another order than the input's that are worth a prefetch; the hardware follows smaller ones.
constexpr int64_t kFewestBlockBytes = 2 << 10;

// Segments that are put together at a time, and bytes of one of them.
constexpr int64_t kMostPieces = 512;
constexpr int64_t kPieceBytes = 64 << 10;
// Bytes of rows that are put together by one list of shuffles.
constexpr int64_t kMostShuffled = 1 << 10;
// The mean piece from which on they are sent without a buffer.
constexpr int64_t kLongPiece = 1 << 10;
constexpr int64_t kMostSplits = 4096;
// Indices of a dimension whose offsets are kept.
constexpr int64_t kMostPlaces = 4096;

// Gathered rows: indices that are looked at together, and the rows between the one that is copied and the one
// that is prefetched.
constexpr int64_t kIndicesAtOnce = 1024;
constexpr int64_t kRowsAhead = 32;
// Points of a run from which on their offsets are set run by run.
constexpr int64_t kShortRun = 32;
// Indices that a thread looks at together, before anything is written.
constexpr int64_t kIndicesLookedAt = 8 << 10;
// Bytes between the indices that are read and those that are prefetched, and how many indices' lines are
// prefetched together.
constexpr int64_t kIndicesAhead = 8 << 10;
constexpr int64_t kIndicesPrefetched = 256;
// Elements by an index for each, along another axis than the last: bytes of the columns that are gone through
// together, so that what their indices point to stays in the second cache, and of those of a line up to which
// that is done; and what each thread has at least of a row, where threads share columns.
constexpr int64_t kColumnsBytes = 512 << 10;
constexpr int64_t kMostColumnsBytes = 4 << 20;
constexpr int64_t kOwnColumns = 4 << 10;
// Rows from which on they are prefetched, as more are in flight than the processor looks ahead; and from
// which on they are sent without a buffer.
constexpr int64_t kPrefetchedRow = 32;
constexpr int64_t kCachedTable = 1 << 20;  // bytes that are gathered from without a prefetch
constexpr int64_t kLongRow = 1 << 10;

}  // namespace
ANYDML_ISA_END
