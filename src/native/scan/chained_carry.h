// Parallel prefix scan of one long line by a chained scan with decoupled look-back (reduce, then scan): the
// chunks of the line form a chain, in which each one finds the prefix before it among what others publish.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/spin.h"
#include "scan/tuning.h"

ANYDML_ISA_BEGIN

using tuning::kMaxReducedAhead;

// Values of so many elements each, which any thread may publish, as all would publish the same; the first one
// does.
template <class Element>
class PublishedValues {
 public:
  PublishedValues(int64_t count, int64_t size)
      : size_(size),
        states_(static_cast<size_t>(count)),
        elements_(std::make_unique_for_overwrite<Element[]>(static_cast<size_t>(count * size))) {}

  int64_t size() const { return size_; }

  // Null where nobody has published it.
  const Element* find(int64_t i) const {
    const bool is_known = states_[static_cast<size_t>(i)].load(std::memory_order_acquire) == kKnown;
    return is_known ? &elements_[static_cast<size_t>(i * size_)] : nullptr;
  }

  void publish(int64_t i, const Element* value) {
    auto& state = states_[static_cast<size_t>(i)];
    uint8_t unknown = kUnknown;
    if (!state.compare_exchange_strong(unknown, kWritten, std::memory_order_relaxed)) return;
    std::copy_n(value, size_, &elements_[static_cast<size_t>(i * size_)]);
    state.store(kKnown, std::memory_order_release);
  }

 private:
  enum : uint8_t { kUnknown, kWritten, kKnown };

  int64_t size_;
  std::vector<std::atomic<uint8_t>> states_;
  std::unique_ptr<Element[]> elements_;
};

// The carry chain: which of the chunks from `first` to `last` are taken, and what is known of them.
template <class Element>
class CarryChain {
 public:
  CarryChain(int64_t first, int64_t last, int64_t totals_size, const std::vector<Element>& prefix)
      : first_(first),
        last_(last),
        totals_(last - first, totals_size),
        prefixes_(last - first + 1, static_cast<int64_t>(prefix.size())),
        next_(first) {
    publish_prefix(first, prefix.data());
  }

  // Takes the next chunk; returns whether there was one.
  bool take(int64_t& chunk) {
    chunk = next_.fetch_add(1, std::memory_order_relaxed);
    return chunk < last_;
  }

  void publish_totals(int64_t chunk, const Element* totals) { totals_.publish(chunk - first_, totals); }
  // The prefix before a chunk, or after the last one.
  void publish_prefix(int64_t chunk, const Element* prefix) { prefixes_.publish(chunk - first_, prefix); }

  // Sets the prefix before `chunk` to the last one that is known, brought on over the totals known since, by
  // advance(prefix, totals). Returns the chunk that it is before: `chunk`, or one of which nothing is known.
  template <class Advance>
  int64_t look_back(int64_t chunk, Element* prefix, const Advance& advance) {
    int64_t at = chunk;
    const Element* known = find_prefix(at);
    while (known == nullptr) known = find_prefix(--at);
    std::copy_n(known, prefixes_.size(), prefix);
    for (; at < chunk; ++at) {
      const Element* const totals = find_totals(at);
      if (totals == nullptr) break;
      advance(prefix, totals);
      publish_prefix(at + 1, prefix);
    }
    return at;
  }

  // Waits until something is known of a chunk; returns whether it was in time.
  bool wait(int64_t chunk) const {
    return spin(tuning::kChunkPatience,
                [&] { return find_totals(chunk) != nullptr || find_prefix(chunk + 1) != nullptr; });
  }

 private:
  const Element* find_totals(int64_t chunk) const { return totals_.find(chunk - first_); }
  const Element* find_prefix(int64_t chunk) const { return prefixes_.find(chunk - first_); }

  int64_t first_;
  int64_t last_;
  PublishedValues<Element> totals_;
  PublishedValues<Element> prefixes_;
  alignas(64) std::atomic<int64_t> next_;  // to be taken
};

