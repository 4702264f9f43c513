// Prefix scans of packed rows of adjacent columns, whose outputs are stored from registers as one stream of
// non-temporal stores, across the ends of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/row_range.h"
#include "scan/tuning.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// Calls body with the number of vectors that `width` columns fill as a constant, where their accumulators fit
// the registers; returns whether they do.
template <int64_t kLanes, class Body>
bool on_few_vectors(int64_t width, const Body& body) {
  const int64_t count = (width + kLanes - 1) / kLanes;
  return [&]<int... kCount>(std::integer_sequence<int, kCount...>) {
    return ((count == kCount + 1 && (body(std::integral_constant<int, kCount + 1>{}), true)) || ...);
  }(std::make_integer_sequence<int, tuning::kRegisterVectors>{});
}

// kCarried: with a prefix of the blocks before. (One kernel that chooses between inclusive and exclusive
// outputs by a mask takes half the code, but up to 1.2 times the time: 2026-11-24, AMD EPYC of Zen 5, 16
// columns of float16 products.)
template <class T, class Operation, bool kExclusive, bool kCarried>
class StreamedColumns {
 public:
  using Accumulator = AccumulatorOf<T>;

  // Scans the rows; returns false, and does nothing, where the address of the output allows no stream.
  static bool scan(const RowRange& range, int64_t width, Accumulator* accumulators, const Accumulator* before,
                   RealigningBuffer& buffer) {
    switch (buffer.mode_for(range.out, range.out_step)) {
      case StoreMode::kCached:
        return false;
      case StoreMode::kNonTemporal:
        stream_packed<StoreMode::kNonTemporal>(range, width, accumulators, before, buffer);
        return true;
      case StoreMode::kRealigned:
        if constexpr (kRealigns) {
          stream_packed<StoreMode::kRealigned>(range, width, accumulators, before, buffer);
        }
        return kRealigns;
    }
    return false;
  }

