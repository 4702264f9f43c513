// The order of elements as one of signed integers of their size, of which the largest come first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "platform/isa.h"
#include "simd/unaligned.h"

ANYDML_ISA_BEGIN
namespace {

// Of integers, whose bits are flipped by a mask: the highest one where they are unsigned, and all of them
// where the smallest come first.
template <class Signed>
struct IntegerOrder {
  using Key = Signed;

  ANYDML_INLINE Key key(const std::byte* element) const {
    return static_cast<Key>(load<Key>(element) ^ mask);
  }

  Key mask;
};

// Of floats: numbers are ordered as integers of sign and magnitude, 0 and -0 are one, and so are all NaNs,
// above the infinity, whose bits are given.
template <class Signed, Signed kInfinity>
struct FloatOrder {
  using Key = Signed;

  ANYDML_INLINE Key key(const std::byte* element) const {
    constexpr Key kMost = std::numeric_limits<Key>::max();
    const Key bits = load<Key>(element);
    const auto magnitude = static_cast<Key>(bits & kMost);
    const auto number = static_cast<Key>(bits < 0 ? -magnitude : magnitude);
    return static_cast<Key>((magnitude > kInfinity ? kMost : number) ^ mask);
  }

  Key mask;  // all bits where the smallest come first
};

using HalfOrder = FloatOrder<int16_t, 0x7c00>;
using SingleOrder = FloatOrder<int32_t, 0x7f800000>;

}  // namespace
ANYDML_ISA_END
