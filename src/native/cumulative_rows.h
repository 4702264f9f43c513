// Scans along an axis whose elements lie next to each other in memory, in either direction.
//
// What depends on the element before can't be done for neighbours at once, so lines abreast are: kLines of
// them, whose elements are brought across into vectors and back. With t(s) the tally of line s,
//   y(s, i) = t(s) o x(s, i),   t'(s) = y(s, i)   (exclusive: y(s, i) = t(s)).
// Of short rows, each is a line. A long row is cut into blocks of kBlock elements, and a block into kLines
// segments, which are the lines. With T(s) the total of segment s and C the tally of the blocks before,
//   t(s) = C o (T(0) o ... o T(s - 1)),   C' = C o (T(0) o ... o T(kLines - 1) o what is left of the block):
// no T depends on C, so that one thread that carries C along and several that first reduce blocks to their
// totals get the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cumulative_integers.h"
#include "cumulative_stage.h"
#include "cumulative_tally.h"
#include "isa.h"
#include "memory.h"
#include "stream.h"
#include "transpose.h"
#include "vector.h"

ANYDML_ISA_BEGIN

// A block, the one that comes next and the stage of outputs share the first cache.
inline constexpr int64_t kBlock = 1024;
inline constexpr int64_t kLines = 8;
// Rows shorter than that are not cut.
inline constexpr int64_t kSegmented = 128;
static_assert(kLines * kSegmented <= kBlock, "as many rows as go abreast fit a block");

#if defined(ANYDML_VECTORS)

// What is read next, which memory brings meanwhile, two lines at a time: rows of `width` bytes, `step` apart.
class Ahead {
 public:
  explicit Ahead(const std::byte* first, int64_t width = 1 << 30, int64_t step = 0)
      : at_(first), left_(width), width_(width), step_(step - width) {}
  ANYDML_INLINE void bring_lines() {
    __builtin_prefetch(at_, 0, 1);
    __builtin_prefetch(at_ + kLine, 0, 1);
    at_ += 2 * kLine;
    left_ -= 2 * kLine;
    if (left_ > 0) return;
    at_ += step_;
    left_ = width_;
  }

 private:
  const std::byte* at_;
  int64_t left_;
  int64_t width_;
  int64_t step_;
};

// Walking up or down in memory. `in` and `out` are where a part's elements lie lowest, and may be the same.
template <class T, class Operation, bool kExclusive, bool kDown>
class RowScan {
  static constexpr int64_t kSize = sizeof(T);
  // Where no order of combining changes the result, or none takes it out of range.
  static constexpr bool kScaled = kIsFloat<T> && std::is_same_v<Operation, Product>;

 public:
  using Tally = TallyOf<T>;
  using State = std::conditional_t<kScaled, Scaled, Tally>;

  static State identity() {
    if constexpr (kScaled) {
      return Scaled{};
    } else {
      return static_cast<Tally>(Operation::kIdentity);
    }
  }

  // What of a block lies before each segment, before what is left, and in all: T(0) o ... o T(s - 1).
  struct SegmentTotals {
    State before[kLines + 1];
    State all;
  };
  struct Total {
    State all;
  };
  using Totals = std::conditional_t<kIsFloat<T>, SegmentTotals, Total>;

  static Totals reduce_block(const std::byte* in, int64_t size) {
    if constexpr (kIsFloat<T>) {
      return reduce_segments(in, size);
    } else {
      return {reduce(in, size)};
    }
  }

  // `tally` is that of the blocks before, and becomes that of those up to this one. Meanwhile memory brings
  // the block at `coming`, which is read next: reducing it would wait for each of its lines.
  static void scan_block(const std::byte* in, std::byte* out, int64_t size, State& tally,
                         const Totals& totals, const std::byte* coming, Stage& stage) {
    if constexpr (kIsFloat<T>) {
      scan_reduced(in, out, size, tally, totals, coming, stage);
      tally = Operation::combine(tally, totals.all);
    } else {
      IntegerScan<T, Operation, kExclusive, kDown>::scan(in, out, size, tally, coming, stage);
    }
  }

