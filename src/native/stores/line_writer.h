// A write-combining buffer of one cache line: appended bytes are sent by non-temporal stores as soon as they
// fill a line. Bytes that do not fill a line, at either end, are written by ordinary stores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

class LineWriter {
 public:
  LineWriter() = default;
  explicit LineWriter(std::byte* to) { start(to); }
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;
  ~LineWriter() { store_ends(); }

  // The next bytes belong to `to`. Nothing of what was appended before may be left in the buffer.
  void start(std::byte* to) {
    begin_ = filled_ = (kLine - to_next_line(to)) % kLine;
    line_ = to - begin_;
  }

  // Unless `ahead` is null, prefetches as many bytes from there, one line for each that is sent: a burst of
  // prefetches would be waited for.
  void append(const std::byte* from, int64_t size, const std::byte* ahead = nullptr) {
    if (filled_ > 0) {
      const int64_t count = std::min(size, kLine - filled_);
      std::memcpy(buffer_ + filled_, from, static_cast<size_t>(count));
      filled_ += count;
      if (filled_ < kLine) return;
      if (begin_ > 0) {
        store_ends();
      } else {
        stream_line(line_, buffer_);
      }
      begin_ = 0;
      line_ += kLine;
      from += count;
      size -= count;
    }
    for (; size >= kLine; size -= kLine, from += kLine, line_ += kLine) {
      stream_line(line_, from);
      if (ahead != nullptr) prefetch_line(std::exchange(ahead, ahead + kLine));
    }
    filled_ = size;
    if (size > 0) std::memcpy(buffer_, from, static_cast<size_t>(size));
  }

 private:
  void store_ends() {
    if (filled_ > begin_) {
      std::memcpy(line_ + begin_, buffer_ + begin_, static_cast<size_t>(filled_ - begin_));
    }
  }

  int64_t begin_ = 0;   // the first byte of this line that is the writer's own
  int64_t filled_ = 0;  // the end of the bytes in the buffer
  std::byte* line_ = nullptr;
  alignas(32) std::byte buffer_[kLine];
};

ANYDML_ISA_END
