// Rows that are sent by non-temporal stores, one line of the cache for each vector that a kernel reads of the
// next row: memory would stand idle during the computation, and the computation would wait while memory
// writes. A row's last bytes that do not fill a line are sent with the first ones of the row that follows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

class RowStream {
 public:
  // With a buffer from a whole line on, of a row and two lines; and another one `apart` bytes from there, or
  // none, where no row is begun before the one before it is sent.
  explicit RowStream(std::byte* room, int64_t apart) : room_(room), apart_(apart) {}
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;
  ~RowStream() {
    send_all();
    store_rest();
    if (end_ != nullptr) stream_fence();
  }

  // Where to write the row that belongs to `to`.
  std::byte* begin(std::byte* to) {
    if (apart_ == 0) send_all();
    if (to == end_) {
      const std::byte* const rest = room_ + filled_ / kLine * kLine;
      turn();
      if (filled_ % kLine > 0) std::memcpy(room_, rest, kLine);  // faster than some of it
      if (filled_ >= kLine) foreign_ = 0;
      filled_ %= kLine;
    } else {
      store_rest();
      turn();
      filled_ = foreign_ = (kLine - to_next_line(to)) % kLine;
      end_ = to;
    }
    return room_ + filled_;
  }
  // Queues its whole lines.
  void finish(int64_t size) {
    send_all();
    filled_ += size;
    end_ += size;
    const int64_t whole = filled_ / kLine * kLine;
    to_ = end_ - filled_ % kLine;
    from_ = room_ + whole;
    waiting_ = whole;
    if (foreign_ == 0 || whole == 0) return;
    std::memcpy(to_ - whole + foreign_, room_ + foreign_, static_cast<size_t>(kLine - foreign_));
    waiting_ -= kLine;
  }

  // Sends one line, if any waits.
  ANYDML_INLINE void send_line() {
    if (waiting_ == 0) return;
    stream_line(to_ - waiting_, from_ - waiting_);
    waiting_ -= kLine;
  }

 private:
  void send_all() {
    while (waiting_ > 0) send_line();
  }
  void store_rest() {
    const int64_t size = filled_ % kLine;
    const int64_t first = filled_ < kLine ? foreign_ : 0;
    if (size > first) {
      std::memcpy(end_ - size + first, room_ + filled_ - size + first, static_cast<size_t>(size - first));
    }
  }

  void turn() {
    room_ += apart_;
    apart_ = -apart_;
  }

  std::byte* room_;
  int64_t apart_;             // from the room to the next row's
  std::byte* end_ = nullptr;  // of the rows that came
  int64_t filled_ = 0;        // bytes in the buffer, from the beginning of a line on
  int64_t foreign_ = 0;       // and of the first line those that are not the rows' own
  int64_t waiting_ = 0;       // bytes, which end at from_ and to_
  const std::byte* from_ = nullptr;
  std::byte* to_ = nullptr;
};

ANYDML_ISA_END
