"""Triton's kernels of pooling of any type and layout, and of maxima with their indices.

A program has a tile of what is written, rows by columns. Dimensions are batch, channels, depth, height and width, in
the order of memory: columns are the innermost one, rows all others, so that little is computed for each element. ORDER
says which of these loops a dimension is.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import is_within, quotient


@triton.jit
def _parts(number, column, sizes, multipliers, shifts):
    """The indices of nested loops, the innermost first, which columns are; `number` is the row's."""
    parts = (column,)
    for i in tl.static_range(1, 4):
        outer = quotient(number, sizes[i], multipliers[i], shifts[i])
        parts += (number - outer * sizes[i],)
        number = outer
    parts += (number,)
    return parts


@triton.jit
def tile_of(
    rows, columns, blocks, sizes, multipliers, shifts, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr
):  # fmt: skip
    """The rows and columns of a program's tile, which of its elements are there, and their indices."""
    program = tl.program_id(0)
    number = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (number < rows) & (column < columns)
    return number, column, mask, _parts(number, column, sizes, multipliers, shifts)


@triton.jit
def counted(origin, size, TAPS: tl.constexpr, END: tl.constexpr, DILATION: tl.constexpr, WITH_PADDING: tl.constexpr):
    """How many taps of a window that begins at `origin` lie on elements along a dimension, or on declared padding."""
    end = size + END if WITH_PADDING else size
    behind = tl.minimum((tl.maximum(end - origin, 0) + (DILATION - 1)) // DILATION, TAPS)
    before = origin * 0 if WITH_PADDING else (tl.maximum(origin * -1, 0) + (DILATION - 1)) // DILATION
    return tl.maximum(behind - before, 0)


@triton.jit
def _better(best, tap, here, number, IS_FLOAT: tl.constexpr):
    """The larger element and its tap's number; the first one of equal ones; a number is larger than a NaN."""
    if IS_FLOAT:
        # As it is not at most a NaN. A maximum would say this at once, but may be none of a signalling NaN.
        is_better = ~(here <= best) & (here == here)
    else:
        is_better = here > best
    return tl.where(is_better, here, best), tl.where(is_better, number, tap)


@triton.jit
def _tap_at(
    at, none, mask, t, a, b, begin, begin_a, begin_b, x_sizes, x_steps, NONE: tl.constexpr, WIDE: tl.constexpr,
    ALONG: tl.constexpr, A: tl.constexpr, B: tl.constexpr, DILATIONS: tl.constexpr, TAP_STEPS: tl.constexpr,
):  # fmt: skip
    """The element under a tap, NONE where there is none, and the tap's number."""
    down, to_a, to_b = t * DILATIONS[ALONG], a * DILATIONS[A], b * DILATIONS[B]
    inside = mask & is_within(begin + down, x_sizes[ALONG])
    inside = inside & is_within(begin_a + to_a, x_sizes[A]) & is_within(begin_b + to_b, x_sizes[B])
    at = at + ((none + down) * x_steps[2 + ALONG] + (none + to_a) * x_steps[2 + A]) + (none + to_b) * x_steps[2 + B]
    number = (none + t) * TAP_STEPS[ALONG] + (none + a) * TAP_STEPS[A] + (none + b) * TAP_STEPS[B]
    return tl.load(at, mask=inside, other=NONE).to(WIDE), number


@triton.jit
def _first_tap(origin, size, TAPS: tl.constexpr, DILATION: tl.constexpr):
    """The first tap on an element along a dimension, and whether there is one."""
    tap = (tl.maximum(origin * -1, 0) + (DILATION - 1)) // DILATION
    return tap, (tap < TAPS) & (origin + tap * DILATION < size)


@triton.jit
def find_maxima(
    x, y, indices, rows, columns, blocks, channels, x_sizes, places, sizes, multipliers, shifts,
    x_steps, y_steps, index_steps,
    LOWEST: tl.constexpr, NONE: tl.constexpr, OF_TAPS: tl.constexpr, IS_FLOAT: tl.constexpr, WIDE: tl.constexpr,
    UNROLLED: tl.constexpr, ALONG: tl.constexpr, OUTPUTS: tl.constexpr, ORDER: tl.constexpr, TAPS: tl.constexpr,
    STRIDES: tl.constexpr, STARTS: tl.constexpr, DILATIONS: tl.constexpr, TAP_STEPS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Maxima of windows, and where they lie in the whole tensor, 0 of no element. OF_TAPS: instead, the numbers of
    their taps alone, -1 of no element. Taps are numbered in row-major order by TAP_STEPS; NONE is what counts where no
    element is. Strips are those of `pool_strips`; before ALONG windows have one tap each, so that taps are met in
    row-major order."""
    A: tl.constexpr = 1 if ALONG == 0 else 0
    B: tl.constexpr = 1 if ALONG == 2 else 2
    TAPS_A: tl.constexpr = TAPS[A]
    TAPS_B: tl.constexpr = TAPS[B]
    row, column, mask, parts = tile_of(rows, columns, blocks, sizes, multipliers, shifts, ROWS, COLUMNS, INDEX)
    batch, channel = parts[ORDER[0]], parts[ORDER[1]]
    first, of_a, of_b = parts[ORDER[2 + ALONG]] * OUTPUTS, parts[ORDER[2 + A]], parts[ORDER[2 + B]]
    begin = first * STRIDES[ALONG] - STARTS[ALONG]
    begin_a, begin_b = of_a * STRIDES[A] - STARTS[A], of_b * STRIDES[B] - STARTS[B]
    at = batch * x_steps[0] + channel * x_steps[1] + begin * x_steps[2 + ALONG]
    at = x + (at + begin_a * x_steps[2 + A] + begin_b * x_steps[2 + B])
    # Of the type of offsets, in which steps do not wrap.
    none = tl.zeros([1, 1], INDEX)
    best = ()
    taps = ()
    for _ in tl.static_range(OUTPUTS):
        best += (tl.full([ROWS, COLUMNS], NONE, WIDE),)
        taps += (tl.zeros([ROWS, COLUMNS], INDEX),)
    if UNROLLED:
        # What lies side by side is compared once for all outputs; its taps are numbered as those of the first one.
        for t in tl.static_range((OUTPUTS - 1) * STRIDES[ALONG] + TAPS[ALONG]):
            line, line_tap = best[0], taps[0]
            for a in tl.static_range(TAPS_A):
                for b in tl.static_range(TAPS_B):
                    here, number = _tap_at(
                        at, none, mask, t, a, b, begin, begin_a, begin_b, x_sizes, x_steps,
                        NONE, WIDE, ALONG, A, B, DILATIONS, TAP_STEPS,
                    )  # fmt: skip
                    if (a == 0) & (b == 0):
                        line, line_tap = here, number + tl.zeros([ROWS, COLUMNS], INDEX)
                    else:
                        line, line_tap = _better(line, line_tap, here, number, IS_FLOAT)
            more = ()
            more_taps = ()
            for v in tl.static_range(OUTPUTS):
                if t == v * STRIDES[ALONG]:
                    of_both = line, line_tap
                elif (t > v * STRIDES[ALONG]) & (t < v * STRIDES[ALONG] + TAPS[ALONG]):
                    of_both = _better(best[v], taps[v], line, line_tap, IS_FLOAT)
                else:
                    of_both = best[v], taps[v]
                more += (of_both[0],)
                more_taps += (of_both[1],)
            best, taps = more, more_taps
    else:
        one, one_tap = best[0], taps[0]
        for t in range(TAPS[ALONG]):
            for a in range(TAPS_A):
                for b in range(TAPS_B):
                    here, number = _tap_at(
                        at, none, mask, t, a, b, begin, begin_a, begin_b, x_sizes, x_steps,
                        NONE, WIDE, ALONG, A, B, DILATIONS, TAP_STEPS,
                    )  # fmt: skip
                    one, one_tap = _better(one, one_tap, here, number, IS_FLOAT)
        best, taps = (one,), (one_tap,)
    first_a, has_a = _first_tap(begin_a, x_sizes[A], TAPS[A], DILATIONS[A])
    first_b, has_b = _first_tap(begin_b, x_sizes[B], TAPS[B], DILATIONS[B])
    to_y = batch * y_steps[0] + channel * y_steps[1] + of_a * y_steps[2 + A] + of_b * y_steps[2 + B]
    to_index = batch * index_steps[0] + channel * index_steps[1]
    to_index = to_index + of_a * index_steps[2 + A] + of_b * index_steps[2 + B]
    _, h, w = x_sizes
    own_steps = (h * w, w, 1)
    for v in tl.static_range(OUTPUTS):
        is_there = mask & (first + v < places)
        origin = begin + v * STRIDES[ALONG]
        # No number was larger than what is nowhere: the first element is a NaN, or the lowest number as all others.
        is_none = best[v] != best[v] if IS_FLOAT else best[v] == NONE
        first_down, has_down = _first_tap(origin, x_sizes[ALONG], TAPS[ALONG], DILATIONS[ALONG])
        found = first_down * TAP_STEPS[ALONG] + first_a * TAP_STEPS[A] + first_b * TAP_STEPS[B]
        found = tl.where(is_none, found, taps[v] - v * STRIDES[ALONG] * TAP_STEPS[ALONG])
        found = tl.where(has_down & has_a & has_b, found, -1)
        if not OF_TAPS:
            result = tl.where(found < 0, tl.full([ROWS, COLUMNS], LOWEST, WIDE), best[v])
            at = to_y + (first + v) * y_steps[2 + ALONG]
            tl.store(y + at, result.to(y.dtype.element_ty), mask=is_there)
            down = origin + found // TAP_STEPS[ALONG] % TAPS[ALONG] * DILATIONS[ALONG]
            at_a = begin_a + found // TAP_STEPS[A] % TAPS[A] * DILATIONS[A]
            at_b = begin_b + found // TAP_STEPS[B] % TAPS[B] * DILATIONS[B]
            own = down * own_steps[ALONG] + at_a * own_steps[A] + at_b * own_steps[B]
            found = tl.where(found < 0, 0, (batch * channels + channel) * (x_sizes[0] * h * w) + own)
        if OF_TAPS & (OUTPUTS == 1):
            at = row * columns + column
        else:
            at = to_index + (first + v) * index_steps[2 + ALONG]
        tl.store(indices + at, found.to(indices.dtype.element_ty), mask=is_there)


@triton.jit
def _is_within(at, size, IS_INSIDE: tl.constexpr):
    return at == at if IS_INSIDE else is_within(at, size)


@triton.jit
def _joined(best, here, KIND: tl.constexpr):
    # The maximum of a NaN and a number is the number.
    return tl.maximum(best, here) if KIND == "MAXIMUM" else best + here


@triton.jit
def _with_tap(line, at, inside, NONE: tl.constexpr, KIND: tl.constexpr, P: tl.constexpr):
    here = tl.load(at, mask=inside, other=NONE).to(line.dtype)
    if KIND == "NORM":
        # A square of a single has no rounding error in double precision, nor has one of a half in single.
        result = line + tl.abs(here) if P == 1 else tl.fma(here, here, line)
    else:
        result = _joined(line, here, KIND)
    return result


@triton.jit
def inverse_of(number):
    """1 / number of small integers, as a double: that of singles, and two of Newton's steps, r * (2 - n * r)."""
    wide = number.to(tl.float64)
    r = (1.0 / number.to(tl.float32)).to(tl.float64)
    r = r * (wide * r * -1 + 2)
    return r * (wide * r * -1 + 2)


@triton.jit
def _average(total, number, shares, HAS_SHARES: tl.constexpr, WIDE: tl.constexpr):
    """total / number: of doubles rounded once, by Markstein's correction of a product with the inverse."""
    if not HAS_SHARES:
        share = inverse_of(tl.maximum(number, 1)).to(WIDE)
    else:
        share = tl.load(shares + number)
    result = total * share
    if total.dtype == tl.float64:
        left = tl.fma(result * -1, number.to(tl.float64), total)
        # Of what is infinite nothing is left to correct.
        result = tl.fma(tl.where(left == left, left, 0.0), share, result)
    return result


@triton.jit
def pool_strips(
    x, y, shares, rows, columns, blocks, x_sizes, places, sizes, multipliers, shifts, x_steps, y_steps,
    KIND: tl.constexpr, P: tl.constexpr, WITH_PADDING: tl.constexpr, IS_INSIDE: tl.constexpr, NONE: tl.constexpr,
    IS_FLOAT: tl.constexpr, HAS_SHARES: tl.constexpr, WIDE: tl.constexpr, UNROLLED: tl.constexpr,
    ALONG: tl.constexpr, OUTPUTS: tl.constexpr, ORDER: tl.constexpr, TAPS: tl.constexpr, STRIDES: tl.constexpr,
    STARTS: tl.constexpr, ENDS: tl.constexpr, DILATIONS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Maxima, averages or norms of windows. An element of a tile is a strip of OUTPUTS windows, one behind the other in
    dimension ALONG, without dilation where there are several: what lies under the taps of the other dimensions is
    combined once for all of them. IS_INSIDE says that no window reaches beyond the input; NONE is what counts there.
    HAS_SHARES: `shares` has 1 / n of each number n of taps, of WIDE, and 1 for none."""
    A: tl.constexpr = 1 if ALONG == 0 else 0
    B: tl.constexpr = 1 if ALONG == 2 else 2
    TAPS_A: tl.constexpr = TAPS[A]
    TAPS_B: tl.constexpr = TAPS[B]
    _, _, mask, parts = tile_of(rows, columns, blocks, sizes, multipliers, shifts, ROWS, COLUMNS, INDEX)
    batch, channel = parts[ORDER[0]], parts[ORDER[1]]
    place, of_a, of_b = parts[ORDER[2 + ALONG]] * OUTPUTS, parts[ORDER[2 + A]], parts[ORDER[2 + B]]
    begin = place * STRIDES[ALONG] - STARTS[ALONG]
    begin_a, begin_b = of_a * STRIDES[A] - STARTS[A], of_b * STRIDES[B] - STARTS[B]
    at = batch * x_steps[0] + channel * x_steps[1] + begin * x_steps[2 + ALONG]
    at = x + (at + begin_a * x_steps[2 + A] + begin_b * x_steps[2 + B])
    # Of the type of offsets, in which steps do not wrap.
    none = tl.zeros([1, 1], INDEX)
    # With several outputs the last ones may lie beyond the last place.
    HAS_ALL: tl.constexpr = IS_INSIDE and OUTPUTS == 1
    best = ()
    for _ in tl.static_range(OUTPUTS):
        best += (tl.full([ROWS, COLUMNS], NONE if KIND == "MAXIMUM" else 0, WIDE),)
    if UNROLLED:
        for t in tl.static_range((OUTPUTS - 1) * STRIDES[ALONG] + TAPS[ALONG]):
            is_there = mask & _is_within(begin + t * DILATIONS[ALONG], x_sizes[ALONG], HAS_ALL)
            line = tl.full([ROWS, COLUMNS], NONE if KIND == "MAXIMUM" else 0, WIDE)
            for a in tl.static_range(TAPS_A):
                is_tap = is_there & _is_within(begin_a + a * DILATIONS[A], x_sizes[A], IS_INSIDE)
                row = (
                    at + (none + t * DILATIONS[ALONG]) * x_steps[2 + ALONG] + (none + a * DILATIONS[A]) * x_steps[2 + A]
                )
                for b in tl.static_range(TAPS_B):
                    inside = is_tap & _is_within(begin_b + b * DILATIONS[B], x_sizes[B], IS_INSIDE)
                    line = _with_tap(line, row + (none + b * DILATIONS[B]) * x_steps[2 + B], inside, NONE, KIND, P)
            more = ()
            for v in tl.static_range(OUTPUTS):
                if (t >= v * STRIDES[ALONG]) & (t < v * STRIDES[ALONG] + TAPS[ALONG]):
                    more += (_joined(best[v], line, KIND),)
                else:
                    more += (best[v],)
            best = more
    else:
        one = best[0]
        for t in range(TAPS[ALONG]):
            is_there = mask & _is_within(begin + t * DILATIONS[ALONG], x_sizes[ALONG], IS_INSIDE)
            for a in range(TAPS[A]):
                is_tap = is_there & _is_within(begin_a + a * DILATIONS[A], x_sizes[A], IS_INSIDE)
                row = (
                    at + (none + t * DILATIONS[ALONG]) * x_steps[2 + ALONG] + (none + a * DILATIONS[A]) * x_steps[2 + A]
                )
                for b in range(TAPS[B]):
                    inside = is_tap & _is_within(begin_b + b * DILATIONS[B], x_sizes[B], IS_INSIDE)
                    one = _with_tap(one, row + (none + b * DILATIONS[B]) * x_steps[2 + B], inside, NONE, KIND, P)
        best = (one,)
    number_a = counted(begin_a, x_sizes[A], TAPS[A], ENDS[A], DILATIONS[A], WITH_PADDING)
    number_b = counted(begin_b, x_sizes[B], TAPS[B], ENDS[B], DILATIONS[B], WITH_PADDING)
    target = batch * y_steps[0] + channel * y_steps[1] + place * y_steps[2 + ALONG]
    target = y + (target + of_a * y_steps[2 + A] + of_b * y_steps[2 + B])
    for v in tl.static_range(OUTPUTS):
        result = best[v]
        if KIND == "NORM":
            if P == 2:
                result = tl.sqrt(result)
        elif (KIND == "AVERAGE") & IS_INSIDE:
            number = tl.full([ROWS, COLUMNS], TAPS[0] * TAPS[1] * TAPS[2], tl.int32)
            result = _average(result, number, shares, HAS_SHARES, WIDE)
        elif (KIND == "AVERAGE") | (IS_FLOAT and not IS_INSIDE):
            first = begin + v * STRIDES[ALONG]
            number = counted(first, x_sizes[ALONG], TAPS[ALONG], ENDS[ALONG], DILATIONS[ALONG], WITH_PADDING)
            number = number * number_a * number_b
            if KIND == "AVERAGE":
                result = _average(result, number, shares, HAS_SHARES, WIDE)
            else:
                result = tl.where(number == 0, float("-inf"), result)
        is_place = mask & (place + v < places)
        tl.store(target + (none + v) * y_steps[2 + ALONG], result.to(y.dtype.element_ty), mask=is_place)
