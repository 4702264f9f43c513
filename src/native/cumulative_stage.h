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
//
// What is complete waits to be sent: a kernel sends as many lines as it writes while it computes the next
// ones, as memory would stand still while it computed, and it while memory wrote.
class Stage {
 public:
  static constexpr int64_t kMost = 8 << 10;

  explicit Stage(bool streams, bool down = false) : streams_(streams), down_(down) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    if (!streams_) return;
    leave(0, used_);
    send_all();
    stream_fence();
  }

  bool streams() const { return streams_; }

  // Where to write the `size` bytes that belong to `out`, kMost of them at most, before the next call. Where
  // it streams, a vector may reach beyond them.
  std::byte* room(std::byte* out, int64_t size) {
    if (!streams_) return out;
    const bool follows = (down_ ? out + size : out) == next_;
    if (!follows || used_ >= kEnough || used_ + size > kCapacity)
      make_room(down_ ? out + size : out, follows);
    used_ += size;
    next_ = down_ ? out : out + size;
    return down_ ? lowest() : lowest() + (used_ - size);
  }

  bool waits() const { return waiting_ > 0; }

  // Sends one of the lines that wait, if any.
  ANYDML_INLINE void send_line() {
    if (waiting_ == 0) return;
    stream_line(target_ - waiting_, source_ - waiting_);
    waiting_ -= kLine;
  }

 private:
  static constexpr int64_t kCapacity = kMost + kLine;
  // So much is sent without waiting for more.
  static constexpr int64_t kEnough = 2 << 10;

  std::byte* lowest() { return down_ ? staged_[side_] + (kCapacity - used_) : staged_[side_]; }

  // What follows fills the line that is begun, which therefore stays.
  void make_room(std::byte* next, bool follows) {
    const auto in_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(next_) % kLine);
    const int64_t kept = follows ? std::min(used_, down_ ? (kLine - in_line) % kLine : in_line) : 0;
    const std::byte* const from = down_ ? lowest() : lowest() + (used_ - kept);
    leave(down_ ? kept : 0, used_ - kept);
    side_ = !side_;
    used_ = kept;
    next_ = next;
    std::memcpy(lowest(), from, static_cast<size_t>(kept));
  }

  // `size` bytes from the i-th staged one on: the whole lines wait, what is left is stored in the ordinary
  // way.
  void leave(int64_t i, int64_t size) {
    send_all();
    if (size == 0) return;
    std::byte* const to = (down_ ? next_ : next_ - used_) + i;
    const std::byte* const from = lowest() + i;
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
  bool down_;
  bool side_ = false;
  int64_t used_ = 0;
  std::byte* next_ = nullptr;  // where what is staged ends, or, with `down`, begins
  int64_t waiting_ = 0;        // bytes, of whole lines, that end at source_ and belong before target_
  const std::byte* source_ = nullptr;
  std::byte* target_ = nullptr;
  alignas(64) std::byte staged_[2][kCapacity + kLine];
};

ANYDML_ISA_END
