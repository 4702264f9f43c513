// Vectorised prefix scans of contiguous elements, upwards or downwards, of integers and of sums of floats.
// The elements of a vector are first scanned among themselves, to p; then, with t the accumulator before the
// vector,
//   y(i) = t o p(i),   t' = t o p(last).
// Where the order of combining matters, a long row goes in blocks, C' = C o T, whose totals T do not depend
// on the prefix C before them: one thread that carries C along and several that first reduce their blocks get
// the same bits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/vector_prefix.h"
#include "simd/unaligned.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// The reduction of a block with several independent accumulators, one for each vector of a cache line, as a
// single one would have each operation wait for the one before it.
template <class T, class Operation>
class MultiAccumulator {
 public:
  using Accumulator = AccumulatorOf<T>;
  using V = Vector<Accumulator>;
  static constexpr int kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int kParts = kLine / (kLanes * sizeof(T));

  MultiAccumulator() {
    std::fill_n(parts_, kParts, broadcast(static_cast<Accumulator>(Operation::kIdentity)));
  }

  // Adds the vector number `part` of a line.
  ANYDML_INLINE void add(int part, V x) { parts_[part] = combine_on_fma_port<Operation>(parts_[part], x); }

  Accumulator all() const {
    V sum = Operation::combine(parts_[0], parts_[1]);
    if constexpr (kParts == 4) sum = Operation::combine(sum, Operation::combine(parts_[2], parts_[3]));
    Accumulator lanes[kLanes];
    for (int k = 0; k < kLanes; ++k) lanes[k] = sum[k];
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      for (int k = 0; k < distance; ++k) lanes[k] = Operation::combine(lanes[k], lanes[k + distance]);
    }
    return lanes[0];
  }

 private:
  static_assert(kParts == 2 || kParts == 4);

  V parts_[kParts];
};

// Whether the scan is exclusive is a branch for each line, whose outputs are then moved on by an element:
// kernels of either kind took twice as long to compile, and are no faster.
template <class T, class Operation, bool kDown>
class VectorScan {
 public:
  using Accumulator = AccumulatorOf<T>;
  using State = Accumulator;
  static State identity() { return static_cast<Accumulator>(Operation::kIdentity); }

  // Scans a block of a row of floats, whose total it computes apart from the prefix before it. `in` and `out`
  // are the lowest addresses of the elements, and may be the same. What lies at `prefetch_from` is
  // prefetched: some hardware prefetchers stop at the end of a page.
  template <StoreMode kStoreMode>
  ANYDML_NOINLINE static void scan_block(const std::byte* in, std::byte* out, int64_t size,
                                         Accumulator& total, bool exclusive, const std::byte* prefetch_from,
                                         RealigningBuffer& buffer) {
    RealigningStore<kStoreMode, kDown> outputs(buffer);
    Parts parts;
    scan(in, out, size, exclusive, Running{} + total, &parts, prefetch_from, outputs);
    total = Operation::combine(total, parts.all());
  }

  // Scans rows that are no longer than a block, or a block of integers: the first row goes on from `total`,
  // which becomes the total of the last one. What lies `distance` bytes from where it reads is prefetched.
  template <StoreMode kStoreMode>
  ANYDML_NOINLINE static void scan_rows(const std::byte* in, int64_t in_step, std::byte* out,
                                        int64_t out_step, int64_t size, int64_t rows, Accumulator& total,
                                        bool exclusive, int64_t distance, RealigningBuffer& buffer) {
    RealigningStore<kStoreMode, kDown> outputs(buffer);
    Running before = Running{} + total;
    Running after = before;
    for (int64_t r = 0; r < rows; ++r, in += in_step, out += out_step) {
      after = scan(in, out, size, exclusive, before, nullptr, in + distance, outputs);
      before = Running{} + identity();
    }
    total = last_of(after);
  }

