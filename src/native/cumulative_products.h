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

#include "cumulative_prefix.h"
#include "cumulative_scaled.h"
#include "cumulative_stage.h"
#include "cumulative_tally.h"
#include "isa.h"
#include "stream.h"
#include "vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T, bool kExclusive, bool kDown>
class ProductScan {
 public:
  using State = Scaled;
  static constexpr bool kCanStream = true;
  static State identity() { return {}; }

  // As VectorScan's; a block's product goes on from that of the blocks before.
  template <bool kStreams>
  ANYDML_APART static void scan_block(const std::byte* in, std::byte* out, int64_t size, Scaled& total,
                                      const std::byte* coming, Stage& stage) {
    for (int64_t i = 0; i < size;) {
      if (is_moderate(total)) {
        V before = broadcast(static_cast<Tally>(total.m));
        i = scan_moderate<kStreams>(in, out, size, i, before, coming, stage);
        total = normalised(before[0], 0);
      }
      if (i < size) i = scan_scaled<kStreams>(in, out, size, i, total);
    }
  }

  template <bool kStreams>
  ANYDML_APART static void scan_rows(const std::byte* in, int64_t in_step, std::byte* out, int64_t out_step,
                                     int64_t size, int64_t rows, Stage& stage) {
    for (int64_t r = 0; r < rows; ++r, in += in_step, out += out_step) {
      V before = broadcast(Tally{1});
      const int64_t done = scan_moderate<kStreams>(in, out, size, 0, before, in + kAhead, stage);
      if (done == size) continue;
      Scaled total = normalised(before[0], 0);
      const int64_t left = size - done;
      const int64_t at = At::element(size, done, left);
      scan_block<kStreams>(in + at, out + at, left, total, in + at + kAhead, stage);
    }
  }

