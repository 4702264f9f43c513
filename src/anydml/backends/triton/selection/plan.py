"""TOP_K and NONZERO_COORDINATES on a GPU: lines sorted in registers, and elements counted before they are written."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch

from ....core.enums import AxisDirection
from ....core.strided_layout import Layout
from ....core.tensor_desc import packed_strides
from ....operators.schema import OperatorDesc, OperatorSpec
from ...base import Declined
from ...torch.tensors import TYPES
from ..division import divisors
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..movement.plan import POINTED
from ..tiles import folded_loops, index_type, inner_first, steps_of
from . import kernels as selection_kernels

BLOCK = 4096
"""Elements of a program that looks for those that are there."""
LONGEST, SORTED = 1024, 1024
"""Elements of the longest line, or part of one, that is sorted in registers, and of all that a program sorts."""
LEAST_LEFT_OUT = 8
"""How many times fewer elements are left of a part at least: each time that the rest is sorted is a launch."""
LEAST_TURNED = 16
"""Elements of a line, from which on lines that lie side by side are packed first, as sorts go along a line."""
THREAD = 8
"""Elements of a thread, and so how many warps there are."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    (x,) = [layout for layout in inputs if layout is not None]
    declined = between_elements((x, *outputs))
    if declined is not None:
        return declined
    if spec.name == "NONZERO_COORDINATES":
        return _coordinates(x, outputs[1], torch.device(device))
    values, indices = outputs
    return _top(desc, x, values, indices, torch.device(device))


def _coordinates(x: Layout, rows: Layout, device: torch.device) -> Planned | Declined:
    n, columns = prod(x.sizes), rows.sizes[-1]
    programs = -(-n // BLOCK)
    row_step, column_step = steps_of(rows)[-2:]
    sizes, steps = inner_first(folded_loops(x.sizes, [steps_of(x)])[0])
    last = x.sizes[::-1][:columns]
    moved = BITS[x.dtype.itemsize]
    constants = {"IS_FLOAT": x.dtype.kind == "f", "LOOPS": len(sizes)}
    block = {"BLOCK": BLOCK, "INDEX": index_type((x, rows), programs * BLOCK)}
    loops = (n, sizes, *divisors(sizes), steps)
    count = Launch(selection_kernels.count_nonzero, programs, loops, {**constants, **block}, (POINTED[moved],))
    write = Launch(
        selection_kernels.write_coordinates,
        programs,
        (*loops, last, *divisors(last), row_step, column_step),
        {**constants, "COLUMNS": columns, **block},
        (POINTED[moved],),
    )

    def run(inputs: Tensors, outputs: Tensors) -> None:
        counts = torch.empty(programs, dtype=torch.int32, device=device)
        count(inputs[0], counts)
        write(inputs[0], counts.cumsum(0), *outputs)

    word = torch.uint32
    launches = (count, [moved, torch.int32]), (write, [moved, torch.int64, word, word])
    return Planned(f"what is there of {n} elements, {BLOCK} at once, counted first", run, launches)


def _top(desc: Any, x: Layout, values: Layout, indices: Layout, device: torch.device) -> Planned | Declined:
    n, k, axis = x.sizes[desc.Axis], desc.K, desc.Axis
    if x.dtype.itemsize > 4 or n >= WIDE or (n > LONGEST and LEAST_LEFT_OUT * k > LONGEST):
        return Declined(f"this kernel takes elements of 4 bytes, and of long lines few of {LONGEST}")
    steps = [steps_of(each) for each in (x, values, indices)]
    is_turned = n >= LEAST_TURNED and steps[0][axis] > min([step for step in steps[0] if step > 0], default=0)
    if is_turned:
        within = packed_strides([*x.sizes[:axis], *x.sizes[axis + 1 :], n])
        steps[0] = [*within[:axis], within[-1], *within[axis:-1]]
    others = [i for i in range(len(x.sizes)) if i != axis]
    loops, _ = folded_loops([x.sizes[i] for i in others], [[each[i] for i in others] for each in steps])
    # The nearest lines are neighbours in a program.
    loops = sorted(loops, key=lambda loop: -abs(loop[1]))
    sizes, *of_lines = inner_first(loops, 3)
    count = prod(sizes)
    places = [_Places(of, each[axis]) for of, each in zip(of_lines, steps, strict=True)]
    is_largest = getattr(desc, "AxisDirection", AxisDirection.DECREASING) == AxisDirection.DECREASING
    constants = {"IS_LARGEST": is_largest, "LOOPS": len(sizes)}
    index = index_type((x, values, indices), count * (n + SORTED))
    launches: list[Launch] = []
    lengths = [n]
    while True:
        length, given = lengths[-1], places[0] if len(lengths) == 1 else _Places.packed(sizes, lengths[-1])
        parts = -(-length // LONGEST)
        chosen = (parts - 1) * k + min(k, length - (parts - 1) * LONGEST)
        taken = places[1:] if parts == 1 else [_Places.packed(sizes, chosen)] * 2
        size = max(next_power_of_2(min(length, LONGEST)), 2)
        at_once = min(SORTED // size, next_power_of_2(count * parts))
        programs = -(-count * parts // at_once)
        declined = too_many(programs)
        if declined is not None:
            return declined
        where = (given, *taken)
        (divisor,) = zip(*divisors([parts]), strict=True)
        launch = Launch(
            selection_kernels.top_of_lines,
            programs,
            (
                *(length, k, count, parts, *divisor, min(length, LONGEST), sizes, *divisors(sizes)),
                *[each.of_lines for each in where],
                *[each.along for each in where],
            ),
            {
                **constants,
                **{"HAS_GIVEN": len(lengths) > 1, "LINES": at_once, "SIZE": size, "TOP": max(next_power_of_2(k), 2)},
                "INDEX": index,
            },
            num_warps=min(max(at_once * size // (32 * THREAD), 1), 16),
        )
        launches.append(launch)
        if parts == 1:
            break
        lengths.append(chosen)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        x = inputs[0].movedim(axis, -1).contiguous() if is_turned else inputs[0]
        given = x
        for launch, chosen in zip(launches, lengths[1:], strict=False):
            values = torch.empty(count * chosen, dtype=x.dtype, device=device)
            numbers = torch.empty(count * chosen, dtype=torch.int32, device=device)
            launch(x, given, values, numbers)
            x, given = values, numbers
        launches[-1](x, given, *outputs)

    kind, taken_as, number = TYPES[x.type], TYPES[indices.type], torch.int32
    types: list[list[torch.dtype]] = [[kind, number if i else kind, kind, number] for i in range(len(launches))]
    types[-1][-1] = taken_as
    words = f"{k} of {count} lines of {n}, sorted by {min(n, LONGEST)}, {len(launches)} times"
    return Planned(words, run, tuple(zip(launches, types, strict=True)))


class _Places(NamedTuple):
    """Where a tensor's lines begin, by steps of their loops, and the step along them."""

    of_lines: tuple[int, ...]
    along: int

    @classmethod
    def packed(cls, sizes: Sequence[int], length: int) -> _Places:
        return cls(tuple([length * prod(sizes[:i]) for i in range(len(sizes))]), 1)
