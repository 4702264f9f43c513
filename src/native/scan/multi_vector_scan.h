// Scans of elements that lie next to each other in memory, in either direction, a vector at a time: of
// integers, and of sums of floats. With p what a vector's elements come to among themselves and t the tally
// before it,
//   y(i) = t o p(i),   t' = t o p(last).
// Where the order matters, a long row goes in blocks: C' = C o T, with T the total of a block, which does not
// depend on C; so one thread that carries C along and several that first reduce blocks get the same bits.
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

// A block's total, in as many parts as a line's elements make vectors, which wait for each other less than
// one would for itself.
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

  // The line's vector number `part`.
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

template <class T, class Operation, bool kExclusive, bool kDown>
class VectorScan {
 public:
  using Accumulator = AccumulatorOf<T>;
  using State = Accumulator;
  static State identity() { return static_cast<Accumulator>(Operation::kIdentity); }

  // A row of `size` elements, or a block of one: `in` and `out` are where the elements lie lowest, and may be
  // the same. Meanwhile memory brings what lies at `coming`: some processors foresee no further than a page.
  template <StoreMode kMode>
  ANYDML_NOINLINE static void scan_block(const std::byte* in, std::byte* out, int64_t size,
                                         Accumulator& total, const std::byte* prefetch_from,
                                         PendingStore& pending) {
    RealigningStore<kMode, kDown> sink(pending);
    if constexpr (kIsFloat<T>) {
      Parts parts;
      scan(in, out, size, total, &parts, prefetch_from, sink);
      total = Operation::combine(total, parts.all());
    } else {
      total = scan(in, out, size, total, nullptr, prefetch_from, sink);
    }
  }

  // Rows that are no longer than a block, one behind the other.
  template <StoreMode kMode>
  ANYDML_NOINLINE static void scan_rows(const std::byte* in, int64_t in_step, std::byte* out,
                                        int64_t out_step, int64_t size, int64_t rows, PendingStore& pending) {
    RealigningStore<kMode, kDown> sink(pending);
    for (int64_t r = 0; r < rows; ++r, in += in_step, out += out_step) {
      scan(in, out, size, identity(), nullptr, At::ahead(in), sink);
    }
  }

