// Pooling of planes whose rows are narrow: a row of each of several planes at a time, side by side with what
// padding there is between them, so that taps are combined along all of them at once. Numbers of each place
// are combined in the same order as row by row.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pooling/geometry.h"
#include "pooling/rows.h"
#include "pooling/windows.h"
#include "simd/strided_copy.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Places of a row up to which several planes are pooled at once.
constexpr int64_t kNarrow = 64;

// Elements of a row of a plane in the buffer, a multiple of the stride: from the first place's window to the
// last's.
inline int64_t pitch_of(const Sliding& row) {
  const int64_t extent = (row.places - 1) * row.stride + (row.taps - 1) * row.dilation + 1;
  return divided_up(extent, row.stride) * row.stride;
}

// How many planes are pooled at once; 0 where rows are pooled one by one.
inline int64_t planes_at_once(const Nest& nest) {
  const Sliding& row = nest.row.window;
  if (nest.outer.empty() || nest.outer[0].slides() || nest.outer[0].window.size < 2) return 0;
  if (row.places > kNarrow || std::min(row.taps, row.size) > 2 * row.places) return 0;
  const int64_t pitch = pitch_of(row);
  const int64_t behind = (row.taps - 1) * row.dilation;
  const int64_t most = std::min((kSpan - behind) / pitch, kPart / (pitch / row.stride));
  return most < 2 ? 0 : std::min(most, nest.outer[0].window.size);
}

template <class Operation>
class PlanesPlan final : public Plan {
 public:
  using T = typename Operation::Element;
  using Number = typename Operation::Number;
  using Combine = typename Operation::Combine;

  PlanesPlan(Nest nest, Operation operation, std::string description)
      : Plan(std::move(description)),
        nest_(std::move(nest)),
        operation_(operation),
        row_(nest_.row.window),
        pitch_(pitch_of(row_)),
        at_once_(planes_at_once(nest_)) {
    require(nest_.outer.size() <= kMostOuter, "dimensions of pooling");
    int64_t taps = std::min(row_.taps, row_.size);
    for (const Dimension& dimension : nest_.outer) {
      rows_.push_back({dimension.window.places, 0, dimension.window.out_stride});
      taps *= std::min(dimension.window.taps, dimension.window.size);
    }
    bytes_ = steps_of(rows_) * row_.places * std::min<int64_t>(taps, 64) * kItem;
    const Sliding& planes = nest_.outer[0].window;
    rows_[0] = {divided_up(planes.size, at_once_), 0, at_once_ * planes.out_stride};
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(rows_);
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    const Sliding& planes = nest_.outer[0].window;
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      Buffers buffers;
      // What is between rows is never written.
      std::fill_n(buffers.elements, kSpan, T(Combine::template kStart<Number>));
      for (LoopCursor cursor(rows_, number); number < end; ++number, cursor.advance()) {
        const int64_t plane = cursor.index(0) * at_once_;
        Part part{{}, 0, row_.places};
        for (size_t d = 1; d < std::min(rows_.size(), kMostOuter); ++d) part.place[d] = cursor.index(d);
        pool(part, std::min(at_once_, planes.size - plane), in + plane * planes.in_stride, out + cursor.out(),
             buffers);
      }
    });
  }

 private:
  static constexpr int64_t kItem = sizeof(T);

  struct Buffers {
    alignas(64) T elements[kSpan];
    alignas(64) Number span[kSpan];
    alignas(64) Number numbers[kPart];
    alignas(64) T results[kPart];
  };

  void pool(const Part& part, int64_t planes, const std::byte* in, std::byte* out, Buffers& buffers) const {
    const int64_t places = pitch_ / row_.stride;
    std::fill_n(buffers.numbers, planes * places, Combine::template kStart<Number>);
    add(1, part, planes, in, buffers);
    for (int64_t p = 0; p < planes; ++p) operation_.finish(nest_, part, buffers.numbers + p * places);
    auto* const results = reinterpret_cast<std::byte*>(buffers.results);
    store_row<T>(buffers.numbers, planes * places, kItem, results);
    for (int64_t p = 0; p < planes; ++p) {
      std::byte* const to = out + p * nest_.outer[0].window.out_stride;
      if constexpr (requires { operation_.are_certain(buffers.numbers, 0); }) {
        if (!operation_.are_certain(buffers.numbers + p * places, row_.places)) {
          Part own = part;
          own.place[0] = p;
          operation_.run(nest_, own, in, {to, nullptr});
          continue;
        }
      }
      const std::byte* const from = results + p * places * kItem;
      if (row_.out_stride == kItem) {
        copy_short(to, from, row_.places * kItem);
      } else {
        for (int64_t i = 0; i < row_.places; ++i) store(to + i * row_.out_stride, load<T>(from + i * kItem));
      }
    }
  }

  // Of what is under the windows' taps in the dimensions from the d-th one on.
  void add(size_t d, const Part& part, int64_t planes, const std::byte* from, Buffers& buffers) const {
    if (d == std::min(nest_.outer.size(), kMostOuter)) return add_rows(planes, from, buffers);
    const Sliding& window = nest_.outer[d].window;
    const auto [first, last] = window.inside(part.place[d]);
    int64_t element = window.origin(part.place[d]) + first * window.dilation;
    for (int64_t k = first; k < last; ++k, element += window.dilation) {
      add(d + 1, part, planes, from + element * window.in_stride, buffers);
    }
  }

  void add_rows(int64_t planes, const std::byte* from, Buffers& buffers) const {
    const int64_t count = std::min(row_.size, pitch_ - row_.start);
    if (count <= 0) return;
    for (int64_t p = 0; p < planes; ++p, from += nest_.outer[0].window.in_stride) {
      auto* const to = reinterpret_cast<std::byte*>(buffers.elements + p * pitch_ + row_.start);
      if (row_.in_stride == kItem) {
        copy_short(to, from, count * kItem);
      } else {
        for (int64_t i = 0; i < count; ++i) store(to + i * kItem, load<T>(from + i * row_.in_stride));
      }
    }
    const int64_t all = planes * pitch_ + (row_.taps - 1) * row_.dilation;
    load_row<T>(reinterpret_cast<const std::byte*>(buffers.elements), kItem, all, buffers.span);
    operation_.prepare(buffers.span, all);
    for (int64_t k = 0; k < row_.taps; ++k) {
      combine_places<Combine>(buffers.span + k * row_.dilation, row_.stride, planes * (pitch_ / row_.stride),
                              buffers.numbers);
    }
  }

  Nest nest_;
  Operation operation_;
  Sliding row_;
  int64_t pitch_;
  int64_t at_once_;
  std::vector<Loop> rows_;  // of places, around the rows, some planes at a time
  int64_t bytes_ = 0;
};

}  // namespace
ANYDML_ISA_END
