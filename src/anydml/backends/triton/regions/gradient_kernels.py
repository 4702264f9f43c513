"""Triton's kernels of ROI_ALIGN_GRAD, of averages: tables of weights, and the sums over regions by them.

All is computed in double precision, and summed in the order of regions and of their rows and columns.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .kernels import _bisected, _double, _number, _sample


@triton.jit
def weigh_samples(
    rois, indices, weights, numbers, images, size, outputs, blocks, of_roi, of_corner, of_index, of_region,
    of_output, of_place,
    FIRST: tl.constexpr, SCALE: tl.constexpr, IN_OFFSET: tl.constexpr, OUT_OFFSET: tl.constexpr,
    IS_LINEAR: tl.constexpr, IS_CORNER: tl.constexpr, LEAST: tl.constexpr, MOST: tl.constexpr, INSIDE: tl.constexpr,
    STEPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The weight of each element of a dimension in each element of an output of each region; and the number of samples.

    FIRST is the number of the first corner in the dimension. A program has BLOCK elements of a region's one.
    """
    program = tl.program_id(0)
    place = (program % blocks) * BLOCK + tl.arange(0, BLOCK)
    program = program // blocks
    output = program % outputs
    region = (program // outputs).to(tl.int64)
    one = tl.arange(0, 1)
    corner = rois + region * of_roi + one
    begin = tl.load(corner + FIRST * of_corner).to(tl.float64) * SCALE
    length = tl.load(corner + (FIRST + 2) * of_corner).to(tl.float64) * SCALE - begin
    image = tl.load(indices + region * of_index + one).to(tl.int64)
    there = (image >= 0) & (image < images) & (tl.abs(begin) < float("inf")) & (tl.abs(length) < float("inf"))
    begin = tl.where(there, begin, 0.0)
    length = tl.where(there, length, 0.0)
    number = _number(length, outputs, LEAST, MOST)
    divisor = number * outputs
    offset = number * 0 + OUT_OFFSET
    if IS_CORNER:
        offset = tl.where(divisor == 1, -0.5, 0.0) + number * 0
        divisor = tl.where(divisor == 1, 1.0, divisor - 1)
    origin = begin - IN_OFFSET
    first = number * output
    start = _bisected(first * 0, number, first, offset, length, divisor, origin, size, INSIDE, STEPS)
    weight = tl.zeros([BLOCK], tl.float64)
    for k in range(tl.max(tl.minimum(number, _double(INSIDE)), 0).to(tl.int32)):
        low, share, known = _sample(start + k, number, first, offset, length, divisor, origin, size, there, IS_LINEAR)
        at = place - low.to(tl.int32)
        weight += tl.where(known & (at == 0), 1 - share, 0.0)
        weight += tl.where(known & (at == 1), share, 0.0)
    to = region * of_region + output * of_output + place.to(tl.int64) * of_place
    tl.store(weights + to, weight, mask=place < size)
    tl.store(numbers + region + one, number)


@triton.jit
def gather_gradients(
    dy, indices, by_row, by_column, rows, columns, y, lines, channels, height, width, out_height, out_width,
    channel_blocks, column_blocks, of_index, dy_region, dy_channel, dy_row, dy_column, y_batch, y_channel, y_row,
    y_column, CHANNELS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """What all regions give to a row of an image, CHANNELS x COLUMNS of its elements.

    by_row: of each row of an image the weights of it in the `lines` rows of all regions' outputs; by_column: {regions,
    out_width, width}; rows, columns: the numbers of samples of regions. BLOCK lines are looked at at once.
    """
    program = tl.program_id(0)
    column = (program % column_blocks) * COLUMNS + tl.arange(0, COLUMNS)
    program = program // column_blocks
    channel = (program % channel_blocks) * CHANNELS + tl.arange(0, CHANNELS)
    program = program // channel_blocks
    row = program % height
    image = program // height
    is_column = column < width
    is_channel = channel < channels
    result = tl.zeros([CHANNELS, COLUMNS], tl.float64)
    of_channel = channel.to(INDEX) * dy_channel
    for begin in range(0, lines, BLOCK):
        line = begin + tl.arange(0, BLOCK)
        there = line < lines
        weight = tl.load(by_row + row.to(tl.int64) * lines + line, mask=there, other=0)
        of = tl.load(indices + (line // out_height).to(INDEX) * of_index, mask=there, other=0).to(tl.int64)
        is_given = there & (of == image) & (weight != 0)
        next_line = tl.min(tl.where(is_given, line, lines), 0)
        while next_line < lines:
            by_line = tl.sum(tl.where(line == next_line, weight, 0.0), 0)
            region = next_line // out_height
            samples = tl.load(rows + region) * tl.load(columns + region)
            from_dy = of_channel + region.to(INDEX) * dy_region + (next_line % out_height).to(INDEX) * dy_row
            from_column = by_column + region.to(tl.int64) * out_width * width + column
            total = tl.zeros([CHANNELS, COLUMNS], tl.float64)
            is_under = column < 0
            for _ in range(out_width):
                share = tl.load(from_column, mask=is_column, other=0)
                given = tl.load(dy + from_dy, mask=is_channel, other=0).to(tl.float64) / samples
                total = tl.where((share != 0)[None, :], total + share[None, :] * given[:, None], total)
                is_under = is_under | (share != 0)
                from_column += width
                from_dy += dy_column
            result = tl.where(is_under[None, :], result + by_line * total, result)
            next_line = tl.min(tl.where(is_given & (line > next_line), line, lines), 0)
    to = image.to(INDEX) * y_batch + row.to(INDEX) * y_row
    places = to + channel.to(INDEX)[:, None] * y_channel + column.to(INDEX)[None, :] * y_column
    tl.store(y + places, result.to(y.dtype.element_ty), mask=is_channel[:, None] & is_column[None, :])
