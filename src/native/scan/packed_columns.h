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
  using Tally = TallyOf<T>;

  static void scan(const Steps& steps, Tally* tallies, const Tally* before, Outlet& outlet) {
    PackedColumns columns(tallies, before);
    columns.scan_all(steps, outlet);
    std::copy_n(columns.tallies_, kColumns, tallies);
  }

 private:
  using V = Vector<Tally>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Tally);
  static constexpr int64_t kRow = kColumns * kSize;

  PackedColumns(const Tally* tallies, const Tally* before) {
    std::copy_n(tallies, kColumns, tallies_);
    if constexpr (kCarried) std::copy_n(before, kColumns, before_);
  }

  void scan_all(const Steps& steps, Outlet& outlet) {
    if (steps.out_step < 0) return scan_some<true, Way::kStored>(steps, outlet);
    if constexpr (kShifts && kOutput != Output::kNone) {
      if (outlet.way(steps.out, kRow) != Way::kStored) {
        return scan_some<false, Way::kShifted>(steps, outlet);
      }
    }
    scan_some<false, Way::kStored>(steps, outlet);
  }

  // What does not make a group is filled up with the identity, beside.
  template <bool kDown, Way kWay>
  void scan_some(const Steps& steps, Outlet& outlet) {
    constexpr int64_t kGroup = RowGroup<Tally, kColumns, kDown>::kRows;
    const int64_t whole = steps.rows / kGroup * kGroup;
    if (whole > 0) scan_groups<kDown, kWay>(steps.part(0, whole), outlet);
    if (whole == steps.rows) return;
    const Steps rest = steps.part(whole, steps.rows);
    const int64_t size = rest.rows * kRow;
    constexpr int64_t kBytes = kGroup * kRow;
    std::byte group[kBytes];
    for (int64_t i = 0; i < kBytes; i += kSize) narrow<T, Tally>(group + i, Operation::kIdentity);
    std::byte* const rows = group + (kDown ? kBytes - size : 0);
    std::byte* const first = group + (kDown ? kBytes - kRow : 0);
    std::byte* const out = lowest_of<kDown>(rest);
    std::memcpy(rows, rest.in + (out - rest.out), static_cast<size_t>(size));
    scan_groups<kDown, Way::kStored>({kGroup, first, rest.in_step, first, rest.out_step}, outlet);
    if (kOutput != Output::kNone) put_bytes<kWay, kDown>(outlet, out, rows, size);
  }

  // With p what a pair's rows come to among themselves,
  //   p = (x(i), x(i) o x(i + 1)),   y = (L, L) o p,   L' = L o p(i + 1).
  template <bool kDown, Way kWay>
  ANYDML_APART void scan_groups(const Steps& steps, Outlet& outlet) {
    using Group = RowGroup<Tally, kColumns, kDown>;
    constexpr int kVectors = Group::kVectors;
    constexpr int64_t kBytes = Group::kRows * kRow;
    constexpr int64_t kStep = kDown ? -kBytes : kBytes;
    V tallies[Group::kPairs + 1];
    V& tally = tallies[Group::kPairs];
    tally = load_vector<V>(reinterpret_cast<const std::byte*>(tallies_));
    V before[kVectors];
    if constexpr (kCarried) {
      std::fill_n(tallies, Group::kPairs, load_vector<V>(reinterpret_cast<const std::byte*>(before_)));
      for_each_index<kVectors>([&]<int k> { before[k] = Group::template spread<k>(tallies); });
    }
    Sink<kWay, kDown> outputs(outlet);
    outputs.begin(lowest_of<kDown>(steps), steps.rows * kRow);
    const std::byte* from = steps.in - (kDown ? kBytes - kRow : 0);
    std::byte* to = steps.out - (kDown ? kBytes - kRow : 0);
    for (int64_t i = 0; i < steps.rows; i += Group::kRows, from += kStep, to += kStep) {
      V x[kVectors];
      V first[kVectors];
      V p[kVectors];
      if constexpr (kWay != Way::kStored) {
        for (int64_t at = 0; at < kBytes; at += kLine) prefetch_line(ahead_of(from, kDown) + at);
      }
      for_each_index<kVectors>([&]<int k> { x[k] = load_wide<T, Tally>(from + k * kPiece); });
      for_each_index<kVectors>([&]<int k> {
        first[k] = Group::template first_rows<k>(x);
        p[k] = Group::template either<k>(x[k], Operation::combine(first[k], x[k]));
      });
      tallies[0] = tally;
      for_each_index<Group::kPairs>(
          [&]<int k> { tallies[k + 1] = Operation::combine(tallies[k], Group::template second_row<k>(p)); });
      if constexpr (kOutput == Output::kNone) continue;
      for_each_index<kVectors>([&]<int k> {
        const V until = Group::template spread<k>(tallies);
        V y = Operation::combine(until, kOutput == Output::kExclusive ? first[k] : p[k]);
        if constexpr (kOutput == Output::kExclusive) y = Group::template either<k>(until, y);
        if constexpr (kCarried) y = Operation::combine(before[k], y);
        put_first(outputs, to + k * kPiece, narrow_row<T, Piece>(y));
      });
    }
    store_vector(reinterpret_cast<std::byte*>(tallies_), tally);
  }

  // Where rows lie lowest.
  template <bool kDown>
  static std::byte* lowest_of(const Steps& steps) {
    return steps.out - (kDown ? (steps.rows - 1) * kRow : 0);
  }

  // What is beyond the columns, no output is made of.
  Tally tallies_[kLanes] = {};
  Tally before_[kLanes] = {};
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
