// REVERSE_SUBSEQUENCES: the first units along an axis, as many as a tensor says, backward.
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
#include "movement/rows.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/strided_copy.h"

ANYDML_ISA_BEGIN
namespace {

// Sequences that lie side by side, `count` of them, each with a length of its own: their elements from
// `begin` to `end`, all of a place in the axis together.
using ReverseColumns = void (*)(const int64_t* lengths, int64_t count, int64_t begin, int64_t end,
                                const Loop& axis, int64_t unit, const std::byte* in, std::byte* out);

template <class Bits>
void reverse_columns(const int64_t* lengths, int64_t count, int64_t begin, int64_t end, const Loop& axis,
                     int64_t /*unit*/, const std::byte* in, std::byte* out) {
  constexpr int64_t kSize = sizeof(Bits);
  const Loop loop = axis;
  for (int64_t i = begin; i < end; ++i) {
    std::byte* const to = out + i * loop.out;
    for (int64_t c = 0; c < count; ++c) {
      const int64_t source = i < lengths[c] ? lengths[c] - 1 - i : i;
      store(to + c * kSize, load<Bits>(in + source * loop.in + c * kSize));
    }
  }
}

// Units of any size.
void reverse_units(const int64_t* lengths, int64_t count, int64_t begin, int64_t end, const Loop& axis,
                   int64_t unit, const std::byte* in, std::byte* out) {
  const Loop loop = axis;
  for (int64_t i = begin; i < end; ++i) {
    std::byte* to = out + i * loop.out;
    for (int64_t c = 0; c < count; ++c, to += unit) {
      const int64_t source = i < lengths[c] ? lengths[c] - 1 - i : i;
      copy_short(to, in + source * loop.in + c * unit, unit);
    }
  }
}

ReverseColumns choose_reverse_columns(int64_t size) {
  switch (size) {
    case 1:
      return reverse_columns<uint8_t>;
    case 2:
      return reverse_columns<uint16_t>;
    case 4:
      return reverse_columns<uint32_t>;
    case 8:
      return reverse_columns<uint64_t>;
    default:
      return reverse_units;
  }
}

class ReversePlan final : public Plan {
 public:
  // `lengths` has a step of the lengths for each of the loops.
  ReversePlan(std::vector<Loop> loops, std::vector<Loop> lengths, Loop axis, int64_t element, bool is_wide,
              std::string description)
      : Plan(std::move(description)),
        loops_(std::move(loops)),
        lengths_(std::move(lengths)),
        axis_(axis),
        unit_(element),
        is_wide_(is_wide) {
    // What lies behind the axis in both tensors, and is of one length.
    while (!loops_.empty() && loops_.back().in == unit_ && loops_.back().out == unit_ &&
           lengths_.back().in == 0) {
      unit_ *= loops_.back().size;
      loops_.pop_back();
      lengths_.pop_back();
    }
    reverse_columns_ = choose_reverse_columns(unit_);
    if (unit_ <= kLongestUnit && !loops_.empty() && loops_.back().in == unit_ && loops_.back().out == unit_) {
      columns_ = loops_.back().size;
      length_step_ = lengths_.back().in;
      loops_.pop_back();
      lengths_.pop_back();
      const int64_t fitting = kBytesOfColumns / (axis_.size * unit_);
      columns_at_once_ = std::clamp(fitting, kFewestBytes / unit_, kMostColumns);
      chunks_ = divided_up(columns_, columns_at_once_);
    }
    const int64_t row_bytes = std::min(columns_, columns_at_once_) * unit_;
    at_once_ = std::clamp<int64_t>(kPartBytes / row_bytes, 1, axis_.size);
    per_row_ = divided_up(axis_.size, at_once_);
    is_packed_ = axis_.in == unit_ && axis_.out == unit_;
    forward_ = choose_copy_of_row(unit_, axis_.in, axis_.out);
    backward_ = choose_copy_of_row(unit_, -axis_.in, axis_.out);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    const auto* const lengths = static_cast<const std::byte*>(inputs[1]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int64_t per_step = chunks_ * per_row_;
    const int64_t parts = steps_of(loops_) * per_step;
    const int64_t bytes = 2 * steps_of(loops_) * columns_ * axis_.size * unit_;
    const int threads = threads_for(bytes);
    const int64_t calls = std::min(calls_for(bytes, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      const int64_t first = share_begin(call, calls, parts);
      const int64_t last = share_begin(call + 1, calls, parts);
      LoopCursor at(loops_, first / per_step);
      LoopCursor of_length(lengths_, first / per_step);
      for (int64_t part = first; part < last; ++part) {
        if (part > first && part % per_step == 0) {
          at.advance();
          of_length.advance();
        }
        const int64_t column = part % per_step / per_row_ * columns_at_once_;
        copy_part(part % per_row_ * at_once_, column, lengths + of_length.in() + column * length_step_,
                  in + at.in() + column * unit_, out + at.out() + column * unit_);
      }
    });
  }

 private:
  static constexpr int64_t kPartBytes = 64 << 10;
  // Sequences side by side that are reversed together: as many as stay in the second cache, but enough to
  // fill lines of the output; and the longest units that are copied so.
  static constexpr int64_t kBytesOfColumns = 512 << 10;
  static constexpr int64_t kFewestBytes = 1 << 10;
  static constexpr int64_t kMostColumns = 1 << 10;
  static constexpr int64_t kLongestUnit = 1 << 9;

  // At most the axis' own.
  int64_t length_at(const std::byte* from) const {
    const uint64_t length = is_wide_ ? load<uint64_t>(from) : load<uint32_t>(from);
    return static_cast<int64_t>(std::min(length, static_cast<uint64_t>(axis_.size)));
  }

  void copy_part(int64_t begin, int64_t column, const std::byte* lengths, const std::byte* in,
                 std::byte* out) const {
    const int64_t count = std::min(at_once_, axis_.size - begin);
    const int64_t columns = std::min(columns_at_once_, columns_ - column);
    if (columns > 1) {
      int64_t each[kMostColumns];
      for (int64_t c = 0; c < columns; ++c) each[c] = length_at(lengths + c * length_step_);
      return reverse_columns_(each, columns, begin, begin + count, axis_, unit_, in, out);
    }
    const int64_t length = length_at(lengths);
    const int64_t reversed = std::clamp<int64_t>(length - begin, 0, count);
    std::byte* const to = out + begin * axis_.out;
    if (reversed > 0) {
      backward_({reversed, unit_, -axis_.in, axis_.out}, in + (length - 1 - begin) * axis_.in, to);
    }
    const int64_t rest = count - reversed;
    if (rest == 0) return;
    const std::byte* const from = in + (begin + reversed) * axis_.in;
    if (is_packed_) {
      copy_short(to + reversed * unit_, from, rest * unit_);
    } else {
      forward_({rest, unit_, axis_.in, axis_.out}, from, to + reversed * axis_.out);
    }
  }

  std::vector<Loop> loops_;    // over sequences
  std::vector<Loop> lengths_;  // likewise
  Loop axis_;                  // of units
  int64_t unit_;
  bool is_wide_;             // lengths of 64 bits
  int64_t columns_ = 1;      // sequences side by side
  int64_t length_step_ = 0;  // from one of them to the next
  int64_t columns_at_once_ = 1;
  int64_t chunks_ = 1;  // of columns
  ReverseColumns reverse_columns_;
  int64_t at_once_;
  int64_t per_row_;  // parts
  bool is_packed_;   // a sequence
  CopyRuns forward_;
  CopyRuns backward_;
};

}  // namespace

std::unique_ptr<Plan> make_reverse_subsequences(const Request& request, std::string& reason) {
  const Layout& in = tensor(request.inputs, 0);
  const Layout& lengths = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  const int64_t element = size_of(in.type);
  const bool is_wide = lengths.type == DataType::kUint64;
  if (element == 0 || !(is_wide || lengths.type == DataType::kUint32)) {
    reason = "no subsequences of " + std::string(name_of(in.type)) + " by lengths of " +
             std::string(name_of(lengths.type));
    return nullptr;
  }
  const size_t rank = in.sizes.size();
  const auto axis = static_cast<size_t>(request.attributes.integer("Axis"));
  require(axis < rank && lengths.sizes.size() == rank && out.sizes == in.sizes,
          "the sizes of tensors differ");
  require(size_of(out.type) == element, "the types of input and output differ");
  std::vector<Loop> loops;
  std::vector<Loop> of_lengths;
  for (size_t d = 0; d < rank; ++d) {
    if (d == axis || in.sizes[d] == 1) continue;
    require(lengths.sizes[d] == in.sizes[d], "there is no length for each sequence");
    loops.push_back({in.sizes[d], in.strides[d], out.strides[d]});
    of_lengths.push_back({in.sizes[d], lengths.strides[d], 0});
  }
  const std::string description = "subsequences of " + std::string(name_of(in.type)) + ", along an axis of " +
                                  std::to_string(in.sizes[axis]);
  return std::make_unique<ReversePlan>(std::move(loops), std::move(of_lengths),
                                       Loop{in.sizes[axis], in.strides[axis], out.strides[axis]}, element,
                                       is_wide, description);
}

ANYDML_ISA_END
