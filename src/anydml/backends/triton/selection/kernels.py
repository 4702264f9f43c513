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
def _rising(value, IS_LARGEST: tl.constexpr):
    """Unsigned integers of 32 or 64 bits that compare as elements do, or the other way round; NaN is the largest."""
    if value.dtype == tl.float16:
        bits = tl.where(value == 0, 0, value.to(tl.int16, bitcast=True)).to(tl.int32)
        key = bits ^ ((bits >> 31) & 0x7FFF)
        key = (tl.where(value != value, 0x7FFF, key) ^ -0x80000000).to(tl.uint32, bitcast=True)
    elif value.dtype.is_floating():
        single = value.to(tl.float32)
        bits = tl.where(single == 0, 0, single.to(tl.int32, bitcast=True))
        key = bits ^ ((bits >> 31) | -0x80000000)
        key = tl.where(single != single, -1, key).to(tl.uint32, bitcast=True)
    elif value.dtype.is_int_unsigned():
        key = value.to(tl.uint64 if value.dtype.primitive_bitwidth == 64 else tl.uint32)
    elif value.dtype.primitive_bitwidth == 64:
        key = (value ^ -0x8000000000000000).to(tl.uint64, bitcast=True)
    else:
        key = (value.to(tl.int32) ^ -0x80000000).to(tl.uint32, bitcast=True)
    return key if IS_LARGEST else ~key


