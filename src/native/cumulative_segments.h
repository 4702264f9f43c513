// Products of long rows of floats. A row is cut into blocks, and a block into kLines segments, which are
// scanned abreast. With T(s) the total of segment s and C the tally of the blocks before, the tally of
// segment s begins with
//   t(s) = C * (T(0) * ... * T(s - 1)),   C' = C * (T(0) * ... * T(kLines - 1) * what is left of the block):
// no T depends on C, so that one thread that carries C along and several that first reduce blocks to their
// totals get the same bits. A segment's own products might leave their range where the row's do not; with
// t(s) known it is scanned again.
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

// What of a block lies before each segment, before what is left, and in all: T(0) * ... * T(s - 1).
struct SegmentTotals {
  Scaled before[kLines + 1];
  Scaled all;
};

// Walking up or down in memory. `in` and `out` are where a block's elements lie lowest, and may be the same.
template <class T, bool kExclusive, bool kDown, int64_t kBlock>
class SegmentScan {
  static constexpr int64_t kSize = sizeof(T);

 public:
  using Tally = TallyOf<T>;
  using Totals = SegmentTotals;
  using State = Scaled;

  static State identity() { return {}; }

  ANYDML_APART static void reduce(const std::byte* in, int64_t size, Totals& totals) {
    const int64_t length = segment(size);
    Scaled parts[kLines];
    reduce_segments(in + element(size, 0, length), line_step(length), length, parts);
    Scaled product;
#pragma GCC unroll 9
    for (int64_t s = 0; s < kLines; ++s) {
      totals.before[s] = product;
      product = product * parts[s];
    }
    totals.before[kLines] = product;
    for (int64_t i = kLines * length; i < size; ++i) product = times(product, in + element(size, i));
    totals.all = product;
  }

  // `before` is C. Meanwhile memory brings what is at `coming`.
  ANYDML_APART static void scan(const std::byte* in, std::byte* out, int64_t size, Scaled before,
                                const Totals& totals, const std::byte* coming, Stage& stage) {
    const int64_t length = segment(size);
    Scaled bases[kLines + 1];
#pragma GCC unroll 9
    for (int64_t s = 0; s <= kLines; ++s) bases[s] = before * totals.before[s];
    const int64_t first = element(size, 0, length);
    const Lines lines{in + first, out + first, line_step(length), length};
    // What is scanned twice, where the first scan writes over it; the rest of the block is read from it too.
    alignas(64) std::byte copy[kBlock * kSize];
    if (in == out)
      in = static_cast<const std::byte*>(std::memcpy(copy, in, static_cast<size_t>(size * kSize)));
    if (!scan_watched(lines, bases, Ahead(coming), stage)) {
      Squares<T, Product, kExclusive, kDown, Range::kScaled> squares(bases);
      scan_squares<kDown>(squares, in + first, lines.step, lines.out, lines.step, length, Ahead(coming),
                          stage);
    }
    Scaled tally = bases[kLines];
    for (int64_t i = kLines * length; i < size; ++i) {
      const int64_t at = element(size, i);
      const Scaled next = times(tally, in + at);
      write(out + at, kExclusive ? tally : next);
      tally = next;
    }
  }

 private:
  using V = Vector<Tally>;
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Tally);

  struct Lines {
    const std::byte* in;
    std::byte* out;
    int64_t step;
    int64_t length;
  };

  // The elements of a segment, which fill rows of squares.
  static int64_t segment(int64_t size) { return size / kLines / kLanes / 2 * kLanes * 2; }
  // From a segment to the next one traversed.
  static int64_t line_step(int64_t length) { return kDown ? -length * kSize : length * kSize; }

  // Where the i-th element traversed, or the lowest of the `count` from it on, lies in a part of that size.
  static int64_t element(int64_t size, int64_t i, int64_t count = 1) {
    return kSize * (kDown ? size - i - count : i);
  }

  static Scaled times(Scaled tally, const std::byte* x) {
    return normalised(tally.m * widen<T, double>(x), tally.e);
  }
  static void write(std::byte* y, Scaled tally) {
    narrow<T, double>(y, tally.m * root_of_scale(tally.e, false) * root_of_scale(tally.e, true));
  }

  // Whether each product stayed what the tally's type holds, and so what was written is right.
  static bool scan_watched(const Lines& lines, const Scaled* bases, Ahead ahead, Stage& stage) {
    Tally tallies[kLines];
    for (int64_t s = 0; s < kLines; ++s) {
      if (bases[s].e != 0) return false;
      tallies[s] = static_cast<Tally>(bases[s].m);
    }
    Squares<T, Product, kExclusive, kDown, Range::kWatched> squares(tallies);
    if (!squares.stayed_moderate()) return false;
    scan_squares<kDown>(squares, lines.in, lines.step, lines.out, lines.step, lines.length, ahead, stage);
    return squares.stayed_moderate();
  }

  // Totals of a segment's elements kLanes apart, and then of these, in pairs.
  static void reduce_segments(const std::byte* in, int64_t step, int64_t length, Scaled* parts) {
    V totals[kLines];
    std::fill_n(totals, kLines, broadcast(static_cast<Tally>(1)));
    Watch<Tally, kLanes> watch;
    for (int64_t i = 0; i < length;) {
      const int64_t end = std::min(length, i + kFactors * kLanes);
      for (; i < end; i += kLanes) {
        for (int64_t s = 0; s < kLines; ++s) totals[s] *= load_wide<T, Tally>(in + s * step + i * kSize);
      }
      for (const V& total : totals) watch.look(total);
    }
    if (!watch.all_moderate()) return reduce_scaled(in, step, length, parts);
    for (int64_t s = 0; s < kLines; ++s) parts[s] = normalised(in_pairs(totals[s]), 0);
  }

  static double in_pairs(V v) {
    double totals[kLanes];
    for (int64_t k = 0; k < kLanes; ++k) totals[k] = v[k];
    for (int64_t distance = 1; distance < kLanes; distance *= 2) {
      for (int64_t k = 0; k < kLanes; k += 2 * distance) totals[k] *= totals[k + distance];
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
