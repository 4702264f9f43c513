"""Operations that the scan kernels share, on tiles as ``tile.py`` describes them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def frexp(x):
    """Splits x into mantissa and exponent; 0, infinities and NaN stay as they are, with exponent 0.

    The mantissa is within the roots of 1/2 and of 2.
    """
    ROOT: tl.constexpr = 0x3FE6A09E  # the upper half of the root of 1/2
    bits = x.to(tl.int64, bitcast=True)
    upper = (bits >> 32).to(tl.int32) & 0x7FFFFFFF
    is_ordinary = (upper >= 1 << 20) & (upper < 0x7FF << 20)
    exponent = tl.where(is_ordinary, (upper - ROOT) >> 20, 0)
    return (bits - (exponent.to(tl.int64) << 52)).to(tl.float64, bitcast=True), exponent


@triton.jit
def ldexp(mantissa, exponent):
    """mantissa * 2^exponent; the exponent is clamped to where no product with elements of a part returns from."""
    within = tl.minimum(tl.maximum(exponent, -1022), 1023)
    return mantissa * ((within.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def along_axis(
    PARTS: tl.constexpr, DEPTH: tl.constexpr, DIM: tl.constexpr, INDEX: tl.constexpr, PITCH: tl.constexpr = 0
):
    """The position along the axis of each element of a tile, whose parts lie DEPTH apart, or PITCH."""
    part = tl.arange(0, PARTS).to(INDEX)[:, None, None] * (PITCH if PITCH else DEPTH)
    depth = tl.arange(0, DEPTH).to(INDEX)
    if DIM == 1:
        along = part + depth[None, :, None]
    else:
        along = part + depth[None, None, :]
    return along


@triton.jit
def along_lines(vector, DIM: tl.constexpr):
    if DIM == 1:
        tile = vector[None, None, :]
    else:
        tile = vector[None, :, None]
    return tile


@triton.jit
def line_offsets(line, sizes, x_strides, y_strides, LOOPS: tl.constexpr):
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
def mark_contiguous(at, zero, DIM: tl.constexpr, PAIRS: tl.constexpr):
    """Marks the offsets of lines as contiguous, so that threads go along adjacent lines.

    Each thread has one of them or, where PAIRS says that it may, two; not several, of which it would have fewer
    elements.

    The compiler has threads go along what it knows to lie side by side, and gives each as much as it knows to be
    aligned: `zero` is 0, which it does not know, and so takes nothing for aligned.
    """
    if DIM == 1:
        at = tl.max_contiguous(at + zero, 4)
        if PAIRS:
            at = tl.multiple_of(at, 2)
    return at


@triton.jit
def reduce_along(totals, exponents, DIM: tl.constexpr, SCALED: tl.constexpr, PRODUCT: tl.constexpr):
    if SCALED:
        total, exponent = frexp(tl.reduce(totals, DIM, multiply, keep_dims=True))
        exponent += tl.sum(exponents, DIM, keep_dims=True)
    elif PRODUCT:
        total = tl.reduce(totals, DIM, multiply, keep_dims=True)
        exponent = tl.zeros(total.shape, tl.int32)
    else:
        total = tl.reduce(totals, DIM, add, keep_dims=True)
        exponent = tl.zeros(total.shape, tl.int32)
    return total, exponent


@triton.jit
def combine(a, a_exponent, b, b_exponent, SCALED: tl.constexpr, PRODUCT: tl.constexpr):
    if SCALED:
        result, exponent = frexp(a * b)
        exponent += a_exponent + b_exponent
    elif PRODUCT:
        result, exponent = a * b, a_exponent
    else:
        result, exponent = a + b, a_exponent
    return result, exponent


@triton.jit
def propagate(a, a_exponent, b, b_exponent, SCALED: tl.constexpr, PRODUCT: tl.constexpr):
    """The inclusive prefix from an exclusive one and an aggregate.

    A product that is far beyond float64 stays there, and exponents stay within int32.
    """
    result, exponent = combine(a, a_exponent, b, b_exponent, SCALED, PRODUCT)
    if SCALED:
        FAR: tl.constexpr = 1 << 28
        result = tl.where(exponent < -FAR, 0.0, tl.where(exponent > FAR, result * float("inf"), result))
        exponent = tl.where(tl.abs(exponent) > FAR, 0, exponent)
    return result, exponent


@triton.jit
def aggregates_of(values, DIM: tl.constexpr, SCALED: tl.constexpr, PRODUCT: tl.constexpr, ACCUMULATOR: tl.constexpr):
    """The aggregates of the elements along DIM."""
    totals = values.to(ACCUMULATOR)
    if SCALED:
        totals, exponents = frexp(totals)
    else:
        exponents = tl.zeros(totals.shape, tl.int32)
    return reduce_along(totals, exponents, DIM, SCALED, PRODUCT)


@triton.jit
def scan_parts(
    values,
    DIM: tl.constexpr,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """An inclusive scan within each part with its exponents, and the parts' aggregates."""
    DEPTH: tl.constexpr = values.shape[DIM]
    values = values.to(ACCUMULATOR)
    if SCALED:
        values, powers = frexp(values)
        exponents = tl.associative_scan(powers, DIM, add, REVERSE)
    if PRODUCT:
        prefixes = tl.associative_scan(values, DIM, multiply, REVERSE)
    else:
        prefixes = tl.associative_scan(values, DIM, add, REVERSE)
    is_last = along_axis(1, DEPTH, DIM, tl.int32) == (0 if REVERSE else DEPTH - 1)
    total = tl.sum(tl.where(is_last, prefixes, 0), DIM, keep_dims=True).to(ACCUMULATOR)
    if SCALED:
        total, exponent = frexp(total)
        exponent += tl.sum(tl.where(is_last, exponents, 0), DIM, keep_dims=True)
    else:
        exponent = tl.zeros(total.shape, tl.int32)
        exponents = exponent
    return prefixes, exponents, total, exponent


