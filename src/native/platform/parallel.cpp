// Threads of this process's own, which wait for work. A caller does all of it that no other thread has begun,
// and so waits for none but those at work: one that the system has not woken yet, or has no processor for,
// holds up nobody, where OpenMP's barrier would wait for it (for two ticks of the system's clock, where it
// wakes beside a caller that spins). OpenMP tells how many threads there may be, so that OMP_NUM_THREADS and
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

// About what two threads do in the time that it takes to start them.
constexpr int64_t kWorthTheirStart = 512 << 10;

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

// Leaves a processor's arithmetic to the thread that it may be running beside this one.
void relax() {
#if defined(__SSE2__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  asm volatile("yield");
#endif
}

// Whether it came true before the time was over.
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

// Of a thread, on a line of the caches of its own.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
};

// What a caller wants done, for as long as it waits.
class Job {
 public:
  Job(int64_t count, int threads, void (*body)(const void*, int64_t, int), const void* context)
      : seats(threads - 1), body_(body), context_(context), shares_(new Share[static_cast<size_t>(threads)]) {
    for (int t = 0; t < threads; ++t) {
      shares_[static_cast<size_t>(t)].next = share_begin(t, threads, count);
      shares_[static_cast<size_t>(t)].end = share_begin(t + 1, threads, count);
    }
  }

  // Neighbours go to one thread, which has what they share in its caches, as it may have what the same calls
  // left there before. Whoever is done takes from others' shares: a thread that has to wait for its processor
  // holds up none but itself.
  void work(int worker) const {
    const int threads = seats + 1;
    for (int t = 0; t < threads; ++t) {
      Share& share = shares_[static_cast<size_t>((worker + t) % threads)];
      for (int64_t i = share.next++; i < share.end; i = share.next++) body_(context_, i, worker);
    }
  }

  const int seats;  // for others than the caller
  int taken = 0;
  std::atomic<bool> is_full{false};
  std::atomic<int> working{0};  // of those who took one

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

  // Held for so short a time that to sleep until it is free would take longer.
  std::unique_lock<std::mutex> locked() {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!spin(kPatience, [&] { return lock.try_lock(); })) lock.lock();
    return lock;
  }

  // Where the system has no more threads, those that there are will do.
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

  // Linux on a virtual machine takes a processor that sleeps for one that is taken away, and wakes a thread
  // beside the caller, which leaves it no time before the next ticks of the clock but one.
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

  // Two, who wake others in turn.
  void wake(const Job& job) {
    wakes_.notify_one();
    if (job.seats > 1) wakes_.notify_one();
  }

  [[noreturn]] void worker_main() {
    constexpr int64_t kNone = -1;
    int64_t seen = kNone;
    for (;;) {
      // Whoever dispatches one operator after another has the next one soon.
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
      // The job is its caller's again, and may be gone.
      job.working.fetch_sub(1, std::memory_order_release);
    }
  }

  std::mutex mutex_;
  std::condition_variable wakes_;
  std::vector<Job*> jobs_;  // that have a seat left
  std::vector<std::thread::native_handle_type> workers_;
  int sleeping_ = 0;
#if defined(__linux__)
  size_t placed_ = 0;  // workers that were told the processors they are allowed
  cpu_set_t allowed_{};
#endif
  std::atomic<int64_t> posted_{0};
};

// Never destroyed, as its threads wait to the process's end.
Pool* the_pool = new Pool;

// A forked child has none of its parent's threads.
[[maybe_unused]] const bool kWatchesForks = [] {
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, [] { the_pool = new Pool; });
#endif
  return true;
}();

}  // namespace

int threads_for(int64_t bytes) { return bytes < kWorthTheirStart ? 1 : available_threads(); }

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