  ANYDML_NOINLINE static State reduce(const std::byte* in, int64_t size) {
    Parts parts;
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) {
      const std::byte* const line = in + At::element(size, i, kPerLine);
      prefetch_line(At::ahead(line));
      reduce_line(line, parts);
    }
    if (i < size) {
      const Rest rest(in + At::element(size, i, size - i), size - i);
      for (int k = 0; k < kVectors; ++k) parts.add(k, rest.vector(k));
    }
    return parts.all();
  }

 private:
  using V = Vector<Accumulator>;
  using Parts = MultiAccumulator<T, Operation>;
  using Prefix = VectorPrefix<Accumulator, Operation, kDown>;
  using At = IndexOrder<T, kDown>;
  using Rest = PartialLine<T, Operation, kDown>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kPerLine = At::kPerLine;

  // Most processors multiply 64 bits one by one, and not in vectors.
  static constexpr bool kScalarMultiply = sizeof(T) == 8 && std::is_same_v<Operation, Product>;
  // The tally before what comes next, where it is of use in all its lanes.
  using Running = std::conditional_t<kScalarMultiply, Accumulator, V>;

  // `parts`, where it is one, gets what the elements come to without `tally`.
  template <class Parts, class Outputs>
  ANYDML_INLINE static Accumulator scan(const std::byte* in, std::byte* out, int64_t size,
                                        Accumulator accumulator, Parts parts, const std::byte* prefetch_from,
                                        Outputs& outputs) {
    Running before = Running{} + accumulator;
    outputs.begin(out, size * kSize);
    for (int64_t i = 0; i < size;) {
      if (!outputs.at_shared_granule()) {
        i = over_lines<T, Running, kDown, Outputs::kStreams>(in, size, i, [&](const auto& line, int64_t at) {
          prefetch_line(prefetch_from + at);
          scan_line(line, out + at, before, parts, outputs);
          return true;
        });
      }
      if (const int64_t count = std::min(kPerLine, size - i); count > 0) {
        const int64_t at = At::element(size, i, count);
        scan_rest(in + at, count, out + at, before, parts, outputs);
        i += count;
      }
    }
    if constexpr (kScalarMultiply) {
      return before;
    } else {
      return before[0];
    }
  }

  static constexpr int kVectors = kLine / (Prefix::kLanes * kSize);
  static constexpr int kPieces = kLine / kPiece;

  template <class Parts, class Outputs>
  ANYDML_INLINE static void scan_line(const Line<T, Running, kDown>& line, std::byte* out, Running& before,
                                      Parts parts, Outputs& outputs) {
    if constexpr (kScalarMultiply) {
#pragma GCC unroll 4
      for (int k = 0; k < kPieces; ++k) {
        const auto [first, second] = scan_pair(line.x[2 * k], line.x[2 * k + 1], before);
        outputs.template put_pair<T>(out + At::piece(k, kPieces), first, second);
      }
    } else {
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        const V x = line.x[k];
        if constexpr (!std::is_null_pointer_v<Parts>) parts->add(k, x);
        outputs.template put<T>(out + At::piece(k, kVectors), scan_vector(x, before));
      }
    }
  }

  // A line, or less.
  template <class Parts, class Outputs>
  ANYDML_INLINE static void scan_rest(const std::byte* in, int64_t count, std::byte* out, Running& before,
                                      Parts parts, Outputs& outputs) {
    const Rest rest(in, count);
    Piece y[kPieces] = {};
    if constexpr (kScalarMultiply) {
#pragma GCC unroll 4
      for (int k = 0; k < kPieces; ++k) {
        const auto x = (Vector<T, 2>)rest.piece(k);
        const auto [first, second] = scan_pair(x[kDown ? 1 : 0], x[kDown ? 0 : 1], before);
        y[k] = piece_of<T, kDown>(first, second);
      }
    } else {
#pragma GCC unroll 4
      for (int k = 0; k < kVectors; ++k) {
        if (k * Prefix::kLanes >= count) break;
        const V x = rest.vector(k);
        if constexpr (!std::is_null_pointer_v<Parts>) parts->add(k, x);
        const auto pieces = pieces_of<T, kDown>(scan_vector(x, before));
        for (int p = 0; p < kPiecesOf<T>; ++p) y[k * kPiecesOf<T> + p] = pieces[p];
      }
    }
    put_pieces<kDown>(outputs, out, y, count * kSize);
  }

  // Two, of which the second waits for the tally before them alone.
  ANYDML_INLINE static std::pair<T, T> scan_pair(T first, T second, T& accumulator) {
    T both = Operation::combine(first, second);
    T next = Operation::combine(accumulator, first);
    // Compilers see no further than here, and so keep this order, and do not multiply in vectors.
    asm("" : "+r"(both));
    asm("" : "+r"(next));
    const T last = Operation::combine(accumulator, both);
    const T before = std::exchange(accumulator, last);
    return kExclusive ? std::pair(before, next) : std::pair(next, last);
  }

  ANYDML_INLINE static void reduce_line(const std::byte* in, Parts& parts) {
#pragma GCC unroll 4
    for (int part = 0; part < Parts::kParts; ++part) {
      parts.add(part, load_wide<T, Accumulator>(in + At::piece(part, Parts::kParts)));
    }
  }

  ANYDML_INLINE static V scan_vector(V x, V& before) {
    const V p = Prefix::all(x);
    const V y = combine_on_fma_port<Operation>(before, p);
    const V written = kExclusive ? Prefix::shift_in(before, y) : y;
    before = Operation::combine(before, Prefix::last_of(p));
    return written;
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
