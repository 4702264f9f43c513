// Indices, of the types that they may have: whether a dimension has them, and where they point.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "core/layout.h"
#include "movement/copy.h"
#include "movement/tuning.h"
#include "movement/view.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// Software prefetch of the indices that are read soon: the hardware's stops where a page ends.
ANYDML_INLINE void prefetch_indices(const std::byte* from, int64_t size) {
  for (int64_t i = 0; i < size; i += kLine) prefetch_line(from + kIndicesAhead + i);
}

// The place that an index of a dimension means, negative ones counted from its end; of one that the dimension
// does not have some number beyond it.
template <class T>
inline uint64_t place_of(T index, int64_t size) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(index) + (index < 0 ? size : 0));
  } else {
    return index;
  }
}

// Where an index points to along an axis. One that the axis does not have becomes 0, so that nothing outside
// of the tensor is reached; that there is none has been looked at before.
template <class T>
inline int64_t offset_of(T index, const Loop& axis) {
  const uint64_t place = place_of(index, axis.size);
  return static_cast<int64_t>(place < static_cast<uint64_t>(axis.size) ? place : 0) * axis.in;
}

// Adds to offsets where indices point to along an axis.
using AddOffsets = void (*)(const Loop& indices, int64_t count, const Loop& axis, const std::byte* from,
                            int64_t* offsets);

template <class T>
void add_offsets(const Loop& indices, int64_t count, const Loop& axis, const std::byte* from,
                 int64_t* offsets) {
  const Loop loop = axis;
  const auto point = [&](int64_t step) {
    for (int64_t i = 0; i < count; ++i) {
      offsets[i] += offset_of(load<T>(from + i * step), loop);
    }
  };
  // Where indices follow each other compilers make vectors of them.
  if (indices.in == sizeof(T)) {
    point(sizeof(T));
  } else {
    point(indices.in);
  }
}

// Sets offsets to where indices point to, added to start + i * indices.out.
using SetOffsets = void (*)(const Loop& indices, int64_t count, const Loop& axis, int64_t start,
                            const std::byte* from, int64_t* offsets);

template <class T>
void set_offsets(const Loop& indices, int64_t count, const Loop& axis, int64_t start, const std::byte* from,
                 int64_t* offsets) {
  const Loop loop = axis;
  const int64_t own = indices.out;
  if (own == 0 && indices.in == sizeof(T) && std::has_single_bit(static_cast<uint64_t>(loop.in))) {
    // Elements of one row: by a shift, as few processors multiply integers of 64 bits in one step.
    const int shift = std::countr_zero(static_cast<uint64_t>(loop.in));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = offset_of(load<T>(from + i * static_cast<int64_t>(sizeof(T))), {loop.size, 1, 0});
      offsets[i] = start + (place << shift);
    }
    return;
  }
  const auto point = [&](int64_t step) {
    for (int64_t i = 0; i < count; ++i) {
      offsets[i] = start + i * own + offset_of(load<T>(from + i * step), loop);
    }
  };
  if (indices.in == sizeof(T)) {
    point(sizeof(T));
  } else {
    point(indices.in);
  }
}

// Whether the axis has all indices, without a branch for each.
using AreIndices = bool (*)(const Loop& indices, int64_t axis, const std::byte* from);

