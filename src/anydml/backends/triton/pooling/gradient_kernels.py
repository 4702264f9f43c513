"""Triton's kernels of pooling's gradients: every element gathers what the windows over it have for it.

Tiles are those of `kernels.py`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import is_within, quotient
from ..reduction.kernels import decomposed
from .kernels import counted, inverse_of, tile_of


@triton.jit
def _windows_over(
    element, places, TAPS: tl.constexpr, STRIDE: tl.constexpr, START: tl.constexpr, DILATION: tl.constexpr
):  # fmt: skip
    """The first and the last window that reach over an element; with dilation they may have it between taps."""
    reach = element + START
    first = (tl.maximum(reach - (TAPS - 1) * DILATION, 0) + (STRIDE - 1)) // STRIDE
    return first, tl.minimum(reach // STRIDE, places - 1)


@triton.jit
def _tap_at(element, window, STRIDE: tl.constexpr, START: tl.constexpr, DILATION: tl.constexpr):
    """At which tap of a window that reaches over it an element lies along a dimension, and whether it lies at one."""
    distance = element + START - window * STRIDE
    return distance // DILATION, distance % DILATION == 0


@triton.jit
def _given_back(
    gradient, indices, from_gradient, from_index, mask, own, i, j, k, last_i, last_j, last_k, d, h, w, total,
    gradient_steps, index_steps, KIND: tl.constexpr, HAS_SHARES: tl.constexpr, WITH_PADDING: tl.constexpr,
    TAPS: tl.constexpr, STRIDES: tl.constexpr, STARTS: tl.constexpr, ENDS: tl.constexpr, DILATIONS: tl.constexpr,
    TAP_STEPS: tl.constexpr,
):  # fmt: skip
    """The sum with what the window at i, j, k has for the element `own`."""
    is_over = mask & (i <= last_i) & (j <= last_j) & (k <= last_k)
    if KIND == "MAXIMUM":
        tap_i, is_tap_i = _tap_at(own[0], i, STRIDES[0], STARTS[0], DILATIONS[0])
        tap_j, is_tap_j = _tap_at(own[1], j, STRIDES[1], STARTS[1], DILATIONS[1])
        tap_k, is_tap_k = _tap_at(own[2], k, STRIDES[2], STARTS[2], DILATIONS[2])
        is_over = is_over & is_tap_i & is_tap_j & is_tap_k
        at = from_index + i * index_steps[2] + j * index_steps[3] + k * index_steps[4]
        tap = tap_i * TAP_STEPS[0] + tap_j * TAP_STEPS[1] + tap_k * TAP_STEPS[2]
        is_over = is_over & (tl.load(indices + at, mask=is_over, other=0) == tap)
    at = from_gradient + i * gradient_steps[2] + j * gradient_steps[3] + k * gradient_steps[4]
    value = tl.load(gradient + at, mask=is_over, other=0).to(tl.float64)
    if KIND == "AVERAGE":
        number = counted(i * STRIDES[0] - STARTS[0], d, TAPS[0], ENDS[0], 1, WITH_PADDING)
        number = number * counted(j * STRIDES[1] - STARTS[1], h, TAPS[1], ENDS[1], 1, WITH_PADDING)
        number = number * counted(k * STRIDES[2] - STARTS[2], w, TAPS[2], ENDS[2], 1, WITH_PADDING)
        if HAS_SHARES:
            value = value * tl.load(indices + number)
        else:
            value = value * inverse_of(tl.maximum(number, 1))
    return tl.where(is_over, total + value, total)


@triton.jit
def pool_gradients(
    gradient, indices, y, rows, columns, blocks, d, h, w, out_d, out_h, out_w, sizes, multipliers, shifts,
    gradient_steps, index_steps, y_steps,
    KIND: tl.constexpr, HAS_SHARES: tl.constexpr, WITH_PADDING: tl.constexpr,
    ORDER: tl.constexpr, COVERS: tl.constexpr, TAPS: tl.constexpr, STRIDES: tl.constexpr, STARTS: tl.constexpr,
    ENDS: tl.constexpr, DILATIONS: tl.constexpr, TAP_STEPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Sums, for each element, the gradients of the windows whose maximum it is, or its shares of averages', in
    row-major order. COVERS: how many windows reach over an element at most. `indices` has the numbers of maxima's
    taps; HAS_SHARES: 1 / n of each number n of taps, and 1 for none."""
    _, _, mask, parts = tile_of(rows, columns, blocks, sizes, multipliers, shifts, ROWS, COLUMNS, INDEX)
    batch, channel = parts[ORDER[0]], parts[ORDER[1]]
    i, j, k = parts[ORDER[2]], parts[ORDER[3]], parts[ORDER[4]]
    from_gradient = batch * gradient_steps[0] + channel * gradient_steps[1]
    from_index = batch * index_steps[0] + channel * index_steps[1]
    first_i, last_i = _windows_over(i, out_d, TAPS[0], STRIDES[0], STARTS[0], DILATIONS[0])
    first_j, last_j = _windows_over(j, out_h, TAPS[1], STRIDES[1], STARTS[1], DILATIONS[1])
    first_k, last_k = _windows_over(k, out_w, TAPS[2], STRIDES[2], STARTS[2], DILATIONS[2])
    total = tl.zeros([ROWS, COLUMNS], tl.float64)
    for a in range(COVERS[0]):
        for b in range(COVERS[1]):
            for c in range(COVERS[2]):
                total = _given_back(
                    gradient, indices, from_gradient, from_index, mask, (i, j, k),
                    first_i + a, first_j + b, first_k + c, last_i, last_j, last_k, d, h, w, total,
                    gradient_steps, index_steps,
                    KIND, HAS_SHARES, WITH_PADDING, TAPS, STRIDES, STARTS, ENDS, DILATIONS, TAP_STEPS,
                )  # fmt: skip
    target = batch * y_steps[0] + channel * y_steps[1] + i * y_steps[2] + j * y_steps[3] + k * y_steps[4]
    tl.store(y + target, total.to(y.dtype.element_ty), mask=mask)


