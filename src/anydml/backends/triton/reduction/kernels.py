"""Triton's kernel of reductions: lines of elements, each combined to one value.

A program combines some lines, or a part of each, tile by tile. A tile is (LINES, DEPTH) where the elements of a line
are the nearer ones, and (DEPTH, LINES) where those of neighbouring lines are. Every place of a tile has an accumulator
of its own, so that the tiles are combined element by element, and the accumulators with each other at the end: always
in the same order.

An accumulator is a pair:

    SUM        the sum, of which L1, L2, AVERAGE and others are made, and nothing
    MAX        the largest number, NaN while there is none, and nothing; the smallest is that of what is negated
    ARG        the largest number, and where it is
    PRODUCT    a mantissa within the roots of 1/2 and of 2, and an exponent, so that nothing leaves the range on the way
    LOG_SUM    the largest number m, and the sum of exp(x - m) of all others
    MOMENTS    the sum of differences from the first element of the line, or from 0, and the sum of their squares
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..scan.ops import frexp, ldexp, multiply


@triton.jit
def decomposed(number, sizes, strides, LOOPS: tl.constexpr):
    """The offset of an element by its number in nested loops, the innermost first."""
    at = number * 0
    for i in tl.static_range(LOOPS):
        if i + 1 < LOOPS:
            at += number % sizes[i] * strides[i]
            number = number // sizes[i]
        else:
            at += number * strides[i]
    return at


@triton.jit
def along_lines(
    number, sizes, strides, LOOPS: tl.constexpr, DIM: tl.constexpr, SIDE_BY_SIDE: tl.constexpr
):  # fmt: skip
    """The offsets of lines. Threads go along what the compiler knows to lie side by side, which of several loops it has
    to be told: about a sum that is computed here, as what is known of another function's result may be forgotten."""
    at = number * 0
    for i in tl.static_range(LOOPS):
        if i + 1 < LOOPS:
            at += number % sizes[i] * strides[i]
            number = number // sizes[i]
        else:
            at += number * strides[i]
    if DIM == 0 and LOOPS > 1 and SIDE_BY_SIDE:
        at = tl.max_contiguous(at, [1, 4])
    return at


@triton.jit
def log_of_1_and(b):
    """log(1 + b) by u = 1 + b, rounded, and what it lacks: b - (u - 1)."""
    u = 1 + b
    return tl.where(u == float("inf"), u, tl.log(u) + (b - (u - 1)) / u)


@triton.jit
def exponential(x, largest, WIDE: tl.constexpr):
    """e^(x - largest) of singles, and that in WIDE.

    In double precision it is 2^k * P(r) within 2^-34, x - largest = k * log(2) + r, P being the minimax polynomial of
    degree 7; k is rounded by an addition that leaves it in the lowest bits. What is below e^-700 counts as that.
    """
    if tl.float32 == WIDE:
        result = tl.exp(x - largest)
    else:
        d = x.to(tl.float64) - largest.to(tl.float64)
        d = tl.where(x - largest < -700.0, -700.0, d)
        shifted = tl.fma(d, _double(d, 1.4426950408889634), _double(d, 6755399441055744.0))
        r = tl.fma(shifted - 6755399441055744.0, _double(d, -0.6931471805599453), d)
        p = tl.fma(r, _double(d, 0.00019775159777597618), _double(d, 0.001394819512251239))
        p = tl.fma(p, r, _double(d, 0.00833356117832883))
        p = tl.fma(p, r, _double(d, 0.04166622525031783))
        p = tl.fma(p, r, _double(d, 0.16666665125231087))
        p = tl.fma(p, r, _double(d, 0.5000000104598318))
        p = tl.fma(p, r, _double(d, 1.0000000002432883))
        p = tl.fma(p, r, _double(d, 0.9999999999616517))
        result = (p.to(tl.int64, bitcast=True) + (shifted.to(tl.int64, bitcast=True) << 52)).to(
            tl.float64, bitcast=True
        )
    return result


@triton.jit
def _double(like, number: tl.constexpr):
    return tl.full(like.shape, number, tl.float64)


@triton.jit
def _mapped(values, MAP: tl.constexpr, VALUE: tl.constexpr):
    values = values.to(VALUE)
    if MAP == "ABS":
        values = tl.abs(values)
    elif MAP == "SQUARE":
        values = values * values
    elif MAP == "NEGATIVE":
        if VALUE.is_floating():
            values = values * -1
        else:
            values = ~values
    return values


