// The largest of the elements that one is shown in turn.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "platform/isa.h"
#include "simd/flag_words.h"
#include "top_k/cut.h"
#include "top_k/items.h"
#include "top_k/ranks.h"

ANYDML_ISA_BEGIN
namespace {

constexpr int64_t kBlock = 256;  // elements that are compared before any is looked at
// Items from which the first threshold comes, beside twice as many as are wanted: the fewer, the sooner there
// is one.
constexpr int64_t kFirstItems = 48;
constexpr int64_t kLaterItems = 128;
// Items that are ranked before any is left out, as there are few.
constexpr int64_t kFewItems = 80;

// Selection by a threshold: items are kept until there are several times as many as wanted, then only the
// largest of them, and the last one of these is what an element has to be larger than from then on. As
// elements come in the order of their indices, one that is equal to it comes too late. Items stay in the
// order of their indices.
template <class Order, class Items>
class Selection {
 public:
  using Item = typename Items::Item;
  using Rankable = typename Items::Rankable;
  using Key = typename Order::Key;
  static constexpr int64_t kSize = sizeof(Key);

  // Items from which on the threshold is raised: the more, the less often.
  static int64_t later_limit(int64_t k) { return 3 * k + kLaterItems; }

  // Of `k` among up to `count` elements.
  Selection(Order order, int64_t k, int64_t count)
      : order_(order),
        k_(k),
        first_limit_(std::min(count, std::max(kFewItems, 2 * k + kFirstItems))),
        later_limit_(std::min(count, later_limit(k))),
        items_(std::make_unique_for_overwrite<Item[]>(static_cast<size_t>(later_limit_ + kFlags))),
        other_(std::make_unique_for_overwrite<Item[]>(static_cast<size_t>(later_limit_ + kFlags))),
        keys_(std::make_unique_for_overwrite<Rankable[]>(
            static_cast<size_t>(later_limit_ + kFlags + kKeysBehind))) {
    restart();
  }

  void restart() {
    size_ = 0;
    limit_ = first_limit_;
    has_threshold_ = false;
  }

  // Elements that follow each other, the first of which has that index.
  void add(const std::byte* from, int64_t count, int64_t index) {
    int64_t i = 0;
    if (k_ == 1) {
      for (; i < count; i += kBlock) add_largest(from + i * kSize, std::min(count - i, kBlock), index + i);
      return;
    }
    while (i < count && !has_threshold_) {
      if (size_ == limit_) {
        keep_largest();
        break;
      }
      const int64_t end = std::min(count, i + limit_ - size_);
      for (; i < end; ++i) items_[size_++] = Items::item(order_.key(from + i * kSize), index + i);
    }
    while (i < count) {
      const int64_t block = std::min(count - i, kBlock);
      if (block < kBlock || any_above(from + i * kSize)) add_above(from + i * kSize, block, index + i);
      i += block;
    }
  }

  // Items that were chosen elsewhere, behind those that were shown before.
  void add_items(const Item* items, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (size_ == limit_) keep_largest();
      items_[size_++] = items[i];
    }
  }

  // The chosen ones in the order of their indices; as many as wanted, or as there were.
  const Item* chosen() {
    if (size_ > k_) keep_largest();
    return items_.get();
  }
  int64_t size() const { return size_; }

  // The chosen ones, the largest first.
  const Item* ranked() {
    if (size_ > kFewItems) chosen();
    if (size_ <= 1) return items_.get();
    if (size_ > kMostRanked) {
      return radix_sorted<Items, static_cast<int>(kSize)>(items_.get(), other_.get(), size_);
    }
    copy_keys();
    Rankable ranks[kRankRoom];
    rank_keys(keys_.get(), size_, ranks);
    for (int64_t i = 0; i < size_; ++i) other_[ranks[i]] = items_[i];
    size_ = std::min(size_, k_);
    return other_.get();
  }

