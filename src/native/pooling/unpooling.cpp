// MAX_UNPOOLING: threads share ranges of the output, each of which is cleared and then takes the elements
// whose indices lie in it, in their order. Of each chunk of indices the least and the largest are known
// before, so that a range looks at those chunks alone that may have something for it; pooling's indices lie
// close together.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/layout.h"
#include "core/registry.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Neighbours that follow each other as one, in the same order.
inline std::vector<Loop> merged_in_order(const std::vector<Loop>& loops) {
  std::vector<Loop> kept;
  for (const Loop& inner : loops) {
    if (inner.size == 1) continue;
    if (!kept.empty() && kept.back().in == inner.size * inner.in &&
        kept.back().out == inner.size * inner.out) {
      kept.back() = {kept.back().size * inner.size, inner.in, inner.out};
    } else {
      kept.push_back(inner);
    }
  }
  if (kept.empty()) kept.push_back({1, 0, 0});
  return kept;
}

// Calls body(at, count) for runs along the innermost loop, from a step on.
template <class Body>
void for_each_run(const std::vector<Loop>& loops, int64_t first, int64_t last, const Body& body) {
  const std::span<const Loop> outer(loops.data(), loops.size() - 1);
  const Loop& row = loops.back();
  LoopCursor cursor(outer, first / row.size);
  for (int64_t begin = first % row.size; first < last; begin = 0) {
    const int64_t count = std::min(row.size - begin, last - first);
    body(Loop{count, cursor.in() + begin * row.in, cursor.out() + begin * row.out}, row);
    first += count;
    cursor.advance();
  }
}

constexpr int64_t kChunk = 2048;       // elements of which the least and the largest index are known
constexpr int64_t kMostChunks = 4096;  // so that what is known of them takes little memory

struct Reach {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  uint64_t most = 0;

  bool is_in(uint64_t begin, uint64_t end) const { return begin <= least && most < end; }
  bool meets(uint64_t begin, uint64_t end) const { return least < end && begin <= most; }
};

