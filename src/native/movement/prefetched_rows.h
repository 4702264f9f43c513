// Copies of rows in any order, with a software prefetch: the hardware follows no order of indices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "movement/rows.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// Whether rows of a table of so many bytes are prefetched.
inline bool are_prefetched(int64_t unit, int64_t table) {
  return unit >= kPrefetchedRow && table > kCachedTable;
}

// Copies the rows [begin, begin + size) of `count` ones, whose offsets are known.
inline void copy_prefetched(CopyAt copy_at, const int64_t* offsets, int64_t count, int64_t begin,
                            int64_t size, int64_t unit, const std::byte* in, std::byte* to) {
  constexpr int64_t kRowsAtOnce = 8;
  for (int64_t i = 0; i < size; i += kRowsAtOnce) {
    const int64_t first = begin + i;
    const int64_t last = std::min(first + kRowsAhead + kRowsAtOnce, count);
    for (int64_t row = first + kRowsAhead; row < last; ++row) prefetch_lines(in + offsets[row], unit);
    copy_at(offsets + first, std::min(kRowsAtOnce, size - i), unit, in, to + i * unit);
  }
}

}  // namespace
ANYDML_ISA_END
