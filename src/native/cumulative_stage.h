// Where outputs are put together on their way around the caches, so that whole lines leave at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "isa.h"
#include "stream.h"

ANYDML_ISA_BEGIN

// One thread's. Without `streams`, outputs are written where they belong.
class Stage {
 public:
  static constexpr int64_t kMost = 8 << 10;

  explicit Stage(bool streams) : streams_(streams) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    if (!streams_) return;
    leave();
    stream_fence();
  }

  bool streams() const { return streams_; }

  // Where to write the `size` bytes that belong to `out`, kMost of them at most, before the next call.
  std::byte* room(std::byte* out, int64_t size) {
    if (!streams_) return out;
    if (out != end_ || used_ + size > kCapacity) make_room(out);
    std::byte* const at = staged_ + used_;
    used_ += size;
    end_ += size;
    return at;
  }

 private:
  static constexpr int64_t kCapacity = kMost + kLine;

  void make_room(std::byte* out) {
    if (out != end_) {
      leave();
      end_ = out;
      return;
    }
    // What follows fills the line that is begun.
    const int64_t kept = std::min(used_, static_cast<int64_t>(reinterpret_cast<uintptr_t>(end_) % kLine));
    stream_copy(end_ - used_, staged_, used_ - kept);
    std::memmove(staged_, staged_ + (used_ - kept), static_cast<size_t>(kept));
    used_ = kept;
  }

  void leave() {
    if (used_ > 0) stream_copy(end_ - used_, staged_, used_);
    used_ = 0;
  }

  bool streams_;
  int64_t used_ = 0;
  std::byte* end_ = nullptr;  // of the output's bytes that are staged
  alignas(64) std::byte staged_[kCapacity];
};

ANYDML_ISA_END
