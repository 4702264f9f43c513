// The tuning numbers of this family: block sizes, and from which sizes on a path pays. None of them changes a
// bit of a result but kStatisticsChunk and kPackedChannels, which are part of the order of additions.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// CONVOLUTION by a product of matrices.
// Tasks for each thread, so that none waits long for the last.
inline constexpr int64_t kDenseTasks = 4;
// Columns from which on it takes little time to gather the rows anew for each share of them.
inline constexpr int64_t kGatheringColumns = 128;
// Gathered rows of a block, which stay in the second cache while panels of columns pass.
inline constexpr int64_t kGatheredBytes = 128 << 10;
// The same where weights are many more, as each block reads all of them.
inline constexpr int64_t kMostGatheredBytes = 512 << 10;
// Bytes of the lines of an input whose results are computed together, and most of them, where weights are
// many more; bytes up to which a line and its sums may be kept, and places of a line from which on it takes
// less time to multiply windows where they lie than to gather rows of several lines.
inline constexpr int64_t kLinesBytes = 256 << 10;
inline constexpr int64_t kMostLinesBytes = 512 << 10;
inline constexpr int64_t kMostLineBytes = 512 << 10;
// Bytes of a panel's weights that pass over all lines at once.
inline constexpr int64_t kWeightsOfLines = 160 << 10;
inline constexpr int64_t kLinePlaces = 5;
// Bytes of weights that pass over a tile of rows after each other, all of them, or a block of more: both stay
// in the second cache, and while the weights of a block are multiplied, the next block's are prefetched, but
// the first one's are not.
inline constexpr int64_t kWeightsAtOnce = 256 << 10;
inline constexpr int64_t kWeightsOfBlock = 128 << 10;
// Bytes of the weights of all parts, groups or phases, up to which tasks of the same places follow each
// other: so many stay in the second cache.
inline constexpr int64_t kWeightsOfParts = 512 << 10;
// Columns of a group from which on a product for each group fills half of a vector at least.
inline constexpr int64_t kGroupColumns = 8;
// Channels of an input from which on it is copied to channels last before its rows are gathered: of fewer,
// gathering reads each tap's places in a row itself.
inline constexpr int64_t kCopiedChannels = 8;

// Windows by channel: rows of an image from which on threads do not share the channels too.
inline constexpr int64_t kWindowRows = 8;
// Bands of rows for each thread.
inline constexpr int64_t kWindowBands = 4;
// Bytes under the windows of a row, which stay in the first cache for the next row's.
inline constexpr int64_t kWindowBytes = 24 << 10;
// The same of images of more bytes than stay in the second cache: longer runs of it are read, and stay
// there.
inline constexpr int64_t kRowBytes = 128 << 10;
inline constexpr int64_t kNearImages = 1 << 20;
// As many taps along a dimension as are worth several threads wherever they are read.
inline constexpr int64_t kCountedTaps = 64;
// Places of a row from which on pooling is faster along it than over channels that have to be copied.
inline constexpr int64_t kNarrowRow = 32;

// Normalisation: tasks for each thread.
inline constexpr int64_t kNormalizationTasks = 4;
// Threads are chosen by bytes that could be copied in the time that an element takes with its statistics, and
// elements of images that they share at once, each so many, which stay in the second cache.
inline constexpr int64_t kNormalizationWork = 16;
inline constexpr int64_t kElementsAtOnce = 1 << 18;
// Elements below which BATCH_NORMALIZATION computes in double precision, which takes no time of so few.
inline constexpr int64_t kFewElements = 1 << 13;
// Elements of a chunk of statistics, of which there are some for each thread of 1 MiB.
inline constexpr int64_t kStatisticsChunk = 1 << 14;

// Elements of packed rows of channels that are gone over as one.
inline constexpr int64_t kPackedChannels = 64;
// Likewise of results, whose factors stay in the first cache.
inline constexpr int64_t kPackedResults = 256;

// Copies from layout to layout: places that a task has, whose channels stay in the first caches.
inline constexpr int64_t kCopiedPlaces = 64;
// Elements of the images of an input and an output that are copied at a time for each thread, which stay in
// the second cache.
inline constexpr double kCopiedAtOnce = 1 << 19;

ANYDML_ISA_END
