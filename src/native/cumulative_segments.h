// Long rows of floats. A row is cut into blocks, and a block into kLines segments, which are scanned abreast.
// With T(s) the total of segment s and C the tally of the blocks before, the tally of segment s begins with
//   t(s) = C o (T(0) o ... o T(s - 1)),   C' = C o (T(0) o ... o T(kLines - 1) o what is left of the block):
// no T depends on C, so that one thread that carries C along and several that first reduce blocks to their
// totals get the same bits. Sums are tallied on the way to the totals, and kept in the cache:
//   y(s, i) = t(s) + L(s, i),   L(s, i) = x(s, 0) + ... + x(s, i)   (exclusive: up to x(s, i - 1)).
// Products' L might leave their range where y does not; with t(s) known they are scanned anew.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cumulative_scaled.h"
#include "cumulative_squares.h"
#include "cumulative_stage.h"
#include "cumulative_tally.h"
#include "isa.h"
#include "stream.h"
#include "vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

// What of a block lies before each segment, before what is left, and in all: T(0) o ... o T(s - 1). Of sums
// all L.
template <class T, class Operation, int64_t kBlock>
struct SegmentTotals {
  // Where an order of combining might take what is combined out of range.
  static constexpr bool kScaled = std::is_same_v<Operation, Product>;
  using State = std::conditional_t<kScaled, Scaled, TallyOf<T>>;

  State before[kLines + 1];
  State all;
  alignas(64) TallyOf<T> tallies[kScaled ? 1 : kBlock];
};

// Walking up or down in memory. `in` and `out` are where a block's elements lie lowest, and may be the same.
template <class T, class Operation, bool kExclusive, bool kDown, int64_t kBlock>
class SegmentScan {
  static constexpr int64_t kSize = sizeof(T);

 public:
  using Tally = TallyOf<T>;
  using Totals = SegmentTotals<T, Operation, kBlock>;
  using State = typename Totals::State;

  static State identity() {
    if constexpr (kScaled) {
      return Scaled{};
    } else {
      return static_cast<Tally>(Operation::kIdentity);
    }
  }

  ANYDML_APART static void reduce(const std::byte* in, int64_t size, Totals& totals) {
    const int64_t length = segment(size);
    State parts[kLines];
    const std::byte* const first = in + element(size, 0, length);
    if constexpr (kScaled) {
      reduce_segments(first, line_step(length), length, parts);
    } else {
      tally_segments(first, length, totals.tallies, parts);
    }
    State sum = identity();
#pragma GCC unroll 9
    for (int64_t s = 0; s < kLines; ++s) {
      totals.before[s] = sum;
      sum = Operation::combine(sum, parts[s]);
    }
    totals.before[kLines] = sum;
    for (int64_t i = kLines * length; i < size; ++i) sum = combine_one(sum, in + element(size, i));
    totals.all = sum;
  }

  // `before` is C. Meanwhile memory brings what is at `coming`.
  ANYDML_APART static void scan(const std::byte* in, std::byte* out, int64_t size, State before,
                                const Totals& totals, const std::byte* coming, Stage& stage) {
    const int64_t length = segment(size);
    State bases[kLines + 1];
#pragma GCC unroll 9
    for (int64_t s = 0; s <= kLines; ++s) bases[s] = Operation::combine(before, totals.before[s]);
    const int64_t first = element(size, 0, length);
    // What is scanned twice, where the first scan writes over it; the rest of the block is read from it too.
    alignas(64) std::byte copy[kScaled ? kBlock * kSize : 1];
    if constexpr (kScaled) {
      const Lines lines{in + first, out + first, line_step(length), length};
      if (in == out)
        in = static_cast<const std::byte*>(std::memcpy(copy, in, static_cast<size_t>(size * kSize)));
      if (!scan_watched(lines, bases, Ahead(coming), stage)) {
        Squares<T, Operation, kExclusive, kDown, Range::kScaled> squares(bases);
        scan_squares<kDown>(squares, in + first, lines.step, lines.out, lines.step, length, Ahead(coming),
                            stage);
      }
    } else {
      static_cast<void>(copy);
      write_segments(totals.tallies, out + first, length, bases, Ahead(coming), stage);
    }
    State tally = bases[kLines];
    for (int64_t i = kLines * length; i < size; ++i) {
      const int64_t at = element(size, i);
      const State next = combine_one(tally, in + at);
      write(out + at, kExclusive ? tally : next);
      tally = next;
    }
  }