  // The same of a block that is not reduced yet.
  static void scan_block(const std::byte* in, std::byte* out, int64_t size, State& tally,
                         const std::byte* coming, Stage& stage) {
    if constexpr (kIsFloat<T>) {
      scan_block(in, out, size, tally, reduce_block(in, size), coming, stage);
    } else {
      IntegerScan<T, Operation, kExclusive, kDown>::scan(in, out, size, tally, coming, stage);
    }
  }

  // kLines lines of `size` elements, in_step and out_step apart.
  static void scan_lines(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step, int64_t size,
                         Tally* tallies, Ahead coming, Stage& stage) {
    Squares squares(tallies);
    scan_squares(squares, in, in_step, out, out_step, size, coming, stage);
    squares.store(tallies);
    const int64_t done = size / kSquare * kSquare;
    if (done == size) return;
    const int64_t rest = element(size, done, size - done);
    for (int64_t s = 0; s < kLines; ++s) {
      scan_line(in + s * in_step + rest, out + s * out_step + rest, size - done, tallies[s]);
    }
  }

  // The same of an input in which the lines are neighbours, and their elements in_step apart; `in` is the
  // first that is traversed.
  static void scan_neighbours(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step,
                              int64_t size, Tally* tallies) {
    int64_t done = 0;
    Squares squares(tallies);
    for (; done + kSquare <= size; done += kSquare) {
      squares.scan_neighbours(in + done * in_step, in_step, out + element(size, done, kSquare), out_step);
    }
    squares.store(tallies);
    for (; done < size; ++done) {
      for (int64_t s = 0; s < kLines; ++s) {
        advance_one<T, Operation, kExclusive>(tallies[s], in + done * in_step + s * kSize,
                                              out + s * out_step + element(size, done));
      }
    }
  }

  // One line, one by one.
  static void scan_line(const std::byte* in, std::byte* out, int64_t size, Tally& tally) {
    for (int64_t i = 0; i < size; ++i)
      advance_one<T, Operation, kExclusive>(tally, in + element(size, i), out + element(size, i));
  }

  static Tally tally_of(State state) {
    if constexpr (kScaled) {
      return static_cast<Tally>(state.m * root_of_scale(state.e, false) * root_of_scale(state.e, true));
    } else {
      return state;
    }
  }

 private:
  static SegmentTotals reduce_segments(const std::byte* in, int64_t size) {
    SegmentTotals totals;
    const int64_t length = segment(size);
    // In the order of memory.
    State parts[kLines];
    const int64_t lowest = element(size, 0, kLines * length);
    for (int64_t k = 0; k < kLines; ++k) {
      const int64_t s = kDown ? kLines - 1 - k : k;
      parts[s] = reduce(in + lowest + k * length * kSize, length);
    }
    State sum = identity();
    for (int64_t s = 0; s < kLines; ++s) {
      totals.before[s] = sum;
      sum = Operation::combine(sum, parts[s]);
    }
    totals.before[kLines] = sum;
    const int64_t left = size - kLines * length;
    totals.all =
        left == 0 ? sum : Operation::combine(sum, reduce(in + element(size, kLines * length, left), left));
    return totals;
  }

