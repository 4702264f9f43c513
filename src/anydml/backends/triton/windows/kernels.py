"""Triton's kernels of windows that slide over tensors: UNFOLD and FOLD.

A program has a tile, rows by columns. Columns are places in the spatial dimensions, rows all else, so that an index is
taken apart once for each row and each column. Loops go over the elements of a window, in row-major order, so that
results are the same at each run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart, is_within, quotient
from ..reduction.kernels import decomposed


@triton.jit
def unfold(
    x, y, rows, columns, blocks, row_sizes, row_multipliers, row_shifts, x_row_steps, y_row_steps, tap_step,
    place_sizes, multipliers, shifts, y_step, sizes, x_steps,
    TAPS: tl.constexpr, ALL_TAPS: tl.constexpr, STRIDES: tl.constexpr, STARTS: tl.constexpr, DILATIONS: tl.constexpr,
    DIMENSIONS: tl.constexpr, LOOPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Copies what lies under each element of a window at each place of it, a column; 0 outside of x. Each program goes
    through all elements of the window, and takes their number apart once for all of its tile."""
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    is_row, is_column = row < rows, column < columns
    at, place = column * 0, column
    begins = ()
    for i in tl.static_range(DIMENSIONS):
        if i + 1 < DIMENSIONS:
            outer = quotient(place, place_sizes[i], multipliers[i], shifts[i])
            begin = (place - outer * place_sizes[i]) * STRIDES[i] - STARTS[i]
            place = outer
        else:
            begin = place * STRIDES[i] - STARTS[i]
        begins += (begin,)
        at = at + begin * x_steps[i]
    source = x + apart(row, row_sizes, row_multipliers, row_shifts, x_row_steps, LOOPS) + at
    target = y + apart(row, row_sizes, row_multipliers, row_shifts, y_row_steps, LOOPS) + column * y_step
    for tap in range(ALL_TAPS):
        rest, ahead, inside = tap, 0, is_column
        for i in tl.static_range(DIMENSIONS):
            shift = rest % TAPS[i] * DILATIONS[i]
            rest = rest // TAPS[i]
            inside = inside & is_within(begins[i] + shift, sizes[i])
            ahead = ahead + shift * x_steps[i]
        tl.store(
            target + tap * tap_step, tl.load(source + ahead, mask=is_row & inside, other=0), mask=is_row & is_column
        )


@triton.jit
def fold(
    x, y, rows, columns, blocks, taps, row_sizes, x_row_steps, y_row_steps, tap_step, place_step,
    sizes, y_steps, taps_of, dilations, starts, places,
    STRIDES: tl.constexpr, WIDE: tl.constexpr, DIMENSIONS: tl.constexpr, LOOPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Sums, for each element, what the windows over it have there, in the order of the window's elements."""
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    first = decomposed(row, row_sizes, x_row_steps, LOOPS)
    total = tl.zeros([ROWS, COLUMNS], WIDE)
    for tap in range(taps):
        rest, element = tap, column
        block = column * 0
        inside = mask
        turn = 1
        for i in tl.static_range(DIMENSIONS):
            k = rest % taps_of[i]
            rest = rest // taps_of[i]
            if i + 1 < DIMENSIONS:
                j = element % sizes[i]
                element = element // sizes[i]
            else:
                j = element
            reach = j + (starts[i] - k * dilations[i])
            o = reach // STRIDES[i]
            inside = inside & (reach >= 0) & (o * STRIDES[i] == reach) & (o < places[i])
            block = block + o * turn
            turn = turn * places[i]
        value = tl.load(x + first + (column * 0 + tap) * tap_step + block * place_step, mask=inside, other=0)
        total = tl.where(inside, total + value.to(WIDE), total)
    at = decomposed(row, row_sizes, y_row_steps, LOOPS) + decomposed(column, sizes, y_steps, DIMENSIONS)
    tl.store(y + at, total.to(y.dtype.element_ty), mask=mask)
