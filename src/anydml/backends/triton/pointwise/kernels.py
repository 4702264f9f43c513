"""Triton's kernels of elements of which the place tells what is computed."""

from __future__ import annotations

import triton
import triton.language as tl

from ..reduction.kernels import decomposed


@triton.jit
def count_up(
    y, count, start, delta, sizes, y_steps,
    IS_FLOAT: tl.constexpr, LOOPS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """start + i * delta, in double precision or modulo 2^64; the first one is `start`. Both are given by their bits."""
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    first, step = tl.full([BLOCK], start, tl.int64), tl.full([BLOCK], delta, tl.int64)
    if IS_FLOAT:
        first, step = first.to(tl.float64, bitcast=True), step.to(tl.float64, bitcast=True)
        value = tl.where(at == 0, first, at.to(tl.float64) * step + first)
    else:
        value = at.to(tl.int64) * step + first
    tl.store(y + decomposed(at, sizes, y_steps, LOOPS), value.to(y.dtype.element_ty), mask=at < count)


@triton.jit
def scale_channels(
    x, y, rows, columns, blocks, channels, row_sizes, x_row_steps, y_row_steps, sizes, x_steps, y_steps,
    SCALE: tl.constexpr, BIAS: tl.constexpr, LOOPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """SCALE * x + the number of BIAS that is of its channel; rows are {batch, channels}."""
    program = tl.program_id(0)
    row = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    at = decomposed(row, row_sizes, x_row_steps, 2) + decomposed(column, sizes, x_steps, LOOPS)
    value = tl.load(x + at, mask=mask, other=0).to(tl.float64) * SCALE
    bias = tl.full([ROWS, 1], BIAS[0], tl.float64)
    for i in tl.static_range(1, len(BIAS)):
        bias = tl.where(row % channels == i, tl.full([ROWS, 1], BIAS[i], tl.float64), bias)
    place = decomposed(row, row_sizes, y_row_steps, 2) + decomposed(column, sizes, y_steps, LOOPS)
    tl.store(y + place, (value + bias).to(y.dtype.element_ty), mask=mask)
