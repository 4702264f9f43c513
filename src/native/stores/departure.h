// Rows of outputs that are complete and leave around the caches while the next ones are computed, as memory
// would stand still while these are, and they while memory writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

class DeferredRows {
 public:
  DeferredRows() = default;
  DeferredRows(const DeferredRows&) = delete;
  DeferredRows& operator=(const DeferredRows&) = delete;
  ~DeferredRows() { send_all(); }

  // The `rows` rows of `size` bytes at `from`, from_step apart, belong to where `to` is, to_step apart. Those
  // of before leave first.
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

  // Sends one line, if any.
  ANYDML_INLINE void send_line() {
    if (at_ < end_) {
      stream_line(to_ + at_, from_ + at_);
      at_ += kLine;
    } else if (rows_ > 0) {
      end_row();
    }
  }

 private:
  // What does not fill a line is stored in the ordinary way.
  void begin_row() {
    if (rows_ == 0) return;
    at_ = std::min(to_next_line(to_), size_);
    end_ = at_ + (size_ - at_) / kLine * kLine;
    std::memcpy(to_, from_, static_cast<size_t>(at_));
  }
  void end_row() {
    std::memcpy(to_ + end_, from_ + end_, static_cast<size_t>(size_ - end_));
    from_ += from_step_;
    to_ += to_step_;
    --rows_;
    begin_row();
  }
  void send_all() {
    while (rows_ > 0) send_line();
  }

  int64_t rows_ = 0;  // that have not left, of which the first has up to at_, of its whole lines up to end_
  int64_t at_ = 0;
  int64_t end_ = 0;
  int64_t size_ = 0;
  const std::byte* from_ = nullptr;
  int64_t from_step_ = 0;
  std::byte* to_ = nullptr;
  int64_t to_step_ = 0;
};

ANYDML_ISA_END
