// Pooling of rows by separable windows: what is pooled at once, in which order, and where it is put.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "core/layout.h"
#include "movement/copy.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "pooling/geometry.h"
#include "pooling/separable_maxima.h"
#include "pooling/separable_windows.h"
#include "simd/strided_copy.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Whether indices are found with the numbers.
template <class Operation>
constexpr bool has_indices_of() {
  if constexpr (requires { Operation::kWithIndices; }) return Operation::kWithIndices;
  return false;
}

template <class Operation>
class SeparablePlan final : public Plan {
 public:
  SeparablePlan(Nest nest, Operation operation, std::string description, bool is_of_channels)
      : Plan(std::move(description)),
        operation_(operation),
        pooled_(rows_of(std::move(nest), operation, is_of_channels)) {
    int64_t taps = std::min(row().taps, row().size);
    for (const Dimension& dimension : pooled_.nest().outer) {
      rows_.push_back({dimension.window.places, dimension.other, dimension.window.out_stride});
      taps *= std::min(dimension.window.taps, dimension.window.size);
      order_.push_back(order_.size());
    }
    bytes_ = steps_of(rows_) * row().places * std::min<int64_t>(taps, 64) * kItem;
    const Dimension& planes = pooled_.nest().outer[0];
    const int64_t at_once = pooled_.at_once();
    rows_[0] = {divided_up(planes.window.size, at_once), at_once * planes.other,
                at_once * planes.window.out_stride};
    // One image after the other.
    if (is_of_channels && rows_.size() > 2) {
      std::swap(rows_[0], rows_[1]);
      std::swap(order_[0], order_[1]);
    }
    const auto at = std::min<std::ptrdiff_t>(2, std::ssize(rows_) - 1);
    of_parts_ = static_cast<size_t>(at);
    rows_.insert(rows_.begin() + at, {divided_up(row().places, pooled_.places_at_once()),
                                      pooled_.places_at_once() * pooled_.nest().row.other,
                                      pooled_.places_at_once() * row().out_stride});
    order_.insert(order_.begin() + at, kMostOuter);
  }

  void run(const void* const* inputs, void* const* outputs) const override {
    const auto* const in = static_cast<const std::byte*>(inputs[0]);
    auto* const out = static_cast<std::byte*>(outputs[0]);
    auto* const indices = kHasIndices ? static_cast<std::byte*>(outputs[1]) : nullptr;
    const int threads = threads_for(bytes_);
    const int64_t parts = steps_of(rows_);
    const int64_t calls = std::min(calls_for(bytes_, threads), parts);
    const Sliding& planes = nest().outer[0].window;
    parallel_for(calls, threads, [&](int64_t call) {
      int64_t number = share_begin(call, calls, parts);
      const int64_t end = share_begin(call + 1, calls, parts);
      Buffers buffers(pooled_);
      for (LoopCursor cursor(rows_, number); number < end; ++number, cursor.advance()) {
        const int64_t first = cursor.index(of_parts_) * pooled_.places_at_once();
        Part part{{}, first, std::min(pooled_.places_at_once(), row().places - first)};
        for (size_t d = 0; d < rows_.size(); ++d) {
          if (order_[d] < kMostOuter) part.place[order_[d]] = cursor.index(d);
        }
        const int64_t plane = part.place[0] *= pooled_.at_once();
        const int64_t count = std::min(pooled_.at_once(), planes.size - plane);
        pooled_.pool(part, count, in + plane * planes.in_stride, buffers);
        put(part, count, in, out + cursor.out(), kHasIndices ? indices + cursor.in() : nullptr, buffers);
      }
    });
  }

 private:
  static constexpr bool kHasIndices = has_indices_of<Operation>();
  using Rows = std::conditional_t<kHasIndices, SeparableMaxima<typename Operation::Element>,
                                  SeparableWindows<Operation>>;
  using Buffers = typename Rows::Buffers;
  using T = typename Rows::T;
  using Number = typename Rows::Number;
  static constexpr int64_t kItem = Rows::kItem;

