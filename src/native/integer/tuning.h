// The tuning numbers of integer products.
//
// Numbers without a note are first choices, not measured against others.
#pragma once

#include <cstdint>

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// A block: so many products for each sum, so many columns, and so many rows, which are packed at a time.
constexpr int64_t kDepthBlock = 512;
constexpr int64_t kColumnBlock = 256;
constexpr int64_t kRowBlock = 96;
// Elements of a line that are scattered over a panel at a time.
constexpr int64_t kLinePiece = 512;
// Rows up to which columns of a transposed matrix are multiplied as they are read, not packed.
constexpr int64_t kFewRows = 4;
// Channels and results of a group up to which taps are added one by one, without panels.
constexpr int64_t kFewResults = 4;
// Rows whose sums are held while blocks of columns go by.
constexpr int64_t kTaskRows = 4 * kRowBlock;
// Products of bytes, the largest of which is 255^2, whose sum fits 32 bits: whole blocks, at most 33,025.
constexpr int64_t kMostProducts = 64 * kDepthBlock;
// Products whose sum, and a bias of as much, fit 32 bits.
constexpr int64_t kFewProducts = (int64_t{1} << 30) / (255 * 255);
static_assert(kColumnBlock % 64 == 0);
// Products that take about as long as moving a byte, by which threads are counted.
constexpr int64_t kProductsPerByte = 4;
// Of bytes that are multiplied as they are, by dot products and by tiles; and how many products each sum of a
// block has at a time.
constexpr double kVnniProductsPerByte = 16;
constexpr double kAmxProductsPerByte = 64;
constexpr int64_t kByteDepthBlock = 1024;
// What takes as long as a sum does to become a byte or a real number, and its row to be read and written:
// half of what was measured of few products each, as others have less to do beside them (Xeon with AMX,
// 2026-11-26: 16 to 64 channels of 55 x 55 in 67 us, where a copy in the second cache moves 64 bytes in 1
// ns).
constexpr int64_t kBytesPerRounding = 16;
// Bytes of a packed block that stay in the first cache, with sums of some rows.
constexpr int64_t kFewCells = 16 << 10;
// Of convolutions: bytes of a block's grid at most, of which a thread has one; places that blocks are not
// divided below as long as there is something else to divide; and places whose sums are held at a time.
constexpr int64_t kGridBytes = 256 << 10;
constexpr int64_t kFewPlaces = 256;
constexpr int64_t kStrip = 256;
static_assert(kStrip <= kColumnBlock);
// Places of several groups that a thread computes one after the other.
constexpr int64_t kGroupedPlaces = 16384;
// Tasks that there are for each thread, where blocks can be made smaller.
constexpr int64_t kTasksPerThread = 3;
// What small products are gathered to before the loop is asked for more.
constexpr int64_t kBytesPerCall = 32 << 10;

}  // namespace
ANYDML_ISA_END
