"""SCATTER_ELEMENTS, SCATTER_ND and MAX_UNPOOLING on a GPU: the last update of each place is found, and
then all is written once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch
import triton.language as tl

from ....core.strided_layout import Layout
from ....core.tensor_desc import packed_strides
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.gather_nd import dimensions_of
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..tiles import folded_loops, index_type, inner_first, steps_of, tiles_of
from . import scatter_kernels
from .plan import POINTED

BLOCK = 1024
"""Elements of a program."""
LINES_TILE, WARPS = {"SCATTER_ELEMENTS": 1024, "MAX_UNPOOLING": 2048}, {"SCATTER_ELEMENTS": 4, "MAX_UNPOOLING": 8}
"""Elements that a program has at once where it has lines, and its warps."""
MOST_PROGRAMS = {"SCATTER_ELEMENTS": 1056, "MAX_UNPOOLING": 528}
"""Programs that have lines: about as many as a GPU runs at once."""
NUMBERS, FEW_PROGRAMS, MOST_TILES = 6 << 20, 256, 4
"""Elements of the lines of a turn, whose numbers a cache holds; and below how many programs none has more than so many
tiles."""
SHORT_LINE = 512
"""Elements of lines whose updates are near each other anyway."""
GUARDS = 1024
"""Programs of what runs only where an index of MAX_UNPOOLING names an element of another plane."""
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
    if steps_of(y)[axis] == 1 and y.sizes[axis] >= SHORT_LINE:
        in_lines = _elements_of_lines(axis, x, indices, updates, y, device)
        if in_lines is not None:
            return in_lines
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


class _Lines(NamedTuple):
    """How programs share lines."""

    rows: int
    columns: int
    programs: int
    turns: int

    @classmethod
    def of(cls, name: str, lines: int, length: int, indexed: int) -> _Lines | None:
        """None where a line's numbers are too many, or too few programs would have too much."""
        widest, tile = max(length, indexed), LINES_TILE[name]
        columns = min(tile, next_power_of_2(widest))
        rows = min(tile // columns, next_power_of_2(lines))
        every = -(-lines // rows)
        programs = min(every, MOST_PROGRAMS[name], NUMBERS // (rows * length))
        if programs == 0:
            return None
        turns = -(-every // programs)
        is_slow = programs < FEW_PROGRAMS and turns * -(-widest // columns) > MOST_TILES
        return None if is_slow or turns * indexed >= WIDE else cls(rows, columns, programs, turns)


def _settled(
    name: str,
    sizes: tuple[int, int, int, int],
    of_y: Sequence[Sequence[int]],
    of_updates: Sequence[Sequence[int]],
    index: Any,
    types: Sequence[Any],
) -> tuple[Launch, int] | None:
    """What settles lines, and how many numbers it takes, from -1 on; None where lines are not shared well.

    Args:
        name: of the operator.
        sizes: how many lines there are, their length, how many updates each has, and the elements of all.
        of_y: loops of elements, and their steps in the input and the output.
        of_updates: of updates, and their steps in the indices and the updates.
        index: Triton's type of offsets.
        types: as a Launch takes them.
    """
    lines, length, indexed, count = sizes
    shared = _Lines.of(name, lines, length, indexed)
    if shared is None:
        return None
    (y_sizes, *y_steps), (update_sizes, *update_steps) = inner_first(of_y, 2), inner_first(of_updates, 2)
    loops = (y_sizes, *divisors(y_sizes), *y_steps, update_sizes, *divisors(update_sizes), *update_steps)
    constants = {"LOOPS": len(y_sizes), "LOOPS_OF_UPDATES": len(update_sizes), "ROWS": shared.rows}
    # Longer lines are not read again from a processor's own cache, and windows' maxima are near each other.
    stored = {"STORED": name == "SCATTER_ELEMENTS" and length <= LINES_TILE[name]}
    launch = Launch(
        scatter_kernels.settle_lines,
        shared.programs,
        (lines, length, indexed, shared.turns, count, *loops),
        {**stored, **constants, "COLUMNS": shared.columns, "INDEX": index},
        types,
        WARPS[name],
    )
    return launch, shared.programs * shared.rows * length


def _elements_of_lines(
    axis: int, x: Layout, indices: Layout, updates: Layout, y: Layout, device: torch.device
) -> Planned | None:
    """Lines along the axis, in the order of the output's memory."""
    of_y = steps_of(y)
    order = [*sorted([i for i in range(len(of_y)) if i != axis], key=lambda i: -of_y[i]), axis]

    def loops(one: Layout, other: Layout) -> list[tuple[int, ...]]:
        steps = [[of_one[i] for i in order] for of_one in (steps_of(one), steps_of(other))]
        return folded_loops([one.sizes[i] for i in order], steps)[0]

    length, indexed, count = y.sizes[axis], indices.sizes[axis], prod(y.sizes)
    moved = BITS[y.dtype.itemsize]
    bits = POINTED[moved]
    index = index_type((x, indices, updates, y), max(count, prod(indices.sizes)))
    sizes = count // length, length, indexed, count
    of_lines, of_updates = loops(x, y), loops(indices, updates)
    found = _settled("SCATTER_ELEMENTS", sizes, of_lines, of_updates, index, (bits, None, bits, None, None, bits))
    if found is None:
        return None
    settle, numbers = found

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x, indices, updates = inputs
        latest = torch.full((numbers,), -1, dtype=torch.int32, device=device)
        settle(x, indices, updates, latest, None, outputs[0])

    launches = ((settle, [moved, TYPES[indices.type], moved, torch.int32, None, moved]),)
    return Planned(f"lines of {length} elements, with {indexed} updates of each", run, launches)


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
    of_planes = None
    if x.sizes[:2] == y.sizes[:2]:
        of_planes = _planes(x, indices, y)
    programs = -(-count // BLOCK), -(-marked // BLOCK)
    declined = too_many(max(programs))
    if declined is not None:
        return declined
    of_indices, of_x, of_y = (inner_first(folded_loops(each.sizes, [steps_of(each)])[0]) for each in (indices, x, y))
    moved, numbers = BITS[y.dtype.itemsize], torch.int64 if marked >= WIDE else torch.int32
    constants = {"BLOCK": BLOCK, "INDEX": index_type((x, indices, y), max(*programs) * BLOCK)}
    most = max(programs) if of_planes is None else GUARDS
    mark = Launch(
        scatter_kernels.mark_places,
        min(programs[1], most),
        (marked, count, of_indices[0], *divisors(of_indices[0]), of_indices[1]),
        {"LOOPS": len(of_indices[0]), **constants},
    )
    take = Launch(
        scatter_kernels.take_or_clear,
        min(programs[0], most),
        (count, of_x[0], *divisors(of_x[0]), of_x[1], of_y[0], *divisors(of_y[0]), of_y[1]),
        {"LOOPS": len(of_x[0]), "LOOPS_OF_Y": len(of_y[0]), **constants},
        (POINTED[moved], None, None, POINTED[moved]),
    )
    types: list[torch.dtype | None] = [TYPES[indices.type], numbers]
    if of_planes is None:

        def run(inputs: Tensors, outputs: Tensors) -> None:
            x, indices = inputs
            latest = torch.full((count,), -1, dtype=numbers, device=device)
            mark(indices, latest, None)
            take(x, latest, None, outputs[0])

        launches = (mark, [*types, None]), (take, [moved, numbers, None, moved])
        return Planned(f"{marked} elements among {count}, the last one of each place", run, launches)

    settle, in_planes = of_planes
    clear = Launch(scatter_kernels.clear_places, min(programs[0], GUARDS), (count,), constants)

    def run_planes(inputs: Tensors, outputs: Tensors) -> None:
        x, indices = inputs
        of_lines = torch.full((in_planes,), -1, dtype=torch.int32, device=device)
        strays = torch.zeros(1, dtype=torch.int32, device=device)
        settle(None, indices, x, of_lines, strays, outputs[0])
        latest = torch.empty(count, dtype=numbers, device=device)
        clear(latest, strays)
        mark(indices, latest, strays)
        take(x, latest, strays, outputs[0])

    flag = torch.int32
    settled = (settle, [None, TYPES[indices.type], moved, flag, flag, moved])
    others = (clear, [numbers, flag]), (mark, [*types, flag]), (take, [moved, numbers, flag, moved])
    words = f"planes, and where an index names another one {marked} elements among {count}, the last one of each place"
    return Planned(words, run_planes, (settled, *others))


def _planes(x: Layout, indices: Layout, y: Layout) -> tuple[Launch, int] | None:
    """Of elements that come to places in their own planes."""
    length, indexed, count = prod(y.sizes[2:]), prod(x.sizes[2:]), prod(y.sizes)
    of_y, of_x = folded_loops(y.sizes, [steps_of(y)] * 2)[0], folded_loops(x.sizes, [*map(steps_of, (indices, x))])[0]
    bits = POINTED[BITS[y.dtype.itemsize]]
    index = index_type((x, indices, y), max(count, prod(x.sizes)))
    sizes = count // length, length, indexed, count
    return _settled("MAX_UNPOOLING", sizes, of_y, of_x, index, (None, None, bits, None, None, bits))
