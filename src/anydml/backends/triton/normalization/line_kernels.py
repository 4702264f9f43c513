"""Triton's kernels of operators that normalise lines: softmax, and by means, variances and norms.

    SOFTMAX        exp(x - m) / sum of exp(x - m), m being the largest element
    LOG_SOFTMAX    d - log(1 + sum of exp(d) over all but the first of the largest), d = x - m
    HARDMAX        whether an element is the first of the largest
    MOMENTS        (x - mean) / sqrt(variance + EPSILON) * scale + bias
    NORM1, NORM2   x / max(norm, EPSILON)

All is computed in double precision and rounded once, but for softmax of halves, and lines of them that are held in
registers, in single. `normalize_lines` holds whole lines so and reads them once. Longer ones are reduced to two numbers
each, of which `_applied` computes the elements: where a program's lines stay in the cache until they are read again, by
one kernel, `reread_lines`; else by the kernel of reductions and `apply_lines`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..reduction.kernels import along_lines, combine_lines, decomposed, exponential, log_of_1_and


@triton.jit
def _read(x, first, at, sizes, strides, n, within, AXES: tl.constexpr, NONE: tl.constexpr):
    place = first + decomposed(at, sizes, strides, AXES)
    return tl.load(x + place, mask=within & (at < n), other=NONE).to(tl.float32)


@triton.jit
def _narrowed(a, DIM: tl.constexpr, IS_SUM: tl.constexpr, WIDTH: tl.constexpr):
    """Tiles of several lines to WIDTH elements of each: combined by threads alone, before any need each other."""
    if DIM == 1 and a.shape[0] > 1 and a.shape[1] > WIDTH:
        parts = tl.reshape(a, (a.shape[0], a.shape[1] // WIDTH, WIDTH))
        a = tl.sum(parts, 1) if IS_SUM else tl.max(parts, 1)
    return a


@triton.jit
def _together(a, b, c, DIM: tl.constexpr, B: tl.constexpr, C: tl.constexpr, IS_SUM: tl.constexpr):
    """The sums, or the largest elements, of lines in up to three tiles."""
    ARE_SHORT: tl.constexpr = DIM == 1 and a.shape[0] > 1 and B > 1
    if ARE_SHORT:
        # Several lines: their tiles are one before threads need each other.
        LEAST: tl.constexpr = C if C > 1 else B
        a, b = _narrowed(a, DIM, IS_SUM, LEAST), _narrowed(b, DIM, IS_SUM, LEAST)
        a = a + b if IS_SUM else tl.maximum(a, b)
        if C > 1:
            a = a + c if IS_SUM else tl.maximum(a, c)
    result = tl.sum(a, DIM, keep_dims=True) if IS_SUM else tl.max(a, DIM, keep_dims=True)
    if not ARE_SHORT:
        if B > 1:
            more = tl.sum(b, DIM, keep_dims=True) if IS_SUM else tl.max(b, DIM, keep_dims=True)
            result = result + more if IS_SUM else tl.maximum(result, more)
        if C > 1:
            more = tl.sum(c, DIM, keep_dims=True) if IS_SUM else tl.max(c, DIM, keep_dims=True)
            result = result + more if IS_SUM else tl.maximum(result, more)
    return result


@triton.jit
def _sum(a, b, c, DIM: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    return _together(a, b, c, DIM, B, C, True)


@triton.jit
def _largest(a, b, c, DIM: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    return _together(a, b, c, DIM, B, C, False)


@triton.jit
def _of_others(x, largest, WIDE: tl.constexpr):
    """The exponentials of all but those equal to the largest, 0 for these; and whether one is, as a number. What is NaN
    stays in the sum."""
    is_largest = x == largest
    none = tl.where(tl.abs(largest) == float("inf"), 0.0, largest)
    others = exponential(tl.where(is_largest, -float("inf"), x), none, WIDE)
    return others, is_largest.to(tl.float32)


@triton.jit
def _first(x, at, n, largest, DIM: tl.constexpr):
    return tl.min(tl.where((at < n) & (x == largest), at, 0x7FFFFFFF), DIM, keep_dims=True)


@triton.jit
def _difference(x, largest, n, WIDE: tl.constexpr):
    """x - largest, computed again: a compiler that knew it from the exponentials would hold it in more registers."""
    return tl.where(n > 0, x, 0.0).to(WIDE) - largest.to(WIDE)


@triton.jit
def _store(
    y, value, scale, bias, first, scale_first, bias_first, at, sizes, strides, scale_strides, bias_strides, n, within,
    AXES: tl.constexpr, HAS_SCALE: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_RELU: tl.constexpr,
):  # fmt: skip
    mask = within & (at < n)
    if HAS_SCALE:
        place = scale_first + decomposed(at, sizes, scale_strides, AXES)
        value = value * tl.load(scale + place, mask=mask, other=0).to(value.dtype)
    if HAS_BIAS:
        place = bias_first + decomposed(at, sizes, bias_strides, AXES)
        value = value + tl.load(bias + place, mask=mask, other=0).to(value.dtype)
    if HAS_RELU:
        value = tl.where(value < 0, 0.0, value)
    tl.store(y + first + decomposed(at, sizes, strides, AXES), value.to(y.dtype.element_ty), mask=mask)


@triton.jit
def normalize_lines(
    x, scale, bias, y, n, count, sizes, x_strides, y_strides, scale_strides, bias_strides,
    axis_sizes, x_steps, y_steps, scale_steps, bias_steps,
    FUNCTION: tl.constexpr, EPSILON: tl.constexpr, HAS_MEAN: tl.constexpr, HAS_VARIANCE: tl.constexpr,
    HAS_SCALE: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_RELU: tl.constexpr, WIDE: tl.constexpr,
    LOOPS: tl.constexpr, AXES: tl.constexpr, SIDE_BY_SIDE: tl.constexpr, DIM: tl.constexpr, LINES: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """LINES lines of n elements in two or three tiles, which have A, B and C of each.

    DIM: of tiles, along which lines go.
    """
    line = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)
    if DIM == 1:
        lines, within = line[:, None], (line < count)[:, None]
        a = tl.arange(0, A)[None, :] + lines * 0
        b = A + tl.arange(0, B)[None, :] + lines * 0
        c = A + B + tl.arange(0, C)[None, :] + lines * 0
    else:
        lines, within = line[None, :], (line < count)[None, :]
        a = tl.arange(0, A)[:, None] + lines * 0
        b = A + tl.arange(0, B)[:, None] + lines * 0
        c = A + B + tl.arange(0, C)[:, None] + lines * 0
    first = along_lines(lines, sizes, x_strides, LOOPS, DIM, SIDE_BY_SIDE)
    HAS_B: tl.constexpr = B > 1
    HAS_C: tl.constexpr = C > 1
    IS_SOFTMAX: tl.constexpr = FUNCTION == "SOFTMAX" or FUNCTION == "LOG_SOFTMAX" or FUNCTION == "HARDMAX"
    NONE: tl.constexpr = -float("inf") if IS_SOFTMAX else 0.0
    xa = _read(x, first, a, axis_sizes, x_steps, n, within, AXES, NONE)
    xb, xc = xa, xa
    if HAS_B:
        xb = _read(x, first, b, axis_sizes, x_steps, n, within, AXES, NONE)
    if HAS_C:
        xc = _read(x, first, c, axis_sizes, x_steps, n, within, AXES, NONE)

    if IS_SOFTMAX:
        largest = _largest(xa, xb, xc, DIM, B, C)
        if FUNCTION == "HARDMAX":
            place = _first(xa, a, n, largest, DIM)
            if HAS_B:
                place = tl.minimum(place, _first(xb, b, n, largest, DIM))
            if HAS_C:
                place = tl.minimum(place, _first(xc, c, n, largest, DIM))
            # Where there is no number.
            place = tl.where(place == 0x7FFFFFFF, 0, place)
            ya = (a == place).to(tl.float32)
            yb, yc = ya, ya
            if HAS_B:
                yb = (b == place).to(tl.float32)
            if HAS_C:
                yc = (c == place).to(tl.float32)
        elif FUNCTION == "SOFTMAX":
            ya = exponential(xa, largest, WIDE)
            yb, yc = ya, ya
            if HAS_B:
                yb = exponential(xb, largest, WIDE)
            if HAS_C:
                yc = exponential(xc, largest, WIDE)
            factor = 1.0 / _sum(ya, yb, yc, DIM, B, C).to(tl.float64)
            ya = ya * factor.to(WIDE)
            if HAS_B:
                yb = yb * factor.to(WIDE)
            if HAS_C:
                yc = yc * factor.to(WIDE)
        else:
            ya, equal_a = _of_others(xa, largest, WIDE)
            yb, yc, equal_b, equal_c = ya, ya, equal_a, equal_a
            if HAS_B:
                yb, equal_b = _of_others(xb, largest, WIDE)
            if HAS_C:
                yc, equal_c = _of_others(xc, largest, WIDE)
            others = _sum(ya, yb, yc, DIM, B, C).to(tl.float64)
            # Of the largest all but one are among the others.
            others += (_sum(equal_a, equal_b, equal_c, DIM, B, C) - 1).to(tl.float64)
            logarithm = tl.where(tl.abs(largest) == float("inf"), float("nan"), log_of_1_and(others)).to(WIDE)
            ya = _difference(xa, largest, n, WIDE) - logarithm
            if HAS_B:
                yb = _difference(xb, largest, n, WIDE) - logarithm
            if HAS_C:
                yc = _difference(xc, largest, n, WIDE) - logarithm
    else:
        ya = xa.to(WIDE)
        yb, yc = ya, ya
        if HAS_B:
            yb = xb.to(WIDE)
        if HAS_C:
            yc = xc.to(WIDE)
        if HAS_MEAN:
            # In single precision again, of the differences: what the first mean lacks.
            for _ in tl.static_range(2 if tl.float32 == WIDE else 1):
                mean = _sum(ya, yb, yc, DIM, B, C) / (tl.zeros([1, 1], WIDE) + n)
                ya = tl.where(a < n, ya - mean, 0.0)
                if HAS_B:
                    yb = tl.where(b < n, yb - mean, 0.0)
                if HAS_C:
                    yc = tl.where(c < n, yc - mean, 0.0)
        if HAS_VARIANCE:
            if FUNCTION == "NORM1":
                total = _sum(tl.abs(ya), tl.abs(yb), tl.abs(yc), DIM, B, C)
            else:
                total = _sum(ya * ya, yb * yb, yc * yc, DIM, B, C)
            factor = 1.0 / _divisor(total, n, FUNCTION, EPSILON)
            ya = ya * factor
            if HAS_B:
                yb = yb * factor
            if HAS_C:
                yc = yc * factor

    first = along_lines(lines, sizes, y_strides, LOOPS, DIM, SIDE_BY_SIDE)
    scale_first = decomposed(lines, sizes, scale_strides, LOOPS)
    bias_first = decomposed(lines, sizes, bias_strides, LOOPS)
    _store(
        y, ya, scale, bias, first, scale_first, bias_first, a, axis_sizes, y_steps, scale_steps, bias_steps, n, within,
        AXES, HAS_SCALE, HAS_BIAS, HAS_RELU,
    )  # fmt: skip
    if HAS_B:
        _store(
            y, yb, scale, bias, first, scale_first, bias_first, b, axis_sizes, y_steps, scale_steps, bias_steps, n,
            within, AXES, HAS_SCALE, HAS_BIAS, HAS_RELU,
        )  # fmt: skip
    if HAS_C:
        _store(
            y, yc, scale, bias, first, scale_first, bias_first, c, axis_sizes, y_steps, scale_steps, bias_steps, n,
            within, AXES, HAS_SCALE, HAS_BIAS, HAS_RELU,
        )  # fmt: skip


@triton.jit
def _divisor(total, n, FUNCTION: tl.constexpr, EPSILON: tl.constexpr):
    if FUNCTION == "NORM1":
        result = tl.where(total < EPSILON, EPSILON, total)
    elif FUNCTION == "NORM2":
        root = tl.sqrt(total)
        result = tl.where(root < EPSILON, EPSILON, root)
    else:
        result = tl.sqrt(total / (tl.zeros([1, 1], total.dtype) + n) + EPSILON)
    return result


@triton.jit
def _applied(
    value, at, a, b, centre, n, FUNCTION: tl.constexpr, EPSILON: tl.constexpr, HAS_MEAN: tl.constexpr,
    HAS_VARIANCE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Elements of lines that were reduced to a and b, `centre` being the first ones."""
    if FUNCTION == "SOFTMAX":
        factor = tl.where(tl.abs(a) == float("inf"), float("nan"), 1.0 / (1.0 + b.to(tl.float64)))
        value = exponential(value, a.to(tl.float32), WIDE) * factor.to(WIDE)
    elif FUNCTION == "LOG_SOFTMAX":
        logarithm = tl.where(tl.abs(a) == float("inf"), float("nan"), log_of_1_and(b.to(tl.float64)))
        value = (value.to(WIDE) - a.to(WIDE)) - logarithm.to(WIDE)
    elif FUNCTION == "HARDMAX":
        value = (at == b).to(tl.float32)
    else:
        value = value.to(tl.float64)
        if HAS_MEAN:
            # Sums of differences from the first element, which is nearer to the others than the root of n variances.
            of_n = tl.zeros([1, 1], tl.float64) + n
            value = value - (centre.to(tl.float64) + a / of_n)
            b = b - a * (a / of_n)
            b = tl.where(b < 0, 0.0, b)
        if HAS_VARIANCE:
            if FUNCTION == "NORM1":
                b = a.to(tl.float64)
            value = value * (1.0 / _divisor(b, n, FUNCTION, EPSILON))
    return value


