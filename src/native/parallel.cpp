// OpenMP, so that OMP_NUM_THREADS and threadpoolctl work as for NumPy; std::thread where ANYDML_STD_THREADS
// is set (ThreadSanitizer knows nothing of OpenMP's runtime); the calling thread alone where there is
// neither.
#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <memory>

#if defined(ANYDML_STD_THREADS)
#include <thread>
#include <vector>
#elif defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace anydml {
namespace {

// About what two threads do in the time that it takes to start them.
constexpr int64_t kWorthTheirStart = 512 << 10;

// GNU's OpenMP runtime does not survive fork(): a child's parallel region would wait for threads that are its
// parent's.
std::atomic<bool> is_forked_child{false};

[[maybe_unused]] const bool kWatchesForks = [] {
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
#endif
  return true;
}();

int available_threads() {
  if (is_forked_child) return 1;
#if defined(ANYDML_STD_THREADS)
  return std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
#elif defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// Of a thread, on a line of the caches of its own.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
};

}  // namespace

int threads_for(int64_t bytes) { return bytes < kWorthTheirStart ? 1 : available_threads(); }

void parallel_for(int64_t count, int threads, void (*body)(const void* context, int64_t i, int worker),
                  const void* context) {
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads < 2) {
    for (int64_t i = 0; i < count; ++i) body(context, i, 0);
    return;
  }
  // Neighbours go to one thread, which has what they share in its caches, as it may have what the same calls
  // left there before. Whoever is done takes from others' shares: a thread that has to wait for its processor
  // holds up none but itself.
  const std::unique_ptr<Share[]> shares(new Share[static_cast<size_t>(threads)]);
  for (int t = 0; t < threads; ++t) {
    shares[static_cast<size_t>(t)].next = share_begin(t, threads, count);
    shares[static_cast<size_t>(t)].end = share_begin(t + 1, threads, count);
  }
  [[maybe_unused]] const auto work = [&](int worker) {
    for (int t = 0; t < threads; ++t) {
      Share& share = shares[static_cast<size_t>((worker + t) % threads)];
      for (int64_t i = share.next++; i < share.end; i = share.next++) body(context, i, worker);
    }
  };
#if defined(ANYDML_STD_THREADS)
  std::vector<std::thread> helpers;
  for (int t = 1; t < threads; ++t) helpers.emplace_back(work, t);
  work(0);
  for (std::thread& helper : helpers) helper.join();
#elif defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  work(omp_get_thread_num());
#else
  work(0);
#endif
}

}  // namespace anydml
