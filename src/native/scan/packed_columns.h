// Prefix scans of a few columns of floats whose rows are packed, one behind the other: pairs of rows,
//   L(i + 1) = L(i - 1) o (x(i) o x(i + 1)),
// are scanned together in groups of as many rows as fill whole vectors.
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

template <class T, class Operation, int kColumns>
class PackedColumns {
 public:
  using Accumulator = AccumulatorOf<T>;

  // `before` is the prefix of the blocks before, or null.
  static void scan(const RowRange& range, Accumulator* accumulators, const Accumulator* before,
                   bool exclusive, RealigningBuffer& buffer) {
    PackedColumns columns(accumulators, before, exclusive);
    columns.scan_all(range, buffer);
    std::copy_n(columns.accumulators_, kColumns, accumulators);
  }

 private:
  using V = Vector<Accumulator>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int64_t kRow = kColumns * kSize;

  PackedColumns(const Accumulator* accumulators, const Accumulator* before, bool exclusive)
      : exclusive_(exclusive) {
    std::copy_n(accumulators, kColumns, accumulators_);
    std::fill_n(before_, kLanes, kNeutral<Accumulator, Operation>);
    if (before != nullptr) std::copy_n(before, kColumns, before_);
  }

  void scan_all(const RowRange& range, RealigningBuffer& buffer) {
    if (range.out_step < 0) return scan_some<true, StoreMode::kCached>(range, buffer);
    if constexpr (kRealigns) {
      if (buffer.mode_for(range.out, kRow) != StoreMode::kCached) {
        return scan_some<false, StoreMode::kRealigned>(range, buffer);
      }
    }
    scan_some<false, StoreMode::kCached>(range, buffer);
  }

  // Scans whole groups, and what is left in a group of its own, which is filled up with the identity.
  template <bool kDown, StoreMode kStoreMode>
  void scan_some(const RowRange& range, RealigningBuffer& buffer) {
    constexpr int64_t kGroup = RowGroup<Accumulator, kColumns, kDown>::kRows;
    const int64_t whole = range.rows / kGroup * kGroup;
    if (whole > 0) scan_groups<kDown, kStoreMode>(range.part(0, whole), buffer);
    if (whole == range.rows) return;
    const RowRange rest = range.part(whole, range.rows);
    const int64_t size = rest.rows * kRow;
    constexpr int64_t kBytes = kGroup * kRow;
    std::byte group[kBytes];
    fill_identity(group, kBytes);
    std::byte* const rows = group + (kDown ? kBytes - size : 0);
    std::byte* const first = group + (kDown ? kBytes - kRow : 0);
    std::byte* const out = lowest_of<kDown>(rest);
    std::memcpy(rows, rest.in + (out - rest.out), static_cast<size_t>(size));
    scan_groups<kDown, StoreMode::kCached>({kGroup, first, rest.in_step, first, rest.out_step}, buffer);
    put_bytes<kStoreMode, kDown>(buffer, out, rows, size);
  }

  ANYDML_NOINLINE static void fill_identity(std::byte* to, int64_t size) {
    for (int64_t i = 0; i < size; i += kSize) narrow<T, Accumulator>(to + i, Operation::kIdentity);
  }

  // Scans groups of rows. With p the scan of a pair's rows by themselves,
  //   p = (x(i), x(i) o x(i + 1)),   y = (L, L) o p,   L' = L o p(i + 1);
  // exclusive, y = (L, L) o (neutral, x(i)).
  template <bool kDown, StoreMode kStoreMode>
  ANYDML_NOINLINE void scan_groups(const RowRange& range, RealigningBuffer& buffer) {
    using Group = RowGroup<Accumulator, kColumns, kDown>;
    constexpr int kVectors = Group::kVectors;
    constexpr int64_t kBytes = Group::kRows * kRow;
    constexpr int64_t kStep = kDown ? -kBytes : kBytes;
    V accumulators[Group::kPairs + 1];
    V& accumulator = accumulators[Group::kPairs];
    accumulator = load_vector<V>(reinterpret_cast<const std::byte*>(accumulators_));
    V before[kVectors];
    if constexpr (kIsOrderSensitive<T, Operation>) {
      std::fill_n(accumulators, Group::kPairs, load_vector<V>(reinterpret_cast<const std::byte*>(before_)));
      for_each_index<kVectors>([&]<int k> { before[k] = Group::template distribute<k>(accumulators); });
    }
    RealigningStore<kStoreMode, kDown> outputs(buffer);
    outputs.begin(lowest_of<kDown>(range), range.rows * kRow);
    const std::byte* from = range.in - (kDown ? kBytes - kRow : 0);
    std::byte* to = range.out - (kDown ? kBytes - kRow : 0);
    for (int64_t i = 0; i < range.rows; i += Group::kRows, from += kStep, to += kStep) {
      V x[kVectors];
      V first[kVectors];
      V p[kVectors];
      if constexpr (kStoreMode != StoreMode::kCached) {
        for (int64_t at = 0; at < kBytes; at += kLine) prefetch_line(prefetch_address(from, kDown) + at);
      }
      for_each_index<kVectors>([&]<int k> { x[k] = load_wide<T, Accumulator>(from + k * kGranule); });
      for_each_index<kVectors>([&]<int k> {
        first[k] = Group::template first_rows<k>(x);
        p[k] = Group::template blend<k>(x[k], Operation::combine(first[k], x[k]));
      });
      accumulators[0] = accumulator;
      for_each_index<Group::kPairs>([&]<int k> {
        accumulators[k + 1] = Operation::combine(accumulators[k], Group::template second_row<k>(p));
      });
      if (exclusive_) {
        const V neutral = broadcast(Accumulator{1}) * kNeutral<Accumulator, Operation>;  // whose sign stays
        for_each_index<kVectors>([&]<int k> { p[k] = Group::template blend<k>(neutral, first[k]); });
      }
      for_each_index<kVectors>([&]<int k> {
        V y = Operation::combine(Group::template distribute<k>(accumulators), p[k]);
        if constexpr (kIsOrderSensitive<T, Operation>) y = Operation::combine(before[k], y);
        put_first(outputs, to + k * kGranule, narrow_row<T, Granule>(y));
      });
    }
    store_vector(reinterpret_cast<std::byte*>(accumulators_), accumulator);
  }

  // The lowest address of the rows.
  template <bool kDown>
  static std::byte* lowest_of(const RowRange& range) {
    return range.out - (kDown ? (range.rows - 1) * kRow : 0);
  }

  // No output depends on the lanes beyond the columns.
  Accumulator accumulators_[kLanes] = {};
  Accumulator before_[kLanes];
  bool exclusive_;
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
