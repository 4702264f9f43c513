// Waiting for other threads without giving up the processor.
#pragma once

#include <chrono>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

namespace anydml {

// Leaves a core's execution units to the thread that it may be running beside this one.
inline void relax() {
#if defined(__SSE2__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  asm volatile("yield");
#endif
}

// Spins until the condition is true; returns whether it became so in time.
template <class Condition>
bool spin(std::chrono::microseconds most, const Condition& is_true) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + most;
  do {
    for (int i = 0; i < 64; ++i) {
      if (is_true()) return true;
      relax();
    }
  } while (Clock::now() < end);
  return is_true();
}

}  // namespace anydml
