// Products of floats that never leave their range.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "isa.h"
#include "vector.h"

ANYDML_ISA_BEGIN

// A product m * 2^e, whose factors may be combined in any order: a
// product that comes back from beyond double's range comes back as what it truly is.
//
// |m| is within 2^-400 to 2^400, or 0, infinite or NaN; e is 0 where such an m can hold the product alone,
// else m is within 1 to 2. So m times four floats (each within 2^-149 to 2^128) is a normal double.
struct Scaled {
  double m = 1;
  int64_t e = 0;
};

inline constexpr int kScaledRange = 400;

// {m, e}, for a normal, zero, infinite or NaN m.
inline Scaled normalised(double m, int64_t e) {
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

inline Scaled operator*(Scaled a, Scaled b) { return normalised(a.m * b.m, a.e + b.e); }

// 2^e is the square of this, as far as any difference is seen: from 2^2000 on, all is infinite, or 0.
inline double root_of_scale(int64_t e, bool upper) {
  const int64_t limited = e < -2000 ? -2000 : e > 2000 ? 2000 : e;
  const int64_t half = upper ? limited - limited / 2 : limited / 2;
  return std::bit_cast<double>(static_cast<uint64_t>(half + 1023) << 52);
}

#if defined(ANYDML_VECTORS)

// How a wide float is made up, and which tallies of it are moderate: so many factors later, a tally that was
// moderate is a normal number still, and so is one that was within 1 to 2. Factors of doubles are floats,
// within 2^-149 to 2^128; those of floats are halves, within 2^-24 to 2^16.
template <class Tally>
struct Form;
template <>
struct Form<double> {
  using Bits = uint64_t;
  using Exponent = int64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kBias = 1023;
  static constexpr Bits kExponents = 0x7ff;
  static constexpr Bits kLeast = kBias - 128;  // exponents of moderate tallies: from here on,
  static constexpr int kBits = 8;              // so many bits' worth
  static constexpr Exponent kLeastScale = -760;
  static constexpr Exponent kMostScale = 1000;
};
template <>
struct Form<float> {
  using Bits = uint32_t;
  using Exponent = int32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kBias = 127;
  static constexpr Bits kExponents = 0xff;
  static constexpr Bits kLeast = kBias - 28;
  static constexpr int kBits = 6;
  static constexpr Exponent kLeastScale = -95;
  static constexpr Exponent kMostScale = 126;
};
inline constexpr int64_t kFactors = 4;

// Notes which of the vectors shown to it were not moderate.
template <class Tally, int kLanes>
class Watch {
  using F = Form<Tally>;
  using Bits = Vector<typename F::Bits, kLanes>;

 public:
  ANYDML_INLINE void look(Vector<Tally, kLanes> v) { seen_ |= (Bits)v - (F::kLeast << F::kMantissa); }
  // The sign stays where it is, unless a number is smaller than the least.
  bool all_moderate() const {
    constexpr int kAbove = F::kMantissa + F::kBits;
    constexpr int kSign = sizeof(Tally) * 8 - 1;
    constexpr auto kBeyond = ((typename F::Bits{1} << kSign) - 1) >> kAbove << kAbove;
    typename F::Bits seen = 0;
    for (int i = 0; i < kLanes; ++i) seen |= seen_[i];
    return (seen & kBeyond) == 0;
  }

 private:
  Bits seen_ = {};
};

// Products m * 2^e, one in each lane.
template <class Tally, int kLanes>
struct ScaledLanes {
  using F = Form<Tally>;
  using V = Vector<Tally, kLanes>;
  using Bits = Vector<typename F::Bits, kLanes>;
  using Exponents = Vector<typename F::Exponent, kLanes>;

  V m = V{} + static_cast<Tally>(1);
  Exponents e = {};

  // Exponents beyond are more than any segment comes back from.
  void set(int lane, Scaled value) {
    constexpr int64_t kMost = 1 << 24;
    const auto bits = std::bit_cast<uint64_t>(value.m);
    const auto biased = static_cast<int64_t>(bits >> 52 & Form<double>::kExponents);
    const bool special = biased == 0 || biased == static_cast<int64_t>(Form<double>::kExponents);
    const uint64_t one_to_two = (bits & ~(Form<double>::kExponents << 52)) | Form<double>::kBias << 52;
    m[lane] = static_cast<Tally>(special ? value.m : std::bit_cast<double>(one_to_two));
    const int64_t exponent = special ? 0 : value.e + biased - 1023;
    e[lane] = static_cast<typename F::Exponent>(exponent < -kMost  ? -kMost
                                                : exponent > kMost ? kMost
                                                                   : exponent);
  }

  // m to within 1 to 2; zeros, infinities and NaNs stay.
  ANYDML_INLINE void normalise() {
    const auto bits = (Bits)m;
    const Bits biased = bits >> F::kMantissa & F::kExponents;
    const Bits special = (Bits)(biased == 0) | (Bits)(biased == F::kExponents);
    e += (Exponents)((biased - F::kBias) & ~special);
    const Bits one_to_two = (bits & ~(F::kExponents << F::kMantissa)) | F::kBias << F::kMantissa;
    m = (V)((bits & special) | (one_to_two & ~special));
  }

  // 2^e, as far as any difference is seen: beyond, all that kFactors make of it is infinite, or 0.
  ANYDML_INLINE V scale() const {
    const Exponents least = Exponents{} + F::kLeastScale;
    const Exponents most = Exponents{} + F::kMostScale;
    const Exponents above = e < least ? least : e;
    const Exponents limited = above > most ? most : above;
    return (V)((Bits)(limited + static_cast<typename F::Exponent>(F::kBias)) << F::kMantissa);
  }
};

#endif  // ANYDML_VECTORS

ANYDML_ISA_END
