// Squares of 16 bytes by 16 bytes whose rows are lines apart from each other: several of them side by side in
// registers, read from memory and written to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "platform/isa.h"
#include "simd/transpose.h"
#include "simd/unaligned.h"
#include "simd/vector.h"

ANYDML_ISA_BEGIN
namespace {

#if defined(__GNUC__)
// 16 bytes of lines that are `step` bytes apart, one in each square of a register.
template <class Bits, int64_t kSquares>
ANYDML_INLINE SquareRow<Bits, kSquares> load_squares(const std::byte* from, int64_t step) {
#if defined(ANYDML_ISA_AVX512)
  // Loads that merge take no shuffle.
  static_assert(kSquares == 4);
  const auto at = [&](int64_t i) { return (__m128i)load<SquareRow<Bits>>(from + i * step); };
  __m512i lines = _mm512_maskz_broadcast_i32x4(0xffff, at(0));
  lines = _mm512_mask_broadcast_i32x4(lines, 0x00f0, at(1));
  lines = _mm512_mask_broadcast_i32x4(lines, 0x0f00, at(2));
  return (SquareRow<Bits, kSquares>)_mm512_mask_broadcast_i32x4(lines, 0xf000, at(3));
#else
  SquareRow<Bits> squares[kSquares];
  for (int64_t i = 0; i < kSquares; ++i) squares[i] = load<SquareRow<Bits>>(from + i * step);
  return side_by_side<SquareRow<Bits, kSquares>>(squares);
#endif
}
#endif

}  // namespace
ANYDML_ISA_END