 private:
  static constexpr bool kScaled = Totals::kScaled;
  using V = Vector<Tally>;
  using Sums = Squares<T, Operation, kExclusive, kDown>;
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Tally);

  struct Lines {
    const std::byte* in;
    std::byte* out;
    int64_t step;
    int64_t length;
  };

  // The elements of a segment, which fill rows of squares.
  static int64_t segment(int64_t size) { return size / kLines / kLanes / 2 * kLanes * 2; }
  static_assert(2 * kLanes % (kSquaresBeside * Sums::kSquare) == 0);
  // From a segment to the next one traversed.
  static int64_t line_step(int64_t length) { return kDown ? -length * kSize : length * kSize; }

  // Where the i-th element traversed, or the lowest of the `count` from it on, lies in a part of that size.
  static int64_t element(int64_t size, int64_t i, int64_t count = 1) {
    return kSize * (kDown ? size - i - count : i);
  }

  static State combine_one(State tally, const std::byte* x) {
    if constexpr (kScaled) {
      return normalised(tally.m * widen<T, double>(x), tally.e);
    } else {
      return Operation::combine(tally, widen<T, Tally>(x));
    }
  }
  static void write(std::byte* y, State tally) {
    if constexpr (kScaled) {
      narrow<T, double>(y, tally.m * root_of_scale(tally.e, false) * root_of_scale(tally.e, true));
    } else {
      narrow<T, Tally>(y, tally);
    }
  }

  // Calls body(at, i) for each row of squares: where it lies in its segment, from the i-th element traversed
  // on.
  template <class Body>
  ANYDML_INLINE static void for_each_row(int64_t length, const Body& body) {
    constexpr int64_t kRow = kSquaresBeside * Sums::kSquare;
    for (int64_t i = 0; i < length; i += kRow) body(element(length, i, kRow), i);
  }

  static void tally_segments(const std::byte* in, int64_t length, Tally* tallies, Tally* parts) {
    std::fill_n(parts, kLines, identity());
    Sums squares(parts);
    for_each_row(length, [&](int64_t at, int64_t i) {
      squares.template tally<kSquaresBeside>(in + at, line_step(length), tallies + i * kLines);
    });
    squares.store(parts);
  }
  static void write_segments(const Tally* tallies, std::byte* out, int64_t length, const Tally* bases,
                             Ahead ahead, Stage& stage) {
    const Sums squares(bases);
    for_each_row(length, [&](int64_t at, int64_t i) {
      squares.template write<kSquaresBeside>(tallies + i * kLines, out + at, line_step(length));
      meanwhile<kSquaresBeside>(ahead, stage);
    });
  }

  // Whether each product stayed what the tally's type holds, and so what was written is right.
  static bool scan_watched(const Lines& lines, const Scaled* bases, Ahead ahead, Stage& stage) {
    Tally tallies[kLines];
    for (int64_t s = 0; s < kLines; ++s) {
      if (bases[s].e != 0) return false;
      tallies[s] = static_cast<Tally>(bases[s].m);
    }
    Squares<T, Operation, kExclusive, kDown, Range::kWatched> squares(tallies);
    if (!squares.stayed_moderate()) return false;
    scan_squares<kDown>(squares, lines.in, lines.step, lines.out, lines.step, lines.length, ahead, stage);
    return squares.stayed_moderate();
  }

  // Totals of a segment's elements kLanes apart, and then of these, in pairs.
  static void reduce_segments(const std::byte* in, int64_t step, int64_t length, State* parts) {
    V totals[kLines];
    std::fill_n(totals, kLines, broadcast(static_cast<Tally>(Operation::kIdentity)));
    Watch<Tally, kLanes> watch;
    for (int64_t i = 0; i < length;) {
      const int64_t end = std::min(length, i + kFactors * kLanes);
      for (; i < end; i += kLanes) {
        for (int64_t s = 0; s < kLines; ++s) {
          totals[s] = Operation::combine(totals[s], load_wide<T, Tally>(in + s * step + i * kSize));
        }
      }
      if constexpr (kScaled) {
        for (const V& total : totals) watch.look(total);
      }
    }
    if constexpr (kScaled) {
      if (!watch.all_moderate()) return reduce_scaled(in, step, length, parts);
      for (int64_t s = 0; s < kLines; ++s) parts[s] = normalised(in_pairs<double>(totals[s]), 0);
    } else {
      for (int64_t s = 0; s < kLines; ++s) parts[s] = in_pairs<Tally>(totals[s]);
    }
  }

  template <class Wide>
  static Wide in_pairs(V v) {
    Wide totals[kLanes];
    for (int64_t k = 0; k < kLanes; ++k) totals[k] = v[k];
    for (int64_t distance = 1; distance < kLanes; distance *= 2) {
      for (int64_t k = 0; k < kLanes; k += 2 * distance) {
        totals[k] = Operation::combine(totals[k], totals[k + distance]);
      }
    }
    return totals[0];
  }

  static void reduce_scaled(const std::byte* in, int64_t step, int64_t length, Scaled* parts) {
    for (int64_t s = 0; s < kLines; ++s) {
      ScaledLanes<Tally, kLanes> lanes;
      for (int64_t i = 0; i < length; i += kLanes) {
        lanes.m *= load_wide<T, Tally>(in + s * step + i * kSize);
        if (i / kLanes % kFactors == kFactors - 1) lanes.normalise();
      }
      lanes.normalise();
      parts[s] = Scaled{};
      for (int64_t k = 0; k < kLanes; ++k) parts[s] = parts[s] * Scaled{lanes.m[k], lanes.e[k]};
    }
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
