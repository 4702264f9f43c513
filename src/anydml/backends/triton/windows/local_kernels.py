"""Triton's kernels of local responses: each element divided by a power of the sum of squares around it, and gradients.

A program has a tile, rows by columns, or a strip of some channels where these are planes, of which it loads each once.
Sums go from the first element to the last, so that results are the same at each run.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart
from ..reduction.kernels import exponential


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


@triton.jit
def _channel(x, first, number, channels, step, mask, WIDE: tl.constexpr):
    """The elements of a channel; 0 of one that is not there."""
    is_there = mask & (number >= 0) & (number < channels)
    return tl.load(x + first + number * step, mask=is_there, other=0).to(WIDE)


@triton.jit
def _power_of_sum(
    window, BIAS: tl.constexpr, FACTOR: tl.constexpr, EXPONENT: tl.constexpr,
    IS_WHOLE: tl.constexpr, IS_ODD: tl.constexpr, IS_POSITIVE: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """s of a window of squares, and its power."""
    total = window[0]
    for m in tl.static_range(1, SIZE):
        total = total + window[m]
    s = total * _full(total, FACTOR) + _full(total, BIAS)
    if EXPONENT == 0:
        result = s * 0 + 1
    else:
        result = power(s, EXPONENT, IS_WHOLE, IS_ODD, IS_POSITIVE)
    return s, result


@triton.jit
def _moved_on(window, value, SIZE: tl.constexpr):
    """A window without its first one, and with another behind it."""
    moved = ()
    for m in tl.static_range(1, SIZE):
        moved += (window[m],)
    moved += (value,)
    return moved


@triton.jit
def _none_of(value, SIZE: tl.constexpr):
    window = ()
    for _ in tl.static_range(SIZE):
        window += (value,)
    return window


@triton.jit
def local_strips(
    x, dy, y, positions, blocks, chunks, channels,
    sizes, multipliers, shifts, x_steps, dy_steps, y_steps, x_step, dy_step, y_step, x_inner, dy_inner, y_inner,
    IS_GRADIENT: tl.constexpr, BEFORE: tl.constexpr, AFTER: tl.constexpr, CHANNELS: tl.constexpr,
    BIAS: tl.constexpr, FACTOR: tl.constexpr, OF_SUM: tl.constexpr, EXPONENT: tl.constexpr,
    IS_WHOLE: tl.constexpr, IS_ODD: tl.constexpr, IS_POSITIVE: tl.constexpr,
    WIDE: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """As `local_response` across channels, of planes: a program goes on from channel to channel at its positions, and
    keeps what the window has. For gradients, whose terms it computes again at the ends of its strip,

        y = dy * s^EXPONENT - OF_SUM * x * sum of dy * x * s^EXPONENT / s, the other way round
    """
    SIZE: tl.constexpr = BEFORE + AFTER + 1
    program = tl.program_id(0)
    at = (program % blocks).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = at < positions
    rest = program // blocks
    start = (rest % chunks) * CHANNELS
    outer = (rest // chunks).to(INDEX)
    of_x = apart(outer, sizes, multipliers, shifts, x_steps, LOOPS) + at * x_inner
    of_y = apart(outer, sizes, multipliers, shifts, y_steps, LOOPS) + at * y_inner
    start = at * 0 + start.to(INDEX)
    zero = (mask.to(tl.int32) * 0).to(WIDE)
    squares, own = _none_of(zero, SIZE), _none_of(zero, SIZE)
    # The first channel that is computed: of gradients the first one whose term is needed.
    LEAD: tl.constexpr = AFTER if IS_GRADIENT else 0
    for k in tl.static_range(SIZE - 1):
        value = _channel(x, of_x, start + (k - BEFORE - LEAD), channels, x_step, mask, WIDE)
        squares, own = _moved_on(squares, value * value, SIZE), _moved_on(own, value, SIZE)
    if IS_GRADIENT:
        of_dy = apart(outer, sizes, multipliers, shifts, dy_steps, LOOPS) + at * dy_inner
        terms, products, values = _none_of(zero, SIZE), _none_of(zero, SIZE), _none_of(zero, SIZE)
        for k in tl.static_range(CHANNELS + SIZE - 1):
            number = start + (k - LEAD)
            value = _channel(x, of_x, number + AFTER, channels, x_step, mask, WIDE)
            squares, own = _moved_on(squares, value * value, SIZE), _moved_on(own, value, SIZE)
            s, factor = _power_of_sum(squares, BIAS, FACTOR, EXPONENT, IS_WHOLE, IS_ODD, IS_POSITIVE, SIZE)
            given = _channel(dy, of_dy, number, channels, dy_step, mask, WIDE)
            term = given * own[BEFORE] * (factor / s)
            term = tl.where((number >= 0) & (number < channels), term, 0.0)
            terms, products = _moved_on(terms, term, SIZE), _moved_on(products, given * factor, SIZE)
            values = _moved_on(values, own[BEFORE], SIZE)
            if k >= SIZE - 1:
                around = terms[0]
                for m in tl.static_range(1, SIZE):
                    around = around + terms[m]
                result = products[AFTER] - _full(zero, OF_SUM) * values[AFTER] * around
                written = number - BEFORE
                place = y + of_y + written * y_step
                tl.store(place, result.to(y.dtype.element_ty), mask=mask & (written < channels))
    else:
        for k in tl.static_range(CHANNELS):
            number = start + k
            value = _channel(x, of_x, number + AFTER, channels, x_step, mask, WIDE)
            squares, own = _moved_on(squares, value * value, SIZE), _moved_on(own, value, SIZE)
            _, factor = _power_of_sum(squares, BIAS, FACTOR, EXPONENT, IS_WHOLE, IS_ODD, IS_POSITIVE, SIZE)
            result = (own[BEFORE] * factor).to(y.dtype.element_ty)
            tl.store(y + of_y + number * y_step, result, mask=mask & (number < channels))
