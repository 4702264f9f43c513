"""Triton kernels of CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT.

A tensor is lines along an axis, counted through, nearest ones first. A tile is some lines, or a piece of them, each cut
into PARTS of DEPTH elements: (PARTS, LINES, DEPTH) where elements of a line lie side by side (DIM, the dimension along
which a part goes, is 2), and (PARTS, DEPTH, LINES) where those of lines do (DIM is 1). Threads go along the last
dimension and warps along the first: in the latter each thread has a part to itself. What is one for each part, or for
each line, is a tile too, of size 1 in the other dimensions. Backward is a matter of addresses and of the scan's
direction. Exclusive reads each element's predecessor, but for the first of a tile, which starts with the identity.

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
def _along_axis(PARTS: tl.constexpr, DEPTH: tl.constexpr, DIM: tl.constexpr, INDEX: tl.constexpr):
    """Where elements of a tile are along the axis."""
    part = tl.arange(0, PARTS).to(INDEX)[:, None, None] * DEPTH
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
    if DIM == 1:
        x_at = tl.max_contiguous(x_at + zero, 4)
        y_at = tl.max_contiguous(y_at + zero, 4)
    elif NARROW:
        x_at += zero
        y_at += zero
    return x_at, y_at


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
def _tallies(
    prefixes,
    exponents,
    totals,
    total_exponents,
    carry,
    carry_exponent,
    DIM: tl.constexpr,
    SCALED: tl.constexpr,
    PRODUCT: tl.constexpr,
    REVERSE: tl.constexpr,
):
    """The tallies of each line: those within its parts, behind the parts before and the tiles before."""
    PARTS: tl.constexpr = totals.shape[0]
    if PARTS > 1:
        IDENTITY: tl.constexpr = 1 if PRODUCT else 0
        # For each part the others, along DIM.
        other = _along_axis(1, PARTS, DIM, tl.int32)
        part = tl.arange(0, PARTS)[:, None, None]
        is_before = (other > part) if REVERSE else (other < part)
        if DIM == 1:
            others, other_exponents = tl.permute(totals, (1, 0, 2)), tl.permute(total_exponents, (1, 0, 2))
        else:
            others, other_exponents = tl.permute(totals, (2, 1, 0)), tl.permute(total_exponents, (2, 1, 0))
        others = tl.where(is_before, others, IDENTITY).to(totals.dtype)
        other_exponents = tl.where(is_before, other_exponents, 0)
        before, exponent = _reduce(others, other_exponents, DIM, SCALED, PRODUCT)
        carry, carry_exponent = _combine(carry, carry_exponent, before, exponent, SCALED, PRODUCT)
    if SCALED:
        result = joined(carry * prefixes, carry_exponent + exponents)
    elif PRODUCT:
        result = carry * prefixes
    else:
        result = carry + prefixes
    return result


@triton.jit
def _offset(at, stride, DIM: tl.constexpr, NARROW: tl.constexpr):
    offset = at * stride
    if NARROW and at.shape[2] > 1:
        offset = tl.max_contiguous(offset, [1, 1, 2])
    elif DIM == 1 and at.shape[0] > 1:
        offset = tl.max_contiguous(offset, [2, 1, 1])
    return offset


@triton.jit
def _load(
    lines, at, stride, mask, n, DIM: tl.constexpr, NARROW: tl.constexpr, IDENTITY: tl.constexpr, POLICY: tl.constexpr
):
    """The elements `at` along the axis, the identity beyond it."""
    place = lines + _offset(at, stride, DIM, NARROW)
    return tl.load(place, mask=mask & (at < n), other=IDENTITY, eviction_policy=POLICY)


@triton.jit
def _read(
    lines,
    along,
    start,
    stride,
    mask,
    n,
    SIZE: tl.constexpr,
    DIM: tl.constexpr,
    NARROW: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    IDENTITY: tl.constexpr,
):
    """What is to be scanned for the tile that begins at `start`, and what beside it belongs to the tile's total.

    EXCLUSIVE, that is of each element the one before, the identity where this is another tile's, and the tile's last.
    """
    if EXCLUSIVE:
        before = along + (1 if REVERSE else -1)
        has_before = (before >= 0) & (before < SIZE)
        values = _load(lines, before + start, stride, mask & has_before, n, DIM, NARROW, IDENTITY, "evict_first")
        last = tl.full((1, 1, 1), 0 if REVERSE else SIZE - 1, along.dtype) + start
        ends = _load(lines, last, stride, mask, n, DIM, NARROW, IDENTITY, "evict_first")
        # In-place, all is read before a neighbour writes.
        tl.debug_barrier()
    else:
        values = _load(lines, along + start, stride, mask, n, DIM, NARROW, IDENTITY, "evict_first")
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
    NARROW: tl.constexpr,
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
    next_start = start + tl.cast(tiles - 1 if REVERSE else 0, INDEX) * SIZE
    values, ends = _read(
        x_lines, along, next_start, x_axis, is_line, n, SIZE, DIM, NARROW, EXCLUSIVE, REVERSE, IDENTITY
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
                x_lines, along, next_start, x_axis, is_next, n, SIZE, DIM, NARROW, EXCLUSIVE, REVERSE, IDENTITY
            )
        prefixes, exponents, totals, powers = _scan(given, DIM, SCALED, PRODUCT, TALLY, REVERSE)
        result = _tallies(prefixes, exponents, totals, powers, carry, carry_exponent, DIM, SCALED, PRODUCT, REVERSE)
        place = y_lines + _offset(at, y_axis, DIM, NARROW)
        tl.store(place, result.to(y_lines.dtype.element_ty), mask=is_line & (at < n))
        if not ONE:
            if PARTS > 1:
                totals, powers = _reduce(totals, powers, 0, SCALED, PRODUCT)
            if EXCLUSIVE:
                last, last_exponent = _totals(beside, DIM, SCALED, PRODUCT, TALLY)
                totals, powers = _combine(totals, powers, last, last_exponent, SCALED, PRODUCT)
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
    line = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)
    x_at, y_at = _line_offsets(line, zero, sizes, x_strides, y_strides, LOOPS, DIM, NARROW)
    is_line = _along_lines(line < line_count, DIM)
    x_lines = x + _along_lines(x_at, DIM)
    y_lines = y + _along_lines(y_at, DIM)
    carry = tl.full(is_line.shape, 1 if PRODUCT else 0, TALLY)
    exponent = tl.zeros(is_line.shape, tl.int32)
    tiles = 1 if ONE else tl.cdiv(n, PARTS * DEPTH)
    _walk(
        x_lines, y_lines, 0, tiles, x_axis, y_axis, is_line, n, carry, exponent,
        PARTS, DEPTH, DIM, NARROW, ONE, PRODUCT, SCALED, TALLY, EXCLUSIVE, REVERSE, INDEX,
    )  # fmt: skip


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
    NARROW: tl.constexpr,
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
    x_at, y_at = _line_offsets(line, zero, sizes, x_strides, y_strides, LOOPS, DIM, NARROW)
    is_line = _along_lines(line < line_count, DIM)
    x_lines = x + _along_lines(x_at, DIM)
    y_lines = y + _along_lines(y_at, DIM)
    start = tl.cast(pieces - 1 - piece if REVERSE else piece, INDEX) * SIZE
    if SCALED or DIM == 1:
        # By fours first: four elements multiplied plainly stay in the range of float64, and only what they come to is
        # split; and what is combined at once holds few registers.
        if DIM == 1:
            at = _along_axis(SIZE // 4, 4, DIM, INDEX) + start
        else:
            at = _along_axis(4, SIZE // 4, DIM, INDEX) + start
        values = _load(x_lines, at, x_axis, is_line, n, DIM, NARROW, IDENTITY, "").to(TALLY)
        fours, _ = _reduce(values, values, 2 - DIM, False, PRODUCT)
        total, power = _totals(fours, 2 * DIM - 2, SCALED, PRODUCT, TALLY)
    else:
        at = _along_axis(TILES * PARTS, DEPTH, DIM, INDEX) + start
        values = _load(x_lines, at, x_axis, is_line, n, DIM, NARROW, IDENTITY, "")
        totals, powers = _totals(values, DIM, SCALED, PRODUCT, TALLY)
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
        x_lines += zero
    _walk(
        x_lines, y_lines, start, TILES, x_axis, y_axis, is_line, n, carry, carry_exponent,
        PARTS, DEPTH, DIM, NARROW, TILES == 1, PRODUCT, SCALED, TALLY, EXCLUSIVE, REVERSE, INDEX,
    )  # fmt: skip