  static Rows rows_of(Nest nest, Operation operation, bool is_of_channels) {
    if constexpr (kHasIndices) {
      return Rows(std::move(nest), is_of_channels);
    } else {
      return Rows(std::move(nest), operation, is_of_channels);
    }
  }

  const Nest& nest() const { return pooled_.nest(); }
  const Sliding& row() const { return nest().row.window; }

  // The results of some planes, from the part's one on: `in` is where the tensor lies.
  void put(const Part& part, int64_t planes, const std::byte* in, std::byte* out, std::byte* indices,
           Buffers& buffers) const {
    const Sliding& row = nest().row.window;
    const Dimension& each = nest().outer[0];
    const std::byte* const results = pooled_.round(part, planes, buffers);
    // Runs of neighbours: the channels of a place, or the places of a plane.
    const int64_t places = part.size;
    const bool has_channels = pooled_.is_of_channels();
    const Runs runs =
        has_channels
            ? Runs{places,         planes,     pooled_.place_step(), each.window.out_stride,
                   row.out_stride, each.other, nest().row.other}
            : Runs{planes,           places,    pooled_.plane_step(), row.out_stride, each.window.out_stride,
                   nest().row.other, each.other};
    if (runs.is_packed(kItem)) {
      std::memcpy(out, results, static_cast<size_t>(runs.count * runs.size * kItem));
    } else {
      for (int64_t r = 0; r < runs.count; ++r) {
        std::byte* const to = out + r * runs.out_step;
        const std::byte* const from = results + r * runs.step * kItem;
        if (runs.out_each == kItem) {
          copy_short(to, from, runs.size * kItem);
        } else {
          for (int64_t i = 0; i < runs.size; ++i) store(to + i * runs.out_each, load<T>(from + i * kItem));
        }
      }
    }
    if constexpr (kHasIndices) {
      const int64_t step = row.stride * nest().row.index_step;
      const int64_t first = origin_index(part);
      for (int64_t r = 0; r < runs.count; ++r) {
        operation_.put_indices(buffers.where.data() + r * runs.step, runs.size,
                               first + r * (has_channels ? step : each.index_step),
                               has_channels ? each.index_step : step, runs.other_each,
                               indices + r * runs.other_step);
      }
    }
    if constexpr (requires { operation_.are_certain(buffers.numbers.data(), 0); }) {
      bool are_certain = true;
      for (int64_t r = 0; r < runs.count; ++r) {
        are_certain &= operation_.are_certain(buffers.numbers.data() + r * runs.step, runs.size);
      }
      for (int64_t p = 0; !are_certain && p < planes; ++p) {
        Part own = part;
        own.place[0] += p;
        operation_.run(
            nest(), own, in,
            {out + p * each.window.out_stride, indices == nullptr ? nullptr : indices + p * each.other});
      }
    }
  }

  // Of numbers that lie side by side: their steps in the buffer, in the output, and in the indices.
  struct Runs {
    int64_t count;
    int64_t size;
    int64_t step;
    int64_t out_each;
    int64_t out_step;
    int64_t other_each;
    int64_t other_step;

    bool is_packed(int64_t item) const { return step == size && out_each == item && out_step == size * item; }
  };

  // What indices count up to the origin of a part's first window.
  int64_t origin_index(const Part& part) const {
    int64_t index = row().origin(part.first) * nest().row.index_step;
    for (size_t d = 0; d < std::min(nest().outer.size(), kMostOuter); ++d) {
      const Dimension& dimension = nest().outer[d];
      index += dimension.window.origin(part.place[d]) * dimension.index_step;
    }
    return index;
  }

  Operation operation_;
  Rows pooled_;
  // Of places, around the rows, some planes at a time: steps in indices, and in the output.
  std::vector<Loop> rows_;
  std::vector<size_t> order_;  // of which dimensions they are
  size_t of_parts_ = 0;        // the loop along the row
  int64_t bytes_ = 0;
};

}  // namespace
ANYDML_ISA_END
