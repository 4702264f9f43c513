// A radix partitioning of a scatter's elements by where in the output they go to, in front of the stores:
// those of a part of the output, which fits the second cache, are stored together. Stores to places in random
// order wait for memory one line each, a processor has few of them on their way, and lines that several
// elements share would come several times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "movement/points.h"
#include "movement/scattered_units.h"
#include "movement/sorted_points.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Points that all threads together take at a time, in blocks. 16 Mi elements of 4 bytes into 64 MiB take 0.65
// of the time of stores in the order of the indices, 0.7 with half as many at a time, as much with all; and
// the bytes of what is scattered to from which on elements are partitioned, and up to which their parts fit
// the second cache (2026-11-26, one thread of a Xeon).
constexpr int64_t kPartitionedBlocks = 2048;
constexpr int64_t kPartitionedTable = 16 << 20;
constexpr int64_t kMostPartitionedTable = 128 << 20;

// Whether so many points share lines of a table of so many bytes.
inline bool are_partitioned(int64_t points, int64_t table) {
  return kPartitionedTable <= table && table <= kMostPartitionedTable && points >= table / kLine * 4;
}

// The elements of a thread's points, by parts: each a chain of pages, in the order of the points.
template <class T>
class PartitionedElements {
 public:
  void reserve(int64_t blocks, int64_t parts) {
    memory_ = std::make_unique_for_overwrite<Element[]>(
        static_cast<size_t>(blocks * kIndicesAtOnce + parts * kPage));
  }

  // Indices are read once: who changes them meanwhile changes no place between looking and storing.
  void partition(const Points& points, const OutputParts& parts, int64_t first, int64_t last,
                 const std::byte* indices, const std::byte* updates) {
    int64_t offsets[kIndicesAtOnce];
    const int64_t step = points.listed_step();
    clear();
    for (int64_t number = first; number < last; ++number) {
      const Block block = points.resolve(number, indices, offsets);
      for (int64_t run = 0; run < block.runs; ++run) {
        const std::byte* const from = updates + block.listed + run * block.next_run;
        for (int64_t begin = 0; begin < block.count; begin += kIndicesPrefetched) {
          const int64_t size = std::min(kIndicesPrefetched, block.count - begin);
          block.prefetch_indices_of(run * block.count + begin, size);
          append({offsets + run * block.count + begin, static_cast<size_t>(size)}, parts, step,
                 from + begin * step);
        }
      }
    }
  }

  void store_part(int64_t part, std::byte* out) const {
    const auto p = static_cast<size_t>(part);
    const std::vector<Element*>& pages = pages_[p];
    for (size_t page = 0; page < pages.size(); ++page) {
      const Element* const elements = pages[page];
      const bool is_last = page + 1 == pages.size();
      const int64_t count = is_last ? next_[p] - elements : kPage;
      int64_t i = 0;
      for (; i + kRowsAhead < count; ++i) {
        prefetch_for_store(out + elements[i + kRowsAhead].to);
        store(out + elements[i].to, elements[i].value);
      }
      for (; i < count; ++i) store(out + elements[i].to, elements[i].value);
    }
  }

 private:
  // Its place in its part.
  struct Element {
    uint32_t to;
    T value;
  };
  static constexpr int64_t kPage = 512;  // elements

  void clear() {
    used_ = memory_.get();
    next_.fill(nullptr);
    ends_.fill(nullptr);
    for (std::vector<Element*>& pages : pages_) pages.clear();
  }

  void append(std::span<const int64_t> offsets, const OutputParts& parts, int64_t step,
              const std::byte* from) {
    for (const int64_t offset : offsets) {
      const size_t part = parts.of(offset);
      if (next_[part] == ends_[part]) begin_page(part);
      *next_[part]++ = {parts.within(offset), load<T>(from)};
      from += step;
    }
  }

  ANYDML_NOINLINE void begin_page(size_t part) {
    pages_[part].push_back(used_);
    next_[part] = used_;
    used_ += kPage;
    ends_[part] = used_;
  }

  std::unique_ptr<Element[]> memory_;  // pages
  Element* used_ = nullptr;            // the end of those that are
  std::array<Element*, OutputParts::kMost> next_{};
  std::array<Element*, OutputParts::kMost> ends_{};
  std::array<std::vector<Element*>, OutputParts::kMost> pages_;
};

// Scatters elements of the size of T, of several to one place the last one.
using ScatterPartitioned = void (*)(const Points& points, const OutputParts& parts, int threads,
                                    const std::byte* indices, const std::byte* updates, std::byte* out);

template <class T>
void scatter_partitioned(const Points& points, const OutputParts& parts, int threads,
                         const std::byte* indices, const std::byte* updates, std::byte* out) {
  const int64_t blocks = points.blocks();
  const int64_t at_once = divided_up(std::min(blocks, kPartitionedBlocks), threads);
  std::vector<PartitionedElements<T>> partitioned(static_cast<size_t>(threads));
  for (auto& each : partitioned) each.reserve(at_once, parts.count());
  for (int64_t begin = 0; begin < blocks && !is_cancelled(); begin += threads * at_once) {
    parallel_for(threads, threads, [&](int64_t i) {
      const int64_t first = std::min(begin + i * at_once, blocks);
      const int64_t last = std::min(first + at_once, blocks);
      partitioned[static_cast<size_t>(i)].partition(points, parts, first, last, indices, updates);
    });
    parallel_for(parts.count(), threads, [&](int64_t part) {
      for (const auto& each : partitioned) each.store_part(part, out + parts.begin(part));
    });
  }
}

// Null where a unit is no element.
inline ScatterPartitioned choose_scatter_partitioned(int64_t unit) {
  switch (unit) {
    case 1:
      return scatter_partitioned<uint8_t>;
    case 2:
      return scatter_partitioned<uint16_t>;
    case 4:
      return scatter_partitioned<uint32_t>;
    case 8:
      return scatter_partitioned<uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace
ANYDML_ISA_END
