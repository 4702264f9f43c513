"""Triton's kernels of selection: the largest elements of lines, and where elements are not 0."""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart, quotient


@triton.jit
def _is_there(value, IS_FLOAT: tl.constexpr):
    """Whether an element, as bits, is other than 0; of a float the sign does not count."""
    return ((value + value) if IS_FLOAT else value) != 0


@triton.jit
def count_nonzero(
    x, counts, n, sizes, multipliers, shifts, x_steps,
    IS_FLOAT: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """How many elements of each program's block are there."""
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + apart(at, sizes, multipliers, shifts, x_steps, LOOPS), mask=at < n, other=0)
    tl.store(counts + tl.program_id(0), tl.sum(_is_there(value, IS_FLOAT).to(tl.int32), 0))


@triton.jit
def write_coordinates(
    x, ends, count, rows, n, sizes, multipliers, shifts, x_steps, last_sizes, last_multipliers, last_shifts,
    row_step, column_step,
    IS_FLOAT: tl.constexpr, LOOPS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The coordinates of each element that is there, in the row of its number; `ends` has how many there are up to the
    end of each block."""
    program = tl.program_id(0)
    at = program.to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + apart(at, sizes, multipliers, shifts, x_steps, LOOPS), mask=at < n, other=0)
    is_there = _is_there(value, IS_FLOAT)
    found = is_there.to(tl.int32)
    end = tl.load(ends + program)
    row = (end - tl.sum(found, 0)).to(INDEX) + tl.cumsum(found, 0) - 1
    number = at
    for i in tl.static_range(COLUMNS):
        outer = quotient(number, last_sizes[i], last_multipliers[i], last_shifts[i])
        coordinate = number - outer * last_sizes[i]
        number = outer
        column = row * row_step + (COLUMNS - 1 - i) * column_step
        tl.store(rows + column, coordinate.to(tl.int32), mask=is_there)
    tl.store(count, end.to(tl.int32), mask=program + 1 == tl.num_programs(0))


@triton.jit
def _ordered(value, IS_LARGEST: tl.constexpr):
    """Integers of 32 bits that compare as the elements do, or the other way round; NaN is the largest."""
    if value.dtype.is_floating():
        single = value.to(tl.float32)
        bits = tl.where(single == 0, 0, single.to(tl.int32, bitcast=True))
        key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
        key = tl.where(single != single, 0x7FFFFFFF, key)
    elif value.dtype == tl.uint32:
        key = value.to(tl.int32, bitcast=True) ^ -0x80000000
    else:
        key = value.to(tl.int32)
    return key if IS_LARGEST else key ^ -1


@triton.jit(do_not_specialize=["n", "k", "count", "parts", "multiplier", "shift", "span"])
def top_of_lines(
    x, given, values, indices, n, k, count, parts, multiplier, shift, span, sizes, multipliers, shifts,
    x_steps, value_steps, index_steps, x_step, value_step, index_step,
    IS_LARGEST: tl.constexpr, HAS_GIVEN: tl.constexpr, LOOPS: tl.constexpr, LINES: tl.constexpr,
    SIZE: tl.constexpr, TOP: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The largest or smallest k of each of LINES parts of lines, of span <= SIZE elements each, in order, those of a
    line one behind the other: bitonic sorts of pairs of an element, and, of equal ones the smaller first, its index.

    Of elements that were chosen before, `given` has the indices, and lies as x; of equal ones they are in order."""
    number = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)[:, None]
    line = quotient(number, parts, multiplier, shift)
    part = number - line * parts
    within = line < count
    begin = part * span
    length = tl.minimum(n - begin, span)
    at = tl.arange(0, SIZE)[None, :]
    first = apart(line, sizes, multipliers, shifts, x_steps, LOOPS) + begin * x_step
    value = tl.load(x + first + at.to(INDEX) * x_step, mask=within & (at < length), other=0)
    pair = (_ordered(value, IS_LARGEST).to(tl.int64) << 32) | (SIZE - at).to(tl.int64)
    pair = tl.where(at < length, pair, -0x8000000000000000)
    # A line is the innermost dimension, as sorts have it.
    if TOP < SIZE:
        best = tl.topk(pair, TOP)
    else:
        best = tl.sort(pair, descending=True)
    place = tl.arange(0, TOP)[None, :]
    mask = within & (place < k) & (place < length)
    index = SIZE - (best & 0xFFFFFFFF).to(tl.int32)
    from_x = first + index.to(INDEX) * x_step
    chosen = tl.load(x + from_x, mask=mask, other=0)
    if HAS_GIVEN:
        found = tl.load(given + from_x, mask=mask, other=0)
    else:
        found = begin + index.to(INDEX)
    place = part * k + place.to(INDEX)
    to_values = apart(line, sizes, multipliers, shifts, value_steps, LOOPS) + place * value_step
    to_indices = apart(line, sizes, multipliers, shifts, index_steps, LOOPS) + place * index_step
    tl.store(values + to_values, chosen, mask=mask)
    tl.store(indices + to_indices, found.to(indices.dtype.element_ty), mask=mask)
