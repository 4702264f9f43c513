"""Triton kernel of a chained scan: programs share a line, and look back at what those before them have published.

The shape of tiles, and what a product is held in, are described in ``tile.py``.
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
    load_along,
    mark_contiguous,
    multiply,
    offset_along,
    parts_before,
    propagate,
    read_along,
    reduce_along,
    scan_from_carry,
    scan_parts,
)
from .rows import aggregate, load_places, places_of, row_of, scan_places
from .tile import scan_consecutive_tiles


@triton.jit
def _halves(accumulator):
    """The bits of an accumulator as two integers of 32 bits in int64; the upper one is of 64-bit types alone."""
    if accumulator.dtype.primitive_bitwidth == 64:
        bits = accumulator.to(tl.int64, bitcast=True)
    else:
        bits = accumulator.to(tl.int32, bitcast=True).to(tl.int64)
    return bits & 0xFFFFFFFF, (bits >> 32) & 0xFFFFFFFF


@triton.jit
def _publish(words, accumulator, exponent, mask, epoch, SCALED: tl.constexpr, STRIDE: tl.constexpr):
    """Publishes an aggregate or a prefix in words of 64 bits, of which the upper half is this launch's epoch.

    Each word says by itself whether it is valid, so nothing depends on the order in which words become visible.
    """
    lower, upper = _halves(accumulator)
    tl.atomic_xchg(words, lower | epoch, mask=mask, sem="relaxed")
    if accumulator.dtype.primitive_bitwidth == 64:
        tl.atomic_xchg(words + STRIDE, upper | epoch, mask=mask, sem="relaxed")
    if SCALED:
        tl.atomic_xchg(words + 2 * STRIDE, (exponent.to(tl.int64) & 0xFFFFFFFF) | epoch, mask=mask, sem="relaxed")


@triton.jit
def _await(
    words, mask, epoch, IDENTITY: tl.constexpr, SCALED: tl.constexpr, ACCUMULATOR: tl.constexpr, STRIDE: tl.constexpr
):
    """Waits for published values, and returns them; the identity where `mask` is not set."""
    WIDE: tl.constexpr = ACCUMULATOR.primitive_bitwidth == 64
    lower = tl.zeros(mask.shape, tl.int64)
    upper = tl.zeros(mask.shape, tl.int64)
    power = tl.zeros(mask.shape, tl.int64)
    is_written = False
    while not is_written:
        lower = tl.load(words, mask=mask, other=epoch, volatile=True)
        other_epochs = lower ^ epoch
        if WIDE:
            upper = tl.load(words + STRIDE, mask=mask, other=epoch, volatile=True)
            other_epochs |= upper ^ epoch
        if SCALED:
            power = tl.load(words + 2 * STRIDE, mask=mask, other=epoch, volatile=True)
            other_epochs |= power ^ epoch
        is_written = tl.max((other_epochs >> 32).to(tl.int32)) == 0
    if WIDE:
        accumulator = ((lower & 0xFFFFFFFF) | (upper << 32)).to(ACCUMULATOR, bitcast=True)
    else:
        accumulator = lower.to(tl.int32).to(ACCUMULATOR, bitcast=True)
    return tl.where(mask, accumulator, IDENTITY).to(ACCUMULATOR), power.to(tl.int32)


@triton.jit
def _look_back(
    words,
    epoch,
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
    ACCUMULATOR: tl.constexpr,
):
    """Look-back of a chained scan: publishes the aggregate of a program's piece, and returns its exclusive prefix.

    GROUP pieces are a group, and GROUP groups a super-tile. The last piece of a group publishes the group's aggregate,
    and that of a super-tile the inclusive prefix up to its end. A program waits for the pieces before it in its group,
    the groups before that in its super-tile, and the prefix of the super-tiles before, so values are combined in the
    same order on every run. A program takes its piece by a ticket, a counter in memory, so that those it waits for
    belong to programs that run already, in whatever order the GPU starts them.

    words: the ticket counter in the first of 16; then for each piece, group and super-tile, WORDS for each of the LINES
    lines, numbered by `column`, of a block. SPAN is GROUP, or as many as give each thread an element: fewer elements
    than threads make code of many times the length.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    # (piece, group or super-tile, block, word, line)
    step = blocks * (WORDS * LINES)
    of_pieces = words + 16 + block * (WORDS * LINES) + along_lines(column, DIM)
    of_groups = of_pieces + pieces * step
    of_super_tiles = of_groups + tl.cdiv(pieces, GROUP) * step
    here = tl.full((1, 1, 1), 0, tl.int32)
    slot = along_axis(1, SPAN, DIM, tl.int32)
    group = piece // GROUP
    super_tile = group // GROUP
    if (piece + 1) % GROUP:
        _publish(of_pieces + (piece + here) * step, total, power, is_line, epoch, SCALED, LINES)
    is_before = is_line & (slot < piece % GROUP)
    earlier, exponent = _await(
        of_pieces + (group * GROUP + slot) * step, is_before, epoch, IDENTITY, SCALED, ACCUMULATOR, LINES
    )
    inside, inside_exponent = reduce_along(earlier, exponent, DIM, SCALED, PRODUCT)
    if (piece + 1) % GROUP == 0:
        whole, whole_exponent = combine(inside, inside_exponent, total, power, SCALED, PRODUCT)
        _publish(of_groups + (group + here) * step, whole, whole_exponent, is_line, epoch, SCALED, LINES)
    # The prefix of the super-tiles before comes first, then the groups before in this one.
    is_before = is_line & (slot <= group % GROUP) & (slot + super_tile > 0)
    place = tl.where(slot == 0, of_super_tiles + super_tile * step, of_groups + (super_tile * GROUP + slot - 1) * step)
    earlier, exponent = _await(place, is_before, epoch, IDENTITY, SCALED, ACCUMULATOR, LINES)
    carry, carry_exponent = reduce_along(earlier, exponent, DIM, SCALED, PRODUCT)
    carry, carry_exponent = combine(carry, carry_exponent, inside, inside_exponent, SCALED, PRODUCT)
    if (piece + 1) % (GROUP * GROUP) == 0:
        prefix, last_exponent = propagate(carry, carry_exponent, total, power, SCALED, PRODUCT)
        _publish(of_super_tiles + (super_tile + 1 + here) * step, prefix, last_exponent, is_line, epoch, SCALED, LINES)
    return carry, carry_exponent


