"""Triton kernel of scans along rows, contiguous ones that begin anywhere, and how such rows are read and written.

Memory is fast at whole vectors of 16 bytes, at multiples of as many. So a row is taken from the vector on in which it
begins: its elements are at the places from `lead` on to before `end`, and place 0 is a multiple of 16 bytes. Tiles
begin at multiples of their size. What else is in the row's first and its last vector is read with it where it belongs
to the tensor, and is not used; it is not written.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .ops import (
    aggregates_of,
    apply_prefix,
    exclusive_prefix,
    line_offsets,
    multiply,
    propagate,
    reduce_along,
    scan_parts,
)


@triton.jit
def in_vector(pointer):
    """The number of elements between a multiple of 16 bytes and the pointer."""
    return (pointer.to(tl.int64) & 15).to(tl.int32) // (pointer.dtype.element_ty.primitive_bitwidth // 8)


@triton.jit
def from_vector(pointer):
    """The pointer to the multiple of 16 bytes at or before."""
    return tl.multiple_of((pointer.to(tl.int64) & -16).to(pointer.dtype), 16)


@triton.jit
def places_of(start, PARTS: tl.constexpr, DEPTH: tl.constexpr):
    part = tl.arange(0, PARTS)[:, None, None] * DEPTH
    return part.to(start.dtype) + tl.arange(0, DEPTH)[None, None, :] + start


@triton.jit
def load_places(
    base,
    start,
    lead,
    end,
    low,
    high,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    VECTOR: tl.constexpr,
    IDENTITY: tl.constexpr,
):
    """PARTS x 1 x DEPTH elements of a row from a place on; the identity outside it. The places from `low` on to before
    `high` belong to the tensor."""
    SIZE: tl.constexpr = PARTS * DEPTH
    place = places_of(start, PARTS, DEPTH)
    first = tl.cdiv(low, VECTOR) * VECTOR
    last = tl.minimum(tl.cdiv(end, VECTOR), high // VECTOR) * VECTOR
    values = tl.load(base + place, mask=(place >= first) & (place < last), other=IDENTITY)
    if (start < lead) | (start + SIZE > end):
        # Vectors that the tensor has in part, element by element.
        for at in range(tl.maximum(lead, start).to(tl.int32), tl.minimum(first, end).to(tl.int32)):
            values = tl.where(place == at, tl.load(base + at), values)
        for at in range(tl.maximum(tl.maximum(lead, start), last), tl.minimum(start + SIZE, end)):
            values = tl.where(place == at, tl.load(base + at), values)
        values = tl.where((place >= lead) & (place < end), values, IDENTITY).to(values.dtype)
    return values


@triton.jit
def aggregate(values, SCALED: tl.constexpr, PRODUCT: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """The aggregate of a tile. Four elements multiplied plainly stay in the range of float64: only their product is
    split."""
    if SCALED:
        quads = tl.reduce(values.to(ACCUMULATOR), 0, multiply, keep_dims=True)
        total, power = aggregates_of(quads, 2, SCALED, PRODUCT, ACCUMULATOR)
    else:
        totals, powers = aggregates_of(values, 2, SCALED, PRODUCT, ACCUMULATOR)
        total, power = reduce_along(totals, powers, 0, SCALED, PRODUCT)
    return total, power


@triton.jit
def store_places(
    base, y_lead, start, lead, end, values, PARTS: tl.constexpr, DEPTH: tl.constexpr, VECTOR: tl.constexpr
):
    """Writes PARTS x 1 x DEPTH elements of a row from a place on: whole vectors, and the elements at its ends, where
    the row begins at the same place of a vector as where it was read, else element by element."""
    SIZE: tl.constexpr = PARTS * DEPTH
    place = places_of(start, PARTS, DEPTH)
    if y_lead == lead:
        first = tl.cdiv(lead, VECTOR) * VECTOR
        last = end // VECTOR * VECTOR
        tl.store(base + place, values, mask=(place >= first) & (place < last))
        if ((lead > 0) & (start == 0)) | ((last < end) & (last >= start) & (last < start + SIZE)):
            at = tl.arange(0, 2 * VECTOR).to(start.dtype)
            at = tl.where(at < VECTOR, at, last + at - VECTOR)
            is_edge = (at >= lead) & (at < end) & ((at < first) | (at >= last)) & (at >= start) & (at < start + SIZE)
            index = tl.where(is_edge, at - start, 0).to(tl.int32)
            edge = tl.gather(tl.reshape(values, (SIZE,)), index, 0)
            tl.store(base + at, edge, mask=is_edge)
    else:
        mask = (place >= lead) & (place < end)
        tl.store(base + (y_lead - lead) + place, values, mask=mask)


@triton.jit
def store_behind(
    y,
    carry,
    carry_exponent,
    start,
    lead,
    end,
    values,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """Writes an exclusive scan: the inclusive one, each element one place further, and what came before the tile at its
    first. `y` points to the row's first element."""
    STEP: tl.constexpr = -1 if REVERSE else 1
    place = places_of(start, PARTS, DEPTH)
    first = tl.maximum(start, lead)
    last = tl.minimum(start + PARTS * DEPTH, end) - 1
    target = place + STEP
    tl.store(y - lead + target, values, mask=(target >= first) & (target <= last))
    one = tl.full((1, 1, 1), 1 if PRODUCT else 0, carry.dtype)
    before = apply_prefix(carry, carry_exponent, one, 0, SCALED, PRODUCT).to(values.dtype)
    at = (last if REVERSE else first) + tl.zeros((1, 1, 1), tl.int32)
    tl.store(y - lead + at, before, mask=at < end)