 private:
  ANYDML_INLINE bool any_above(const std::byte* from) const {
    const Order order = order_;
    const Key threshold = threshold_;
    Key any = 0;
    for (int64_t i = 0; i < kBlock; ++i) {
      any |= static_cast<Key>(order.key(from + i * kSize) > threshold ? 1 : 0);
    }
    return any != 0;
  }

  // Of one element that is wanted: the largest, and where it is first.
  ANYDML_INLINE void add_largest(const std::byte* from, int64_t count, int64_t index) {
    const Order order = order_;
    Key largest = std::numeric_limits<Key>::min();
    if (count == kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) largest = std::max(largest, order.key(from + i * kSize));
    } else {
      for (int64_t i = 0; i < count; ++i) largest = std::max(largest, order.key(from + i * kSize));
    }
    if (has_threshold_ && largest <= threshold_) return;
    int64_t i = 0;
    while (order.key(from + i * kSize) != largest) ++i;
    items_[0] = Items::item(largest, index + i);
    size_ = 1;
    threshold_ = largest;
    has_threshold_ = true;
  }

  ANYDML_NOINLINE void add_above(const std::byte* from, int64_t count, int64_t index) {
    for (int64_t first = 0; first < count; first += kFlags) {
      const int64_t some = std::min(count - first, kFlags);
      uint8_t flags[kFlags];
      if (some < kFlags) std::memset(flags, 0, sizeof(flags));
      const Order order = order_;
      const Key threshold = threshold_;
      const std::byte* const elements = from + first * kSize;
      if (some == kFlags) {
        for (int64_t i = 0; i < kFlags; ++i) flags[i] = order.key(elements + i * kSize) > threshold ? 1 : 0;
      } else {
        for (int64_t i = 0; i < some; ++i) flags[i] = order.key(elements + i * kSize) > threshold ? 1 : 0;
      }
      for (uint64_t word = word_of(flags); word != 0; word &= word - 1) {
        const int64_t i = std::countr_zero(word);
        items_[size_++] = Items::item(order.key(elements + i * kSize), index + first + i);
      }
      if (size_ >= limit_) keep_largest();
    }
  }

  // Leaves `k` items, and raises the threshold to the last of them.
  ANYDML_NOINLINE void keep_largest() {
    if (size_ <= k_) return;
    copy_keys();
    const Cut<Rankable> cut = cut_behind(keys_.get(), size_, k_);
    // The least of those above the cut, which may be between two keys.
    Rankable least = std::numeric_limits<Rankable>::max();
    for (int64_t i = 0; i < size_; ++i) least = std::min(least, keys_[i] > cut.key ? keys_[i] : least);
    int64_t equal = cut.equal;
    threshold_ = static_cast<Key>(equal > 0 ? cut.key : least);
    int64_t kept = 0;
    for (int64_t i = 0; i < size_; ++i) {
      // Of equal ones the first.
      const bool is_equal = keys_[i] == cut.key && equal > 0;
      items_[kept] = items_[i];
      kept += is_equal || keys_[i] > cut.key ? 1 : 0;
      equal -= is_equal ? 1 : 0;
    }
    size_ = kept;
    has_threshold_ = true;
    limit_ = later_limit_;
  }

  // With keys behind them that come last.
  void copy_keys() {
    for (int64_t i = 0; i < size_; ++i) keys_[i] = Items::rankable(items_[i]);
    std::fill_n(keys_.get() + size_, kKeysBehind, std::numeric_limits<Rankable>::min());
  }

  Order order_;
  int64_t k_;
  int64_t first_limit_;
  int64_t later_limit_;
  std::unique_ptr<Item[]> items_;
  std::unique_ptr<Item[]> other_;
  std::unique_ptr<Rankable[]> keys_;
  int64_t size_ = 0;
  int64_t limit_ = 0;
  Key threshold_ = 0;
  bool has_threshold_ = false;
};

}  // namespace
ANYDML_ISA_END
