"""Triton's kernels of SCATTER_ELEMENTS, SCATTER_ND and MAX_UNPOOLING: the number of the last update of each place, as a
maximum, so that it does not matter in which order a GPU writes; and then all elements, each from its update or as it
was. Where updates of a line lie in it, a program has both.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart, quotient
from ..reduction.kernels import decomposed


@triton.jit
def _index_within(index, size):
    """An index that a dimension lacks is nobody's; here it is an end's, so that nothing else is written."""
    index = tl.where(index < 0, index + size, index)
    return tl.minimum(tl.maximum(index, 0), size - 1)


@triton.jit(do_not_specialize=["low", "high"])
def mark_elements(
    indices, latest, count, low, high, size, axis_step, sizes, multipliers, shifts, index_steps, place_steps,
    DIMENSION: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Of each update its index along the axis, which is loop number DIMENSION, to the place that it names, if
    that is from `low` to `high`."""
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    number = at
    for i in tl.static_range(DIMENSION):
        number = quotient(number, sizes[i], multipliers[i], shifts[i])
    number = number - quotient(number, sizes[DIMENSION], multipliers[DIMENSION], shifts[DIMENSION]) * sizes[DIMENSION]
    index_at = apart(at, sizes, multipliers, shifts, index_steps, LOOPS)
    index = tl.load(indices + index_at, mask=mask, other=0, eviction_policy="evict_first").to(tl.int64)
    index = _index_within(index, size).to(INDEX)
    place = apart(at, sizes, multipliers, shifts, place_steps, LOOPS) + index * axis_step
    mask = mask & (place >= low) & (place < high)
    tl.atomic_max(latest + place, number.to(latest.dtype.element_ty), mask=mask, sem="relaxed")


