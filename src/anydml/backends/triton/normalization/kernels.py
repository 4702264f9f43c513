"""Triton's kernels of BATCH_NORMALIZATION by channels: (x - mean) * (scale / sqrt(variance + EPSILON)) + bias.

FLOAT32 is computed in double precision, FLOAT16 in single precision, by factors of double precision.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _factor(variance, scale, EPSILON: tl.constexpr):
    return scale.to(tl.float64) / tl.sqrt(variance.to(tl.float64) + EPSILON)


@triton.jit
def _normalized(x, centre, factor, bias, HAS_RELU: tl.constexpr):
    WIDE: tl.constexpr = tl.float32 if x.dtype == tl.float16 else tl.float64
    apart = x.to(WIDE) - centre.to(WIDE)
    factor, bias = (tl.broadcast_to(factor.to(WIDE), apart.shape), tl.broadcast_to(bias.to(WIDE), apart.shape))
    result = tl.fma(apart, factor, bias).to(x.dtype)
    if HAS_RELU:
        result = tl.where(result < 0, 0.0, result)
    return result


@triton.jit
def rows_of(program, rows, channels, blocks, ROWS: tl.constexpr):
    """The rows of a program, which of them are there, their channels, and its number among the programs of these rows;
    `blocks` programs follow each other along them."""
    group = program // blocks
    row = group * ROWS + tl.arange(0, ROWS)[:, None]
    return row, row < rows, row % channels, program - group * blocks


@triton.jit
def normalize(
    x, mean, variance, scale, bias, y, rows, inner, channels, blocks,
    STEPS: tl.constexpr, EPSILON: tl.constexpr, HAS_RELU: tl.constexpr, TILES: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Rows of `inner` elements, each of one channel, ROWS of them by TILES of columns for each program, which computes
    their factors once.

    STEPS: of mean, variance, scale and bias from channel to channel.
    """
    row, is_row, channel, number = rows_of(tl.program_id(0), rows, channels, blocks, ROWS)
    variance += channel * STEPS[1]
    scale += channel * STEPS[2]
    factor = _factor(tl.load(variance, mask=is_row, other=1), tl.load(scale, mask=is_row, other=1), EPSILON)
    centre = tl.load(mean + channel * STEPS[0], mask=is_row, other=0)
    added = tl.load(bias + channel * STEPS[3], mask=is_row, other=0)
    begin = row.to(tl.int64) * inner
    first = number * (TILES * COLUMNS)
    for tile in range(TILES):
        column = first + tile * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        mask = is_row & (column < inner)
        place = begin + column
        here = tl.load(x + place, mask=mask, other=0)
        tl.store(y + place, _normalized(here, centre, factor, added, HAS_RELU), mask=mask)


@triton.jit
def normalize_channels(
    x, mean, variance, scale, bias, y, rows, channels, blocks,
    STEPS: tl.constexpr, EPSILON: tl.constexpr, HAS_RELU: tl.constexpr, TILES: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Rows of all channels, TILES of rows for each program, which computes its channels' factors once."""
    program = tl.program_id(0)
    column = (program % blocks) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    is_column = column < channels
    variance += column * STEPS[1]
    scale += column * STEPS[2]
    factor = _factor(tl.load(variance, mask=is_column, other=1), tl.load(scale, mask=is_column, other=1), EPSILON)
    centre = tl.load(mean + column * STEPS[0], mask=is_column, other=0)
    added = tl.load(bias + column * STEPS[3], mask=is_column, other=0)
    first = (program // blocks).to(tl.int64) * (TILES * ROWS)
    for tile in range(TILES):
        row = first + tile * ROWS + tl.arange(0, ROWS)[:, None]
        mask = (row < rows) & is_column
        place = row * channels + column
        here = tl.load(x + place, mask=mask, other=0)
        tl.store(y + place, _normalized(here, centre, factor, added, HAS_RELU), mask=mask)
