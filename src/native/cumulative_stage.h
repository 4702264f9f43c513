// Where outputs are put together on their way around the caches, so that whole lines leave at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "isa.h"
#include "stream.h"

ANYDML_ISA_BEGIN

// One thread's. Without `streams`, outputs are written where they belong. Pieces that follow each other are
// put together; with `down`, those that lie below each other are.
class Stage {
 public:
  static constexpr int64_t kMost = 8 << 10;

  explicit Stage(bool streams, bool down = false) : streams_(streams), down_(down) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    if (!streams_) return;
    leave(0, used_);
    stream_fence();
  }

  bool streams() const { return streams_; }

  // Where to write the `size` bytes that belong to `out`, kMost of them at most, before the next call.
  std::byte* room(std::byte* out, int64_t size) {
    if (!streams_) return out;
    const bool follows = (down_ ? out + size : out) == next_;
    if (!follows || used_ + size > kCapacity) make_room(down_ ? out + size : out, follows);
    used_ += size;
    next_ = down_ ? out : out + size;
    return down_ ? lowest() : lowest() + (used_ - size);
  }

 private:
  static constexpr int64_t kCapacity = kMost + kLine;

  std::byte* lowest() { return down_ ? staged_ + (kCapacity - used_) : staged_; }

  // What follows fills the line that is begun, which therefore stays.
  void make_room(std::byte* next, bool follows) {
    if (!follows) {
      leave(0, used_);
      used_ = 0;
      next_ = next;
      return;
    }
    const auto in_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(next_) % kLine);
    const int64_t kept = std::min(used_, down_ ? (kLine - in_line) % kLine : in_line);
    const std::byte* const from = down_ ? lowest() : lowest() + (used_ - kept);
    leave(down_ ? kept : 0, used_ - kept);
    used_ = kept;
    std::memmove(lowest(), from, static_cast<size_t>(kept));
  }

  // `size` bytes from the i-th staged one on.
  void leave(int64_t i, int64_t size) {
    if (size > 0) stream_copy((down_ ? next_ : next_ - used_) + i, lowest() + i, size);
  }

  bool streams_;
  bool down_;
  int64_t used_ = 0;
  std::byte* next_ = nullptr;  // where what is staged ends, or, with `down`, begins
  alignas(64) std::byte staged_[kCapacity];
};

ANYDML_ISA_END
