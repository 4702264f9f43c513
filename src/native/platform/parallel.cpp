// A thread pool with work stealing. A caller does all work that no other thread has begun, and so waits only
// for threads that are at work: one that the system has not woken yet, or has no processor for, holds up
// nobody, where OpenMP's barrier would wait for it (for two ticks of the system's clock, where it wakes
// beside a caller that spins). OpenMP tells how many threads there may be, so that OMP_NUM_THREADS and
// threadpoolctl work as for NumPy.
//
// Jobs stand in memory that is never freed, and workers join them by atomic operations alone. A mutex in its
// place made 16 threads that woke together wait for each other: a loop over 1 MiB took 223 us with them, now
// 63, and 350 on one thread (Xeon, 16 cores, 2026-11-24).
#include "platform/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "platform/spin.h"

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace anydml {
namespace {

using Clock = std::chrono::steady_clock;

// A thread that is woken for less takes longer to wake than to work (Xeon, 16 cores, 2026-11-24).
constexpr int64_t kBytesPerThread = 128 << 10;
// So little that threads which get less of their processors hold up nobody. 2026-11-25, Xeon, 16 cores: rows
// of 11003 elements, 128 MiB in all, took 2.1 ms alone and 4.1 with PyTorch's threads spinning beside, with
// calls of 8 MiB, and take 1.9 and 2.0.
constexpr int64_t kBytesPerCall = 1 << 20;

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

// Sleeping until an event: a futex where the system has one, as it wakes several threads by one call.
class EventCount {
 public:
  int count() const { return count_.load(); }

  void advance() { ++count_; }

  // Sleeps until the count is another than `seen`, or some time longer.
  void sleep(int seen) {
    ++sleeping_;
#if defined(__linux__)
    syscall(SYS_futex, address(), FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
#else
    count_.wait(seen);
#endif
    --sleeping_;
  }

  bool has_sleepers() const { return sleeping_.load() > 0; }

  // Wakes that many of those who sleep, or more.
  void wake([[maybe_unused]] int sleepers) {
#if defined(__linux__)
    syscall(SYS_futex, address(), FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
#else
    count_.notify_all();
#endif
  }

 private:
#if defined(__linux__)
  int* address() { return reinterpret_cast<int*>(&count_); }
  static_assert(sizeof(std::atomic<int>) == sizeof(int));
#endif

  alignas(64) std::atomic<int> count_{0};
  alignas(64) std::atomic<int> sleeping_{0};
};

// When a caller asks next whether to stop: some time after it first might have, and again and again.
class CancellationTimer {
 public:
  bool is_due() {
    const auto now = Clock::now();
    const bool is_due = next_ != Clock::time_point{} && now >= next_;
    if (is_due || next_ == Clock::time_point{}) next_ = now + kBetween;
    return is_due;
  }

 private:
  static constexpr std::chrono::milliseconds kBetween{20};

  Clock::time_point next_{};
};

std::atomic<bool (*)()> wants_to_stop{nullptr};
thread_local bool was_cancelled = false;

// A job as a thread sees it that works on it: its caller is the one who asks.
class CurrentJob {
 public:
  CurrentJob(std::atomic<bool>& cancelled, bool is_caller)
      : cancelled_(cancelled), is_caller_(is_caller), outer_(current) {
    current = this;
  }
  CurrentJob(const CurrentJob&) = delete;
  CurrentJob& operator=(const CurrentJob&) = delete;
  ~CurrentJob() { current = outer_; }

  // Asks whether to stop, where it is the caller's time to.
  bool is_cancelled() {
    if (cancelled_.load(std::memory_order_relaxed)) return true;
    if (!is_caller_ || !timer_.is_due()) return false;
    bool (*const stops)() = wants_to_stop.load();
    if (stops == nullptr || !stops()) return false;
    cancelled_ = true;
    was_cancelled = true;
    return true;
  }

  static thread_local CurrentJob* current;  // null outside of loops

 private:
  std::atomic<bool>& cancelled_;
  bool is_caller_;
  CancellationTimer timer_;
  CurrentJob* outer_;  // the loop that calls this one
};
thread_local CurrentJob* CurrentJob::current = nullptr;

// A thread's share of the calls, on a cache line of its own.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
  std::atomic<bool> is_taken;  // by the thread that begins with it
};

// The calls of one parallel_for(), in memory that others use after it.
class Job {
 public:
  // Whether nobody else uses it; then it is the caller's until close().
  bool take() {
    bool unused = false;
    return is_used_.compare_exchange_strong(unused, true);
  }

  // Leaves it unused.
  void close() { is_used_.store(false, std::memory_order_release); }

  void open(int64_t count, int threads, void (*body)(const void*, int64_t, int), const void* context) {
    if (static_cast<size_t>(threads) > shares_.size()) shares_ = std::vector<Share>(threads);
    threads_ = threads;
    body_ = body;
    context_ = context;
    is_cancelled_ = false;
    has_failed_ = false;
    for (int t = 0; t < threads; ++t) {
      share(t).next.store(share_begin(t, threads, count), std::memory_order_relaxed);
      share(t).end = share_begin(t + 1, threads, count);
      share(t).is_taken.store(t == 0, std::memory_order_relaxed);
    }
    seats_ = threads - 1;
  }

  bool has_seats() const { return seats_.load(std::memory_order_relaxed) > 0; }

  // Joins it where it wants one more worker; returns whether it did. `wake` is called before it works where
  // more could join.
  template <class Wake>
  bool join(int thread, const Wake& wake) {
    // A thread without a share of its own leaves the others time to take theirs.
    if (thread >= threads_.load(std::memory_order_relaxed)) spin(kOthersFirst, [&] { return !has_seats(); });
    // Whoever closes the job waits for those that are here.
    ++present_;
    int seats = seats_.load();
    while (seats > 0 && !seats_.compare_exchange_weak(seats, seats - 1)) continue;
    if (seats > 0) {
      if (seats > 1) wake();
      CurrentJob job(is_cancelled_, false);
      work(take_share(thread), job);
    }
    present_.fetch_sub(1, std::memory_order_release);
    return seats > 0;
  }

  // What the caller does: work, until all calls are done, or left out behind one that throws, whose exception
  // is then the caller's.
  void work_and_close() {
    CurrentJob job(is_cancelled_, true);
    work(0, job);
    seats_ = 0;
    const auto is_done = [&] { return present_.load(std::memory_order_acquire) == 0; };
    while (!spin(kPatience, is_done)) {
      job.is_cancelled();
      std::this_thread::yield();
    }
    const std::exception_ptr error = std::exchange(error_, nullptr);
    close();
    if (error) std::rethrow_exception(error);
  }

 private:
  static constexpr std::chrono::microseconds kPatience{50};
  static constexpr std::chrono::microseconds kOthersFirst{2};

  Share& share(int t) { return shares_[static_cast<size_t>(t)]; }

  // The share that a thread had of the job before, too, where nobody else took it, as its caches hold what
  // the same calls left there; else the next one that is free. Who has joined finds one. Shares in the order
  // of joining made 2 MiB on 16 threads take 15 us, now 7, and OpenMP 9 (Xeon, 16 cores, 2026-11-26).
  int take_share(int thread) {
    int t = thread % threads_;
    while (share(t).is_taken.exchange(true)) t = (t + 1) % threads_;
    return t;
  }

  // Each thread begins with a share of consecutive calls, whose common data it has in its caches. A thread
  // that is done steals from the others' shares, so that one that waits for its processor holds up nobody.
  void work(int worker, CurrentJob& job) {
    for (int t = 0; t < threads_; ++t) {
      Share& from = share((worker + t) % threads_);
      if (from.next.load(std::memory_order_relaxed) >= from.end) continue;
      for (int64_t i = from.next++; i < from.end; i = from.next++) {
        try {
          body_(context_, i, worker);
        } catch (...) {
          // An exception would end the process in a worker, and leave the loop to workers in the caller.
          if (!has_failed_.exchange(true)) error_ = std::current_exception();
          is_cancelled_ = true;
        }
        if (job.is_cancelled()) return;
      }
    }
  }

  std::atomic<bool> is_used_{false};
  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> has_failed_{false};
  std::exception_ptr error_;
  std::atomic<int> threads_{0};
  void (*body_)(const void*, int64_t, int) = nullptr;
  const void* context_ = nullptr;
  std::vector<Share> shares_;
  alignas(64) std::atomic<int> seats_{0};  // for workers that have not joined
  std::atomic<int> present_{0};            // workers that have, or look whether they may
};

class Pool {
 public:
  // Whether a job was free for it.
  bool run(int64_t count, int threads, void (*body)(const void*, int64_t, int), const void* context) {
    for (Job& job : jobs_) {
      if (!job.take()) continue;
      try {
        start(threads - 1);
        job.open(count, threads, body, context);
      } catch (...) {
        job.close();
        throw;
      }
      events_.advance();
      if (events_.has_sleepers()) {
        keep_off_this_processor();
        events_.wake(threads - 1);
      }
      job.work_and_close();
      return true;
    }
    return false;
  }

 private:
  static constexpr std::chrono::microseconds kAwake{300};
  // More callers than that at a time keep the machine busy by themselves.
  static constexpr int kJobs = 16;

  // Starts workers until there are so many. Where the system has no more threads, the pool works with those
  // that it has.
  void start(int workers) {
    if (started_.load(std::memory_order_relaxed) >= workers) return;
    const std::lock_guard lock(mutex_);
    try {
      while (static_cast<int>(workers_.size()) < workers) {
        std::thread worker([this, number = static_cast<int>(workers_.size()) + 1] { worker_main(number); });
        workers_.push_back(worker.native_handle());
        worker.detach();
      }
    } catch (const std::system_error&) {
      workers = static_cast<int>(workers_.size());
    }
    started_ = std::max(started_.load(), workers);
  }

  // Keeps workers off the caller's processor. Linux on a virtual machine takes a sleeping processor for one
  // that is taken away, and wakes a thread beside the caller, which leaves it no time for up to two ticks of
  // the clock.
  void keep_off_this_processor() {
#if defined(__linux__)
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const int here = sched_getcpu();
    cpu_set_t allowed;
    if (!lock || here < 0 || pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed) != 0) return;
    if (CPU_COUNT(&allowed) > 1) CPU_CLR(here, &allowed);
    if (placed_ == workers_.size() && CPU_EQUAL(&allowed, &allowed_)) return;
    for (const auto worker : workers_) pthread_setaffinity_np(worker, sizeof(allowed), &allowed);
    placed_ = workers_.size();
    allowed_ = allowed;
#endif
  }

  // The caller has number 0.
  [[noreturn]] void worker_main(int number) {
    for (;;) {
      const int seen = events_.count();
      if (join_any(number)) continue;
      // A caller that dispatches one operator after another has the next one soon.
      if (!spin(kAwake, [&] { return events_.count() != seen; })) events_.sleep(seen);
    }
  }

  bool join_any(int number) {
    bool joined = false;
    for (Job& job : jobs_) {
      joined |= job.has_seats() && job.join(number, [this] {
        if (events_.has_sleepers()) events_.wake(1);
      });
    }
    return joined;
  }

  Job jobs_[kJobs];
  EventCount events_;
  std::mutex mutex_;
  std::vector<std::thread::native_handle_type> workers_;
  std::atomic<int> started_{0};
#if defined(__linux__)
  size_t placed_ = 0;  // workers that were told the processors they are allowed
  cpu_set_t allowed_{};
#endif
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

int threads_for(int64_t bytes) {
  if (bytes < kParallelFrom) return 1;
  return static_cast<int>(std::min<int64_t>(available_threads(), bytes / kBytesPerThread));
}

int64_t calls_for(int64_t bytes, int threads) { return std::max<int64_t>(threads, bytes / kBytesPerCall); }

void parallel_for(int64_t count, int threads, void (*body)(const void* context, int64_t i, int worker),
                  const void* context) {
  if (was_cancelled) return;
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads > 1 && the_pool->run(count, threads, body, context)) return;
  std::atomic<bool> cancelled{false};
  CurrentJob job(cancelled, true);
  for (int64_t i = 0; i < count; ++i) {
    body(context, i, 0);
    if (i + 1 < count && job.is_cancelled()) return;
  }
}

void set_cancellation(bool (*stops)()) { wants_to_stop = stops; }

bool is_cancelled() { return CurrentJob::current != nullptr && CurrentJob::current->is_cancelled(); }

bool take_cancellation() { return std::exchange(was_cancelled, false); }

}  // namespace anydml
