// A double-buffered staging area for non-temporal stores: a kernel writes into one buffer while the whole
// cache lines of the other one are sent. Buffers that follow each other in the output are joined, so that a
// line is sent once, as a whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "stores/line_queue.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// Each thread has its own. Where `non_temporal` is false, kernels write into the output itself.
class StagedWriter {
 public:
  // The most bytes that can be reserved at once.
  static constexpr int64_t kMost = 8 << 10;

  explicit StagedWriter(bool non_temporal) : non_temporal_(non_temporal) {}
  StagedWriter(const StagedWriter&) = delete;
  StagedWriter& operator=(const StagedWriter&) = delete;
  ~StagedWriter() {
    if (!non_temporal_) return;
    send(used_);
    waiting_.send_all();
    stream_fence();
  }

  bool is_non_temporal() const { return non_temporal_; }

  // Returns where to write the `size` bytes that belong to `out` before the next call.
  std::byte* reserve(std::byte* out, int64_t size) {
    if (!non_temporal_) return out;
    const bool follows = out == next_;
    if (!follows || used_ >= kFlushThreshold || used_ + size > kCapacity) flush(out, follows);
    used_ += size;
    next_ = out + size;
    return staged_[side_] + (used_ - size);
  }

  // Sends one of the lines that wait, if any. A kernel calls it once for each line that it writes.
  ANYDML_INLINE void send_line() { waiting_.send_line(); }

 private:
  static constexpr int64_t kCapacity = kMost + kLine;
  // A buffer with that many bytes is sent without waiting for more.
  static constexpr int64_t kFlushThreshold = 2 << 10;

  // Begins the other buffer, with the bytes of a line that what follows will fill.
  ANYDML_NOINLINE void flush(std::byte* next, bool follows) {
    const auto in_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(next_) % kLine);
    const int64_t kept = follows ? std::min(used_, in_line) : 0;
    const std::byte* const from = staged_[side_] + (used_ - kept);
    send(used_ - kept);
    side_ = !side_;
    used_ = kept;
    next_ = next;
    std::memcpy(staged_[side_], from, static_cast<size_t>(kept));
  }

  // Queues the first `size` bytes of the buffer.
  void send(int64_t size) {
    waiting_.send_all();
    if (size > 0) waiting_.begin(staged_[side_], next_ - used_, size);
  }

  bool non_temporal_;
  bool side_ = false;
  int64_t used_ = 0;
  std::byte* next_ = nullptr;  // the place in the output of the end of the buffer
  LineQueue waiting_;
  alignas(64) std::byte staged_[2][kCapacity];
};

ANYDML_ISA_END