@triton.jit
def apply_lines(
    x, scale, bias, y, first_numbers, second_numbers, n, count, blocks,
    sizes, x_strides, y_strides, scale_strides, bias_strides, axis_sizes, x_steps, y_steps, scale_steps, bias_steps,
    FUNCTION: tl.constexpr, EPSILON: tl.constexpr, HAS_MEAN: tl.constexpr, HAS_VARIANCE: tl.constexpr,
    HAS_SCALE: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_RELU: tl.constexpr, WIDE: tl.constexpr,
    LOOPS: tl.constexpr, AXES: tl.constexpr, SIDE_BY_SIDE: tl.constexpr, DIM: tl.constexpr, LINES: tl.constexpr,
    DEPTH: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """DEPTH elements of each of LINES lines, by two numbers that each line was reduced to."""
    program = tl.program_id(0)
    part = program // blocks
    line = (program - part * blocks).to(INDEX) * LINES + tl.arange(0, LINES)
    start = part.to(INDEX) * DEPTH
    if DIM == 1:
        lines, within = line[:, None], (line < count)[:, None]
        at = start + tl.arange(0, DEPTH)[None, :] + lines * 0
    else:
        lines, within = line[None, :], (line < count)[None, :]
        at = start + tl.arange(0, DEPTH)[:, None] + lines * 0
    first = along_lines(lines, sizes, x_strides, LOOPS, DIM, SIDE_BY_SIDE)
    value = _read(x, first, at, axis_sizes, x_steps, n, within, AXES, 0.0)
    a = tl.load(first_numbers + lines, mask=within, other=0)
    b = tl.load(second_numbers + lines, mask=within, other=0)
    centre = tl.load(x + first, mask=within, other=0) if HAS_MEAN else a
    value = _applied(value, at, a, b, centre, n, FUNCTION, EPSILON, HAS_MEAN, HAS_VARIANCE, WIDE)
    _store(
        y, value, scale, bias, along_lines(lines, sizes, y_strides, LOOPS, DIM, SIDE_BY_SIDE),
        decomposed(lines, sizes, scale_strides, LOOPS), decomposed(lines, sizes, bias_strides, LOOPS), at,
        axis_sizes, y_steps, scale_steps, bias_steps, n, within, AXES, HAS_SCALE, HAS_BIAS, HAS_RELU,
    )  # fmt: skip


@triton.jit
def reread_lines(
    x, scale, bias, y, n, count, sizes, x_strides, y_strides, scale_strides, bias_strides,
    axis_sizes, x_steps, y_steps, scale_steps, bias_steps,
    FUNCTION: tl.constexpr, EPSILON: tl.constexpr, HAS_MEAN: tl.constexpr, HAS_VARIANCE: tl.constexpr,
    HAS_SCALE: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_RELU: tl.constexpr, WIDE: tl.constexpr,
    LOOPS: tl.constexpr, AXES: tl.constexpr, SIDE_BY_SIDE: tl.constexpr, DIM: tl.constexpr, LINES: tl.constexpr,
    DEPTH: tl.constexpr, PER_THREAD: tl.constexpr, AHEAD: tl.constexpr, INDEX: tl.constexpr, KIND: tl.constexpr,
    MAP: tl.constexpr, VALUE: tl.constexpr, SECOND: tl.constexpr, NONE: tl.constexpr, NOWHERE: tl.constexpr,
):  # fmt: skip
    """LINES whole lines, reduced to two numbers each, and read again, from a cache."""
    line = tl.program_id(0).to(INDEX) * LINES + tl.arange(0, LINES)
    if DIM == 1:
        lines, within = line[:, None], (line < count)[:, None]
        depth = tl.arange(0, DEPTH)[None, :]
    else:
        lines, within = line[None, :], (line < count)[None, :]
        depth = tl.arange(0, DEPTH)[:, None]
    first = along_lines(lines, sizes, x_strides, LOOPS, DIM, SIDE_BY_SIDE)
    begin, end = tl.full((), 0, INDEX), tl.full((), 0, INDEX) + n
    if KIND == "LOG_SUM":
        # A thread has an element of a tile, and several in the second pass.
        some = tl.arange(0, DEPTH // PER_THREAD)[None, :] if DIM == 1 else tl.arange(0, DEPTH // PER_THREAD)[:, None]
        a, b = combine_lines(
            x, first, some, lines, within, begin, end, axis_sizes, x_steps,
            KIND, MAP, VALUE, SECOND, NONE, False, NOWHERE, AXES, DIM, DEPTH // PER_THREAD, AHEAD,
        )  # fmt: skip
    else:
        a, b = combine_lines(
            x, first, depth, lines, within, begin, end, axis_sizes, x_steps,
            KIND, MAP, VALUE, SECOND, NONE, False, NOWHERE, AXES, DIM, DEPTH, True,
        )  # fmt: skip
    centre = tl.load(x + first, mask=within, other=0) if HAS_MEAN else a
    y_first = along_lines(lines, sizes, y_strides, LOOPS, DIM, SIDE_BY_SIDE)
    scale_first = decomposed(lines, sizes, scale_strides, LOOPS)
    bias_first = decomposed(lines, sizes, bias_strides, LOOPS)
    at = begin + depth + lines * 0
    following = _read(x, first, at, axis_sizes, x_steps, n, within, AXES, 0.0)
    for start in range(begin, end, DEPTH):
        at = start + depth + lines * 0
        value = following
        following = _read(x, first, at + DEPTH, axis_sizes, x_steps, n, within, AXES, 0.0)
        value = _applied(value, at, a, b, centre, n, FUNCTION, EPSILON, HAS_MEAN, HAS_VARIANCE, WIDE)
        _store(
            y, value, scale, bias, y_first, scale_first, bias_first, at, axis_sizes, y_steps, scale_steps, bias_steps,
            n, within, AXES, HAS_SCALE, HAS_BIAS, HAS_RELU,
        )  # fmt: skip
