"""Triton's kernels of windows that slide over tensors: UNFOLD, FOLD and local responses.

A program has a tile, rows by columns. Columns are places in the spatial dimensions, rows all else, so that an index is
taken apart once for each row and each column. Loops go over the elements of a window, in row-major order, so that
results are the same at each run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart, quotient
from ..reduction.kernels import decomposed, exponential


@triton.jit
def unfold(
    x, y, rows, columns, blocks, row_sizes, row_multipliers, row_shifts, x_row_steps, y_row_steps, dilations,
    place_sizes, multipliers, shifts, strides, y_step, sizes, x_steps, starts,
    DIMENSIONS: tl.constexpr, LOOPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Copies what lies under each element of a window, a row, at each place of it, a column; 0 outside of x.

    A row's loops are the window's dimensions, and then all others. `x_row_steps` has 0 for the window's.
    """
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    at = apart(row, row_sizes, row_multipliers, row_shifts, x_row_steps, LOOPS)
    inside = mask
    tap, place = row, column
    for i in tl.static_range(DIMENSIONS):
        outer = quotient(tap, row_sizes[i], row_multipliers[i], row_shifts[i])
        k = tap - outer * row_sizes[i]
        tap = outer
        if i + 1 < DIMENSIONS:
            outer = quotient(place, place_sizes[i], multipliers[i], shifts[i])
            o = place - outer * place_sizes[i]
            place = outer
        else:
            o = place
        element = o * strides[i] + (k * dilations[i] - starts[i])
        inside = inside & (element >= 0) & (element < sizes[i])
        at = at + element * x_steps[i]
    value = tl.load(x + at, mask=inside, other=0)
    to = apart(row, row_sizes, row_multipliers, row_shifts, y_row_steps, LOOPS)
    tl.store(y + to + column * y_step, value, mask=mask)


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


@triton.jit
def _full(like, number: tl.constexpr):
    return tl.full(like.shape, number, like.dtype)


@triton.jit
def logarithm(s):
    """The natural logarithm of positive doubles within 2^-33, from that of singles: ln(m) = l + d - d^2 / 2 with l near
    it and 1 + d = m * e^-l."""
    bits = s.to(tl.int64, bitcast=True)
    exponent = ((bits >> 52) - 1023).to(tl.float64)
    m = ((bits & 0xFFFFFFFFFFFFF) | (1023 << 52)).to(tl.float64, bitcast=True)
    near = tl.log(m.to(tl.float32)).to(tl.float64)
    d = m * exponential(near * -1, near * 0, tl.float64) - 1
    return exponent * _full(s, 0.6931471805599453) + (near + (d - d * d * 0.5))


@triton.jit
def _root_of_cube(s):
    """s^-(3/4) of positive doubles: by singles within 2^-15, and with 1 - d = r^4 * s^3 corrected to
    r * (1 + d / 4 + 5 / 32 * d^2). The exponent is split off, so that no single overflows."""
    bits = s.to(tl.int64, bitcast=True)
    exponent = ((bits >> 52) - 1023).to(tl.float32)
    m = ((bits & 0xFFFFFFFFFFFFF) | (1023 << 52)).to(tl.float64, bitcast=True)
    wanted = (tl.log2(m.to(tl.float32)) + exponent) * -0.75
    whole = tl.floor(wanted)
    r = tl.exp2(wanted - whole).to(tl.float64)
    r = (r.to(tl.int64, bitcast=True) + (whole.to(tl.int64) << 52)).to(tl.float64, bitcast=True)
    rs = r * s
    d = 1 - (r * rs) * (rs * rs)
    return r + r * d * (d * _full(s, 0.15625) + 0.25)


@triton.jit
def power(s, EXPONENT: tl.constexpr, IS_WHOLE: tl.constexpr, IS_ODD: tl.constexpr, IS_POSITIVE: tl.constexpr):
    """s^EXPONENT, which is not 0: of doubles within the error of that logarithm; of singles by those of singles.
    IS_POSITIVE says that s is above 0, or NaN."""
    size = s if IS_POSITIVE else tl.abs(s)
    if s.dtype == tl.float64:
        if EXPONENT == -0.75:
            result = _root_of_cube(size)
        else:
            product = logarithm(size) * _full(s, EXPONENT)
            product = tl.where(product > 700.0, 700.0, product)
            result = exponential(product, product * 0, tl.float64)
    else:
        result = tl.exp2(tl.log2(size) * EXPONENT)
    if IS_POSITIVE:
        if s.dtype == tl.float64:
            result = tl.where(s < float("inf"), result, tl.where(s == s, float("inf") if EXPONENT > 0 else 0.0, s))
    elif EXPONENT > 0:
        result = tl.where(size == 0, 0.0, result)
        result = tl.where(size == float("inf"), float("inf"), result)
    else:
        result = tl.where(size == 0, float("inf"), result)
        result = tl.where(size == float("inf"), 0.0, result)
    if not IS_POSITIVE:
        if IS_ODD:
            result = tl.where(s < 0, result * -1, result)
        if not IS_WHOLE:
            result = tl.where(s < 0, float("nan"), result)
        result = tl.where(s != s, s, result)
    return result


