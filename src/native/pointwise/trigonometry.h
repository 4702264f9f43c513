// Trigonometric functions in double precision, to within 2^-31 of the result, of any number that a single can
// hold; with the same bits on every machine, as those of math.h.
//
// The coefficients of all polynomials are those of the least largest relative error (Remez' algorithm).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pointwise/math.h"

ANYDML_ISA_BEGIN

inline constexpr double kPi = 0x1.921fb54442d18p+1;
// Pi's leading 32 bits, and the rest.
inline constexpr double kPiHigh = 0x1.921fb544p+1;
inline constexpr double kPiLow = 0x1.0b4611a626331p-33;

// The points (n - shift) * step, from the nearest of which a function's argument is measured. A step is pi,
// or half of it.
struct Grid {
  double step;  // in units of pi
  double shift;
};
inline constexpr Grid kZerosOfSine{1, 0};
inline constexpr Grid kZerosOfCosine{1, 0.5};
inline constexpr Grid kZerosAndPolesOfTangent{0.5, 0};

// x = (n - shift) * step + r, |r| <= step / 2
struct Reduced {
  DoubleBits n;  // its last bit
  Doubles r;
};

// From here on n has too many bits for a product with kPiHigh to be exact.
inline constexpr double kFar = 0x1p21;

// The bits of 1 / pi, of which the first is that of 2^31.
inline constexpr uint32_t kInversePi[] = {
    0x00000000, 0x517cc1b7, 0x27220a94, 0xfe13abe8, 0xfa9a6ee0, 0x6db14acc, 0x9e21c820, 0xff28b1d5,
    0xef5de2b0, 0xdb92371d, 0x2126e970, 0x03249775, 0x04e8c90e, 0x7f0ef58e, 0x5894d39f, 0x74411afa,
    0x975da242, 0x74ce3813, 0x5a2fbf20, 0x9cc8eb1c, 0xc1a99cfa, 0x4e422fc5, 0xdefc941d, 0x8ffc4bff,
    0xef02cc07, 0xf79788c5, 0xad05368f, 0xb69b3f67, 0x93e584db, 0xa7a31fb3, 0x4f2ff516, 0xba93dd63,
    0xf5f2f8bd, 0x9e839cfb, 0xc5294975, 0x35fdafd8};

// The reduction of Payne and Hanek, of numbers from kFar on: with |x| = m * 2^e, bits of 1 / pi above those
// of 2^-e give multiples of 2 in x / pi, which is computed modulo 2 as an integer times 2^-127.
template <const Grid& kGrid>
ANYDML_NOINLINE inline void reduce_far(double x, uint64_t& n, double& r) {
  const auto bits = bits_as<uint64_t>(x);
  const uint64_t m = (bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52);
  const uint64_t first = ((bits >> 52) & 0x7ff) - (1023 + 52 - 31);
  uint32_t product[4] = {};
  const auto add = [&](uint64_t factor, size_t places) {
    uint64_t sum = 0;
    for (size_t i = 4; i-- > places; sum >>= 32) {
      const uint32_t* const word = kInversePi + first / 32 + i;
      const uint64_t window = ((uint64_t{word[0]} << 32 | word[1]) << (first % 32)) >> 32;
      sum += factor * window + product[i - places];
      product[i - places] = static_cast<uint32_t>(sum);
    }
  };
  add(m & 0xffffffff, 0);
  add(m >> 32, 1);
  uint64_t high = uint64_t{product[0]} << 32 | product[1];
  uint64_t low = uint64_t{product[2]} << 32 | product[3];
  if (x < 0) {
    low = 0 - low;
    high = ~high + (low == 0 ? 1 : 0);
  }
  constexpr int kWhole = kGrid.step == 1 ? 63 : 62;  // the place of n's last bit
  constexpr uint64_t kHalf = uint64_t{1} << (kWhole - 1);
  if (kGrid.shift != 0) high += kHalf;
  n = (high + kHalf) >> kWhole;
  const double left = static_cast<double>(static_cast<int64_t>(high - (n << kWhole))) * 0x1p-63;
  r = x - x == 0 ? (left + static_cast<double>(low) * 0x1p-127) * kPi
                 : std::numeric_limits<double>::quiet_NaN();
}

// The reduction of Cody and Waite. Where x is near a point, all operations but those with kPiLow are exact.
template <const Grid& kGrid>
ANYDML_INLINE Reduced reduced(Doubles x) {
  constexpr bool kShifts = kGrid.shift != 0;
  const Doubles steps = x * (1 / (kPi * kGrid.step));
  const Doubles rounded = (kShifts ? steps + kGrid.shift : steps) + kRounds;
  const Doubles whole = rounded - kRounds;
  const Doubles n = kShifts ? whole - kGrid.shift : whole;
  Reduced result{bits_as<DoubleBits>(rounded), (x - n * (kPiHigh * kGrid.step)) - n * (kPiLow * kGrid.step)};
  if (!all_of<double>(magnitude_of<double>(x) < kFar)) [[unlikely]] {
    constexpr size_t kLanes = sizeof(Doubles) / sizeof(double);
    const auto numbers = bits_as<std::array<double, kLanes>>(x);
    auto n_lanes = bits_as<std::array<uint64_t, kLanes>>(result.n);
    auto r_lanes = bits_as<std::array<double, kLanes>>(result.r);
    for (size_t i = 0; i < kLanes; ++i) {
      if (!(numbers[i] < kFar && numbers[i] > -kFar)) reduce_far<kGrid>(numbers[i], n_lanes[i], r_lanes[i]);
    }
    result = {bits_as<DoubleBits>(n_lanes), bits_as<Doubles>(r_lanes)};
  }
  return result;
}

