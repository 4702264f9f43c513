"""Triton's kernels of what follows a convolution."""

from __future__ import annotations

import triton
import triton.language as tl

from ..normalization.kernels import rows_of


@triton.jit
def finish(
    x, bias, y, rows, inner, channels, blocks, HAS_BIAS: tl.constexpr, HAS_RELU: tl.constexpr,
    TILES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Rows of `inner` elements, each of one channel: max(x + bias, 0)."""
    row, is_row, channel, number = rows_of(tl.program_id(0), rows, channels, blocks, ROWS)
    begin = row.to(tl.int64) * inner
    first = number * (TILES * COLUMNS)
    if HAS_BIAS:
        added = tl.load(bias + channel, mask=is_row, other=0).to(tl.float32)
    for tile in range(TILES):
        column = first + tile * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        mask = is_row & (column < inner)
        result = tl.load(x + begin + column, mask=mask, other=0).to(tl.float32)
        if HAS_BIAS:
            result += added
        if HAS_RELU:
            result = tl.where(result < 0, 0.0, result)
        tl.store(y + begin + column, result, mask=mask)


@triton.jit
def finish_along_channels(
    x, bias, y, count, channels, HAS_BIAS: tl.constexpr, HAS_RELU: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The same where the channels of a place lie side by side."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    result = tl.load(x + at, mask=mask).to(tl.float32)
    if HAS_BIAS:
        result += tl.load(bias + at % channels, mask=mask).to(tl.float32)
    if HAS_RELU:
        result = tl.where(result < 0, 0.0, result)
    tl.store(y + at, result, mask=mask)
