// ONE_HOT: one value where an index says, another one elsewhere.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "movement/indices.h"
#include "movement/tuning.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/unaligned.h"
#include "stores/nontemporal.h"
#include "stores/staged_writer.h"

ANYDML_ISA_BEGIN
namespace {

// Places along the axis, -1 for an index that it does not have.
using Locate = void (*)(const std::byte* from, int64_t step, int64_t count, int64_t size, int64_t* places);

template <class T>
void locate(const std::byte* from, int64_t step, int64_t count, int64_t size, int64_t* places) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t place = place_of(load<T>(from + i * step), size);
    places[i] = place < static_cast<uint64_t>(size) ? static_cast<int64_t>(place) : -1;
  }
}

Locate locate_of(DataType type) {
  switch (type) {
    case DataType::kInt32:
      return locate<int32_t>;
    case DataType::kInt64:
      return locate<int64_t>;
    case DataType::kUint32:
      return locate<uint32_t>;
    case DataType::kUint64:
      return locate<uint64_t>;
    default:
      return nullptr;
  }
}

// The room of a value, of any type.
constexpr int64_t kValue = 8;

// Of the output, steps in bytes.
struct Block {
  int64_t count;  // of indices
  int64_t step;
  Loop axis;
};

using Write = void (*)(const Block& block, const int64_t* places, const std::byte* values, std::byte* out,
                       StagedWriter& staged);

// Vectors from which on places are written over the off value, rather than compared with each element's.
constexpr int64_t kFewClasses = 16;

template <class T>
void write_elements(std::byte* to, int64_t count, int64_t step, const auto& value_of) {
  // Elements that follow each other become vectors.
  const auto write = [&](int64_t by) {
    for (int64_t i = 0; i < count; ++i) store<T>(to + i * by, value_of(i));
  };
  if (step == sizeof(T)) {
    write(sizeof(T));
  } else {
    write(step);
  }
}

// Vectors that lie one behind the other: portions of the off value, and in each what indices say.
template <class T>
void write_packed(const Block& block, const int64_t* places, T off, T on, std::byte* out,
                  StagedWriter& staged) {
  constexpr int64_t kItem = sizeof(T);
  const int64_t size = block.axis.size;
  const int64_t total = block.count * size;
  int64_t next = 0;  // index
  for (int64_t first = 0; first < total; first += kPortion / kItem) {
    const int64_t count = std::min(kPortion / kItem, total - first);
    std::byte* const to = staged.reserve(out + first * kItem, count * kItem);
    write_elements<T>(to, count, kItem, [=](int64_t) { return off; });
    for (; next < block.count; ++next) {
      if (places[next] < 0) continue;
      const int64_t place = next * size + places[next] - first;
      if (place >= count) break;
      store(to + place * kItem, on);
    }
  }
}

template <class T>
void write(const Block& block, const int64_t* places, const std::byte* values, std::byte* out,
           StagedWriter& staged) {
  constexpr int64_t kItem = sizeof(T);
  const T off = load<T>(values);
  const T on = load<T>(values + kValue);
  const Loop axis = block.axis;
  if (axis.out == kItem && block.step == axis.size * kItem) {
    return write_packed<T>(block, places, off, on, out, staged);
  }
  const bool is_outer = std::abs(axis.out) > std::abs(block.step) && block.count > 1;
  if (is_outer && axis.size < kFewClasses) {
    for (int64_t k = 0; k < axis.size; ++k) {
      write_elements<T>(out + k * axis.out, block.count, block.step,
                        [=](int64_t i) { return places[i] == k ? on : off; });
    }
    return;
  }
  const Loop inner = is_outer ? Loop{block.count, 0, block.step} : axis;
  const Loop outer = is_outer ? axis : Loop{block.count, 0, block.step};
  for (int64_t i = 0; i < outer.size; ++i) {
    write_elements<T>(out + i * outer.out, inner.size, inner.out, [=](int64_t) { return off; });
  }
  for (int64_t i = 0; i < block.count; ++i) {
    if (places[i] >= 0) store(out + i * block.step + places[i] * axis.out, on);
  }
}