  // `before` is C.
  static void scan_reduced(const std::byte* in, std::byte* out, int64_t size, State before,
                           const SegmentTotals& totals, const std::byte* coming, Stage& stage) {
    const int64_t length = segment(size);
    State bases[kLines + 1];
    Tally tallies[kLines];
    for (int64_t s = 0; s <= kLines; ++s) bases[s] = Operation::combine(before, totals.before[s]);
    for (int64_t s = 0; s < kLines; ++s) tallies[s] = tally_of(bases[s]);
    const int64_t left = size - kLines * length;
    const int64_t rest = element(size, kLines * length, left);
    if constexpr (kScaled) {
      scan_segments(in, out, size, bases, tallies, totals, coming, stage);
      scan_scaled(in + rest, out + rest, left, bases[kLines]);
    } else {
      const int64_t first = element(size, 0, length);
      const int64_t step = kDown ? -length * kSize : length * kSize;
      scan_lines(in + first, step, out + first, step, length, tallies, Ahead(coming), stage);
      scan_line(in + rest, out + rest, left, bases[kLines]);
    }
  }

  // The elements of a segment, a multiple of those that are reduced at once.
  static int64_t segment(int64_t size) { return size / kLines / kAbreast * kAbreast; }

  // Where the i-th element traversed, or the lowest of the `count` from it on, lies in a part of that size.
  static int64_t element(int64_t size, int64_t i, int64_t count = 1) {
    return kSize * (kDown ? size - i - count : i);
  }

  // Totals of elements kAbreast apart, and then of these, in pairs; what is left, one by one.
  static constexpr int64_t kAbreast = 8;

  static State reduce(const std::byte* in, int64_t size) {
    if constexpr (kScaled) {
      return reduce_scaled(in, size);
    } else {
      return reduce_plainly(in, size);
    }
  }

  static Tally reduce_plainly(const std::byte* in, int64_t size) {
    Tally totals[kAbreast];
    std::fill_n(totals, kAbreast, static_cast<Tally>(Operation::kIdentity));
    int64_t i = 0;
    using V = Vector<Tally>;
    constexpr int64_t kLanes = kVectorBytes / sizeof(Tally);
    V sums[kAbreast / kLanes];
    for (V& sum : sums) sum = broadcast(static_cast<Tally>(Operation::kIdentity));
    for (; i + kAbreast <= size; i += kAbreast) {
      for (int64_t k = 0; k < kAbreast / kLanes; ++k) {
        sums[k] = Operation::combine(sums[k], load_wide<T, Tally>(in + (i + k * kLanes) * kSize));
      }
    }
    for (int64_t k = 0; k < kAbreast; ++k) totals[k] = sums[k / kLanes][k % kLanes];
    for (int64_t k = 0; i < size; ++i, ++k) {
      totals[k] = Operation::combine(totals[k], widen<T, Tally>(in + i * kSize));
    }
    for (int64_t distance = 1; distance < kAbreast; distance *= 2) {
      for (int64_t k = 0; k < kAbreast; k += 2 * distance) {
        totals[k] = Operation::combine(totals[k], totals[k + distance]);
      }
    }
    return totals[0];
  }

  // So many factors, floats within 2^-149 to 2^128 or halves within 2^-24 to 2^16, are multiplied before a
  // product that has left 2^-256 to 2^256 is put back; so normal doubles hold it on the way.
  static constexpr int64_t kFactors = kSize == 2 ? 16 : 4;

  static Scaled reduce_scaled(const std::byte* in, int64_t size) {
    using V = Vector<double>;
    V products[2] = {broadcast(1.0), broadcast(1.0)};
    Vector<int64_t> exponents[2] = {};
    int64_t i = 0;
    while (i + kAbreast <= size) {
      const int64_t end = i + std::min(kFactors, (size - i) / kAbreast) * kAbreast;
      for (; i < end; i += kAbreast) {
        for (int64_t k = 0; k < 2; ++k) products[k] *= load_wide<T, double>(in + (i + k * 4) * kSize);
      }
      if (all_moderate(products)) continue;
      for (int64_t k = 0; k < 2; ++k) extract_exponents(products[k], exponents[k]);
    }
    for (int64_t k = 0; k < 2; ++k) extract_exponents(products[k], exponents[k]);
    const V product = products[0] * products[1];
    const Vector<int64_t> exponent = exponents[0] + exponents[1];
    Scaled total = normalised((product[0] * product[1]) * (product[2] * product[3]),
                              exponent[0] + exponent[1] + exponent[2] + exponent[3]);
    for (; i < size; ++i) total = normalised(total.m * widen<T, double>(in + i * kSize), total.e);
    return total;
  }

