// A barrier between phases for threads that may come late, or never: each phase is so many chunks, which the
// threads that are there take.
//
// No thread waits for one that has not begun, and so a team does not hang where the system has no processor
// for one of its threads. A thread takes the chunk of its own number first, whose weights are in its cache.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "platform/isa.h"
#include "platform/parallel.h"
#include "platform/spin.h"

ANYDML_ISA_BEGIN

class PhaseTeam {
 public:
  // Members ask whether to stop at every phase where these are long, and else now and then. One alone takes
  // all chunks in turn.
  PhaseTeam(int64_t chunks, int64_t members, bool are_long)
      : chunks_(chunks),
        asked_(are_long ? 1 : 16),
        taken_(members > 1 ? new Chunk[static_cast<size_t>(chunks)] : nullptr) {}

 private:
  friend class PhaseMember;

  // How many phases of it were taken, on a cache line of its own.
  struct alignas(64) Chunk {
    std::atomic<int64_t> phases{0};
  };

  int64_t chunks_;
  int64_t asked_;
  std::unique_ptr<Chunk[]> taken_;
  alignas(64) std::atomic<int64_t> done_{0};  // chunks of all phases
  std::atomic<bool> is_stopped_{false};
};

// A thread of a team. All call the same phases in the same order.
class PhaseMember {
 public:
  PhaseMember(PhaseTeam& team, int64_t number) : team_(team), number_(number) {}

  // Calls body(chunk) for chunks that nobody else has taken, when the phase before is done. Returns false
  // where the calculation was cancelled.
  template <class Body>
  bool phase(const Body& body) {
    const int64_t phase = phase_++;
    const int64_t chunks = team_.chunks_;
    if (phase % team_.asked_ == 0 && !team_.is_stopped_.load(std::memory_order_relaxed) && is_cancelled()) {
      team_.is_stopped_ = true;
    }
    if (team_.is_stopped_.load(std::memory_order_relaxed)) return false;
    if (!team_.taken_) {
      for (int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
      return true;
    }
    if (!wait_for(phase * chunks)) return false;
    for (int64_t i = 0; i < chunks; ++i) {
      const int64_t chunk = (number_ + i) % chunks;
      int64_t before = phase;
      std::atomic<int64_t>& taken = team_.taken_[static_cast<size_t>(chunk)].phases;
      if (taken.load(std::memory_order_relaxed) != phase || !taken.compare_exchange_strong(before, phase + 1))
        continue;
      body(chunk);
      team_.done_.fetch_add(1, std::memory_order_acq_rel);
    }
    return true;
  }

 private:
  static constexpr std::chrono::microseconds kPatience{50};

  bool wait_for(int64_t done) {
    const auto is_done = [&] { return team_.done_.load(std::memory_order_acquire) >= done; };
    while (!spin(kPatience, is_done)) {
      if (is_cancelled()) team_.is_stopped_ = true;
      if (team_.is_stopped_.load(std::memory_order_relaxed)) return false;
      std::this_thread::yield();
    }
    return true;
  }

  PhaseTeam& team_;
  int64_t number_;
  int64_t phase_ = 0;
};

ANYDML_ISA_END
