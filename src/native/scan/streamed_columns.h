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

// kCarried: with a prefix of the blocks before.
template <class T, class Operation, bool kCarried>
class StreamedColumns {
 public:
  using Accumulator = AccumulatorOf<T>;

  // Scans the rows; returns false, and does nothing, where the address of the output allows no stream.
  static bool scan(const RowRange& range, int64_t width, Accumulator* accumulators, const Accumulator* before,
                   bool exclusive, RealigningBuffer& buffer) {
    if (buffer.mode_for(range.out, range.out_step) == StoreMode::kCached) return false;
    RowRange rest = range;
    // Outputs that are aligned share no granule.
    if (begins_at_shared_granule(range, buffer)) {
      put_first_row(range, width, accumulators, before, exclusive, buffer);
      rest = range.part(1, range.rows);
      if (rest.rows == 0) return true;
    }
    if (!on_few_vectors<kLanes>(width, [&]<int kVectors>(std::integral_constant<int, kVectors>) {
          stream_vectors<kVectors>(rest, width, accumulators, before, exclusive, buffer);
        })) {
      stream_many(rest, width, accumulators, before, exclusive, buffer);
    }
    return true;
  }

 private:
  using V = Vector<Accumulator>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);

  using Outputs = RealigningStore<kStreamed, false>;

  // Whether the first row begins in a granule with bytes that are not its own. The rows after it do not.
  static bool begins_at_shared_granule(const RowRange& range, RealigningBuffer& buffer) {
    Outputs outputs(buffer);
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

  ANYDML_INLINE static void put_all(Outputs& outputs, V y) {
    for (const Granule granule : granules_of<T, false>(y)) outputs.put_granule(nullptr, granule);
  }
  ANYDML_INLINE static void put_end(Outputs& outputs, V y, const RowEnd& end) {
    const auto granules = granules_of<T, false>(y);
    int64_t size = end.size;
    if (size > kGranule) {
      outputs.put_granule(nullptr, end.own.of(granules.front(), granules.back()));
      size -= kGranule;
    }
    const Granule last = end.own.of(granules.back(), granules.back());
    if (size == kGranule) {
      outputs.put_granule(nullptr, last);
    } else {
      outputs.put_part(nullptr, last, size);
    }
  }

  // Scans a row that begins in a granule with bytes that are not its own.
  ANYDML_NOINLINE static void put_first_row(const RowRange& range, int64_t width, Accumulator* accumulators,
                                            const Accumulator* before, bool exclusive,
                                            RealigningBuffer& buffer) {
    alignas(64) std::byte row[tuning::kMostPackedRow + 2 * kGranule];
    std::byte* const to = row + kGranule;
    for (int64_t j = 0; j < width; ++j) {
      const Accumulator until = accumulators[j];
      accumulators[j] = Operation::combine(until, widen<T, Accumulator>(range.in + j * kSize));
      Accumulator y = exclusive ? until : accumulators[j];
      if constexpr (kCarried) y = Operation::combine(before[j], y);
      narrow<T, Accumulator>(to + j * kSize, y);
    }
    put_bytes<kStreamed, false>(buffer, range.out, to, width * kSize);
  }

  // The distance of the packed row that is read kPrefetchDistance bytes after another one.
  static int64_t row_ahead(const RowRange& range, int64_t width) {
    return kPrefetchDistance / (width * kSize) * range.in_step;
  }

  // Scans packed rows, and stores them from registers as one stream. What is stored for a row is what its
  // scan begins with; where the scan is inclusive, what that of the row after it begins with. So each row is
  // read before the outputs of the one before it are stored, and the last one twice.
  template <int kVectors>
  ANYDML_NOINLINE static void stream_vectors(const RowRange& range, int64_t width, Accumulator* accumulators,
                                             const Accumulator* before, bool exclusive,
                                             RealigningBuffer& buffer) {
    const int64_t last = width - kLanes;
    const auto column = [&](int k) { return k < kVectors - 1 ? k * kLanes : last; };
    V accumulator[kVectors];
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k) accumulator[k] = load_accumulators(accumulators + column(k));
    const RowEnd end(width);
    Outputs outputs(buffer);
    const std::byte* in = range.in;
    const int64_t ahead = row_ahead(range, width);
    const int64_t stays_below = exclusive ? 1 : 2;
    V x[kVectors];
    const auto load_row = [&] {
#pragma GCC unroll 8
      for (int k = 0; k < kVectors; ++k) x[k] = load_wide<T, Accumulator>(in + column(k) * kSize);
    };
    const auto advance_row = [&] {
#pragma GCC unroll 8
      for (int k = 0; k < kVectors; ++k) accumulator[k] = Operation::combine(accumulator[k], x[k]);
    };
    if (!exclusive) {
      load_row();
      advance_row();
      if (range.rows > 1) in += range.in_step;
    }
    for (int64_t left = range.rows;;) {
      for (int64_t at = 0; at < kVectors * kGranule; at += kLine) prefetch_line(in + ahead + at);
      load_row();
#pragma GCC unroll 8
      for (int k = 0; k < kVectors - 1; ++k) put_all(outputs, outputs_of(accumulator[k], before, column(k)));
      put_end(outputs, outputs_of(accumulator[kVectors - 1], before, last), end);
      if (--left == 0) break;
      if (left >= stays_below) in += range.in_step;
      advance_row();
    }
    if (exclusive) advance_row();
#pragma GCC unroll 8
    for (int k = 0; k < kVectors; ++k)
      store_vector(reinterpret_cast<std::byte*>(accumulators + column(k)), accumulator[k]);
  }

  // The same for more vectors than fit the registers. The last vector loads its input first, and stays in a
  // register, as the vector before it has some of its lanes: a load waits for two stores that it spans.
  ANYDML_NOINLINE static void stream_many(const RowRange& range, int64_t width, Accumulator* accumulators,
                                          const Accumulator* before, bool exclusive,
                                          RealigningBuffer& buffer) {
    const int64_t last = width - kLanes;
    const RowEnd end(width);
    Outputs outputs(buffer);
    const std::byte* in = range.in;
    V last_accumulator = load_accumulators(accumulators + last);
    const int64_t ahead = row_ahead(range, width);
    for (int64_t r = 0; r < range.rows; ++r, in += range.in_step) {
      for (int64_t at = 0; at < width * kSize; at += kLine) prefetch_line(in + ahead + at);
      const V last_x = load_wide<T, Accumulator>(in + last * kSize);
      for (int64_t j = 0; j < last; j += kLanes) {
        const V accumulator = load_accumulators(accumulators + j);
        const V next = Operation::combine(accumulator, load_wide<T, Accumulator>(in + j * kSize));
        store_vector(reinterpret_cast<std::byte*>(accumulators + j), next);
        put_all(outputs, outputs_of(exclusive ? accumulator : next, before, j));
      }
      const V next = Operation::combine(last_accumulator, last_x);
      put_end(outputs, outputs_of(exclusive ? last_accumulator : next, before, last), end);
      last_accumulator = next;
    }
    store_vector(reinterpret_cast<std::byte*>(accumulators + last), last_accumulator);
  }

  ANYDML_INLINE static V load_accumulators(const Accumulator* from) {
    return load_vector<V>(reinterpret_cast<const std::byte*>(from));
  }
  // The outputs of columns from the j-th on, whose block comes to `accumulator`.
  ANYDML_INLINE static V outputs_of(V accumulator, const Accumulator* before, int64_t j) {
    if constexpr (kCarried) return Operation::combine(load_accumulators(before + j), accumulator);
    return accumulator;
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
