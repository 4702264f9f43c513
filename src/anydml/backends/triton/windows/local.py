"""Local responses on a GPU, and their gradients: across channels in one kernel where these are planes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..tiles import Tiles, index_type, inner_first, steps_of, tiles_of
from . import local_kernels

TILE = 512
"""Elements of a program that has a tile."""
STRIP, CHANNELS, LONGEST_WINDOW = 512, 16, 9
"""Positions of a program that has a strip, half as many of gradients; its channels; and elements of a window, of which
a thread keeps all."""
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
    return declined or _planned(desc, read, outputs[0], torch.device(device))


def _planned(desc: Any, read: Sequence[Layout], y: Layout, device: torch.device) -> Planned | Declined:
    x, dy = read[0], read[-1]
    is_square, is_gradient = not desc.CrossChannel, len(read) > 1
    along = (2, 3) if is_square else (1,)
    strides = [steps_of(each) for each in (x, dy, y)]
    # In the order of memory; what is summed along is a loop of its own.
    order = sorted(range(4), key=lambda i: -abs(strides[-1][i]))
    loops = _loops(order, y.sizes, strides, along)
    *rows_of, inner = loops
    rows, columns = prod(loop.size for loop in rows_of), inner.size
    tiles = tiles_of(rows, columns, TILE)
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
    wide = torch.float64 if x.dtype.itemsize > 2 or is_gradient else torch.float32
    of_sums = {
        "BIAS": float(desc.Bias),
        "FACTOR": desc.Alpha / desc.LocalSize,
        "OF_SUM": 2 * desc.Alpha * desc.Beta / desc.LocalSize,
        "EXPONENT": -float(desc.Beta),
        "IS_WHOLE": float(desc.Beta).is_integer(),
        "IS_ODD": desc.Beta % 2 == 1,
        "IS_POSITIVE": desc.Bias >= LEAST and desc.Alpha >= 0,
        "WIDE": tl.float64 if wide == torch.float64 else tl.float32,
    }
    are_planes = not is_square and inner.number < 0 and bool(rows_of) and rows_of[-1].number == 1
    if are_planes and before + after < LONGEST_WINDOW:
        return _by_strips(loops, before, after, of_sums, (*read, y), len(read) > 1)
    row_sizes, *row_steps = inner_first([(loop.size, *loop.steps) for loop in rows_of], 3)
    arguments = (
        *(rows, columns, tiles.blocks, one.size, other.size),
        *[max(each.inside // columns, 1) for each in (one, other)],
        *(row_sizes, *divisors(row_sizes), *row_steps, *inner.steps),
        *(one.steps[0], other.steps[0], one.inside, other.inside),
    )
    constants: Mapping[str, Any] = {
        **{"BEFORE": before, "AFTER": after, "UNROLLED": before + after < UNROLLED},
        "IS_SQUARE": is_square,
        "IN_COLUMNS": along.index(inner.number) + 1 if inner.number in along else 0,
        **of_sums,
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


def _by_strips(
    loops: Sequence[_Loop],
    before: int,
    after: int,
    of_sums: Mapping[str, Any],
    layouts: Sequence[Layout],
    is_gradient: bool,
) -> Planned | Declined:
    """Of channels that are planes, a strip of some of them for each program, at positions side by side."""
    *around, along, inner = loops
    size, block = along.size, STRIP // 2 if is_gradient else STRIP
    channels = min(CHANNELS, next_power_of_2(size))
    blocks, chunks = -(-inner.size // block), -(-size // channels)
    programs = blocks * chunks * prod(loop.size for loop in around)
    declined = too_many(programs)
    if declined is not None:
        return declined
    sizes, *steps = inner_first([(loop.size, *loop.steps) for loop in around], 3)
    arguments = (inner.size, blocks, chunks, size, sizes, *divisors(sizes), *steps, *along.steps, *inner.steps)
    kind = TYPES[layouts[-1].type]
    constants = {
        **{"IS_GRADIENT": is_gradient, "BEFORE": before, "AFTER": after, "CHANNELS": channels},
        **of_sums,
        "LOOPS": len(sizes),
        "BLOCK": block,
        "INDEX": index_type(layouts, max(programs, blocks * block)),
    }
    launch = Launch(local_kernels.local_strips, programs, arguments, constants)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        launch(inputs[0], inputs[-1], outputs[0])

    words = f"{size} channels of planes of {inner.size} elements, {before + after + 1} around each, in strips"
    return Planned(words, run, ((launch, [kind] * 3),))


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
    return Launch(local_kernels.local_response, tiles.programs, arguments, constants, num_warps=warps)
