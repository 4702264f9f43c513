// Running products of floats along lines that are adjacent in memory, from carries on. With m the product of
// a column so far,
//   m' = m * x(i),   y(i) = m'   (exclusive: y(i) = m).
// Columns are multiplied a vector at a time, four rows between tests of the accumulators' range. Lanes whose
// product has left it go on as scaled floats until all of a vector are in range again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel_plan.h"
#include "platform/isa.h"
#include "platform/parallel.h"
#include "scan/accumulator.h"
#include "scan/carries.h"
#include "scan/geometry.h"
#include "scan/policy.h"
#include "scan/scaled_float.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

#if defined(ANYDML_VECTORS)

template <class T>
class CarriedProductPlan final : public Plan {
 public:
  CarriedProductPlan(const ScanProblem& problem, bool exclusive, std::string description)
      : Plan(std::move(description)),
        geometry_(problem.geometry),
        columns_(take_innermost(geometry_.lines)),
        planes_(geometry_.lines),
        bytes_(problem.bytes()),
        places_(problem.carries),
        exclusive_(exclusive) {}

  void run(const void* const* inputs, void* const* outputs) const override {
    const Carries<T, Product> carries(places_, inputs, outputs[0]);
    const auto* in = static_cast<const std::byte*>(inputs[0]) + geometry_.in_start;
    auto* out = static_cast<std::byte*>(outputs[0]) + geometry_.out_start;
    const int64_t strips = (columns_.size + kColumns - 1) / kColumns;
    const int64_t planes = planes_.outer_count() * planes_.inner.size;
    const int threads = threads_for(2 * bytes_);
    parallel_for(planes * strips, threads, [&](int64_t i) {
      const int64_t start = i % strips * kColumns;
      const int64_t width = std::min(kColumns, columns_.size - start);
      planes_.runs(i / strips, i / strips + 1, in, out, [&](const std::byte* from, std::byte* to, int64_t) {
        scan_strip(from + start * columns_.in, to + start * kSize, width, carries);
      });
    });
  }

 private:
  using Accumulator = AccumulatorOf<T>;
  using V = Vector<Accumulator>;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kLanes = kVectorBytes / sizeof(Accumulator);
  static constexpr int64_t kColumns = 256;  // of a strip
  static constexpr int64_t kRows = 4;       // between tests of the range

  // A column's product is the accumulator's, or where that is out of range the scaled float.
  struct Strip {
    alignas(64) Accumulator products[kColumns];
    ScaledFloat scaled[kColumns];
    bool are_scaled[kColumns / kLanes + 1];  // of a vector
  };

  void scan_strip(const std::byte* in, std::byte* out, int64_t width,
                  const Carries<T, Product>& carries) const {
    Strip strip;
    const bool loads_vectors = columns_.in == kSize;
    for (int64_t j = 0; j < width; ++j) strip.scaled[j] = carries.at(out + j * kSize);
    for (int64_t j = 0; j < width; j += kLanes) settle(strip, j, std::min(kLanes, width - j), loads_vectors);
    for (int64_t i = 0; i < geometry_.axis.size; i += kRows) {
      if (i % 1024 == 0 && is_cancelled()) return;
      const int64_t rows = std::min(kRows, geometry_.axis.size - i);
      const std::byte* const from = in + i * geometry_.axis.in;
      std::byte* const to = out + i * geometry_.axis.out;
      for (int64_t j = 0; j < width; j += kLanes) {
        if (!strip.are_scaled[j / kLanes]) {
          if (scan_vector(from + j * kSize, to + j * kSize, rows, strip.products + j)) continue;
          for (int64_t k = j; k < j + kLanes; ++k)
            strip.scaled[k] = normalised(static_cast<double>(strip.products[k]), 0);
        }
        const int64_t count = std::min(kLanes, width - j);
        for (int64_t k = j; k < j + count; ++k)
          scan_scaled(from + k * columns_.in, to + k * kSize, rows, strip.scaled[k]);
        settle(strip, j, count, loads_vectors);
      }
    }
  }

  // Chooses the accumulators for the columns of a vector, where all are in range.
  static void settle(Strip& strip, int64_t j, int64_t count, bool loads_vectors) {
    bool fits = loads_vectors && count == kLanes;
    for (int64_t k = j; fits && k < j + count; ++k) {
      const ScaledFloat scaled = strip.scaled[k];
      const auto product = static_cast<Accumulator>(scaled.m);
      fits = scaled.e == 0 && RangeGuard<Accumulator>::contains(product) &&
             std::isinf(product) == std::isinf(scaled.m) && (product == 0) == (scaled.m == 0);
      strip.products[k] = product;
    }
    strip.are_scaled[j / kLanes] = !fits;
  }

  // Returns whether the products were in range behind the rows; where not, nothing is written.
  bool scan_vector(const std::byte* in, std::byte* out, int64_t rows, Accumulator* products) const {
    V product = load_vector<V>(reinterpret_cast<const std::byte*>(products));
    V y[kRows];
    for (int64_t r = 0; r < rows; ++r) {
      const V next = product * load_wide<T, Accumulator>(in + r * geometry_.axis.in);
      y[r] = exclusive_ ? product : next;
      product = next;
    }
    if (!RangeGuard<Accumulator>::none_of(RangeGuard<Accumulator>::outside(product))) return false;
    for (int64_t r = 0; r < rows; ++r) store_wide<T, Accumulator>(out + r * geometry_.axis.out, y[r]);
    store_vector(reinterpret_cast<std::byte*>(products), product);
    return true;
  }

  ANYDML_NOINLINE void scan_scaled(const std::byte* in, std::byte* out, int64_t rows,
                                   ScaledFloat& product) const {
    for (int64_t r = 0; r < rows; ++r) {
      const ScaledFloat next = product * normalised(widen<T, double>(in + r * geometry_.axis.in), 0);
      const ScaledFloat y = exclusive_ ? product : next;
      // Beyond these limits every element is 0, or infinite.
      const double value = y.m * power_of_two(std::clamp<int64_t>(y.e, -700, 900));
      narrow<T, double>(out + r * geometry_.axis.out, value);
      product = next;
    }
  }

  ScanGeometry geometry_;
  Loop columns_;
  Lines planes_;
  int64_t bytes_;
  CarryPlaces places_;
  bool exclusive_;
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
