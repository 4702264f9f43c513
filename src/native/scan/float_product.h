// Vectorised prefix products of contiguous floats, upwards or downwards, with a guard against overflow and
// underflow of the accumulator. With p the products of four neighbours among themselves and t the product
// before them,
//   y(i) = t * p(i),   t' = t * p(last).
// As long as t is in a middle range, or 0, infinite or NaN, no order of these operations takes a finite
// product out of the accumulator's range. Where t leaves it, it goes on as a scaled float m * 2^e, one cache
// line at a time. A long row that several threads share goes in blocks, C' = C * T, whose totals T they
// reduce first.
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

template <class T, bool kDown>
class ProductScan {
 public:
  using State = ScaledFloat;
  static State identity() { return {}; }

  // Scans rows, or a block of one, as VectorScan does.
  template <StoreMode kStoreMode>
  ANYDML_NOINLINE static void scan_rows(const std::byte* in, int64_t in_step, std::byte* out,
                                        int64_t out_step, int64_t size, int64_t rows, ScaledFloat& total,
                                        bool exclusive, int64_t distance, RealigningBuffer& buffer) {
    RealigningStore<kStoreMode, kDown> outputs(buffer);
    bool in_range = is_in_range(total);
    V before = spread(total);
    for (int64_t r = 0; r < rows; ++r, in += in_step, out += out_step) {
      outputs.begin(out, size * kSize);
      for (int64_t i = 0; i < size;) {
        if (in_range) i = scan_in_range(in, out, size, i, exclusive, before, in + distance, outputs);
        if (i == size) break;
        if (in_range) total = normalised(before[0], 0);
        outputs.save_state();
        i = scan_scaled<kStoreMode>(in, out, size, i, exclusive, total, buffer);
        outputs.load_state();
        in_range = i < size;
        before = spread(total);
      }
      if (r + 1 == rows) break;
      in_range = true;
      before = broadcast(Accumulator{1});
    }
    if (in_range) total = normalised(before[0], 0);
  }

