// Pooling of whole planes, whose elements lie side by side: in 16 lanes, as `combined_taps` has them, by
// vectors that are as wide as registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "core/kernel_plan.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pointwise/lanes.h"
#include "pooling/channels.h"
#include "pooling/geometry.h"
#include "pooling/rows.h"
#include "pooling/windows.h"
#include "stores/line_writer.h"
#include "stores/nontemporal.h"

ANYDML_ISA_BEGIN
namespace {

// Whether an only window holds all of each plane.
inline bool is_of_whole_planes(const Nest& nest, int64_t item) {
  const Sliding& row = nest.row.window;
  return nest.outer.size() == 1 && !nest.outer[0].slides() && nest.row.is_whole() && row.in_stride == item;
}

// Calls body(first, end) for shares of so many planes.
template <class Body>
void for_shares(int64_t planes, int64_t bytes, const Body& body) {
  const int threads = threads_for(bytes);
  const int64_t calls = std::min(calls_for(bytes, threads), planes);
  parallel_for(calls, threads, [&](int64_t call) {
    body(share_begin(call, calls, planes), share_begin(call + 1, calls, planes));
  });
}
// Calls body(first, count) for parts of them.
template <class Body>
void for_planes(int64_t planes, int64_t bytes, const Body& body) {
  for_shares(planes, bytes, [&](int64_t first, int64_t end) {
    for (; first < end; first += kPart) body(first, std::min(kPart, end - first));
  });
}

// Fills elements that lie side by side with one value.
template <class T>
ANYDML_INLINE void fill_plane(std::byte* to, int64_t size, T value) {
  constexpr int64_t kBytes = 64;
  alignas(kBytes) T some[kBytes / sizeof(T)];
  std::fill_n(some, std::size(some), value);
  const int64_t bytes = size * static_cast<int64_t>(sizeof(T));
  if (bytes < kBytes) {
    std::memcpy(to, some, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i + kBytes <= bytes; i += kBytes) std::memcpy(to + i, some, kBytes);
  std::memcpy(to + bytes - kBytes, some, kBytes);  // of which there may be some already
}

// Where planes are put that follow each other: in their places, or, of large outputs, in a buffer that goes
// past the caches.
class PlaneOutputs {
 public:
  static bool are_streamed(int64_t planes, int64_t bytes, int64_t step) {
    return step == bytes && bytes <= kRoom && planes * bytes >= kStreamFrom;
  }

  PlaneOutputs(std::byte* first, int64_t bytes, bool are_streamed) : bytes_(bytes), streams_(are_streamed) {
    if (streams_) writer_.start(first);
  }
  PlaneOutputs(const PlaneOutputs&) = delete;
  PlaneOutputs& operator=(const PlaneOutputs&) = delete;
  ~PlaneOutputs() {
    if (!streams_) return;
    writer_.append(room_, filled_);
    stream_fence();
  }

  std::byte* at(std::byte* to) {
    if (!streams_) return to;
    if (filled_ + bytes_ > kRoom) writer_.append(room_, std::exchange(filled_, 0));
    return room_ + std::exchange(filled_, filled_ + bytes_);
  }

 private:
  static constexpr int64_t kRoom = 1 << 13;

  int64_t bytes_;
  bool streams_;
  int64_t filled_ = 0;
  LineWriter writer_;
  alignas(64) std::byte room_[kRoom];
};

template <class Operation>
class WholePlan final : public Plan {
 public:
  using T = typename Operation::Element;
  using Number = typename Operation::Number;
  static constexpr bool kIsMaximum = !std::is_same_v<typename Operation::Combine, Sum>;
  static_assert(std::is_floating_point_v<Number>);

  WholePlan(Nest nest, Operation operation, std::string description)
      : Plan(std::move(description)),
        nest_(std::move(nest)),
        operation_(operation),
        planes_(nest_.outer[0].window),
        size_(nest_.row.window.size) {
    // What follows the last elements of a plane is read with them, where it is the next plane's.
    const bool is_packed = planes_.in_stride == size_ * kItem;
    const int64_t behind = is_packed ? divided_up(divided_up(size_, kLanes) * kLanes - size_, size_) : 0;
    followed_ = is_packed ? planes_.size - behind : 0;
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    for_planes(planes_.size, planes_.size * size_ * kItem, [&](int64_t plane, int64_t count) {
      Number numbers[kPart];
      for (int64_t i = 0; i < count; ++i) {
        numbers[i] = pooled(in + (plane + i) * planes_.in_stride, plane + i < followed_);
        operation_.finish(nest_, Part{{plane + i}, 0, 1}, numbers + i);
      }
      store_row<T>(numbers, count, planes_.out_stride, out + plane * planes_.out_stride);
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);
  static constexpr int64_t kLanes = 16;
  using Vector = std::conditional_t<kIsMaximum, Singles, Doubles>;
  static constexpr int64_t kEach = sizeof(Vector) / sizeof(Number);
  static constexpr int64_t kVectors = kLanes / kEach;

  // 0, 1 and so on.
  static constexpr Vector first_lanes() {
#if defined(ANYDML_VECTORS)
    return []<int... kLane>(std::integer_sequence<int, kLane...>) {
      return Vector{static_cast<Number>(kLane)...};
    }(std::make_integer_sequence<int, static_cast<int>(kEach)>{});
#else
    return 0;
#endif
  }

  // Of a NaN and a number, the number, but for the first one.
  ANYDML_INLINE static Vector combined(Vector x, Vector all) {
    if constexpr (kIsMaximum) return lane_max<Number>(x, all);
    return all + x;
  }

  Number pooled(const std::byte* from, bool is_followed) const {
    if constexpr (!kIsMaximum) {
      if (operation_.p == 1) return pooled<1>(from, is_followed);
      if (operation_.p == 2) return pooled<2>(from, is_followed);
    }
    return pooled<0>(from, is_followed);
  }
  template <int kP>
  Number pooled(const std::byte* from, bool is_followed) const {
    constexpr Number kNone = kIsMaximum ? -std::numeric_limits<Number>::infinity() : 0;
    Vector all[kVectors];
    for (Vector& vector : all) vector = Vector{} + kNone;
    const auto number = [](const std::byte* at, int64_t v) {
      const auto x = load_numbers<T, Number, Vector>(at + v * kEach * kItem);
      if constexpr (kP != 0) return powers_of<kP>(x);
      return x;
    };
    const auto add = [&](const std::byte* at) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < kVectors; ++v) all[v] = combined(number(at, v), all[v]);
    };
    int64_t i = 0;
    for (; i + kLanes <= size_; i += kLanes) add(from + i * kItem);
    if (i < size_ && is_followed) {
      const Vector last = Vector{} + static_cast<Number>(size_ - i);
#pragma GCC unroll 16
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vector lane = first_lanes() + static_cast<Number>(v * kEach);
        all[v] = combined(lane < last ? number(from + i * kItem, v) : Vector{} + kNone, all[v]);
      }
    } else if (i < size_) {
      T last[kLanes];
      std::fill_n(last, kLanes, T(kNone));
      std::memcpy(last, from + i * kItem, static_cast<size_t>((size_ - i) * kItem));
      add(reinterpret_cast<const std::byte*>(last));
    }
#pragma GCC unroll 4
    for (int64_t half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
      for (int64_t v = 0; v < half; ++v) all[v] = combined(all[v + half], all[v]);
    }
    alignas(64) Number lanes[kEach];
    std::memcpy(lanes, all, sizeof(lanes));
#pragma GCC unroll 4
    for (int64_t half = kEach / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (int64_t j = 0; j < half; ++j) {
        if constexpr (kIsMaximum) {
          lanes[j] = lanes[j + half] > lanes[j] ? lanes[j + half] : lanes[j];
        } else {
          lanes[j] += lanes[j + half];
        }
      }
    }
    if (kIsMaximum && lanes[0] == kNone && !has_numbers(from)) {
      return std::numeric_limits<Number>::quiet_NaN();
    }
    return lanes[0];
  }

  bool has_numbers(const std::byte* from) const {
    for (int64_t i = 0; i < size_; ++i) {
      const auto x = widen<T, Number>(from + i * kItem);
      if (x == x) return true;
    }
    return false;
  }

  Nest nest_;
  Operation operation_;
  Sliding planes_;
  int64_t size_;
  int64_t followed_;  // planes with as many elements behind them as are read at once
};

}  // namespace
ANYDML_ISA_END
