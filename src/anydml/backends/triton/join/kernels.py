"""Triton kernels of JOIN. All copy bits, in words of 1, 2, 4 or 8 bytes; every stride and offset counts words.

Each takes a table of the inputs' addresses, so that their number does not matter, and one of their units, pieces of
work, which are numbered through.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..movement.words import copy_words


@triton.jit(do_not_specialize=["first"])
def write_addresses(table, first, addresses, COUNT: tl.constexpr):
    """Writes the COUNT numbers of a tuple to a table, from number `first` on."""
    for i in tl.static_range(COUNT):
        tl.store(table + first + i, addresses[i])


@triton.jit
def join_runs(
    addresses,
    units,
    y,
    unit_count,
    rows,
    y_row,
    WORD: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Rows of contiguous runs, one run of each input. A program copies ROWS x COLUMNS words of one input.

    units: (unit_count, 5): the input, the first word of its run, the run's words, the input's row stride, the run's
    place in an output row. EVEN says that all of these are even, and addresses multiples of 16 bytes.
    """
    pid = tl.program_id(0)
    unit = units + pid % unit_count * 5
    first, run, x_row, y_start = tl.load(unit + 1), tl.load(unit + 2), tl.load(unit + 3), tl.load(unit + 4)
    x = tl.load(addresses + tl.load(unit)).to(tl.pointer_type(WORD))
    if EVEN:
        x = tl.multiple_of(x, 16)
        first, run, x_row, y_start = (
            tl.multiple_of(first, 2),
            tl.multiple_of(run, 2),
            tl.multiple_of(x_row, 2),
            tl.multiple_of(y_start, 2),
        )
    row = ((pid // unit_count).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = first + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < run)
    words = tl.load(x + row * x_row + column, mask=mask, eviction_policy="evict_first")
    tl.store(y + row * y_row + y_start + column, words, mask=mask, eviction_policy="evict_first")


@triton.jit
def join_shifted(
    addresses, units, y, unit_count, rows, y_row, ITEM: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """As join_runs, where runs begin anywhere. A program writes ROWS parts of a run, of up to COLUMNS words of 8 bytes.

    units: (unit_count, 5): the input, the part's number, the bytes of its run, the input's row stride, the place of the
    run in an output row; all in bytes, as y_row.
    """
    pid = tl.program_id(0)
    unit = units + pid % unit_count * 5
    part, run, x_row, y_start = tl.load(unit + 1), tl.load(unit + 2), tl.load(unit + 3), tl.load(unit + 4)
    row = ((pid // unit_count).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    source = tl.load(addresses + tl.load(unit)) + row * x_row
    target = y.to(tl.int64) + row * y_row + y_start
    length = tl.zeros((ROWS, 1), tl.int64) + run
    copy_words(source, target, length, row < rows, 0, 0, part, ITEM, False, COLUMNS)


@triton.jit
def join_columns(
    addresses, units, y, width, rows, y_row, WORD: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Interleaves rows of short runs word by word: a program writes COLUMNS words of ROWS output rows.

    units: (width, 3): for each word of an output row the input, where in its rows it is, the input's row stride.
    """
    pid = tl.program_id(0)
    blocks = tl.cdiv(width, COLUMNS)
    column = (pid % blocks) * COLUMNS + tl.arange(0, COLUMNS)
    row = (pid // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_column = column < width
    unit = units + column * 3
    x = tl.load(addresses + tl.load(unit, mask=is_column, other=0)).to(tl.pointer_type(WORD))
    x += tl.load(unit + 1, mask=is_column, other=0)
    x_row = tl.load(unit + 2, mask=is_column, other=0)
    # Loaded with rows innermost, as they are adjacent in most inputs, and transposed to be stored.
    words = tl.load(x[:, None] + row[None, :] * x_row[:, None], mask=is_column[:, None] & (row < rows)[None, :])
    place = row[:, None] * y_row + column[None, :]
    tl.store(y + place, tl.trans(words), mask=(row < rows)[:, None] & is_column[None, :])


@triton.jit
def join_packed_rows(
    addresses,
    units,
    y,
    count,
    x_row,
    WORD: tl.constexpr,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Rows of WIDTH words of 1 or 2 bytes, contiguous in the output, packed into `count` words of 4 bytes.

    Rows of all inputs are x_row words apart. A program writes BLOCK times WIDTH packed words; COLUMNS is WIDTH or more.

    units: as for join_columns.
    """
    SIZE: tl.constexpr = WORD.primitive_bitwidth // 8
    PIECES: tl.constexpr = 4 // SIZE
    start = tl.program_id(0).to(tl.int64) * BLOCK
    column = tl.arange(0, COLUMNS)[None, :]
    group = tl.arange(0, BLOCK)[:, None]
    place = group * WIDTH + column
    mask = (column < WIDTH) & (place < count - start * WIDTH)
    packed = tl.zeros((BLOCK, COLUMNS), tl.int32)
    for i in tl.static_range(PIECES):
        # PIECES rows fill WIDTH packed words, which are made of the same places in every such group of rows.
        piece = column * PIECES + i
        x = tl.zeros((1, COLUMNS), tl.int64)
        for k in tl.static_range(WIDTH):
            unit = units + 3 * k
            first = tl.load(addresses + tl.load(unit)) + (tl.load(unit + 1) + start * PIECES * x_row) * SIZE
            x = tl.where(piece % WIDTH == k, first, x)
        x = (x + piece // WIDTH * x_row * SIZE).to(tl.pointer_type(WORD))
        value = tl.load(x + group * PIECES * x_row, mask=mask, other=0)
        packed |= (value.to(tl.int32) & ((1 << 8 * SIZE) - 1)) << (8 * SIZE * i)
    tl.store(y + start * WIDTH + place, packed, mask=mask)


@triton.jit
def join_elements(
    addresses, units, y, unit_count, LOOPS: tl.constexpr, WORD: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr
):
    """Any strides. A program copies BLOCKS times BLOCK elements of one input.

    units: (unit_count, 4 + 3 * LOOPS): the input, the first element, the input's elements, where in the output they
    start; then for each loop, innermost first, its size and its strides in the input and the output.
    """
    unit = units + tl.program_id(0).to(tl.int64) * (4 + 3 * LOOPS)
    x = tl.load(addresses + tl.load(unit)).to(tl.pointer_type(WORD))
    first = tl.load(unit + 1)
    for block in range(BLOCKS):
        element = first + block * BLOCK + tl.arange(0, BLOCK)
        mask = element < tl.load(unit + 2)
        x_at = element * 0
        y_at = element * 0 + tl.load(unit + 3)
        rest = element
        for i in tl.static_range(LOOPS):
            size = tl.load(unit + 4 + 3 * i)
            x_at += rest % size * tl.load(unit + 5 + 3 * i)
            y_at += rest % size * tl.load(unit + 6 + 3 * i)
            rest = rest // size
        tl.store(y + y_at, tl.load(x + x_at, mask=mask), mask=mask)
