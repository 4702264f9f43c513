// Write-combining buffers for several adjacent rows of an output, one line writer for each row.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "platform/isa.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN

// The bytes of a row come in order; the rows take turns in any order. A cache line that two rows share is
// sent as a whole, by the writer of the earlier row: ordinary stores of its two parts, beside non-temporal
// ones, would each cost as much as some kilobytes.
class RowWriters {
 public:
  static constexpr int64_t kMost = 64;

  explicit RowWriters(std::byte* to) { row(0).writer.start(to); }

  LineWriter& first() { return row(0).writer; }

  // Begins `count` rows of `size` bytes. The first one's bytes, or those that are left of it, begin at `to`.
  void begin(int64_t count, std::byte* to, int64_t size) {
    for (int64_t r = 1; r < count; ++r) {
      std::byte* const start = to + r * size;
      row(r).missing = to_next_line(start);
      row(r).led = 0;
      row(r).writer.start(start + row(r).missing);
    }
  }

  // Ends what was written, and begins `count` rows that lie apart, share no lines, and need no end.
  void begin_apart(int64_t count, std::byte* to, int64_t step) {
    for (int64_t r = 0; r < count; ++r) {
      Row& own = row(r);
      std::destroy_at(&own.writer);
      std::construct_at(&own.writer, to + r * step);
      own.missing = 0;
    }
  }

  void append(int64_t r, const std::byte* from, int64_t size, const std::byte* ahead) {
    Row& to = row(r);
    const int64_t leads = std::min(to.missing, size);
    if (leads > 0) {
      std::memcpy(to.lead + to.led, from, static_cast<size_t>(leads));
      to.led += leads;
      to.missing -= leads;
    }
    to.writer.append(from + leads, size - leads, ahead);
  }

  // Ends the rows, all of which are complete. The last one's writer becomes that of the first row.
  void end(int64_t count) {
    for (int64_t r = 1; r < count; ++r) row(r - 1).writer.append(row(r).lead, row(r).led);
    first_ += count - 1;
  }

 private:
  struct Row {
    LineWriter writer;      // from the first line on that begins in the row
    std::byte lead[kLine];  // the bytes before that line,
    int64_t led = 0;        // so many of which have come,
    int64_t missing = 0;    // and so many have not
  };

  Row& row(int64_t r) { return rows_[static_cast<size_t>((first_ + r) % kMost)]; }

  std::array<Row, kMost> rows_;
  int64_t first_ = 0;
};

ANYDML_ISA_END
