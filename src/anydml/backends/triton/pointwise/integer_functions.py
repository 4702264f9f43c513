"""Quotients and remainders of integers of up to 32 bits; those of 8 and 16 bits by singles, which hold them: a division
of 32 bits takes longer, and one of 64 bits much longer.

By 0 all bits of a result are 1.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .functions import TO_WHOLE, single_of, with_sign_of


@triton.jit
def _as_single(x):
    """By the last bits of 1.5 * 2^23 + x: GPUs convert few numbers at once."""
    return single_of(x.to(tl.int32) + 0x4B400000) - TO_WHOLE


@triton.jit
def _truncated(a, b):
    """The quotient, as 32 bits; by 0 any number. Of narrow ones (|a| + 1/2) / |b|, truncated, with the sign of a / b:

    it lies 1 / (2 * |b|) and more from a whole number, and an approximation errs by less than 1 / (40 * |b|).
    """
    if a.dtype.primitive_bitwidth == 32:
        # Processors trap at what has no quotient.
        divisor = tl.where(b == 0, 1, b)
        if a.dtype.is_int_unsigned():
            result = (a // divisor).to(tl.int32, bitcast=True)
        else:
            is_minus_1 = b == -1
            result = tl.where(is_minus_1, 0 - a, a // tl.where(is_minus_1, 1, divisor))
    else:
        top, bottom = _as_single(a), _as_single(b)
        inverse = with_sign_of(tl.rsqrt(tl.maximum(bottom * bottom, 1.0)), bottom)
        result = ((top + with_sign_of(tl.full(a.shape, 0.5, tl.float32), top)) * inverse).to(tl.int32)
    return result


@triton.jit
def _rest(a, b):
    """Of the sign of a."""
    return a.to(tl.int32) - _truncated(a, b) * b.to(tl.int32)


@triton.jit
def integer_quotient(a, b):
    return tl.where(b == 0, -1, _truncated(a, b)).to(a.dtype)


@triton.jit
def integer_remainder(a, b):
    return tl.where(b == 0, -1, _rest(a, b)).to(a.dtype)


@triton.jit
def integer_floored_remainder(a, b):
    """Of the sign of b."""
    rest = _rest(a, b)
    if not a.dtype.is_int_unsigned():
        divisor = b.to(tl.int32)
        rest += tl.where((rest != 0) & ((rest ^ divisor) < 0), divisor, 0)
    return tl.where(b == 0, -1, rest).to(a.dtype)