 private:
  using V = Vector<Accumulator>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);

  template <StoreMode kStoreMode>
  static void stream_packed(const RowRange& range, int64_t width, Accumulator* accumulators,
                            const Accumulator* before, RealigningBuffer& buffer) {
    const int64_t begun = begins_at_shared_granule<kStoreMode>(range, buffer) ? 1 : 0;
    // Outputs that are aligned share no granule.
    if constexpr (kStoreMode == StoreMode::kRealigned) {
      stream_many<kStoreMode, true>(range.part(0, begun), width, accumulators, before, buffer);
    }
    const RowRange rest = range.part(begun, range.rows);
    if (!on_few_vectors<kLanes>(width, [&]<int kVectors>(std::integral_constant<int, kVectors>) {
          stream_vectors<kVectors, kStoreMode>(rest, width, accumulators, before, buffer);
        })) {
      stream_many<kStoreMode, false>(rest, width, accumulators, before, buffer);
    }
  }

  // Whether the first row begins in a granule with bytes that are not its own. The rows after it do not.
  template <StoreMode kStoreMode>
  static bool begins_at_shared_granule(const RowRange& range, RealigningBuffer& buffer) {
    RealigningStore<kStoreMode, false> outputs(buffer);
    outputs.begin(range.out, range.rows * range.out_step);
    return outputs.at_shared_granule();
  }

  // The lanes of a row's last vector that the vector before it does not have.
  struct RowEnd {
    explicit RowEnd(int64_t width)
        : size((width - 1) % kLanes * kSize + kSize), own(kGranule - (size - 1) % kGranule - 1) {}

    int64_t size;  // bytes
    ByteRealigner own;
  };

  // kFirst: the granule may have bytes that are not the row's own.
  template <bool kFirst, class Outputs>
  ANYDML_INLINE static void put_whole(Outputs& outputs, Granule granule) {
    if constexpr (kFirst) {
      outputs.put_part(nullptr, granule, kGranule);
    } else {
      outputs.put_granule(nullptr, granule);
    }
  }
  template <bool kFirst, class Outputs>
  ANYDML_INLINE static void put_all(Outputs& outputs, V y) {
    for (const Granule granule : granules_of<T, false>(y)) put_whole<kFirst>(outputs, granule);
  }
  template <bool kFirst, class Outputs>
  ANYDML_INLINE static void put_end(Outputs& outputs, V y, const RowEnd& end) {
    const auto granules = granules_of<T, false>(y);
    int64_t size = end.size;
    if (size > kGranule) {
      put_whole<kFirst>(outputs, end.own.of(granules.front(), granules.back()));
      size -= kGranule;
    }
    const Granule last = end.own.of(granules.back(), granules.back());
    if (size == kGranule) {
      put_whole<kFirst>(outputs, last);
    } else {
      outputs.put_part(nullptr, last, size);
    }
  }

  // The distance of the packed row that is read kPrefetchDistance bytes after another one.
  static int64_t row_ahead(const RowRange& range, int64_t width) {
    return kPrefetchDistance / (width * kSize) * range.in_step;
  }

  // Scans packed rows, and stores them from registers as one stream.
  template <int kVectors, StoreMode kStoreMode>
  ANYDML_NOINLINE static void stream_vectors(const RowRange& range, int64_t width, Accumulator* accumulators,
                                             const Accumulator* before, RealigningBuffer& buffer) {
    const int64_t last = width - kLanes;
    const auto column = [&](int k) { return k < kVectors - 1 ? k * kLanes : last; };
    V accumulator[kVectors];
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k)
      accumulator[k] = load_vector<V>(reinterpret_cast<const std::byte*>(accumulators + column(k)));
    const RowEnd end(width);
    RealigningStore<kStoreMode, false> outputs(buffer);
    const std::byte* in = range.in;
    const int64_t ahead = row_ahead(range, width);
    for (int64_t r = 0; r < range.rows; ++r, in += range.in_step) {
      for (int64_t at = 0; at < kVectors * kGranule; at += kLine) prefetch_line(in + ahead + at);
      V y[kVectors];
#pragma GCC unroll 8
      for (int k = 0; k < kVectors; ++k) {
        const int64_t j = column(k);
        y[k] = advance(accumulator[k], load_wide<T, Accumulator>(in + j * kSize), before, j);
      }
#pragma GCC unroll 8
      for (int k = 0; k < kVectors - 1; ++k) put_all<false>(outputs, y[k]);
      put_end<false>(outputs, y[kVectors - 1], end);
    }
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k)
      store_vector(reinterpret_cast<std::byte*>(accumulators + column(k)), accumulator[k]);
  }

  // The same for more vectors than fit the registers. The last vector loads its input first, and stays in a
  // register, as the vector before it has some of its lanes: a load waits for two stores that it spans.
  template <StoreMode kStoreMode, bool kFirst>
  ANYDML_NOINLINE static void stream_many(const RowRange& range, int64_t width, Accumulator* accumulators,
                                          const Accumulator* before, RealigningBuffer& buffer) {
    const int64_t last = width - kLanes;
    const RowEnd end(width);
    RealigningStore<kStoreMode, false> outputs(buffer);
    const std::byte* in = range.in;
    V last_accumulator = load_vector<V>(reinterpret_cast<const std::byte*>(accumulators + last));
    const int64_t ahead = row_ahead(range, width);
    for (int64_t r = 0; r < range.rows; ++r, in += range.in_step) {
      for (int64_t at = 0; at < width * kSize; at += kLine) prefetch_line(in + ahead + at);
      const V last_x = load_wide<T, Accumulator>(in + last * kSize);
      for (int64_t j = 0; j < last; j += kLanes) {
        V accumulator = load_vector<V>(reinterpret_cast<const std::byte*>(accumulators + j));
        const V y = advance(accumulator, load_wide<T, Accumulator>(in + j * kSize), before, j);
        store_vector(reinterpret_cast<std::byte*>(accumulators + j), accumulator);
        put_all<kFirst>(outputs, y);
      }
      put_end<kFirst>(outputs, advance(last_accumulator, last_x, before, last), end);
    }
    store_vector(reinterpret_cast<std::byte*>(accumulators + last), last_accumulator);
  }

  // Brings a vector of accumulators, from column j on, on by a row, and returns the outputs.
  ANYDML_INLINE static V advance(V& accumulator, V x, const Accumulator* before, int64_t j) {
    const V next = Operation::combine(accumulator, x);
    V y = kExclusive ? accumulator : next;
    if constexpr (kCarried) {
      y = Operation::combine(load_vector<V>(reinterpret_cast<const std::byte*>(before + j)), y);
    }
    accumulator = next;
    return y;
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
