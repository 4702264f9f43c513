// Products of floats that lie next to each other, a vector at a time, in either direction. With p the
// products of four neighbours among themselves and t the product before them,
//   y(i) = t * p(i),   t' = t * p(last).
// As long as t is moderate, or 0, infinite or NaN, no order of these takes a finite product out of its range.
// Where it is not, t goes on as m * 2^e, a line at a time. A long row that several threads share goes in
// blocks, C' = C * T, whose totals T they reduce first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "platform/isa.h"
#include "scan/accumulator.h"
#include "scan/scaled_float.h"
#include "scan/vector_prefix.h"
#include "simd/vector.h"
#include "stores/nontemporal.h"
#include "stores/realigning_store.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, bool kExclusive, bool kDown>
class ProductScan {
 public:
  using State = ScaledFloat;
  static State identity() { return {}; }

  // As VectorScan's; a block's product goes on from that of the blocks before.
  template <StoreMode kMode>
  ANYDML_NOINLINE static void scan_block(const std::byte* in, std::byte* out, int64_t size,
                                         ScaledFloat& total, const std::byte* prefetch_from,
                                         PendingStore& pending) {
    RealigningStore<kMode, kDown> sink(pending);
    sink.begin(out, size * kSize);
    for (int64_t i = 0; i < size;) {
      if (is_moderate(total)) {
        V before = broadcast(static_cast<Accumulator>(total.m));
        i = scan_moderate(in, out, size, i, before, prefetch_from, sink);
        total = normalised(before[0], 0);
      }
      if (i < size) i = scan_scaled(in, out, size, i, total, sink);
    }
  }

  template <StoreMode kMode>
  ANYDML_NOINLINE static void scan_rows(const std::byte* in, int64_t in_step, std::byte* out,
                                        int64_t out_step, int64_t size, int64_t rows, PendingStore& pending) {
    RealigningStore<kMode, kDown> sink(pending);
    for (int64_t r = 0; r < rows; ++r, in += in_step, out += out_step) {
      V before = broadcast(Accumulator{1});
      sink.begin(out, size * kSize);
      const int64_t done = scan_moderate(in, out, size, 0, before, At::ahead(in), sink);
      if (done == size) continue;
      ScaledFloat total = normalised(before[0], 0);
      const int64_t left = size - done;
      const int64_t at = At::element(size, done, left);
      sink.leave();
      scan_block<kMode>(in + at, out + at, left, total, At::ahead(in + at), pending);
      sink.enter();
    }
  }

