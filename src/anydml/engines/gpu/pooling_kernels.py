"""Triton kernels of QUANTIZED_LINEAR_AVERAGE_POOLING: exact sums of integers, quantised by the specification's formula.

A scale that is not a finite number above 0 gives the output zero point, as looking at it would mean to wait.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _zero_point(pointer, offset, mask):
    """0 where there is none."""
    if pointer is not None:
        value = tl.load(pointer + offset, mask=mask, other=0).to(tl.int32)
    else:
        value = tl.zeros(offset.shape, tl.int32)
    return value


@triton.jit
def _scales(channel, input_scale, output_scale, steps, mask):
    """Both scales in double precision, and whether they can be used."""
    given = tl.load(input_scale + channel * steps[0], mask=mask, other=1.0)
    wanted = tl.load(output_scale + channel * steps[2], mask=mask, other=1.0)
    most: tl.constexpr = 3.4028234663852886e38
    is_usable = (given > 0) & (given <= most) & (wanted > 0) & (wanted <= most)
    return given.to(tl.float64), wanted.to(tl.float64), is_usable


@triton.jit
def _quantise(total, count, given, wanted, is_usable, zero_point, LOWEST: tl.constexpr):
    """q = round_half_even((S * input_scale) / (count * output_scale)) + output_zero_point, saturated."""
    is_counted = is_usable & (count > 0)
    q = (total.to(tl.float64) * given) / tl.where(is_counted, count.to(tl.float64) * wanted, 1.0)
    # Beyond these it saturates whatever the zero point is; within, 1.5 * 2^52 added and taken away rounds half to even.
    q = tl.minimum(tl.maximum(q, -1024.0), 1024.0)
    magic: tl.constexpr = 6755399441055744.0
    q = (q + magic) - magic
    q = tl.where(is_counted, q, 0.0).to(tl.int32) + zero_point
    return tl.minimum(tl.maximum(q, LOWEST), LOWEST + 255)


@triton.jit
def _double(i):
    """An integer of 32 bits in double precision: a conversion takes longer than an addition to 2^52 + 2^31."""
    bits = (i ^ -0x80000000).to(tl.int64) & 0xFFFFFFFF | 0x4330000000000000
    return bits.to(tl.float64, bitcast=True) - 4503601774854144.0


@triton.jit
def _quantise_near(total, near, divisor, given, is_counted, zero_point, LOWEST: tl.constexpr):
    """The same as `_quantise`, by a quotient `near` in single precision and without a division.

    It rounds to m or m + 1. Of S * input_scale and (m + 1/2) * divisor, which double precision has exactly (24 + 17 and
    10 + 17 + 24 bits), the larger decides, and where they are equal the even one of m and m + 1. The quotient in double
    precision is as far from m + 1/2 as the exact one: they differ by more than it is rounded by.
    """
    near = tl.minimum(tl.maximum(near, -1024.0), 1024.0)
    # 1.5 * 2^23 rounds to an integer, which then stands in the lowest bits.
    rounded = (near - 0.5) + 12582912.0
    m = rounded.to(tl.int32, bitcast=True) - 0x4B400000
    above = _double(total) * given - (_double(2 * m + 1) * 0.5) * divisor
    q = m + ((above > 0) | ((above == 0) & (m % 2 != 0))).to(tl.int32)
    q = tl.where(is_counted, q, 0) + zero_point
    return tl.minimum(tl.maximum(q, LOWEST), LOWEST + 255)


@triton.jit
def _taps(origin, size, end, window, dilation):
    """Of the taps at origin, origin + dilation, ...: the first inside the input, how many are inside, and how many lie
    before the end of the declared padding."""
    first = tl.where(origin < 0, (dilation - 1 - origin) // dilation, 0)
    to_last = size - 1 - origin
    inside = tl.where(to_last < 0, 0, tl.minimum(window, to_last // dilation + 1)) - first
    to_end = to_last + end
    declared = tl.where(to_end < 0, 0, tl.minimum(window, to_end // dilation + 1))
    return origin + first * dilation, tl.maximum(inside, 0), declared


@triton.jit
def pool_windows(
    x,
    y,
    input_scale,
    input_zero_point,
    output_scale,
    output_zero_point,
    steps,
    outputs,
    channels,
    sizes,
    out_sizes,
    x_strides,
    y_strides,
    windows,
    strides,
    starts,
    ends,
    dilations,
    KD: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    UNROLLED: tl.constexpr,
    BLOCK: tl.constexpr,
    LOWEST: tl.constexpr,
    INCLUDE_PADDING: tl.constexpr,
    INDEX: tl.constexpr,
    TOTAL: tl.constexpr,
):
    """A program computes BLOCK outputs, the last dimension first. sizes, windows etc. are of depth, height and width;
    x_strides and y_strides of batch and channel too. At most KD, KH and KW taps are inside the input."""
    output = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    mask = output < outputs
    w = output % out_sizes[2]
    rest = output // out_sizes[2]
    h = rest % out_sizes[1]
    rest = rest // out_sizes[1]
    d = rest % out_sizes[0]
    rest = rest // out_sizes[0]
    channel = rest % channels
    batch = rest // channels

    at_d, inside_d, declared_d = _taps(d * strides[0] - starts[0], sizes[0], ends[0], windows[0], dilations[0])
    at_h, inside_h, declared_h = _taps(h * strides[1] - starts[1], sizes[1], ends[1], windows[1], dilations[1])
    at_w, inside_w, declared_w = _taps(w * strides[2] - starts[2], sizes[2], ends[2], windows[2], dilations[2])
    first = x + batch * x_strides[0] + channel * x_strides[1]
    first += at_d * x_strides[2] + at_h * x_strides[3] + at_w * x_strides[4]
    step_d, step_h, step_w = dilations[0] * x_strides[2], dilations[1] * x_strides[3], dilations[2] * x_strides[4]
    total = tl.zeros((BLOCK,), TOTAL)
    if UNROLLED:
        for i in tl.static_range(KD):
            for j in tl.static_range(KH):
                for k in tl.static_range(KW):
                    tap = first + (i * step_d + j * step_h + k * step_w)
                    is_inside = mask & (i < inside_d) & (j < inside_h) & (k < inside_w)
                    total += tl.load(tap, mask=is_inside, other=0).to(TOTAL)
    else:
        for i in range(KD):
            for j in range(KH):
                for k in range(KW):
                    tap = first + (i * step_d + j * step_h + k * step_w)
                    is_inside = mask & (i < inside_d) & (j < inside_h) & (k < inside_w)
                    total += tl.load(tap, mask=is_inside, other=0).to(TOTAL)

    inside = inside_d.to(tl.int64) * inside_h * inside_w
    count = declared_d.to(tl.float64) * declared_h * declared_w if INCLUDE_PADDING else inside
    total = total.to(tl.int64) - inside * _zero_point(input_zero_point, channel * steps[1], mask)
    given, wanted, is_usable = _scales(channel, input_scale, output_scale, steps, mask)
    out_zero_point = _zero_point(output_zero_point, channel * steps[3], mask)
    q = _quantise(total, count, given, wanted, is_usable, out_zero_point, LOWEST)
    place = batch * y_strides[0] + channel * y_strides[1] + d * y_strides[2] + h * y_strides[3] + w * y_strides[4]
    tl.store(y + place, q.to(y.dtype.element_ty), mask=mask)


@triton.jit
def sum_planes(
    x,
    totals,
    planes,
    channels,
    size,
    x_batch,
    x_channel,
    PLANES: tl.constexpr,
    BLOCK: tl.constexpr,
    WORDS: tl.constexpr,
    SIGNED: tl.constexpr,
):
    """The sum of each packed plane of `size` elements; in WORDS, `size` and strides count words of 4, and signed ones
    have 128 added."""
    plane = tl.program_id(0) * PLANES + tl.arange(0, PLANES)
    mask = plane < planes
    start = x + (plane // channels).to(tl.int64) * x_batch + (plane % channels).to(tl.int64) * x_channel
    total = tl.zeros((PLANES,), tl.int64)
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)
        is_inside = mask[:, None] & (at < size)[None, :]
        values = tl.load(start[:, None] + at[None, :], mask=is_inside, other=0)
        if WORDS:
            even, odd = _pairs(values, is_inside, SIGNED)
            pairs = even + odd
            values = (pairs & 0xFFFF) + (pairs >> 16)
        total += tl.sum(values.to(tl.int32), 1)
    tl.store(totals + plane, total, mask=mask)


@triton.jit
def quantise_planes(
    totals,
    y,
    input_scale,
    input_zero_point,
    output_scale,
    output_zero_point,
    steps,
    planes,
    channels,
    inside,
    count,
    added,
    y_batch,
    y_channel,
    BLOCK: tl.constexpr,
    LOWEST: tl.constexpr,
):
    """The averages of planes, from their sums, of which each element has `added`. A kernel apart, as threads that sum a
    plane together would all compute its average."""
    plane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = plane < planes
    channel = plane % channels
    total = tl.load(totals + plane, mask=mask, other=0)
    total -= inside * (_zero_point(input_zero_point, channel * steps[1], mask) + added).to(tl.int64)
    given, wanted, is_usable = _scales(channel, input_scale, output_scale, steps, mask)
    counts = tl.zeros((BLOCK,), tl.float64) + count
    out_zero_point = _zero_point(output_zero_point, channel * steps[3], mask)
    q = _quantise(total, counts, given, wanted, is_usable, out_zero_point, LOWEST)
    place = (plane // channels).to(tl.int64) * y_batch + channel.to(tl.int64) * y_channel
    tl.store(y + place, q.to(y.dtype.element_ty), mask=mask)


@triton.jit
def _pairs(word, mask, SIGNED: tl.constexpr):
    """Bytes 0 and 2, and 1 and 3, of words, each in 16 bits; signed ones with 128 added where `mask` is."""
    if SIGNED:
        word = tl.where(mask, word ^ -0x7F7F7F80, 0)
    return word & 0x00FF00FF, (word >> 8) & 0x00FF00FF


@triton.jit
def _add_tap(one, two, even, odd, at: tl.constexpr, STRIDE: tl.constexpr):
    """Adds to 4 outputs, in pairs of 16 bits, their taps that lie in a word: output j's is byte j * STRIDE + at.

    Of stride 1, `one` is of outputs 0 and 2, and `two` of 1 and 3; of stride 2, `one` of 0 and 1, `two` of 2 and 3.
    """
    if STRIDE == 1:
        if at == 0:
            one += even
            two += odd
        elif at == 1:
            one += odd
            two += (even >> 16) & 0xFFFF
        elif at == 2:
            one += (even >> 16) & 0xFFFF
            two += (odd >> 16) & 0xFFFF
        elif at == 3:
            one += (odd >> 16) & 0xFFFF
        elif at == -1:
            one += (odd & 0xFFFF) << 16
            two += even
        elif at == -2:
            one += (even & 0xFFFF) << 16
            two += (odd & 0xFFFF) << 16
        elif at == -3:
            two += (even & 0xFFFF) << 16
    else:
        if at == 0:
            one += even
        elif at == 1:
            one += odd
        elif at == 2:
            one += (even >> 16) & 0xFFFF
        elif at == 3:
            one += (odd >> 16) & 0xFFFF
        elif at == -1:
            one += (odd & 0xFFFF) << 16
            two += (odd >> 16) & 0xFFFF
        elif at == -2:
            one += (even & 0xFFFF) << 16
            two += (even >> 16) & 0xFFFF
        elif at == -3:
            two += odd
        elif at == -4:
            two += even
        elif at == -5:
            two += (odd & 0xFFFF) << 16
        elif at == -6:
            two += (even & 0xFFFF) << 16
    return one, two


@triton.jit
def _rows(
    plane,
    from_d,
    from_h,
    word,
    width,
    mask,
    sizes,
    x_strides,
    KD: tl.constexpr,
    ROWS: tl.constexpr,
    KW: tl.constexpr,
    STRIDE: tl.constexpr,
    SHIFT: tl.constexpr,
    SIGNED: tl.constexpr,
):
    """Sums over a window of KD x ROWS x KW bytes for 4 outputs, in pairs as `_add_tap` has them.

    Output 0's first column is SHIFT bytes before word STRIDE * `word`.
    """
    one = tl.zeros(word.shape, tl.int32)
    two = tl.zeros(word.shape, tl.int32)
    for i in tl.static_range(KD):
        for j in tl.static_range(ROWS):
            d, h = from_d + i, from_h + j
            is_row = mask & (d >= 0) & (d < sizes[0]) & (h >= 0) & (h < sizes[1])
            row = plane + d * x_strides[2] + h * x_strides[3]
            for w in tl.static_range(-((SHIFT + 3) // 4), (3 * STRIDE + KW - 1 - SHIFT) // 4 + 1):
                at = word * STRIDE + w
                is_inside = is_row & (at >= 0) & (at < width)
                even, odd = _pairs(tl.load(row + at, mask=is_inside, other=0), is_inside, SIGNED)
                for k in tl.static_range(KW):
                    one, two = _add_tap(one, two, even, odd, k - SHIFT - 4 * w, STRIDE)
    return one, two


@triton.jit
def pool_rows(
    x,
    y,
    input_scale,
    input_zero_point,
    output_scale,
    output_zero_point,
    steps,
    lanes,
    channels,
    width,
    out_words,
    sizes,
    out_sizes,
    x_strides,
    y_strides,
    starts,
    ends,
    ROWS: tl.constexpr,
    KD: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    STRIDE_D: tl.constexpr,
    STRIDE_H: tl.constexpr,
    STRIDE: tl.constexpr,
    SHIFT: tl.constexpr,
    BLOCK: tl.constexpr,
    LOWEST: tl.constexpr,
    SIGNED: tl.constexpr,
    INCLUDE_PADDING: tl.constexpr,
):
    """Dense windows over rows of whole words of 4 elements: a thread computes 4 neighbours in each of ROWS output rows,
    from sums of pairs of bytes, and goes down the rows with a running sum where that reads fewer.

    Strides of x and y count words; x_strides and y_strides are of batch, channel, depth and height.
    """
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = lane < lanes
    word = (lane % out_words).to(tl.int32)
    rest = lane // out_words
    strips = tl.cdiv(out_sizes[1], ROWS)
    top = (rest % strips).to(tl.int32) * ROWS
    rest = rest // strips
    d = (rest % out_sizes[0]).to(tl.int32)
    rest = rest // out_sizes[0]
    channel = (rest % channels).to(tl.int32)
    batch = rest // channels
    x_plane = x + batch * x_strides[0] + channel * x_strides[1]
    y_plane = y + batch * y_strides[0] + channel * y_strides[1] + d * y_strides[2]
    from_d = d * STRIDE_D - starts[0]

    zero_point = _zero_point(input_zero_point, channel * steps[1], mask) + (128 if SIGNED else 0)
    given, wanted, is_usable = _scales(channel, input_scale, output_scale, steps, mask)
    out_zero_point = _zero_point(output_zero_point, channel * steps[3], mask)
    _, inside_d, declared_d = _taps(from_d, sizes[0], ends[0], KD, 1)
    # With many rows in a window, it is cheaper to add those that come in and to take away those that go out.
    RUNNING: tl.constexpr = KH > 2 * STRIDE_H
    from_h = top * STRIDE_H - starts[1]
    one = tl.zeros((BLOCK,), tl.int32)
    two = tl.zeros((BLOCK,), tl.int32)
    if RUNNING:
        one, two = _rows(
            x_plane, from_d, from_h, word, width, mask, sizes, x_strides, KD, KH - STRIDE_H, KW, STRIDE, SHIFT, SIGNED
        )
    for r in range(ROWS):
        out_h = top + r
        is_out = mask & (out_h < out_sizes[1])
        if RUNNING:
            coming = from_h + (KH - STRIDE_H)
            a, b = _rows(
                x_plane, from_d, coming, word, width, is_out, sizes, x_strides, KD, STRIDE_H, KW, STRIDE, SHIFT, SIGNED
            )
            one += a
            two += b
        else:
            one, two = _rows(
                x_plane, from_d, from_h, word, width, is_out, sizes, x_strides, KD, KH, KW, STRIDE, SHIFT, SIGNED
            )
        _, inside_h, declared_h = _taps(from_h, sizes[1], ends[1], KH, 1)
        inside_dh = inside_d * inside_h
        count_dh = declared_d * declared_h if INCLUDE_PADDING else inside_dh
        share = 1.0 / tl.maximum(count_dh, 1).to(tl.float32)
        count_dh = _double(count_dh)
        packed = tl.zeros((BLOCK,), tl.int32)
        for j in tl.static_range(4):
            if STRIDE == 1:
                half = one if j % 2 == 0 else two
                total = (half >> 16) & 0xFFFF if j >= 2 else half & 0xFFFF
            else:
                half = one if j < 2 else two
                total = (half >> 16) & 0xFFFF if j % 2 == 1 else half & 0xFFFF
            _, inside_w, declared_w = _taps((word * 4 + j) * STRIDE - SHIFT, sizes[2], ends[2], KW, 1)
            total -= inside_dh * inside_w * zero_point
            # The same for all rows, and kept between them.
            divisor_w = _double(declared_w if INCLUDE_PADDING else inside_w) * wanted
            ratio = tl.minimum(given / tl.where(divisor_w > 0, divisor_w, 1.0), 1e30).to(tl.float32)
            divisor = count_dh * divisor_w
            is_counted = is_usable & (divisor > 0)
            near = total.to(tl.float32) * (ratio * share)
            q = _quantise_near(total, near, divisor, given, is_counted, out_zero_point, LOWEST)
            packed |= (q & 0xFF) << (8 * j)
        tl.store(y_plane + out_h * y_strides[3] + word, packed, mask=is_out)
        if RUNNING:
            a, b = _rows(
                x_plane, from_d, from_h, word, width, is_out, sizes, x_strides, KD, STRIDE_H, KW, STRIDE, SHIFT, SIGNED
            )
            one -= a
            two -= b
        from_h += STRIDE_H
