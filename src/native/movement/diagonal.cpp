// DIAGONAL_MATRIX and DIAGONAL_MATRIX1: a band of diagonals that is filled with one value.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

using FillElements = void (*)(int64_t count, int64_t step, int64_t bits, std::byte* to);

template <class T>
void fill_elements(int64_t count, int64_t step, int64_t bits, std::byte* to) {
  const auto value = static_cast<T>(bits);
  if (step == sizeof(T)) {
    for (int64_t i = 0; i < count; ++i) store(to + i * static_cast<int64_t>(sizeof(T)), value);
  } else {
    for (int64_t i = 0; i < count; ++i) store(to + i * step, value);
  }
}

FillElements choose_fill_of_elements(int64_t item) {
  switch (item) {
    case 1:
      return fill_elements<uint8_t>;
    case 2:
      return fill_elements<uint16_t>;
    case 4:
      return fill_elements<uint32_t>;
    default:
      return fill_elements<uint64_t>;
  }
}

// Of row y the columns from begin + y to before end + y are the band. Its elements are the value, and all
// others are left; or the other way round.
struct Band {
  int64_t begin;
  int64_t end;
  bool is_left;
};

class DiagonalPlan final : public Plan {
 public:
  DiagonalPlan(const Layout& in, const Layout& out, Band band, int64_t value)
      : Plan(std::string("band of diagonals that is ") + (band.is_left ? "left" : "filled")),
        band_(band),
        value_(value),
        has_input_(in.present),
        item_(size_of(out.type)) {
    for (size_t d = 0; d < out.sizes.size(); ++d) {
      rows_.push_back({out.sizes[d], in.present ? in.strides[d] : 0, out.strides[d]});
    }
    row_ = rows_.back();
    rows_.pop_back();
    per_row_ = divided_up(row_.size, kPart);
    bytes_ = steps_of(rows_) * row_.size * item_;
    fill_ = choose_fill_of_elements(item_);
    copy_ = choose_copy_of_elements(item_);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = has_input_ ? static_cast<const std::byte*>(inputs[0]) : nullptr;
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t moved = has_input_ ? 2 * bytes_ : bytes_;
    const int threads = threads_for(moved);
    const int64_t parts = steps_of(rows_) * per_row_;
    const int64_t calls = std::min(calls_for(moved, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      StagedWriter writer(row_.out == item_ && bytes_ >= kStreamFrom);
      const int64_t end = share_begin(call + 1, calls, parts);
      int64_t part = share_begin(call, calls, parts);
      LoopCursor cursor(rows_, part / per_row_);
      for (int64_t of_row = part % per_row_; part < end; ++part) {
        const int64_t x = of_row * kPart;
        const int64_t count = std::min(kPart, row_.size - x);
        std::byte* const to = writer.reserve(out + cursor.out() + x * row_.out, count * item_);
        write(cursor.index(rows_.size() - 1), x, count, in == nullptr ? nullptr : in + cursor.in(), to);
        if (++of_row == per_row_) {
          of_row = 0;
          cursor.advance();
        }
      }
    });
  }

 private:
  // Elements of a row that are written together.
  static constexpr int64_t kPart = 1024;

  // Writes so many elements of row y, from column x on: before the band, of it, and behind it.
  void write(int64_t y, int64_t x, int64_t count, const std::byte* in, std::byte* to) const {
    const int64_t begin = std::clamp<int64_t>(band_.begin + y - x, 0, count);
    const int64_t end = std::clamp<int64_t>(band_.end + y - x, begin, count);
    const int64_t places[] = {0, begin, end, count};
    for (int i = 0; i < 3; ++i) {
      const int64_t size = places[i + 1] - places[i];
      if (size == 0) continue;
      std::byte* const first = to + places[i] * row_.out;
      const bool is_filled = (i == 1) != band_.is_left;
      if (is_filled || in == nullptr) {
        fill_(size, row_.out, is_filled ? value_ : 0, first);
      } else {
        copy_({size, row_.in, row_.out}, in + (x + places[i]) * row_.in, first);
      }
    }
  }

  Band band_;
  int64_t value_;  // its bits
  bool has_input_;
  int64_t item_;
  std::vector<Loop> rows_;  // the last one is over those of a matrix
  Loop row_;
  int64_t per_row_;  // parts
  int64_t bytes_;    // of the output
  FillElements fill_;
  CopyElements copy_;
};

}  // namespace

std::unique_ptr<Plan> make_diagonal_matrix(const Request& request, std::string&) {
  const int64_t begin = request.attributes.integer("Begin");
  const int64_t end = request.attributes.integer("End");
  const Band band{std::min(begin, end), std::max(begin, end), end < begin};
  const Layout in = request.inputs.empty() ? Layout{} : request.inputs[0];
  return std::make_unique<DiagonalPlan>(in, tensor(request.outputs, 0), band,
                                        request.attributes.integer("Value"));
}

ANYDML_ISA_END
