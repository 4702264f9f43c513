// Floats with a separate wide exponent, for running products that leave the range of double, and the test of
// whether a product may do so.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// A product m * 2^e. Its factors may be combined in any order: a product that leaves the range of double and
// comes back is what it would be with an unbounded exponent.
//
// |m| is within 2^-400 to 2^400, or 0, infinite or NaN; e is 0 where such an m can hold the product alone,
// else m is within 1 to 2. So m times four floats (each within 2^-149 to 2^128) is a normal double.
struct ScaledFloat {
  double m = 1;
  int64_t e = 0;
};

inline constexpr int kScaledRange = 400;

// {m, e}, for a normal, zero, infinite or NaN m.
inline ScaledFloat normalised(double m, int64_t e) {
  constexpr uint64_t kExponent = 0x7ff;
  const auto bits = std::bit_cast<uint64_t>(m);
  const auto biased = static_cast<int64_t>(bits >> 52 & kExponent);
  if (e == 0 && static_cast<uint64_t>(biased - 1023 + kScaledRange) <= 2 * kScaledRange) return {m, 0};
  if (biased == 0 || biased == kExponent) return {m, 0};
  const int64_t exponent = biased - 1023 + e;
  const bool fits = exponent >= -kScaledRange && exponent <= kScaledRange;
  const auto kept = static_cast<uint64_t>(1023 + (fits ? exponent : 0));
  return {std::bit_cast<double>((bits & ~(kExponent << 52)) | kept << 52), fits ? 0 : exponent};
}

inline ScaledFloat operator*(ScaledFloat a, ScaledFloat b) { return normalised(a.m * b.m, a.e + b.e); }

inline double power_of_two(int64_t e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

// {m, e} with |m| within 1 to 2, for a normal number; zeros, infinities and NaNs stay what they are.
inline ScaledFloat one_to_two(double value) {
  constexpr uint64_t kExponent = 0x7ff;
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint64_t biased = bits >> 52 & kExponent;
  if (biased == 0 || biased == kExponent) return {value, 0};
  return {std::bit_cast<double>((bits & ~(kExponent << 52)) | uint64_t{1023} << 52),
          static_cast<int64_t>(biased) - 1023};
}

// The range of products to which four more factors may be applied in any order, as each result is a normal
// number. Factors of doubles are floats, within 2^-149 to 2^128; those of floats are halves, within 2^-24 to
// 2^16. Zeros, infinities and NaNs stay what they are in any order, and so are in the range too.
template <class Accumulator>
struct RangeGuard {
  static constexpr bool kDouble = std::is_same_v<Accumulator, double>;
  using Bits = std::conditional_t<kDouble, uint64_t, uint32_t>;
  static constexpr int kMantissa = kDouble ? 52 : 23;
  static constexpr Bits kBias = kDouble ? 1023 : 127;
  static constexpr Bits kLeast = kBias - (kDouble ? kScaledRange : 28);
  static constexpr Bits kMost = kBias + (kDouble ? kScaledRange : 36);

  // The bits without the sign, shifted left by one.
  static constexpr Bits magnitude(Bits exponent) { return exponent << (kMantissa + 1); }
  static constexpr Bits kFirst = magnitude(kLeast);
  static constexpr Bits kCount = magnitude(kMost) - kFirst;
  static constexpr Bits kInfinity = magnitude(2 * kBias + 1);

  ANYDML_INLINE static bool contains(Accumulator value) {
    const Bits bits = std::bit_cast<Bits>(value) << 1;
    if (bits - kFirst < kCount) [[likely]]
      return true;
    return bits == 0 || bits >= kInfinity;
  }

#if defined(ANYDML_VECTORS)
  // Sets all bits of the lanes that are outside.
  ANYDML_INLINE static Vector<Bits> outside(Vector<Accumulator> values) {
    const Vector<Bits> bits = (Vector<Bits>)values << 1;
    return (Vector<Bits>)((bits - kFirst >= kCount) & (bits != 0) & (bits < kInfinity));
  }
  // Whether all bits of all lanes are 0.
  ANYDML_INLINE static bool none_of(Vector<Bits> lanes) {
#if defined(ANYDML_ISA_AVX2) || defined(ANYDML_ISA_AVX512)
    return _mm256_testz_si256((__m256i)lanes, (__m256i)lanes) != 0;
#else
    Bits any = 0;
    for (int lane = 0; lane < static_cast<int>(sizeof(lanes) / sizeof(Bits)); ++lane) any |= lanes[lane];
    return any == 0;
#endif
  }
#endif
};

ANYDML_ISA_END