// (-1)^n * sin r
ANYDML_INLINE Doubles sine(const Reduced& x) {
  const Doubles z = x.r * x.r;
  const Doubles y =
      x.r * polynomial(z, z * z, 0x1.ffffffffd17d1p-1, -0x1.5555554175949p-3, 0x1.11110b74aaa16p-7,
                       -0x1.a017a8fd18887p-13, 0x1.716ba4de77818p-19, -0x1.9a0e16624ca77p-26);
  return bits_as<Doubles>(bits_as<DoubleBits>(y) ^ (x.n << 63));
}
ANYDML_INLINE Doubles sin_of(Doubles x) { return sine(reduced<kZerosOfSine>(x)); }
ANYDML_INLINE Doubles cos_of(Doubles x) { return sine(reduced<kZerosOfCosine>(x)); }

// tan r = r * p(r^2) / q(r^2), of which odd multiples of pi/2 before give -1 / tan r.
ANYDML_INLINE Doubles tan_of(Doubles x) {
  const Reduced a = reduced<kZerosAndPolesOfTangent>(x);
  const Doubles z = a.r * a.r;
  const Doubles z2 = z * z;
  const Doubles p =
      a.r * polynomial(z, z2, 0x1.0000000018490p+0, -0x1.c822eed72e54ep-4, 0x1.19d868f4e9b8cp-10);
  const Doubles q = polynomial(z, z2, 1.0, -0x1.c75e10ee93f97p-2, 0x1.05b542e9412cdp-6);
  const auto odd = (a.n & 1) != 0;
  return (odd ? -q : p) / (odd ? p : q);
}

// For s from 0 to 1/2, with z = s^2
ANYDML_INLINE Doubles asin_of_small(Doubles s, Doubles z) {
  return s * polynomial(z, z * z, 0x1.0000000117f16p+0, 0x1.55554848e3ab3p-3, 0x1.333988d61642fp-4,
                        0x1.6c91bbfbd34adp-5, 0x1.0554db3009bfap-5, 0x1.cf525bcea0684p-7,
                        0x1.365bec0efb2a7p-5);
}

// Beyond 1/2: asin |x| = pi/2 - 2 * asin(sqrt((1 - |x|) / 2)), and acos |x| is what is subtracted.
ANYDML_INLINE Doubles asin_of(Doubles x) {
  const Doubles a = magnitude_of<double>(x);
  const auto large = a > 0.5;
  const Doubles z = large ? 0.5 - a * 0.5 : a * a;
  const Doubles y = asin_of_small(large ? square_root<double>(z) : a, z);
  return with_sign_of<double>(large ? kPi / 2 - (y + y) : y, x);
}
ANYDML_INLINE Doubles acos_of(Doubles x) {
  const Doubles a = magnitude_of<double>(x);
  const auto large = a > 0.5;
  const Doubles z = large ? 0.5 - a * 0.5 : a * a;
  const Doubles y = with_sign_of<double>(asin_of_small(large ? square_root<double>(z) : a, z), x);
  const Doubles behind = x < 0.0 ? Doubles{} + kPi : Doubles{};
  return large ? behind + (y + y) : kPi / 2 - y;
}

// atan(y / x) of numbers that are not below 0: atan t = c + atan((t - tan c) / (1 + t * tan c)), with c = 0,
// pi/4 or pi/2, leaves numbers to tan(pi/8).
ANYDML_INLINE Doubles atan_of_ratio(Doubles y, Doubles x) {
  const auto low = y <= x * 0x1.a827999fcef32p-2;  // tan(pi/8)
  const auto high = y > x * 0x1.3504f333f9de6p+1;  // tan(3*pi/8)
  const Doubles top = low ? y : high ? -x : y - x;
  const Doubles bottom = low ? x : high ? y : y + x;
  const Doubles c = low ? Doubles{} : high ? Doubles{} + kPi / 2 : Doubles{} + kPi / 4;
  const Doubles s = top / bottom;
  const Doubles z = s * s;
  return c + s * polynomial(z, z * z, 0x1.ffffffffd2798p-1, -0x1.555554877385ep-2, 0x1.999901190e2e7p-3,
                            -0x1.247cfba7964e8p-3, 0x1.c43f3d1f208e1p-4, -0x1.5a83666a24444p-4,
                            0x1.8232b119467bdp-5);
}
ANYDML_INLINE Doubles atan_of(Doubles x) {
  return with_sign_of<double>(atan_of_ratio(magnitude_of<double>(x), Doubles{} + 1.0), x);
}

// The angle of the point (x, y). An infinity counts as a number so large that others are next to nothing, and
// an x of 0 as one so small.
ANYDML_INLINE Doubles atan2_of(Doubles y, Doubles x) {
  const Doubles most = Doubles{} + 0x1p500;
  const Doubles least = Doubles{} + 0x1p-500;
  const Doubles a = lane_min<double>(most, magnitude_of<double>(y));
  const Doubles b = lane_max<double>(least, lane_min<double>(most, magnitude_of<double>(x)));
  const Doubles angle = atan_of_ratio(a, b);
  const auto behind = (bits_as<DoubleBits>(x) & kSignOf<double>) != 0;
  return with_sign_of<double>(behind ? kPi - angle : angle, y);
}

ANYDML_ISA_END
