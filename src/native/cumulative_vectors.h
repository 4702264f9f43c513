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

#include "cumulative_prefix.h"
#include "cumulative_stage.h"
#include "cumulative_tally.h"
#include "isa.h"
#include "memory.h"
#include "stream.h"
#include "vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// A block's total, in as many parts as a line's elements make vectors, which wait for each other less than
// one would for itself.
template <class T, class Operation>
class VectorParts {
 public:
  using Tally = TallyOf<T>;
  using V = Vector<Tally>;
  static constexpr int kLanes = kVectorBytes / sizeof(Tally);
  static constexpr int kParts = kLine / (kLanes * sizeof(T));

  VectorParts() { std::fill_n(parts_, kParts, broadcast(static_cast<Tally>(Operation::kIdentity))); }

  // The line's vector number `part`.
  ANYDML_INLINE void add(int part, V x) { parts_[part] = combine_aside<Operation>(parts_[part], x); }

  Tally all() const {
    V sum = Operation::combine(parts_[0], parts_[1]);
    if constexpr (kParts == 4) sum = Operation::combine(sum, Operation::combine(parts_[2], parts_[3]));
    Tally lanes[kLanes];
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
  using Tally = TallyOf<T>;
  using State = Tally;
  static State identity() { return static_cast<Tally>(Operation::kIdentity); }

  // Most processors multiply 64 bits at a time, and not in vectors, which alone can go past the caches.
  static constexpr bool kSingly = sizeof(T) == 8 && std::is_same_v<Operation, Product>;
  static constexpr bool kCanStream = !kSingly;

  // A row of `size` elements, or a block of one: `in` and `out` are where the elements lie lowest, and may be
  // the same. Meanwhile memory brings what lies at `coming`: some processors foresee no further than a page.
  // kStreams: past the caches, by stream_wide(). Else the stage's lines leave.
  template <bool kStreams>
  ANYDML_APART static void scan_block(const std::byte* in, std::byte* out, int64_t size, Tally& total,
                                      const std::byte* coming, Stage& stage) {
    if constexpr (kIsFloat<T>) {
      Parts parts;
      scan<kStreams>(in, out, size, total, &parts, coming, stage);
      total = Operation::combine(total, parts.all());
    } else if constexpr (kSingly) {
      total = scan_singly(in, out, size, total, coming, stage);
    } else {
      total = scan<kStreams>(in, out, size, total, nullptr, coming, stage);
    }
  }

  // Rows that are no longer than a block, one behind the other.
  template <bool kStreams>
  ANYDML_APART static void scan_rows(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step,
                                     int64_t size, int64_t rows, Stage& stage) {
    for (int64_t r = 0; r < rows; ++r, in += in_step, out += out_step) {
      if constexpr (kSingly) {
        scan_singly(in, out, size, identity(), in + kAhead, stage);
      } else {
        scan<kStreams>(in, out, size, identity(), nullptr, in + kAhead, stage);
      }
    }
  }

  ANYDML_APART static State reduce(const std::byte* in, int64_t size) {
    Parts parts;
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) reduce_line(in + At::element(size, i, kPerLine), parts);
    if (i < size) reduce_line(Rest(in + At::element(size, i, size - i), size - i).elements, parts);
    return parts.all();
  }

 private:
  using V = Vector<Tally>;
  using Parts = VectorParts<T, Operation>;
  using Prefix = VectorPrefix<Tally, Operation, kDown>;
  using At = Walk<T, kDown>;
  using Rest = LineRest<T, Operation, kDown>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kPerLine = At::kPerLine;

  // `parts`, where it is one, gets what the elements come to without `tally`.
  template <bool kStreams, class Parts>
  ANYDML_INLINE static Tally scan(const std::byte* in, std::byte* out, int64_t size, Tally tally, Parts parts,
                                  const std::byte* coming, Stage& stage) {
    V before = broadcast(tally);
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) {
      const int64_t at = At::element(size, i, kPerLine);
      prefetch_line(coming + at);
      scan_line<kStreams>(in + at, out + at, before, parts);
      if constexpr (!kStreams) stage.send_line();
    }
    if (i < size) {
      const int64_t at = At::element(size, i, size - i);
      Rest rest(in + at, size - i);
      scan_line<false>(rest.elements, rest.elements, before, parts);
      std::memcpy(out + at, rest.at, rest.bytes);
    }
    return before[0];
  }

  template <bool kStreams, class Parts>
  ANYDML_INLINE static void scan_line(const std::byte* in, std::byte* out, V& before, Parts parts) {
    constexpr int kVectors = kPerLine / Prefix::kLanes;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      const V x = load_wide<T, Tally>(in + At::piece(k, kVectors));
      if constexpr (!std::is_null_pointer_v<Parts>) parts->add(k, x);
      const V y = scan_vector(x, before);
      put_wide<T, kStreams>(out + At::piece(k, kVectors), y);
    }
  }

  ANYDML_INLINE static void reduce_line(const std::byte* in, Parts& parts) {
#pragma GCC unroll 4
    for (int part = 0; part < Parts::kParts; ++part) {
      parts.add(part, load_wide<T, Tally>(in + At::piece(part, Parts::kParts)));
    }
  }

  // One by one, for pairs whose second waits for the tally before the pair alone.
  ANYDML_INLINE static Tally scan_singly(const std::byte* in, std::byte* out, int64_t size, Tally tally,
                                         const std::byte* coming, Stage& stage) {
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) {
      prefetch_line(coming + At::element(size, i, kPerLine));
      for (int64_t k = i; k < i + kPerLine; k += 2) scan_pair(in, out, At::element(size, k), tally);
      stage.send_line();
    }
    for (; i < size; ++i) {
      advance_one<T, Operation, kExclusive>(tally, in + At::element(size, i), out + At::element(size, i));
    }
    return tally;
  }
  static void scan_pair(const std::byte* in, std::byte* out, int64_t at, T& tally) {
    constexpr int64_t kStep = kDown ? -kSize : kSize;
    const T first = load<T>(in + at);
    T both = Operation::combine(first, load<T>(in + at + kStep));
    T next = Operation::combine(tally, first);
    // Compilers see no further than here, and so keep this order, and do not multiply in vectors.
    asm("" : "+r"(both));
    if constexpr (kDown) asm("" : "+r"(next));
    const T last = Operation::combine(tally, both);
    store(out + at, kExclusive ? tally : next);
    store(out + at + kStep, kExclusive ? next : last);
    tally = last;
  }

  ANYDML_INLINE static V scan_vector(V x, V& before) {
    const V p = Prefix::all(x);
    const V y = combine_aside<Operation>(before, p);
    const V written = kExclusive ? Prefix::moved_on(before, y) : y;
    before = Operation::combine(before, Prefix::last_of(p));
    return written;
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
