// A deferred copy by non-temporal stores: rows of outputs that are complete wait in a buffer, and are sent
// one cache line at a time while the next rows are computed. Without the delay, memory would stand idle
// during the computation, and the computation would wait while memory writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/isa.h"
#include "stores/line_queue.h"

ANYDML_ISA_BEGIN

class DeferredRows {
 public:
  DeferredRows() = default;
  DeferredRows(const DeferredRows&) = delete;
  DeferredRows& operator=(const DeferredRows&) = delete;
  ~DeferredRows() { send_all(); }

  // Queues `rows` rows of `size` bytes, which are at `from`, from_step bytes apart, and belong to `to`,
  // to_step bytes apart. Rows that were queued before are sent first. The buffer must stay as it is until
  // then.
  void begin(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t rows,
             int64_t size) {
    send_all();
    from_ = from;
    from_step_ = from_step;
    to_ = to;
    to_step_ = to_step;
    rows_ = rows;
    size_ = size;
    begin_row();
  }

  // Sends one cache line, if any waits.
  ANYDML_INLINE void send_line() {
    if (!row_.is_empty()) {
      row_.send_line();
    } else if (rows_ > 0) {
      end_row();
    }
  }

 private:
  void begin_row() {
    if (rows_ > 0) row_.begin(from_, to_, size_);
  }
  ANYDML_NOINLINE void end_row() {
    from_ += from_step_;
    to_ += to_step_;
    --rows_;
    begin_row();
  }
  void send_all() {
    while (rows_ > 0) send_line();
  }

  int64_t rows_ = 0;  // that are not sent yet, of which the first one's lines are in row_
  LineQueue row_;
  int64_t size_ = 0;
  const std::byte* from_ = nullptr;
  int64_t from_step_ = 0;
  std::byte* to_ = nullptr;
  int64_t to_step_ = 0;
};

ANYDML_ISA_END
