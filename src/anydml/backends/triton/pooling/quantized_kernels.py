"""Triton kernels of QUANTIZED_LINEAR_AVERAGE_POOLING: exact sums of integers, requantised by its formula.

A scale that is not a finite number above 0 gives the output zero point: to refuse it the host would have to wait.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _zero_point(pointer, offset, mask):
    """The zero points, or 0 where the tensor is absent."""
    if pointer is not None:
        value = tl.load(pointer + offset, mask=mask, other=0).to(tl.int32)
    else:
        value = tl.zeros(offset.shape, tl.int32)
    return value


@triton.jit
def _scales(channel, input_scale, output_scale, steps, mask):
    """Both scales in double precision, and whether they can be used."""
    in_scale = tl.load(input_scale + channel * steps[0], mask=mask, other=1.0)
    out_scale = tl.load(output_scale + channel * steps[2], mask=mask, other=1.0)
    most: tl.constexpr = 3.4028234663852886e38
    is_usable = (in_scale > 0) & (in_scale <= most) & (out_scale > 0) & (out_scale <= most)
    return in_scale.to(tl.float64), out_scale.to(tl.float64), is_usable


@triton.jit
def _quantise(total, count, in_scale, out_scale, is_usable, zero_point, LOWEST: tl.constexpr):
    """q = round_half_even((S * input_scale) / (count * output_scale)) + output_zero_point, saturated."""
    is_counted = is_usable & (count > 0)
    q = (total.to(tl.float64) * in_scale) / tl.where(is_counted, count.to(tl.float64) * out_scale, 1.0)
    # Beyond these it saturates whatever the zero point is; 1.5 * 2^52 added and subtracted rounds half to even.
    q = tl.minimum(tl.maximum(q, -1024.0), 1024.0)
    magic: tl.constexpr = 6755399441055744.0
    q = (q + magic) - magic
    q = tl.where(is_counted, q, 0.0).to(tl.int32) + zero_point
    return tl.minimum(tl.maximum(q, LOWEST), LOWEST + 255)


@triton.jit
def _as_double(i):
    """2^52 + i in double precision, of an integer that is not negative: its bits are set without a conversion."""
    return (i.to(tl.int64) | 0x4330000000000000).to(tl.float64, bitcast=True)


@triton.jit
def _rounded(total, factor):
    """round_half_even(total * (input_scale / (count * output_scale))), by a `factor` near that quotient.

    With |total| < 2^16, count < 2^9 and scales of 24 bits, the exact v is k + 1/2 of an integer k, or more than 2^-41
    away from it. Where |v| < 256 and `factor` is within 2^-51 of the quotient, by rounding, total * factor is within
    2^-42 of v. Added to 3072 it is rounded to a multiple of 2^-41: if v is k + 1/2 to that, else to one on its side.
    Added to 1.5 * 2^52 that is rounded half to even, into the lowest bits. Where |v| is more, the output saturates.
    """
    grid = tl.fma(total, factor, 3072.0)
    return (grid + (6755399441055744.0 - 3072.0)).to(tl.int64, bitcast=True).to(tl.int32)


@triton.jit
def _taps(origin, size, end, window, dilation):
    """For the taps at origin, origin + dilation, ...: the first inside the input, how many are inside, and how many lie
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
    """A program computes BLOCK outputs, the last dimension first.

    sizes, windows etc. are of depth, height and width; x_strides and y_strides of batch and channel too. At most
    KD, KH and KW taps are inside the input.
    """
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
    in_scale, out_scale, is_usable = _scales(channel, input_scale, output_scale, steps, mask)
    out_zero_point = _zero_point(output_zero_point, channel * steps[3], mask)
    q = _quantise(total, count, in_scale, out_scale, is_usable, out_zero_point, LOWEST)
    place = batch * y_strides[0] + channel * y_strides[1] + d * y_strides[2] + h * y_strides[3] + w * y_strides[4]
    tl.store(y + place, q.to(y.dtype.element_ty), mask=mask)


