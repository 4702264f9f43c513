// Pieces of rows on their way to an output: short ones are put together in a buffer, lines of long ones are
// sent as they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "movement/tuning.h"
#include "platform/isa.h"
#include "simd/strided_copy.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

// What writes pieces: where they are long, lines are sent from the input itself.
class PieceWriter {
 public:
  PieceWriter(bool non_temporal, bool is_long)
      : appends_(non_temporal && is_long), staged_(non_temporal && !is_long) {}
  ~PieceWriter() {
    lines_.reset();
    if (appends_) stream_fence();
  }
  PieceWriter(const PieceWriter&) = delete;
  PieceWriter& operator=(const PieceWriter&) = delete;

  // What `fill` writes, at most kPortion bytes.
  template <class Fill>
  void put(std::byte* out, int64_t size, const Fill& fill) {
    if (!appends_) return fill(staged_.reserve(out, size));
    alignas(64) std::byte portion[kPortion];
    fill(portion);
    append(out, portion, size, nullptr);
  }

  void copy(std::byte* out, const std::byte* in, int64_t size) {
    if (appends_) return append(out, in, size, in + kPrefetchDistance);
    for (int64_t i = 0; i < size; i += kPortion) {
      const int64_t count = std::min(kPortion, size - i);
      copy_short(staged_.reserve(out + i, count), in + i, count);
    }
  }

 private:
  void append(std::byte* out, const std::byte* in, int64_t size, const std::byte* ahead) {
    if (out != next_) lines_.emplace(out);
    lines_->append(in, size, ahead);
    next_ = out + size;
  }

  bool appends_;
  StagedWriter staged_;
  std::optional<LineWriter> lines_;
  std::byte* next_ = nullptr;
};

}  // namespace
ANYDML_ISA_END