@triton.jit
def take_elements(
    x, updates, latest, y, count, update_step, sizes, multipliers, shifts, x_steps, update_steps, y_steps,
    LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    # What is read once leaves the cache to updates.
    number = tl.load(latest + at, mask=mask, other=-1, eviction_policy="evict_first")
    is_update = number >= 0
    before_at = apart(at, sizes, multipliers, shifts, x_steps, LOOPS)
    before = tl.load(x + before_at, mask=mask & (number < 0), other=0, eviction_policy="evict_first")
    place = apart(at, sizes, multipliers, shifts, update_steps, LOOPS) + number.to(INDEX) * update_step
    after = tl.load(updates + place, mask=mask & is_update, other=0)
    y_at = apart(at, sizes, multipliers, shifts, y_steps, LOOPS)
    tl.store(y + y_at, tl.where(is_update, after, before), mask=mask, eviction_policy="evict_first")


@triton.jit
def mark_points(
    indices, latest, count, coordinate_step, sizes, index_steps, dimensions,
    COORDINATES: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Of each tuple of indices its number, to the place that it names."""
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    first = decomposed(at, sizes, index_steps, LOOPS)
    place = at * 0
    for i in tl.static_range(COORDINATES):
        index = tl.load(indices + first + i * coordinate_step, mask=mask, other=0).to(tl.int64)
        place = place * dimensions[i] + _index_within(index, dimensions[i]).to(INDEX)
    tl.atomic_max(latest + place, at.to(latest.dtype.element_ty), mask=mask, sem="relaxed")


@triton.jit
def take_slices(
    x, updates, latest, y, rows, columns, blocks, sizes, x_steps, y_steps, tuple_sizes, tuple_steps,
    slice_sizes, x_inner, update_inner, y_inner,
    LOOPS: tl.constexpr, TUPLES: tl.constexpr, SLICES: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Rows are the places that tuples name, columns the elements of a slice."""
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    number = tl.load(latest + row, mask=row < rows, other=-1)
    is_update = number >= 0
    before_at = decomposed(row, sizes, x_steps, LOOPS) + decomposed(column, slice_sizes, x_inner, SLICES)
    before = tl.load(x + before_at, mask=mask & (number < 0), other=0)
    after_at = decomposed(tl.maximum(number, 0).to(INDEX), tuple_sizes, tuple_steps, TUPLES)
    after_at = after_at + decomposed(column, slice_sizes, update_inner, SLICES)
    after = tl.load(updates + after_at, mask=mask & is_update, other=0)
    at = decomposed(row, sizes, y_steps, LOOPS) + decomposed(column, slice_sizes, y_inner, SLICES)
    tl.store(y + at, tl.where(is_update, after, before), mask=mask)


@triton.jit
def _own_places(
    x, indices, strays, line, number, lines, length, indexed, places,
    sizes, multipliers, shifts, index_steps, LOOPS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Of updates of lines the places in the line, and which of them are there."""
    mask = (number < indexed) & (line < lines)
    index_at = apart(line * indexed + number, sizes, multipliers, shifts, index_steps, LOOPS)
    index = tl.load(indices + index_at, mask=mask, other=0, eviction_policy="evict_first")
    if x is None:
        mask = mask & (index.to(tl.uint64) < (line * 0 + places).to(tl.uint64))
        place = index.to(tl.int64) - line * length
        is_own = (place >= 0) & (place < length)
        tl.store(strays + place * 0, 1, mask=mask & (is_own == 0))
        mask = mask & is_own
    else:
        place = _index_within(index.to(tl.int64), length)
    return place.to(INDEX), mask


@triton.jit
def settle_lines(
    x, indices, updates, latest, strays, y, lines, length, indexed, turns, places,
    sizes, multipliers, shifts, x_steps, y_steps,
    update_sizes, update_multipliers, update_shifts, index_steps, update_steps,
    STORED: tl.constexpr, LOOPS: tl.constexpr, LOOPS_OF_UPDATES: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Lines of `length` elements, each with `indexed` updates that name places in it alone: all is known to the program
    that has the line. It has some lines in a turn, and numbers go on from turn to turn, so that those of the last turn
    count as none.

    Without x, indices are unsigned, count the elements of all lines, and what they do not name is 0. One that names
    an element of another line makes `strays` 1. STORED: numbers are stored in any order at first, and those that are
    larger than what is there then are maxima; of numbers far apart that is faster than maxima alone."""
    program = tl.program_id(0).to(INDEX)
    row = tl.arange(0, ROWS)[:, None]
    own = latest + (program * ROWS + row) * length
    for turn in range(turns):
        line = (turn * tl.num_programs(0) + program) * ROWS + row
        before_all = turn * indexed
        for start in range(0, indexed, COLUMNS):
            number = start + tl.arange(0, COLUMNS)[None, :]
            place, mask = _own_places(
                x, indices, strays, line, number, lines, length, indexed, places,
                update_sizes, update_multipliers, update_shifts, index_steps, LOOPS_OF_UPDATES, INDEX,
            )  # fmt: skip
            if STORED:
                tl.store(own + place, (before_all + number).to(tl.int32), mask=mask)
            else:
                tl.atomic_max(own + place, (before_all + number).to(tl.int32), mask=mask, sem="relaxed")
        tl.debug_barrier()
        if STORED:
            for start in range(0, indexed, COLUMNS):
                number = start + tl.arange(0, COLUMNS)[None, :]
                place, mask = _own_places(
                    x, indices, strays, line, number, lines, length, indexed, places,
                    update_sizes, update_multipliers, update_shifts, index_steps, LOOPS_OF_UPDATES, INDEX,
                )  # fmt: skip
                mask = mask & (tl.load(own + place, mask=mask, other=0) < before_all + number)
                tl.atomic_max(own + place, (before_all + number).to(tl.int32), mask=mask, sem="relaxed")
            tl.debug_barrier()
        for start in range(0, length, COLUMNS):
            column = start + tl.arange(0, COLUMNS)[None, :]
            mask = (column < length) & (line < lines)
            number = tl.load(own + column, mask=mask, other=-1, cache_modifier=".cg") - before_all
            is_update = number >= 0
            after_at = apart(
                line * indexed + tl.maximum(number, 0), update_sizes, update_multipliers, update_shifts, update_steps,
                LOOPS_OF_UPDATES,
            )  # fmt: skip
            value = tl.load(updates + after_at, mask=mask & is_update, other=0)
            at = line * length + column
            if x is not None:
                before_at = apart(at, sizes, multipliers, shifts, x_steps, LOOPS)
                before = tl.load(x + before_at, mask=mask & (number < 0), other=0, eviction_policy="evict_first")
                value = tl.where(is_update, value, before)
            y_at = apart(at, sizes, multipliers, shifts, y_steps, LOOPS)
            tl.store(y + y_at, value, mask=mask, eviction_policy="evict_first")
        tl.debug_barrier()


@triton.jit
def clear_places(latest, strays, count, BLOCK: tl.constexpr, INDEX: tl.constexpr):
    """As if nothing had come, where something strays."""
    for block in range(tl.program_id(0), tl.load(strays) * tl.cdiv(count, BLOCK), tl.num_programs(0)):
        at = (tl.zeros([1], INDEX) + block) * BLOCK + tl.arange(0, BLOCK)
        tl.store(latest + at, -1, mask=at < count)


@triton.jit
def mark_places(
    indices, latest, strays, count, places, sizes, multipliers, shifts, index_steps,
    LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Of each element its number, to the place that its index, which is unsigned, names, if there is one; where there
    are `strays`, if something strays."""
    blocks = tl.cdiv(count, BLOCK)
    if strays is not None:
        blocks = blocks * tl.load(strays)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        at = (tl.zeros([1], INDEX) + block) * BLOCK + tl.arange(0, BLOCK)
        mask = at < count
        place = tl.load(indices + apart(at, sizes, multipliers, shifts, index_steps, LOOPS), mask=mask, other=0)
        mask = mask & (place.to(tl.uint64) < (tl.zeros([BLOCK], tl.int64) + places).to(tl.uint64))
        tl.atomic_max(latest + place.to(INDEX), at.to(latest.dtype.element_ty), mask=mask, sem="relaxed")


@triton.jit
def take_or_clear(
    x, latest, strays, y, count, x_sizes, x_multipliers, x_shifts, x_steps, sizes, multipliers, shifts, y_steps,
    LOOPS: tl.constexpr, LOOPS_OF_Y: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """At each place the element that was the last one there, or 0; where there are `strays`, if something strays."""
    blocks = tl.cdiv(count, BLOCK)
    if strays is not None:
        blocks = blocks * tl.load(strays)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        at = (tl.zeros([1], INDEX) + block) * BLOCK + tl.arange(0, BLOCK)
        mask = at < count
        number = tl.load(latest + at, mask=mask, other=-1)
        from_x = apart(tl.maximum(number, 0).to(INDEX), x_sizes, x_multipliers, x_shifts, x_steps, LOOPS)
        value = tl.load(x + from_x, mask=mask & (number >= 0), other=0)
        tl.store(y + apart(at, sizes, multipliers, shifts, y_steps, LOOPS_OF_Y), value, mask=mask)