// Whether threads share each of `lines` rows or planes, of so many bytes in all, and do not take whole ones.
inline bool is_worth_sharing(int64_t bytes, int64_t lines, int threads) {
  return threads > 1 && lines < tuning::kSharedBelowPerThread * threads && lines % threads != 0 &&
         bytes >= std::max(tuning::kSharedFrom, lines * threads * tuning::kChunkBytes);
}

// Threads take the chunks in order. A thread that takes a chunk whose prefix is known scans it at once, by
// scan(chunk, prefix, null), which brings the prefix on. Otherwise it reduces, by reduce(chunk, totals), that
// chunk and those that it takes next, which needs no prefix, until the prefix of its first one is known; then
// it scans them, by scan(chunk, prefix, totals). So two threads that reduce three times as fast as they scan
// read three chunks of seven twice, and not all of them; and a thread that wakes late makes no other one
// reduce.
//
// Decoupled fallback: a thread that waits for another one's chunk for longer than that should take reduces it
// itself, and goes on, as the other one has lost its processor. Only a scan in place waits on: the other
// thread may be writing over the chunk.
template <class Element, class Reduce, class Advance, class Scan>
void scan_chunks(CarryChain<Element>& chain, int64_t totals_size, int64_t prefix_size, bool in_place,
                 const Reduce& reduce, const Advance& advance, const Scan& scan) {
  const auto elements = [](int64_t size) {
    return std::make_unique_for_overwrite<Element[]>(static_cast<size_t>(size));
  };
  const auto reduced = elements(kMaxReducedAhead * totals_size);
  const auto others = elements(totals_size);
  const auto prefix = elements(prefix_size);
  int64_t taken[kMaxReducedAhead];
  const auto look_back = [&](int64_t chunk) { return chain.look_back(chunk, prefix.get(), advance); };
  const auto reduce_and_publish = [&](int64_t chunk, Element* totals) {
    reduce(chunk, totals);
    chain.publish_totals(chunk, totals);
  };
  while (!is_cancelled() && chain.take(taken[0])) {
    if (look_back(taken[0]) == taken[0]) {
      scan(taken[0], prefix.get(), nullptr);
      chain.publish_prefix(taken[0] + 1, prefix.get());
      continue;
    }
    int count = 0;
    do {
      reduce_and_publish(taken[count], &reduced[count * totals_size]);
      ++count;
    } while (count < kMaxReducedAhead && look_back(taken[0]) < taken[0] && chain.take(taken[count]));
    for (int i = 0; i < count; ++i) {
      for (int64_t missing; (missing = look_back(taken[i])) < taken[i];) {
        if (chain.wait(missing)) continue;
        if (is_cancelled()) return;
        if (in_place) {
          std::this_thread::yield();
        } else {
          reduce_and_publish(missing, others.get());
        }
      }
      scan(taken[i], prefix.get(), &reduced[i * totals_size]);
    }
  }
}

// Scans a line of so many chunks, a chain of as many as memory is kept for after the other. The totals of a
// chunk are so many elements; advance(prefix, totals) brings a prefix on over them.
template <class Element, class Reduce, class Advance, class Scan>
void chained_scan(int64_t chunks, int64_t totals_size, const std::vector<Element>& identity, bool in_place,
                  int threads, const Reduce& reduce, const Advance& advance, const Scan& scan) {
  const auto prefix_size = static_cast<int64_t>(identity.size());
  const int64_t chunk_bytes = (totals_size + prefix_size) * static_cast<int64_t>(sizeof(Element));
  const int64_t most = threads * tuning::kChainBytesPerThread / chunk_bytes;
  std::vector<Element> prefix(identity);
  for (int64_t first = 0, last; first < chunks; first = last) {
    last = std::min(first + most, chunks);
    CarryChain<Element> chain(first, last, totals_size, prefix);
    parallel_for(threads, threads, [&](int64_t) {
      scan_chunks(chain, totals_size, prefix_size, in_place, reduce, advance, scan);
    });
    const bool is_complete = chain.look_back(last, prefix.data(), advance) == last;
    if (!is_complete) return;  // as it was cancelled
  }
}

ANYDML_ISA_END