@triton.jit
def scan_places(
    x_base,
    y_base,
    y_lead,
    start,
    tiles,
    lead,
    end,
    low,
    high,
    carry,
    carry_exponent,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    VECTOR: tl.constexpr,
    ONE: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Scans `tiles` tiles of a row, of which that at `start` is the first in memory; ONE says that there is one."""
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = PARTS * DEPTH
    next_start = start + tl.cast(tiles - 1 if REVERSE else 0, INDEX) * SIZE
    values = load_places(x_base, next_start, lead, end, low, high, PARTS, DEPTH, VECTOR, IDENTITY)
    for tile in range(tiles):
        current_start = next_start
        current = values
        if not ONE:
            # The next tile is on its way while this one is scanned; beyond the last one nothing is read.
            next_start = start + tl.cast(tiles - 2 - tile if REVERSE else tile + 1, INDEX) * SIZE
            until = tl.where(tile + 1 < tiles, end, 0)
            values = load_places(x_base, next_start, lead, until, low, high, PARTS, DEPTH, VECTOR, IDENTITY)
        prefixes, exponents, totals, powers = scan_parts(current, 2, SCALED, PRODUCT, ACCUMULATOR, REVERSE)
        before, before_exponent = exclusive_prefix(carry, carry_exponent, totals, powers, 2, SCALED, PRODUCT, REVERSE)
        result = apply_prefix(before, before_exponent, prefixes, exponents, SCALED, PRODUCT).to(x_base.dtype.element_ty)
        if EXCLUSIVE:
            store_behind(
                y_base + y_lead, carry, carry_exponent, current_start, lead, end, result,
                PARTS, DEPTH, PRODUCT, SCALED, REVERSE,
            )  # fmt: skip
        else:
            store_places(y_base, y_lead, current_start, lead, end, result, PARTS, DEPTH, VECTOR)
        if not ONE:
            if PARTS > 1:
                totals, powers = reduce_along(totals, powers, 0, SCALED, PRODUCT)
            carry, carry_exponent = propagate(carry, carry_exponent, totals, powers, SCALED, PRODUCT)


@triton.jit
def row_of(x, y, x_at, y_at, x_span, n):
    """Where a row lies, of which the first elements are at these offsets: the first vectors, the place of the row's
    first element in the one that is written, and in the one that is read; its end, and the places that belong to x."""
    x_lead = in_vector(x + x_at)
    y_lead = in_vector(y + y_at)
    low = tl.where(x_at < x_lead, x_lead, 0)
    end = n + x_lead
    high = tl.minimum(x_span - x_at, n + 16) + x_lead
    return from_vector(x + x_at), from_vector(y + y_at), y_lead, x_lead, end, low, high


@triton.jit
def scan_rows(
    x,
    y,
    x_span,
    n,
    row_count,
    sizes,
    x_strides,
    y_strides,
    LOOPS: tl.constexpr,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    VECTOR: tl.constexpr,
    ONE: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans a row, tile after tile; ONE says that a tile has all of it, wherever it begins."""
    row = tl.program_id(0).to(INDEX)
    x_at, y_at = line_offsets(row, sizes, x_strides, y_strides, LOOPS)
    x_base, y_base, y_lead, lead, end, low, high = row_of(x, y, x_at, y_at, x_span, n)
    carry = tl.full((1, 1, 1), 1 if PRODUCT else 0, ACCUMULATOR)
    exponent = tl.zeros((1, 1, 1), tl.int32)
    tiles = 1 if ONE else tl.cdiv(end, PARTS * DEPTH).to(tl.int32)
    scan_places(
        x_base, y_base, y_lead, tl.full((), 0, INDEX), tiles, lead, end, low, high, carry, exponent,
        PARTS, DEPTH, VECTOR, ONE, PRODUCT, SCALED, ACCUMULATOR, EXCLUSIVE, REVERSE, INDEX,
    )  # fmt: skip
