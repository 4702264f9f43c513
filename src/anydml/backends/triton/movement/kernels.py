"""Triton's kernels of operators whose elements depend on where they are; all copy bits."""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart, quotient
from ..reduction.kernels import decomposed
from .words import copy_words


@triton.jit
def _tile(rows, columns, blocks, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr):
    """A program's rows and columns, and which of its elements are there."""
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    return row, column, (row < rows) & (column < columns)


@triton.jit
def _index_in(at, sizes, multipliers, shifts, DIMENSION: tl.constexpr):
    """The index in a loop, counted from the innermost."""
    for i in tl.static_range(DIMENSION):
        at = quotient(at, sizes[i], multipliers[i], shifts[i])
    return at - quotient(at, sizes[DIMENSION], multipliers[DIMENSION], shifts[DIMENSION]) * sizes[DIMENSION]


@triton.jit
def fill_diagonals(
    x, y, rows, columns, blocks, begin, end, sizes, multipliers, shifts, x_steps, y_steps, x_step, y_step,
    VALUE: tl.constexpr, HAS_INPUT: tl.constexpr, IS_CROSSED: tl.constexpr, LOOPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The diagonals from `begin` on to before `end`, or all others where these are crossed; the rest of x, or of 0.
    A row's innermost loop are those of a matrix."""
    row, column, mask = _tile(rows, columns, blocks, ROWS, COLUMNS, INDEX)
    place = y + (apart(row, sizes, multipliers, shifts, y_steps, LOOPS) + column * y_step)
    source = x + (apart(row, sizes, multipliers, shifts, x_steps, LOOPS) + column * x_step)
    filled = tl.full([ROWS, COLUMNS], VALUE, y.dtype.element_ty)
    # Most tiles have none of the ends of the band, where all rows are of one matrix.
    program = tl.program_id(0)
    top, left = (program // blocks).to(INDEX) * ROWS % sizes[0], program % blocks * COLUMNS
    lowest, highest = left - (top + ROWS - 1), left + COLUMNS - 1 - top
    is_whole = (top + ROWS <= sizes[0]) & (IS_CROSSED == 0)
    if is_whole & (lowest >= begin) & (highest < end):
        tl.store(place, filled, mask=mask)
    elif is_whole & ((highest < begin) | (lowest >= end)):
        if HAS_INPUT:
            tl.store(place, tl.load(source, mask=mask), mask=mask)
        else:
            tl.store(place, filled * 0, mask=mask)
    else:
        diagonal = column - _index_in(row, sizes, multipliers, shifts, 0)
        is_filled = ((diagonal >= begin) ^ (diagonal < end)) == IS_CROSSED
        value = filled * 0
        if HAS_INPUT:
            value = tl.load(source, mask=mask & (is_filled == 0), other=0)
        tl.store(place, tl.where(is_filled, filled, value), mask=mask)


@triton.jit
def one_hot(
    indices, values, y, rows, columns, blocks, classes, step, class_step,
    sizes, multipliers, shifts, index_steps, y_steps,
    SIGNED: tl.constexpr, IS_LAST: tl.constexpr, DIVIDES: tl.constexpr, LOOPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The second of two values, `step` apart, at each index, which counts from the end where it is negative. Classes
    are columns where they lie innermost, and rows elsewhere; the others are numbers of indices."""
    row, column, mask = _tile(rows, columns, blocks, ROWS, COLUMNS, INDEX)
    number, place, is_there = row, column, column < columns
    if IS_LAST:
        number, place, is_there = column, row, row < rows
    from_indices = apart(place, sizes, multipliers, shifts, index_steps, LOOPS)
    wanted = tl.load(indices + from_indices, mask=is_there, other=0).to(tl.int64)
    if SIGNED:
        wanted = tl.where(wanted < 0, wanted + classes, wanted)
    wanted = tl.where((wanted >= 0) & (wanted < classes), wanted, -1).to(INDEX)
    # Triton sees that remainders lie side by side where a size is a multiple of 16, and stores several at once.
    if DIVIDES:
        at = decomposed(place, sizes, y_steps, LOOPS) + number * class_step
    else:
        at = apart(place, sizes, multipliers, shifts, y_steps, LOOPS) + number * class_step
    tl.store(y + at, tl.where(wanted == number, tl.load(values + step), tl.load(values)), mask=mask)


@triton.jit
def _reversed_place(
    at, mask, lengths, axis_stride, sizes, multipliers, shifts, x_strides, length_strides,
    DIMENSION: tl.constexpr, LOOPS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The offset of what comes to a place: of the first elements of a line, as many as its length says, backward."""
    from_lengths = apart(at, sizes, multipliers, shifts, length_strides, LOOPS)
    length = tl.load(lengths + from_lengths, mask=mask, other=0).to(tl.int64)
    # From 2^63 on lengths are negative ones of 64 bits.
    length = tl.where((length < 0) | (length > sizes[DIMENSION]), sizes[DIMENSION], length)
    i = _index_in(at, sizes, multipliers, shifts, DIMENSION)
    source = tl.where(i < length, length - 1 - i, i).to(INDEX)
    return apart(at, sizes, multipliers, shifts, x_strides, LOOPS) + source * axis_stride


@triton.jit
def reverse_subsequences(
    x, lengths, y, count, axis_stride, sizes, multipliers, shifts, x_strides, length_strides,
    y_sizes, y_multipliers, y_shifts, y_strides,
    DIMENSION: tl.constexpr, LOOPS: tl.constexpr, LOOPS_OF_Y: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The first elements of each line backward, as many as its length says. `x_strides` has 0 along lines, where x has
    `axis_stride`."""
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    from_x = _reversed_place(at, mask, lengths, axis_stride, sizes, multipliers, shifts, x_strides, length_strides,
                             DIMENSION, LOOPS, INDEX)  # fmt: skip
    value = tl.load(x + from_x, mask=mask)
    place = apart(at, y_sizes, y_multipliers, y_shifts, y_strides, LOOPS_OF_Y)
    tl.store(y + place, value, mask=mask)


@triton.jit
def reverse_runs(
    x, lengths, y, rows, parts, run, axis_stride, sizes, multipliers, shifts, x_strides, length_strides,
    y_sizes, y_multipliers, y_shifts, y_strides,
    DIMENSION: tl.constexpr, LOOPS: tl.constexpr, LOOPS_OF_Y: tl.constexpr, ITEM: tl.constexpr,
    BLOCK: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """As `reverse_subsequences`, of runs of elements that lie side by side, which are copied by words: a row is one."""
    SIZE: tl.constexpr = ITEM.primitive_bitwidth // 8
    program = tl.program_id(0)
    row = (program // parts).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = row < rows
    from_x = _reversed_place(row, mask, lengths, axis_stride, sizes, multipliers, shifts, x_strides, length_strides,
                             DIMENSION, LOOPS, INDEX)  # fmt: skip
    to_y = apart(row, y_sizes, y_multipliers, y_shifts, y_strides, LOOPS_OF_Y)
    source = x.to(tl.int64) + from_x.to(tl.int64) * SIZE
    target = y.to(tl.int64) + to_y.to(tl.int64) * SIZE
    length = (row * 0 + run).to(tl.int64) * SIZE
    copy_words(
        source[:, None], target[:, None], length[:, None], mask[:, None], 0, 0, program % parts, ITEM, False, COLUMNS
    )
