// Running sums of columns: a box filter's vertical pass, carried on from one row of outputs to the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "platform/isa.h"
#include "quantized_pooling/geometry.h"
#include "quantized_pooling/lanes.h"
#include "quantized_pooling/tuning.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

using RowPointers = std::span<const std::byte* const>;

// Adds rows of bytes to sums of columns and subtracts others. The sums wrap: only a window's has to fit.
template <class Sum>
class ColumnSums {
 public:
  // sums[x] = (keep ? sums[x] : 0) + (bytes added at x) - (bytes removed at x)
  static void update(Sum* sums, int64_t columns, int64_t step, uint8_t flip, RowPointers added,
                     RowPointers removed, bool keep) {
    if (step != 1 || columns < kLanes) {
      return update_strided(sums, columns, step, flip, added, removed, keep);
    }
    // Counts known to the compiler leave no inner loop.
    if (!keep && added.size() == 1) return update_packed<1, 0>(sums, columns, flip, added, removed, keep);
    if (!keep && added.size() == 2) return update_packed<2, 0>(sums, columns, flip, added, removed, keep);
    if (!keep && added.size() == 3) return update_packed<3, 0>(sums, columns, flip, added, removed, keep);
    if (keep && added.size() == 1 && removed.size() == 1) {
      return update_packed<1, 1>(sums, columns, flip, added, removed, keep);
    }
    if (keep && added.size() == 3 && removed.size() == 3) {
      return update_packed<3, 3>(sums, columns, flip, added, removed, keep);
    }
    update_packed<-1, -1>(sums, columns, flip, added, removed, keep);
  }

 private:
  static constexpr int64_t kLanes = 8;
  using Sums = Vector<Sum, kLanes>;
  using Bytes = Vector<uint8_t, kLanes>;

  static void update_strided(Sum* sums, int64_t columns, int64_t step, uint8_t flip, RowPointers added,
                             RowPointers removed, bool keep) {
    if (!keep) std::fill_n(sums, columns, Sum{0});
    const auto byte = [=](const std::byte* row, int64_t x) {
      return static_cast<Sum>(load<uint8_t>(row + x * step) ^ flip);
    };
    for (const std::byte* row : added) {
      for (int64_t x = 0; x < columns; ++x) sums[x] = static_cast<Sum>(sums[x] + byte(row, x));
    }
    for (const std::byte* row : removed) {
      for (int64_t x = 0; x < columns; ++x) sums[x] = static_cast<Sum>(sums[x] - byte(row, x));
    }
  }

  // Takes as many rows as kAdded and kRemoved say, or, where that is -1, as there are.
  template <int kAdded, int kRemoved>
  static void update_packed(Sum* sums, int64_t columns, uint8_t flip, RowPointers added, RowPointers removed,
                            bool keep) {
    const size_t added_count = kAdded < 0 ? added.size() : kAdded;
    const size_t removed_count = kRemoved < 0 ? removed.size() : kRemoved;
    const std::byte* const* plus = added.data();
    const std::byte* const* minus = removed.data();
    const Bytes flips = broadcast_to<Bytes>(flip);
    const auto updated = [=](Sums sum, int64_t x) {
      for (size_t i = 0; i < added_count; ++i) sum += convert<Sums>(load_vector<Bytes>(plus[i] + x) ^ flips);
      for (size_t i = 0; i < removed_count; ++i) {
        sum -= convert<Sums>(load_vector<Bytes>(minus[i] + x) ^ flips);
      }
      return sum;
    };
    const auto before = [=](int64_t x) { return keep ? load_vector<Sums>(sums + x) : Sums{}; };
    // The last block may overlap the one before it, and so takes the old sums first.
    const int64_t last = columns - kLanes;
    const Sums old = before(last);
    for (int64_t x = 0; x < last; x += kLanes) store_vector(sums + x, updated(before(x), x));
    store_vector(sums + last, updated(old, last));
  }
};

// The sums of columns over the slices and rows of a window. Rows whose windows' rows are on the same grid
// follow each other, so that sums are carried on: rows that enter are added, rows that leave subtracted.
template <class Sum>
class RunningColumns {
 public:
  explicit RunningColumns(const Geometry& geometry) : geometry_(&geometry) {
    const auto& [depth, height, width] = geometry.windows;
    const int64_t rows =
        std::min<int64_t>(std::min(depth.size, kMostRowsAtOnce) * height.size, kMostRowsAtOnce);
    added_.resize(static_cast<size_t>(rows));
    removed_.resize(added_.size());
  }

  // Rows of outputs so far apart have their windows' rows on the same grid.
  static int64_t grid(const Window& height) {
    return height.dilation / std::gcd(height.stride, height.dilation);
  }

  // Brings sums over the rows of `before` to those of `now`, of columns from `in` on; `before` without taps
  // inside means that there are none yet.
  void move(Sum* sums, int64_t columns, const std::byte* in, const Taps& depth, const Taps& before,
            const Taps& now) {
    const Window& height = geometry_->windows[1];
    const int64_t previous_end = before.first + before.inside * height.dilation;
    const int64_t shared = before.inside > 0 && now.inside > 0 && now.first < previous_end
                               ? std::min((previous_end - now.first) / height.dilation, now.inside)
                               : 0;
    const int64_t added = now.inside - shared;
    const int64_t removed = before.inside - shared;
    if (added + removed + 1 >= now.inside) {
      update(sums, columns, in, depth, {now.start, now.inside}, {}, false);
    } else {
      update(sums, columns, in, depth, {now.start + shared * height.tap_step, added}, {before.start, removed},
             true);
    }
  }

 private:
  // `count` rows of every slice, from `start` on.
  struct Rows {
    int64_t start = 0;
    int64_t count = 0;
  };

  // Rows are taken as many at a time as there are pointers for.
  void update(Sum* sums, int64_t columns, const std::byte* in, const Taps& depth, const Rows& added,
              const Rows& removed, bool keep) {
    const Window& width = geometry_->windows[2];
    const int64_t plus = depth.inside * added.count, minus = depth.inside * removed.count;
    if (!keep && plus == 0) return std::fill_n(sums, columns, Sum{0}), void();
    const auto most = static_cast<int64_t>(added_.size());
    for (int64_t first = 0; first < std::max(plus, minus); first += most, keep = true) {
      ColumnSums<Sum>::update(sums, columns, width.in_stride, geometry_->in.flip(),
                              pointers(in, depth, added, first, std::min(first + most, plus), added_),
                              pointers(in, depth, removed, first, std::min(first + most, minus), removed_),
                              keep);
    }
  }

  // The rows [first, last) of all slices', numbered slice by slice.
  RowPointers pointers(const std::byte* in, const Taps& depth, const Rows& rows, int64_t first, int64_t last,
                       std::vector<const std::byte*>& pointers) {
    const auto& [d, h, w] = geometry_->windows;
    size_t used = 0;
    if (first >= last) return {};
    int64_t slice = first / rows.count, row = first % rows.count;
    for (int64_t i = first; i < last; ++i) {
      pointers[used++] = in + depth.start + slice * d.tap_step + rows.start + row * h.tap_step;
      if (++row == rows.count) row = 0, ++slice;
    }
    return {pointers.data(), used};
  }

  const Geometry* geometry_;
  std::vector<const std::byte*> added_, removed_;
};

}  // namespace
ANYDML_ISA_END
