"""Triton's kernels of regions of images: ROI_ALIGN and ROI_POOLING.

A program has one row of a region's output, some channels of it and some columns: what it is made of in height is known
to it as single numbers, and in width for each column. Loops go over as many samples, or rows and columns, as there can
be inside of the image. All is computed in double precision.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _double(number):
    return tl.full([1], 1, tl.float64) * number


@triton.jit
def _bisected(
    none, number, first, offset, length, divisor, origin, size, MOST: tl.constexpr, STEPS: tl.constexpr
):  # fmt: skip
    """The first sample that is not before the image, of as many as there are; 0 where all are looked at."""
    low = none
    high = none + number
    if STEPS > 0:
        for _ in range(STEPS):
            middle = tl.floor((low + high) * 0.5)
            p = (first + middle - offset) * length / divisor + origin
            found = tl.where(length >= 0, p >= -1, p <= size)
            is_open = low < high
            high = tl.where(is_open & found, middle, high)
            low = tl.where(is_open & (found == 0), middle + 1, low)
    return tl.where(none + number <= MOST, none, low)


@triton.jit
def _sample(
    k, number, first, offset, length, divisor, origin, size, there, IS_LINEAR: tl.constexpr
):  # fmt: skip
    """Of sample k: the element before it, the next one's weight, and whether it is inside the image."""
    p = (first + k - offset) * length / divisor + origin
    known = there & (k < number) & (p >= -1) & (p <= size)
    p = tl.minimum(tl.maximum(p, 0.0), size - 1)
    p = tl.where(p == p, p, 0.0)
    if IS_LINEAR:
        low = tl.floor(p)
        share = p - low
    else:
        low = tl.ceil(p - 0.5)
        share = p * 0
    return low, share, known


@triton.jit
def _number(length, outputs, LEAST: tl.constexpr, MOST: tl.constexpr):
    """Of samples of an element."""
    number = tl.ceil(tl.abs(length) / outputs)
    return tl.minimum(tl.maximum(number, _double(LEAST)), _double(MOST))