  // Whether all are within 2^-256 to 2^256.
  static bool all_moderate(const Vector<double>* v) {
    using Bits = Vector<uint64_t>;
    constexpr uint64_t kOffset = uint64_t{1023 - 256} << 52;
    constexpr uint64_t kBeyond = uint64_t{0x600} << 52;
    const Bits beyond = ((((Bits)v[0] << 1 >> 1) - kOffset) | (((Bits)v[1] << 1 >> 1) - kOffset)) & kBeyond;
    return (beyond[0] | beyond[1] | beyond[2] | beyond[3]) == 0;
  }

  // m to within 1 to 2, e to what makes up for it; zeros, infinities and NaNs stay.
  static void extract_exponents(Vector<double>& m, Vector<int64_t>& e) {
    constexpr uint64_t kExponent = 0x7ff;
    constexpr uint64_t kBias = 1023;
    using Bits = Vector<uint64_t>;
    const auto bits = (Bits)m;
    const Bits biased = bits >> 52 & kExponent;
    const Bits special = (Bits)(biased == 0) | (Bits)(biased == kExponent);
    e += (Vector<int64_t>)((biased - kBias) & ~special);
    m = (Vector<double>)((bits & special) | (((bits & ~(kExponent << 52)) | kBias << 52) & ~special));
  }

  class Squares;

  // As much of the lines as fills squares.
  ANYDML_INLINE static void scan_squares(Squares& squares, const std::byte* in, int64_t in_step,
                                         std::byte* out, int64_t out_step, int64_t size, Ahead coming,
                                         Stage& stage) {
    for (int64_t done = 0; done + kSquare <= size; done += kSquare) {
      const int64_t at = element(size, done, kSquare);
      squares.scan(in + at, in_step, out + at, out_step);
      static_assert(kLines * kSquareBytes == 2 * kLine);
      coming.bring_lines();
      stage.send_line();
      stage.send_line();
    }
  }

  // The segments of a block of floats to multiply. A product that leaves the tally's range on its way through
  // a segment comes back changed; then that segment is scanned again, by products that never leave theirs.
  static void scan_segments(const std::byte* in, std::byte* out, int64_t size, const Scaled* bases,
                            const Tally* tallies, const Totals& totals, const std::byte* coming,
                            Stage& stage) {
    const int64_t length = segment(size);
    alignas(64) std::byte copy[kBlock * kSize];
    if (in == out)
      in = static_cast<const std::byte*>(std::memcpy(copy, in, static_cast<size_t>(size * kSize)));
    const int64_t first = element(size, 0, length);
    const int64_t step = kDown ? -length * kSize : length * kSize;
    Squares squares(tallies);
    scan_squares(squares, in + first, step, out + first, step, length, Ahead(coming), stage);
    Tally least[kLines];
    Tally most[kLines];
    squares.store_extremes(least, most);
    for (int64_t s = 0; s < kLines; ++s) {
      const bool stayed =
          least[s] >= std::numeric_limits<Tally>::min() && most[s] <= std::numeric_limits<Tally>::max();
      if (stayed || never_returns(bases[s], totals.before[s + 1], length)) continue;
      scan_scaled(in + first + s * step, out + first + s * step, length, bases[s]);
    }
  }

  // Whether a product, once 0, infinite or NaN, or too large or too small to come back within a segment,
  // stays what the tally has made of it.
  static bool never_returns(Scaled base, Scaled after, int64_t length) {
    constexpr int64_t kLargestExponent = kSize == 2 ? 24 : 149;
    if (base.m == 0 || !std::isfinite(base.m)) return true;
    if (std::abs(base.e) < kLargestExponent * length + 1100) return false;
    return std::isfinite(after.m) && after.m != 0;
  }

