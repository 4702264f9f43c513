// Products of floats that never leave their range, and whether they might.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "platform/isa.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN

// A product m * 2^e, whose factors may be combined in any order: a
// product that comes back from beyond double's range comes back as what it truly is.
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

// Which products of wide floats are moderate: four factors later, each is a normal number still. Factors of
// doubles are floats, within 2^-149 to 2^128; those of floats are halves, within 2^-24 to 2^16. Zeros,
// infinities and NaNs stay what they are in any order.
template <class Accumulator>
struct RangeGuard {
  static constexpr bool kDouble = std::is_same_v<Accumulator, double>;
  using Bits = std::conditional_t<kDouble, uint64_t, uint32_t>;
  static constexpr int kMantissa = kDouble ? 52 : 23;
  static constexpr Bits kBias = kDouble ? 1023 : 127;
  static constexpr Bits kLeast = kBias - (kDouble ? kScaledRange : 28);
  static constexpr Bits kMost = kBias + (kDouble ? kScaledRange : 36);

  // Their bits without the sign.
  static constexpr Bits magnitude(Bits exponent) { return exponent << (kMantissa + 1); }
  static constexpr Bits kFirst = magnitude(kLeast);
  static constexpr Bits kCount = magnitude(kMost) - kFirst;
  static constexpr Bits kInfinity = magnitude(2 * kBias + 1);

  ANYDML_INLINE static bool holds(Accumulator value) {
    const Bits bits = std::bit_cast<Bits>(value) << 1;
    if (bits - kFirst < kCount) [[likely]]
      return true;
    return bits == 0 || bits >= kInfinity;
  }

#if defined(ANYDML_VECTORS)
  // All bits of what it does not hold for.
  ANYDML_INLINE static Vector<Bits> beyond(Vector<Accumulator> values) {
    const Vector<Bits> bits = (Vector<Bits>)values << 1;
    return (Vector<Bits>)((bits - kFirst >= kCount) & (bits != 0) & (bits < kInfinity));
  }
  // Whether these are nothing but zeros.
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
