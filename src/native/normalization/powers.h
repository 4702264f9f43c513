// Exponentials in single precision, within 0.53 units in the last place, and as unevaluated sums of two
// numbers, within 2^-31 of the result: for sums of what is at most the largest of a group, and shares of
// these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "normalization/statistics.h"
#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"
#include "pointwise/singles.h"
#include "simd/bits_as.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN

inline constexpr int64_t kSingleLanes = sizeof(Singles) / sizeof(float);
inline constexpr int64_t kSingleParts = kLanes / kSingleLanes;

// Powers e^x are multiplied by 2^(kPowerScale - n), 2^n being next to that of the group's largest element, so
// that neither the shares that count nor their rounding errors leave the range of numbers.
inline constexpr int kPowerScale = 64;
// Where the largest element is further from 0 it is taken away first.
inline constexpr float kNear = 0x1p16f;

// 2^(k / 8) for k from 0 to 7, rounded, as bits, and the logarithms of what that leaves; twice, as so many
// lanes are looked up at once.
struct Eighths {
  alignas(64) uint32_t powers[16];
  alignas(64) float tails[16];
};
inline constexpr Eighths kEighths{
    {0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7, 0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7,
     0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7, 0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7},
    {0, -0x1.9c0c22p-27f, 0x1.125002p-25f, -0x1.0a3552p-25f, 0x1.26055cp-26f, 0x1.67a1cap-28f,
     -0x1.f9c306p-27f, -0x1.a5217cp-28f, 0, -0x1.9c0c22p-27f, 0x1.125002p-25f, -0x1.0a3552p-25f,
     0x1.26055cp-26f, 0x1.67a1cap-28f, -0x1.f9c306p-27f, -0x1.a5217cp-28f}};

// table[i % 8]
ANYDML_INLINE SingleBits looked_up(const void* table, SingleBits i) {
#if defined(ANYDML_ISA_AVX512)
  return (SingleBits)_mm512_maskz_permutexvar_epi32(kAllLanes, (__m512i)i, _mm512_load_si512(table));
#elif defined(ANYDML_ISA_AVX2)
  return (SingleBits)_mm256_permutevar8x32_epi32(_mm256_load_si256(static_cast<const __m256i*>(table)),
                                                 (__m256i)i);
#else
  return for_each_lane<uint32_t>(i, [&](uint32_t lane) {
    return load<uint32_t>(static_cast<const std::byte*>(table) + lane % 8 * sizeof(uint32_t));
  });
#endif
}

// What the powers of a group need to know of its largest element.
struct PowersBelow {
  Singles taken;  // from elements, where the largest is far from 0
  Singles least;  // an element whose power is 0, as all below it are taken to be
  Singles shift;  // leaves the number of eighths, and in its bits the exponent of the scaled power

  PowersBelow() = default;
  explicit PowersBelow(Singles most) : taken(magnitude_of<float>(most) > kNear ? most : Singles{}) {
    constexpr auto kZeroFrom = static_cast<float>(8 * (127 + kPowerScale));
    const auto bits = bits_as<SingleBits>(multiply_add(most - taken, singles(kPerUnit), singles(kShift)));
    const Singles octaves = bits_as<Singles>(bits & ~7U) - kShift;
    least = (octaves - kZeroFrom) * kEighthHigh;
    shift = kShift + (static_cast<float>(8 * kPowerScale) - octaves);
  }

  // 2^(kPowerScale - n) * e^x; of all elements alike where kIsFar, which costs more, and otherwise of those
  // that nothing is taken from. With x = k * ln(2) / 8 + r, and t of a table as 2^(k / 8) = t * e^tail:
  // t + t * (e^r - 1), rounded once; r has the tail.
  template <bool kIsFar>
  ANYDML_INLINE Singles of(Singles x) const {
    const Reduced reduced = reduce<kIsFar>(x);
    const Singles r = reduced.most_of_r + reduced.tail;
    return multiply_add(reduced.t, multiply_add(r * r, quotient(r), r), reduced.t);
  }
  // Of halves, of which none is far from 0, within 2^-22 of the power: with e^r as 1 + r + r^2 / 2 + r^3 / 6.
  ANYDML_INLINE Singles of_halves(Singles x) const {
    const Singles d = lane_max<float>(least, x);
    const Singles shifted = multiply_add(d, singles(kPerUnit), shift);
    const Singles r = multiply_add(shifted - shift, singles(-kEighthHigh), d);
    const Singles t = power_of(bits_as<SingleBits>(shifted));
    const Singles more = multiply_add(r, singles(1.0F / 6), singles(0.5F));
    return multiply_add(t * r, multiply_add(r, more, singles(1)), t);
  }
  // As a sum of two numbers, of which the first is t * (1 + r), rounded.
  template <bool kIsFar>
  ANYDML_INLINE SinglePair pair_of(Singles x) const {
    const auto [t, most_of_r, tail] = reduce<kIsFar>(x);
    const Singles r = most_of_r + tail;
    const Singles high = multiply_add(t, most_of_r, t);
    const Singles left = multiply_add(t, most_of_r, t - high);  // exact
    return {high, multiply_add(t, multiply_add(r * r, quotient(r), tail), left)};
  }

 private:
  struct Reduced {
    Singles t;
    Singles most_of_r;
    Singles tail;
  };
  template <bool kIsFar>
  ANYDML_INLINE Reduced reduce(Singles x) const {
    constexpr float kEighthLow = -0x1.05c610p-32f;
    Singles d = x;
    Singles error{};
    if constexpr (kIsFar) {
      d = x - taken;
      const Singles back = d - x;
      error = d < least ? Singles{} : (x - (d - back)) - (taken + back);  // Knuth's two-sum
    }
    d = lane_max<float>(least, d);
    const Singles shifted = multiply_add(d, singles(kPerUnit), shift);
    const Singles k = shifted - shift;
    const auto bits = bits_as<SingleBits>(shifted);
    const Singles most_of_r = multiply_add(k, singles(-kEighthHigh), d);  // exact
    Singles tail = multiply_add(k, singles(-kEighthLow), bits_as<Singles>(looked_up(kEighths.tails, bits)));
    if constexpr (kIsFar) tail = tail + error;
    return {power_of(bits), most_of_r, tail};
  }
  // 2^(k / 8) of the bits that have k, scaled.
  ANYDML_INLINE static Singles power_of(SingleBits bits) {
    return bits_as<Singles>(looked_up(kEighths.powers, bits) + (bits << 20));
  }
  // (e^r - 1 - r) / r^2
  ANYDML_INLINE static Singles quotient(Singles r) {
    return multiply_add(r, multiply_add(r, singles(0x1.555556p-5f), singles(0x1.555b7cp-3f)), singles(0.5F));
  }

  // Added to a number and taken away it leaves the nearest integer, whose bits are the sum's last.
  static constexpr float kShift = 0x1.8p23f;
  static constexpr float kPerUnit = 0x1.715476p+3f;     // 8 / ln 2
  static constexpr float kEighthHigh = 0x1.62e430p-4f;  // of ln 2
};

ANYDML_ISA_END
