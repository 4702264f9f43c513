"""Triton's kernel of pooling of floats."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tap(
    x, best, count, mask, top, left, height, width, i, j,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, IS_MAXIMUM: tl.constexpr, WITH_PADDING: tl.constexpr,
):  # fmt: skip
    """What a tap adds to the best, or the sum, and how many taps counted before and with it.

    ROWS and COLUMNS: a window's stride, padding before and after, and dilation.
    """
    row, column = top + i * ROWS[3], left + j * COLUMNS[3]
    is_inside = mask & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    if IS_MAXIMUM:
        # The maximum of a NaN and a number is the number.
        best = tl.maximum(best, tl.load(x + row * width + column, mask=is_inside, other=float("nan")))
        count += is_inside.to(tl.int32)
    else:
        best += tl.load(x + row * width + column, mask=is_inside, other=0.0).to(tl.float64)
        if WITH_PADDING:
            # A ceiling size may reach beyond the padding, where taps do not count.
            count += ((row < height + ROWS[2]) & (column < width + COLUMNS[2])).to(tl.int32)
        else:
            count += is_inside.to(tl.int32)
    return best, count


@triton.jit
def pool(
    x, y, outputs, height, width, out_height, out_width,
    IS_MAXIMUM: tl.constexpr, WITH_PADDING: tl.constexpr, UNROLLED: tl.constexpr,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Maxima or averages of windows of HEIGHT x WIDTH taps, of contiguous planes."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < outputs
    row = at // out_width
    plane = row // out_height
    top = (row - plane * out_height) * ROWS[0] - ROWS[1]
    left = (at - row * out_width) * COLUMNS[0] - COLUMNS[1]
    x += plane.to(tl.int64) * height * width
    count = tl.zeros((BLOCK,), tl.int32)
    if IS_MAXIMUM:
        best = tl.full((BLOCK,), float("nan"), tl.float32)
    else:
        best = tl.zeros((BLOCK,), tl.float64)
    if UNROLLED:
        for i in tl.static_range(HEIGHT):
            for j in tl.static_range(WIDTH):
                best, count = _tap(
                    x, best, count, mask, top, left, height, width, i, j, ROWS, COLUMNS, IS_MAXIMUM, WITH_PADDING
                )
    else:
        for i in range(HEIGHT):
            for j in range(WIDTH):
                best, count = _tap(
                    x, best, count, mask, top, left, height, width, i, j, ROWS, COLUMNS, IS_MAXIMUM, WITH_PADDING
                )
    if IS_MAXIMUM:
        best = tl.where(count > 0, best, float("-inf"))
    else:
        best = (best / tl.maximum(count, 1).to(tl.float64)).to(tl.float32)
    tl.store(y + at, best, mask=mask)