  ANYDML_APART static Scaled reduce(const std::byte* in, int64_t size) {
    V parts[kVectors];
    std::fill_n(parts, kVectors, broadcast(Tally{1}));
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) {
      const std::byte* const line = in + At::element(size, i, kPerLine);
      for (int k = 0; k < kVectors; ++k) parts[k] *= load_wide<T, Tally>(line + At::piece(k, kVectors));
      if (i / kPerLine % kFactors == kFactors - 1 && !are_moderate(parts)) return reduce_scaled(in, size);
    }
    if (!are_moderate(parts)) return reduce_scaled(in, size);
    Scaled product;
    for (const V& part : parts) product = times_all(product, part);
    for (; i < size; ++i) product = times(product, widen<T, double>(in + At::element(size, i)));
    return product;
  }

 private:
  using Tally = TallyOf<T>;
  using V = Vector<Tally>;
  using Prefix = VectorPrefix<Tally, Product, kDown>;
  using Doubles = VectorPrefix<double, Product, kDown>;
  using At = Walk<T, kDown>;
  using Rest = LineRest<T, Product, kDown>;
  static constexpr int64_t kPerLine = At::kPerLine;
  static constexpr int kLanes = Prefix::kLanes;
  static constexpr int kVectors = kPerLine / kLanes;
  // So many of them are combined with a moderate product, and come to a normal number still.
  static constexpr int kFactors = 4;

  // As a tally, which might be infinite or 0 where it is not.
  static bool is_moderate(Scaled total) {
    const auto tally = static_cast<Tally>(total.m);
    return total.e == 0 && Moderate<Tally>::holds(tally) && std::isinf(tally) == std::isinf(total.m) &&
           (tally == 0) == (total.m == 0);
  }
  static bool are_moderate(const V* parts) {
    using M = Moderate<Tally>;
    Vector<typename M::Bits> beyond = {};
    for (int k = 0; k < kVectors; ++k) beyond |= M::beyond(parts[k]);
    typename M::Bits any = 0;
    for (int lane = 0; lane < kLanes; ++lane) any |= beyond[lane];
    return any == 0;
  }

  // From the i-th element on, as long as the product stays moderate; returns where it did not, at a line.
  template <bool kStreams>
  ANYDML_INLINE static int64_t scan_moderate(const std::byte* in, std::byte* out, int64_t size, int64_t i,
                                             V& before, const std::byte* coming, Stage& stage) {
    for (; i + kPerLine <= size; i += kPerLine) {
      const int64_t at = At::element(size, i, kPerLine);
      prefetch_line(coming + at);
      if (!scan_line<kStreams>(in + at, out + at, before)) break;
      if constexpr (!kStreams) stage.send_line();
    }
    if (i < size && i + kPerLine > size) {
      const int64_t at = At::element(size, i, size - i);
      Rest rest(in + at, size - i);
      if (scan_line<false>(rest.elements, rest.elements, before)) {
        std::memcpy(out + at, rest.at, rest.bytes);
        i = size;
      }
    }
    return i;
  }

  // Whether all went well; else nothing is written.
  template <bool kStreams>
  ANYDML_INLINE static bool scan_line(const std::byte* in, std::byte* out, V& before) {
    V outputs[kVectors];
    V t = before;
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      const V p = Prefix::fours(load_wide<T, Tally>(in + At::piece(k, kVectors)));
      if (!Moderate<Tally>::holds(t[0])) return false;
      V from = t;
      if constexpr (kLanes > kFactors) {
        const V middle = t * Prefix::middle_of(p);
        if (!Moderate<Tally>::holds(middle[0])) return false;
        from = Prefix::halves_of(t, middle);
        t = middle;
      }
      const V y = from * p;
      outputs[k] = kExclusive ? Prefix::moved_on(from, y) : y;
      t *= Prefix::last_of(p);
    }
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) put_wide<T, kStreams>(out + At::piece(k, kVectors), outputs[k]);
    before = t;
    return true;
  }

  // From the i-th element on, a line or what is left of one, and on until the product is moderate; returns
  // where.
  template <bool kStreams>
  ANYDML_INLINE static int64_t scan_scaled(const std::byte* in, std::byte* out, int64_t size, int64_t i,
                                           Scaled& total) {
    do {
      const int64_t end = std::min(size, i + kPerLine);
      const int64_t at = At::element(size, i, end - i);
      if (end - i == kPerLine) {
        scale_line<kStreams>(in + at, out + at, total);
      } else {
        Rest rest(in + at, end - i);
        scale_line<false>(rest.elements, rest.elements, total);
        std::memcpy(out + at, rest.at, rest.bytes);
      }
      i = end;
    } while (i < size && !is_moderate(total));
    return i;
  }

  // Within a line m waits for multiplications alone, by what is within 1 to 2; for as many steps it stays
  // moderate. From 2^-700 down, and from 2^900 up, four factors more make 0 and infinity of floats.
  template <bool kStreams>
  ANYDML_INLINE static void scale_line(const std::byte* in, std::byte* out, Scaled& total) {
    if (total.e < kFar && skip_line(in, total)) {
      std::memset(out, 0, kLine);
      return;
    }
    Scaled t = total;
#pragma GCC unroll 4
    for (int k = 0; k < kPieces; ++k) {
      Vector<float, 4> outputs[kSteps];
#pragma GCC unroll 2
      for (int step = 0; step < kSteps; ++step) {
        const Vector<double> p = four_of(in, k * kSteps + step);
        const Vector<double> before = broadcast(t.m * power_of_two(std::clamp<int64_t>(t.e, -700, 900)));
        const Vector<double> y = before * p;
        outputs[kDown ? kSteps - 1 - step : step] = to_singles(kExclusive ? Doubles::moved_on(before, y) : y);
        take(t, Doubles::last_of(p)[0]);
      }
      std::byte* const to = out + At::piece(k, kPieces);
      const auto written = as_elements(outputs);
      if constexpr (kStreams) {
        stream_half<uint16_t>(to, written);
      } else {
        store_vector(to, written);
      }
    }
    total = normalised(t.m, t.e);
  }

  // From so far down no line comes back to what is not 0.
  static constexpr int64_t kFar = -200 - 128 * 32;

  // Whether all that is multiplied in a line is finite; else nothing is done.
  ANYDML_INLINE static bool skip_line(const std::byte* line, Scaled& total) {
    Vector<double> p = broadcast(1.0);
    for (int k = 0; k < kPieces * kSteps; ++k) {
      p *= load_wide<T, double>(line + At::piece(k, kPieces * kSteps));
    }
    Scaled t = total;
    for (int lane = 0; lane < Doubles::kLanes; ++lane) take(t, p[lane]);
    if (!std::isfinite(t.m)) return false;
    total = normalised(t.m, t.e);
    return true;
  }

  // Of half a vector's bytes, as many steps of four elements.
  static constexpr int kPieces = kLine / (kVectorBytes / 2);
  static constexpr int kSteps = kPerLine / kPieces / Doubles::kLanes;

  // The products of four elements of a line among themselves, the k-th of as many.
  ANYDML_INLINE static Vector<double> four_of(const std::byte* line, int k) {
    return Doubles::all(load_wide<T, double>(line + At::piece(k, kPieces * kSteps)));
  }
  // Without bringing m back to within 1 to 2.
  static void take(Scaled& t, double p) {
    const Scaled factor = one_to_two(p);
    t.m *= factor.m;
    t.e += factor.e;
  }
  ANYDML_INLINE static Vector<uint16_t, 8> as_elements(const Vector<float, 4>* singles) {
    if constexpr (kSteps == 1) {
      return (Vector<uint16_t, 8>)singles[0];
    } else {
      return narrow_row<T, Vector<uint16_t, 8>>(
          __builtin_shufflevector(singles[0], singles[1], 0, 1, 2, 3, 4, 5, 6, 7));
    }
  }

  static Scaled times(Scaled product, double factor) { return normalised(product.m * factor, product.e); }

  // As many moderate lanes at once as a double holds the product of.
  static Scaled times_all(Scaled product, V lanes) {
    constexpr int kAtOnce = sizeof(Tally) == 8 ? 1 : 4;
    for (int lane = 0; lane < kLanes; lane += kAtOnce) {
      double factor = lanes[lane];
      for (int k = 1; k < kAtOnce; ++k) factor *= lanes[lane + k];
      product = product * Scaled{factor};
    }
    return product;
  }

  static Scaled reduce_scaled(const std::byte* in, int64_t size) {
    Scaled product;
    const auto take_line = [&](const std::byte* line) {
      for (int k = 0; k < kPieces * kSteps; ++k) take(product, Doubles::last_of(four_of(line, k))[0]);
      product = normalised(product.m, product.e);
    };
    int64_t i = 0;
    for (; i + kPerLine <= size; i += kPerLine) take_line(in + At::element(size, i, kPerLine));
    if (i < size) take_line(Rest(in + At::element(size, i, size - i), size - i).elements);
    return product;
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