@triton.jit
def _exponentials(a, b, value, other):
    """exp(a) * (1 + b) + exp(value) * (1 + other) as such a pair, by the larger of a and value."""
    is_more = value > a
    low = tl.where(is_more, a, value)
    high = tl.where(is_more, value, a)
    d = tl.where(low == high, 1.0, exponential(low, high, b.dtype))
    # What is NaN is no larger number, and stays in the sum.
    return high, tl.where(is_more, other + d * (1 + b), b + d * (1 + other))


@triton.jit
def _combined(a, b, value, other, KIND: tl.constexpr, LAST: tl.constexpr):
    """Two accumulators as one, element by element; `other` is the second half of the second one."""
    if KIND == "SUM":
        a = a + value
    elif KIND == "MOMENTS":
        a = a + value
        b = b + other
    elif KIND == "MULTIPLY":
        a = a * value
    elif KIND == "PRODUCT":
        a, power = frexp(a * value)
        b = b + (power + other)
    elif KIND == "MAX":
        # Of NaN and a number it is the number.
        a = tl.maximum(a, value)
    elif KIND == "ARG":
        is_equal = (value == a) | ((a != a) & (value != value))
        nearer = (other > b) if LAST else (other < b)
        is_better = (value > a) | ((a != a) & (value == value)) | (is_equal & nearer)
        a = tl.where(is_better, value, a)
        b = tl.where(is_better, other, b)
    elif KIND == "LOG_SUM":
        a, b = _exponentials(a, b, value, other)
    return a, b


@triton.jit
def _reduced(a, b, DIM: tl.constexpr, KIND: tl.constexpr, LAST: tl.constexpr, NOWHERE: tl.constexpr):
    """The accumulators along DIM as one, kept as a dimension of 1."""
    if KIND == "SUM":
        a = tl.sum(a, DIM, keep_dims=True)
        b = tl.zeros(a.shape, tl.int32)
    elif KIND == "MOMENTS":
        a = tl.sum(a, DIM, keep_dims=True)
        b = tl.sum(b, DIM, keep_dims=True)
    elif KIND == "MULTIPLY":
        a = tl.reduce(a, DIM, multiply, keep_dims=True)
        b = tl.zeros(a.shape, tl.int32)
    elif KIND == "PRODUCT":
        a, power = frexp(tl.reduce(a, DIM, multiply, keep_dims=True))
        b = tl.sum(b, DIM, keep_dims=True) + power
    else:
        if a.dtype.is_floating():
            largest = tl.max(tl.where(a != a, -float("inf"), a), DIM, keep_dims=True)
            if KIND == "LOG_SUM":
                # All but the first of the largest counts with e^(m - largest), and itself.
                place = tl.arange(0, a.shape[DIM])
                place = place[:, None] if DIM == 0 else place[None, :]
                first = tl.min(tl.where(a == largest, place, a.shape[DIM]), DIM, keep_dims=True)
                d = tl.where(a == largest, 1.0, exponential(a, largest, b.dtype))
                b = tl.sum(tl.where(place == first, b, d * (1 + b)), DIM, keep_dims=True)
                a = largest
            else:
                none = tl.min((a != a).to(tl.int32), DIM, keep_dims=True) != 0
                is_largest = (a == largest) | none
                a = tl.where(none, float("nan"), largest).to(a.dtype)
        else:
            largest = tl.max(a, DIM, keep_dims=True)
            is_largest = a == largest
            a = largest.to(a.dtype)
        if KIND == "ARG":
            if LAST:
                b = tl.max(tl.where(is_largest, b, NOWHERE), DIM, keep_dims=True)
            else:
                b = tl.min(tl.where(is_largest, b, NOWHERE), DIM, keep_dims=True)
        elif KIND == "MAX":
            b = tl.zeros(a.shape, tl.int32)
    return a, b


