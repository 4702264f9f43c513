"""Triton kernel of scans along short rows that lie one behind the other: a segmented scan.

A program takes some rows as one, from whole vectors on as ``rows.py`` describes it. Each element has its row's number
with it; a combination of two that are of different rows is the later one.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .ops import frexp, ldexp
from .rows import load_places, places_of, row_of, store_places


@triton.jit
def _add(a, a_row, b, b_row):
    return tl.where(a_row == b_row, a + b, b), b_row


@triton.jit
def _multiply(a, a_row, b, b_row):
    return tl.where(a_row == b_row, a * b, b), b_row


@triton.jit
def _multiply_scaled(a, a_exponent, a_row, b, b_exponent, b_row):
    is_same = a_row == b_row
    return tl.where(is_same, a * b, b), tl.where(is_same, a_exponent + b_exponent, b_exponent), b_row


@triton.jit(do_not_specialize=["zero"])
def scan_short_rows(
    x,
    y,
    zero,
    count,
    n,
    inverse,
    ROWS: tl.constexpr,
    SIZE: tl.constexpr,
    VECTOR: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans ROWS rows of n of `count` elements. `inverse` is 2^32 / n, rounded up: with it the quotients of
    numbers by n are right where their product is less than 2^32."""
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    start = tl.full((), 0, INDEX)
    at = tl.program_id(0).to(INDEX) * (n * ROWS)
    length = tl.minimum(count - at, n * ROWS).to(tl.int32)
    x_base, y_base, y_lead, lead, end, low, high = row_of(x, y, at, at, count, length)
    values = load_places(x_base, start, lead, end, low, high, 1, SIZE, VECTOR, IDENTITY)
    place = places_of(start, 1, SIZE).to(tl.int32)
    # The compiler has threads hold what they read only where all that is scanned depends on it: `zero` is 0.
    if values.dtype.is_floating():
        none = (values > 0).to(tl.int32) & zero
    else:
        none = values.to(tl.int32) & zero
    row = tl.umulhi(tl.maximum(place - lead + none, 0).to(tl.uint32), tl.cast(inverse, tl.uint32)).to(tl.int32)
    wide = values.to(ACCUMULATOR)
    if SCALED:
        mantissa, exponent = frexp(wide)
        mantissa, exponent, _ = tl.associative_scan((mantissa, exponent, row), 2, _multiply_scaled, REVERSE)
        result = ldexp(mantissa, exponent)
    elif PRODUCT:
        result, _ = tl.associative_scan((wide, row), 2, _multiply, REVERSE)
    else:
        result, _ = tl.associative_scan((wide, row), 2, _add, REVERSE)
    store_places(y_base, y_lead, start, lead, end, result.to(values.dtype), 1, SIZE, VECTOR)
