// A thread pool with work stealing. A caller does all work that no other thread has begun, and so waits only
// for threads that are at work: one that the system has not woken yet, or has no processor for, holds up
// nobody, where OpenMP's barrier would wait for it (for two ticks of the system's clock, where it wakes
// beside a caller that spins). OpenMP tells how many threads there may be, so that OMP_NUM_THREADS and
// threadpoolctl work as for NumPy.
#include "platform/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

namespace anydml {
namespace {

int available_threads() {
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  static const int threads = [] {
    const char* const wanted = std::getenv("OMP_NUM_THREADS");
    const int given = wanted == nullptr ? 0 : std::atoi(wanted);
    return std::max(1, given > 0 ? given : static_cast<int>(std::thread::hardware_concurrency()));
  }();
  return threads;
#endif
}

// Leaves a core's execution units to the thread that it may be running beside this one.
void relax() {
#if defined(__SSE2__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  asm volatile("yield");
#endif
}

// Spins until the condition is true; returns whether it became so in time.
template <class Condition>
bool spin(std::chrono::microseconds most, const Condition& is_true) {
  const auto end = std::chrono::steady_clock::now() + most;
  do {
    for (int i = 0; i < 64; ++i) {
      if (is_true()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return is_true();
}

// A thread's share of the calls, on a cache line of its own.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
};

// The calls of one parallel_for(), which exists as long as its caller waits.
class Job {
 public:
  Job(int64_t count, int threads, void (*body)(const void*, int64_t, int), const void* context)
      : seats(threads - 1), body_(body), context_(context), shares_(new Share[static_cast<size_t>(threads)]) {
    for (int t = 0; t < threads; ++t) {
      shares_[static_cast<size_t>(t)].next = share_begin(t, threads, count);
      shares_[static_cast<size_t>(t)].end = share_begin(t + 1, threads, count);
    }
  }

  // Each thread begins with a share of consecutive calls, whose common data it has in its caches, as well as
  // what the same calls left there before. A thread that is done steals from the others' shares, so that one
  // that waits for its processor holds up nobody.
  void work(int worker) const {
    const int threads = seats + 1;
    for (int t = 0; t < threads; ++t) {
      Share& share = shares_[static_cast<size_t>((worker + t) % threads)];
      for (int64_t i = share.next++; i < share.end; i = share.next++) body_(context_, i, worker);
    }
  }

  const int seats;  // the workers that may join the caller
  int taken = 0;    // those that have joined
  std::atomic<bool> is_full{false};
  std::atomic<int> working{0};  // those that are not done

 private:
  void (*body_)(const void*, int64_t, int);
  const void* context_;
  std::unique_ptr<Share[]> shares_;
};

class Pool {
 public:
  void run(Job& job) {
    {
      const auto lock = locked();
      while (static_cast<int>(workers_.size()) < job.seats && start()) continue;
      jobs_.push_back(&job);
      ++posted_;
      if (sleeping_ > 0) keep_off_this_processor();
    }
    wake(job);
    job.work(0);
    if (!job.is_full) {
      const auto lock = locked();
      std::erase(jobs_, &job);
    }
    const auto is_done = [&] { return job.working.load(std::memory_order_acquire) == 0; };
    while (!spin(kPatience, is_done)) std::this_thread::yield();
  }

 private:
  static constexpr std::chrono::microseconds kPatience{50};
  static constexpr std::chrono::microseconds kAwake{300};

  // The mutex is held for so short a time that sleeping until it is free would take longer.
  std::unique_lock<std::mutex> locked() {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!spin(kPatience, [&] { return lock.try_lock(); })) lock.lock();
    return lock;
  }

  // Starts a worker; returns false where the system has no more threads, and the pool works with those that
  // it has.
  bool start() {
    try {
      std::thread worker([this] { worker_main(); });
      workers_.push_back(worker.native_handle());
      worker.detach();
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  // Keeps workers off the caller's processor. Linux on a virtual machine takes a sleeping processor for one
  // that is taken away, and wakes a thread beside the caller, which leaves it no time for up to two ticks of
  // the clock.
  void keep_off_this_processor() {
#if defined(__linux__)
    const int here = sched_getcpu();
    cpu_set_t allowed;
    if (here < 0 || pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed) != 0) return;
    if (CPU_COUNT(&allowed) > 1) CPU_CLR(here, &allowed);
    if (placed_ == workers_.size() && CPU_EQUAL(&allowed, &allowed_)) return;
    for (const auto worker : workers_) pthread_setaffinity_np(worker, sizeof(allowed), &allowed);
    placed_ = workers_.size();
    allowed_ = allowed;
#endif
  }

  // Wakes two workers, which wake others in turn.
  void wake(const Job& job) {
    wakes_.notify_one();
    if (job.seats > 1) wakes_.notify_one();
  }

  [[noreturn]] void worker_main() {
    constexpr int64_t kNone = -1;
    int64_t seen = kNone;
    for (;;) {
      // A caller that dispatches one operator after another has the next one soon.
      spin(kAwake, [&] { return posted_ != seen; });
      auto lock = locked();
      ++sleeping_;
      wakes_.wait(lock, [this] { return !jobs_.empty(); });
      --sleeping_;
      Job& job = *jobs_.front();
      const int seat = ++job.taken;
      ++job.working;
      const bool is_last = seat == job.seats;
      if (is_last) {
        jobs_.erase(jobs_.begin());
        job.is_full = true;
      }
      seen = jobs_.empty() ? posted_.load() : kNone;
      lock.unlock();
      if (!is_last) wake(job);
      job.work(seat);
      // From here on the job may be gone.
      job.working.fetch_sub(1, std::memory_order_release);
    }
  }

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::vector<Job*> jobs_;  // that workers may join
  std::vector<std::thread::native_handle_type> workers_;
  int sleeping_ = 0;
#if defined(__linux__)
  size_t placed_ = 0;  // workers that were told the processors they are allowed
  cpu_set_t allowed_{};
#endif
  std::atomic<int64_t> posted_{0};
};

// Never destroyed, as its threads wait until the process ends.
Pool* the_pool = new Pool;

// A forked child has none of its parent's threads.
[[maybe_unused]] const bool kWatchesForks = [] {
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, [] { the_pool = new Pool; });
#endif
  return true;
}();

}  // namespace

int threads_for(int64_t bytes) { return bytes < kParallelFrom ? 1 : available_threads(); }

void parallel_for(int64_t count, int threads, void (*body)(const void* context, int64_t i, int worker),
                  const void* context) {
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads < 2) {
    for (int64_t i = 0; i < count; ++i) body(context, i, 0);
    return;
  }
  Job job(count, threads, body, context);
  the_pool->run(job);
}

}  // namespace anydml