@triton.jit
def parts_before(totals, exponents, SCALED: tl.constexpr, PRODUCT: tl.constexpr, REVERSE: tl.constexpr):
    """The aggregate of the parts before each one, by a scan of them."""
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    PARTS: tl.constexpr = totals.shape[0]
    part = tl.arange(0, PARTS)[:, None, None]
    is_first = part == (PARTS - 1 if REVERSE else 0)
    source = tl.broadcast_to(tl.where(is_first, part, part + (1 if REVERSE else -1)), totals.shape)
    others = tl.where(is_first, IDENTITY, tl.gather(totals, source, 0)).to(totals.dtype)
    if PRODUCT:
        before = tl.associative_scan(others, 0, multiply, REVERSE)
    else:
        before = tl.associative_scan(others, 0, add, REVERSE)
    exponent = exponents
    if SCALED:
        others = tl.where(is_first, 0, tl.gather(exponents, source, 0))
        before, exponent = frexp(before)
        exponent += tl.associative_scan(others, 0, add, REVERSE)
    return before, exponent


@triton.jit
def exclusive_prefix(
    carry,
    carry_exponent,
    totals,
    exponents,
    DIM: tl.constexpr,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """The exclusive prefix of each part: `carry` of the tiles before, combined with the parts before."""
    PARTS: tl.constexpr = totals.shape[0]
    if PARTS > 1:
        IDENTITY: tl.constexpr = 1 if PRODUCT else 0
        if DIM == 1 and PARTS > 2 and not totals.dtype.is_floating():
            # All pairs of integers take too many registers.
            before, exponent = parts_before(totals, exponents, SCALED, PRODUCT, REVERSE)
        else:
            # For each part the others, along DIM.
            other = along_axis(1, PARTS, DIM, tl.int32)
            part = tl.arange(0, PARTS)[:, None, None]
            is_before = (other > part) if REVERSE else (other < part)
            if DIM == 1:
                others, other_exponents = tl.permute(totals, (1, 0, 2)), tl.permute(exponents, (1, 0, 2))
            else:
                others, other_exponents = tl.permute(totals, (2, 1, 0)), tl.permute(exponents, (2, 1, 0))
            others = tl.where(is_before, others, IDENTITY).to(totals.dtype)
            other_exponents = tl.where(is_before, other_exponents, 0)
            before, exponent = reduce_along(others, other_exponents, DIM, SCALED, PRODUCT)
        carry, carry_exponent = combine(carry, carry_exponent, before, exponent, SCALED, PRODUCT)
    return carry, carry_exponent


@triton.jit
def scan_from_carry(
    carry,
    carry_exponent,
    values,
    ends,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """An inclusive scan of parts, DIM being 1, on from their exclusive prefixes; and the prefixes up to their ends."""
    DEPTH: tl.constexpr = values.shape[1]
    depth = along_axis(1, DEPTH, 1, tl.int32)
    is_first = depth == (DEPTH - 1 if REVERSE else 0)
    is_last = depth == (0 if REVERSE else DEPTH - 1)
    values = values.to(ACCUMULATOR)
    if SCALED:
        values, powers = frexp(values)
        exponents = tl.associative_scan(tl.where(is_first, carry_exponent + powers, powers), 1, add, REVERSE)
        carry_exponent = tl.sum(tl.where(is_last, exponents, 0), 1, keep_dims=True)
    if PRODUCT:
        result = tl.associative_scan(tl.where(is_first, carry * values, values), 1, multiply, REVERSE)
    else:
        result = tl.associative_scan(tl.where(is_first, carry + values, values), 1, add, REVERSE)
    carry = tl.sum(tl.where(is_last, result, 0), 1, keep_dims=True).to(ACCUMULATOR)
    if EXCLUSIVE:
        last, last_exponent = aggregates_of(ends, 1, SCALED, PRODUCT, ACCUMULATOR)
        carry, carry_exponent = propagate(carry, carry_exponent, last, last_exponent, SCALED, PRODUCT)
    elif SCALED:
        carry, carry_exponent = propagate(
            carry, carry_exponent, tl.full(carry.shape, 1, ACCUMULATOR), 0, SCALED, PRODUCT
        )
    if SCALED:
        result = ldexp(result, exponents)
    return result, carry, carry_exponent


@triton.jit
def apply_prefix(
    carry,
    carry_exponent,
    prefixes,
    exponents,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
):
    """Combines the scans within parts with each part's exclusive prefix."""
    if SCALED:
        result = ldexp(carry * prefixes, carry_exponent + exponents)
    elif PRODUCT:
        result = carry * prefixes
    else:
        result = carry + prefixes
    return result


@triton.jit
def offset_along(at, stride, DIM: tl.constexpr):
    offset = at * stride
    if DIM == 1 and at.shape[0] > 1:
        offset = tl.max_contiguous(offset, [2, 1, 1])
    return offset


@triton.jit
def load_along(lines, at, stride, mask, n, DIM: tl.constexpr, IDENTITY: tl.constexpr):
    """The elements `at` along the axis, the identity beyond it."""
    place = lines + offset_along(at, stride, DIM)
    return tl.load(place, mask=mask & (at < n), other=IDENTITY)


@triton.jit
def read_along(
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
    """The elements to be scanned, `along` from `start` on, and those which the total has besides.

    An EXCLUSIVE scan reads for each element the one before, the identity where this is not among the SIZE elements,
    numbered by `depth`, that are scanned with it; the total then has those at `last` besides, the last of these.
    """
    if EXCLUSIVE:
        STEP: tl.constexpr = 1 if REVERSE else -1
        has_before = (depth + STEP >= 0) & (depth + STEP < SIZE)
        values = load_along(lines, along + start + STEP, stride, mask & has_before, n, DIM, IDENTITY)
        ends = load_along(lines, last + start, stride, mask, n, DIM, IDENTITY)
        # In-place, all is read before a neighbour writes.
        tl.debug_barrier()
    else:
        values = load_along(lines, along + start, stride, mask, n, DIM, IDENTITY)
        ends = values
    return values, ends
