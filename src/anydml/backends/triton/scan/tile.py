"""Triton kernels of CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: scans tile by tile, reduce-then-scan within a tile.

A tensor is lines along an axis, counted through, nearest ones first. A tile is some lines, or a piece of them, each cut
into PARTS of DEPTH elements: (PARTS, LINES, DEPTH) where elements of a line lie side by side (DIM, the dimension along
which a part goes, is 2), and (PARTS, DEPTH, LINES) where those of lines do (DIM is 1). Threads go along the last
dimension and warps along the first: in the latter each thread has a part to itself. What is one for each part, or for
each line, is a tile too, of size 1 in the other dimensions. A scan backward differs
in addresses and in the direction of the scan alone. An exclusive one reads each element's predecessor; the first of a
tile starts with the identity.

Where few lines lie side by side, their elements are read and written in the order of memory, as only then the sectors
of a cache are written whole, and transposed into tiles of DIM 1 in the memory that a program's threads share.

Accumulators of floats have the next wider type, those of products are float64. Parts of a row, multiplied with each
other first, might leave the range that the row as a whole stays in. So a product beyond a part is a scaled float, a
mantissa and an exponent of the value mantissa * 2^exponent; the mantissa is within the roots of 1/2 and of 2, so that a
thousand of them stay in range, or 0, infinite or NaN.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .ops import (
    aggregates_of,
    along_axis,
    along_lines,
    apply_prefix,
    combine,
    exclusive_prefix,
    line_offsets,
    mark_contiguous,
    offset_along,
    propagate,
    read_along,
    reduce_along,
    scan_parts,
)


@triton.jit
def scan_consecutive_tiles(
    x_lines,
    y_lines,
    start,
    tiles,
    x_axis,
    y_axis,
    is_line,
    n,
    carry,
    carry_exponent,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    DIM: tl.constexpr,
    ONE: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Scans `tiles` tiles along the axis, of which that at `start` is the first in memory; ONE says that it is all."""
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = PARTS * DEPTH
    along = along_axis(PARTS, DEPTH, DIM, INDEX)
    last = tl.full((1, 1, 1), 0 if REVERSE else SIZE - 1, INDEX)
    next_start = start + tl.cast(tiles - 1 if REVERSE else 0, INDEX) * SIZE
    values, ends = read_along(
        x_lines, along, along, last, next_start, x_axis, is_line, n, SIZE, DIM, EXCLUSIVE, REVERSE, IDENTITY
    )
    for tile in range(tiles):
        at = along + next_start
        current = values
        beside = ends
        if not ONE:
            # The next tile is on its way while this one is scanned.
            next_start = start + tl.cast(tiles - 2 - tile if REVERSE else tile + 1, INDEX) * SIZE
            is_next = is_line & (tl.full((1, 1, 1), 1, tl.int32) + tile < tiles)
            values, ends = read_along(
                x_lines, along, along, last, next_start, x_axis, is_next, n, SIZE, DIM, EXCLUSIVE, REVERSE, IDENTITY
            )
        prefixes, exponents, totals, powers = scan_parts(current, DIM, SCALED, PRODUCT, ACCUMULATOR, REVERSE)
        before, before_exponent = exclusive_prefix(carry, carry_exponent, totals, powers, DIM, SCALED, PRODUCT, REVERSE)
        result = apply_prefix(before, before_exponent, prefixes, exponents, SCALED, PRODUCT)
        place = y_lines + offset_along(at, y_axis, DIM)
        tl.store(place, result.to(y_lines.dtype.element_ty), mask=is_line & (at < n))
        if not ONE:
            if PARTS > 1:
                totals, powers = reduce_along(totals, powers, 0, SCALED, PRODUCT)
            if EXCLUSIVE:
                end, end_exponent = aggregates_of(beside, DIM, SCALED, PRODUCT, ACCUMULATOR)
                totals, powers = combine(totals, powers, end, end_exponent, SCALED, PRODUCT)
            carry, carry_exponent = propagate(carry, carry_exponent, totals, powers, SCALED, PRODUCT)


@triton.jit(do_not_specialize=["zero"])
def scan_tiles(
    x,
    y,
    zero,
    n,
    x_axis,
    y_axis,
    line_count,
    sizes,
    x_strides,
    y_strides,
    LOOPS: tl.constexpr,
    LINES: tl.constexpr,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    DIM: tl.constexpr,
    PAIRS: tl.constexpr,
    ONE: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans so many lines, tile after tile along the axis; ONE says that a tile has all of it."""
    line = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)
    x_at, y_at = line_offsets(line, sizes, x_strides, y_strides, LOOPS)
    is_line = along_lines(line < line_count, DIM)
    x_lines = x + along_lines(mark_contiguous(x_at, zero, DIM, PAIRS), DIM)
    y_lines = y + along_lines(mark_contiguous(y_at, zero, DIM, PAIRS), DIM)
    carry = tl.full(is_line.shape, 1 if PRODUCT else 0, ACCUMULATOR)
    exponent = tl.zeros(is_line.shape, tl.int32)
    tiles = 1 if ONE else tl.cdiv(n, PARTS * DEPTH)
    scan_consecutive_tiles(
        x_lines, y_lines, 0, tiles, x_axis, y_axis, is_line, n, carry, exponent,
        PARTS, DEPTH, DIM, ONE, PRODUCT, SCALED, ACCUMULATOR, EXCLUSIVE, REVERSE, INDEX,
    )  # fmt: skip