@triton.jit(do_not_specialize=["epoch", "first_ticket", "zero"])
def scan_chain(
    x,
    y,
    words,
    epoch,
    first_ticket,
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
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """A program scans a piece of its lines, TILES tiles, on from the prefix of all pieces before, which others publish.

    words: all 0, or written by launches before, with other epochs from 1 to 2^31 - 1; `first_ticket` is the number of
    tickets that these have taken.

    Where DIM is 1, a piece's parts are TILES * DEPTH long, so that threads need each other once for all tiles.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = TILES * PARTS * DEPTH
    blocks = tl.cdiv(line_count, LINES)
    pieces = tl.cdiv(n, SIZE)
    epoch = tl.cast(epoch, tl.int64) << 32
    ticket = (tl.atomic_add(words, 1, sem="relaxed") - first_ticket).to(tl.int32)
    block = ticket % blocks
    piece = ticket // blocks
    column = tl.arange(0, LINES)
    line = block.to(INDEX) * LINES + column
    x_at, y_at = line_offsets(line, sizes, x_strides, y_strides, LOOPS)
    is_line = along_lines(line < line_count, DIM)
    x_lines = x + along_lines(mark_contiguous(x_at, zero, DIM, PAIRS), DIM)
    y_lines = y + along_lines(mark_contiguous(y_at, zero, DIM, PAIRS), DIM)
    start = tl.cast(pieces - 1 - piece if REVERSE else piece, INDEX) * SIZE
    # Four elements multiplied plainly stay in the range of float64: only their product is split.
    if DIM == 1:
        along = along_axis(PARTS, DEPTH, 1, INDEX, TILES * DEPTH)
        totals = tl.full((PARTS, 1, LINES), IDENTITY, ACCUMULATOR)
        powers = tl.zeros((PARTS, 1, LINES), tl.int32)
        values = load_along(x_lines, along + start, x_axis, is_line, n, 1, IDENTITY)
        for tile in range(TILES):
            current = values
            next_at = along + start + tl.cast(tile + 1, INDEX) * DEPTH
            values = load_along(x_lines, next_at, x_axis, is_line & (tile + 1 < TILES), n, 1, IDENTITY)
            if SCALED:
                current = tl.reduce(tl.reshape(current.to(ACCUMULATOR), (PARTS, DEPTH // 4, 4, LINES)), 2, multiply)
            total, power = aggregates_of(current, 1, SCALED, PRODUCT, ACCUMULATOR)
            totals, powers = combine(totals, powers, total, power, SCALED, PRODUCT)
        total, power = reduce_along(totals, powers, 0, SCALED, PRODUCT)
    elif SCALED:
        at = along_axis(4, SIZE // 4, 2, INDEX) + start
        values = load_along(x_lines, at, x_axis, is_line, n, 2, IDENTITY).to(ACCUMULATOR)
        quads, _ = reduce_along(values, values, 0, False, PRODUCT)
        total, power = aggregates_of(quads, 2, SCALED, PRODUCT, ACCUMULATOR)
    else:
        at = along_axis(TILES * PARTS, DEPTH, 2, INDEX) + start
        values = load_along(x_lines, at, x_axis, is_line, n, 2, IDENTITY)
        totals, powers = aggregates_of(values, 2, SCALED, PRODUCT, ACCUMULATOR)
        total, power = reduce_along(totals, powers, 0, SCALED, PRODUCT)

    carry, carry_exponent = _look_back(
        words, epoch, block, blocks, piece, pieces, column, is_line, total, power,
        DIM, GROUP, SPAN, WORDS, LINES, PRODUCT, SCALED, ACCUMULATOR,
    )  # fmt: skip
    # Elements are read again, from a cache: a program that waits should hold few registers, so that many fit.
    if DIM == 1:
        carry, carry_exponent = exclusive_prefix(carry, carry_exponent, totals, powers, 1, SCALED, PRODUCT, REVERSE)
        depth = along_axis(1, DEPTH, 1, INDEX)
        last = along_axis(PARTS, 1, 1, INDEX, TILES * DEPTH) + (0 if REVERSE else DEPTH - 1)
        next_start = start + tl.cast(TILES - 1 if REVERSE else 0, INDEX) * DEPTH
        values, ends = read_along(
            x_lines, along, depth, last, next_start, x_axis, is_line, n, DEPTH, 1, EXCLUSIVE, REVERSE, IDENTITY
        )
        for tile in range(TILES):
            at = along + next_start
            current = values
            beside = ends
            next_start = start + tl.cast(TILES - 2 - tile if REVERSE else tile + 1, INDEX) * DEPTH
            is_next = is_line & (tile + 1 < TILES)
            values, ends = read_along(
                x_lines, along, depth, last, next_start, x_axis, is_next, n, DEPTH, 1, EXCLUSIVE, REVERSE, IDENTITY
            )
            result, carry, carry_exponent = scan_from_carry(
                carry, carry_exponent, current, beside, SCALED, PRODUCT, ACCUMULATOR, EXCLUSIVE, REVERSE
            )
            target = y_lines + offset_along(at, y_axis, 1)
            tl.store(target, result.to(y_lines.dtype.element_ty), mask=is_line & (at < n))
    else:
        scan_consecutive_tiles(
            x_lines, y_lines, start, TILES, x_axis, y_axis, is_line, n, carry, carry_exponent,
            PARTS, DEPTH, 2, TILES == 1, PRODUCT, SCALED, ACCUMULATOR, EXCLUSIVE, REVERSE, INDEX,
        )  # fmt: skip


@triton.jit(do_not_specialize=["epoch", "first_ticket"])
def scan_row_chain(
    x,
    y,
    words,
    epoch,
    first_ticket,
    x_span,
    n,
    row_count,
    sizes,
    x_strides,
    y_strides,
    GROUP: tl.constexpr,
    SPAN: tl.constexpr,
    WORDS: tl.constexpr,
    TILES: tl.constexpr,
    LOOPS: tl.constexpr,
    DEPTH: tl.constexpr,
    VECTOR: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """As `scan_chain`, of rows as ``rows.py`` describes them: a piece is TILES * DEPTH places of a row."""
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = TILES * DEPTH
    pieces = tl.cdiv(n + VECTOR - 1, SIZE).to(tl.int32)
    epoch = tl.cast(epoch, tl.int64) << 32
    ticket = (tl.atomic_add(words, 1, sem="relaxed") - first_ticket).to(tl.int32)
    row = ticket % row_count
    piece = ticket // row_count
    x_at, y_at = line_offsets(row.to(INDEX), sizes, x_strides, y_strides, LOOPS)
    x_base, y_base, y_lead, lead, end, low, high = row_of(x, y, x_at, y_at, x_span, n)
    start = tl.cast(pieces - 1 - piece if REVERSE else piece, INDEX) * SIZE
    if (start >= tl.cdiv(low, VECTOR) * VECTOR) & (start >= lead) & (start + SIZE <= end):
        place = places_of(start, 4 if SCALED else TILES, SIZE // 4 if SCALED else DEPTH)
        total, power = aggregate(tl.load(x_base + place), SCALED, PRODUCT, ACCUMULATOR)
    else:
        total = tl.full((1, 1, 1), IDENTITY, ACCUMULATOR)
        power = tl.zeros((1, 1, 1), tl.int32)
        for tile in range(TILES):
            values = load_places(x_base, start + tile * DEPTH, lead, end, low, high, 4, DEPTH // 4, VECTOR, IDENTITY)
            more, more_power = aggregate(values, SCALED, PRODUCT, ACCUMULATOR)
            total, power = combine(total, power, more, more_power, SCALED, PRODUCT)
    carry, carry_exponent = _look_back(
        words, epoch, row, row_count, piece, pieces, tl.arange(0, 1), tl.full((1, 1, 1), 1, tl.int1), total, power,
        2, GROUP, SPAN, WORDS, 1, PRODUCT, SCALED, ACCUMULATOR,
    )  # fmt: skip
    # Elements are read again, from a cache: a program that waits should hold few registers, so that many fit.
    scan_places(
        x_base, y_base, y_lead, start, TILES, lead, end, low, high, carry, carry_exponent,
        1, DEPTH, VECTOR, TILES == 1, PRODUCT, SCALED, ACCUMULATOR, EXCLUSIVE, REVERSE, INDEX,
    )  # fmt: skip


@triton.jit
def _swizzled(step, line, LINES: tl.constexpr, DEPTH: tl.constexpr):
    """Where an element of a tile of parts of DEPTH steps of LINES lines lies in shared memory: threads that read the
    same step of parts side by side read different banks."""
    BANKS: tl.constexpr = 32
    APART: tl.constexpr = min(DEPTH, max(1, BANKS // LINES))
    return (step ^ (step // DEPTH % APART)) * LINES + line


@triton.jit
def _parts_of(flat, offset, PARTS: tl.constexpr, DEPTH: tl.constexpr, LINES: tl.constexpr, IDENTITY: tl.constexpr):
    """1 x DEPTH x (PARTS * LINES) elements of a tile that lies as `_swizzled` says, those that are `offset` steps
    further; the identity outside the tile."""
    column = tl.arange(0, PARTS * LINES)[None, :]
    step = column // LINES * DEPTH + tl.arange(0, DEPTH)[:, None] + offset
    is_there = (step >= 0) & (step < PARTS * DEPTH)
    index = _swizzled(tl.where(is_there, step, 0), column % LINES, LINES, DEPTH)
    tile = tl.gather(flat, tl.reshape(index, (DEPTH * PARTS * LINES,)), 0)
    tile = tl.reshape(tile, (1, DEPTH, PARTS * LINES))
    return tl.where(is_there[None, :, :], tile, IDENTITY).to(flat.dtype)


@triton.jit(do_not_specialize=["epoch", "first_ticket", "zero"])
def scan_narrow_chain(
    x,
    y,
    words,
    epoch,
    first_ticket,
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
    LOOPS: tl.constexpr,
    ADJACENT: tl.constexpr,
    LINES: tl.constexpr,
    PARTS: tl.constexpr,
    DEPTH: tl.constexpr,
    WITHIN: tl.constexpr,
    PRODUCT: tl.constexpr,
    SCALED: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    REVERSE: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Single-pass chained scan of few lines side by side, ADJACENT ones: a piece is PARTS * DEPTH steps of them, read
    and written in the order of memory, and transposed in shared memory so that a thread has a part of a line.

    The program's threads hold the piece while it waits, so that memory is read once. WITHIN is the type of offsets in
    a piece.
    """
    IDENTITY: tl.constexpr = 1 if PRODUCT else 0
    SIZE: tl.constexpr = PARTS * DEPTH
    WIDTH: tl.constexpr = PARTS * LINES
    blocks = line_count // ADJACENT
    pieces = tl.cdiv(n, SIZE).to(tl.int32)
    epoch = tl.cast(epoch, tl.int64) << 32
    ticket = (tl.atomic_add(words, 1, sem="relaxed") - first_ticket).to(tl.int32)
    block = ticket % blocks
    piece = ticket // blocks
    x_at, y_at = line_offsets(block.to(INDEX) * ADJACENT, sizes, x_strides, y_strides, LOOPS)
    start = tl.cast(pieces - 1 - piece if REVERSE else piece, INDEX) * SIZE
    left = tl.minimum(n - start, SIZE).to(tl.int32)
    # The elements in the order in which they lie in shared memory. The compiler takes nothing for aligned, as it does
    # not know that `zero` is 0: threads go along memory.
    place = tl.arange(0, SIZE * LINES)
    line = place % LINES
    step = _swizzled(place // LINES, 0, LINES, DEPTH) // LINES
    is_there = (line < ADJACENT) & (step < left)
    x_piece = x + (x_at + start * x_axis)
    along = step.to(WITHIN)
    column = line.to(WITHIN)
    flat = tl.load(x_piece + (along * x_axis + column * x_strides[0] + zero), mask=is_there, other=IDENTITY)
    values = _parts_of(flat, 0, PARTS, DEPTH, LINES, IDENTITY)
    totals, powers = aggregates_of(values, 1, SCALED, PRODUCT, ACCUMULATOR)
    totals, powers = tl.reshape(totals, (PARTS, 1, LINES)), tl.reshape(powers, (PARTS, 1, LINES))
    total, power = reduce_along(totals, powers, 0, SCALED, PRODUCT)
    lines = tl.arange(0, LINES)
    carry, carry_exponent = _look_back(
        words, epoch, block, blocks, piece, pieces, lines, along_lines(lines < ADJACENT, 1), total, power,
        1, GROUP, SPAN, WORDS, LINES, PRODUCT, SCALED, ACCUMULATOR,
    )  # fmt: skip
    if EXCLUSIVE:
        values = _parts_of(flat, 1 if REVERSE else -1, PARTS, DEPTH, LINES, IDENTITY)
    prefixes, exponents, totals, powers = scan_parts(values, 1, SCALED, PRODUCT, ACCUMULATOR, REVERSE)
    totals, powers = tl.reshape(totals, (PARTS, 1, LINES)), tl.reshape(powers, (PARTS, 1, LINES))
    before, before_exponent = parts_before(totals, powers, SCALED, PRODUCT, REVERSE)
    before, before_exponent = combine(carry, carry_exponent, before, before_exponent, SCALED, PRODUCT)
    before_exponent = tl.reshape(tl.broadcast_to(before_exponent, before.shape), (1, 1, WIDTH))
    before = tl.reshape(before, (1, 1, WIDTH))
    result = apply_prefix(before, before_exponent, prefixes, exponents, SCALED, PRODUCT).to(y.dtype.element_ty)
    # In the order of memory.
    result = tl.reshape(tl.permute(tl.reshape(result, (DEPTH, PARTS, LINES)), (1, 0, 2)), (SIZE * LINES,))
    step = place // LINES
    along = step.to(WITHIN)
    column = line.to(WITHIN)
    y_piece = y + (y_at + start * y_axis)
    is_there = (line < ADJACENT) & (step < left)
    tl.store(y_piece + (along * y_axis + column * y_strides[0] + zero), result, mask=is_there)
