// A long axis on several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "platform/isa.h"
#include "platform/parallel.h"

ANYDML_ISA_BEGIN

// So many chunks, which it finds in its second cache then, a thread reduces at most before it scans them.
inline constexpr int kMaxReducedAhead = 4;

// Which chunks are taken, and what the tally is before those that may be scanned.
template <class Accumulator, class Totals>
class CarryChain {
 public:
  // A chunk that a thread has taken.
  struct Turn {
    int64_t chunk = 0;
    Totals totals{};  // where it was reduced
    bool is_reduced = false;
    Accumulator before{};  // once it is known
    std::atomic<bool> is_known{false};
  };

  CarryChain(int64_t chunks, int most_taken, Accumulator identity)
      : chunks_(chunks), tally_(identity), taken_(static_cast<size_t>(most_taken)) {}

  // Takes the next chunk; returns whether there was one.
  bool take(Turn& turn) {
    const std::lock_guard lock(mutex_);
    if (next_ == chunks_) return false;
    turn.chunk = next_++;
    turn.is_reduced = false;
    turn.is_known = turn.chunk == known_;
    if (turn.is_known) turn.before = tally_;
    at(turn.chunk) = &turn;
    return true;
  }

  // Its totals are there. advance(tally, totals) brings a tally on.
  template <class Advance>
  void publish_aggregate(Turn& turn, const Advance& advance) {
    const std::lock_guard lock(mutex_);
    turn.is_reduced = true;
    if (turn.chunk == known_) propagate(turn, advance);
  }

  // It was scanned as soon as it was taken, to the tally after it.
  template <class Advance>
  void publish_prefix(const Accumulator& after, const Advance& advance) {
    const std::lock_guard lock(mutex_);
    tally_ = after;
    if (Turn* const following = next_known()) propagate(*following, advance);
  }

 private:
  // From a reduced chunk, the tally before which is known, over all that are.
  template <class Advance>
  void propagate(Turn& first, const Advance& advance) {
    for (Turn* turn = &first; turn != nullptr && turn->is_reduced; turn = next_known()) {
      advance(tally_, turn->totals);
    }
  }

  // Of the chunk that follows the tally is known too; null where nobody has taken it yet.
  Turn* next_known() {
    if (++known_ == next_) return nullptr;
    Turn* const turn = at(known_);
    turn->before = tally_;
    turn->is_known.store(true, std::memory_order_release);
    return turn;
  }

  Turn*& at(int64_t chunk) { return taken_[static_cast<size_t>(chunk) % taken_.size()]; }

  std::mutex mutex_;
  int64_t chunks_;
  int64_t next_ = 0;          // to be taken
  int64_t known_ = 0;         // the last chunk of which the tally before it is known,
  Accumulator tally_;         // which is this
  std::vector<Turn*> taken_;  // from that chunk on
};

// Chunk by chunk, which the threads take in order. Who takes one before which the tally is known,
// scan(chunk, tally, null), which brings the tally on. Else it reduces, totals = reduce(chunk), that chunk
// and those that follow, which needs no other, until the tally before its first one is known; then
// scan(chunk, tally, &totals). So two threads that reduce three times as fast as they scan go through three
// chunks of seven twice, and not through all; and one that wakes late makes nobody reduce. Who waits, waits
// for threads that are at work on earlier chunks.
template <class Totals, class Accumulator, class Reduce, class Advance, class Scan>
void chained_scan(int64_t chunks, int threads, const Accumulator& identity, const Reduce& reduce,
                  const Advance& advance, const Scan& scan) {
  CarryChain<Accumulator, Totals> turns(chunks, threads * kMaxReducedAhead, identity);
  parallel_for(threads, threads, [&](int64_t) {
    typename CarryChain<Accumulator, Totals>::Turn taken[kMaxReducedAhead];
    while (turns.take(taken[0])) {
      if (taken[0].is_known) {
        scan(taken[0].chunk, taken[0].before, nullptr);
        turns.publish_prefix(taken[0].before, advance);
        continue;
      }
      int count = 0;
      do {
        taken[count].totals = reduce(taken[count].chunk);
        turns.publish_aggregate(taken[count], advance);
        ++count;
      } while (count < kMaxReducedAhead && !taken[0].is_known && turns.take(taken[count]));
      for (auto* turn = taken; turn != taken + count; ++turn) {
        while (!turn->is_known.load(std::memory_order_acquire)) std::this_thread::yield();
        scan(turn->chunk, turn->before, &turn->totals);
      }
    }
  });
}

ANYDML_ISA_END
