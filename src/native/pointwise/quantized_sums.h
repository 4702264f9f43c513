// Sums of quantised numbers of 8 bits: round(((a - za) * sa + (b - zb) * sb) / s) + zero point, of numbers in
// double precision, halves to the even integer.
//
// With A = sa / s and so on that is round(a * A + b * B + C), which is computed in single precision as a
// number of fixed point. Where the bound of its error leaves open which integer is next, double precision
// decides.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "platform/isa.h"
#include "pointwise/instructions.h"
#include "pointwise/lanes.h"
#include "pointwise/quantized.h"
#include "pointwise/rounding.h"
#include "pointwise/singles.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// Of signed numbers of 8 bits: others become such ones, and their zero points, by their first bit.
struct LinearQuantization {
  float scale;
  int32_t zero_point;
  uint8_t flip;

  template <class T>
  static LinearQuantization of(float scale, T zero_point) {
    constexpr bool kIsSigned = std::is_signed_v<T>;
    return {scale, int32_t{zero_point} - (kIsSigned ? 0 : 128), static_cast<uint8_t>(kIsSigned ? 0 : 0x80)};
  }
};

// The fraction's bits of the numbers of fixed point, which are below 2^11.
inline constexpr int kFraction = 20;
inline constexpr int32_t kHalf = 1 << (kFraction - 1);

struct SumQuantization {
  LinearQuantization a;
  LinearQuantization b;
  LinearQuantization out;
  enum class Kind : int32_t { kDoubles, kSingles, kExactSingles } kind = Kind::kDoubles;
  // In units of the fraction's last bit.
  float a_factor = 0;
  float b_factor = 0;
  float offset = 0;
  // The bits of a fraction of which none is set where the sum may be on either side of an integer.
  int32_t clear = 0;

  SumQuantization() = default;
  SumQuantization(const LinearQuantization& a_, const LinearQuantization& b_, const LinearQuantization& out_)
      : a(a_), b(b_), out(out_) {
    constexpr double kUnits = 1 << kFraction;
    constexpr double kMost = 128;
    const double a_exact = double{a.scale} / out.scale;
    const double b_exact = double{b.scale} / out.scale;
    const double offset_exact = -(a.zero_point * a_exact + b.zero_point * b_exact);
    const double largest = kMost * (std::fabs(a_exact) + std::fabs(b_exact)) + std::fabs(offset_exact);
    // Nor is it so where something is not finite.
    if (!(largest + kMost + 1 < 2048)) return;
    a_factor = static_cast<float>(a_exact * kUnits);
    b_factor = static_cast<float>(b_exact * kUnits);
    // Of integers no sum is a tie.
    const bool are_integers = a_exact == std::floor(a_exact) && b_exact == std::floor(b_exact);
    if (is_short(a_exact, a.scale) && is_short(b_exact, b.scale) && !are_integers) {
      offset = static_cast<float>(offset_exact * kUnits);
      kind = Kind::kExactSingles;
      return;
    }
    // The half that is added, as what follows rounds down.
    const double whole = (offset_exact + out.zero_point + 0.5) * kUnits;
    // Four operations that round, factors and an offset that are rounded, and what is cut off at last.
    const double error = 4 * 0x1p-24 * (largest + kMost + 1) * kUnits +
                         kMost * std::fabs(a_exact * kUnits - a_factor) +
                         kMost * std::fabs(b_exact * kUnits - b_factor) + std::fabs(whole) * 0x1p-23 + 1.5;
    int32_t window = 1;
    while (window < 2 * error) window *= 2;
    if (window > kHalf / 16) return;
    offset = static_cast<float>(whole + window / 2);
    clear = 2 * kHalf - window;
    kind = Kind::kSingles;
  }

 private:
  // Whether a ratio is exact, and sums of its products in single precision are.
  bool is_short(double ratio, double scale) const {
    return ratio * out.scale == scale && std::fabs(ratio) < 16 && ratio * 256 == std::floor(ratio * 256);
  }
};

// What the specification says.
ANYDML_NOINLINE inline void add_in_doubles(const SumQuantization& sum, const std::byte* a, const std::byte* b,
                                           std::byte* out, int64_t count) {
  const auto number = [](std::byte each, const LinearQuantization& of) {
    const auto x = static_cast<int8_t>(static_cast<uint8_t>(each) ^ of.flip);
    return static_cast<double>(x - of.zero_point) * double{of.scale};
  };
  for (int64_t i = 0; i < count; ++i) {
    const double quotient = (number(a[i], sum.a) + number(b[i], sum.b)) / double{sum.out.scale};
    const auto result = quantized<int8_t>(quotient, static_cast<double>(sum.out.zero_point));
    out[i] = static_cast<std::byte>(static_cast<uint8_t>(result) ^ sum.out.flip);
  }
}

#if defined(ANYDML_VECTORS)
// By single precision, but for blocks of which that leaves something open.
template <bool kIsExact>
ANYDML_INLINE void add_in_singles(const SumQuantization& sum, const std::byte* a, const std::byte* b,
                                  std::byte* out, int64_t count) {
  constexpr int kLanes = ByteBlock::kLanes;
  const Singles a_factor = singles(sum.a_factor);
  const Singles b_factor = singles(sum.b_factor);
  const Singles offset = singles(sum.offset);
  for (int64_t start = 0; start < count; start += kWholeElements) {
    ByteBlock block;
    SingleBits least{};
#pragma GCC unroll 8
    for (int n = 0; n < kWholeElements / kLanes; ++n) {
      const Singles x = load_bytes(a + start + n * kLanes, sum.a.flip);
      const Singles y = load_bytes(b + start + n * kLanes, sum.b.flip);
      Singles total;
      if constexpr (kCompact) {
        total = x * a_factor + (y * b_factor + offset);
      } else {
        total = multiply_add(x, a_factor, multiply_add(y, b_factor, offset));
      }
      auto fixed = __builtin_convertvector(total, ByteBlock::Integers);
      if constexpr (kIsExact) {
        fixed += (kHalf - 1) + ((fixed >> kFraction) & 1);
      } else {
        const auto fraction = bits_as<SingleBits>(fixed & sum.clear);
        least = n == 0 ? fraction : fraction < least ? fraction : least;
      }
      block.integers[n] = fixed >> kFraction;
      if constexpr (kIsExact) block.integers[n] += sum.out.zero_point;
    }
    if (kIsExact || all_of<float>(least != 0)) [[likely]] {
      block.store(out + start, sum.out.flip);
    } else {
      add_in_doubles(sum, a + start, b + start, out + start, kWholeElements);
    }
  }
}
#endif

inline void add_quantized(const int64_t* /*constants*/, const std::byte* a, const std::byte* b,
                          const std::byte* quantization, std::byte* out, int64_t count) {
  const SumQuantization sum = load<SumQuantization>(quantization);
#if defined(ANYDML_VECTORS)
  if (sum.kind == SumQuantization::Kind::kSingles) return add_in_singles<false>(sum, a, b, out, count);
  if (sum.kind == SumQuantization::Kind::kExactSingles) return add_in_singles<true>(sum, a, b, out, count);
#endif
  add_in_doubles(sum, a, b, out, count);
}

ANYDML_ISA_END