@triton.jit
def _pairs(word, SIGNED: tl.constexpr):
    """Bytes 0 and 2, and 1 and 3, of words, each in 16 bits; signed ones with 128 added."""
    if SIGNED:
        word = word ^ -0x7F7F7F80
    return word & 0x00FF00FF, (word >> 8) & 0x00FF00FF


@triton.jit
def _bytes_inside(column, width):
    """A mask of the bytes of a word at `column` that are in a row, or a plane, of `width` bytes."""
    before = tl.minimum(tl.maximum(-column, 0), 4).to(tl.int64)
    until = tl.minimum(tl.maximum(width - column, 0), 4).to(tl.int64)
    every = tl.full(column.shape, 1, tl.int64)
    return ((every << (8 * until)) - (every << (8 * tl.minimum(before, until)))).to(tl.int32)


@triton.jit
def _sum_bytes(
    start, skipped, is_plane, first, words, size, BLOCK: tl.constexpr, IN_WORDS: tl.constexpr, SIGNED: tl.constexpr
):
    """The sums of the bytes in each of BLOCK words of planes, signed ones with 128 added."""
    nothing: tl.constexpr = -0x7F7F7F80 if SIGNED else 0
    at = first + tl.arange(0, BLOCK)
    if IN_WORDS:
        is_inside = is_plane[:, None] & (at < words)[None, :]
        word = tl.load(start[:, None] + at[None, :], mask=is_inside, other=nothing)
    else:
        column = 4 * at[None, :] - skipped[:, None]
        is_inside = is_plane[:, None] & (column < size)
        mask = _bytes_inside(column, size)
        word = (tl.load(start[:, None] + at[None, :], mask=is_inside, other=nothing) & mask) | (nothing & ~mask)
    even, odd = _pairs(word, SIGNED)
    pairs = even + odd
    return (pairs & 0xFFFF) + (pairs >> 16)


