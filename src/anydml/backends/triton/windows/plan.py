"""UNFOLD and FOLD on a GPU: windows that slide over a tensor, in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

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
from ..tiles import index_type, inner_first, steps_of, tiles_of
from . import kernels as window_kernels

TILE, WIDEST = 4096, 1024
"""Elements of a program of UNFOLD, which computes little, but more for a row than for a column; and columns of one."""
FOLD_TILE = 512
"""Elements of a program of FOLD."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    read = [layout for layout in inputs if layout is not None]
    declined = between_elements((*read, *outputs))
    if declined is not None:
        return declined
    make = _unfold if spec.name == "UNFOLD" else _fold
    return make(desc, read[0], outputs[0])


def _unfold(desc: Any, x: Layout, y: Layout) -> Planned | Declined:
    under = windows_of_unfold(desc)
    of_x, (of_batch, of_row, of_column) = steps_of(x), steps_of(y)
    taps, channels = prod(desc.WindowSizes), x.sizes[1]
    rows, columns = x.sizes[0] * channels * taps, y.sizes[2]
    tiles = tiles_of(rows, columns, TILE, WIDEST)
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
