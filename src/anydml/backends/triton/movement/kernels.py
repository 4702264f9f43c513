"""Triton's kernels of operators whose elements depend on where they are; all copy bits."""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart, quotient


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
    diagonal = column - _index_in(row, sizes, multipliers, shifts, 0)
    is_filled = ((diagonal >= begin) ^ (diagonal < end)) == IS_CROSSED
    value = tl.full([ROWS, COLUMNS], 0, y.dtype.element_ty)
    if HAS_INPUT:
        x_at = apart(row, sizes, multipliers, shifts, x_steps, LOOPS) + column * x_step
        value = tl.load(x + x_at, mask=mask & (is_filled == 0), other=0)
    place = apart(row, sizes, multipliers, shifts, y_steps, LOOPS) + column * y_step
    tl.store(y + place, tl.where(is_filled, tl.full([ROWS, COLUMNS], VALUE, y.dtype.element_ty), value), mask=mask)


@triton.jit
def one_hot(
    indices, values, y, rows, columns, blocks, classes, step, class_step,
    sizes, multipliers, shifts, index_steps, y_steps,
    SIGNED: tl.constexpr, IS_LAST: tl.constexpr, LOOPS: tl.constexpr,
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
    at = apart(place, sizes, multipliers, shifts, y_steps, LOOPS) + number * class_step
    tl.store(y + at, tl.where(wanted == number, tl.load(values + step), tl.load(values)), mask=mask)


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
    from_lengths = apart(at, sizes, multipliers, shifts, length_strides, LOOPS)
    length = tl.load(lengths + from_lengths, mask=mask, other=0).to(tl.int64)
    # From 2^63 on lengths are negative ones of 64 bits.
    length = tl.where((length < 0) | (length > sizes[DIMENSION]), sizes[DIMENSION], length)
    i = _index_in(at, sizes, multipliers, shifts, DIMENSION)
    source = tl.where(i < length, length - 1 - i, i).to(INDEX)
    from_x = apart(at, sizes, multipliers, shifts, x_strides, LOOPS) + source * axis_stride
    value = tl.load(x + from_x, mask=mask)
    place = apart(at, y_sizes, y_multipliers, y_shifts, y_strides, LOOPS_OF_Y)
    tl.store(y + place, value, mask=mask)