@triton.jit
def best_of_blocks(
    x, keys, n, count, parts, chunks, multiplier, shift, line_step, part_step,
    sizes, multipliers, shifts, x_steps, x_step,
    IS_KEY: tl.constexpr, IS_LARGEST: tl.constexpr, SIDE_BY_SIDE: tl.constexpr, LOOPS: tl.constexpr,
    LINES: tl.constexpr, SIZE: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The largest key of each block of SIZE elements of lines. A program has blocks of one line, or, where lines lie
    SIDE_BY_SIDE, of `chunks` groups of lines the same block of each."""
    program = tl.program_id(0)
    if SIDE_BY_SIDE:
        part = program // chunks
        line = (program - part * chunks).to(INDEX) * LINES + tl.arange(0, LINES)[:, None]
        part = part.to(INDEX)
    else:
        number = program.to(INDEX) * LINES + tl.arange(0, LINES)[:, None]
        line = quotient(number, parts, multiplier, shift)
        part = number - line * parts
    at = part * SIZE + tl.arange(0, SIZE)[None, :]
    there = (line < count) & (at < n)
    first = apart(line, sizes, multipliers, shifts, x_steps, LOOPS)
    key = tl.load(x + first + at * x_step, mask=there, other=0)
    if not IS_KEY:
        key = _rising(key, IS_LARGEST)
    best = tl.max(tl.where(there, key, 0), 1)[:, None]
    tl.store(keys + line * line_step + part * part_step, best, mask=line < count)


@triton.jit(do_not_specialize=["n", "k", "count"])
def select_of_lines(
    x, parents, values, numbers, n, k, count, sizes, multipliers, shifts, x_steps, x_step,
    IS_KEY: tl.constexpr, IS_LARGEST: tl.constexpr, BRANCHES: tl.constexpr, HAS_VALUES: tl.constexpr,
    LOOPS: tl.constexpr, LINES: tl.constexpr, SIZE: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The numbers of the largest k of each line, and what they are, in the order of the line: by bisection of keys,
    down to the k-th largest one. With BRANCHES, which is 0 for all, of what lies in k blocks of so many elements, whose
    numbers `parents` has in order."""
    line = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)[:, None]
    place = tl.arange(0, SIZE)[None, :]
    there = line < count
    if BRANCHES:
        there = there & (place < k * BRANCHES)
        parent = tl.load(parents + line * k + place // BRANCHES, mask=there, other=0).to(INDEX)
        number = parent * BRANCHES + place % BRANCHES
    else:
        number = (line * 0 + place).to(INDEX)
    there = there & (number < n)
    first = apart(line, sizes, multipliers, shifts, x_steps, LOOPS)
    value = tl.load(x + first + number * x_step, mask=there, other=0)
    key = value if IS_KEY else _rising(value, IS_LARGEST)
    # What is not there comes last, and so only after k others: no key is below 0.
    key = tl.where(there, key, 0)
    high = tl.max(key, 1)[:, None]
    low = tl.minimum(tl.min(tl.where(there, key, ~(key * 0)), 1)[:, None], high)
    # At least k keys are low or more, and fewer than k more than high.
    while tl.max(tl.max((low < high).to(tl.int32), 1), 0) > 0:
        gap = high - low
        middle = low + (gap >> 1) + (gap & 1)
        many = tl.sum((key >= middle).to(tl.int32), 1)[:, None]
        low, high = tl.where(many >= k, middle, low), tl.where(many == k, middle, tl.where(many > k, high, middle - 1))
    above, equal = (key > low) & there, (key == low) & there
    # How many there are of both before each, which 16 bits hold.
    found = above.to(tl.int32) + (equal.to(tl.int32) << 16)
    before = tl.cumsum(found, 1) - found
    left = k - tl.sum(above.to(tl.int32), 1)[:, None]
    equal_before = before >> 16
    chosen = above | (equal & (equal_before < left))
    to = line * k + (before & 0xFFFF) + tl.minimum(equal_before, left)
    tl.store(numbers + to, number.to(numbers.dtype.element_ty), mask=chosen)
    if HAS_VALUES:
        tl.store(values + to, value, mask=chosen)


@triton.jit(do_not_specialize=["n", "k", "count"])
def sort_lines(
    x, given, values, indices, n, k, count, sizes, multipliers, shifts,
    x_steps, value_steps, index_steps, x_step, value_step, index_step,
    IS_LARGEST: tl.constexpr, HAS_GIVEN: tl.constexpr, LOOPS: tl.constexpr, LINES: tl.constexpr,
    SIZE: tl.constexpr, TOP: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The largest or smallest k of each of LINES lines of n <= SIZE elements, in order: bitonic sorts of pairs of an
    element, and, of equal ones the smaller first, its index.

    Of elements that were chosen before, `given` has the indices, and lies as x; of equal ones they are in order."""
    line = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)[:, None]
    within = line < count
    at = tl.arange(0, SIZE)[None, :]
    first = apart(line, sizes, multipliers, shifts, x_steps, LOOPS)
    value = tl.load(x + first + at.to(INDEX) * x_step, mask=within & (at < n), other=0)
    pair = (_rising(value, IS_LARGEST).to(tl.int64) << 32) | (SIZE - at).to(tl.int64)
    pair = tl.where(at < n, pair ^ -0x8000000000000000, -0x8000000000000000)
    # A line is the innermost dimension, as sorts have it.
    if TOP < SIZE:
        best = tl.topk(pair, TOP)
    else:
        best = tl.sort(pair, descending=True)
    place = tl.arange(0, TOP)[None, :]
    mask = within & (place < k) & (place < n)
    index = SIZE - (best & 0xFFFFFFFF).to(tl.int32)
    from_x = first + index.to(INDEX) * x_step
    chosen = tl.load(x + from_x, mask=mask, other=0)
    if HAS_GIVEN:
        found = tl.load(given + from_x, mask=mask, other=0)
    else:
        found = index
    place = place.to(INDEX)
    to_values = apart(line, sizes, multipliers, shifts, value_steps, LOOPS) + place * value_step
    to_indices = apart(line, sizes, multipliers, shifts, index_steps, LOOPS) + place * index_step
    tl.store(values + to_values, chosen, mask=mask)
    tl.store(indices + to_indices, found.to(indices.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["k", "count"])
def rank_lines(
    x, given, values, indices, k, count, multiplier, shift, sizes, multipliers, shifts,
    value_steps, index_steps, value_step, index_step,
    IS_LARGEST: tl.constexpr, LOOPS: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Lines of k elements, which lie side by side, and what is `given` for each, in order: each element goes where as
    many are before it as are larger, or equal and before it already."""
    number = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)[:, None]
    line = quotient(number, k, multiplier, shift)
    mask = line < count
    own = number - line * k
    value = tl.load(x + number, mask=mask, other=0)
    key = _rising(value, IS_LARGEST)
    rank = tl.zeros([BLOCK, 1], tl.int32)
    for begin in range(0, k, CHUNK):
        at = begin + tl.arange(0, CHUNK)[None, :]
        there = mask & (at < k)
        other = _rising(tl.load(x + line * k + at, mask=there, other=0), IS_LARGEST)
        is_before = there & ((other > key) | ((other == key) & (at < own)))
        rank += tl.sum(is_before.to(tl.int32), 1)[:, None]
    place = rank.to(INDEX)
    to_values = apart(line, sizes, multipliers, shifts, value_steps, LOOPS) + place * value_step
    to_indices = apart(line, sizes, multipliers, shifts, index_steps, LOOPS) + place * index_step
    found = tl.load(given + number, mask=mask, other=0)
    tl.store(values + to_values, value, mask=mask)
    tl.store(indices + to_indices, found.to(indices.dtype.element_ty), mask=mask)
