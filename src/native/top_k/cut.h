// Where the order of keys is cut, so that as many as wanted come before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "top_k/lanes.h"

ANYDML_ISA_BEGIN
namespace {

// Keys that are counted at a time; so many may be read behind the last one.
constexpr int64_t kKeysAtOnce = 64;
constexpr int64_t kKeysBehind = kKeysAtOnce;

// Those above a key come before, and the first ones of those that are equal to it.
template <class Key>
struct Cut {
  Key key;
  int64_t equal;
};

// How many are above; those behind the last one are not.
template <class Key>
int64_t count_above(const Key* keys, int64_t count, Key key) {
  int64_t above = 0;
#if defined(ANYDML_VECTORS)
  using V = KeyLanes<Key>;
  constexpr int64_t kLanes = sizeof(V) / sizeof(Key);
  constexpr int64_t kVectors = 4;
  static_assert(kKeysAtOnce % (kVectors * kLanes) == 0);
  const V bound = V{} + key;
  V some[kVectors] = {};
  for (int64_t i = 0; i < count; i += kVectors * kLanes) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectors; ++v) {
      const auto* const from = reinterpret_cast<const std::byte*>(keys + i + v * kLanes);
      add_where_above(some[v], load_vector<V>(from), bound);
    }
  }
  const V sum = (some[0] + some[1]) + (some[2] + some[3]);
  for (int64_t lane = 0; lane < kLanes; ++lane) above += sum[lane];
#else
  for (int64_t i = 0; i < count; ++i) above += keys[i] > key ? 1 : 0;
#endif
  return above;
}

// Bisection of the range of keys, of which those above the middle are counted by vectors: one pass for each
// bit at most, and mostly few more than there are bits in the number of keys, as any key between the last
// wanted one and the next will do. `wanted` is less than their number.
template <class Key>
Cut<Key> cut_behind(const Key* keys, int64_t count, int64_t wanted) {
  using Unsigned = std::make_unsigned_t<Key>;
  Key low = keys[0];
  Key high = keys[0];
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, keys[i]);
    high = std::max(high, keys[i]);
  }
  int64_t above_high = 0;
  while (low < high) {
    const auto half = static_cast<Unsigned>((static_cast<Unsigned>(high) - static_cast<Unsigned>(low)) / 2);
    const auto middle = static_cast<Key>(static_cast<Unsigned>(low) + half);
    const int64_t above = count_above(keys, count, middle);
    if (above > wanted) {
      low = static_cast<Key>(middle + 1);
    } else {
      high = middle;
      above_high = above;
      if (above == wanted) break;
    }
  }
  return {high, wanted - above_high};
}

}  // namespace
ANYDML_ISA_END
