// A step of Adam, with the correction of moments that were 0:
//
//   M = Beta1 * M + (1 - Beta1) * G, V = Beta2 * V + (1 - Beta2) * G^2, X = X - rate * M / (sqrt(V) +
//   Epsilon)
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/layout.h"
#include "core/registry.h"
#include "normalization/geometry.h"
#include "normalization/runs.h"
#include "normalization/sixteen.h"
#include "normalization/wide.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"

ANYDML_ISA_BEGIN

// x^n by squaring, which has the same bits on every machine.
inline double whole_power(double x, uint64_t n) {
  double power = 1;
  for (; n != 0; n >>= 1, x *= x) {
    if ((n & 1) != 0) power *= x;
  }
  return power;
}

inline double power_of(double x, double t) {
  constexpr double kMost = 0x1p53;
  if (t >= 0 && t < kMost && std::floor(t) == t) return whole_power(x, static_cast<uint64_t>(t));
  return std::pow(x, t);
}

struct Adam {
  static constexpr size_t kInputs = 4;
  static constexpr size_t kOutputs = 3;
  // What is computed at once, by compute_packed().
  static constexpr int64_t kAtOnce = kLanes;

  double learning_rate;
  double beta1;
  double beta2;
  double epsilon;
  Load load_step = nullptr;

  // The rate with the correction; without it at step 0.
  double constants(const void* const* inputs) const {
    double step;
    load_step(static_cast<const std::byte*>(inputs[4]), 0, 1, &step);
    if (step == 0) return learning_rate;
    return learning_rate * (std::sqrt(1 - power_of(beta2, step)) / (1 - power_of(beta1, step)));
  }

  void prepare(const Request& request, const Geometry&) {
    load_step = load_of(tensor(request.inputs, 4).type);
  }

  void compute(double rate, const double* const* in, int64_t count, double (*results)[kRun]) const {
    for (int64_t i = 0; i < count; i += kLanes) {
      const std::array<Wide, kOutputs> found =
          step(rate, wide_at(in[0] + i), wide_at(in[1] + i), wide_at(in[2] + i), wide_at(in[3] + i));
      for (size_t k = 0; k < kOutputs; ++k) put_wide(results[k] + i, found[k]);
    }
  }

  // Sixteen elements of each tensor, of type T.
  template <class T>
  ANYDML_INLINE void compute_packed(double rate, const std::array<const std::byte*, kInputs>& in,
                                    const std::array<std::byte*, kOutputs>& out) const {
    const auto found = step(rate, load_wide_lanes<T>(in[0]), load_wide_lanes<T>(in[1]),
                            load_wide_lanes<T>(in[2]), load_wide_lanes<T>(in[3]));
#pragma GCC unroll 3
    for (size_t k = 0; k < kOutputs; ++k) store_wide_lanes<T>(out[k], found[k]);
  }

 private:
  ANYDML_INLINE std::array<Wide, kOutputs> step(double rate, const Wide& x, const Wide& first,
                                                const Wide& second, const Wide& gradient) const {
    const Wide m =
        each_of([&](Doubles a, Doubles g) ANYDML_INLINE_LAMBDA { return beta1 * a + (1 - beta1) * g; }, first,
                gradient);
    const Wide v =
        each_of([&](Doubles a, Doubles g) ANYDML_INLINE_LAMBDA { return beta2 * a + (1 - beta2) * g * g; },
                second, gradient);
    return {less(x, broadcast_wide(rate) * m, v), m, v};
  }

  // x - most / (sqrt(v) + epsilon). A step of Newton's method for the root and one for the quotient, from
  // what single precision gives, are within 2^-44, and take a third of the time of both in double precision;
  // these are taken of what is far from 1, and where little of x is left.
  ANYDML_INLINE Wide less(const Wide& from, const Wide& most, const Wide& v) const {
    constexpr double kLeast = 0x1p-60;
    constexpr double kMost = 0x1p60;
    constexpr double kLeft = 0x1p-12;
    const bool is_usual = epsilon >= 0 && epsilon <= kMost;
    const auto is_near = [](Doubles x) ANYDML_INLINE_LAMBDA { return (x >= kLeast) & (x <= kMost); };
    const Sixteen root =
        each_part([](Singles x) ANYDML_INLINE_LAMBDA { return square_root<float>(x); },
                  as_sixteen(each_of(
                      [&](Doubles x) ANYDML_INLINE_LAMBDA { return is_near(x) ? x : Doubles{} + 1.0; }, v)));
    const auto more = static_cast<float>(epsilon);
    // One division gives both inverses.
    const Sixteen both =
        each_part([&](Singles x) ANYDML_INLINE_LAMBDA { return 1.0F / (x * (x + more)); }, root);
    const Sixteen half_of_root = each_part(
        [&](Singles x, Singles y) ANYDML_INLINE_LAMBDA { return y * (x + more) * 0.5F; }, root, both);
    const Sixteen of_sum =
        each_part([](Singles x, Singles y) ANYDML_INLINE_LAMBDA { return y * x; }, root, both);
    return each_of(
        [&](Doubles x, Doubles rate, Doubles square, Doubles rough, Doubles half, Doubles start)
            ANYDML_INLINE_LAMBDA {
              const Doubles exact = rough + (square - rough * rough) * half;
              const Doubles y = x - rate * (start * (2.0 - (exact + epsilon) * start));
              const auto is_right =
                  is_near(square) & (magnitude_of<double>(y) >= kLeft * magnitude_of<double>(x));
              if (is_usual && all_of<double>(is_right)) [[likely]]
                return y;
              const Doubles slow = x - rate / (square_root<double>(square) + epsilon);
              return is_usual ? (is_right ? y : slow) : slow;
            },
        from, most, v, as_wide(root), as_wide(half_of_root), as_wide(of_sum));
  }
};

ANYDML_ISA_END
