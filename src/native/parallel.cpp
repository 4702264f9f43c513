// OpenMP, so that OMP_NUM_THREADS and threadpoolctl work as for NumPy; std::thread where ANYDML_STD_THREADS
// is set (ThreadSanitizer knows nothing of OpenMP's runtime); the calling thread alone where there is
// neither.
#include "parallel.h"

#include <algorithm>
#include <atomic>

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

}  // namespace

int threads_for(int64_t bytes) { return bytes < kWorthTheirStart ? 1 : available_threads(); }

void parallel_for(int64_t count, int threads, void (*body)(const void* context, int64_t i),
                  const void* context) {
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads > 1) {
#if defined(ANYDML_STD_THREADS)
    std::atomic<int64_t> next{0};
    const auto work = [&] {
      for (int64_t i = next++; i < count; i = next++) body(context, i);
    };
    std::vector<std::thread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
    return;
#elif defined(_OPENMP)
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < count; ++i) body(context, i);
    return;
#endif
  }
  for (int64_t i = 0; i < count; ++i) body(context, i);
}

}  // namespace anydml
