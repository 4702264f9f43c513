"""Triton's kernels of DYNAMIC_QUANTIZE_LINEAR: the range by parts, the scale and zero point of all, and the numbers;
and of QUANTIZE and DEQUANTIZE by blocks."""

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


@triton.jit
def _number(codes, at, mask, BITS: tl.constexpr):
    """Elements as singles; those of 4 bits lie two in a byte, of which the first is the low half."""
    if BITS == 8:
        return tl.load(codes + at, mask=mask, other=0).to(tl.float32)
    half = tl.load(codes + (at >> 1), mask=mask, other=0).to(tl.int32) >> ((at & 1) * 4).to(tl.int32) & 15
    return (half if BITS == 4 else (half ^ 8) - 8).to(tl.float32)


@triton.jit
def _place(at, sizes, multipliers, shifts, steps, LOOPS: tl.constexpr, IS_FLAT: tl.constexpr):
    """Where an element lies by its number, which is its place where there are no gaps."""
    return at if IS_FLAT else apart(at, sizes, multipliers, shifts, steps, LOOPS)


@triton.jit
def _quantized(
    x, scale, zero, at, mask, sizes, multipliers, shifts, x_steps, scale_steps, zero_steps,
    HAS_ZERO: tl.constexpr, BITS: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, LOOPS: tl.constexpr,
    IS_FLAT: tl.constexpr,
):  # fmt: skip
    """round(x / scale) + zero of numbered elements, within the type."""
    place = _place(at, sizes, multipliers, shifts, x_steps, LOOPS, IS_FLAT)
    value = tl.load(x + place, mask=mask, other=0).to(tl.float32)
    step = tl.load(scale + apart(at, sizes, multipliers, shifts, scale_steps, LOOPS), mask=mask, other=1)
    number = _whole(tl.div_rn(value, step.to(tl.float32)))
    if HAS_ZERO:
        number += _number(zero, apart(at, sizes, multipliers, shifts, zero_steps, LOOPS), mask, BITS)
    return tl.minimum(tl.maximum(number, LOW), HIGH).to(tl.int32)


@triton.jit
def quantize_blocks(
    x, scale, zero, y, n, sizes, multipliers, shifts, x_steps, scale_steps, zero_steps, y_steps,
    HAS_ZERO: tl.constexpr, BITS: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr,
    LOOPS: tl.constexpr, IS_FLAT: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """BITS: 8, 4 without a sign, or -4 with one; a program writes BLOCK bytes."""
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    if BITS == 8:
        mask = at < n
        number = _quantized(
            x, scale, zero, at, mask, sizes, multipliers, shifts, x_steps, scale_steps, zero_steps,
            HAS_ZERO, BITS, LOW, HIGH, LOOPS, IS_FLAT,
        )  # fmt: skip
        place = _place(at, sizes, multipliers, shifts, y_steps, LOOPS, IS_FLAT)
    else:
        place = at
        mask = at < (n + 1) // 2
        low = _quantized(
            x, scale, zero, at * 2, mask, sizes, multipliers, shifts, x_steps, scale_steps, zero_steps,
            HAS_ZERO, BITS, LOW, HIGH, LOOPS, IS_FLAT,
        )  # fmt: skip
        is_there = at * 2 + 1 < n
        high = _quantized(
            x, scale, zero, at * 2 + 1, is_there, sizes, multipliers, shifts, x_steps, scale_steps, zero_steps,
            HAS_ZERO, BITS, LOW, HIGH, LOOPS, IS_FLAT,
        )  # fmt: skip
        number = low & 15 | tl.where(is_there, high & 15, 0) << 4
    tl.store(y + place, number.to(y.dtype.element_ty), mask=mask)


@triton.jit
def dequantize_blocks(
    x, scale, zero, y, rows, columns, blocks, sizes, multipliers, shifts,
    x_rows, scale_rows, zero_rows, y_rows, x_step, scale_step, zero_step, y_step,
    HAS_ZERO: tl.constexpr, BITS: tl.constexpr, LOOPS: tl.constexpr, ALONG: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """(x - zero) * scale in single precision, in which the difference is exact. Columns are the innermost loop; ALONG
    says whether scales, and zero points, differ along it."""
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    is_row = row < rows
    mask = is_row & (column < columns)
    number = _number(x, apart(row, sizes, multipliers, shifts, x_rows, LOOPS) + column * x_step, mask, BITS)
    if HAS_ZERO:
        of_zero = apart(row, sizes, multipliers, shifts, zero_rows, LOOPS)
        if ALONG[1]:
            number -= _number(zero, of_zero + column * zero_step, mask, BITS)
        else:
            number -= _number(zero, of_zero, is_row, BITS)
    of_scale = scale + apart(row, sizes, multipliers, shifts, scale_rows, LOOPS)
    if ALONG[0]:
        step = tl.load(of_scale + column * scale_step, mask=mask, other=0)
    else:
        step = tl.load(of_scale, mask=is_row, other=0)
    place = apart(row, sizes, multipliers, shifts, y_rows, LOOPS) + column * y_step
    tl.store(y + place, (number * step.to(tl.float32)).to(y.dtype.element_ty), mask=mask)
