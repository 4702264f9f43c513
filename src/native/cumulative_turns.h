// A long axis on several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "isa.h"
#include "parallel.h"

ANYDML_ISA_BEGIN

// Chunk by chunk, which the threads take in order: totals = reduce(chunk), which needs no other; wait for the
// tally before the chunk and hand on the one after, tally = advance(tally, totals); then
// scan(chunk, tally before, totals, the chunk that the thread takes next). Who waits, waits for a thread that
// is at work on an earlier chunk, and none takes a later one before it has handed on, so that even one thread
// alone comes through.
template <class Tally, class Reduce, class Advance, class Scan>
void scan_in_turn(int64_t chunks, int threads, Tally tally, const Reduce& reduce, const Advance& advance,
                  const Scan& scan) {
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> handed_on{0};
  parallel_for(threads, threads, [&](int64_t) {
    int64_t chunk = next++;
    while (chunk < chunks) {
      const auto totals = reduce(chunk);
      while (handed_on.load(std::memory_order_acquire) != chunk) std::this_thread::yield();
      const Tally before = tally;
      advance(tally, totals);
      handed_on.store(chunk + 1, std::memory_order_release);
      const int64_t following = next++;
      scan(chunk, before, totals, following);
      chunk = following;
    }
  });
}

ANYDML_ISA_END
