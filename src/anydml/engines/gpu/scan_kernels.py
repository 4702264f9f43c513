"""Triton kernels of CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT.

A tensor is lines along an axis, counted through, nearest ones first. A tile is some lines, or a piece of them, each cut
into PARTS of DEPTH elements: (PARTS, LINES, DEPTH) where elements of a line lie side by side (DIM, the dimension along
which a part goes, is 2), and (PARTS, DEPTH, LINES) where those of lines do (DIM is 1). Threads go along the last
dimension and warps along the first: in the latter each thread has a part to itself. What is one for each part, or for
each line, is a tile too, of size 1 in the other dimensions. Backward is a matter of addresses and of the scan's
direction. Exclusive reads each element's predecessor, but for the first of a tile, which starts with the identity.

Where few lines lie side by side, their elements are read and written in the order of memory, as only then the sectors
of a cache are written whole, and turned into tiles of DIM 1 in the memory that a program's threads share.

Tallies of floats are held in the next wider type, products in float64. Parts of a row, multiplied with each other
first, might leave the range that the row as a whole stays in. So a product beyond a part is a mantissa and an exponent,
of the value mantissa * 2^exponent; the mantissa is within the roots of 1/2 and of 2, so that a thousand of them stay in
range, or 0, infinite or NaN.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def split(x):
    """x as mantissa and exponent; 0, infinities and NaN as they are, with exponent 0."""
    ROOT: tl.constexpr = 0x3FE6A09E  # the upper half of the root of 1/2
    bits = x.to(tl.int64, bitcast=True)
    upper = (bits >> 32).to(tl.int32) & 0x7FFFFFFF
    is_ordinary = (upper >= 1 << 20) & (upper < 0x7FF << 20)
    exponent = tl.where(is_ordinary, (upper - ROOT) >> 20, 0)
    return (bits - (exponent.to(tl.int64) << 52)).to(tl.float64, bitcast=True), exponent


@triton.jit
def joined(mantissa, exponent):
    """mantissa * 2^exponent, the exponent cut off where no product with elements of a part comes back from."""
    within = tl.minimum(tl.maximum(exponent, -1022), 1023)
    return mantissa * ((within.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def _along_axis(
    PARTS: tl.constexpr, DEPTH: tl.constexpr, DIM: tl.constexpr, INDEX: tl.constexpr, APART: tl.constexpr = 0
):
    """Where elements of a tile are along the axis, its parts side by side or APART."""
    part = tl.arange(0, PARTS).to(INDEX)[:, None, None] * (APART if APART else DEPTH)
    depth = tl.arange(0, DEPTH).to(INDEX)
    if DIM == 1:
        along = part + depth[None, :, None]
    else:
        along = part + depth[None, None, :]
    return along


@triton.jit
def _along_lines(vector, DIM: tl.constexpr):
    if DIM == 1:
        tile = vector[None, None, :]
    else:
        tile = vector[None, :, None]
    return tile


@triton.jit
def _line_offsets(line, sizes, x_strides, y_strides, LOOPS: tl.constexpr):
    """Where lines start, in x and in y."""
    x_at = line * 0
    y_at = line * 0
    for i in tl.static_range(LOOPS):
        at = line % sizes[i]
        x_at += at * x_strides[i]
        y_at += at * y_strides[i]
        line = line // sizes[i]
    return x_at, y_at


@triton.jit
def _spread(at, zero, DIM: tl.constexpr, PAIRS: tl.constexpr):
    """Offsets of lines, marked so that threads go along lines that lie side by side, each with one of them or, where
    PAIRS says that it may, two; and not with several of which it then has fewer elements.

    The compiler has threads go along what it knows to lie side by side, and gives each as much as it knows to be
    aligned: `zero` is 0, which it does not know, and so takes nothing for aligned.
    """
    if DIM == 1:
        at = tl.max_contiguous(at + zero, 4)
        if PAIRS:
            at = tl.multiple_of(at, 2)
    return at


@triton.jit
def _reduce(totals, exponents, DIM: tl.constexpr, SCALED: tl.constexpr, PRODUCT: tl.constexpr):
    if SCALED:
        total, exponent = split(tl.reduce(totals, DIM, _multiply, keep_dims=True))
        exponent += tl.sum(exponents, DIM, keep_dims=True)
    elif PRODUCT:
        total = tl.reduce(totals, DIM, _multiply, keep_dims=True)
        exponent = tl.zeros(total.shape, tl.int32)
    else:
        total = tl.reduce(totals, DIM, _add, keep_dims=True)
        exponent = tl.zeros(total.shape, tl.int32)
    return total, exponent


@triton.jit
def _combine(a, a_exponent, b, b_exponent, SCALED: tl.constexpr, PRODUCT: tl.constexpr):
    if SCALED:
        result, exponent = split(a * b)
        exponent += a_exponent + b_exponent
    elif PRODUCT:
        result, exponent = a * b, a_exponent
    else:
        result, exponent = a + b, a_exponent
    return result, exponent


@triton.jit
def _onward(a, a_exponent, b, b_exponent, SCALED: tl.constexpr, PRODUCT: tl.constexpr):
    """A line's tally up to here. A product that is far beyond float64 stays there, and exponents within int32."""
    result, exponent = _combine(a, a_exponent, b, b_exponent, SCALED, PRODUCT)
    if SCALED:
        FAR: tl.constexpr = 1 << 28
        result = tl.where(exponent < -FAR, 0.0, tl.where(exponent > FAR, result * float("inf"), result))
        exponent = tl.where(tl.abs(exponent) > FAR, 0, exponent)
    return result, exponent