  ANYDML_NOINLINE static ScaledFloat reduce(const std::byte* in, int64_t size) {
    V parts[kVectors];
    std::fill_n(parts, kVectors, broadcast(Accumulator{1}));
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) {
      const std::byte* const line = in + At::element(size, i, kPerLine);
      prefetch_line(At::ahead(line));
      for (int k = 0; k < kVectors; ++k) parts[k] *= load_wide<T, Accumulator>(line + At::piece(k, kVectors));
      if (i / kPerLine % kFactors == kFactors - 1 && !are_moderate(parts)) return reduce_scaled(in, size);
    }
    if (!are_moderate(parts)) return reduce_scaled(in, size);
    ScaledFloat product;
    for (const V& part : parts) product = times_all(product, part);
    for (; i < size; ++i) product = times(product, widen<T, double>(in + At::element(size, i)));
    return product;
  }

 private:
  using Accumulator = AccumulatorOf<T>;
  using V = Vector<Accumulator>;
  using Prefix = VectorPrefix<Accumulator, Product, kDown>;
  using Doubles = VectorPrefix<double, Product, kDown>;
  using At = IndexOrder<T, kDown>;
  using Rest = PartialLine<T, Product, kDown>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kPerLine = At::kPerLine;
  static constexpr int kLanes = Prefix::kLanes;
  static constexpr int kVectors = kPerLine / kLanes;
  // So many of them are combined with a moderate product, and come to a normal number still.
  static constexpr int kFactors = 4;

  // As a tally, which might be infinite or 0 where it is not.
  static bool is_moderate(ScaledFloat total) {
    const auto accumulator = static_cast<Accumulator>(total.m);
    return total.e == 0 && RangeGuard<Accumulator>::holds(accumulator) &&
           std::isinf(accumulator) == std::isinf(total.m) && (accumulator == 0) == (total.m == 0);
  }
  static bool are_moderate(const V* parts) {
    using M = RangeGuard<Accumulator>;
    Vector<typename M::Bits> beyond = {};
    for (int k = 0; k < kVectors; ++k) beyond |= M::beyond(parts[k]);
    return M::none_of(beyond);
  }

  // From the i-th element on, as long as the product stays moderate; returns where it did not, at a line.
  template <class Outputs>
  ANYDML_INLINE static int64_t scan_moderate(const std::byte* in, std::byte* out, int64_t size, int64_t i,
                                             V& before, const std::byte* prefetch_from, Outputs& outputs) {
    while (i < size) {
      if (!outputs.at_shared_granule()) {
        bool went_well = true;
        i = over_lines<T, V, kDown, Outputs::kStreams>(in, size, i, [&](const auto& line, int64_t at) {
          prefetch_line(prefetch_from + at);
          return went_well = scan_line(line, out + at, before, outputs);
        });
        if (!went_well) return i;
      }
      if (const int64_t count = std::min(kPerLine, size - i); count > 0) {
        const int64_t at = At::element(size, i, count);
        if (!scan_rest(in + at, count, out + at, before, outputs)) return i;
        i += count;
      }
    }
    return i;
  }

  // Whether all went well; else nothing is written.
  template <class Outputs>
  ANYDML_INLINE static bool scan_line(const Line<T, V, kDown>& line, std::byte* out, V& before,
                                      Outputs& outputs) {
    V y[kVectors];
    if (!multiply([&](int k) { return line.x[k]; }, before, y)) return false;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) outputs.template put<T>(out + At::piece(k, kVectors), y[k]);
    return true;
  }
  // Of a line, or less.
  template <class Outputs>
  ANYDML_INLINE static bool scan_rest(const std::byte* in, int64_t count, std::byte* out, V& before,
                                      Outputs& outputs) {
    const Rest rest(in, count);
    V y[kVectors];
    if (!multiply([&](int k) { return rest.vector(k); }, before, y)) return false;
    Piece pieces[kVectors];
    for (int k = 0; k < kVectors; ++k) pieces[k] = narrow_row<T, Piece>(y[k]);
    put_pieces<kDown>(outputs, out, pieces, count * kSize);
    return true;
  }

  // A line's vectors x(k); whether the product was moderate wherever it went on from. Else `before` stays. Of
  // halves those are as many places as a vector has lanes, which are asked at once; singles' are asked one by
  // one, as there are too few.
  template <class Load>
  ANYDML_INLINE static bool multiply(const Load& x, V& before, V* y) {
    constexpr bool kHalves = kLanes > kFactors;
    using M = RangeGuard<Accumulator>;
    V t = before;
    V passed = t;
    bool holds = true;
    for_each_index<kVectors>([&]<int k> {
      const V p = Prefix::scan_quads(x(k));
      V from = t;
      if constexpr (kHalves) {
        const V middle = t * Prefix::middle_of(p);
        passed = with_lane<2 * k + 1>(with_lane<2 * k>(passed, t), middle);
        from = Prefix::halves_of(t, middle);
        t = middle;
      } else {
        holds = holds && M::holds(t[0]);
      }
      y[k] = from * p;
      if constexpr (kExclusive) y[k] = Prefix::shift_in(from, y[k]);
      t *= Prefix::last_of(p);
    });
    if constexpr (kHalves) holds = M::none_of(M::beyond(passed));
    if (holds) before = t;
    return holds;
  }

  // From the i-th element on, a line or what is left of one, and on until the product is moderate; returns
  // where.
  template <class Outputs>
  ANYDML_INLINE static int64_t scan_scaled(const std::byte* in, std::byte* out, int64_t size, int64_t i,
                                           ScaledFloat& total, Outputs& outputs) {
    do {
      const int64_t count = std::min(kPerLine, size - i);
      const int64_t at = At::element(size, i, count);
      Piece y[kPieces];
      if (count == kPerLine && !outputs.at_shared_granule()) {
        scale_line(in + at, y, total);
        for (int k = 0; k < kPieces; ++k) outputs.put_piece(out + at + At::piece(k, kPieces), y[k]);
      } else {
        scale_line(Rest(in + at, count).bytes(), y, total);
        put_pieces<kDown>(outputs, out + at, y, count * kSize);
      }
      i += count;
    } while (i < size && !is_moderate(total));
    return i;
  }

  // Within a line m waits for multiplications alone, by what is within 1 to 2; for as many steps it stays
  // moderate. From 2^-700 down, and from 2^900 up, four factors more make 0 and infinity of floats.
  ANYDML_NOINLINE static void scale_line(const std::byte* in, Piece* out, ScaledFloat& total) {
    if (total.e < kFar && skip_line(in, total)) {
      std::fill_n(out, kPieces, Piece{});
      return;
    }
    ScaledFloat t = total;
#pragma GCC unroll 4
    for (int k = 0; k < kPieces; ++k) {
      Vector<float, 4> y[kSteps];
#pragma GCC unroll 2
      for (int step = 0; step < kSteps; ++step) {
        const Vector<double> p = four_of(in, k * kSteps + step);
        const Vector<double> before = broadcast(t.m * power_of_two(std::clamp<int64_t>(t.e, -700, 900)));
        const Vector<double> next = before * p;
        y[kDown ? kSteps - 1 - step : step] = to_singles(kExclusive ? Doubles::shift_in(before, next) : next);
        take(t, Doubles::last_of(p)[0]);
      }
      out[k] = as_elements(y);
    }
    total = normalised(t.m, t.e);
  }

  // From so far down no line comes back to what is not 0.
  static constexpr int64_t kFar = -200 - 128 * 32;

  // Whether all that is multiplied in a line is finite; else nothing is done.
  ANYDML_INLINE static bool skip_line(const std::byte* line, ScaledFloat& total) {
    Vector<double> p = broadcast(1.0);
    for (int k = 0; k < kPieces * kSteps; ++k) {
      p *= load_wide<T, double>(line + At::piece(k, kPieces * kSteps));
    }
    ScaledFloat t = total;
    for (int lane = 0; lane < Doubles::kLanes; ++lane) take(t, p[lane]);
    if (!std::isfinite(t.m)) return false;
    total = normalised(t.m, t.e);
    return true;
  }

  // Steps of four elements.
  static constexpr int kPieces = kLine / kPiece;
  static constexpr int kSteps = kPerLine / kPieces / Doubles::kLanes;

  // The products of four elements of a line among themselves, the k-th of as many.
  ANYDML_INLINE static Vector<double> four_of(const std::byte* line, int k) {
    return Doubles::all(load_wide<T, double>(line + At::piece(k, kPieces * kSteps)));
  }
  // Without bringing m back to within 1 to 2.
  static void take(ScaledFloat& t, double p) {
    const ScaledFloat factor = one_to_two(p);
    t.m *= factor.m;
    t.e += factor.e;
  }
  ANYDML_INLINE static Piece as_elements(const Vector<float, 4>* singles) {
    if constexpr (kSteps == 1) {
      return (Piece)singles[0];
    } else {
      return narrow_row<T, Piece>(__builtin_shufflevector(singles[0], singles[1], 0, 1, 2, 3, 4, 5, 6, 7));
    }
  }

  static ScaledFloat times(ScaledFloat product, double factor) {
    return normalised(product.m * factor, product.e);
  }

  // As many moderate lanes at once as a double holds the product of.
  static ScaledFloat times_all(ScaledFloat product, V lanes) {
    constexpr int kAtOnce = sizeof(Accumulator) == 8 ? 1 : 4;
    for (int lane = 0; lane < kLanes; lane += kAtOnce) {
      double factor = lanes[lane];
      for (int k = 1; k < kAtOnce; ++k) factor *= lanes[lane + k];
      product = product * ScaledFloat{factor};
    }
    return product;
  }

  static ScaledFloat reduce_scaled(const std::byte* in, int64_t size) {
    ScaledFloat product;
    const auto take_line = [&](const std::byte* line) {
      for (int k = 0; k < kPieces * kSteps; ++k) take(product, Doubles::last_of(four_of(line, k))[0]);
      product = normalised(product.m, product.e);
    };
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) take_line(in + At::element(size, i, kPerLine));
    if (i < size) take_line(Rest(in + At::element(size, i, size - i), size - i).bytes());
    return product;
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
