// A queue of adjacent cache lines that wait to be sent by non-temporal stores, one for each line that a
// kernel computes: memory would stand idle during the computation, and the computation would wait while
// memory writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

class LineQueue {
 public:
  // Queues the whole lines of the `size` bytes at `from`, which belong to `to`, and writes the ends that do
  // not fill a line by ordinary stores. The queue has to be empty. The bytes must stay as they are until they
  // are sent.
  void begin(const std::byte* from, std::byte* to, int64_t size) {
    const int64_t head = std::min(to_next_line(to), size);
    const int64_t end = head + (size - head) / kLine * kLine;
    std::memcpy(to, from, static_cast<size_t>(head));
    std::memcpy(to + end, from + end, static_cast<size_t>(size - end));
    to_ = to + end;
    from_ = from + end;
    waiting_ = end - head;
  }

  bool is_empty() const { return waiting_ == 0; }

  // Sends one line, if any waits. The bytes that wait are the only counter: two pointers that advance
  // together would be made one vector by compilers, and taken apart again for each line.
  ANYDML_INLINE void send_line() {
    if (waiting_ == 0) return;
    stream_line(to_ - waiting_, from_ - waiting_);
    waiting_ -= kLine;
  }
  void send_all() {
    while (waiting_ > 0) send_line();
  }

 private:
  int64_t waiting_ = 0;  // bytes, which end at from_ and to_
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
};

ANYDML_ISA_END
