"""Numbers of elements taken apart into the indices of nested loops, by multiplications where 32 bits hold them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def quotient(number, size, multiplier, shift):
    """number // size, of numbers that are not negative."""
    if number.dtype == tl.int32:
        bits = number.to(tl.uint32, bitcast=True)
        factor = (number * 0 + multiplier).to(tl.uint32, bitcast=True)
        result = ((tl.umulhi(bits, factor) + bits) >> shift).to(tl.int32, bitcast=True)
    else:
        result = number // size
    return result


@triton.jit
def apart(number, sizes, multipliers, shifts, strides, LOOPS: tl.constexpr):
    """The offset of an element by its number in nested loops, the innermost first."""
    at = number * 0
    for i in tl.static_range(LOOPS):
        if i + 1 < LOOPS:
            outer = quotient(number, sizes[i], multipliers[i], shifts[i])
            at += (number - outer * sizes[i]) * strides[i]
            number = outer
        else:
            at += number * strides[i]
    return at


@triton.jit
def is_within(at, size):
    """Whether 0 <= at < size, by one comparison: a negative number is a large one without a sign."""
    if at.dtype == tl.int32:
        result = at.to(tl.uint32, bitcast=True) < (at * 0 + size).to(tl.uint32, bitcast=True)
    else:
        result = at.to(tl.uint64, bitcast=True) < (at * 0 + size).to(tl.uint64, bitcast=True)
    return result
