"""SCATTER_ELEMENTS, SCATTER_ND and MAX_UNPOOLING on a GPU: the last update of each place is found, and
then all is written once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
import triton.language as tl

from ....core.strided_layout import Layout
from ....core.tensor_desc import packed_strides
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.gather_nd import dimensions_of
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements, too_many
from ..tiles import folded_loops, index_type, inner_first, steps_of, tiles_of
from . import scatter_kernels
from .plan import POINTED

BLOCK = 1024
"""Elements of a program."""
TILE = 2048
"""Likewise where slices are copied."""
WINDOW, MOST_WINDOWS = 3 << 23, 12
"""Bytes of the numbers of updates that are found at once, where they are spread over more, and how many times there may
be as many."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    layouts = [layout for layout in (*inputs, *outputs) if layout is not None]
    declined = between_elements(layouts)
    if declined is not None:
        return declined
    if spec.name == "MAX_UNPOOLING":
        x, indices, y = layouts
        return _unpooled(x, indices, y, torch.device(device))
    x, indices, updates, y = layouts
    make = _elements if spec.name == "SCATTER_ELEMENTS" else _points
    return make(desc, x, indices, updates, y, torch.device(device))


def _elements(
    desc: Any, x: Layout, indices: Layout, updates: Layout, y: Layout, device: torch.device
) -> Planned | Declined:
    axis, length = desc.Axis, indices.sizes[desc.Axis]
    count, marked = prod(y.sizes), prod(indices.sizes)
    programs = -(-count // BLOCK), -(-marked // BLOCK)
    declined = too_many(max(programs))
    if declined is not None:
        return declined
    of_x, of_indices, of_updates, of_y = map(steps_of, (x, indices, updates, y))
    places = packed_strides(y.sizes)
    along, update_step = places[axis], of_updates[axis]
    without_axis = [[0 if i == axis else step for i, step in enumerate(each)] for each in (places, of_updates)]
    index = index_type((x, indices, updates, y), max(*programs) * BLOCK)
    moved, numbers = BITS[y.dtype.itemsize], torch.int64 if length >= WIDE else torch.int32
    bits = POINTED[moved]
    constants = {"BLOCK": BLOCK, "INDEX": index}
    loops, kept = folded_loops(indices.sizes, [of_indices, without_axis[0]], axis)
    sizes, *steps = inner_first(loops, 2)
    # Of what indices reach no more at once than a cache holds, unless they are read too often then.
    window = WINDOW // numbers.itemsize
    if x.sizes[axis] * along <= window or count > MOST_WINDOWS * window:
        window = count
    marks = [
        Launch(
            scatter_kernels.mark_elements,
            programs[1],
            (marked, low, min(low + window, count), x.sizes[axis], along, sizes, *divisors(sizes), *steps),
            {"DIMENSION": len(loops) - 1 - kept, "LOOPS": len(loops), **constants},
        )
        for low in range(0, count, window)
    ]
    taken, _ = folded_loops(y.sizes, [of_x, without_axis[1], of_y], axis)
    taken_sizes, *taken_steps = inner_first(taken, 3)
    take = Launch(
        scatter_kernels.take_elements,
        programs[0],
        (count, update_step, taken_sizes, *divisors(taken_sizes), *taken_steps),
        {"LOOPS": len(taken), **constants},
        (bits, bits, None, bits),
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, indices, updates = inputs
        latest = torch.full((count,), -1, dtype=numbers, device=device)
        for mark in marks:
            mark(indices, latest)
        take(x, updates, latest, outputs[0])

    of_marks: list[torch.dtype | None] = [TYPES[indices.type], numbers]
    launches = *[(mark, of_marks) for mark in marks], (take, [moved, moved, numbers, moved])
    return Planned(f"{marked} updates of {count} elements, the last one of each", run, launches)


def _points(
    desc: Any, x: Layout, indices: Layout, updates: Layout, y: Layout, device: torch.device
) -> Planned | Declined:
    of_x, of_indices, of_updates, of_y = map(steps_of, (x, indices, updates, y))
    _, indexed, slices, tuples = dimensions_of(desc)
    first = len(updates.sizes) - len(tuples) - len(slices)
    of_tuples = [(indices.sizes[i], of_indices[i], of_updates[first + n]) for n, i in enumerate(tuples)]
    first += len(tuples)
    of_slices = [(x.sizes[i], of_x[i], of_updates[first + n], of_y[i]) for n, i in enumerate(slices)]
    of_places = [(x.sizes[i], of_x[i], of_y[i]) for i in indexed]
    count = prod(size for size, *_ in of_tuples)
    rows, columns = (prod(size for size, *_ in loops) for loops in (of_places, of_slices))
    tiles = tiles_of(rows, columns, TILE)
    programs = -(-count // BLOCK)
    if isinstance(tiles, Declined):
        return tiles
    declined = too_many(programs)
    if declined is not None:
        return declined
    sizes, index_steps, tuple_steps = inner_first(of_tuples, 2)
    index = index_type((x, indices, updates, y), max(rows, columns, programs * BLOCK))
    moved, numbers = BITS[y.dtype.itemsize], torch.int64 if count >= WIDE else torch.int32
    mark = Launch(
        scatter_kernels.mark_points,
        programs,
        (count, of_indices[-1], sizes, index_steps, tuple([x.sizes[i] for i in indexed])),
        {"COORDINATES": len(indexed), "LOOPS": len(sizes), "BLOCK": BLOCK, "INDEX": index},
    )
    row_loops, column_loops = inner_first(of_places, 2), inner_first(of_slices, 3)
    take = Launch(
        scatter_kernels.take_slices,
        tiles.programs,
        (rows, columns, tiles.blocks, *row_loops, sizes, tuple_steps, *column_loops),
        {
            **{"LOOPS": len(row_loops[0]), "TUPLES": len(sizes), "SLICES": len(column_loops[0])},
            **tiles.shape,
            "INDEX": tl.int64 if numbers == torch.int64 else index,
        },
        (POINTED[moved], POINTED[moved], None, POINTED[moved]),
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, indices, updates = inputs
        latest = torch.full((rows,), -1, dtype=numbers, device=device)
        mark(indices, latest)
        take(x, updates, latest, outputs[0])

    launches = (mark, [TYPES[indices.type], numbers]), (take, [moved, moved, numbers, moved])
    return Planned(f"{count} slices of {rows} of {columns}, the last one of each", run, launches)


def _unpooled(x: Layout, indices: Layout, y: Layout, device: torch.device) -> Planned | Declined:
    marked, count = prod(x.sizes), prod(y.sizes)
    programs = -(-count // BLOCK), -(-marked // BLOCK)
    declined = too_many(max(programs))
    if declined is not None:
        return declined
    of_indices, of_x, of_y = (inner_first(folded_loops(each.sizes, [steps_of(each)])[0]) for each in (indices, x, y))
    moved, numbers = BITS[y.dtype.itemsize], torch.int64 if marked >= WIDE else torch.int32
    constants = {"BLOCK": BLOCK, "INDEX": index_type((x, indices, y), max(*programs) * BLOCK)}
    mark = Launch(
        scatter_kernels.mark_places,
        programs[1],
        (marked, count, of_indices[0], *divisors(of_indices[0]), of_indices[1]),
        {"LOOPS": len(of_indices[0]), **constants},
    )
    take = Launch(
        scatter_kernels.take_or_clear,
        programs[0],
        (count, of_x[0], *divisors(of_x[0]), of_x[1], of_y[0], *divisors(of_y[0]), of_y[1]),
        {"LOOPS": len(of_x[0]), "LOOPS_OF_Y": len(of_y[0]), **constants},
        (POINTED[moved], None, POINTED[moved]),
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, indices = inputs
        latest = torch.full((count,), -1, dtype=numbers, device=device)
        mark(indices, latest)
        take(x, latest, outputs[0])

    launches = (mark, [TYPES[indices.type], numbers]), (take, [moved, numbers, moved])
    return Planned(f"{marked} elements among {count}, the last one of each place", run, launches)
