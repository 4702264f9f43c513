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
from . import kernels

TILE, FOLD_TILE = 2048, 512
"""Elements of a program's tile: of UNFOLD, which copies as many for each element of a window, and of FOLD."""


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
    rows, columns = x.sizes[0] * channels, y.sizes[2]
    tiles = tiles_of(rows, columns, TILE)
    if isinstance(tiles, Declined):
        return tiles
    row_sizes, x_row_steps, y_row_steps = inner_first(
        [(x.sizes[0], of_x[0], of_batch), (channels, of_x[1], of_row * taps)]
    )
    places, sizes, x_steps, *of_windows = inner_first(
        [
            (window.places[0], window.size, step, window.taps, window.stride, window.start, window.dilation)
            for window, step in zip(under, of_x[2:], strict=True)
        ]
    )
    farthest = max(window.padded + window.extent for window in under)
    moved = BITS[y.dtype.itemsize]
    launch = Launch(
        kernels.unfold,
        tiles.programs,
        (
            *(rows, columns, tiles.blocks, row_sizes, *divisors(row_sizes), x_row_steps, y_row_steps, of_row),
            *(places, *divisors(places), of_column, sizes, x_steps),
        ),
        {
            **dict(zip(("TAPS", "STRIDES", "STARTS", "DILATIONS"), of_windows, strict=True)),
            **{"ALL_TAPS": taps, "DIMENSIONS": len(under), "LOOPS": len(row_sizes)},
            **tiles.shape,
            "INDEX": index_type((x, y), max(rows, columns, taps, farthest)),
        },
        (POINTED[moved],) * 2,
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    return Planned(f"{rows} channels of {columns} places of a window of {taps}", run, ((launch, [moved, moved]),))


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
        kernels.fold,
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
