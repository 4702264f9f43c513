"""Triton's kernels of batch normalisation in training and of its gradients: a line is what has one mean and variance.

Two sums of each line are taken in parts, each by a program, then put together in the order of the parts, and then every
element is computed of its line's numbers. All is in double precision.

    TRAINING           sums of x - c and of (x - c)^2, c being the line's first element,
                       or 0 where that is infinite
    gradients          sums of dy and of dy * (x - mean)

A program's tile has LINES lines of DEPTH elements: (LINES, DEPTH) where DIM is 1, (DEPTH, LINES) where lines lie side
by side and it is 0.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import apart
from ..reduction.kernels import along_lines, decomposed


@triton.jit
def _lines(first, count, DIM: tl.constexpr, LINES: tl.constexpr):
    line = first + tl.arange(0, LINES)
    if DIM == 1:
        lines = line[:, None]
    else:
        lines = line[None, :]
    return lines, lines < count


@triton.jit
def _along(start, lines, DIM: tl.constexpr, DEPTH: tl.constexpr):
    if DIM == 1:
        at = start + tl.arange(0, DEPTH)[None, :] + lines * 0
    else:
        at = start + tl.arange(0, DEPTH)[:, None] + lines * 0
    return at


@triton.jit
def _centre(first):
    """What differences are taken from: nothing is, from what is infinite."""
    return tl.where(tl.abs(first) < float("inf"), first.to(tl.float64), 0.0)


@triton.jit
def sum_lines(
    x, dy, mean, first_sums, second_sums, n, span, count, blocks,
    sizes, x_steps, dy_steps, mean_steps, axis_sizes, multipliers, shifts, x_along, dy_along,
    IS_TRAINING: tl.constexpr, LOOPS: tl.constexpr, AXES: tl.constexpr, SIDE_BY_SIDE: tl.constexpr, DIM: tl.constexpr,
    LINES: tl.constexpr, DEPTH: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Sums of part number p of each line, `span` elements of n, which are element p * count + line of the results."""
    program = tl.program_id(0)
    part = program // blocks
    lines, within = _lines((program % blocks).to(INDEX) * LINES, count, DIM, LINES)
    from_x = along_lines(lines, sizes, x_steps, LOOPS, DIM, SIDE_BY_SIDE)
    from_dy = along_lines(lines, sizes, dy_steps, LOOPS, DIM, SIDE_BY_SIDE)
    if IS_TRAINING:
        centre = _centre(tl.load(x + from_x, mask=within, other=0))
    else:
        centre = tl.load(mean + decomposed(lines, sizes, mean_steps, LOOPS), mask=within, other=0).to(tl.float64)
    begin = part.to(INDEX) * span
    end = tl.minimum(begin + span, n)
    a = (_along(begin, lines, DIM, DEPTH) * 0).to(tl.float64)
    b = a
    for start in range(begin, end, DEPTH):
        at = _along(start, lines, DIM, DEPTH)
        mask = within & (at < end)
        place = from_x + apart(at, axis_sizes, multipliers, shifts, x_along, AXES)
        value = tl.load(x + place, mask=mask, other=0).to(tl.float64)
        value = value - centre
        if IS_TRAINING:
            value = tl.where(mask, value, 0.0)
            a += value
            b += value * value
        else:
            place = from_dy + apart(at, axis_sizes, multipliers, shifts, dy_along, AXES)
            given = tl.load(dy + place, mask=mask, other=0).to(tl.float64)
            a += given
            b += tl.where(mask, given * value, 0.0)
    place = part.to(INDEX) * count + lines
    tl.store(first_sums + place, tl.sum(a, DIM, keep_dims=True), mask=within)
    tl.store(second_sums + place, tl.sum(b, DIM, keep_dims=True), mask=within)


