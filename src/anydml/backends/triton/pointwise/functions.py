"""What functions of singles and of halves have in common."""

from __future__ import annotations

import triton
import triton.language as tl

TO_WHOLE = tl.constexpr(12582912.0)
"""1.5 * 2^23, to which an addition rounds to whole numbers, which are then the last bits."""


@triton.jit
def bits_of(x):
    return x.to(tl.int32, bitcast=True)


@triton.jit
def single_of(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def power_of_2(moved):
    """2^n of the n that was rounded by adding TO_WHOLE."""
    return single_of((bits_of(moved) + 127) << 23)


@triton.jit
def with_sign_of(y, x):
    return single_of((bits_of(y) & 0x7FFFFFFF) | (bits_of(x) & -0x80000000))


@triton.jit
def least(a, MOST: tl.constexpr):
    """The lesser one; NaN stays NaN."""
    return tl.minimum(a, MOST, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def polynomial(x, C: tl.constexpr):
    """c0 + c1 * x + c2 * x^2 + ..., by Horner's scheme."""
    y = tl.fma(x, C[len(C) - 1], C[len(C) - 2])
    for i in tl.static_range(3, len(C) + 1):
        y = tl.fma(y, x, C[len(C) - i])
    return y


@triton.jit
def half_quotient(a, b):
    """The quotient of halves, seen as singles: what is right when it is rounded to a half.

    No quotient of theirs is nearer than 2^-23 of it to what lies midway between two halves, and none is midway. By a
    step of Newton's an approximation is within 2^-24; there is none where a or b is infinite, or b is 0.
    """
    inverse = 1.0 / b
    quotient = a * inverse
    rest = tl.fma(0.0 - quotient, b, a)
    return tl.where(rest == rest, tl.fma(rest, inverse, quotient), quotient)
