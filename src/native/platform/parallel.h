// A parallel loop on a pool of threads of the process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace anydml {

// So many bytes, read and written, are worth several threads: about what two threads do in the time that it
// takes to start them.
inline constexpr int64_t kParallelFrom = 512 << 10;

// The number of threads to use for that many bytes, read and written: one below kParallelFrom, and not more
// than have enough to do to be worth waking.
int threads_for(int64_t bytes);

// Into how many calls a loop over so many bytes is divided among threads: more than there are threads where
// there is much to do, so that threads which get less of their processors hold up nobody, and a cancellation
// is heard soon.
int64_t calls_for(int64_t bytes, int threads);

// Calls body(context, i, worker) for every i below `count` on at most `threads` threads, whose numbers are
// the workers; returns when all calls are done. The calls come in any order, so that no result may depend on
// it. A cancellation leaves calls out, and so does an exception of one of them, which becomes the caller's.
void parallel_for(int64_t count, int threads, void (*body)(const void* context, int64_t i, int worker),
                  const void* context);

template <class Body>
void parallel_for(int64_t count, int threads, const Body& body) {
  parallel_for(
      count, threads,
      [](const void* context, int64_t i, [[maybe_unused]] int worker) {
        const Body& each = *static_cast<const Body*>(context);
        if constexpr (std::is_invocable_v<const Body&, int64_t, int>) {
          each(i, worker);
        } else {
          each(i);
        }
      },
      &body);
}

// Cancellation. A loop's caller asks `wants_to_stop` now and then while the loop runs; when it says yes, no
// more calls begin, nor further loops of this thread until take_cancellation(), and calls that run may ask
// is_cancelled() to end early. What is computed is then undefined. Null asks nobody.
void set_cancellation(bool (*wants_to_stop)());
bool is_cancelled();

// Whether a loop that this thread called was cancelled since it was last asked.
bool take_cancellation();

// The begin of a part of `count` items, which are divided among `parts` as evenly as possible. A part ends
// where the next one begins.
inline int64_t share_begin(int64_t part, int64_t parts, int64_t count) {
  return count / parts * part + std::min(part, count % parts);
}

}  // namespace anydml
