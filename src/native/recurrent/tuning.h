// The tuning numbers of this family. None of them changes a bit of a result.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN

// Units are padded to a multiple of the widest vector.
inline constexpr int64_t kUnitBlock = 16;
// Units whose gates are computed together: what the instructions of activations round up to.
inline constexpr int64_t kGateStrip = 64;

// What enters the gates is computed ahead for so many steps and sequences as these floats hold, for each
// thread: 512 KiB. They are 256 rows at most, which are worth packing the weights, and 12 at least.
inline constexpr int64_t kAhead = 128 << 10;
inline constexpr int64_t kMostAhead = 256;
inline constexpr int64_t kFewestAhead = 12;
// How deep rows of the input are packed at a time, and how many weights: 64 KiB of each thread.
inline constexpr int64_t kPackedDepth = 256;
inline constexpr int64_t kPackedWeights = 16 << 10;

// Where there are as many times the rows that are computed ahead, W is packed as a whole.
inline constexpr int64_t kPackedOnce = 3;

// Multiplications of a step that are worth a thread: some 3 microseconds, ten times what threads take to
// meet.
inline constexpr int64_t kMultiplicationsOfAThread = 64 << 10;

// Sequences that are worth a thread of their own, which then waits for no other behind a step: rows that hide
// what loading the weights takes; as long as the second cache holds these, 1 MiB.
inline constexpr int64_t kSequencesOfAThread = 4;
inline constexpr int64_t kSharedWeights = 256 << 10;
// So many steps are worth fetching the weights that other threads have packed.
inline constexpr int64_t kStepsOfAGroup = 64;

// Multiplications of a step, and products of sequences and units, from which on threads ask at each step, and
// at each panel, whether the call was cancelled.
inline constexpr int64_t kLongStep = 1 << 20;
inline constexpr int64_t kLongPanel = 4 << 10;

ANYDML_ISA_END