  ANYDML_NOINLINE static State reduce(const std::byte* in, int64_t size) {
    Parts parts;
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) {
      const std::byte* const line = in + Order::element(size, i, kPerLine);
      prefetch_line(Order::prefetch_address(line));
      reduce_line(line, parts);
    }
    if (i < size) {
      const Rest rest(in + Order::element(size, i, size - i), size - i);
      for (int k = 0; k < kVectors; ++k) parts.add(k, rest.vector(k));
    }
    return parts.all();
  }

 private:
  using V = Vector<Accumulator>;
  using Parts = MultiAccumulator<T, Operation>;
  using Prefix = VectorPrefix<Accumulator, Operation, kDown>;
  using Order = IndexOrder<T, kDown>;
  using Rest = PartialLine<T, Operation, kDown>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kPerLine = Order::kPerLine;

  // Most processors multiply integers of 64 bits as scalars, and not in vectors.
  static constexpr bool kScalarMultiply = sizeof(T) == 8 && std::is_same_v<Operation, Product>;
  // The prefix before the next elements, in all lanes of a vector where vectors are multiplied.
  using Running = std::conditional_t<kScalarMultiply, Accumulator, V>;

  // Returns the prefix after the elements. Unless `parts` is null, it gets the elements' own total.
  template <class Parts, class Outputs>
  ANYDML_INLINE static Running scan(const std::byte* in, std::byte* out, int64_t size, bool exclusive,
                                    Running before, Parts parts, const std::byte* prefetch_from,
                                    Outputs& outputs) {
    outputs.begin(out, size * kSize);
    for (int64_t i = 0; i < size;) {
      if (!outputs.at_shared_granule()) {
        i = over_lines<T, Running, kDown, Outputs::kIsNonTemporal>(
            in, size, i, [&](const auto& line, int64_t at) {
              prefetch_line(prefetch_from + at);
              scan_line(line, out + at, exclusive, before, parts, outputs);
              return true;
            });
      }
      if (const int64_t count = std::min(kPerLine, size - i); count > 0) {
        const int64_t at = Order::element(size, i, count);
        scan_rest(in + at, count, out + at, exclusive, before, parts, outputs);
        i += count;
      }
    }
    return before;
  }
  static Accumulator last_of(Running before) {
    if constexpr (kScalarMultiply) {
      return before;
    } else {
      return before[0];
    }
  }

  static constexpr int kVectors = kLine / (Prefix::kLanes * kSize);
  static constexpr int kGranules = kLine / kGranule;

  template <class Parts, class Outputs>
  ANYDML_INLINE static void scan_line(const Line<T, Running, kDown>& line, std::byte* out, bool exclusive,
                                      Running& before, Parts parts, Outputs& outputs) {
    if constexpr (kScalarMultiply) {
#pragma GCC unroll 4
      for (int k = 0; k < kGranules; ++k) {
        const auto [first, second] = scan_pair(line.x[2 * k], line.x[2 * k + 1], exclusive, before);
        outputs.template put_pair<T>(out + Order::part(k, kGranules), first, second);
      }
    } else {
      const V until = before;
      V y[kVectors];
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const V x = line.x[k];
        if constexpr (!std::is_null_pointer_v<Parts>) parts->add(k, x);
        y[k] = scan_vector(x, before);
      }
      if (exclusive) Prefix::shift_in(until, y, kVectors);
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) outputs.template put<T>(out + Order::part(k, kVectors), y[k]);
    }
  }

  // The last elements of a row, or the first, which do not fill a line.
  template <class Parts, class Outputs>
  ANYDML_INLINE static void scan_rest(const std::byte* in, int64_t count, std::byte* out, bool exclusive,
                                      Running& before, Parts parts, Outputs& outputs) {
    const Rest rest(in, count);
    Granule y[kGranules] = {};
    if constexpr (kScalarMultiply) {
#pragma GCC unroll 4
      for (int k = 0; k < kGranules; ++k) {
        const auto x = (Vector<T, 2>)rest.granule(k);
        const auto [first, second] = scan_pair(x[kDown ? 1 : 0], x[kDown ? 0 : 1], exclusive, before);
        y[k] = granule_of<T, kDown>(first, second);
      }
    } else {
      const V until = before;
      V vectors[kVectors] = {};
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        if (k * Prefix::kLanes >= count) break;
        const V x = rest.vector(k);
        if constexpr (!std::is_null_pointer_v<Parts>) parts->add(k, x);
        vectors[k] = scan_vector(x, before);
      }
      if (exclusive) Prefix::shift_in(until, vectors, kVectors);
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        if (k * Prefix::kLanes >= count) break;
        const auto granules = granules_of<T, kDown>(vectors[k]);
        for (int p = 0; p < kGranulesOf<T, V>; ++p) y[k * kGranulesOf<T, V> + p] = granules[p];
      }
    }
    put_granules<kDown>(outputs, out, y, count * kSize);
  }

  // Scans two elements. The second result waits for the prefix before both, and not for the first result.
  ANYDML_INLINE static std::pair<T, T> scan_pair(T first, T second, bool exclusive, T& accumulator) {
    T both = Operation::combine(first, second);
    T next = Operation::combine(accumulator, first);
    // The empty assembly hides the values from the compiler, which keeps this order and multiplies no
    // vectors.
    asm("" : "+r"(both));
    asm("" : "+r"(next));
    const T last = Operation::combine(accumulator, both);
    const T before = std::exchange(accumulator, last);
    return exclusive ? std::pair(before, next) : std::pair(next, last);
  }

  ANYDML_INLINE static void reduce_line(const std::byte* in, Parts& parts) {
#pragma GCC unroll 4
    for (int part = 0; part < Parts::kParts; ++part) {
      parts.add(part, load_wide<T, Accumulator>(in + Order::part(part, Parts::kParts)));
    }
  }

  ANYDML_INLINE static V scan_vector(V x, V& before) {
    const V p = Prefix::all(x);
    const V y = combine_on_fma_port<Operation>(before, p);
    before = Operation::combine(before, Prefix::last_of(p));
    return y;
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
