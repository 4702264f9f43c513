// Ranks by counting: how many come before each of a few keys.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "platform/isa.h"
#include "simd/vector.h"
#include "top_k/lanes.h"

ANYDML_ISA_BEGIN
namespace {

// Keys up to which that takes less time than to select and to sort: every key is compared with every other,
// but a vector of them at a time, and without a branch.
constexpr int64_t kMostRanked = 320;

#if defined(ANYDML_VECTORS)

constexpr int kRankVectors = 4;

// 0, 1, 2, ...
template <class Key>
ANYDML_INLINE auto lane_numbers() {
  constexpr int kLanes = kLaneBytes / static_cast<int>(sizeof(Key));
  using V = Vector<Key, kLanes>;
  return []<int... kLane>(std::integer_sequence<int, kLane...>) {
    return V{Key{kLane}...};
  }(std::make_integer_sequence<int, kLanes>{});
}

// Of some vectors of keys from `first` on. Of equal keys the first one comes before the others, so that keys
// before a vector count where they are equal, and those behind do not.
template <int kVectors, class Key>
ANYDML_INLINE void rank_vectors(const Key* keys, int64_t count, int64_t first, Key* ranks) {
  constexpr int kLanes = kLaneBytes / static_cast<int>(sizeof(Key));
  using V = Vector<Key, kLanes>;
  V own[kVectors];
  V rank[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    own[v] = load_vector<V>(reinterpret_cast<const std::byte*>(keys + first + v * kLanes));
    rank[v] = V{};
  }
  for (int64_t j = 0; j < first; ++j) {
    const V key = V{} + keys[j];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) add_where_not_below(rank[v], key, own[v]);
  }
#pragma GCC unroll 4
  for (int u = 0; u < kVectors; ++u) {
    const int64_t begin = first + u * kLanes;
    for (int64_t j = begin; j < std::min(begin + kLanes, count); ++j) {
      const V key = V{} + keys[j];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        if (v > u) add_where_not_below(rank[v], key, own[v]);
        if (v <= u) add_where_above(rank[v], key, own[v]);
      }
      // Those behind it in its own vector.
      rank[u] -= (V)(key == own[u]) & (V)(lane_numbers<Key>() > static_cast<Key>(j - begin));
    }
  }
  for (int64_t j = first + kVectors * kLanes; j < count; ++j) {
    const V key = V{} + keys[j];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) add_where_above(rank[v], key, own[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    store_vector(reinterpret_cast<std::byte*>(ranks + first + v * kLanes), rank[v]);
  }
}

// Room for so many keys, whatever is read and written behind them.
constexpr int64_t kRankRoom = kMostRanked + kRankVectors * kLaneBytes / static_cast<int64_t>(sizeof(int32_t));

template <class Key>
ANYDML_NOINLINE void rank_keys(const Key* keys, int64_t count, Key* ranks) {
  constexpr int64_t kLanes = kLaneBytes / static_cast<int64_t>(sizeof(Key));
  int64_t i = 0;
  for (; i + (kRankVectors - 1) * kLanes < count; i += kRankVectors * kLanes) {
    rank_vectors<kRankVectors>(keys, count, i, ranks);
  }
  for (; i < count; i += kLanes) rank_vectors<1>(keys, count, i, ranks);
}

#else

constexpr int64_t kRankRoom = kMostRanked;

template <class Key>
void rank_keys(const Key* keys, int64_t count, Key* ranks) {
  for (int64_t i = 0; i < count; ++i) {
    Key rank = 0;
    for (int64_t j = 0; j < count; ++j) rank += keys[j] > keys[i] || (keys[j] == keys[i] && j < i) ? 1 : 0;
    ranks[i] = rank;
  }
}

#endif

}  // namespace
ANYDML_ISA_END
