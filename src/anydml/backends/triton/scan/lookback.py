"""Triton kernels of scans in which programs go along a line together: see ``scan_kernels.py``."""

from __future__ import annotations

import triton
import triton.language as tl

from .ops import (
    along_axis,
    along_lines,
    behind,
    combined,
    line_offsets,
    load_along,
    multiply,
    offset_along,
    on_from,
    onward,
    read_along,
    reduced,
    spread,
    totals_of,
)
from .tile import walk


@triton.jit
def _halves(tally):
    """The bits of a tally as integers of 32 bits each, in int64; the upper one only of 64."""
    if tally.dtype.primitive_bitwidth == 64:
        bits = tally.to(tl.int64, bitcast=True)
    else:
        bits = tally.to(tl.int32, bitcast=True).to(tl.int64)
    return bits & 0xFFFFFFFF, (bits >> 32) & 0xFFFFFFFF


@triton.jit
def _publish(words, tally, exponent, mask, mark, SCALED: tl.constexpr, STRIDE: tl.constexpr):
    """Writes a tally for other programs to await: in words of 64 bits, of which the upper half is this launch's mark.

    So nothing depends on the order in which words become visible.
    """
    lower, upper = _halves(tally)
    tl.atomic_xchg(words, lower | mark, mask=mask, sem="relaxed")
    if tally.dtype.primitive_bitwidth == 64:
        tl.atomic_xchg(words + STRIDE, upper | mark, mask=mask, sem="relaxed")
    if SCALED:
        tl.atomic_xchg(words + 2 * STRIDE, (exponent.to(tl.int64) & 0xFFFFFFFF) | mark, mask=mask, sem="relaxed")


@triton.jit
def _await(words, mask, mark, IDENTITY: tl.constexpr, SCALED: tl.constexpr, TALLY: tl.constexpr, STRIDE: tl.constexpr):
    """Tallies that programs publish or have published; the identity elsewhere."""
    WIDE: tl.constexpr = TALLY.primitive_bitwidth == 64
    lower = tl.zeros(mask.shape, tl.int64)
    upper = tl.zeros(mask.shape, tl.int64)
    power = tl.zeros(mask.shape, tl.int64)
    is_written = False
    while not is_written:
        lower = tl.load(words, mask=mask, other=mark, volatile=True)
        other_marks = lower ^ mark
        if WIDE:
            upper = tl.load(words + STRIDE, mask=mask, other=mark, volatile=True)
            other_marks |= upper ^ mark
        if SCALED:
            power = tl.load(words + 2 * STRIDE, mask=mask, other=mark, volatile=True)
            other_marks |= power ^ mark
        is_written = tl.max((other_marks >> 32).to(tl.int32)) == 0
    if WIDE:
        tally = ((lower & 0xFFFFFFFF) | (upper << 32)).to(TALLY, bitcast=True)
    else:
        tally = lower.to(tl.int32).to(TALLY, bitcast=True)
    return tl.where(mask, tally, IDENTITY).to(TALLY), power.to(tl.int32)


