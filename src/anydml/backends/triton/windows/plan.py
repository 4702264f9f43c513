"""UNFOLD, FOLD and local responses on a GPU: what slides over a tensor, in one kernel, of gradients in two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.fold import windows as windows_of_fold
from ....operators.specs.unfold import windows as windows_of_unfold
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import BITS, Launch, Planned, Tensors, between_elements
from ..movement.plan import POINTED
from ..tiles import Tiles, index_type, inner_first, steps_of, tiles_of
from . import kernels as window_kernels

TILE = 4096
"""Elements of a program of UNFOLD, which computes little."""
LOCAL_TILE = FOLD_TILE = 512
"""Likewise of local responses, and of FOLD."""
MOST_AROUND, LOADS = 256, 16
"""Elements around each, and those for each call of PyTorch, up to one of which a local response adds them one by one:
of more, the calls read and write all elements less often than the kernel loads them."""
LEAST = 2.0**-100
"""A Bias from which on no sum is 0, or below it."""
UNROLLED = 16
"""Elements along a dimension, whose loop is unrolled below it, so that all are loaded at once."""
WARPS, WARPS_OF_MANY = 2, 4
"""Of local responses along channels; of those in squares, and of gradients."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    read = [layout for layout in inputs if layout is not None]
    declined = between_elements((*read, *outputs))
    if declined is not None:
        return declined
    if spec.name == "UNFOLD":
        return _unfold(desc, read[0], outputs[0])
    if spec.name == "FOLD":
        return _fold(desc, read[0], outputs[0])
    return _local_response(desc, read, outputs[0], torch.device(device))


