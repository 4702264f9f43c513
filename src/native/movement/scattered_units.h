// A scatter's copies of short units, by the size of what is loaded and stored at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "movement/sorted_points.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "simd/strided_copy.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// Prefetches into the first cache.
ANYDML_INLINE void prefetch_for_store([[maybe_unused]] const std::byte* to) {
#if defined(__GNUC__)
  __builtin_prefetch(to, 1, 3);
#endif
}

// A scatter: units that lie at one step go where offsets point to. What is stored to kRowsAhead later is
// prefetched where no cache has it yet, as stores leave a processor in their order, and wait for each other's
// lines: at so many units, whose later offsets are known.
struct ScatteredRun {
  int64_t count;
  int64_t step;
  int64_t unit;
  int64_t prefetched;
};
using CopyTo = void (*)(const int64_t* offsets, ScatteredRun run, const std::byte* from, std::byte* to);

// Units of the size of T, or of up to twice as much, as two values that overlap.
template <class T>
void copy_to(const int64_t* offsets, const ScatteredRun run, const std::byte* from, std::byte* to) {
  constexpr int64_t kSize = sizeof(T);
  int64_t i = 0;
  if (run.prefetched == 0 && run.step == kSize && run.unit == kSize) {
#pragma GCC unroll 8
    for (; i < run.count; ++i) store(to + offsets[i], load<T>(from + i * kSize));
    return;
  }
  const auto copy = [&](const auto& copy_unit) {
    for (; i < run.prefetched; ++i, from += run.step) {
      prefetch_for_store(to + offsets[i + kRowsAhead]);
      copy_unit(to + offsets[i]);
    }
    for (; i < run.count; ++i, from += run.step) copy_unit(to + offsets[i]);
  };
  if (run.unit == kSize) return copy([&](std::byte* at) { store(at, load<T>(from)); });
  const int64_t unit = run.unit;
  copy([&](std::byte* at) { copy_ends<T>(at, from, unit); });
}

// Likewise of points that are sorted.
using CopySorted = void (*)(std::span<const SortedPoint> points, int64_t unit, const std::byte* from,
                            std::byte* to);

template <class T>
void copy_sorted(std::span<const SortedPoint> points, int64_t unit, const std::byte* from, std::byte* to) {
  const size_t size = points.size();
  for (size_t i = 0; i < size; ++i) {
    if (i + kRowsAhead < size) {
      prefetch_line(from + points[i + kRowsAhead].from);
      prefetch_for_store(to + points[i + kRowsAhead].to);
    }
    copy_ends<T>(to + points[i].to, from + points[i].from, unit);
  }
}

struct ScatterFunctions {
  CopyTo copy_to;
  CopySorted copy_sorted;
};

template <class T>
constexpr ScatterFunctions kScatter = {copy_to<T>, copy_sorted<T>};

// Null where a unit is long.
ScatterFunctions choose_scatter(int64_t unit) {
  if (unit >= kPrefetchedRow) return {nullptr, nullptr};
  if (unit >= 16) return kScatter<Chunk>;
  if (unit >= 8) return kScatter<uint64_t>;
  if (unit >= 4) return kScatter<uint32_t>;
  return unit >= 2 ? kScatter<uint16_t> : kScatter<uint8_t>;
}

}  // namespace
ANYDML_ISA_END