  ANYDML_NOINLINE static ScaledFloat reduce(const std::byte* in, int64_t size) {
    V parts[kVectors];
    std::fill_n(parts, kVectors, broadcast(Accumulator{1}));
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) {
      const std::byte* const line = in + Order::element(size, i, kPerLine);
      prefetch_line(Order::prefetch_address(line));
      for (int k = 0; k < kVectors; ++k)
        parts[k] *= load_wide<T, Accumulator>(line + Order::part(k, kVectors));
      if (i / kPerLine % kFactors == kFactors - 1 && !are_in_range(parts)) return reduce_scaled(in, size);
    }
    if (!are_in_range(parts)) return reduce_scaled(in, size);
    ScaledFloat product;
    for (const V& part : parts) product = times_all(product, part);
    for (; i < size; ++i) product = times(product, widen<T, double>(in + Order::element(size, i)));
    return product;
  }

 private:
  using Accumulator = AccumulatorOf<T>;
  using V = Vector<Accumulator>;
  using Prefix = VectorPrefix<Accumulator, Product, kDown>;
  using Doubles = VectorPrefix<double, Product, kDown>;
  using Order = IndexOrder<T, kDown>;
  using Rest = PartialLine<T, Product, kDown>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kPerLine = Order::kPerLine;
  static constexpr int kLanes = Prefix::kLanes;
  static constexpr int kVectors = kPerLine / kLanes;
  // So many factors take a product that is in range to no number that is not normal.
  static constexpr int kFactors = 4;

  // Whether the product is in range as an accumulator, which may round a finite product to infinity or 0.
  static bool is_in_range(ScaledFloat total) {
    const auto accumulator = static_cast<Accumulator>(total.m);
    return total.e == 0 && RangeGuard<Accumulator>::contains(accumulator) &&
           std::isinf(accumulator) == std::isinf(total.m) && (accumulator == 0) == (total.m == 0);
  }
  // In every lane; a product keeps the sign of a zero, which broadcast() does not.
  static V spread(ScaledFloat total) { return broadcast(Accumulator{1}) * static_cast<Accumulator>(total.m); }
  static bool are_in_range(const V* parts) {
    using Guard = RangeGuard<Accumulator>;
    Vector<typename Guard::Bits> outside = {};
    for (int k = 0; k < kVectors; ++k) outside |= Guard::outside(parts[k]);
    return Guard::none_of(outside);
  }

  // Scans from the i-th element on, as long as the product stays in range; returns where it did not.
  template <class Outputs>
  ANYDML_INLINE static int64_t scan_in_range(const std::byte* in, std::byte* out, int64_t size, int64_t i,
                                             bool exclusive, V& before, const std::byte* prefetch_from,
                                             Outputs& outputs) {
    while (i < size) {
      if (!outputs.at_shared_granule()) {
        bool stays = true;
        i = over_lines<T, V, kDown, Outputs::kIsNonTemporal>(in, size, i, [&](const auto& line, int64_t at) {
          prefetch_line(prefetch_from + at);
          return stays = scan_line(line, out + at, exclusive, before, outputs);
        });
        if (!stays) return i;
      }
      if (const int64_t count = std::min(kPerLine, size - i); count > 0) {
        const int64_t at = Order::element(size, i, count);
        if (!scan_rest(in + at, count, out + at, exclusive, before, outputs)) return i;
        i += count;
      }
    }
    return i;
  }

  // Writes nothing where the product leaves the range; returns whether it stays.
  template <class Outputs>
  ANYDML_INLINE static bool scan_line(const Line<T, V, kDown>& line, std::byte* out, bool exclusive,
                                      V& before, Outputs& outputs) {
    V y[kVectors];
    if (!multiply([&](int k) { return line.x[k]; }, exclusive, before, y)) return false;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) outputs.template put<T>(out + Order::part(k, kVectors), y[k]);
    return true;
  }
  // The same for elements that do not fill a line.
  template <class Outputs>
  ANYDML_INLINE static bool scan_rest(const std::byte* in, int64_t count, std::byte* out, bool exclusive,
                                      V& before, Outputs& outputs) {
    const Rest rest(in, count);
    const auto vectors = static_cast<int>((count + kLanes - 1) / kLanes);
    V y[kVectors];
    if (!multiply([&](int k) { return rest.vector(k); }, exclusive, before, y, vectors)) return false;
    Granule granules[kVectors] = {};
    for (int k = 0; k < vectors; ++k) granules[k] = narrow_row<T, Granule>(y[k]);
    put_granules<kDown>(outputs, out, granules, count * kSize);
    return true;
  }

  // Multiplies a line's vectors x(k), or the first ones of a line that has ones behind them; returns whether
  // every product that four factors were combined with was in range, and leaves `before` as it was where one
  // was not. A line of halves has as many of these products as a vector has lanes, which are tested at once;
  // a line of singles has fewer, which are tested one by one.
  template <class Load>
  ANYDML_INLINE static bool multiply(const Load& x, bool exclusive, V& before, V* y, int vectors = kVectors) {
    constexpr bool kHalves = kLanes > kFactors;
    using Guard = RangeGuard<Accumulator>;
    V t = before;
    V passed = t;
    bool in_range = true;
    for_each_index<kVectors>([&]<int k> {
      if (k > vectors) return;
      if (k == vectors) {
        // What ones are combined with is tested, as it is of a whole line.
        if constexpr (kHalves) {
          passed = with_lane<2 * k>(passed, t);
        } else {
          in_range = in_range && Guard::contains(t[0]);
        }
        return;
      }
      const V p = Prefix::scan_quads(x(k));
      V from = t;
      if constexpr (kHalves) {
        const V middle = t * Prefix::middle_of(p);
        passed = with_lane<2 * k + 1>(with_lane<2 * k>(passed, t), middle);
        from = Prefix::halves_of(t, middle);
        t = middle;
      } else {
        in_range = in_range && Guard::contains(t[0]);
      }
      y[k] = from * p;
      t *= Prefix::last_of(p);
    });
    if constexpr (kHalves) in_range = Guard::none_of(Guard::outside(passed));
    if (exclusive) Prefix::shift_in(before, y, kVectors);
    if (in_range) before = t;
    return in_range;
  }

  // Scans from the i-th element on, a line or what is left of one at a time, until the product is in range
  // again; returns where.
  template <StoreMode kStoreMode>
  ANYDML_NOINLINE static int64_t scan_scaled(const std::byte* in, std::byte* out, int64_t size, int64_t i,
                                             bool exclusive, ScaledFloat& total, RealigningBuffer& buffer) {
    RealigningStore<kStoreMode, kDown> outputs(buffer);
    do {
      const int64_t count = std::min(kPerLine, size - i);
      const int64_t at = Order::element(size, i, count);
      Granule y[kGranules];
      if (count == kPerLine && !outputs.at_shared_granule()) {
        scale_line(in + at, y, exclusive, total);
        for (int k = 0; k < kGranules; ++k) outputs.put_granule(out + at + Order::part(k, kGranules), y[k]);
      } else {
        scale_line(Rest(in + at, count).bytes(), y, exclusive, total);
        put_granules<kDown>(outputs, out + at, y, count * kSize);
      }
      i += count;
    } while (i < size && !is_in_range(total));
    return i;
  }

  // Within a line, m is only multiplied by numbers from 1 to 2, so that it needs no renormalisation. At
  // 2^-700 and below, and at 2^900 and above, four more factors give 0 and infinity as floats, so that the
  // exponent is clamped.
  ANYDML_NOINLINE static void scale_line(const std::byte* in, Granule* out, bool exclusive,
                                         ScaledFloat& total) {
    if (total.e < kFar && skip_line(in, total)) {
      std::fill_n(out, kGranules, Granule{});
      return;
    }
    ScaledFloat t = total;
#pragma GCC unroll 4
    for (int k = 0; k < kGranules; ++k) {
      Vector<float, 4> y[kSteps];
#pragma GCC unroll 2
      for (int step = 0; step < kSteps; ++step) {
        const Vector<double> p = four_of(in, k * kSteps + step);
        const Vector<double> before = broadcast(t.m * power_of_two(std::clamp<int64_t>(t.e, -700, 900)));
        const Vector<double> next = before * p;
        y[kDown ? kSteps - 1 - step : step] = to_singles(exclusive ? Doubles::shift_in(before, next) : next);
        take(t, Doubles::last_of(p)[0]);
      }
      out[k] = as_elements(y);
    }
    total = normalised(t.m, t.e);
  }

  // Below this exponent no line of factors comes back to an output that is not 0.
  static constexpr int64_t kFar = -200 - 128 * 32;

  // Multiplies a line whose outputs are all 0, unless a factor is not finite; returns whether it did.
  ANYDML_INLINE static bool skip_line(const std::byte* line, ScaledFloat& total) {
    Vector<double> p = broadcast(1.0);
    for (int k = 0; k < kGranules * kSteps; ++k) {
      p *= load_wide<T, double>(line + Order::part(k, kGranules * kSteps));
    }
    ScaledFloat t = total;
    for (int lane = 0; lane < Doubles::kLanes; ++lane) take(t, p[lane]);
    if (!std::isfinite(t.m)) return false;
    total = normalised(t.m, t.e);
    return true;
  }

  // A granule is computed in steps of four elements.
  static constexpr int kGranules = kLine / kGranule;
  static constexpr int kSteps = kPerLine / kGranules / Doubles::kLanes;

  // The prefix products of the k-th four elements of a line.
  ANYDML_INLINE static Vector<double> four_of(const std::byte* line, int k) {
    return Doubles::all(load_wide<T, double>(line + Order::part(k, kGranules * kSteps)));
  }
  // Multiplies without bringing m back to the range from 1 to 2.
  static void take(ScaledFloat& t, double p) {
    const ScaledFloat factor = one_to_two(p);
    t.m *= factor.m;
    t.e += factor.e;
  }
  ANYDML_INLINE static Granule as_elements(const Vector<float, 4>* singles) {
    if constexpr (kSteps == 1) {
      return (Granule)singles[0];
    } else {
      return narrow_row<T, Granule>(__builtin_shufflevector(singles[0], singles[1], 0, 1, 2, 3, 4, 5, 6, 7));
    }
  }

  static ScaledFloat times(ScaledFloat product, double factor) {
    return normalised(product.m * factor, product.e);
  }

  // Multiplies by as many lanes at once as a double holds the product of.
  static ScaledFloat times_all(ScaledFloat product, V lanes) {
    constexpr int kAtOnce = sizeof(Accumulator) == 8 ? 1 : 4;
    for (int lane = 0; lane < kLanes; lane += kAtOnce) {
      double factor = lanes[lane];
      for (int k = 1; k < kAtOnce; ++k) factor *= lanes[lane + k];
      product = product * ScaledFloat{factor};
    }
    return product;
  }

  ANYDML_NOINLINE static ScaledFloat reduce_scaled(const std::byte* in, int64_t size) {
    ScaledFloat product;
    const auto take_line = [&](const std::byte* line) {
      for (int k = 0; k < kGranules * kSteps; ++k) take(product, Doubles::last_of(four_of(line, k))[0]);
      product = normalised(product.m, product.e);
    };
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) take_line(in + Order::element(size, i, kPerLine));
    if (i < size) take_line(Rest(in + Order::element(size, i, size - i), size - i).bytes());
    return product;
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