Write write_of(int64_t item) {
  switch (item) {
    case 1:
      return write<uint8_t>;
    case 2:
      return write<uint16_t>;
    case 4:
      return write<uint32_t>;
    case 8:
      return write<uint64_t>;
    default:
      return nullptr;
  }
}

class OneHotPlan final : public Plan {
 public:
  OneHotPlan(std::vector<Loop> loops, Loop axis, int64_t on, int64_t item, Locate locate, Write write,
             std::string description)
      : Plan(std::move(description)),
        loops_(fold(std::move(loops))),
        axis_(axis),
        on_(on),
        item_(item),
        locate_(locate),
        write_(write) {
    row_ = take_innermost(loops_);
    per_row_ = divided_up(row_.size, kIndicesAtOnce);
    bytes_ = steps_of(loops_) * row_.size * axis_.size * item_;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const indices = static_cast<const std::byte*>(inputs[0]);
    const auto* const values = static_cast<const std::byte*>(inputs[1]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    std::byte off_and_on[2 * kValue];
    std::memcpy(off_and_on, values, static_cast<size_t>(item_));
    std::memcpy(off_and_on + kValue, values + on_, static_cast<size_t>(item_));
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(loops_) * per_row_;
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t places[kIndicesAtOnce];
      const bool is_packed = axis_.out == item_ && row_.out == axis_.size * item_;
      StagedWriter staged(is_packed && bytes_ >= kStreamFrom);
      const int64_t end = share_begin(call + 1, calls, parts);
      for (int64_t part = share_begin(call, calls, parts); part < end; ++part) {
        const LoopCursor at(loops_, part / per_row_);
        const int64_t begin = part % per_row_ * kIndicesAtOnce;
        const int64_t count = std::min(kIndicesAtOnce, row_.size - begin);
        locate_(indices + at.in() + begin * row_.in, row_.in, count, axis_.size, places);
        write_({count, row_.out, axis_}, places, off_and_on, out + at.out() + begin * row_.out, staged);
      }
    });
  }

 private:
  std::vector<Loop> loops_;
  Loop row_;  // of indices
  Loop axis_;
  int64_t on_;  // where the second value is
  int64_t item_;
  Locate locate_;
  Write write_;
  int64_t per_row_;  // parts
  int64_t bytes_;
};

}  // namespace

std::unique_ptr<Plan> make_one_hot(const Request& request, std::string& reason) {
  const Layout& indices = tensor(request.inputs, 0);
  const Layout& values = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  const Locate locate = locate_of(indices.type);
  const Write write = write_of(size_of(out.type));
  if (locate == nullptr || write == nullptr) {
    reason = "no one-hot vectors of " + std::string(name_of(out.type)) + " by " +
             std::string(name_of(indices.type));
    return nullptr;
  }
  const auto axis = static_cast<size_t>(request.attributes.integer("Axis"));
  require(axis < out.sizes.size() && indices.sizes.size() == out.sizes.size(), "the dimensions differ");
  require(values.type == out.type, "the types of values and output differ");
  std::vector<Loop> loops;
  for (size_t d = 0; d < out.sizes.size(); ++d) {
    require(indices.sizes[d] == (d == axis ? 1 : out.sizes[d]), "the sizes of indices and output differ");
    if (d != axis) loops.push_back({out.sizes[d], indices.strides[d], out.strides[d]});
  }
  // The second element in row-major order.
  size_t last = values.sizes.size();
  while (last > 0 && values.sizes[last - 1] == 1) --last;
  require(last > 0, "there is one value");
  return std::make_unique<OneHotPlan>(
      std::move(loops), Loop{out.sizes[axis], 0, out.strides[axis]}, values.strides[last - 1],
      size_of(out.type), locate, write,
      "one-hot vectors of " + std::string(name_of(out.type)) + " by " + std::string(name_of(indices.type)));
}

ANYDML_ISA_END
