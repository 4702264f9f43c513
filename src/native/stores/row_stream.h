// Rows that are sent by non-temporal stores, one line of the cache for each vector that a kernel reads of the
// next row (line_queue.h). A row's last bytes that do not fill a line are sent with the first ones of the row
// that follows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "stores/line_queue.h"
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
    waiting_.send_all();
    store_rest();
    if (end_ != nullptr) stream_fence();
  }

  // Where to write the row that belongs to `to`.
  std::byte* begin(std::byte* to) {
    if (apart_ == 0) waiting_.send_all();
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
    waiting_.send_all();
    filled_ += size;
    end_ += size;
    const int64_t whole = filled_ / kLine * kLine;
    if (whole > 0) waiting_.begin(room_ + foreign_, end_ - filled_ + foreign_, whole - foreign_);
  }

  // Sends one line, if any waits.
  ANYDML_INLINE void send_line() { waiting_.send_line(); }

 private:
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
  LineQueue waiting_;
};

ANYDML_ISA_END
