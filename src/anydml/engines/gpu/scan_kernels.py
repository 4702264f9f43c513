"""Triton kernels of CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT.

A tensor is lines along an axis, counted through, nearest ones first. A tile is (LINES, AXIS) where elements of a line
lie side by side (DIM, the axis's dimension, is 1), and (AXIS, LINES) where those of lines do (DIM is 0). Threads go
along the last dimension: in the latter each has a line to itself. Backward is a matter of addresses and of the scan's
direction. Exclusive reads each element's predecessor, but for the first of a tile, which starts with the identity.

Tallies of floats are held in the next wider type. A product's is a mantissa and an exponent, of the value
mantissa * 2^exponent, with 1 <= |mantissa| < 2, or a mantissa of 0, infinity or NaN: parts of a row, multiplied with
each other first, might otherwise leave the range that the row as a whole stays in.
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
def multiply_scaled(a, a_exponent, b, b_exponent):
    """(a * 2^a_exponent) * (b * 2^b_exponent), normalised."""
    product = a * b
    is_large = tl.abs(product) >= 2
    product = tl.where(is_large, product * 0.5, product)
    return product, a_exponent + b_exponent + is_large.to(tl.int32)


@triton.jit
def split(x):
    """x as mantissa and exponent; 0, infinities and NaN as they are, with exponent 0."""
    WIDTH: tl.constexpr = 52 if x.dtype == tl.float64 else 23
    BITS: tl.constexpr = tl.int64 if x.dtype == tl.float64 else tl.int32
    MOST: tl.constexpr = 0x7FF if x.dtype == tl.float64 else 0xFF
    BIAS: tl.constexpr = 1023 if x.dtype == tl.float64 else 127
    bits = x.to(BITS, bitcast=True)
    biased = (bits >> WIDTH) & MOST
    ordinary = (biased > 0) & (biased < MOST)
    mantissa = (bits & ~(MOST << WIDTH)) | (BIAS << WIDTH)
    return tl.where(ordinary, mantissa, bits).to(x.dtype, bitcast=True), tl.where(ordinary, biased - BIAS, 0).to(
        tl.int32
    )


@triton.jit
def joined(mantissa, exponent):
    """mantissa * 2^exponent, the exponent cut off where the output's type has long had 0 or infinity."""
    WIDTH: tl.constexpr = 52 if mantissa.dtype == tl.float64 else 23
    BITS: tl.constexpr = tl.int64 if mantissa.dtype == tl.float64 else tl.int32
    BIAS: tl.constexpr = 1023 if mantissa.dtype == tl.float64 else 127
    within = tl.minimum(tl.maximum(exponent, 1 - BIAS), BIAS)
    power = ((within.to(BITS) + BIAS) << WIDTH).to(mantissa.dtype, bitcast=True)
    return mantissa * power


@triton.jit
def _line_offsets(
    line, zero, sizes, x_strides, y_strides, LOOPS: tl.constexpr, DIM: tl.constexpr, NARROW: tl.constexpr
):
    """Where the lines of a tile start, in x and in y.

    Threads are to go along lines that lie side by side, each with one of them, and not with several of which it then
    has fewer elements. The compiler has threads go along what it knows to lie side by side, and gives each as much as
    it knows to be aligned: `zero` is 0, which it does not know, and so takes nothing for aligned. NARROW has threads go
    along the axis in the same way.
    """
    x_at = line * 0
    y_at = line * 0
    for i in tl.static_range(LOOPS):
        at = line % sizes[i]
        x_at += at * x_strides[i]
        y_at += at * y_strides[i]
        line = line // sizes[i]
    if DIM == 0:
        x_at = tl.max_contiguous(x_at + zero, 2)
        y_at = tl.max_contiguous(y_at + zero, 2)
    elif NARROW:
        x_at += zero
        y_at += zero
    return x_at, y_at


@triton.jit
def _reduce(values, DIM: tl.constexpr, SCALED: tl.constexpr, PRODUCT: tl.constexpr, TALLY: tl.constexpr):
    """The total of each line, as mantissa and exponent."""
    values = values.to(TALLY)
    if SCALED:
        mantissas, exponents = split(values)
        total, exponent = tl.reduce((mantissas, exponents), DIM, multiply_scaled, keep_dims=True)
    elif PRODUCT:
        total = tl.reduce(values, DIM, _multiply, keep_dims=True)
        exponent = tl.zeros(total.shape, tl.int32)
    else:
        total = tl.reduce(values, DIM, _add, keep_dims=True)
        exponent = tl.zeros(total.shape, tl.int32)
    return total, exponent


@triton.jit
def _combine(a, a_exponent, b, b_exponent, SCALED: tl.constexpr, PRODUCT: tl.constexpr):
    if SCALED:
        result, exponent = multiply_scaled(a, a_exponent, b, b_exponent)
    elif PRODUCT:
        result, exponent = a * b, a_exponent
    else:
        result, exponent = a + b, a_exponent
    return result, exponent


