// IEEE 754 binary16, in integer arithmetic alone: the same bits on every machine, whatever its rounding mode
// and its treatment of subnormals. NaN keeps its sign and the upper bits of its payload and becomes quiet, as
// in F16C.
#pragma once

#include <bit>
#include <cstdint>

namespace anydml {

namespace half_detail {

inline constexpr int kMantissaShift = 23 - 10;
inline constexpr uint32_t kRebias = (127 - 15) << 23;
inline constexpr uint32_t kFloatInfinity = 0x7f800000;
inline constexpr uint32_t kFloatQuietBit = 0x00400000;
inline constexpr uint32_t kFloatImplicitBit = 0x00800000;

constexpr float widen(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7fff;
  if (magnitude > 0x7c00) {
    return std::bit_cast<float>(sign | kFloatInfinity | kFloatQuietBit |
                                (magnitude & 0x3ff) << kMantissaShift);
  }
  if (magnitude == 0x7c00) return std::bit_cast<float>(sign | kFloatInfinity);
  if (magnitude >= 0x0400) return std::bit_cast<float>(sign | ((magnitude << kMantissaShift) + kRebias));
  if (magnitude == 0) return std::bit_cast<float>(sign);
  // Subnormal: magnitude * 2^-24, whose leading bit becomes the implicit one.
  const int exponent = static_cast<int>(std::bit_width(magnitude)) - 1;
  const uint32_t mantissa = magnitude << (23 - exponent) & ~kFloatImplicitBit;
  return std::bit_cast<float>(sign | static_cast<uint32_t>(exponent + 127 - 24) << 23 | mantissa);
}

// value / 2^shift, rounded to nearest, ties to even.
constexpr uint32_t shift_right_rounding(uint32_t value, int shift) {
  const uint32_t below_half = (uint32_t{1} << (shift - 1)) - 1;
  return (value + below_half + (value >> shift & 1)) >> shift;
}

constexpr uint16_t narrow(float single) {
  const uint32_t bits = std::bit_cast<uint32_t>(single);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t half = 0;
  if (magnitude > kFloatInfinity) {
    half = 0x7e00 | (magnitude >> kMantissaShift & 0x3ff);
  } else if (magnitude >=
             0x477ff000) {  // 65520 is as near to 65536 as to the largest half, and that one is odd
    half = 0x7c00;
  } else if (magnitude >=
             0x38800000) {  // 2^-14, the smallest normal half; a carry out of the mantissa is right
    half = shift_right_rounding(magnitude - kRebias, kMantissaShift);
  } else if (magnitude > 0x33000000) {  // 2^-25, half of the smallest half
    const int exponent = static_cast<int>(magnitude >> 23);
    half = shift_right_rounding((magnitude & (kFloatImplicitBit - 1)) | kFloatImplicitBit, 126 - exponent);
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace half_detail

class Half {
 public:
  Half() = default;
  explicit constexpr Half(float value) : bits_(half_detail::narrow(value)) {}
  explicit constexpr operator float() const { return half_detail::widen(bits_); }

 private:
  uint16_t bits_;
};

}  // namespace anydml