@triton.jit
def _along(
    total, x, first, mask, j, width, across, BEFORE: tl.constexpr, AFTER: tl.constexpr, UNROLLED: tl.constexpr,
    MAP: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The sum with elements, or their squares, from BEFORE before each to AFTER behind it in a dimension, of which it
    is number j; 0 outside."""
    # Distances times steps in the type of offsets.
    zero = tl.full((), 0, first.dtype)
    if UNROLLED:
        for m in tl.static_range(-BEFORE, AFTER + 1):
            within = mask & (j + m >= 0) & (j + m < width)
            value = tl.load(x + first + (zero + m) * across, mask=within, other=0).to(WIDE)
            total += value * value if MAP == "SQUARE" else value
    else:
        for m in range(-BEFORE, AFTER + 1):
            within = mask & (j + m >= 0) & (j + m < width)
            value = tl.load(x + first + (zero + m) * across, mask=within, other=0).to(WIDE)
            total += value * value if MAP == "SQUARE" else value
    return total


@triton.jit
def _around(
    x, first, mask, i, j, length, width, step, across, BEFORE: tl.constexpr, AFTER: tl.constexpr,
    UNROLLED: tl.constexpr, IS_SQUARE: tl.constexpr, MAP: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Likewise along one dimension, of which an element is number i, or along another too, of which it is j."""
    total = (mask.to(tl.int32) * 0).to(WIDE)
    if IS_SQUARE:
        zero = tl.full((), 0, first.dtype)
        for k in range(-BEFORE, AFTER + 1):
            inside = mask & (i + k >= 0) & (i + k < length)
            place = first + (zero + k) * step
            total = _along(total, x, place, inside, j, width, across, BEFORE, AFTER, UNROLLED, MAP, WIDE)
    else:
        total = _along(total, x, first, mask, i, length, step, BEFORE, AFTER, UNROLLED, MAP, WIDE)
    return total


@triton.jit
def local_response(
    x, dy, terms, y, rows, columns, blocks, length, width, divisor, second_divisor,
    row_sizes, multipliers, shifts, x_row_steps, dy_row_steps, y_row_steps, x_step, dy_step, y_step,
    step, across, of_terms, terms_across,
    PART: tl.constexpr, BEFORE: tl.constexpr, AFTER: tl.constexpr, UNROLLED: tl.constexpr,
    IS_SQUARE: tl.constexpr, IN_COLUMNS: tl.constexpr, BIAS: tl.constexpr, FACTOR: tl.constexpr,
    OF_SUM: tl.constexpr, EXPONENT: tl.constexpr, IS_WHOLE: tl.constexpr, IS_ODD: tl.constexpr,
    IS_POSITIVE: tl.constexpr,
    WIDE: tl.constexpr, LOOPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """With s = BIAS + FACTOR * sum of squares around an element, by PART:

        RESULT    y = x * s^EXPONENT
        TERMS     y = dy * x * s^EXPONENT / s, in the order of rows and columns
        GRADIENT  y = dy * s^EXPONENT - OF_SUM * x * sum of terms around it, the other way round

    Columns are the innermost loop; IN_COLUMNS is the number of the dimension that is summed along, 1 or 2, which they
    are, or 0. Of others the index is that of a row, divided.
    """
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    i, j = column, column
    if IN_COLUMNS != 1:
        i = (row // divisor) % length
    if IS_SQUARE and IN_COLUMNS != 2:
        j = (row // second_divisor) % width
    at = apart(row, row_sizes, multipliers, shifts, x_row_steps, LOOPS) + column * x_step
    sums = _around(x, at, mask, i, j, length, width, step, across, BEFORE, AFTER, UNROLLED, IS_SQUARE, "SQUARE", WIDE)
    s = sums * _full(sums, FACTOR) + _full(sums, BIAS)
    own = tl.load(x + at, mask=mask, other=0).to(WIDE)
    if EXPONENT == 0:
        powers = s * 0 + 1
    else:
        powers = power(s, EXPONENT, IS_WHOLE, IS_ODD, IS_POSITIVE)
    if PART == "RESULT":
        result = own * powers
    else:
        from_dy = apart(row, row_sizes, multipliers, shifts, dy_row_steps, LOOPS) + column * dy_step
        result = tl.load(dy + from_dy, mask=mask, other=0).to(WIDE)
        if PART == "TERMS":
            result = result * own * (powers / s)
        else:
            around = _around(
                terms, row * columns + column, mask, i, j, length, width, of_terms, terms_across, AFTER, BEFORE,
                UNROLLED, IS_SQUARE, "", WIDE,
            )  # fmt: skip
            result = result * powers - _full(sums, OF_SUM) * own * around
    if PART == "TERMS":
        place = row * columns + column
    else:
        place = apart(row, row_sizes, multipliers, shifts, y_row_steps, LOOPS) + column * y_step
    tl.store(y + place, result.to(y.dtype.element_ty), mask=mask)