@triton.jit
def _scan(
    values,
    carry,
    carry_exponent,
    DIM: tl.constexpr,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
    TALLY: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """The tallies of each line, behind those of the tiles before."""
    given = values
    values = values.to(TALLY)
    if SCALED:
        # No part's product leaves the range where the sum of |log2 x| over a line does not, nor does it with what comes
        # before. Zeros do no harm then, as nothing is infinite.
        LIMIT: tl.constexpr = 1000 if tl.float64 == TALLY else 120
        given = given.to(tl.float32)
        logarithms = tl.abs(tl.log2(tl.abs(tl.where(given == 0, 1.0, given))))
        reach = tl.max(tl.sum(logarithms, DIM, keep_dims=True) + tl.abs(carry_exponent).to(tl.float32))
        if reach < LIMIT:
            result = carry * tl.associative_scan(values, DIM, _multiply, REVERSE)
            result = joined(result, carry_exponent)
        else:
            mantissas, exponents = split(values)
            mantissas, exponents = tl.associative_scan((mantissas, exponents), DIM, multiply_scaled, REVERSE)
            mantissas, exponents = multiply_scaled(carry, carry_exponent, mantissas, exponents)
            result = joined(mantissas, exponents)
    elif PRODUCT:
        result = carry * tl.associative_scan(values, DIM, _multiply, REVERSE)
    else:
        result = carry + tl.associative_scan(values, DIM, _add, REVERSE)
    return result


@triton.jit
def _expand(vector, DIM: tl.constexpr):
    """A vector along dimension DIM of a tile."""
    if DIM == 0:
        tile = vector[:, None]
    else:
        tile = vector[None, :]
    return tile


@triton.jit
def _along(at, stride, NARROW: tl.constexpr):
    offset = at * stride
    if NARROW and at.shape[1] > 1:
        offset = tl.max_contiguous(offset, [1, 2])
    return offset


@triton.jit
def _load(lines, at, stride, mask, n, NARROW: tl.constexpr, IDENTITY: tl.constexpr, POLICY: tl.constexpr):
    """The elements `at` along the axis, the identity beyond it."""
    place = lines + _along(at, stride, NARROW)
    return tl.load(place, mask=mask & (at < n), other=IDENTITY, eviction_policy=POLICY)


@triton.jit
def _read(
    lines,
    start,
    stride,
    mask,
    n,
    AXIS: tl.constexpr,
    DIM: tl.constexpr,
    NARROW: tl.constexpr,
    INDEX: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    IDENTITY: tl.constexpr,
):
    """What is to be scanned for the tile that begins at `start`, and what beside it belongs to the tile's total.

    EXCLUSIVE, that is of each element the one before, the identity where this is another tile's, and the tile's last.
    """
    along = _expand(tl.arange(0, AXIS).to(INDEX), DIM)
    if EXCLUSIVE:
        before = along + (1 if REVERSE else -1)
        has_before = (before >= 0) & (before < AXIS)
        values = _load(lines, before + start, stride, mask & has_before, n, NARROW, IDENTITY, "evict_first")
        last = tl.full((1, 1), 0 if REVERSE else AXIS - 1, INDEX) + start
        ends = _load(lines, last, stride, mask, n, NARROW, IDENTITY, "evict_first")
        # In-place, all is read before a neighbour writes.
        tl.debug_barrier()
    else:
        values = _load(lines, along + start, stride, mask, n, NARROW, IDENTITY, "evict_first")
        ends = values
    return values, ends


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
    AXIS: tl.constexpr,
    DIM: tl.constexpr,
    NARROW: tl.constexpr,
    ONE: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    TALLY: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans so many lines, tile after tile along the axis; ONE says that a tile has all of it."""
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    line = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)
    x_at, y_at = _line_offsets(line, zero, sizes, x_strides, y_strides, LOOPS, DIM, NARROW)
    is_line = _expand(line < line_count, 1 - DIM)
    x_lines = x + _expand(x_at, 1 - DIM)
    y_lines = y + _expand(y_at, 1 - DIM)
    along = _expand(tl.arange(0, AXIS).to(INDEX), DIM)

    carry = tl.full(is_line.shape, IDENTITY, TALLY)
    carry_exponent = tl.zeros(is_line.shape, tl.int32)
    tiles = 1 if ONE else tl.cdiv(n, AXIS)
    start = (tiles - 1) * AXIS if REVERSE else 0
    values, ends = _read(x_lines, start, x_axis, is_line, n, AXIS, DIM, NARROW, INDEX, EXCLUSIVE, REVERSE, IDENTITY)
    for tile in range(tiles):
        at = along + start
        given = values
        if not ONE:
            total, exponent = _reduce(given, DIM, SCALED, PRODUCT, TALLY)
            if EXCLUSIVE:
                last, last_exponent = _reduce(ends, DIM, SCALED, PRODUCT, TALLY)
                total, exponent = _combine(total, exponent, last, last_exponent, SCALED, PRODUCT)
            # The next tile is on its way while this one is scanned.
            start = (tiles - 2 - tile if REVERSE else tile + 1) * AXIS
            is_next = is_line & (tl.full((1, 1), 1, tl.int32) + tile < tiles)
            values, ends = _read(
                x_lines, start, x_axis, is_next, n, AXIS, DIM, NARROW, INDEX, EXCLUSIVE, REVERSE, IDENTITY
            )
        result = _scan(given, carry, carry_exponent, DIM, SCALED, PRODUCT, TALLY, REVERSE)
        tl.store(y_lines + _along(at, y_axis, NARROW), result.to(y.dtype.element_ty), mask=is_line & (at < n))
        if not ONE:
            carry, carry_exponent = _combine(carry, carry_exponent, total, exponent, SCALED, PRODUCT)


@triton.jit(do_not_specialize=["zero", "step"])
def scan_step(
    x,
    y,
    totals,
    total_exponents,
    carries,
    carry_exponents,
    step,
    zero,
    n,
    x_axis,
    y_axis,
    line_count,
    sizes,
    x_strides,
    y_strides,
    LOOPS: tl.constexpr,
    PARTS: tl.constexpr,
    SPAN: tl.constexpr,
    LINES: tl.constexpr,
    AXIS: tl.constexpr,
    DIM: tl.constexpr,
    NARROW: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    TALLY: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Long lines go in steps of PARTS tiles. A launch reduces the tiles of step `step` and scans those of the step
    before, which it finds in the second-level cache.

    totals: (2, blocks, PARTS, LINES), carries: (2, blocks, LINES), used in turn: what a launch reads another wrote.
    SPAN is PARTS, or the number of threads where that is more: fewer elements than threads make code of many times the
    length.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    pid = tl.program_id(0)
    scans = pid % 2
    part = pid // 2 % PARTS
    block = pid // 2 // PARTS
    blocks = tl.cdiv(line_count, LINES)
    column = tl.arange(0, LINES)
    line = block.to(INDEX) * LINES + column
    x_at, y_at = _line_offsets(line, zero, sizes, x_strides, y_strides, LOOPS, DIM, NARROW)
    is_line = _expand(line < line_count, 1 - DIM)
    x_lines = x + _expand(x_at, 1 - DIM)
    column = _expand(column, 1 - DIM)
    tiles = tl.cdiv(n, AXIS)
    number = (step - scans) * PARTS + part
    is_tile = (number >= 0) & (number < tiles)
    start = (tiles - 1 - number if REVERSE else number) * AXIS
    at = _expand(tl.arange(0, AXIS).to(INDEX), DIM) + start

    this, last = step % 2, (step + 1) % 2
    if scans == 0:
        if is_tile:
            values = _load(x_lines, at, x_axis, is_line, n, NARROW, IDENTITY, "evict_last")
            total, exponent = _reduce(values, DIM, SCALED, PRODUCT, TALLY)
            place = ((this * blocks + block) * PARTS + part) * LINES + column
            tl.store(totals + place, total)
            if SCALED:
                tl.store(total_exponents + place, exponent)
    elif is_tile:
        part_of = _expand(tl.arange(0, SPAN), DIM)
        places = ((last * blocks + block) * PARTS + part_of) * LINES + column
        place = (last * blocks + block) * LINES + column
        # Of a step with all its parts up to this one.
        earlier = tl.load(totals + places, mask=part_of < part, other=IDENTITY)
        before = tl.load(carries + place, mask=(step + column * 0 > 1), other=IDENTITY)
        if SCALED:
            exponents = tl.load(total_exponents + places, mask=part_of < part, other=0)
            exponent = tl.load(carry_exponents + place, mask=(step + column * 0 > 1), other=0)
            total, total_exponent = tl.reduce((earlier, exponents), DIM, multiply_scaled, keep_dims=True)
        else:
            exponent = tl.zeros(before.shape, tl.int32)
            total, total_exponent = _reduce(earlier, DIM, SCALED, PRODUCT, TALLY)
        carry, carry_exponent = _combine(before, exponent, total, total_exponent, SCALED, PRODUCT)
        values, _ = _read(x_lines, start, x_axis, is_line, n, AXIS, DIM, NARROW, INDEX, EXCLUSIVE, REVERSE, IDENTITY)
        result = _scan(values, carry, carry_exponent, DIM, SCALED, PRODUCT, TALLY, REVERSE)
        y_lines = y + _expand(y_at, 1 - DIM)
        mask = is_line & (at < n)
        tl.store(
            y_lines + _along(at, y_axis, NARROW),
            result.to(y.dtype.element_ty),
            mask=mask,
            eviction_policy="evict_first",
        )
        if part == PARTS - 1:
            here = ((last * blocks + block) * PARTS + part) * LINES + column
            total = tl.load(totals + here)
            total_exponent = tl.zeros(total.shape, tl.int32)
            if SCALED:
                total_exponent = tl.load(total_exponents + here)
            carry, carry_exponent = _combine(carry, carry_exponent, total, total_exponent, SCALED, PRODUCT)
            place = (this * blocks + block) * LINES + column
            tl.store(carries + place, carry)
            if SCALED:
                tl.store(carry_exponents + place, carry_exponent)
