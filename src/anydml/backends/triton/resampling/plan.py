"""RESAMPLE and its revisions, their gradients, and UPSAMPLE_2D on a GPU, each in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch

from ....core.enums import InterpolationMode
from ....core.strided_layout import Layout
from ....operators.interpolation import Taps
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs import image, resample
from ...base import Declined
from ...torch.tensors import TYPES
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements
from ..movement import plan as movement
from ..tiles import index_type, steps_of, tiles_of
from .source import Loop, generated

_ROUNDED = "tl.where(tl.abs({y}) < 4503599627370496.0, ({y} + 6755399441055744.0) - 6755399441055744.0, {y})"
"""To the nearest integer, of two the even one, by an addition that leaves no bits behind the point."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    d: Any = desc
    (x,), (y,) = inputs, outputs
    assert x is not None
    declined = between_elements((x, y))
    if declined is not None:
        return declined
    result = "{y}.to(y.dtype.element_ty)"
    if spec.name == "UPSAMPLE_2D":
        if d.InterpolationMode == InterpolationMode.NEAREST_NEIGHBOR:
            return movement.plan(spec, desc, inputs, outputs, device)
        taps, copies = image.taps_of_upsample(d), False
        result = f"({{y}} / {image.divisor_of_upsample(d)!r}).to(y.dtype.element_ty)"
    else:
        taps, copies = resample.taps_of(d), resample.copies(d)
        if y.dtype.kind != "f":
            result = f"{_ROUNDED}.to(tl.int32).to(y.dtype.element_ty)"
    if copies:
        result = "{y}"
    made = _loops(x, y, taps)
    if isinstance(made, Declined):
        return made
    loops, numbers, weights = made
    summed = [(i, loop.most) for i, loop in enumerate(loops) if loop.most]
    summed.sort(key=lambda pair: loops[pair[0]].number)
    if not summed:
        # One loop is looked up, as if it were not in its own place.
        return Declined("it is a copy")
    (*outer, inner) = loops
    rows = prod(loop.size for loop in outer)
    tiles = tiles_of(rows, inner.size)
    if isinstance(tiles, Declined):
        return tiles
    launch = Launch(
        generated(tuple(summed), len(loops), copies, result),
        tiles.programs,
        (
            *(rows, tiles.blocks, *[loop.size for loop in loops]),
            *[step for loop in loops for step in (loop.y, loop.x)],
            *[loops[i].table for i, _ in summed],
        ),
        {**tiles.shape, "INDEX": index_type((x, y), max(rows, inner.size))},
        (movement.POINTED[BITS[y.dtype.itemsize]], None, None, movement.POINTED[BITS[y.dtype.itemsize]])
        if copies
        else (),
    )
    where = torch.device(device)
    of_numbers, of_weights = (torch.from_numpy(each).to(where) for each in (numbers, weights))

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], of_numbers, of_weights, outputs[0])

    kind = BITS[y.dtype.itemsize] if copies else TYPES[y.type]
    words = " x ".join(str(most) for _, most in summed)
    types = [kind, torch.int32, torch.float64, kind]
    return Planned(f"{prod(y.sizes)} elements by tables, of {words} others each", run, ((launch, types),))


def _loops(x: Layout, y: Layout, taps: Sequence[Taps]) -> tuple[list[Loop], Any, Any] | Declined:
    """In the order of the output's memory; what is in its own place in both tensors is one loop."""
    dimensions = sorted(
        zip(y.sizes, steps_of(y), steps_of(x), taps, x.sizes, range(len(y.sizes)), strict=True),
        key=lambda each: -abs(each[1]),
    )
    loops: list[Loop] = []
    numbers: list[Any] = []
    weights: list[Any] = []
    begin = of_weights = 0
    for size, of_y, of_x, table, x_size, number in dimensions:
        if table.is_identity(x_size):
            before = loops[-1] if loops else None
            if size == 1:
                continue
            if before and not before.most and (before.y, before.x) == (of_y * size, of_x * size):
                loops[-1] = Loop(before.size * size, of_y, of_x)
            else:
                loops.append(Loop(size, of_y, of_x))
            continue
        most = max(int(table.counts.max()), 1)
        loops.append(Loop(size, of_y, of_x, most, number, begin))
        numbers += [table.first, table.counts, table.starts + of_weights]
        weights.append(table.weights.astype(np.float64))
        begin += 3 * size
        of_weights += len(weights[-1])
    if max(begin, of_weights) >= WIDE:
        return Declined("tables of more than 2^31 numbers")
    whole = np.concatenate(numbers or [np.zeros(1)]).astype(np.int32)
    return loops or [Loop(1, 0, 0)], whole, np.concatenate(weights or [np.zeros(1)])
