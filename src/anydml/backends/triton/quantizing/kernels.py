"""Triton's kernels of DYNAMIC_QUANTIZE_LINEAR: the range by parts, the scale and zero point of all, and the numbers."""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart


@triton.jit
def _whole(quotient):
    """The nearest integer, of two that are as near the even one, of numbers beyond 1024 that number; 0 of NaN.

    The sum with 1.5 * 2^23 has no bits below 1.
    """
    quotient = tl.where(quotient != quotient, 0.0, quotient)
    quotient = tl.minimum(tl.maximum(quotient, -1024.0), 1024.0)
    return (quotient + 12582912.0) - 12582912.0


@triton.jit
def find_range(
    x, lows, highs, n, span, sizes, multipliers, shifts, x_steps,
    LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The least and the largest of `span` elements and 0; a NaN is a 0."""
    program = tl.program_id(0)
    begin = program.to(INDEX) * span
    end = tl.minimum(begin + span, n)
    low, high = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    for start in range(begin, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + apart(at, sizes, multipliers, shifts, x_steps, LOOPS), mask=at < end, other=0)
        value = value.to(tl.float32)
        low = tl.where(value < low, value, low)
        high = tl.where(value > high, value, high)
    tl.store(lows + program, tl.min(low, 0))
    tl.store(highs + program, tl.max(high, 0))


@triton.jit
def choose_scale(lows, highs, scale, zero, parts, LOWEST: tl.constexpr, PARTS: tl.constexpr):
    """scale = (largest - least) / 255, in double precision, rounded once, 1 for 0; zero = LOWEST - least / scale.

    The zero point is within the type."""
    part = tl.arange(0, PARTS)
    least = tl.min(tl.load(lows + part, mask=part < parts, other=0.0), 0) + tl.zeros([1], tl.float32)
    largest = tl.max(tl.load(highs + part, mask=part < parts, other=0.0), 0) + tl.zeros([1], tl.float32)
    step = ((largest.to(tl.float64) - least.to(tl.float64)) / tl.full([1], 255.0, tl.float64)).to(tl.float32)
    step = tl.where(step == 0, 1.0, step)
    number = _whole(tl.div_rn(least * -1.0, step)) + LOWEST
    number = tl.minimum(tl.maximum(number, LOWEST), LOWEST + 255)
    place = tl.arange(0, 1)
    tl.store(scale + place, step)
    tl.store(zero + place, number.to(tl.int32).to(zero.dtype.element_ty))


@triton.jit
def quantize(
    x, scale, zero, y, n, sizes, multipliers, shifts, x_steps, y_steps,
    LOWEST: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    step = tl.load(scale) + tl.zeros([BLOCK], tl.float32)
    value = tl.load(x + apart(at, sizes, multipliers, shifts, x_steps, LOOPS), mask=mask, other=0).to(tl.float32)
    number = _whole(tl.div_rn(value, step)) + tl.load(zero).to(tl.float32)
    number = tl.minimum(tl.maximum(number, LOWEST), LOWEST + 255)
    place = apart(at, sizes, multipliers, shifts, y_steps, LOOPS)
    tl.store(y + place, number.to(tl.int32).to(y.dtype.element_ty), mask=mask)
