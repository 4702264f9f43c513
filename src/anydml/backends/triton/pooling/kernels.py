"""Triton's kernels of pooling of any type and layout, with indices, and of its gradients.

A program has a tile of what is written, rows by columns. Dimensions are batch, channels, depth, height and width, in
the order of memory: columns are the innermost one, rows all others, so that little is computed for each element. ORDER
says which of these loops a dimension is.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ..loops import is_within, quotient
from ..reduction.kernels import decomposed


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
def _tile(
    rows, columns, blocks, sizes, multipliers, shifts, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr
):  # fmt: skip
    """The rows and columns of a program's tile, which of its elements are there, and their indices."""
    program = tl.program_id(0)
    number = (program // blocks).to(INDEX) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % blocks).to(INDEX) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (number < rows) & (column < columns)
    return number, column, mask, _parts(number, column, sizes, multipliers, shifts)


@triton.jit
def _counted(origin, size, TAPS: tl.constexpr, END: tl.constexpr, DILATION: tl.constexpr, WITH_PADDING: tl.constexpr):
    """How many taps of a window that begins at `origin` lie on elements along a dimension, or on declared padding."""
    end = size + END if WITH_PADDING else size
    behind = tl.minimum((tl.maximum(end - origin, 0) + (DILATION - 1)) // DILATION, TAPS)
    before = origin * 0 if WITH_PADDING else (tl.maximum(origin * -1, 0) + (DILATION - 1)) // DILATION
    return tl.maximum(behind - before, 0)


@triton.jit
def _better(best, place, here, number, inside, IS_FLOAT: tl.constexpr):
    """The larger element and its number in the plane; the first one of equal ones; a number is larger than a NaN."""
    is_better = (here > best) | (place < 0)
    if IS_FLOAT:
        is_better = is_better | ((best != best) & (here == here))
    is_better = is_better & inside
    return tl.where(is_better, here, best), tl.where(is_better, number, place)


@triton.jit
def find_maxima(
    x, y, indices, rows, columns, blocks, channels, x_sizes, sizes, multipliers, shifts, x_steps, y_steps, index_steps,
    LOWEST: tl.constexpr, OF_PLANES: tl.constexpr, IS_FLOAT: tl.constexpr, WIDE: tl.constexpr, UNROLLED: tl.constexpr,
    ORDER: tl.constexpr, TAPS: tl.constexpr, STRIDES: tl.constexpr, STARTS: tl.constexpr, ENDS: tl.constexpr,
    DILATIONS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Maxima of windows, and where they lie in the whole tensor, 0 of no element. OF_PLANES: instead, where they lie in
    their planes alone, -1 of no element, in the order of the numbers of windows."""
    number, column, mask, parts = _tile(rows, columns, blocks, sizes, multipliers, shifts, ROWS, COLUMNS, INDEX)
    batch, channel = parts[ORDER[0]], parts[ORDER[1]]
    i, j, k = parts[ORDER[2]], parts[ORDER[3]], parts[ORDER[4]]
    d, h, w = x_sizes
    first = x + (batch * x_steps[0] + channel * x_steps[1])
    top, row, left = i * STRIDES[0] - STARTS[0], j * STRIDES[1] - STARTS[1], k * STRIDES[2] - STARTS[2]
    best = tl.zeros([ROWS, COLUMNS], WIDE)
    place = tl.full([ROWS, COLUMNS], -1, INDEX)
    if UNROLLED:
        for tap in tl.static_range(TAPS[0] * TAPS[1] * TAPS[2]):
            depth, down = top + tap // (TAPS[1] * TAPS[2]) * DILATIONS[0], row + tap // TAPS[2] % TAPS[1] * DILATIONS[1]
            across = left + tap % TAPS[2] * DILATIONS[2]
            inside = mask & is_within(depth, d) & is_within(down, h) & is_within(across, w)
            at = first + (depth * x_steps[2] + down * x_steps[3] + across * x_steps[4])
            here = tl.load(at, mask=inside, other=0).to(WIDE)
            best, place = _better(best, place, here, (depth * h + down) * w + across, inside, IS_FLOAT)
    else:
        for a in range(TAPS[0]):
            for b in range(TAPS[1]):
                for c in range(TAPS[2]):
                    depth, down, across = top + a * DILATIONS[0], row + b * DILATIONS[1], left + c * DILATIONS[2]
                    inside = mask & is_within(depth, d) & is_within(down, h) & is_within(across, w)
                    at = first + (depth * x_steps[2] + down * x_steps[3] + across * x_steps[4])
                    here = tl.load(at, mask=inside, other=0).to(WIDE)
                    best, place = _better(best, place, here, (depth * h + down) * w + across, inside, IS_FLOAT)
    if OF_PLANES:
        tl.store(indices + (number * columns + column), place.to(indices.dtype.element_ty), mask=mask)
    else:
        best = tl.where(place < 0, tl.full([ROWS, COLUMNS], LOWEST, WIDE), best)
        target = batch * y_steps[0] + channel * y_steps[1] + i * y_steps[2] + j * y_steps[3] + k * y_steps[4]
        tl.store(y + target, best.to(y.dtype.element_ty), mask=mask)
        target = batch * index_steps[0] + channel * index_steps[1] + i * index_steps[2]
        target = target + j * index_steps[3] + k * index_steps[4]
        place = tl.where(place < 0, 0, (batch * channels + channel) * (d * h * w) + place)
        tl.store(indices + target, place.to(indices.dtype.element_ty), mask=mask)


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
def _average(total, number, shares, HAS_SHARES: tl.constexpr, WIDE: tl.constexpr):
    """total / number: of doubles rounded once, by Markstein's correction of a product with the inverse."""
    if not HAS_SHARES:
        share = _inverse(tl.maximum(number, 1)).to(WIDE)
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
    _, _, mask, parts = _tile(rows, columns, blocks, sizes, multipliers, shifts, ROWS, COLUMNS, INDEX)
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
    number_a = _counted(begin_a, x_sizes[A], TAPS[A], ENDS[A], DILATIONS[A], WITH_PADDING)
    number_b = _counted(begin_b, x_sizes[B], TAPS[B], ENDS[B], DILATIONS[B], WITH_PADDING)
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
            number = _counted(first, x_sizes[ALONG], TAPS[ALONG], ENDS[ALONG], DILATIONS[ALONG], WITH_PADDING)
            number = number * number_a * number_b
            if KIND == "AVERAGE":
                result = _average(result, number, shares, HAS_SHARES, WIDE)
            else:
                result = tl.where(number == 0, float("-inf"), result)
        is_place = mask & (place + v < places)
        tl.store(target + (none + v) * y_steps[2 + ALONG], result.to(y.dtype.element_ty), mask=is_place)


@triton.jit
def _windows_over(
    element, places, TAPS: tl.constexpr, STRIDE: tl.constexpr, START: tl.constexpr, DILATION: tl.constexpr
):  # fmt: skip
    """The first and the last window that reach over an element; with dilation they may have it between taps."""
    reach = element + START
    first = (tl.maximum(reach - (TAPS - 1) * DILATION, 0) + (STRIDE - 1)) // STRIDE
    return first, tl.minimum(reach // STRIDE, places - 1)


@triton.jit
def _inverse(number):
    """1 / number of small integers, as a double: that of singles, and two of Newton's steps, r * (2 - n * r)."""
    wide = number.to(tl.float64)
    r = (1.0 / number.to(tl.float32)).to(tl.float64)
    r = r * (wide * r * -1 + 2)
    return r * (wide * r * -1 + 2)


@triton.jit
def _given_back(
    gradient, indices, from_gradient, from_index, mask, own, i, j, k, last_i, last_j, last_k, d, h, w, total,
    gradient_steps, index_steps, KIND: tl.constexpr, HAS_SHARES: tl.constexpr, WITH_PADDING: tl.constexpr,
    TAPS: tl.constexpr, STRIDES: tl.constexpr, STARTS: tl.constexpr, ENDS: tl.constexpr,
):  # fmt: skip
    """The sum with what the window at i, j, k has for an element."""
    is_over = mask & (i <= last_i) & (j <= last_j) & (k <= last_k)
    if KIND == "MAXIMUM":
        at = from_index + i * index_steps[2] + j * index_steps[3] + k * index_steps[4]
        is_over = is_over & (tl.load(indices + at, mask=is_over, other=-1) == own)
    at = from_gradient + i * gradient_steps[2] + j * gradient_steps[3] + k * gradient_steps[4]
    value = tl.load(gradient + at, mask=is_over, other=0).to(tl.float64)
    if KIND == "AVERAGE":
        number = _counted(i * STRIDES[0] - STARTS[0], d, TAPS[0], ENDS[0], 1, WITH_PADDING)
        number = number * _counted(j * STRIDES[1] - STARTS[1], h, TAPS[1], ENDS[1], 1, WITH_PADDING)
        number = number * _counted(k * STRIDES[2] - STARTS[2], w, TAPS[2], ENDS[2], 1, WITH_PADDING)
        if HAS_SHARES:
            value = value * tl.load(indices + number)
        else:
            value = value * _inverse(tl.maximum(number, 1))
    return tl.where(is_over, total + value, total)


@triton.jit
def pool_gradients(
    gradient, indices, y, rows, columns, blocks, d, h, w, out_d, out_h, out_w, sizes, multipliers, shifts,
    gradient_steps, index_steps, y_steps,
    KIND: tl.constexpr, HAS_SHARES: tl.constexpr, WITH_PADDING: tl.constexpr, UNROLLED: tl.constexpr,
    ORDER: tl.constexpr, COVERS: tl.constexpr, TAPS: tl.constexpr, STRIDES: tl.constexpr, STARTS: tl.constexpr,
    ENDS: tl.constexpr, DILATIONS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, INDEX: tl.constexpr,
):  # fmt: skip
    """Sums, for each element, the gradients of the windows whose maximum it is, or its shares of averages', in
    row-major order. COVERS: how many windows reach over an element at most. HAS_SHARES: `indices` has 1 / n of each
    number n of taps, and 1 for none."""
    _, _, mask, parts = _tile(rows, columns, blocks, sizes, multipliers, shifts, ROWS, COLUMNS, INDEX)
    batch, channel = parts[ORDER[0]], parts[ORDER[1]]
    i, j, k = parts[ORDER[2]], parts[ORDER[3]], parts[ORDER[4]]
    from_gradient = batch * gradient_steps[0] + channel * gradient_steps[1]
    from_index = batch * index_steps[0] + channel * index_steps[1]
    own = (i * h + j) * w + k
    first_i, last_i = _windows_over(i, out_d, TAPS[0], STRIDES[0], STARTS[0], DILATIONS[0])
    first_j, last_j = _windows_over(j, out_h, TAPS[1], STRIDES[1], STARTS[1], DILATIONS[1])
    first_k, last_k = _windows_over(k, out_w, TAPS[2], STRIDES[2], STARTS[2], DILATIONS[2])
    total = tl.zeros([ROWS, COLUMNS], tl.float64)
    if UNROLLED:
        for n in tl.static_range(COVERS[0] * COVERS[1] * COVERS[2]):
            total = _given_back(
                gradient, indices, from_gradient, from_index, mask, own, first_i + n // (COVERS[1] * COVERS[2]),
                first_j + n // COVERS[2] % COVERS[1], first_k + n % COVERS[2], last_i, last_j, last_k, d, h, w, total,
                gradient_steps, index_steps, KIND, HAS_SHARES, WITH_PADDING, TAPS, STRIDES, STARTS, ENDS,
            )  # fmt: skip
    else:
        for a in range(COVERS[0]):
            for b in range(COVERS[1]):
                for c in range(COVERS[2]):
                    total = _given_back(
                        gradient, indices, from_gradient, from_index, mask, own, first_i + a, first_j + b, first_k + c,
                        last_i, last_j, last_k, d, h, w, total,
                        gradient_steps, index_steps, KIND, HAS_SHARES, WITH_PADDING, TAPS, STRIDES, STARTS, ENDS,
                    )  # fmt: skip
    target = batch * y_steps[0] + channel * y_steps[1] + i * y_steps[2] + j * y_steps[3] + k * y_steps[4]
    tl.store(y + target, total.to(y.dtype.element_ty), mask=mask)


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
        taps = _counted(row * DOWN - STARTS[0], h, TAPS[0], ENDS[0], 1, WITH_PADDING)
        taps = taps * _counted(place * ACROSS - STARTS[1], w, TAPS[1], ENDS[1], 1, WITH_PADDING)
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
        value = value * _inverse(row * 0 + columns)
    # A sum, of which a -0 is 0.
    value = tl.broadcast_to((value + 0.0).to(y.dtype.element_ty), [ROWS, COLUMNS])
    if KIND == "MAXIMUM":
        value = tl.where(column == first, value, 0.0)
    at = decomposed(row, row_sizes, y_rows, LOOPS) + decomposed(column, sizes, y_steps, PLANE_LOOPS)
    tl.store(y + at, value.to(y.dtype.element_ty), mask=mask)
