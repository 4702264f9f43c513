"""Triton kernel of scans over few adjacent lines, transposed in shared memory: see ``tile.py``."""

from __future__ import annotations

import triton
import triton.language as tl

from .ops import (
    aggregates_of,
    apply_prefix,
    combine,
    exclusive_prefix,
    line_offsets,
    propagate,
    reduce_along,
    scan_parts,
)


@triton.jit
def _in_memory(
    line,
    zero,
    sizes,
    x_strides,
    y_strides,
    x_axis,
    y_axis,
    line_count,
    SIZE: tl.constexpr,
    LINES: tl.constexpr,
    WIDTH: tl.constexpr,
    ADJACENT: tl.constexpr,
    USED: tl.constexpr,
    PITCH: tl.constexpr,
    LOW: tl.constexpr,
    SAME_STRIDES: tl.constexpr,
    LOOPS: tl.constexpr,
):
    """For each element of a tile in the order of memory: its offsets in x, in y and in the tile, and its step along the
    axis. A place without an element has a step beyond all."""
    at = tl.arange(0, SIZE * LINES)
    step = at % PITCH // ADJACENT
    column = at // PITCH * ADJACENT + at % ADJACENT
    is_there = (step < SIZE) & (column < USED) & (line + column < line_count)
    x_at, y_at = line_offsets(line + column, sizes, x_strides, y_strides, LOOPS)
    x_at += step * x_axis + zero
    y_at = x_at if SAME_STRIDES else y_at + step * y_axis + zero
    # In the tile LOW depths lie side by side, then columns, each a line of a part.
    DEPTH: tl.constexpr = SIZE * LINES // WIDTH
    depth = step % DEPTH
    place = (depth // LOW * WIDTH + step // DEPTH * LINES + column) * LOW + depth % LOW
    return x_at, y_at, tl.where(is_there, place, 0), tl.where(is_there, step, 1 << 30)


@triton.jit
def _transposed(
    flat,
    depth,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    LINES: tl.constexpr,
    ADJACENT: tl.constexpr,
    USED: tl.constexpr,
    PITCH: tl.constexpr,
    IDENTITY: tl.constexpr,
):
    """The elements of each part at these depths of a tile in the order of memory; the identity outside the tile."""
    column = tl.arange(0, PARTS * LINES)[None, :]
    line = tl.minimum(column % LINES, USED - 1)
    step = column // LINES * DEPTH + depth[:, None]
    is_there = (step >= 0) & (step < PARTS * DEPTH)
    index = line // ADJACENT * PITCH + line % ADJACENT + tl.where(is_there, step, 0) * ADJACENT
    SHAPE: tl.constexpr = (1, depth.shape[0], PARTS * LINES)
    tile = tl.reshape(tl.gather(flat, tl.reshape(index, (depth.shape[0] * PARTS * LINES,)), 0), SHAPE)
    return tl.where(is_there[None, :, :], tile, IDENTITY).to(flat.dtype)


@triton.jit(do_not_specialize=["zero"])
def scan_narrow(
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
    ADJACENT: tl.constexpr,
    USED: tl.constexpr,
    PITCH: tl.constexpr,
    LOW: tl.constexpr,
    SAME_STRIDES: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans USED lines, of which ADJACENT at a time lie side by side, tile after tile along
    the axis.

    In the order of memory a tile has the elements of the first ADJACENT lines, step by step, and PITCH elements further
    those of the next. That, and the LOW depths that lie side by side before they are written, avoid bank conflicts in
    shared memory. SAME_STRIDES says that x and y have the same strides.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = PARTS * DEPTH
    WIDTH: tl.constexpr = PARTS * LINES
    line = tl.program_id(0).to(INDEX) * USED
    x_at, y_at, place, step = _in_memory(
        line, zero, sizes, x_strides, y_strides, x_axis, y_axis, line_count,
        SIZE, LINES, WIDTH, ADJACENT, USED, PITCH, LOW, SAME_STRIDES, LOOPS,
    )  # fmt: skip
    carry = tl.full((1, 1, LINES), IDENTITY, ACCUMULATOR)
    exponent = tl.zeros((1, 1, LINES), tl.int32)
    tiles = tl.cdiv(n, SIZE)
    depth = tl.arange(0, DEPTH)
    next_start = tl.cast(tiles - 1 if REVERSE else 0, INDEX) * SIZE
    left = tl.minimum(n - next_start, SIZE).to(tl.int32)
    flat = tl.load(x + (x_at + next_start * x_axis), step < left, IDENTITY)
    for tile in range(tiles):
        start = next_start
        current = flat
        # The next tile is on its way while this one is scanned.
        next_start = tl.cast(tiles - 2 - tile if REVERSE else tile + 1, INDEX) * SIZE
        left = tl.where(tile + 1 < tiles, tl.minimum(n - next_start, SIZE), 0).to(tl.int32)
        flat = tl.load(x + (x_at + next_start * x_axis), step < left, IDENTITY)
        before = depth + (1 if REVERSE else -1) if EXCLUSIVE else depth
        values = _transposed(current, before, PARTS, DEPTH, LINES, ADJACENT, USED, PITCH, IDENTITY)
        prefixes, exponents, totals, powers = scan_parts(values, 1, SCALED, PRODUCT, ACCUMULATOR, REVERSE)
        totals, powers = tl.reshape(totals, (PARTS, 1, LINES)), tl.reshape(powers, (PARTS, 1, LINES))
        before, before_exponent = exclusive_prefix(carry, exponent, totals, powers, 1, SCALED, PRODUCT, REVERSE)
        before_exponent = tl.reshape(tl.broadcast_to(before_exponent, before.shape), (1, 1, WIDTH))
        before = tl.reshape(before, (1, 1, WIDTH))
        result = apply_prefix(before, before_exponent, prefixes, exponents, SCALED, PRODUCT)
        if PARTS > 1:
            totals, powers = reduce_along(totals, powers, 0, SCALED, PRODUCT)
        if EXCLUSIVE:
            last = tl.full((1,), 0 if REVERSE else SIZE - 1, tl.int32)
            ends = _transposed(current, last, 1, SIZE, LINES, ADJACENT, USED, PITCH, IDENTITY)
            end, end_exponent = aggregates_of(ends, 1, SCALED, PRODUCT, ACCUMULATOR)
            totals, powers = combine(totals, powers, end, end_exponent, SCALED, PRODUCT)
        carry, exponent = propagate(carry, exponent, totals, powers, SCALED, PRODUCT)
        result = tl.reshape(result.to(y.dtype.element_ty), (DEPTH // LOW, LOW, WIDTH))
        result = tl.gather(tl.reshape(tl.permute(result, (0, 2, 1)), (SIZE * LINES,)), place, 0)
        left = tl.minimum(n - start, SIZE).to(tl.int32)
        tl.store(y + (y_at + start * y_axis), result, step < left)