@triton.jit
def _before_piece(
    words,
    mark,
    block,
    blocks,
    piece,
    pieces,
    column,
    is_line,
    total,
    power,
    DIM: tl.constexpr,
    GROUP: tl.constexpr,
    SPAN: tl.constexpr,
    WORDS: tl.constexpr,
    LINES: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    TALLY: tl.constexpr,
):
    """Publishes the total of a program's piece, and awaits those of all before: of each line what they come to.

    GROUP pieces are a group, GROUP groups a great group; the last piece of each publishes what it comes to, of a great
    group with all before. A program awaits the pieces before in its group, the groups before in its great group, and
    the great groups before: the order of combining is the same on every run. Pieces are taken in turn by a counter, so
    that those awaited are of programs that run already, whatever else does.

    words: the counter in the first of 16; then for each piece, group and great group, WORDS for each of the LINES
    lines, numbered by `column`, of a block. SPAN is GROUP, or as many as give each thread an element: fewer elements
    than threads make code of many times the length.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    # (piece, group or great group, block, word, line)
    step = blocks * (WORDS * LINES)
    of_pieces = words + 16 + block * (WORDS * LINES) + along_lines(column, DIM)
    of_groups = of_pieces + pieces * step
    of_greats = of_groups + tl.cdiv(pieces, GROUP) * step
    here = tl.full((1, 1, 1), 0, tl.int32)
    slot = along_axis(1, SPAN, DIM, tl.int32)
    group = piece // GROUP
    great = group // GROUP
    if (piece + 1) % GROUP:
        _publish(of_pieces + (piece + here) * step, total, power, is_line, mark, SCALED, LINES)
    is_before = is_line & (slot < piece % GROUP)
    earlier, exponent = _await(
        of_pieces + (group * GROUP + slot) * step, is_before, mark, IDENTITY, SCALED, TALLY, LINES
    )
    inside, inside_exponent = reduced(earlier, exponent, DIM, SCALED, PRODUCT)
    if (piece + 1) % GROUP == 0:
        whole, whole_exponent = combined(inside, inside_exponent, total, power, SCALED, PRODUCT)
        _publish(of_groups + (group + here) * step, whole, whole_exponent, is_line, mark, SCALED, LINES)
    # All great groups before in the first place, then the groups before in this one.
    is_before = is_line & (slot <= group % GROUP) & (slot + great > 0)
    place = tl.where(slot == 0, of_greats + great * step, of_groups + (great * GROUP + slot - 1) * step)
    earlier, exponent = _await(place, is_before, mark, IDENTITY, SCALED, TALLY, LINES)
    carry, carry_exponent = reduced(earlier, exponent, DIM, SCALED, PRODUCT)
    carry, carry_exponent = combined(carry, carry_exponent, inside, inside_exponent, SCALED, PRODUCT)
    if (piece + 1) % (GROUP * GROUP) == 0:
        all_so_far, last_exponent = onward(carry, carry_exponent, total, power, SCALED, PRODUCT)
        _publish(of_greats + (great + 1 + here) * step, all_so_far, last_exponent, is_line, mark, SCALED, LINES)
    return carry, carry_exponent


@triton.jit(do_not_specialize=["mark", "taken", "zero"])
def scan_chain(
    x,
    y,
    words,
    mark,
    taken,
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
    TURNED: tl.constexpr,
    PAIRS: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    TALLY: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans a piece of its lines, TILES tiles, behind the total of all before it, which others publish.

    words: written by launches before, with other marks from 1 to 2^31 - 1, which have taken `taken` pieces in all, or
    all 0.

    DIM being 1, a piece's parts are TILES * DEPTH long, as so the threads need each other once for all tiles; TURNED,
    it has one part, which all threads scan, line by line.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = TILES * PARTS * DEPTH
    blocks = tl.cdiv(line_count, LINES)
    pieces = tl.cdiv(n, SIZE)
    mark = tl.cast(mark, tl.int64) << 32
    turn = (tl.atomic_add(words, 1, sem="relaxed") - taken).to(tl.int32)
    block = turn % blocks
    piece = turn // blocks
    column = tl.arange(0, LINES)
    line = block.to(INDEX) * LINES + column
    x_at, y_at = line_offsets(line, sizes, x_strides, y_strides, LOOPS)
    is_line = along_lines(line < line_count, DIM)
    x_lines = x + along_lines(spread(x_at, zero, DIM, PAIRS), DIM)
    y_lines = y + along_lines(spread(y_at, zero, DIM, PAIRS), DIM)
    start = tl.cast(pieces - 1 - piece if REVERSE else piece, INDEX) * SIZE
    # Four elements multiplied plainly stay in the range of float64: only what they come to is split.
    if DIM == 1:
        along = along_axis(PARTS, DEPTH, 1, INDEX, TILES * DEPTH)
        totals = tl.full((PARTS, 1, LINES), IDENTITY, TALLY)
        powers = tl.zeros((PARTS, 1, LINES), tl.int32)
        values = load_along(x_lines, along + start, x_axis, is_line, n, 1, IDENTITY, "")
        for tile in range(TILES):
            given = values
            next_at = along + start + tl.cast(tile + 1, INDEX) * DEPTH
            values = load_along(x_lines, next_at, x_axis, is_line & (tile + 1 < TILES), n, 1, IDENTITY, "")
            if SCALED:
                given = tl.reduce(tl.reshape(given.to(TALLY), (PARTS, DEPTH // 4, 4, LINES)), 2, multiply)
            total, power = totals_of(given, 1, SCALED, PRODUCT, TALLY)
            totals, powers = combined(totals, powers, total, power, SCALED, PRODUCT)
        total, power = reduced(totals, powers, 0, SCALED, PRODUCT)
    elif SCALED:
        at = along_axis(4, SIZE // 4, 2, INDEX) + start
        values = load_along(x_lines, at, x_axis, is_line, n, 2, IDENTITY, "").to(TALLY)
        fours, _ = reduced(values, values, 0, False, PRODUCT)
        total, power = totals_of(fours, 2, SCALED, PRODUCT, TALLY)
    else:
        at = along_axis(TILES * PARTS, DEPTH, 2, INDEX) + start
        values = load_along(x_lines, at, x_axis, is_line, n, 2, IDENTITY, "")
        totals, powers = totals_of(values, 2, SCALED, PRODUCT, TALLY)
        total, power = reduced(totals, powers, 0, SCALED, PRODUCT)

    carry, carry_exponent = _before_piece(
        words, mark, block, blocks, piece, pieces, column, is_line, total, power,
        DIM, GROUP, SPAN, WORDS, LINES, PRODUCT, SCALED, TALLY,
    )  # fmt: skip
    # Read again, from a cache: what waits should hold few registers, so that many do.
    if TURNED:
        carry, carry_exponent = tl.permute(carry, (0, 2, 1)), tl.permute(carry_exponent, (0, 2, 1))
    if DIM == 1 and not TURNED:
        carry, carry_exponent = behind(carry, carry_exponent, totals, powers, 1, SCALED, PRODUCT, REVERSE)
        depth = along_axis(1, DEPTH, 1, INDEX)
        last = along_axis(PARTS, 1, 1, INDEX, TILES * DEPTH) + (0 if REVERSE else DEPTH - 1)
        next_start = start + tl.cast(TILES - 1 if REVERSE else 0, INDEX) * DEPTH
        values, ends = read_along(
            x_lines, along, depth, last, next_start, x_axis, is_line, n, DEPTH, 1, EXCLUSIVE, REVERSE, IDENTITY
        )
        for tile in range(TILES):
            at = along + next_start
            given = values
            beside = ends
            next_start = start + tl.cast(TILES - 2 - tile if REVERSE else tile + 1, INDEX) * DEPTH
            is_next = is_line & (tile + 1 < TILES)
            values, ends = read_along(
                x_lines, along, depth, last, next_start, x_axis, is_next, n, DEPTH, 1, EXCLUSIVE, REVERSE, IDENTITY
            )
            result, carry, carry_exponent = on_from(
                carry, carry_exponent, given, beside, SCALED, PRODUCT, TALLY, EXCLUSIVE, REVERSE
            )
            target = y_lines + offset_along(at, y_axis, 1)
            tl.store(
                target, result.to(y_lines.dtype.element_ty), mask=is_line & (at < n), eviction_policy="evict_first"
            )
    else:
        walk(
            x_lines, y_lines, start, TILES, x_axis, y_axis, is_line, n, carry, carry_exponent,
            PARTS, DEPTH, 2, TURNED, TILES == 1, PRODUCT, SCALED, TALLY, EXCLUSIVE, REVERSE, INDEX,
        )  # fmt: skip