@triton.jit
def average_planes(
    x,
    y,
    input_scale,
    input_zero_point,
    output_scale,
    output_zero_point,
    steps,
    planes,
    channels,
    size,
    count,
    words,
    x_batch,
    x_channel,
    y_batch,
    y_channel,
    PLANES: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    UNIT: tl.constexpr,
    IN_WORDS: tl.constexpr,
    IN_ONE: tl.constexpr,
    SIGNED: tl.constexpr,
    LOWEST: tl.constexpr,
    TOTAL: tl.constexpr,
):
    """Averages of packed planes of `size` elements, which are `words` * UNIT words of 4.

    x_batch and x_channel count UNIT words, or elements where planes are not IN_WORDS. IN_ONE, a batch begins where the
    channels of the one before end.
    """
    plane = tl.program_id(0) * PLANES + tl.arange(0, PLANES)
    is_plane = plane < planes
    channel = (plane % channels).to(tl.int64)
    batch = (plane // channels).to(tl.int64)
    offset = plane.to(tl.int64) * (x_channel * UNIT)
    if not IN_ONE:
        offset = batch * (x_batch * UNIT) + channel * (x_channel * UNIT)
    start = x + offset
    skipped = tl.zeros((PLANES,), tl.int32)
    if not IN_WORDS:
        # From the multiple of 4 at or before it; no word without an element is read.
        skipped = (start.to(tl.int64) & 3).to(tl.int32)
        start = (start.to(tl.int64) & -4).to(tl.pointer_type(tl.int32))
    # Loads of these overlap the sums of planes.
    in_scale, out_scale, is_usable = _scales(channel, input_scale, output_scale, steps, is_plane)
    unsigned_zero = _zero_point(input_zero_point, channel * steps[1], is_plane) + (128 if SIGNED else 0)
    out_zero_point = _zero_point(output_zero_point, channel * steps[3], is_plane)
    total = tl.zeros((PLANES, BLOCK), TOTAL)
    if BLOCKS > 0:
        for i in tl.static_range(BLOCKS):
            total += _sum_bytes(start, skipped, is_plane, i * BLOCK, words * UNIT, size, BLOCK, IN_WORDS, SIGNED)
    else:
        for first in range(0, words * UNIT, BLOCK):
            total += _sum_bytes(start, skipped, is_plane, first, words * UNIT, size, BLOCK, IN_WORDS, SIGNED)
    counts = tl.zeros((PLANES,), tl.float64) + count
    difference = tl.sum(total, 1).to(tl.int64) - unsigned_zero.to(tl.int64) * size
    q = _quantise(difference, counts, in_scale, out_scale, is_usable, out_zero_point, LOWEST)
    tl.store(y + batch * y_batch + channel * y_channel, q.to(y.dtype.element_ty), mask=is_plane)


@triton.jit
def _pair(evens, odds, k: tl.constexpr):
    """Bytes k and k + 2 of a row of words, from the even and the odd ones of each."""
    halves = evens if k % 2 == 0 else odds
    pair = halves[k // 4]
    if k % 4 >= 2:
        pair = ((pair >> 16) & 0xFFFF) | (halves[k // 4 + 1] << 16)
    return pair


@triton.jit
def _words(start, edges, width, step_d, KD: tl.constexpr, WORDS: tl.constexpr, IN_WORDS: tl.constexpr):
    """The words from `start` on of the same row in KD depths; what is outside the input is filled."""
    column, masks, is_depth, fill = edges
    words = ()
    for i in tl.static_range(KD):
        if IN_WORDS:
            at = start.to(tl.pointer_type(tl.int32))
            for k in tl.static_range(WORDS):
                words += (tl.load(at + k, mask=is_depth[i] & masks[k], other=fill),)
        else:
            # A word at any address is a part of two at multiples of 4, of which no one without an element is read.
            address = start.to(tl.int64)
            skipped = (address & 3).to(tl.int32)
            at = (address & -4).to(tl.pointer_type(tl.int32))
            low = fill
            for k in tl.static_range(WORDS + 1):
                is_inside = (column - skipped + (4 * k + 3)).to(tl.uint32) < width + 3
                high = tl.load(at + k, mask=is_depth[i] & is_inside, other=0)
                if k > 0:
                    both = (high.to(tl.int64) << 32) | (low.to(tl.int64) & 0xFFFFFFFF)
                    mask = tl.where(is_depth[i], masks[k - 1], 0)
                    words += (((both >> (skipped * 8)).to(tl.int32) & mask) | (fill & ~mask),)
                low = high
        start += step_d
    return words


@triton.jit
def _sums(
    words,
    KD: tl.constexpr,
    KW: tl.constexpr,
    STRIDE: tl.constexpr,
    SHIFT: tl.constexpr,
    WORDS: tl.constexpr,
    SIGNED: tl.constexpr,
):
    """Sums over KD x 1 x KW bytes for 4 outputs, in pairs of 16 bits: of stride 1, of outputs 0 and 2, and 1 and 3; of
    stride 2, of 0 and 1, and 2 and 3. Output 0's are from byte SHIFT on."""
    evens = ()
    odds = ()
    for k in tl.static_range(WORDS):
        even, odd = _pairs(words[k], SIGNED)
        for i in tl.static_range(1, KD):
            more_even, more_odd = _pairs(words[i * WORDS + k], SIGNED)
            even += more_even
            odd += more_odd
        evens += (even,)
        odds += (odd,)
    one = _pair(evens, odds, SHIFT)
    two = _pair(evens, odds, SHIFT + KW if STRIDE == 1 else SHIFT + 4)
    for k in tl.static_range(SHIFT + 1, SHIFT + KW):
        one += _pair(evens, odds, k)
        two += _pair(evens, odds, k if STRIDE == 1 else k + 4)
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
    strips,
    groups,
    channels,
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
    IN_WORDS: tl.constexpr,
    OUT_WORDS: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Sliding sums of dense windows: a thread computes 4 adjacent outputs in each row of a strip, two bytes at a time.

    Strides count bytes; sizes, starts and ends are of depth, height and width, strides of batch, channel, depth and
    height. SHIFT is how far before output 0's first column the first word begins.
    """
    top = tl.program_id(0) % strips * (groups * ROWS)
    lane = (tl.program_id(0) // strips).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    is_lane = lane < lanes
    lane = tl.minimum(lane, lanes - 1)
    across = tl.cdiv(out_sizes[2], 4)
    word = (lane % across).to(tl.int32)
    rest = lane // across
    d = (rest % out_sizes[0]).to(tl.int32)
    rest = rest // out_sizes[0]
    channel = (rest % channels).to(tl.int64)
    batch = (rest // channels).to(tl.int64)

    in_scale, out_scale, is_usable = _scales(channel, input_scale, output_scale, steps, is_lane)
    in_zero_point = _zero_point(input_zero_point, channel * steps[1], is_lane)
    out_zero_point = _zero_point(output_zero_point, channel * steps[3], is_lane)
    # What is outside the input is taken to be the zero point: it adds nothing to a sum of differences from it.
    fill = (in_zero_point & 0xFF) * 0x01010101
    unsigned_zero = in_zero_point + (128 if SIGNED else 0)
    fill_row = unsigned_zero * (KD * KW * 0x10001)
    bias = _as_double(unsigned_zero * (KD * KH * KW))

    from_d = d * STRIDE_D - starts[0]
    _, inside_d, declared_d = _taps(from_d, sizes[0], ends[0], KD, 1)
    factors = ()
    for j in tl.static_range(4):
        _, inside_w, declared_w = _taps((word * 4 + j) * STRIDE - starts[2], sizes[2], ends[2], KW, 1)
        counted = KH * (declared_d * declared_w if INCLUDE_PADDING else inside_d * inside_w)
        factor = in_scale / (tl.maximum(counted, 1).to(tl.float64) * out_scale)
        # From 512 on, every total but 0 saturates.
        factors += (tl.where(is_usable, tl.minimum(factor, 512.0), 0.0),)

    column = word * (4 * STRIDE) - starts[2] - SHIFT
    WORDS: tl.constexpr = (SHIFT + 3 * STRIDE + KW - 1) // 4 + 1
    masks = ()
    for k in tl.static_range(WORDS):
        at = column + 4 * k
        masks += ((at >= 0) & (at < sizes[2]) if IN_WORDS else _bytes_inside(at, sizes[2]),)
    is_depth = ()
    for i in tl.static_range(KD):
        is_depth += ((from_d + i >= 0) & (from_d + i < sizes[0]),)
    edges = (column, masks, is_depth, fill)
    height = tl.where(is_lane, out_sizes[1], 0)

    # Rows are read in groups: the loads of the next group overlap the averages of this one. So a strip begins before
    # its first average.
    NEW: tl.constexpr = ROWS * STRIDE_H
    HELD: tl.constexpr = KH - STRIDE_H + NEW
    BEFORE: tl.constexpr = (HELD + NEW - 1) // NEW
    h = (top - BEFORE * ROWS) * STRIDE_H - starts[1]
    # Beyond the last row of a strip, or of the input, that row is read again.
    last = tl.minimum((top + groups * ROWS - 1) * STRIDE_H - starts[1] + KH, sizes[1]) - 1
    start = x + batch * x_strides[0] + channel * x_strides[1] + from_d.to(tl.int64) * x_strides[2] + column
    start += tl.minimum(tl.maximum(h + HELD, 0), sizes[1] - 1).to(tl.int64) * x_strides[3]
    y_row = y + batch * y_strides[0] + channel * y_strides[1] + d.to(tl.int64) * y_strides[2] + word * 4
    y_row += top.to(tl.int64) * y_strides[3]
    ones = (fill_row,) * HELD
    twos = (fill_row,) * HELD
    for group in range(-BEFORE, groups):
        read = h + HELD
        step = tl.full((), 0, tl.int64) + x_strides[3]
        steps_to = (step,) * NEW
        if (read < 0) | (read + NEW > last):
            steps_to = ()
            for i in tl.static_range(NEW):
                steps_to += (tl.where((read + i >= 0) & (read + i < last), step, 0),)
        words = ()
        for i in tl.static_range(NEW):
            words += _words(start, edges, sizes[2], x_strides[2], KD, WORDS, IN_WORDS)
            start += steps_to[i]

        if group >= 0:
            # The factors assume that all rows of a window count; where fewer do, they grow.
            shares = (tl.full((), 1.0, tl.float64),) * ROWS
            if (h < 0) | (h + HELD > sizes[1]):
                shares = ()
                for r in tl.static_range(ROWS):
                    of_height = _taps(h + r * STRIDE_H, sizes[1], ends[1], KH, 1)
                    counted_h = tl.maximum(of_height[2 if INCLUDE_PADDING else 1], 1)
                    shares += (KH / counted_h.to(tl.float64),)
            one = ones[0]
            two = twos[0]
            for r in tl.static_range(ROWS):
                # For a high window it is cheaper to add the rows that enter, and to subtract those that leave.
                if r == 0 or KH <= 2 * STRIDE_H:
                    one = ones[r * STRIDE_H]
                    two = twos[r * STRIDE_H]
                    for i in tl.static_range(r * STRIDE_H + 1, r * STRIDE_H + KH):
                        one += ones[i]
                        two += twos[i]
                else:
                    for i in tl.static_range((r - 1) * STRIDE_H, r * STRIDE_H):
                        one += ones[i + KH] - ones[i]
                        two += twos[i + KH] - twos[i]
                is_out = top + r < height
                packed = (out_zero_point - LOWEST) * 0x01010101
                for j in tl.static_range(4):
                    half = one if j // STRIDE % 2 == 0 else two
                    total = (half >> 16) & 0xFFFF if j * STRIDE // 2 % 2 == 1 else half & 0xFFFF
                    q = _rounded(_as_double(total) - bias, factors[j] * shares[r])
                    q = tl.minimum(tl.maximum(q, LOWEST - out_zero_point), LOWEST + 255 - out_zero_point)
                    if OUT_WORDS:
                        packed += q << (8 * j)
                    else:
                        is_column = is_out & (word * 4 + j < out_sizes[2])
                        tl.store(y_row + j, (q + out_zero_point).to(y.dtype.element_ty), mask=is_column)
                if OUT_WORDS:
                    if LOWEST < 0:
                        packed = packed ^ -0x7F7F7F80
                    tl.store(y_row.to(tl.pointer_type(tl.int32)), packed, mask=is_out)
                y_row += y_strides[3]
            top += ROWS

        more_ones = ()
        more_twos = ()
        for i in tl.static_range(NEW):
            one, two = _sums(words[i * KD * WORDS :], KD, KW, STRIDE, SHIFT, WORDS, SIGNED)
            more_ones += (one,)
            more_twos += (two,)
        if (read < 0) | (read + NEW > sizes[1]):
            inside_ones = ()
            inside_twos = ()
            for i in tl.static_range(NEW):
                is_row = (read >= -i) & (read < sizes[1] - i)
                inside_ones += (tl.where(is_row, more_ones[i], fill_row),)
                inside_twos += (tl.where(is_row, more_twos[i], fill_row),)
            more_ones = inside_ones
            more_twos = inside_twos
        ones = ones[NEW:] + more_ones
        twos = twos[NEW:] + more_twos
        h += NEW
