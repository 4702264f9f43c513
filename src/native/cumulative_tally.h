// What is tallied, how, and how wide.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "half.h"
#include "isa.h"
#include "vector.h"

ANYDML_ISA_BEGIN

struct Sum {
  static constexpr const char* kName = "sum";
  static constexpr int kIdentity = 0;
  template <class T>
  static T combine(T tally, T x) {
    return tally + x;
  }
};

struct Product {
  static constexpr const char* kName = "product";
  static constexpr int kIdentity = 1;
  template <class T>
  static T combine(T tally, T x) {
    return tally * x;
  }
};

// Floats are tallied wide and rounded once per output; unsigned integers wrap, and give signed ones' bits
// too.
template <class T>
using TallyOf = std::conditional_t<std::is_same_v<T, float>, double,
                                   std::conditional_t<std::is_same_v<T, Half>, float, T>>;

template <class T>
inline constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, Half>;

// A type without arithmetic, of T's size.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

// One element on. x is read before y is written, as the two may be one.
template <class T, class Operation, bool kExclusive>
inline void advance_one(TallyOf<T>& tally, const std::byte* x, std::byte* y) {
  const auto next = Operation::combine(tally, widen<T, TallyOf<T>>(x));
  narrow<T, TallyOf<T>>(y, kExclusive ? tally : next);
  tally = next;
}

// A product of floats that never leaves its range, m * 2^e, so that factors may be combined in any order: a
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

ANYDML_ISA_END