@triton.jit
def roi_align(
    x, rois, indices, y, images, channels, height, width, out_height, out_width, channel_blocks, column_blocks,
    x_batch, x_channel, x_row, x_column, of_roi, of_corner, of_index, y_region, y_channel, y_row, y_column,
    IS_LARGEST: tl.constexpr, IS_LINEAR: tl.constexpr, IS_CORNER: tl.constexpr, SCALE_X: tl.constexpr,
    SCALE_Y: tl.constexpr, IN_OFFSET: tl.constexpr, OUT_OFFSET: tl.constexpr, OUTSIDE: tl.constexpr,
    LEAST: tl.constexpr, MOST: tl.constexpr, INSIDE_Y: tl.constexpr, INSIDE_X: tl.constexpr, STEPS: tl.constexpr,
    CHANNELS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    column = (program % column_blocks) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    program = program // column_blocks
    channel = (program % channel_blocks) * CHANNELS + tl.arange(0, CHANNELS)[:, None]
    program = program // channel_blocks
    row = (program % out_height).to(INDEX)
    region = (program // out_height).to(INDEX)
    mask = (channel < channels) & (column < out_width)

    # Of one place of each, as blocks of one element.
    one = tl.arange(0, 1)
    corner = rois + region * of_roi + one
    left = tl.load(corner).to(tl.float64) * SCALE_X
    top = tl.load(corner + of_corner).to(tl.float64) * SCALE_Y
    wide = tl.load(corner + 2 * of_corner).to(tl.float64) * SCALE_X - left
    high = tl.load(corner + 3 * of_corner).to(tl.float64) * SCALE_Y - top
    batch = tl.load(indices + region * of_index + one).to(tl.int64)
    is_there = (batch >= 0) & (batch < images)
    batch = tl.where(is_there, batch, 0).to(INDEX)
    in_height = is_there & (tl.abs(top) < float("inf")) & (tl.abs(high) < float("inf"))
    in_width = is_there & (tl.abs(left) < float("inf")) & (tl.abs(wide) < float("inf"))
    top = tl.where(in_height, top, 0.0)
    high = tl.where(in_height, high, 0.0)
    left = tl.where(in_width, left, 0.0)
    wide = tl.where(in_width, wide, 0.0)
    down = _number(high, out_height, LEAST, MOST)
    across = _number(wide, out_width, LEAST, MOST)
    down_divisor = down * out_height
    across_divisor = across * out_width
    down_offset = down * 0 + OUT_OFFSET
    across_offset = across * 0 + OUT_OFFSET
    if IS_CORNER:
        down_offset = tl.where(down_divisor == 1, -0.5, 0.0) + down * 0
        across_offset = tl.where(across_divisor == 1, -0.5, 0.0) + across * 0
        down_divisor = tl.where(down_divisor == 1, 1.0, down_divisor - 1)
        across_divisor = tl.where(across_divisor == 1, 1.0, across_divisor - 1)
    down_origin = top - IN_OFFSET
    across_origin = left - IN_OFFSET
    first_row = down * row
    first_column = across[:, None] * column.to(tl.float64)
    start_row = _bisected(
        first_row * 0, down, first_row, down_offset, high, down_divisor, down_origin, height, INSIDE_Y, STEPS
    )
    start_column = _bisected(
        first_column * 0, across[:, None], first_column, across_offset[:, None], wide[:, None],
        across_divisor[:, None], across_origin[:, None], width, INSIDE_X, STEPS,
    )  # fmt: skip
    rows = tl.max(tl.minimum(down, _double(INSIDE_Y)), 0).to(tl.int32)
    columns = tl.max(tl.minimum(across, _double(INSIDE_X)), 0).to(tl.int32)

    at = (batch * x_batch)[:, None] + channel.to(INDEX) * x_channel + column * 0
    result = tl.zeros([CHANNELS, COLUMNS], tl.float64)
    if IS_LARGEST:
        result = result + float("nan")
    inside_rows = down * 0
    inside_columns = first_column * 0
    for j in range(columns):
        right, by_column, has_column = _sample(
            start_column + j, across[:, None], first_column, across_offset[:, None], wide[:, None],
            across_divisor[:, None], across_origin[:, None], width, in_width[:, None], IS_LINEAR,
        )  # fmt: skip
        inside_columns = inside_columns + tl.where(has_column, 1.0, 0.0)
        place = at + right.to(INDEX) * x_column
        inside_rows = down * 0
        for i in range(rows):
            under, by_row, has_row = _sample(
                start_row + i, down, first_row, down_offset, high, down_divisor, down_origin, height, in_height,
                IS_LINEAR,
            )  # fmt: skip
            inside_rows = inside_rows + tl.where(has_row, 1.0, 0.0)
            known = mask & has_column & has_row[:, None]
            from_row = place + (under.to(INDEX) * x_row)[:, None]
            weight = by_row[:, None]
            value = tl.load(x + from_row, mask=known, other=0).to(tl.float64) * (1 - weight)
            if IS_LINEAR:
                has_next = known & (weight != 0)
                below = tl.load(x + from_row + x_row, mask=has_next, other=0).to(tl.float64)
                value = tl.where(has_next, value + below * weight, value) * (1 - by_column)
                is_beside = known & (by_column != 0)
                beside = tl.load(x + from_row + x_column, mask=is_beside, other=0).to(tl.float64) * (1 - weight)
                is_both = is_beside & (weight != 0)
                both = tl.load(x + from_row + x_row + x_column, mask=is_both, other=0).to(tl.float64)
                beside = tl.where(is_both, beside + both * weight, beside)
                value = tl.where(is_beside, value + beside * by_column, value)
            if IS_LARGEST:
                is_new = known & ((value > result) | ((result != result) & (value == value)))
                result = tl.where(is_new, value, result)
            else:
                result = tl.where(known, result + value, result)
    total = down * across
    outside = total[:, None] - inside_rows[:, None] * inside_columns + column * 0
    if IS_LARGEST:
        other = tl.full([CHANNELS, COLUMNS], OUTSIDE, tl.float64)
        is_other = (outside > 0) & ((other > result) | ((result != result) & (other == other)))
        result = tl.where(is_other, other, result)
    else:
        result = tl.where(outside > 0, result + outside * OUTSIDE, result) / total[:, None]
    to = region * y_region + row * y_row + channel.to(INDEX) * y_channel + column.to(INDEX) * y_column
    tl.store(y + to, result.to(y.dtype.element_ty), mask=mask)


@triton.jit
def _bins(begin, end, i, outputs, size):
    """Where bins begin and end, as numbers from 0 to size."""
    extent = tl.maximum(end - begin + 1, 1.0)
    first = tl.floor(i * extent / outputs) + begin
    last = tl.ceil((i + 1) * extent / outputs) + begin
    first = tl.minimum(tl.maximum(first, 0.0), size * 1.0)
    last = tl.minimum(tl.maximum(last, 0.0), size * 1.0)
    return first.to(tl.int32), last.to(tl.int32)


@triton.jit
def _rounded(number, FARTHEST: tl.constexpr):
    """Halves away from 0."""
    number = tl.where(number < 0, tl.ceil(number - 0.5), tl.floor(number + 0.5))
    number = tl.where(number > FARTHEST, FARTHEST, number)
    return tl.where(number < -FARTHEST, -FARTHEST, number)


@triton.jit
def roi_pooling(
    x, rois, y, images, channels, height, width, out_height, out_width, channel_blocks, column_blocks,
    x_batch, x_channel, x_row, x_column, of_roi, of_corner, y_region, y_channel, y_row, y_column,
    SCALE: tl.constexpr, FARTHEST: tl.constexpr, CHANNELS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """The largest number of each bin, NaN where there is none; 0 of empty ones."""
    program = tl.program_id(0)
    column = (program % column_blocks) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    program = program // column_blocks
    channel = (program % channel_blocks) * CHANNELS + tl.arange(0, CHANNELS)[:, None]
    program = program // channel_blocks
    row = (program % out_height).to(INDEX)
    region = (program // out_height).to(INDEX)
    mask = (channel < channels) & (column < out_width)
    one = tl.arange(0, 1)
    corner = rois + region * of_roi + one
    batch = tl.load(corner).to(tl.float64)
    left = _rounded(tl.load(corner + of_corner).to(tl.float64) * SCALE, FARTHEST)
    top = _rounded(tl.load(corner + 2 * of_corner).to(tl.float64) * SCALE, FARTHEST)
    right = _rounded(tl.load(corner + 3 * of_corner).to(tl.float64) * SCALE, FARTHEST)
    bottom = _rounded(tl.load(corner + 4 * of_corner).to(tl.float64) * SCALE, FARTHEST)
    is_there = (batch >= 0) & (batch < images) & (batch == tl.floor(batch))
    in_height = is_there & (top == top) & (bottom == bottom)
    in_width = is_there & (left == left) & (right == right)
    at = tl.where(is_there, batch, 0.0).to(INDEX)
    top = tl.where(in_height, top, 0.0)
    bottom = tl.where(in_height, bottom, 0.0)
    left = tl.where(in_width, left, 0.0)
    right = tl.where(in_width, right, 0.0)
    begin, end = _bins(top, bottom, top * 0 + row, out_height, height)
    first, last = _bins(left[:, None], right[:, None], column.to(tl.float64), out_width, width)
    end = tl.where(in_height, end, begin)
    last = tl.where(in_width[:, None], last, first)
    begin = tl.max(begin, 0)
    end = tl.max(end, 0)
    widest = tl.max(tl.max(tl.where(column < out_width, last - first, 0), 1), 0)
    place = (at * x_batch)[:, None] + channel.to(INDEX) * x_channel + first.to(INDEX) * x_column
    best = tl.full([CHANNELS, COLUMNS], float("nan"), tl.float32)
    # Column by column: of those that are equal the first one.
    for j in range(widest):
        is_under = mask & (first + j < last)
        for i in range(begin, end):
            from_row = (column * 0 + i).to(INDEX) * x_row
            value = tl.load(x + place + from_row, mask=is_under, other=0).to(tl.float32)
            best = tl.where(is_under & ((value > best) | (best != best)), value, best)
        place += x_column
    best = tl.where((first < last) & (begin < end), best, 0.0)
    to = region * y_region + row * y_row + channel.to(INDEX) * y_channel + column.to(INDEX) * y_column
    tl.store(y + to, best.to(y.dtype.element_ty), mask=mask)