  static void scan_scaled(const std::byte* in, std::byte* out, int64_t size, Scaled tally) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t at = element(size, i);
      const Scaled next = normalised(tally.m * widen<T, double>(in + at), tally.e);
      const Scaled y = kExclusive ? tally : next;
      narrow<T, double>(out + at, y.m * root_of_scale(y.e, false) * root_of_scale(y.e, true));
      tally = next;
    }
  }

  // As many elements of a line as 16 bytes hold, of kLines lines.
  static constexpr int64_t kSquare = kSquareBytes / kSize;

  class Squares {
   public:
    explicit Squares(const Tally* tallies) {
      for (int64_t g = 0; g < kGroups; ++g) {
        tallies_[g] = load_vector<V>(reinterpret_cast<const std::byte*>(tallies + g * kSquare));
        least_[g] = V{} + static_cast<Tally>(1);
        most_[g] = least_[g];
      }
    }
    void store(Tally* tallies) const {
      for (int64_t g = 0; g < kGroups; ++g) {
        store_vector(reinterpret_cast<std::byte*>(tallies + g * kSquare), tallies_[g]);
      }
    }
    // Of the magnitudes that a line's tally went through.
    void store_extremes(Tally* least, Tally* most) const {
      for (int64_t g = 0; g < kGroups; ++g) {
        store_vector(reinterpret_cast<std::byte*>(least + g * kSquare), least_[g]);
        store_vector(reinterpret_cast<std::byte*>(most + g * kSquare), most_[g]);
      }
    }

    ANYDML_INLINE void scan(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step) {
      for (int64_t g = 0; g < kGroups; ++g) {
        Row rows[kSquare];
        for (int64_t r = 0; r < kSquare; ++r) rows[r] = load<Row>(in + (g * kSquare + r) * in_step);
        transpose<BitsOf<T>>(rows);
        advance(g, rows, out, out_step);
      }
    }

    ANYDML_INLINE void scan_neighbours(const std::byte* in, int64_t in_step, std::byte* out,
                                       int64_t out_step) {
      for (int64_t g = 0; g < kGroups; ++g) {
        Row rows[kSquare];
        for (int64_t i = 0; i < kSquare; ++i) {
          rows[kDown ? kSquare - 1 - i : i] = load<Row>(in + i * in_step + g * kSquareBytes);
        }
        advance(g, rows, out, out_step);
      }
    }

   private:
    static constexpr int64_t kGroups = kLines / kSquare;
    using V = Vector<Tally, kSquare>;
    using Row = SquareRow<BitsOf<T>>;

    // The sign bit is the uppermost.
    static V magnitudes(V v) {
      using Bits = std::conditional_t<sizeof(Tally) == 8, uint64_t, uint32_t>;
      return (V)((Vector<Bits, kSquare>)v << 1 >> 1);
    }

    ANYDML_INLINE void advance(int64_t g, Row* rows, std::byte* out, int64_t out_step) {
      V tally = tallies_[g];
      for (int64_t i = 0; i < kSquare; ++i) {
        Row& row = rows[kDown ? kSquare - 1 - i : i];
        const V next = Operation::combine(tally, widen_row<T, V>(row));
        row = narrow_row<T, Row>(kExclusive ? tally : next);
        tally = next;
        if constexpr (kScaled) {
          const V magnitude = magnitudes(next);
          least_[g] = magnitude < least_[g] ? magnitude : least_[g];
          most_[g] = magnitude > most_[g] ? magnitude : most_[g];
        }
      }
      tallies_[g] = tally;
      transpose<BitsOf<T>>(rows);
      for (int64_t r = 0; r < kSquare; ++r) anydml::store(out + (g * kSquare + r) * out_step, rows[r]);
    }

    V tallies_[kGroups];
    V least_[kGroups];
    V most_[kGroups];
  };
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
