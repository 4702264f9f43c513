// Where outputs are put together on their way around the caches, so that whole lines leave at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// One thread's. Without `streams`, outputs are written where they belong. Pieces that follow each other are
// put together.
//
// What is complete waits to be sent: a kernel sends as many lines as it writes while it computes the next
// ones, as memory would stand still while it computed, and it while memory wrote.
class StagedWriter {
 public:
  static constexpr int64_t kMost = 8 << 10;

  explicit StagedWriter(bool streams) : streams_(streams) {}
  StagedWriter(const StagedWriter&) = delete;
  StagedWriter& operator=(const StagedWriter&) = delete;
  ~StagedWriter() {
    if (!streams_) return;
    leave(used_);
    send_all();
    stream_fence();
  }

  bool streams() const { return streams_; }

  // Where to write the `size` bytes that belong to `out`, kMost of them at most, before the next call.
  std::byte* reserve(std::byte* out, int64_t size) {
    if (!streams_) return out;
    const bool follows = out == next_;
    if (!follows || used_ >= kFlushThreshold || used_ + size > kCapacity) flush(out, follows);
    used_ += size;
    next_ = out + size;
    return staged_[side_] + (used_ - size);
  }

  // Sends one of the lines that wait, if any.
  ANYDML_INLINE void send_line() {
    if (waiting_ == 0) return;
    stream_line(target_ - waiting_, source_ - waiting_);
    waiting_ -= kLine;
  }

 private:
  static constexpr int64_t kCapacity = kMost + kLine;
  // So much is sent without waiting for more.
  static constexpr int64_t kFlushThreshold = 2 << 10;

  // What follows fills the line that is begun, which therefore stays.
  ANYDML_NOINLINE void flush(std::byte* next, bool follows) {
    const auto in_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(next_) % kLine);
    const int64_t kept = follows ? std::min(used_, in_line) : 0;
    const std::byte* const from = staged_[side_] + (used_ - kept);
    leave(used_ - kept);
    side_ = !side_;
    used_ = kept;
    next_ = next;
    std::memcpy(staged_[side_], from, static_cast<size_t>(kept));
  }

  // The first `size` staged bytes: the whole lines wait, what is left is stored in the ordinary way.
  void leave(int64_t size) {
    send_all();
    if (size == 0) return;
    std::byte* const to = next_ - used_;
    const std::byte* const from = staged_[side_];
    const int64_t head = std::min(to_next_line(to), size);
    const int64_t end = head + (size - head) / kLine * kLine;
    std::memcpy(to, from, static_cast<size_t>(head));
    std::memcpy(to + end, from + end, static_cast<size_t>(size - end));
    target_ = to + end;
    source_ = from + end;
    waiting_ = end - head;
  }

  void send_all() {
    while (waiting_ > 0) send_line();
  }

  bool streams_;
  bool side_ = false;
  int64_t used_ = 0;
  std::byte* next_ = nullptr;  // where what is staged ends
  int64_t waiting_ = 0;        // bytes, of whole lines, that end at source_ and belong before target_
  const std::byte* source_ = nullptr;
  std::byte* target_ = nullptr;
  alignas(64) std::byte staged_[2][kCapacity];
};

ANYDML_ISA_END
