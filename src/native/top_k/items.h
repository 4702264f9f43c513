// Elements by what they are chosen by: a key, and among equal ones the lowest index. A larger item comes
// first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "platform/isa.h"

ANYDML_ISA_BEGIN
namespace {

// In one word: keys of up to 32 bits, above the complement of an index below 2^32.
template <class Key>
struct WordItems {
  using Item = uint64_t;
  using Rankable = int32_t;  // what keys are compared as
  static constexpr int64_t kMostElements = int64_t{1} << 32;

  ANYDML_INLINE static Item item(Key key, int64_t index) {
    using Unsigned = std::make_unsigned_t<Key>;
    constexpr auto kSign = static_cast<Unsigned>(std::numeric_limits<Key>::min());
    const auto above = static_cast<Unsigned>(static_cast<Unsigned>(key) ^ kSign);
    return static_cast<Item>(above) << 32 | (0xffffffff - static_cast<uint64_t>(index));
  }
  ANYDML_INLINE static Key key(Item item) {
    using Unsigned = std::make_unsigned_t<Key>;
    constexpr auto kSign = static_cast<Unsigned>(std::numeric_limits<Key>::min());
    return static_cast<Key>(static_cast<Unsigned>(item >> 32) ^ kSign);
  }
  ANYDML_INLINE static Rankable rankable(Item item) { return key(item); }
  ANYDML_INLINE static int64_t index(Item item) {
    return static_cast<int64_t>(0xffffffff - (item & 0xffffffff));
  }
  // A byte of the key, the lowest first.
  ANYDML_INLINE static size_t byte(Item item, int number) { return item >> (32 + 8 * number) & 0xff; }
};

// In two words.
template <class Key>
struct PairItems {
  using Item = std::pair<uint64_t, uint64_t>;
  using Rankable = int64_t;
  static constexpr int64_t kMostElements = std::numeric_limits<int64_t>::max();
  static constexpr uint64_t kSign = uint64_t{1} << 63;

  ANYDML_INLINE static Item item(Key key, int64_t index) {
    return {static_cast<uint64_t>(static_cast<int64_t>(key)) ^ kSign, ~static_cast<uint64_t>(index)};
  }
  ANYDML_INLINE static Key key(const Item& item) { return static_cast<Key>(item.first ^ kSign); }
  ANYDML_INLINE static Rankable rankable(const Item& item) {
    return static_cast<Rankable>(item.first ^ kSign);
  }
  ANYDML_INLINE static int64_t index(const Item& item) { return static_cast<int64_t>(~item.second); }
  ANYDML_INLINE static size_t byte(const Item& item, int number) { return item.first >> 8 * number & 0xff; }
};

// Sorts items in the order of their indices, the largest first; the result is where it says. Many of them by
// a stable radix sort, a byte at a time, which leaves bytes out that are the same in all.
template <class Items, int kBytes>
typename Items::Item* radix_sorted(typename Items::Item* items, typename Items::Item* other, int64_t count) {
  std::array<std::array<int64_t, 256>, kBytes> places{};
  for (int64_t i = 0; i < count; ++i) {
    for (int byte = 0; byte < kBytes; ++byte)
      ++places[static_cast<size_t>(byte)][Items::byte(items[i], byte)];
  }
  for (int byte = 0; byte < kBytes; ++byte) {
    std::array<int64_t, 256>& starts = places[static_cast<size_t>(byte)];
    if (starts[Items::byte(items[0], byte)] == count) continue;
    int64_t start = 0;
    for (size_t value = starts.size(); value-- > 0;) start += std::exchange(starts[value], start);
    for (int64_t i = 0; i < count; ++i) other[starts[Items::byte(items[i], byte)]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

}  // namespace
ANYDML_ISA_END
