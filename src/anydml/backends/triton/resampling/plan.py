"""RESAMPLE and its revisions, their gradients, and UPSAMPLE_2D on a GPU, each in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, prod
from typing import Any

import numpy as np
import torch
import triton.language as tl

from ....core.enums import InterpolationMode
from ....core.strided_layout import Layout
from ....operators.interpolation import Taps
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs import image, resample
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements
from ..movement import plan as movement
from ..tiles import index_type, steps_of, tiles_of
from .source import UNROLLED, Loop, generated

TILE, WARPS, WIDEST = 512, 1, 128
"""Elements of a program, its warps and columns: a thread has several rows of a column, whose table is read once."""
MANY, WARPS_OF_MANY, WIDEST_OF_MANY = 5, 4, 256
"""Others that an element is made of, from which on there are more of these, as a thread holds fewer then."""
FEW = 16
"""Elements of the innermost loop, such as channels, that belong to the loop around them, whose table has them all."""

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
        divisor = image.divisor_of_upsample(d)
        # A power of 2 has a reciprocal that is no other number.
        divided = f"* {1 / divisor!r}" if frexp(divisor)[0] == 0.5 else f"/ {divisor!r}"
        result = f"({{y}} {divided}).to(y.dtype.element_ty)"
    else:
        taps, copies = resample.taps_of(d), resample.copies(d)
        if y.dtype.kind != "f":
            result = f"{_ROUNDED}.to(tl.int32).to(y.dtype.element_ty)"
    if copies:
        result = "{y}"
    index = index_type((x, y), prod(y.sizes))
    made = _loops(x, y, taps, np.int64 if index == tl.int64 else np.int32)
    if isinstance(made, Declined):
        return made
    loops, numbers, weights = made
    summed = [(i, loop.most) for i, loop in enumerate(loops) if loop.most]
    summed.sort(key=lambda pair: loops[pair[0]].number)
    if not summed:
        return Declined("it is a copy")
    (*outer, inner) = loops
    rows = prod(loop.size for loop in outer)
    is_many = prod(most for _, most in summed) >= MANY
    tiles = tiles_of(rows, inner.size, TILE, WIDEST_OF_MANY if is_many else WIDEST)
    if isinstance(tiles, Declined):
        return tiles
    multipliers, shifts = divisors([loop.size for loop in loops])
    may_lack = any((each.counts == 0).any() for each in taps)
    moved = movement.POINTED[BITS[y.dtype.itemsize]]
    launch = Launch(
        generated(tuple(summed), len(loops), copies, may_lack, result),
        tiles.programs,
        (
            *(rows, tiles.blocks, *[loop.size for loop in loops]),
            *[number for i in range(1, len(loops) - 1) for number in (multipliers[i], shifts[i])],
            *[step for loop in loops for step in (loop.y, loop.x)],
            *[begin for i, _ in summed for begin in (loops[i].table, loops[i].weights)],
        ),
        {**tiles.shape, "INDEX": index},
        (moved, None, None, moved) if copies else (),
        num_warps=WARPS_OF_MANY if is_many else WARPS,
    )
    where = torch.device(device)
    of_numbers, of_weights = (torch.from_numpy(each).to(where) for each in (numbers, weights))

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], of_numbers, of_weights, outputs[0])

    kind = BITS[y.dtype.itemsize] if copies else TYPES[y.type]
    words = " x ".join(str(most) for _, most in summed)
    types = [kind, of_numbers.dtype, torch.float64, kind]
    return Planned(f"{prod(y.sizes)} elements by tables, of {words} others each", run, ((launch, types),))


def _loops(x: Layout, y: Layout, taps: Sequence[Taps], index: Any) -> tuple[list[Loop], Any, Any] | Declined:
    """In the order of the output's memory; what is in its own place in both tensors is one loop, and few elements of
    the innermost one of these belong to the table of what is around them."""
    dimensions = sorted(
        zip(y.sizes, steps_of(y), steps_of(x), taps, x.sizes, range(len(y.sizes)), strict=True),
        key=lambda each: -abs(each[1]),
    )
    loops: list[Loop] = []
    tables: dict[int, Taps] = {}
    for size, of_y, of_x, table, x_size, number in dimensions:
        if not table.is_identity(x_size):
            tables[number] = table
            loops.append(Loop(size, of_y, of_x, max(int(table.counts.max()), 1), number))
            continue
        before = loops[-1] if loops else None
        if size == 1:
            continue
        if before and not before.most and (before.y, before.x) == (of_y * size, of_x * size):
            loops[-1] = Loop(before.size * size, of_y, of_x)
        else:
            loops.append(Loop(size, of_y, of_x))
    beside = None
    if len(loops) > 1 and not loops[-1].most and loops[-1].size <= FEW and loops[-2].most:
        last, around = loops[-1], loops[-2]
        if around.y == last.y * last.size:
            beside = last
            loops[-2:] = [around._replace(size=around.size * last.size, y=last.y)]
    numbers: list[Any] = []
    weights: list[Any] = []
    begin = of_weights = 0
    for i, loop in enumerate(loops):
        if not loop.most:
            continue
        table, repeats = tables[loop.number], 1
        first = table.first.astype(np.int64) * loop.x
        if beside is not None and i == len(loops) - 1:
            repeats = beside.size
            first = (first[:, None] + np.arange(repeats) * beside.x).reshape(-1)
        counts, starts = (np.repeat(each, repeats) for each in (table.counts, table.starts))
        loops[i] = loop._replace(table=begin, weights=of_weights)
        numbers += [first, counts, starts]
        begin += 3 * loop.size
        if loop.most <= UNROLLED:
            every = np.arange(loop.most)[:, None]
            inside = every < counts
            found = table.weights[np.where(inside, starts + every, 0)]
            weights.append(np.where(inside, found, 0).astype(np.float64).reshape(-1))
        else:
            weights.append(table.weights.astype(np.float64))
        of_weights += len(weights[-1])
    if max(begin, of_weights) >= WIDE:
        return Declined("tables of more than 2^31 numbers")
    whole = np.concatenate(numbers or [np.zeros(1)]).astype(index)
    return loops or [Loop(1, 0, 0)], whole, np.concatenate(weights or [np.zeros(1)])