def _unfold(desc: Any, x: Layout, y: Layout) -> Planned | Declined:
    under = windows_of_unfold(desc)
    of_x, (of_batch, of_row, of_column) = steps_of(x), steps_of(y)
    taps, channels = prod(desc.WindowSizes), x.sizes[1]
    rows, columns = x.sizes[0] * channels * taps, y.sizes[2]
    tiles = tiles_of(rows, columns, TILE)
    if isinstance(tiles, Declined):
        return tiles
    loops = [(x.sizes[0], of_x[0], of_batch), (channels, of_x[1], of_row * taps)]
    step = taps
    for window in under:
        step //= window.taps
        loops.append((window.taps, 0, of_row * step))
    row_sizes, x_row_steps, y_row_steps = inner_first(loops)
    places, strides, sizes, x_steps, starts, dilations = inner_first(
        [
            (window.places[0], window.stride, window.size, step, window.start, window.dilation)
            for window, step in zip(under, of_x[2:], strict=True)
        ]
    )
    farthest = max(window.padded + window.extent for window in under)
    moved = BITS[y.dtype.itemsize]
    launch = Launch(
        window_kernels.unfold,
        tiles.programs,
        (
            *(rows, columns, tiles.blocks, row_sizes, *divisors(row_sizes), x_row_steps, y_row_steps, dilations),
            *(places, *divisors(places), strides, of_column, sizes, x_steps, starts),
        ),
        {
            "DIMENSIONS": len(under),
            "LOOPS": len(loops),
            **tiles.shape,
            "INDEX": index_type((x, y), max(rows, columns, farthest)),
        },
        (POINTED[moved],) * 2,
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    return Planned(f"{rows} rows of {columns} places of a window", run, ((launch, [moved, moved]),))


def _fold(desc: Any, x: Layout, y: Layout) -> Planned | Declined:
    under = windows_of_fold(desc)
    of_x, of_y = steps_of(x)[-3:], steps_of(y)
    taps, (batch, channels) = prod(desc.WindowSizes), y.sizes[:2]
    rows, columns = batch * channels, prod(y.sizes[2:])
    tiles = tiles_of(rows, columns, FOLD_TILE)
    if isinstance(tiles, Declined):
        return tiles
    loops = [(batch, of_x[0], of_y[0]), (channels, of_x[1] * taps, of_y[1])]
    along = inner_first(
        [
            (window.size, step, window.taps, window.dilation, window.start, window.places[0], window.stride)
            for window, step in zip(under, of_y[2:], strict=True)
        ]
    )
    farthest = max(window.padded + window.extent for window in under)
    is_float, item = y.dtype.kind == "f", y.dtype.itemsize
    # Integers wrap alike in what is wider.
    wide = (tl.float64 if item > 2 else tl.float32) if is_float else tl.int64 if item > 4 else tl.int32
    moved = TYPES[y.type] if is_float else BITS[item]
    launch = Launch(
        window_kernels.fold,
        tiles.programs,
        (rows, columns, tiles.blocks, taps, *inner_first(loops), of_x[1], of_x[2], *along[:-1]),
        {
            "STRIDES": along[-1],
            "WIDE": wide,
            "DIMENSIONS": len(under),
            "LOOPS": len(loops),
            **tiles.shape,
            "INDEX": index_type((x, y), max(rows, columns, farthest)),
        },
        () if is_float else (POINTED[moved],) * 2,
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    words = f"{rows} rows of {columns} elements under {taps} elements of a window"
    return Planned(words, run, ((launch, [moved, moved]),))


def _local_response(desc: Any, read: Sequence[Layout], y: Layout, device: torch.device) -> Planned | Declined:
    x, dy = read[0], read[-1]
    is_square, is_gradient = not desc.CrossChannel, len(read) > 1
    along = (2, 3) if is_square else (1,)
    strides = [steps_of(each) for each in (x, dy, y)]
    # In the order of memory; what is summed along is a loop of its own.
    order = sorted(range(4), key=lambda i: -abs(strides[-1][i]))
    loops = _loops(order, y.sizes, strides, along)
    *rows_of, inner = loops
    rows, columns = prod(loop.size for loop in rows_of), inner.size
    tiles = tiles_of(rows, columns, LOCAL_TILE)
    if isinstance(tiles, Declined):
        return tiles
    # Of the dimension that is summed along first, or alone, and of the other one.
    one, other = (next(loop for loop in loops if loop.number == i) for i in (along[0], along[-1]))
    # What lies beyond both ends is not walked to.
    farthest = max(one.size, other.size) - 1
    before, after = (min((desc.LocalSize - k) // 2, farthest) for k in (1, 0))
    # There is a call for each distance in a dimension, but where each element has all others around it.
    distances = (before + after + 1) * sum(min(before, after) < y.sizes[i] - 1 for i in along)
    if (around := (before + after + 1) ** len(along)) > max(MOST_AROUND, LOADS * distances):
        return Declined(f"{around} elements around each")
    row_sizes, *row_steps = inner_first([(loop.size, *loop.steps) for loop in rows_of], 3)
    arguments = (
        *(rows, columns, tiles.blocks, one.size, other.size),
        *[max(each.inside // columns, 1) for each in (one, other)],
        *(row_sizes, *divisors(row_sizes), *row_steps, *inner.steps),
        *(one.steps[0], other.steps[0], one.inside, other.inside),
    )
    wide = torch.float64 if x.dtype.itemsize > 2 or is_gradient else torch.float32
    constants: Mapping[str, Any] = {
        **{"BEFORE": before, "AFTER": after, "UNROLLED": before + after < UNROLLED},
        "IS_SQUARE": is_square,
        "IN_COLUMNS": along.index(inner.number) + 1 if inner.number in along else 0,
        "BIAS": float(desc.Bias),
        "FACTOR": desc.Alpha / desc.LocalSize,
        "OF_SUM": 2 * desc.Alpha * desc.Beta / desc.LocalSize,
        "EXPONENT": -float(desc.Beta),
        "IS_WHOLE": float(desc.Beta).is_integer(),
        "IS_ODD": desc.Beta % 2 == 1,
        "IS_POSITIVE": desc.Bias >= LEAST and desc.Alpha >= 0,
        "WIDE": tl.float64 if wide == torch.float64 else tl.float32,
        "LOOPS": len(row_sizes),
        **tiles.shape,
        "INDEX": index_type((*read, y), max(rows, columns, rows * columns)),
    }
    kind = TYPES[y.type]
    words = f"{rows} rows of {columns} elements, {desc.LocalSize} around each"
    if not is_gradient:
        launch = _launch(tiles, arguments, {"PART": "RESULT", **constants})

        def run(inputs: Tensors, outputs: Tensors) -> None:
            launch(inputs[0], inputs[0], inputs[0], outputs[0])

        return Planned(words, run, ((launch, [kind] * 4),))

    terms = _launch(tiles, arguments, {"PART": "TERMS", **constants})
    gradient = _launch(tiles, arguments, {"PART": "GRADIENT", **constants})

    def run_gradient(inputs: Tensors, outputs: Tensors) -> None:
        held = torch.empty(rows * columns, dtype=torch.float64, device=device)
        terms(*inputs, held, held)
        gradient(*inputs, held, outputs[0])

    launches = (terms, [kind, kind, wide, wide]), (gradient, [kind, kind, wide, kind])
    return Planned(f"{words}, in two passes", run_gradient, launches)


class _Loop(NamedTuple):
    size: int
    steps: tuple[int, ...]
    number: int
    """Of the dimension; -1 of one that nothing is summed along."""
    inside: int
    """Elements of all loops within it."""


def _loops(
    order: Sequence[int], sizes: Sequence[int], strides: Sequence[Sequence[int]], along: Sequence[int]
) -> list[_Loop]:
    """Loops over dimensions in an order, of which those that all tensors walk as one are one."""
    loops: list[_Loop] = []
    for i in order:
        steps, number = tuple([each[i] for each in strides]), i if i in along else -1
        before = loops[-1] if loops else None
        if number < 0 and sizes[i] == 1:
            continue
        if before and max(number, before.number) < 0 and before.steps == tuple([step * sizes[i] for step in steps]):
            loops[-1] = _Loop(before.size * sizes[i], steps, -1, 1)
        else:
            loops.append(_Loop(sizes[i], steps, number, 1))
    return [loop._replace(inside=prod(each.size for each in loops[n + 1 :])) for n, loop in enumerate(loops)]


def _launch(tiles: Tiles, arguments: Sequence[Any], constants: dict[str, Any]) -> Launch:
    is_little = constants["PART"] == "RESULT" and not constants["IS_SQUARE"]
    warps = WARPS if is_little else WARPS_OF_MANY
    return Launch(window_kernels.local_response, tiles.programs, arguments, constants, num_warps=warps)
