// The tuning numbers of this family. None of them changes a bit of a result.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Results of a channel up to which they are multiplied along rows one after the other, and masks of taps that
// are kept for it, which long windows by short rows have many of.
inline constexpr int64_t kResultsOfRows = 2;
inline constexpr int64_t kMostTapLanes = 1 << 12;
// What planes of a block of places may take, in floats, so that they stay in the second cache.
inline constexpr int64_t kPlanesFloats = 128 << 10;
// Likewise of several groups, which stay in the first cache; or of so many, whose rows are found at once.
inline constexpr int64_t kNearFloats = 8 << 10;
inline constexpr int64_t kNearGroups = 4;
// Likewise of several images, where they are small.
inline constexpr int64_t kImagesFloats = 480 << 10;
// Places of a row of a block, at least.
inline constexpr int64_t kLeastRow = 32;
// Results of which a panel of places is copied for them all.
inline constexpr int64_t kResultsWorthCopies = 48;
// Products that are summed before the next results' turn: the weights of a tile and a panel of places stay in
// the first cache.
inline constexpr int64_t kChunk = 512;
// Results whose weights of a chunk stay in the second cache, and sums of a strip of panels, in floats.
inline constexpr int64_t kRowsOfBlock = 512;
inline constexpr int64_t kSumsFloats = 64 << 10;
// Panels of a strip, for which weights are read once, where there are as many.
inline constexpr int64_t kPanelsOfStrip = 8;
// Places of an image up to which planes of a depthwise convolution take longer than copies to channels last.
inline constexpr int64_t kFewPlaces = 64;
// Likewise of windows of so many taps.
inline constexpr int64_t kSomePlaces = 256;
inline constexpr int64_t kManyTaps = 25;
// Weights that are packed at a time, in floats.
inline constexpr int64_t kPackedFloats = 64 << 10;
// Results from which on it pays to copy elements for each tap along a row, where this saves panels.
inline constexpr int64_t kManyResults = 32;
// Channels of a group below which a loop over them takes as long as what it does.
inline constexpr int64_t kFewChannels = 16;
// Lanes that are saved, one of so many, are worth copies for each tap.
inline constexpr int64_t kLanesWorthCopies = 16;
// Products of each element that is copied to channels last or back from which on that pays, also where
// its results lie apart on planes, and elements of an image, of both copies, that stay in the caches.
inline constexpr double kProductsWorthCopies = 256;
inline constexpr double kProductsWorthNeighbours = 64;
inline constexpr double kCopiedElements = 1 << 21;
// Vectors of places, of all images, from which on products of matrices are worth packing weights for one
// call.
inline constexpr int64_t kVectorsWorthPacking = 3;
// Of the lanes of a group's results, one of so many without a result is worth planes.
inline constexpr int64_t kLanesWorthPlanes = 5;
// Places of a block that is read where it is.
inline constexpr int64_t kDirectPlaces = 1 << 12;
// Units of work for each thread, blocks of places or shares of results, where there is more than one thread.
inline constexpr int64_t kUnitsOfAThread = 4;
// Tasks for each thread, so that none waits long for the last.
inline constexpr int64_t kTasksOfAThread = 8;

ANYDML_ISA_END