@triton.jit
def finish_lines(
    x, mean, variance, scale, bias, first_sums, second_sums, coefficients, first_result, second_result, n, count, parts,
    sizes, x_steps, mean_steps, variance_steps, scale_steps, bias_steps, first_steps, second_steps,
    KIND: tl.constexpr, EPSILON: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
    INDEX: tl.constexpr,
):  # fmt: skip
    """The sums of a line's parts, its two results, and up to four numbers by which its elements are computed."""
    line = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    within = line < count
    a = tl.zeros([BLOCK], tl.float64)
    b = tl.zeros([BLOCK], tl.float64)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)[:, None] + line[None, :] * 0
        mask = within[None, :] & (part < parts)
        a += tl.sum(tl.load(first_sums + part * count + line[None, :], mask=mask, other=0), 0)
        b += tl.sum(tl.load(second_sums + part * count + line[None, :], mask=mask, other=0), 0)
    number = tl.zeros([BLOCK], tl.float64) + n
    of_scale = tl.load(scale + decomposed(line, sizes, scale_steps, LOOPS), mask=within, other=0).to(tl.float64)
    to_first = first_result + decomposed(line, sizes, first_steps, LOOPS)
    to_second = second_result + decomposed(line, sizes, second_steps, LOOPS)
    if KIND == "TRAINING":
        centre = _centre(tl.load(x + decomposed(line, sizes, x_steps, LOOPS), mask=within, other=0))
        shift = a / number
        spread = b / number - shift * shift
        spread = tl.where(spread < 0, 0.0, spread)
        centre = centre + shift
        root = tl.sqrt(spread + EPSILON)
        of_bias = tl.load(bias + decomposed(line, sizes, bias_steps, LOOPS), mask=within, other=0).to(tl.float64)
        tl.store(to_first, centre.to(first_result.dtype.element_ty), mask=within)
        tl.store(to_second, spread.to(second_result.dtype.element_ty), mask=within)
        tl.store(coefficients + line, centre, mask=within)
        tl.store(coefficients + count + line, of_scale / root, mask=within)
        tl.store(coefficients + (line * 0 + 2) * count + line, of_bias, mask=within)
    else:
        place = decomposed(line, sizes, variance_steps, LOOPS)
        square = tl.load(variance + place, mask=within, other=0).to(tl.float64) + EPSILON
        root = tl.sqrt(square)
        tl.store(to_first, (b / root).to(first_result.dtype.element_ty), mask=within)
        tl.store(to_second, a.to(second_result.dtype.element_ty), mask=within)
        tl.store(coefficients + count + line, of_scale / root, mask=within)
        if KIND == "TRAINING_GRADIENT":
            place = decomposed(line, sizes, mean_steps, LOOPS)
            centre = tl.load(mean + place, mask=within, other=0).to(tl.float64)
            tl.store(coefficients + line, centre, mask=within)
            tl.store(coefficients + (line * 0 + 2) * count + line, a / number, mask=within)
            tl.store(coefficients + (line * 0 + 3) * count + line, b / number / square, mask=within)


@triton.jit
def compute_lines(
    x, other, y, coefficients, n, count, blocks,
    sizes, x_steps, other_steps, y_steps, axis_sizes, multipliers, shifts, x_along, other_along, y_along,
    KIND: tl.constexpr, HAS_OTHER: tl.constexpr, HAS_RELU: tl.constexpr,
    LOOPS: tl.constexpr, AXES: tl.constexpr, SIDE_BY_SIDE: tl.constexpr, DIM: tl.constexpr,
    LINES: tl.constexpr, DEPTH: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Elements by their line's numbers; `other` is what is added to results, or the gradients of these."""
    program = tl.program_id(0)
    lines, within = _lines((program % blocks).to(INDEX) * LINES, count, DIM, LINES)
    at = _along((program // blocks).to(INDEX) * DEPTH, lines, DIM, DEPTH)
    mask = within & (at < n)
    factor = tl.load(coefficients + count + lines, mask=within, other=0)
    from_other = along_lines(lines, sizes, other_steps, LOOPS, DIM, SIDE_BY_SIDE)
    from_other = from_other + apart(at, axis_sizes, multipliers, shifts, other_along, AXES)
    if KIND == "GRADIENT":
        value = tl.load(other + from_other, mask=mask, other=0).to(tl.float64) * factor
    else:
        from_x = along_lines(lines, sizes, x_steps, LOOPS, DIM, SIDE_BY_SIDE)
        place = from_x + apart(at, axis_sizes, multipliers, shifts, x_along, AXES)
        value = tl.load(x + place, mask=mask, other=0).to(tl.float64)
        value = value - tl.load(coefficients + lines, mask=within, other=0)
        third = tl.load(coefficients + count * 2 + lines, mask=within, other=0)
        if KIND == "TRAINING":
            value = value * factor + third
            if HAS_OTHER:
                value = value + tl.load(other + from_other, mask=mask, other=0).to(tl.float64)
        else:
            fourth = tl.load(coefficients + count * 3 + lines, mask=within, other=0)
            given = tl.load(other + from_other, mask=mask, other=0).to(tl.float64)
            value = (given - third - value * fourth) * factor
    if HAS_RELU:
        value = tl.where(value < 0, 0.0, value)
    to_y = along_lines(lines, sizes, y_steps, LOOPS, DIM, SIDE_BY_SIDE)
    to_y = to_y + apart(at, axis_sizes, multipliers, shifts, y_along, AXES)
    tl.store(y + to_y, value.to(y.dtype.element_ty), mask=mask)