template <class T>
bool are_indices(const Loop& indices, int64_t axis, const std::byte* from) {
  const Loop loop = indices;
  const auto at_most = static_cast<int64_t>(
      std::min(static_cast<uint64_t>(axis - 1), static_cast<uint64_t>(std::numeric_limits<T>::max())));
  const auto high = static_cast<T>(at_most);
  // Negative ones count from the end.
  const auto low = static_cast<T>(std::is_signed_v<T> ? -high - 1 : 0);
  // One comparison, of how far an index is above the lowest.
  using Distance = std::make_unsigned_t<T>;
  const auto lowest = static_cast<Distance>(low);
  const auto most = static_cast<Distance>(static_cast<Distance>(high) - lowest);
  Distance beyond = 0;
  const bool are_many = loop.size >= kIndicesLookedAt && loop.in == sizeof(T);
  const auto look = [&](int64_t step) {
    for (int64_t begin = 0; begin < loop.size; begin += kIndicesPrefetched) {
      const int64_t end = std::min(begin + kIndicesPrefetched, loop.size);
      if (are_many) prefetch_indices(from + begin * step, (end - begin) * step);
      for (int64_t i = begin; i < end; ++i) {
        const auto distance = static_cast<Distance>(load<Distance>(from + i * step) - lowest);
        beyond |= static_cast<Distance>(distance > most ? 1 : 0);
      }
    }
  };
  if (loop.in == sizeof(T)) {
    look(sizeof(T));
  } else {
    look(loop.in);
  }
  return beyond == 0;
}

struct IndexFunctions {
  AddOffsets add_offsets;
  SetOffsets set_offsets;
  AreIndices are_indices;
};

// Null for what is no type of indices.
inline IndexFunctions functions_of(DataType type) {
  switch (type) {
    case DataType::kInt32:
      return {add_offsets<int32_t>, set_offsets<int32_t>, are_indices<int32_t>};
    case DataType::kInt64:
      return {add_offsets<int64_t>, set_offsets<int64_t>, are_indices<int64_t>};
    case DataType::kUint32:
      return {add_offsets<uint32_t>, set_offsets<uint32_t>, are_indices<uint32_t>};
    case DataType::kUint64:
      return {add_offsets<uint64_t>, set_offsets<uint64_t>, are_indices<uint64_t>};
    default:
      return {nullptr, nullptr, nullptr};
  }
}

// Whether each axis has all indices of its coordinate, which are `coordinate` apart: those of the loops
// `outer` around a row. A cancellation leaves some out.
inline bool have_indices(std::span<const Loop> outer, const Loop& row, std::span<const Loop> axes,
                         int64_t coordinate, AreIndices are_indices, const std::byte* indices) {
  const int64_t pieces = divided_up(row.size, kIndicesLookedAt);
  const int64_t parts = steps_of(outer) * pieces;
  const auto coordinates = static_cast<int64_t>(axes.size());
  const int64_t bytes = steps_of(outer) * row.size * coordinates * static_cast<int64_t>(sizeof(int64_t));
  const int threads = threads_for(bytes);
  const int64_t calls = std::min(calls_for(bytes, threads), parts);
  std::atomic<bool> all{true};
  parallel_for(calls, threads, [&](int64_t call) {
    const int64_t first = share_begin(call, calls, parts);
    const int64_t last = share_begin(call + 1, calls, parts);
    LoopCursor at(outer, first / pieces);
    bool own = true;
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = part % pieces * kIndicesLookedAt;
      const Loop piece{std::min(kIndicesLookedAt, row.size - begin), row.in, row.out};
      const std::byte* const from = indices + at.in() + begin * row.in;
      for (int64_t c = 0; c < coordinates; ++c) {
        own &= are_indices(piece, axes[static_cast<size_t>(c)].size, from + c * coordinate);
      }
      if (part % pieces == pieces - 1) at.advance();
    }
    if (!own) all.store(false, std::memory_order_relaxed);
  });
  return all.load(std::memory_order_relaxed);
}

// Loops in the attribute's order: size, step in bytes of what is read, and of what is written.
inline std::vector<Loop> loops_of(const Attributes& attributes, const char* name, Reach& read,
                                  Reach& written) {
  std::vector<Loop> loops;
  const std::vector<int64_t>& words = attributes.integers(name);
  require(words.size() % 3 == 0, "a loop has three numbers");
  for (size_t i = 0; i < words.size(); i += 3) {
    require(words[i] >= 1, "a loop has no step");
    loops.push_back({words[i], words[i + 1], words[i + 2]});
    read.add_steps(loops.back().size, loops.back().in);
    written.add_steps(loops.back().size, loops.back().out);
  }
  return loops;
}

}  // namespace
ANYDML_ISA_END
