// The tuning numbers of quantised pooling, with what they were chosen by.
//
// Where a note names a date and no machine, the history does not record the machine. Numbers without a note
// are inherited, not measured again.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// Windows of which each output is summed by itself
// ------------------------------------------------------------

// Wide windows that do not overlap are contiguous runs of bytes, which one instruction sums 32 at a time.
constexpr int64_t kWideWindow = 32;
// A stride so many times the window leaves most columns unread. Inherited, not measured again.
constexpr int64_t kSparseStride = 4;

// Blocks (BlockPooling)
// ---------------------------------------------------------------------------------------

// Limits that bound scratch memory and a plan's tables. Inherited, not measured again.
constexpr int64_t kMostBlockExtent = 512;
constexpr int64_t kMostBlockColumns = 4096;
constexpr int64_t kMostBlockBorder = 256;
constexpr int64_t kMostClasses = 512;  // of strips, by what their outputs divide by
constexpr int64_t kMostScratch = 640 << 10;
// Bytes of input of a block, so that it stays in the first cache, and its rows and the outputs of a tile at
// most. 2026-11-21, no ratio recorded.
constexpr int64_t kBlockBytes = 32 << 10;
constexpr int64_t kBlockRows = 128;
constexpr int64_t kMostTileOutputs = 2048;
// Outputs of a channel from which on the search for a map that needs an offset pays.
constexpr int64_t kThoroughOutputs = 512;

// Rows (RowPooling)
// -------------------------------------------------------------------------------------------

constexpr int64_t kMostRowColumns = 16 << 10;  // columns of scratch memory
constexpr int64_t kMostRowBorder = 4096;
// Vectors of columns, or of groups of 8, that make one of outputs: up to 192 taps along the width, from which
// on prefix sums take less time. 2026-11-24, 2 cores of an AMD EPYC with AVX-512, one thread.
constexpr int64_t kMostNeighbours = 32;
constexpr int64_t kFewNeighbours = 12;     // taps along the width from which on groups of 8 are summed first
constexpr int64_t kMostRowsAtOnce = 1024;  // rows of input that are added in one pass over the columns
// Outputs that divide by one count from which on the search for their map pays.
constexpr int64_t kSearchedOutputs = 512;
constexpr int64_t kMostMaps = 16;

// Prefix sums (PrefixPooling)
// ---------------------------------------------------------------------------------

// Columns of scratch memory, or twice the window's extent where that is more.
constexpr int64_t kPrefixColumns = 16 << 10;
// A model of the time of an output row by prefix sums and of an output by itself, in cycles: to add a byte to
// a column's sum, to make and read a prefix, to requantise; to begin an output, a run of bytes in it, and to
// add a byte of it, alone or in a run. It separates cases that differ by more than a factor. 2026-11-24, 2
// cores of an AMD EPYC with AVX-512, one thread, milliseconds by windows by themselves -> by prefix sums:
// 257x257 of 1024x1024 1213 -> 1.3, 2000x40 of 2600x600 4878 -> 0.8, 45x45x45 of 80x80x80 441 -> 1.3, 2x3000
// of 64x9000 39 -> 0.8.
constexpr double kCyclesPerColumnByte = 0.5;
constexpr double kCyclesPerPrefix = 2;
constexpr double kCyclesPerPrefixOutput = 10;
constexpr double kCyclesPerOutput = 25;
constexpr double kCyclesPerRun = 6;
constexpr double kCyclesPerTap = 1;
constexpr double kCyclesPerByteOfRun = 1.0 / 20;

// Planes (PlanePooling)
// ---------------------------------------------------------------------------------------

// Bytes of planes that are summed before they are requantised, and of a plane up to which several are summed
// at once. 2026-11-21, ratio to a copy: planes of 7x7 2.4 -> 1.0, of 14x14 1.5 -> 1.1, with a scale for each
// channel 1.65 -> 1.2.
constexpr int64_t kPlaneBytes = 16 << 10;
constexpr int64_t kShortPlane = 1024;

}  // namespace
ANYDML_ISA_END