@triton.jit
def accumulated(
    a, b, values, mask, k, centre, KIND: tl.constexpr, MAP: tl.constexpr, VALUE: tl.constexpr, SECOND: tl.constexpr,
    NONE: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """Accumulators with an element each, number k of its line. Along a line numbers grow."""
    values = _mapped(values, MAP, VALUE)
    if KIND == "ARG":
        if VALUE.is_floating():
            is_better = (values == values) & mask & (~(values < a) if LAST else ~(values <= a))
        else:
            is_better = mask & ((values >= a) if LAST else (values > a))
        a = tl.where(is_better, values, a)
        b = tl.where(is_better, k.to(SECOND), b)
    else:
        if KIND == "MOMENTS":
            if MAP == "CENTRE":
                values = values - centre
            values = tl.where(mask, values, 0.0)
        elif NONE != 0 or MAP == "NEGATIVE":
            values = tl.where(mask, values, tl.full(values.shape, NONE, VALUE))
        a, b = _combined(a, b, values, values * values if KIND == "MOMENTS" else b * 0, KIND, LAST)
    return a, b


@triton.jit
def combined_along(
    a, b, begin, end, DIM: tl.constexpr, KIND: tl.constexpr, LAST: tl.constexpr, NOWHERE: tl.constexpr
):  # fmt: skip
    """The accumulators along DIM as one; where no element is larger than what was there before, all are equal."""
    a, b = _reduced(a, b, DIM, KIND, LAST, NOWHERE)
    if KIND == "ARG":
        b = tl.where(b == NOWHERE, (end - 1 if LAST else begin).to(b.dtype), b)
    return a, b


@triton.jit
def finished(a, b, total, KIND: tl.constexpr, FINISH: tl.constexpr):
    """The result of an accumulator of `total` elements."""
    if KIND == "PRODUCT":
        a = ldexp(a, b)
    elif KIND == "LOG_SUM":
        a = a + log_of_1_and(b.to(tl.float64))
    elif KIND == "ARG":
        a = b
    if FINISH == "MEAN":
        a = a.to(tl.float64) / (tl.zeros([1, 1], tl.float64) + total)
    elif FINISH == "ROOT":
        a = tl.sqrt(a.to(tl.float64))
    elif FINISH == "LOG":
        a = tl.log(a.to(tl.float64))
    elif FINISH == "NEGATIVE":
        if a.dtype.is_floating():
            a = a * -1
        else:
            a = ~a
    return a


@triton.jit
def _read(x, first, k, within, end, axis_sizes, axis_strides, AXES: tl.constexpr, NONE: tl.constexpr):
    place = first + decomposed(k, axis_sizes, axis_strides, AXES)
    return tl.load(x + place, mask=within & (k < end), other=NONE)


@triton.jit
def _exponentials_along(
    x, first, depth, lines, within, begin, end, axis_sizes, axis_strides,
    SECOND: tl.constexpr, AXES: tl.constexpr, DIM: tl.constexpr, DEPTH: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """As `combine_lines`, of kind LOG_SUM: a thread reads AHEAD elements of a line, finds the largest, and adds the
    exponentials of all, so that there is little more than one for each."""
    NONE: tl.constexpr = -float("inf")
    at = begin + depth + lines * 0
    a = tl.full(at.shape, NONE, tl.float32)
    b = tl.zeros(at.shape, SECOND)
    for start in range(begin, end, DEPTH * AHEAD):
        values = ()
        for i in tl.static_range(AHEAD):
            k = start + i * DEPTH + depth + lines * 0
            values += (_read(x, first, k, within, end, axis_sizes, axis_strides, AXES, NONE).to(tl.float32),)
        largest = a
        for i in tl.static_range(AHEAD):
            largest = tl.maximum(largest, values[i])
        # Where there is no element yet, any number will do.
        base = tl.where(largest == NONE, 0.0, largest)
        is_same = largest == a
        b = tl.where(is_same, b, (1 + b) * exponential(a, base, SECOND))
        # Of the largest all but one are among the others.
        count = tl.where(is_same, 0, -1)
        for i in tl.static_range(AHEAD):
            is_largest = values[i] == largest
            b += exponential(tl.where(is_largest, NONE, values[i]), base, SECOND)
            count += is_largest.to(tl.int32)
        b += count.to(SECOND)
        a = largest
    return a, b


@triton.jit
def combine_lines(
    x, first, depth, lines, within, begin, end, axis_sizes, axis_strides,
    KIND: tl.constexpr, MAP: tl.constexpr, VALUE: tl.constexpr, SECOND: tl.constexpr, NONE: tl.constexpr,
    LAST: tl.constexpr, NOWHERE: tl.constexpr, AXES: tl.constexpr, DIM: tl.constexpr, DEPTH: tl.constexpr,
    AHEAD: tl.constexpr,
):  # fmt: skip
    """The accumulators of the elements from `begin` on to before `end` of lines that lie at `first`.

    AHEAD: the elements of a thread at a time, of kind LOG_SUM; else whether a tile is read before the one before it is
    combined.
    """
    if KIND == "LOG_SUM":
        a, b = _exponentials_along(
            x, first, depth, lines, within, begin, end, axis_sizes, axis_strides, SECOND, AXES, DIM, DEPTH, AHEAD
        )
    else:
        at = begin + depth + lines * 0
        a = tl.full(at.shape, NONE, VALUE)
        b = tl.full(at.shape, NOWHERE if KIND == "ARG" else 0, SECOND)
        centre = tl.load(x + first, mask=within, other=0).to(VALUE) if MAP == "CENTRE" else 0
        if AHEAD:
            following = _read(x, first, at, within, end, axis_sizes, axis_strides, AXES, 0)
        for start in range(begin, end, DEPTH):
            k = start + depth + lines * 0
            if AHEAD:
                values = following
                following = _read(x, first, k + DEPTH, within, end, axis_sizes, axis_strides, AXES, 0)
            else:
                values = _read(x, first, k, within, end, axis_sizes, axis_strides, AXES, 0)
            mask = within & (k < end)
            a, b = accumulated(a, b, values, mask, k, centre, KIND, MAP, VALUE, SECOND, NONE, LAST)
    return combined_along(a, b, begin, end, DIM, KIND, LAST, NOWHERE)


@triton.jit
def reduce_lines(
    x, x_second, y, y_second, n, span, total, count, blocks, from_line, from_part, to_line, to_part,
    sizes, x_strides, y_strides, axis_sizes, axis_strides,
    KIND: tl.constexpr, MAP: tl.constexpr, FINISH: tl.constexpr, VALUE: tl.constexpr, SECOND: tl.constexpr,
    NONE: tl.constexpr, LAST: tl.constexpr, NOWHERE: tl.constexpr, FROM_STATES: tl.constexpr, TO_STATES: tl.constexpr,
    LOOPS: tl.constexpr, AXES: tl.constexpr, SIDE_BY_SIDE: tl.constexpr, DIM: tl.constexpr, LINES: tl.constexpr,
    DEPTH: tl.constexpr, AHEAD: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Combines `span` of the n elements of each of LINES lines, in tiles of DEPTH of them.

    Where lines are cut, accumulators go to two tables, TO_STATES, and another launch combines those, FROM_STATES.

    total: the elements of a line.
    FINISH: what the result is made of the accumulator.
    VALUE, SECOND: the types of an accumulator.
    NONE: the accumulator of no element, NOWHERE its place.
    DIM: of tiles, along which lines go.
    """
    program = tl.program_id(0)
    part = program // blocks
    line = ((program - part * blocks).to(INDEX) * LINES) + tl.arange(0, LINES)
    is_line = line < count
    if DIM == 1:
        lines = line[:, None]
        depth = tl.arange(0, DEPTH)[None, :]
        within = is_line[:, None]
    else:
        lines = line[None, :]
        depth = tl.arange(0, DEPTH)[:, None]
        within = is_line[None, :]
    if FROM_STATES:
        first = lines * from_line
    else:
        first = along_lines(lines, sizes, x_strides, LOOPS, DIM, SIDE_BY_SIDE)
    begin = part.to(INDEX) * span
    end = tl.minimum(begin + span, n)
    if FROM_STATES:
        at = begin + depth + lines * 0
        a = tl.full(at.shape, NONE, VALUE)
        b = tl.full(at.shape, NOWHERE if KIND == "ARG" else 0, SECOND)
        for start in range(begin, end, DEPTH):
            k = start + depth + lines * 0
            mask = within & (k < end)
            place = first + k * from_part
            value = tl.load(x + place, mask=mask, other=NONE).to(VALUE)
            other = b
            if KIND == "ARG":
                other = tl.load(x_second + place, mask=mask, other=NOWHERE)
            elif KIND == "PRODUCT" or KIND == "LOG_SUM" or KIND == "MOMENTS":
                other = tl.load(x_second + place, mask=mask, other=0)
            a, b = _combined(a, b, value, other, KIND, LAST)
        a, b = combined_along(a, b, begin, end, DIM, KIND, LAST, NOWHERE)
    else:
        a, b = combine_lines(
            x, first, depth, lines, within, begin, end, axis_sizes, axis_strides,
            KIND, MAP, VALUE, SECOND, NONE, LAST, NOWHERE, AXES, DIM, DEPTH, AHEAD,
        )  # fmt: skip
    if TO_STATES:
        place = lines * to_line + part * to_part
        tl.store(y + place, a, mask=within)
        if KIND == "ARG" or KIND == "PRODUCT" or KIND == "LOG_SUM" or KIND == "MOMENTS":
            tl.store(y_second + place, b, mask=within)
    else:
        a = finished(a, b, total, KIND, FINISH)
        tl.store(y + decomposed(lines, sizes, y_strides, LOOPS), a.to(y.dtype.element_ty), mask=within)
