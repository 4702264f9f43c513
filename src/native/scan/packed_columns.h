// Scans of a few columns of floats whose rows lie one behind the other, in as many pairs of rows,
//   L(i + 1) = L(i - 1) o (x(i) o x(i + 1)),
// as fill whole vectors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/row_groups.h"
#include "scan/row_range.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, class Operation, Output kOutput, int kColumns, bool kCarried>
class PackedColumns {
 public:
  using Accumulator = AccumulatorOf<T>;

  static void scan(const RowRange& steps, Accumulator* accumulators, const Accumulator* before,
                   PendingStore& pending) {
    PackedColumns columns(accumulators, before);
    columns.scan_all(steps, pending);
    std::copy_n(columns.tallies_, kColumns, accumulators);
  }

 private:
  using V = Vector<Accumulator>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int64_t kRow = kColumns * kSize;

  PackedColumns(const Accumulator* accumulators, const Accumulator* before) {
    std::copy_n(accumulators, kColumns, tallies_);
    if constexpr (kCarried) std::copy_n(before, kColumns, before_);
  }

  void scan_all(const RowRange& steps, PendingStore& pending) {
    if (steps.out_step < 0) return scan_some<true, StoreMode::kCached>(steps, pending);
    if constexpr (kShifts && kOutput != Output::kNone) {
      if (pending.store_mode(steps.out, kRow) != StoreMode::kCached) {
        return scan_some<false, StoreMode::kRealigned>(steps, pending);
      }
    }
    scan_some<false, StoreMode::kCached>(steps, pending);
  }

  // What does not make a group is filled up with the identity, beside.
  template <bool kDown, StoreMode kMode>
  void scan_some(const RowRange& steps, PendingStore& pending) {
    constexpr int64_t kGroup = RowGroup<Accumulator, kColumns, kDown>::kRows;
    const int64_t whole = steps.rows / kGroup * kGroup;
    if (whole > 0) scan_groups<kDown, kMode>(steps.part(0, whole), pending);
    if (whole == steps.rows) return;
    const RowRange rest = steps.part(whole, steps.rows);
    const int64_t size = rest.rows * kRow;
    constexpr int64_t kBytes = kGroup * kRow;
    std::byte group[kBytes];
    for (int64_t i = 0; i < kBytes; i += kSize) narrow<T, Accumulator>(group + i, Operation::kIdentity);
    std::byte* const rows = group + (kDown ? kBytes - size : 0);
    std::byte* const first = group + (kDown ? kBytes - kRow : 0);
    std::byte* const out = lowest_of<kDown>(rest);
    std::memcpy(rows, rest.in + (out - rest.out), static_cast<size_t>(size));
    scan_groups<kDown, StoreMode::kCached>({kGroup, first, rest.in_step, first, rest.out_step}, pending);
    if (kOutput != Output::kNone) put_bytes<kMode, kDown>(pending, out, rows, size);
  }

  // With p what a pair's rows come to among themselves,
  //   p = (x(i), x(i) o x(i + 1)),   y = (L, L) o p,   L' = L o p(i + 1).
  template <bool kDown, StoreMode kMode>
  ANYDML_NOINLINE void scan_groups(const RowRange& steps, PendingStore& pending) {
    using Group = RowGroup<Accumulator, kColumns, kDown>;
    constexpr int kVectors = Group::kVectors;
    constexpr int64_t kBytes = Group::kRows * kRow;
    constexpr int64_t kStep = kDown ? -kBytes : kBytes;
    V accumulators[Group::kPairs + 1];
    V& accumulator = accumulators[Group::kPairs];
    accumulator = load_vector<V>(reinterpret_cast<const std::byte*>(tallies_));
    V before[kVectors];
    if constexpr (kCarried) {
      std::fill_n(accumulators, Group::kPairs, load_vector<V>(reinterpret_cast<const std::byte*>(before_)));
      for_each_index<kVectors>([&]<int k> { before[k] = Group::template broadcast_lane<k>(accumulators); });
    }
    RealigningStore<kMode, kDown> outputs(pending);
    outputs.begin(lowest_of<kDown>(steps), steps.rows * kRow);
    const std::byte* from = steps.in - (kDown ? kBytes - kRow : 0);
    std::byte* to = steps.out - (kDown ? kBytes - kRow : 0);
    for (int64_t i = 0; i < steps.rows; i += Group::kRows, from += kStep, to += kStep) {
      V x[kVectors];
      V first[kVectors];
      V p[kVectors];
      if constexpr (kMode != StoreMode::kCached) {
        for (int64_t at = 0; at < kBytes; at += kLine) prefetch_line(prefetch_address(from, kDown) + at);
      }
      for_each_index<kVectors>([&]<int k> { x[k] = load_wide<T, Accumulator>(from + k * kPiece); });
      for_each_index<kVectors>([&]<int k> {
        first[k] = Group::template first_rows<k>(x);
        p[k] = Group::template blend<k>(x[k], Operation::combine(first[k], x[k]));
      });
      accumulators[0] = accumulator;
      for_each_index<Group::kPairs>([&]<int k> {
        accumulators[k + 1] = Operation::combine(accumulators[k], Group::template second_row<k>(p));
      });
      if constexpr (kOutput == Output::kNone) continue;
      for_each_index<kVectors>([&]<int k> {
        const V until = Group::template broadcast_lane<k>(accumulators);
        V y = Operation::combine(until, kOutput == Output::kExclusive ? first[k] : p[k]);
        if constexpr (kOutput == Output::kExclusive) y = Group::template blend<k>(until, y);
        if constexpr (kCarried) y = Operation::combine(before[k], y);
        put_first(outputs, to + k * kPiece, narrow_row<T, Piece>(y));
      });
    }
    store_vector(reinterpret_cast<std::byte*>(tallies_), accumulator);
  }

  // Where rows lie lowest.
  template <bool kDown>
  static std::byte* lowest_of(const RowRange& steps) {
    return steps.out - (kDown ? (steps.rows - 1) * kRow : 0);
  }

  // What is beyond the columns, no output is made of.
  Accumulator tallies_[kLanes] = {};
  Accumulator before_[kLanes] = {};
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