@triton.jit
def gradient_strips(
    gradient, indices, y, rows, columns, blocks, x_sizes, out_sizes, sizes, multipliers, shifts,
    gradient_steps, index_steps, y_steps,
    KIND: tl.constexpr, WITH_PADDING: tl.constexpr, ALONG: tl.constexpr, ELEMENTS: tl.constexpr,
    ORDER: tl.constexpr, COVERS: tl.constexpr, TAPS: tl.constexpr, STRIDES: tl.constexpr, STARTS: tl.constexpr,
    ENDS: tl.constexpr, DILATIONS: tl.constexpr, TAP_STEPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """What `pool_gradients` sums, with a table of shares, of strips of ELEMENTS, one behind the other in dimension
    ALONG, which has no dilation and of whose stride ELEMENTS are a multiple: so it is known which elements a window
    reaches over, and what it has for them is loaded once. COVERS: there of strips."""
    A: tl.constexpr = 1 if ALONG == 0 else 0
    B: tl.constexpr = 1 if ALONG == 2 else 2
    STRIDE: tl.constexpr = STRIDES[ALONG]
    BEHIND: tl.constexpr = STARTS[ALONG] % STRIDE
    # The first window over a strip, beside that at its first element.
    FIRST: tl.constexpr = -((TAPS[ALONG] - 1 - BEHIND) // STRIDE)
    _, _, mask, parts = tile_of(rows, columns, blocks, sizes, multipliers, shifts, ROWS, COLUMNS, INDEX)
    batch, channel = parts[ORDER[0]], parts[ORDER[1]]
    strip, of_a, of_b = parts[ORDER[2 + ALONG]], parts[ORDER[2 + A]], parts[ORDER[2 + B]]
    place = strip * ELEMENTS
    window = strip * (ELEMENTS // STRIDE) + (STARTS[ALONG] // STRIDE + FIRST)
    first_a, last_a = _windows_over(of_a, out_sizes[A], TAPS[A], STRIDES[A], STARTS[A], DILATIONS[A])
    first_b, last_b = _windows_over(of_b, out_sizes[B], TAPS[B], STRIDES[B], STARTS[B], DILATIONS[B])
    at = batch * gradient_steps[0] + channel * gradient_steps[1] + window * gradient_steps[2 + ALONG]
    from_gradient = gradient + (at + first_a * gradient_steps[2 + A] + first_b * gradient_steps[2 + B])
    at = batch * index_steps[0] + channel * index_steps[1] + window * index_steps[2 + ALONG]
    from_index = indices + (at + first_a * index_steps[2 + A] + first_b * index_steps[2 + B])
    # Of the type of offsets, in which steps do not wrap.
    none = tl.zeros([1, 1], INDEX)
    totals = ()
    for _ in tl.static_range(ELEMENTS):
        totals += (tl.zeros([ROWS, COLUMNS], tl.float64),)
    DEPTH: tl.constexpr = COVERS[0]
    HEIGHT: tl.constexpr = COVERS[1]
    WIDTH: tl.constexpr = COVERS[2]
    # In row-major order.
    for p in tl.static_range(DEPTH):
        for q in tl.static_range(HEIGHT):
            for r in tl.static_range(WIDTH):
                i, a, b = window + (p, q, r)[ALONG], first_a + (p, q, r)[A], first_b + (p, q, r)[B]
                is_there = mask & is_within(i, out_sizes[ALONG]) & (a <= last_a) & (b <= last_b)
                if KIND == "MAXIMUM":
                    tap_a, is_tap_a = _tap_at(of_a, a, STRIDES[A], STARTS[A], DILATIONS[A])
                    tap_b, is_tap_b = _tap_at(of_b, b, STRIDES[B], STARTS[B], DILATIONS[B])
                    is_there = is_there & is_tap_a & is_tap_b
                at = from_gradient + ((none + p) * gradient_steps[2] + (none + q) * gradient_steps[3])
                value = tl.load(at + (none + r) * gradient_steps[4], mask=is_there, other=0).to(tl.float64)
                if KIND == "MAXIMUM":
                    at = from_index + ((none + p) * index_steps[2] + (none + q) * index_steps[3])
                    # Where no window is, any number will do, as its gradient is 0.
                    number = tl.load(at + (none + r) * index_steps[4], mask=is_there, other=0)
                    own = tap_a * TAP_STEPS[A] + tap_b * TAP_STEPS[B]
                else:
                    begin, begin_a, begin_b = i * STRIDE - STARTS[ALONG], a * STRIDES[A], b * STRIDES[B]
                    taps = counted(begin, x_sizes[ALONG], TAPS[ALONG], ENDS[ALONG], 1, WITH_PADDING)
                    taps *= counted(begin_a - STARTS[A], x_sizes[A], TAPS[A], ENDS[A], 1, WITH_PADDING)
                    taps *= counted(begin_b - STARTS[B], x_sizes[B], TAPS[B], ENDS[B], 1, WITH_PADDING)
                    value = value * tl.load(indices + taps)
                more = ()
                for e in tl.static_range(ELEMENTS):
                    # Where the window begins before the element, and ends behind it.
                    if (((p, q, r)[ALONG] + FIRST) * STRIDE <= e + BEHIND) & (
                        ((p, q, r)[ALONG] + FIRST) * STRIDE + TAPS[ALONG] > e + BEHIND
                    ):
                        if KIND == "MAXIMUM":
                            tap = own + (e + BEHIND - ((p, q, r)[ALONG] + FIRST) * STRIDE) * TAP_STEPS[ALONG]
                            # As what is loaded: LLVM packs comparisons of widened bytes into masks of bits.
                            is_own = number == tap.to(number.dtype)
                            more += (tl.where(is_own, totals[e] + value, totals[e]),)
                        else:
                            more += (totals[e] + value,)
                    else:
                        more += (totals[e],)
                totals = more
    target = y + (batch * y_steps[0] + channel * y_steps[1] + of_a * y_steps[2 + A] + of_b * y_steps[2 + B])
    for e in tl.static_range(ELEMENTS):
        is_there = mask & (place + e < x_sizes[ALONG])
        at = (none + place + e) * y_steps[2 + ALONG]
        tl.store(target + at, totals[e].to(y.dtype.element_ty), mask=is_there)


@triton.jit
def average_gradients(
    gradient, shares, y, rows, columns, blocks, h, w, out_h, out_w, sizes, multipliers, shifts, gradient_steps, y_steps,
    WITH_PADDING: tl.constexpr, COVERS: tl.constexpr, TAPS: tl.constexpr, STRIDES: tl.constexpr, STARTS: tl.constexpr,
    ENDS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """What `pool_gradients` sums of averages in planes, by windows: rows and columns are numbers of strides, and have
    the elements of one stride each way, which the same windows reach over. So each window's share is computed once for
    all of them. Loops are rows, channels and batches; shares are as there."""
    DOWN: tl.constexpr = STRIDES[0]
    ACROSS: tl.constexpr = STRIDES[1]
    program = tl.program_id(0)
    number = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    outer = quotient(number, sizes[0], multipliers[0], shifts[0])
    i = number - outer * sizes[0] + STARTS[0] // DOWN
    batch = quotient(outer, sizes[1], multipliers[1], shifts[1])
    channel = outer - batch * sizes[1]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    k = column + STARTS[1] // ACROSS
    first = batch * gradient_steps[0] + channel * gradient_steps[1]
    values = ()
    for n in tl.static_range(COVERS[0] * COVERS[1]):
        # The first of the windows first.
        row, place = i - (COVERS[0] - 1 - n // COVERS[1]), k - (COVERS[1] - 1 - n % COVERS[1])
        inside = (number < rows) & (row >= 0) & (row < out_h) & (place >= 0) & (place < out_w)
        value = tl.load(gradient + first + row * gradient_steps[2] + place * gradient_steps[3], mask=inside, other=0)
        taps = counted(row * DOWN - STARTS[0], h, TAPS[0], ENDS[0], 1, WITH_PADDING)
        taps = taps * counted(place * ACROSS - STARTS[1], w, TAPS[1], ENDS[1], 1, WITH_PADDING)
        values += (value.to(tl.float64) * tl.load(shares + taps),)
    target = batch * y_steps[0] + channel * y_steps[1]
    for r in tl.static_range(DOWN):
        row = i * DOWN + (r - STARTS[0])
        is_row = (number < rows) & (row >= 0) & (row < h)
        sums = ()
        for s in tl.static_range(ACROSS):
            total = tl.zeros([ROWS, COLUMNS], tl.float64)
            for n in tl.static_range(COVERS[0] * COVERS[1]):
                behind, beside = COVERS[0] - 1 - n // COVERS[1], COVERS[1] - 1 - n % COVERS[1]
                if (r + behind * DOWN < TAPS[0]) & (s + beside * ACROSS < TAPS[1]):
                    total += values[n]
            sums += (total.to(y.dtype.element_ty),)
        if ACROSS == 2:
            # Side by side, as they lie in memory.
            both = tl.join(sums[0], sums[1]).reshape([ROWS, 2 * COLUMNS])
            place = (program % blocks).to(INDEX) * (2 * COLUMNS) + tl.arange(0, 2 * COLUMNS)[None, :]
            place = place + (STARTS[1] // 2 * 2 - STARTS[1])
            is_there = is_row & (place >= 0) & (place < w)
            tl.store(y + target + row * y_steps[2] + place * y_steps[3], both, mask=is_there)
        else:
            for s in tl.static_range(ACROSS):
                place = k * ACROSS + (s - STARTS[1])
                is_there = is_row & (place >= 0) & (place < w)
                tl.store(y + target + row * y_steps[2] + place * y_steps[3], sums[s], mask=is_there)


@triton.jit
def plane_gradients(
    x, gradient, y, rows, columns, row_sizes, x_rows, gradient_rows, y_rows, sizes, x_steps, y_steps,
    KIND: tl.constexpr, LOOPS: tl.constexpr, PLANE_LOOPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Of planes that have one window: the gradient at the maximum, the first of equal ones, or all elements' shares. A
    row is a plane."""
    row = tl.program_id(0).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    mask = (row < rows) & (column < columns)
    at = decomposed(row, row_sizes, gradient_rows, LOOPS)
    value = tl.load(gradient + at, mask=row < rows, other=0).to(tl.float64)
    if KIND == "MAXIMUM":
        at = decomposed(row, row_sizes, x_rows, LOOPS) + decomposed(column, sizes, x_steps, PLANE_LOOPS)
        here = tl.load(x + at, mask=mask, other=0).to(tl.float32)
        # A number is larger than a NaN; of a plane without numbers it is the first element.
        is_number = mask & (here == here)
        most = tl.max(tl.where(is_number, here, float("-inf")), 1)[:, None]
        first = tl.min(tl.where(is_number & (here == most), column, COLUMNS), 1)[:, None]
        first = tl.where(first == COLUMNS, 0, first)
    else:
        value = value * inverse_of(row * 0 + columns)
    # A sum, of which a -0 is 0.
    value = tl.broadcast_to((value + 0.0).to(y.dtype.element_ty), [ROWS, COLUMNS])
    if KIND == "MAXIMUM":
        value = tl.where(column == first, value, 0.0)
    at = decomposed(row, row_sizes, y_rows, LOOPS) + decomposed(column, sizes, y_steps, PLANE_LOOPS)
    tl.store(y + at, value.to(y.dtype.element_ty), mask=mask)
