// Error-free sums of a few halves, in pairs of singles: what is a multiple of 1/16 and the rest of each half
// are summed apart, neither of which is ever rounded. Quotients are rounded once, from singles that are
// rounded to odd. Twice as many lanes fit a register as of doubles, which halves would have to be converted
// to by way of singles.
#pragma once

#include <cstdint>
#include <cstring>

#include "platform/isa.h"
#include "pointwise/lanes.h"
#include "pooling/geometry.h"
#include "simd/bits_as.h"

ANYDML_ISA_BEGIN
namespace {

// sum = high + low, high a multiple of 2^-4 and |low| < 2^-4 for each half, a multiple of 2^-24. So a single
// has either, of kMost halves: 16 * 65504 < 2^24 * 2^-4, and 16 * 2^-4 = 2^24 * 2^-24.
struct HalfSums {
  static constexpr int64_t kMost = 16;
  // Where no instruction rounds a product and its sum once, doubles are faster.
  static constexpr bool kAreFast = !kCompact;
  static constexpr int kLanes = sizeof(Singles) / sizeof(float);

  Singles high{};
  Singles low{};

  ANYDML_INLINE static Singles load(const float* from) {
    Singles v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }
  ANYDML_INLINE static void store(float* to, Singles v) { std::memcpy(to, &v, sizeof(v)); }

  ANYDML_INLINE void add(const HalfSums& other) {
    high = high + other.high;
    low = low + other.low;
  }

  // The sums, divided by counts of at most kMost, as singles from which halves are rounded as from the exact
  // quotients. What is added to `left` is no number where an element is infinite or no number.
  ANYDML_INLINE Singles over(Singles count, Singles reciprocal, Singles& left) const {
    using Bits = Lanes<uint32_t, kLanes>;
    // sum = s + rest
    const Singles s = high + low;
    const Singles rest = low - (s - high);
    // Within 3 units of the last place, without the last 4 bits: no half, and no number between two, is
    // nearer to the quotient than 4 bits but this one itself, which it is beside or on, as the remainder
    // tells.
    constexpr uint32_t kLast = 15;
    const Bits q = (bits_as<Bits>(Singles(s * reciprocal)) + (kLast + 1) / 2) & ~kLast;
    const Singles remainder = multiply_add(-bits_as<Singles>(q), count, s) + rest;
    left = left + remainder;
    // One unit away from 0, or towards it.
    using Signed = Lanes<int32_t, kLanes>;
    const Signed one = bits_as<Signed>(bits_as<Bits>(remainder) ^ q) >> 31 | 1;
    return bits_as<Singles>(remainder != 0.0F ? Bits(q + bits_as<Bits>(one)) : q);
  }
};

// Those of a column of at most kMost halves, the first of them x: what is added to 1.5 * 2^19, whose last bit
// is 2^-4, is rounded to multiples of that.
class HalfColumns {
 public:
  static constexpr int64_t kMost = 4;  // 4 * 65504 < 2^18

  // Of windows, columns first.
  static bool hold(const Nest& nest) {
    int64_t rows = 1;
    for (const Dimension& dimension : nest.outer) {
      if (dimension.window.taps > kMost) return false;
      rows *= dimension.window.taps;
    }
    return rows <= kMost && nest.row.window.taps <= HalfSums::kMost / rows;
  }

  ANYDML_INLINE void begin(Singles x) {
    all_ = Singles{} + kRounding;
    low_ = part_of(x);
  }
  ANYDML_INLINE void add(Singles x) { low_ = low_ + part_of(x); }
  ANYDML_INLINE HalfSums sums() const { return {all_ - kRounding, low_}; }

 private:
  static constexpr float kRounding = 0x1.8p19F;

  // Adds the multiple, and returns the rest.
  ANYDML_INLINE Singles part_of(Singles x) {
#if defined(ANYDML_ISA_AVX512)
    constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    all_ = (Singles)_mm512_maskz_add_round_ps(kAllLanes, (__m512)all_, (__m512)x, kDown);
    constexpr int kBits = 4 << 4;
    return (Singles)_mm512_maskz_reduce_ps(kAllLanes, (__m512)x, kBits | kDown);
#else
    const Singles before = all_;
    all_ = all_ + x;
    return x - (all_ - before);
#endif
  }

  Singles all_;
  Singles low_;
};

}  // namespace
ANYDML_ISA_END
