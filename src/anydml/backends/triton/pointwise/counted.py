"""FILL_VALUE_SEQUENCE, RANDOM_GENERATOR and VALUE_SCALE_2D on a GPU: elements of which the place tells what is
computed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.fill import value_as
from ....operators.specs.random import MULTIPLIERS, ROUNDS, WEYL
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import Launch, Planned, Tensors, between_elements, too_many
from ..tiles import folded_loops, index_type, inner_first, steps_of, tiles_of
from . import kernels as counted_kernels

BLOCK = 1024
"""Elements of a program; of halves twice, and of bytes four times as many."""
TILE = 2048
"""Likewise of images."""
RANDOM = 256
"""Blocks of 4 random numbers of a program."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    layouts = [layout for layout in (*inputs, *outputs) if layout is not None]
    declined = between_elements(layouts)
    if declined is not None:
        return declined
    if spec.name == "RANDOM_GENERATOR":
        return _random(*layouts)
    return _sequence(desc, outputs[0]) if spec.name == "FILL_VALUE_SEQUENCE" else _scaled(desc, *layouts)


def _sequence(desc: Any, y: Layout) -> Planned | Declined:
    exact = np.float64 if y.dtype.kind == "f" else np.int64
    count, block = prod(y.sizes), BLOCK * max(1, 4 // y.dtype.itemsize)
    programs = -(-count // block)
    declined = too_many(programs)
    if declined is not None:
        return declined
    ends = [
        value_as(value, desc.ValueDataType).astype(exact).view(np.int64) for value in (desc.ValueStart, desc.ValueDelta)
    ]
    sizes, steps = inner_first(folded_loops(y.sizes, [steps_of(y)])[0])
    launch = Launch(
        counted_kernels.count_up,
        programs,
        (count, *map(int, ends), sizes, steps),
        {
            "IS_FLOAT": exact is np.float64,
            "LOOPS": len(sizes),
            "BLOCK": block,
            "INDEX": index_type((y,), programs * block),
        },
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(outputs[0])

    return Planned(f"count {count} elements", run, ((launch, [TYPES[y.type]]),))


def _random(state: Layout, y: Layout, new_state: Layout | None = None) -> Planned | Declined:
    count = prod(y.sizes)
    programs = -(-count // (4 * RANDOM))
    declined = too_many(programs)
    if declined is not None:
        return declined
    sizes, steps = inner_first(folded_loops(y.sizes, [steps_of(y)])[0])
    launch = Launch(
        counted_kernels.random_blocks,
        programs,
        (count, steps_of(state)[-1], steps_of(new_state or state)[-1], sizes, *divisors(sizes), steps),
        {
            "HAS_STATE": new_state is not None,
            "MULTIPLIERS": MULTIPLIERS,
            "WEYL": WEYL,
            "ROUNDS": ROUNDS,
            "LOOPS": len(sizes),
            "BLOCK": RANDOM,
            "INDEX": index_type((y,), programs * 4 * RANDOM),
        },
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0], outputs[-1])

    word = torch.uint32
    return Planned(f"{count} random numbers, 4 of each count", run, ((launch, [word, word, new_state and word]),))


def _scaled(desc: Any, x: Layout, y: Layout) -> Planned | Declined:
    of_x, of_y = steps_of(x), steps_of(y)
    rows, columns = prod(y.sizes[:2]), prod(y.sizes[2:])
    tiles = tiles_of(rows, columns, TILE)
    if isinstance(tiles, Declined):
        return tiles
    row_loops = [(each[1], each[0]) for each in (y.sizes, of_x, of_y)]
    loops = inner_first(folded_loops(y.sizes[2:], [of_x[2:], of_y[2:]])[0], 2)
    launch = Launch(
        counted_kernels.scale_channels,
        tiles.programs,
        (rows, columns, tiles.blocks, y.sizes[1], *row_loops, *loops),
        {
            "SCALE": float(desc.Scale),
            "BIAS": tuple(map(float, desc.Bias)),
            "LOOPS": len(loops[0]),
            **tiles.shape,
            "INDEX": index_type((x, y), max(rows, columns)),
        },
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], outputs[0])

    kind = TYPES[y.type]
    return Planned(f"{rows} rows of one channel each", run, ((launch, [kind, kind]),))