@triton.jit
def _totals(values, DIM: tl.constexpr, SCALED: tl.constexpr, PRODUCT: tl.constexpr, TALLY: tl.constexpr):
    """What the elements along DIM come to."""
    totals = values.to(TALLY)
    if SCALED:
        totals, exponents = split(totals)
    else:
        exponents = tl.zeros(totals.shape, tl.int32)
    return _reduce(totals, exponents, DIM, SCALED, PRODUCT)


@triton.jit
def _scan(
    values,
    DIM: tl.constexpr,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
    TALLY: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """The tallies within each part and their exponents, and the parts' totals."""
    DEPTH: tl.constexpr = values.shape[DIM]
    values = values.to(TALLY)
    if SCALED:
        values, powers = split(values)
        exponents = tl.associative_scan(powers, DIM, _add, REVERSE)
    if PRODUCT:
        prefixes = tl.associative_scan(values, DIM, _multiply, REVERSE)
    else:
        prefixes = tl.associative_scan(values, DIM, _add, REVERSE)
    is_last = _along_axis(1, DEPTH, DIM, tl.int32) == (0 if REVERSE else DEPTH - 1)
    total = tl.sum(tl.where(is_last, prefixes, 0), DIM, keep_dims=True).to(TALLY)
    if SCALED:
        total, exponent = split(total)
        exponent += tl.sum(tl.where(is_last, exponents, 0), DIM, keep_dims=True)
    else:
        exponent = tl.zeros(total.shape, tl.int32)
        exponents = exponent
    return prefixes, exponents, total, exponent


@triton.jit
def _behind(
    carry,
    carry_exponent,
    totals,
    exponents,
    DIM: tl.constexpr,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """For each part what lies before it: the tiles before, and the parts."""
    PARTS: tl.constexpr = totals.shape[0]
    if PARTS > 1:
        IDENTITY: tl.constexpr = 1 if PRODUCT else 0
        # For each part the others, along DIM.
        other = _along_axis(1, PARTS, DIM, tl.int32)
        part = tl.arange(0, PARTS)[:, None, None]
        is_before = (other > part) if REVERSE else (other < part)
        if DIM == 1:
            others, other_exponents = tl.permute(totals, (1, 0, 2)), tl.permute(exponents, (1, 0, 2))
        else:
            others, other_exponents = tl.permute(totals, (2, 1, 0)), tl.permute(exponents, (2, 1, 0))
        others = tl.where(is_before, others, IDENTITY).to(totals.dtype)
        other_exponents = tl.where(is_before, other_exponents, 0)
        before, exponent = _reduce(others, other_exponents, DIM, SCALED, PRODUCT)
        carry, carry_exponent = _combine(carry, carry_exponent, before, exponent, SCALED, PRODUCT)
    return carry, carry_exponent


@triton.jit
def _on_from(
    carry,
    carry_exponent,
    values,
    ends,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
    TALLY: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """The tallies of parts, DIM being 1, on from what lies before each; and that of all up to a part's end."""
    DEPTH: tl.constexpr = values.shape[1]
    depth = _along_axis(1, DEPTH, 1, tl.int32)
    is_first = depth == (DEPTH - 1 if REVERSE else 0)
    is_last = depth == (0 if REVERSE else DEPTH - 1)
    values = values.to(TALLY)
    if SCALED:
        values, powers = split(values)
        exponents = tl.associative_scan(tl.where(is_first, carry_exponent + powers, powers), 1, _add, REVERSE)
        carry_exponent = tl.sum(tl.where(is_last, exponents, 0), 1, keep_dims=True)
    if PRODUCT:
        result = tl.associative_scan(tl.where(is_first, carry * values, values), 1, _multiply, REVERSE)
    else:
        result = tl.associative_scan(tl.where(is_first, carry + values, values), 1, _add, REVERSE)
    carry = tl.sum(tl.where(is_last, result, 0), 1, keep_dims=True).to(TALLY)
    if EXCLUSIVE:
        last, last_exponent = _totals(ends, 1, SCALED, PRODUCT, TALLY)
        carry, carry_exponent = _onward(carry, carry_exponent, last, last_exponent, SCALED, PRODUCT)
    elif SCALED:
        carry, carry_exponent = _onward(carry, carry_exponent, tl.full(carry.shape, 1, TALLY), 0, SCALED, PRODUCT)
    if SCALED:
        result = joined(result, exponents)
    return result, carry, carry_exponent


@triton.jit
def _tallies(
    carry,
    carry_exponent,
    prefixes,
    exponents,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
):
    """The tallies of each line: those within its parts, and what lies before each part."""
    if SCALED:
        result = joined(carry * prefixes, carry_exponent + exponents)
    elif PRODUCT:
        result = carry * prefixes
    else:
        result = carry + prefixes
    return result


@triton.jit
def _offset(at, stride, DIM: tl.constexpr):
    offset = at * stride
    if DIM == 1 and at.shape[0] > 1:
        offset = tl.max_contiguous(offset, [2, 1, 1])
    return offset


@triton.jit
def _load(lines, at, stride, mask, n, DIM: tl.constexpr, IDENTITY: tl.constexpr, POLICY: tl.constexpr):
    """The elements `at` along the axis, the identity beyond it."""
    place = lines + _offset(at, stride, DIM)
    return tl.load(place, mask=mask & (at < n), other=IDENTITY, eviction_policy=POLICY)


@triton.jit
def _read(
    lines,
    along,
    depth,
    last,
    start,
    stride,
    mask,
    n,
    SIZE: tl.constexpr,
    DIM: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    IDENTITY: tl.constexpr,
):
    """What is to be scanned at `start` and `along` behind it, and what beside it belongs to the total.

    EXCLUSIVE, that is of each element the one before, the identity where this is not among the SIZE elements, numbered
    by `depth`, that are scanned with it; and those at `last`, the last of these.
    """
    if EXCLUSIVE:
        STEP: tl.constexpr = 1 if REVERSE else -1
        has_before = (depth + STEP >= 0) & (depth + STEP < SIZE)
        values = _load(lines, along + start + STEP, stride, mask & has_before, n, DIM, IDENTITY, "evict_first")
        ends = _load(lines, last + start, stride, mask, n, DIM, IDENTITY, "evict_first")
        # In-place, all is read before a neighbour writes.
        tl.debug_barrier()
    else:
        values = _load(lines, along + start, stride, mask, n, DIM, IDENTITY, "evict_first")
        ends = values
    return values, ends


@triton.jit
def _walk(
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
    TALLY: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Scans so many tiles along the axis, of which that at `start` is the first in memory; ONE, the one there is."""
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = PARTS * DEPTH
    along = _along_axis(PARTS, DEPTH, DIM, INDEX)
    last = tl.full((1, 1, 1), 0 if REVERSE else SIZE - 1, INDEX)
    next_start = start + tl.cast(tiles - 1 if REVERSE else 0, INDEX) * SIZE
    values, ends = _read(
        x_lines, along, along, last, next_start, x_axis, is_line, n, SIZE, DIM, EXCLUSIVE, REVERSE, IDENTITY
    )
    for tile in range(tiles):
        at = along + next_start
        given = values
        beside = ends
        if not ONE:
            # The next tile is on its way while this one is scanned.
            next_start = start + tl.cast(tiles - 2 - tile if REVERSE else tile + 1, INDEX) * SIZE
            is_next = is_line & (tl.full((1, 1, 1), 1, tl.int32) + tile < tiles)
            values, ends = _read(
                x_lines, along, along, last, next_start, x_axis, is_next, n, SIZE, DIM, EXCLUSIVE, REVERSE, IDENTITY
            )
        prefixes, exponents, totals, powers = _scan(given, DIM, SCALED, PRODUCT, TALLY, REVERSE)
        before, before_exponent = _behind(carry, carry_exponent, totals, powers, DIM, SCALED, PRODUCT, REVERSE)
        result = _tallies(before, before_exponent, prefixes, exponents, SCALED, PRODUCT)
        place = y_lines + _offset(at, y_axis, DIM)
        tl.store(place, result.to(y_lines.dtype.element_ty), mask=is_line & (at < n))
        if not ONE:
            if PARTS > 1:
                totals, powers = _reduce(totals, powers, 0, SCALED, PRODUCT)
            if EXCLUSIVE:
                end, end_exponent = _totals(beside, DIM, SCALED, PRODUCT, TALLY)
                totals, powers = _combine(totals, powers, end, end_exponent, SCALED, PRODUCT)
            carry, carry_exponent = _onward(carry, carry_exponent, totals, powers, SCALED, PRODUCT)


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
    TALLY: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans so many lines, tile after tile along the axis; ONE says that a tile has all of it."""
    line = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)
    x_at, y_at = _line_offsets(line, sizes, x_strides, y_strides, LOOPS)
    is_line = _along_lines(line < line_count, DIM)
    x_lines = x + _along_lines(_spread(x_at, zero, DIM, PAIRS), DIM)
    y_lines = y + _along_lines(_spread(y_at, zero, DIM, PAIRS), DIM)
    carry = tl.full(is_line.shape, 1 if PRODUCT else 0, TALLY)
    exponent = tl.zeros(is_line.shape, tl.int32)
    tiles = 1 if ONE else tl.cdiv(n, PARTS * DEPTH)
    _walk(
        x_lines, y_lines, 0, tiles, x_axis, y_axis, is_line, n, carry, exponent,
        PARTS, DEPTH, DIM, ONE, PRODUCT, SCALED, TALLY, EXCLUSIVE, REVERSE, INDEX,
    )  # fmt: skip


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
    NEAR: tl.constexpr,
    USED: tl.constexpr,
    APART: tl.constexpr,
    LOW: tl.constexpr,
    SAME: tl.constexpr,
    LOOPS: tl.constexpr,
):
    """Of each element of a tile in the order of memory its places in x, in y and in the tile, and its step along the
    axis; a step beyond all where there is none."""
    at = tl.arange(0, SIZE * LINES)
    step = at % APART // NEAR
    column = at // APART * NEAR + at % NEAR
    is_there = (step < SIZE) & (column < USED) & (line + column < line_count)
    x_at, y_at = _line_offsets(line + column, sizes, x_strides, y_strides, LOOPS)
    x_at += step * x_axis + zero
    y_at = x_at if SAME else y_at + step * y_axis + zero
    # In the tile LOW depths lie side by side, then columns, each a line of a part.
    DEPTH: tl.constexpr = SIZE * LINES // WIDTH
    depth = step % DEPTH
    place = (depth // LOW * WIDTH + step // DEPTH * LINES + column) * LOW + depth % LOW
    return x_at, y_at, tl.where(is_there, place, 0), tl.where(is_there, step, 1 << 30)


@triton.jit
def _turned(
    flat,
    depth,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    LINES: tl.constexpr,
    NEAR: tl.constexpr,
    USED: tl.constexpr,
    APART: tl.constexpr,
    IDENTITY: tl.constexpr,
):
    """The elements of each part at these depths, given a tile in the order of memory; the identity outside the tile."""
    column = tl.arange(0, PARTS * LINES)[None, :]
    line = tl.minimum(column % LINES, USED - 1)
    step = column // LINES * DEPTH + depth[:, None]
    is_there = (step >= 0) & (step < PARTS * DEPTH)
    index = line // NEAR * APART + line % NEAR + tl.where(is_there, step, 0) * NEAR
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
    NEAR: tl.constexpr,
    USED: tl.constexpr,
    APART: tl.constexpr,
    LOW: tl.constexpr,
    SAME: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    TALLY: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans USED lines, of which NEAR and NEAR lie side by side, tile after tile along the axis.

    In memory's order a tile's elements are those of the first NEAR lines, step by step, and APART elements on those of
    the next. That, and the LOW depths that lie side by side before they are written, keep threads from waiting for the
    same bank of the memory that they share. SAME says that x and y have the same strides.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = PARTS * DEPTH
    WIDTH: tl.constexpr = PARTS * LINES
    line = tl.program_id(0).to(INDEX) * USED
    x_at, y_at, place, step = _in_memory(
        line, zero, sizes, x_strides, y_strides, x_axis, y_axis, line_count,
        SIZE, LINES, WIDTH, NEAR, USED, APART, LOW, SAME, LOOPS,
    )  # fmt: skip
    carry = tl.full((1, 1, LINES), IDENTITY, TALLY)
    exponent = tl.zeros((1, 1, LINES), tl.int32)
    tiles = tl.cdiv(n, SIZE)
    depth = tl.arange(0, DEPTH)
    next_start = tl.cast(tiles - 1 if REVERSE else 0, INDEX) * SIZE
    left = tl.minimum(n - next_start, SIZE).to(tl.int32)
    flat = tl.load(x + (x_at + next_start * x_axis), step < left, IDENTITY)
    for tile in range(tiles):
        start = next_start
        given = flat
        # The next tile is on its way while this one is scanned.
        next_start = tl.cast(tiles - 2 - tile if REVERSE else tile + 1, INDEX) * SIZE
        left = tl.where(tile + 1 < tiles, tl.minimum(n - next_start, SIZE), 0).to(tl.int32)
        flat = tl.load(x + (x_at + next_start * x_axis), step < left, IDENTITY)
        before = depth + (1 if REVERSE else -1) if EXCLUSIVE else depth
        values = _turned(given, before, PARTS, DEPTH, LINES, NEAR, USED, APART, IDENTITY)
        prefixes, exponents, totals, powers = _scan(values, 1, SCALED, PRODUCT, TALLY, REVERSE)
        totals, powers = tl.reshape(totals, (PARTS, 1, LINES)), tl.reshape(powers, (PARTS, 1, LINES))
        before, before_exponent = _behind(carry, exponent, totals, powers, 1, SCALED, PRODUCT, REVERSE)
        before_exponent = tl.reshape(tl.broadcast_to(before_exponent, before.shape), (1, 1, WIDTH))
        before = tl.reshape(before, (1, 1, WIDTH))
        result = _tallies(before, before_exponent, prefixes, exponents, SCALED, PRODUCT)
        if PARTS > 1:
            totals, powers = _reduce(totals, powers, 0, SCALED, PRODUCT)
        if EXCLUSIVE:
            last = tl.full((1,), 0 if REVERSE else SIZE - 1, tl.int32)
            ends = _turned(given, last, 1, SIZE, LINES, NEAR, USED, APART, IDENTITY)
            end, end_exponent = _totals(ends, 1, SCALED, PRODUCT, TALLY)
            totals, powers = _combine(totals, powers, end, end_exponent, SCALED, PRODUCT)
        carry, exponent = _onward(carry, exponent, totals, powers, SCALED, PRODUCT)
        result = tl.reshape(result.to(y.dtype.element_ty), (DEPTH // LOW, LOW, WIDTH))
        result = tl.gather(tl.reshape(tl.permute(result, (0, 2, 1)), (SIZE * LINES,)), place, 0)
        left = tl.minimum(n - start, SIZE).to(tl.int32)
        tl.store(y + (y_at + start * y_axis), result, step < left)


@triton.jit
def _halves(tally):
    """The bits of a tally as integers of 32 bits each, in int64; the upper one only of 64."""
    if tally.dtype.primitive_bitwidth == 64:
        bits = tally.to(tl.int64, bitcast=True)
    else:
        bits = tally.to(tl.int32, bitcast=True).to(tl.int64)
    return bits & 0xFFFFFFFF, (bits >> 32) & 0xFFFFFFFF


@triton.jit
def _publish(words, tally, exponent, mask, SCALED: tl.constexpr, STRIDE: tl.constexpr):
    """Writes a tally for other programs to await: in words of 64 bits, of which the 33rd says that it is written.

    So nothing depends on the order in which words become visible.
    """
    lower, upper = _halves(tally)
    WRITTEN: tl.constexpr = 1 << 32
    tl.atomic_xchg(words, lower | WRITTEN, mask=mask, sem="relaxed")
    if tally.dtype.primitive_bitwidth == 64:
        tl.atomic_xchg(words + STRIDE, upper | WRITTEN, mask=mask, sem="relaxed")
    if SCALED:
        tl.atomic_xchg(words + 2 * STRIDE, (exponent.to(tl.int64) & 0xFFFFFFFF) | WRITTEN, mask=mask, sem="relaxed")


@triton.jit
def _await(words, mask, IDENTITY: tl.constexpr, SCALED: tl.constexpr, TALLY: tl.constexpr, STRIDE: tl.constexpr):
    """Tallies that programs publish or have published; the identity elsewhere."""
    WRITTEN: tl.constexpr = 1 << 32
    WIDE: tl.constexpr = TALLY.primitive_bitwidth == 64
    lower = tl.zeros(mask.shape, tl.int64)
    upper = tl.zeros(mask.shape, tl.int64)
    power = tl.zeros(mask.shape, tl.int64)
    is_written = False
    while not is_written:
        lower = tl.load(words, mask=mask, other=WRITTEN, volatile=True)
        written = lower
        if WIDE:
            upper = tl.load(words + STRIDE, mask=mask, other=WRITTEN, volatile=True)
            written &= upper
        if SCALED:
            power = tl.load(words + 2 * STRIDE, mask=mask, other=WRITTEN, volatile=True)
            written &= power
        is_written = tl.min((written >> 32).to(tl.int32)) != 0
    if WIDE:
        tally = ((lower & 0xFFFFFFFF) | (upper << 32)).to(TALLY, bitcast=True)
    else:
        tally = lower.to(tl.int32).to(TALLY, bitcast=True)
    return tl.where(mask, tally, IDENTITY).to(TALLY), power.to(tl.int32)


@triton.jit(do_not_specialize=["zero"])
def scan_chain(
    x,
    y,
    words,
    zero,
    n,
    x_axis,
    y_axis,
    line_count,
    sizes,
    x_strides,
    y_strides,
    GROUP: tl.constexpr,
    SPAN: tl.constexpr,
    WORDS: tl.constexpr,
    TILES: tl.constexpr,
    LOOPS: tl.constexpr,
    LINES: tl.constexpr,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    DIM: tl.constexpr,
    PAIRS: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    TALLY: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans a piece of its lines, TILES tiles, behind the total of all before it, which others publish.

    GROUP pieces are a group, GROUP groups a great group; the last piece of each publishes what it comes to, of a great
    group with all before. A program awaits the pieces before in its group, the groups before in its great group, and
    the great groups before: the order of combining is the same on every run. Pieces are taken in turn by a counter, so
    that those awaited are of programs that run already, whatever else does.

    words: 0 all; the counter in the first of 16; then for each piece, group and great group, WORDS for each line.
    SPAN is GROUP, or the number of threads where that is more: fewer elements than threads make code of many times the
    length.

    DIM being 1, a piece's parts are TILES * DEPTH long, as so the threads need each other once for all tiles.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = TILES * PARTS * DEPTH
    blocks = tl.cdiv(line_count, LINES)
    pieces = tl.cdiv(n, SIZE)
    turn = tl.atomic_add(words, 1, sem="relaxed").to(tl.int32)
    block = turn % blocks
    piece = turn // blocks
    column = tl.arange(0, LINES)
    line = block.to(INDEX) * LINES + column
    x_at, y_at = _line_offsets(line, sizes, x_strides, y_strides, LOOPS)
    is_line = _along_lines(line < line_count, DIM)
    x_lines = x + _along_lines(_spread(x_at, zero, DIM, PAIRS), DIM)
    y_lines = y + _along_lines(_spread(y_at, zero, DIM, PAIRS), DIM)
    start = tl.cast(pieces - 1 - piece if REVERSE else piece, INDEX) * SIZE
    # Four elements multiplied plainly stay in the range of float64: only what they come to is split.
    if DIM == 1:
        along = _along_axis(PARTS, DEPTH, 1, INDEX, TILES * DEPTH)
        totals = tl.full((PARTS, 1, LINES), IDENTITY, TALLY)
        powers = tl.zeros((PARTS, 1, LINES), tl.int32)
        values = _load(x_lines, along + start, x_axis, is_line, n, 1, IDENTITY, "")
        for tile in range(TILES):
            given = values
            next_at = along + start + tl.cast(tile + 1, INDEX) * DEPTH
            values = _load(x_lines, next_at, x_axis, is_line & (tile + 1 < TILES), n, 1, IDENTITY, "")
            if SCALED:
                given = tl.reduce(tl.reshape(given.to(TALLY), (PARTS, DEPTH // 4, 4, LINES)), 2, _multiply)
            total, power = _totals(given, 1, SCALED, PRODUCT, TALLY)
            totals, powers = _combine(totals, powers, total, power, SCALED, PRODUCT)
        total, power = _reduce(totals, powers, 0, SCALED, PRODUCT)
    elif SCALED:
        at = _along_axis(4, SIZE // 4, 2, INDEX) + start
        values = _load(x_lines, at, x_axis, is_line, n, 2, IDENTITY, "").to(TALLY)
        fours, _ = _reduce(values, values, 0, False, PRODUCT)
        total, power = _totals(fours, 2, SCALED, PRODUCT, TALLY)
    else:
        at = _along_axis(TILES * PARTS, DEPTH, 2, INDEX) + start
        values = _load(x_lines, at, x_axis, is_line, n, 2, IDENTITY, "")
        totals, powers = _totals(values, 2, SCALED, PRODUCT, TALLY)
        total, power = _reduce(totals, powers, 0, SCALED, PRODUCT)

    # (piece, group or great group, block, word, line)
    STRIDE: tl.constexpr = LINES
    step = blocks * (WORDS * LINES)
    of_pieces = words + 16 + block * (WORDS * LINES) + _along_lines(column, DIM)
    of_groups = of_pieces + pieces * step
    of_greats = of_groups + tl.cdiv(pieces, GROUP) * step
    here = tl.full((1, 1, 1), 0, tl.int32)
    slot = _along_axis(1, SPAN, DIM, tl.int32)
    group = piece // GROUP
    great = group // GROUP
    if (piece + 1) % GROUP:
        _publish(of_pieces + (piece + here) * step, total, power, is_line, SCALED, STRIDE)
    is_before = is_line & (slot < piece % GROUP)
    earlier, exponent = _await(of_pieces + (group * GROUP + slot) * step, is_before, IDENTITY, SCALED, TALLY, STRIDE)
    inside, inside_exponent = _reduce(earlier, exponent, DIM, SCALED, PRODUCT)
    if (piece + 1) % GROUP == 0:
        whole, whole_exponent = _combine(inside, inside_exponent, total, power, SCALED, PRODUCT)
        _publish(of_groups + (group + here) * step, whole, whole_exponent, is_line, SCALED, STRIDE)
    # All great groups before in the first place, then the groups before in this one.
    is_before = is_line & (slot <= group % GROUP) & (slot + great > 0)
    place = tl.where(slot == 0, of_greats + great * step, of_groups + (great * GROUP + slot - 1) * step)
    earlier, exponent = _await(place, is_before, IDENTITY, SCALED, TALLY, STRIDE)
    carry, carry_exponent = _reduce(earlier, exponent, DIM, SCALED, PRODUCT)
    carry, carry_exponent = _combine(carry, carry_exponent, inside, inside_exponent, SCALED, PRODUCT)
    if (piece + 1) % (GROUP * GROUP) == 0:
        all_so_far, last_exponent = _onward(carry, carry_exponent, total, power, SCALED, PRODUCT)
        _publish(of_greats + (great + 1 + here) * step, all_so_far, last_exponent, is_line, SCALED, STRIDE)
    # Read again, from a cache: what waits should hold few registers, so that many do.
    if DIM == 1:
        carry, carry_exponent = _behind(carry, carry_exponent, totals, powers, 1, SCALED, PRODUCT, REVERSE)
        depth = _along_axis(1, DEPTH, 1, INDEX)
        last = _along_axis(PARTS, 1, 1, INDEX, TILES * DEPTH) + (0 if REVERSE else DEPTH - 1)
        next_start = start + tl.cast(TILES - 1 if REVERSE else 0, INDEX) * DEPTH
        values, ends = _read(
            x_lines, along, depth, last, next_start, x_axis, is_line, n, DEPTH, 1, EXCLUSIVE, REVERSE, IDENTITY
        )
        for tile in range(TILES):
            at = along + next_start
            given = values
            beside = ends
            next_start = start + tl.cast(TILES - 2 - tile if REVERSE else tile + 1, INDEX) * DEPTH
            is_next = is_line & (tile + 1 < TILES)
            values, ends = _read(
                x_lines, along, depth, last, next_start, x_axis, is_next, n, DEPTH, 1, EXCLUSIVE, REVERSE, IDENTITY
            )
            result, carry, carry_exponent = _on_from(
                carry, carry_exponent, given, beside, SCALED, PRODUCT, TALLY, EXCLUSIVE, REVERSE
            )
            target = y_lines + _offset(at, y_axis, 1)
            tl.store(target, result.to(y_lines.dtype.element_ty), mask=is_line & (at < n))
    else:
        _walk(
            x_lines, y_lines, start, TILES, x_axis, y_axis, is_line, n, carry, carry_exponent,
            PARTS, DEPTH, 2, TILES == 1, PRODUCT, SCALED, TALLY, EXCLUSIVE, REVERSE, INDEX,
        )  # fmt: skip
