// Threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace anydml {

// How many threads work on that many bytes, read and written: one where waking others would cost more than
// they save.
int threads_for(int64_t bytes);

// Calls body(context, i, worker) for every i below count, on at most that many threads, whose numbers are the
// workers' below that; returns when all are done. The calls may come in any order, so that no result may
// depend on it.
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

// Where a part of `count` things begins that are dealt out to `parts` as evenly as can be; it ends where the
// next begins.
inline int64_t share_begin(int64_t part, int64_t parts, int64_t count) {
  return count / parts * part + std::min(part, count % parts);
}

}  // namespace anydml
