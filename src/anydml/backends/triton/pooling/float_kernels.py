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


@triton.jit
def pool_strips(
    x, y, strips, strip_rows, height, width, out_height, out_width,
    IS_MAXIMUM: tl.constexpr, WITH_PADDING: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, OUTPUTS: tl.constexpr, IS_INSIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """As `pool`, of windows that are not dilated: a thread combines each row of taps once, for OUTPUTS outputs one
    below the other. IS_INSIDE says that no window reaches beyond the input."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < strips
    strip = at // out_width
    plane = strip // strip_rows
    out_row = (strip - plane * strip_rows) * OUTPUTS
    out_column = at - strip * out_width
    top = out_row * ROWS[0] - ROWS[1]
    left = out_column * COLUMNS[0] - COLUMNS[1]
    first = x + plane.to(tl.int64) * height * width + top * width + left
    columns, column_count = (), tl.zeros((BLOCK,), tl.int32)
    for j in tl.static_range(WIDTH):
        is_column = (left + j >= 0) & (left + j < width)
        columns += (is_column,)
        is_counted = left + j < width + COLUMNS[2] if WITH_PADDING else is_column
        column_count += is_counted.to(tl.int32)
    best, counts = (), ()
    for _ in tl.static_range(OUTPUTS):
        if IS_MAXIMUM:
            best += (tl.full((BLOCK,), float("nan"), tl.float32),)
        else:
            best += (tl.zeros((BLOCK,), tl.float64),)
        counts += (tl.zeros((BLOCK,), tl.int32),)
    for k in tl.static_range((OUTPUTS - 1) * ROWS[0] + HEIGHT):
        # With several outputs the last ones may lie below the last row.
        is_row = mask & (top + k >= 0) & (top + k < height) if OUTPUTS > 1 or not IS_INSIDE else mask
        is_counted = top + k < height + ROWS[2] if WITH_PADDING else is_row
        row = tl.zeros((BLOCK,), tl.float64)
        if IS_MAXIMUM:
            row = tl.full((BLOCK,), float("nan"), tl.float32)
        for j in tl.static_range(WIDTH):
            is_tap = is_row if IS_INSIDE else is_row & columns[j]
            if IS_MAXIMUM:
                # The maximum of a NaN and a number is the number.
                row = tl.maximum(row, tl.load(first + k * width + j, mask=is_tap, other=float("nan")))
            else:
                row += tl.load(first + k * width + j, mask=is_tap, other=0.0).to(tl.float64)
        more_best, more_counts = (), ()
        for v in tl.static_range(OUTPUTS):
            if k >= v * ROWS[0] and k < v * ROWS[0] + HEIGHT:
                more_best += (tl.maximum(best[v], row) if IS_MAXIMUM else best[v] + row,)
                more_counts += (counts[v] + is_counted.to(tl.int32),)
            else:
                more_best += (best[v],)
                more_counts += (counts[v],)
        best, counts = more_best, more_counts
    target = y + plane.to(tl.int64) * out_height * out_width + out_row * out_width + out_column
    for v in tl.static_range(OUTPUTS):
        count = HEIGHT * WIDTH if IS_INSIDE else counts[v] * column_count
        if IS_MAXIMUM:
            result = best[v] if IS_INSIDE else tl.where(count > 0, best[v], float("-inf"))
        elif IS_INSIDE:
            result = (best[v] / tl.full((BLOCK,), count, tl.float64)).to(tl.float32)
        else:
            result = (best[v] / tl.maximum(count, 1).to(tl.float64)).to(tl.float32)
        tl.store(target + v * out_width, result, mask=mask & (out_row + v < out_height))
