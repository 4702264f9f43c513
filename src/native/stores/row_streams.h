// Rows of an output that follow each other, streamed some at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// A row's bytes come in order, the rows' own in any. A line that two rows share goes out as a whole: stored
// in parts, beside lines that are streamed, each part would cost as much as some kilobytes.
class RowWriters {
 public:
  static constexpr int64_t kMost = 64;

  explicit RowWriters(std::byte* to) { row(0).stream.start(to); }

  // Of the first row.
  LineWriter& first() { return row(0).stream; }

  // `count` rows of `size` bytes from here on; the first one's begin, or what is left of it, at `to`.
  void begin(int64_t count, std::byte* to, int64_t size) {
    for (int64_t r = 1; r < count; ++r) {
      std::byte* const start = to + r * size;
      row(r).missing = to_next_line(start);
      row(r).led = 0;
      row(r).stream.start(start + row(r).missing);
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
    to.stream.append(from + leads, size - leads, ahead);
  }

  // The rows are complete, and what follows them is the next first row.
  void end(int64_t count) {
    for (int64_t r = 1; r < count; ++r) row(r - 1).stream.append(row(r).lead, row(r).led);
    first_ += count - 1;
  }

 private:
  struct Row {
    LineWriter stream;      // from the first line on that begins in the row
    std::byte lead[kLine];  // what is before it,
    int64_t led = 0;        // so far,
    int64_t missing = 0;    // and still to come
  };

  Row& row(int64_t r) { return rows_[static_cast<size_t>((first_ + r) % kMost)]; }

  std::array<Row, kMost> rows_;
  int64_t first_ = 0;
};

}  // namespace
ANYDML_ISA_END