template <class T, class Index>
class UnpoolingPlan final : public Plan {
 public:
  UnpoolingPlan(const Layout& x, const Layout& indices, const Layout& out, std::string description)
      : Plan(std::move(description)) {
    std::vector<Loop> loops;
    std::vector<Loop> places;
    for (size_t d = 0; d < x.sizes.size(); ++d) {
      loops.push_back({x.sizes[d], x.strides[d], indices.strides[d]});
      places.push_back({out.sizes[d], 0, out.strides[d]});
    }
    loops_ = merged_in_order(loops);
    places_ = merged_in_order(places);
    count_ = steps_of(loops_);
    size_ = steps_of(places_);
    chunk_ = std::max(kChunk, divided_up(count_, kMostChunks));
    bytes_ = count_ * static_cast<int64_t>(sizeof(T) + sizeof(Index)) + size_ * kItem;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const x = static_cast<const std::byte*>(inputs[0]);
    const auto* const indices = static_cast<const std::byte*>(inputs[1]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(bytes_);
    const int64_t ranges = std::min(calls_for(bytes_, threads), size_);
    std::vector<Reach> reaches(static_cast<size_t>(divided_up(count_, chunk_)));
    if (ranges > 1) {
      parallel_for(static_cast<int64_t>(reaches.size()), threads,
                   [&](int64_t i) { reaches[static_cast<size_t>(i)] = reach_of(i, indices); });
    } else {
      std::ranges::fill(reaches, Reach{0, std::numeric_limits<uint64_t>::max()});
    }
    parallel_for(ranges, threads, [&](int64_t range) {
      const int64_t begin = share_begin(range, ranges, size_);
      const int64_t end = share_begin(range + 1, ranges, size_);
      clear(begin, end, out);
      for (size_t i = 0; i < reaches.size(); ++i) {
        if (!reaches[i].meets(static_cast<uint64_t>(begin), static_cast<uint64_t>(end))) continue;
        put(static_cast<int64_t>(i), begin, end, reaches[i], x, indices, out);
      }
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);

  int64_t end_of(int64_t chunk) const { return std::min((chunk + 1) * chunk_, count_); }

  Reach reach_of(int64_t chunk, const std::byte* indices) const {
    Reach reach;
    for_each_run(loops_, chunk * chunk_, end_of(chunk), [&](const Loop& at, const Loop& row) {
      Index least = std::numeric_limits<Index>::max();
      Index most = 0;
      const auto look = [&](int64_t step) {
        for (int64_t i = 0; i < at.size; ++i) {
          const auto index = load<Index>(indices + at.out + i * step);
          least = std::min(least, index);
          most = std::max(most, index);
        }
      };
      // Where indices follow each other compilers make vectors of them.
      if (row.out == sizeof(Index)) {
        look(sizeof(Index));
      } else {
        look(row.out);
      }
      reach.least = std::min<uint64_t>(reach.least, least);
      reach.most = std::max<uint64_t>(reach.most, most);
    });
    return reach;
  }

  void clear(int64_t begin, int64_t end, std::byte* out) const {
    for_each_run(places_, begin, end, [&](const Loop& at, const Loop& row) {
      if (row.out == kItem) {
        std::memset(out + at.out, 0, static_cast<size_t>(at.size * kItem));
      } else {
        for (int64_t i = 0; i < at.size; ++i) store(out + at.out + i * row.out, T{});
      }
    });
  }

  // The elements of a chunk whose indices lie in a range of the output.
  void put(int64_t chunk, int64_t begin, int64_t end, const Reach& reach, const std::byte* x,
           const std::byte* indices, std::byte* out) const {
    const auto first = static_cast<uint64_t>(begin);
    const auto size = static_cast<uint64_t>(end - begin);
    const bool is_packed = places_.size() == 1;
    const int64_t step = places_.back().out;
    for_each_run(loops_, chunk * chunk_, end_of(chunk), [&](const Loop& at, const Loop& row) {
      if (is_packed && reach.is_in(first, first + size)) {
        for (int64_t i = 0; i < at.size; ++i) {
          const auto index = static_cast<int64_t>(load<Index>(indices + at.out + i * row.out));
          store(out + index * step, load<T>(x + at.in + i * row.in));
        }
        return;
      }
      for (int64_t i = 0; i < at.size; ++i) {
        const uint64_t index = load<Index>(indices + at.out + i * row.out);
        if (index - first >= size) continue;
        const auto place = static_cast<int64_t>(index);
        store(out + (is_packed ? place * step : offset_of(place)), load<T>(x + at.in + i * row.in));
      }
    });
  }

  int64_t offset_of(int64_t place) const {
    int64_t offset = 0;
    for (size_t d = places_.size(); d-- > 0; place /= places_[d].size) {
      offset += place % places_[d].size * places_[d].out;
    }
    return offset;
  }

  std::vector<Loop> loops_;   // steps of elements and of indices
  std::vector<Loop> places_;  // steps of the output
  int64_t count_ = 0;         // elements
  int64_t size_ = 0;          // places
  int64_t chunk_ = kChunk;
  int64_t bytes_ = 0;
};

template <class T>
std::unique_ptr<Plan> unpooled(const Request& request, std::string description) {
  const Layout& x = request.inputs[0];
  const Layout& indices = request.inputs[1];
  const Layout& out = request.outputs[0];
  if (indices.type == DataType::kUint64) {
    return std::make_unique<UnpoolingPlan<T, uint64_t>>(x, indices, out, std::move(description));
  }
  return std::make_unique<UnpoolingPlan<T, uint32_t>>(x, indices, out, std::move(description));
}

}  // namespace

std::unique_ptr<Plan> make_max_unpooling(const Request& request, std::string& reason) {
  const Layout& x = tensor(request.inputs, 0);
  const Layout& indices = tensor(request.inputs, 1);
  const Layout& out = tensor(request.outputs, 0);
  require(x.type == out.type && x.sizes == indices.sizes && x.sizes.size() == out.sizes.size(),
          "tensors of unpooling");
  if (indices.type != DataType::kUint64 && indices.type != DataType::kUint32) {
    reason = "no indices of " + std::string(name_of(indices.type));
    return nullptr;
  }
  std::string description = "elements put back, of " + std::string(name_of(out.type)) + " by indices of " +
                            std::string(name_of(indices.type));
  switch (size_of(out.type)) {
    case 1:
      return unpooled<uint8_t>(request, std::move(description));
    case 2:
      return unpooled<uint16_t>(request, std::move(description));
    case 4:
      return unpooled<uint32_t>(request, std::move(description));
    case 8:
      return unpooled<uint64_t>(request, std::move(description));
    default:
      reason = "no elements of " + std::string(name_of(out.type));
      return nullptr;
  }
}

ANYDML_ISA_END
