// Parallel prefix scan of one long line by a chained scan (reduce, then scan): the chunks of the line form a
// chain, in which each one waits for the prefix that the chunk before it publishes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "platform/isa.h"
#include "platform/parallel.h"
#include "scan/tuning.h"

ANYDML_ISA_BEGIN

using tuning::kMaxReducedAhead;

// The carry chain: which chunks are taken, and the prefix before each one that may be scanned.
template <class Accumulator, class Totals>
class CarryChain {
 public:
  // A chunk that a thread has taken.
  struct TakenChunk {
    int64_t chunk = 0;
    Totals totals{};  // set where is_reduced
    bool is_reduced = false;
    Accumulator before{};  // the prefix, set where is_known
    std::atomic<bool> is_known{false};
  };

  CarryChain(int64_t chunks, int most_taken, Accumulator identity)
      : chunks_(chunks), prefix_(identity), taken_(static_cast<size_t>(most_taken)) {}

  // Takes the next chunk; returns whether there was one.
  bool take(TakenChunk& taken_chunk) {
    const std::lock_guard lock(mutex_);
    if (next_ == chunks_) return false;
    taken_chunk.chunk = next_++;
    taken_chunk.is_reduced = false;
    taken_chunk.is_known = taken_chunk.chunk == known_;
    if (taken_chunk.is_known) taken_chunk.before = prefix_;
    at(taken_chunk.chunk) = &taken_chunk;
    return true;
  }

  // Publishes the totals of a reduced chunk. advance(prefix, totals) brings a prefix on.
  template <class Advance>
  void publish_aggregate(TakenChunk& taken_chunk, const Advance& advance) {
    const std::lock_guard lock(mutex_);
    taken_chunk.is_reduced = true;
    if (taken_chunk.chunk == known_) propagate(taken_chunk, advance);
  }

  // Publishes the prefix after a chunk that was scanned as soon as it was taken.
  template <class Advance>
  void publish_prefix(const Accumulator& after, const Advance& advance) {
    const std::lock_guard lock(mutex_);
    prefix_ = after;
    if (TakenChunk* const following = next_known()) propagate(*following, advance);
  }

 private:
  // Brings the known prefix on over a reduced chunk, whose prefix is known, and the reduced ones that follow
  // it.
  template <class Advance>
  void propagate(TakenChunk& first, const Advance& advance) {
    for (TakenChunk* taken_chunk = &first; taken_chunk != nullptr && taken_chunk->is_reduced;
         taken_chunk = next_known()) {
      advance(prefix_, taken_chunk->totals);
    }
  }

  // Tells the next chunk that its prefix is known, and returns it; null where no thread has taken it yet.
  TakenChunk* next_known() {
    if (++known_ == next_) return nullptr;
    TakenChunk* const taken_chunk = at(known_);
    taken_chunk->before = prefix_;
    taken_chunk->is_known.store(true, std::memory_order_release);
    return taken_chunk;
  }

  TakenChunk*& at(int64_t chunk) { return taken_[static_cast<size_t>(chunk) % taken_.size()]; }

  std::mutex mutex_;
  int64_t chunks_;
  int64_t next_ = 0;                // to be taken
  int64_t known_ = 0;               // the last chunk whose prefix is known,
  Accumulator prefix_;              // which is this
  std::vector<TakenChunk*> taken_;  // from that chunk on
};

// Whether threads share each of `lines` rows or planes, of so many bytes in all, and do not take whole ones.
inline bool is_worth_sharing(int64_t bytes, int64_t lines, int threads) {
  return threads > 1 && lines < tuning::kSharedBelowPerThread * threads && lines % threads != 0 &&
         bytes >= tuning::kSharedBytesPerThread * threads;
}

// Threads take the chunks in order. A thread that takes a chunk whose prefix is known scans it at once, by
// scan(chunk, prefix, null), which brings the prefix on. Otherwise it reduces, totals = reduce(chunk), that
// chunk and those that it takes next, which needs no prefix, until the prefix of its first one is known; then
// it scans them, by scan(chunk, prefix, &totals). So two threads that reduce three times as fast as they scan
// read three chunks of seven twice, and not all of them; and a thread that wakes late makes no other one
// reduce. A thread that waits, waits for threads that are at work on earlier chunks.
template <class Totals, class Accumulator, class Reduce, class Advance, class Scan>
void chained_scan(int64_t chunks, int threads, const Accumulator& identity, const Reduce& reduce,
                  const Advance& advance, const Scan& scan) {
  CarryChain<Accumulator, Totals> chain(chunks, threads * kMaxReducedAhead, identity);
  parallel_for(threads, threads, [&](int64_t) {
    typename CarryChain<Accumulator, Totals>::TakenChunk taken[kMaxReducedAhead];
    while (!is_cancelled() && chain.take(taken[0])) {
      if (taken[0].is_known) {
        scan(taken[0].chunk, taken[0].before, nullptr);
        chain.publish_prefix(taken[0].before, advance);
        continue;
      }
      int count = 0;
      do {
        taken[count].totals = reduce(taken[count].chunk);
        chain.publish_aggregate(taken[count], advance);
        ++count;
      } while (count < kMaxReducedAhead && !taken[0].is_known && chain.take(taken[count]));
      for (auto* taken_chunk = taken; taken_chunk != taken + count; ++taken_chunk) {
        while (!taken_chunk->is_known.load(std::memory_order_acquire)) {
          if (is_cancelled()) return;
          std::this_thread::yield();
        }
        scan(taken_chunk->chunk, taken_chunk->before, &taken_chunk->totals);
      }
    }
  });
}

ANYDML_ISA_END
