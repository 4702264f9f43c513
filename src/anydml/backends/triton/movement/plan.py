"""Operators that move elements on a GPU, each output in one kernel: from the views of the native engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
import torch
import triton.language as tl

from ....core.enums import InterpolationMode
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.specs.gather import result_dimensions
from ....operators.specs.gather_nd import dimensions_of
from ...base import Declined
from ...native import movement_lowering as views
from ...torch.tensors import TYPES
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements, too_many
from ..pointwise import plan as pointwise
from .source import Coordinate, Group, Loop, Movement, Run, generated

NEAREST = InterpolationMode.NEAREST_NEIGHBOR

BLOCK = 1024
"""Elements of a program."""


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout], device: str
) -> Planned | Declined:
    layouts = [layout for layout in (*inputs, *outputs) if layout is not None]
    declined = between_elements(layouts)
    if declined is not None:
        return declined
    if spec.name in _LOOKED_UP:
        movements = [_LOOKED_UP[spec.name](desc, *layouts)]
        value = None
    else:
        is_linear = getattr(desc, "InterpolationMode", NEAREST) != NEAREST
        made = None if is_linear else views.VIEWS[spec.name](desc)
        if made is None and spec.name == "CAST":
            return pointwise.plan(spec, desc, inputs, outputs, device)
        if made is None:
            return Declined("it does more than move elements")
        source = inputs[0] if inputs else None
        constant = views.CONSTANTS.get(spec.name)
        value = None if constant is None else _as_bits(constant(desc))
        movements = [_viewed(view, source, out) for view, out in zip(made, outputs, strict=True)]
    launches = []
    for movement, output in zip(movements, outputs, strict=True):
        launch = _launch(movement, value, layouts, output)
        if isinstance(launch, Declined):
            return launch
        launches.append(launch)
    has_input = movements[0].has_input
    is_looked_up = bool(movements[0].coordinates)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        read = inputs[: has_input + is_looked_up]
        for (launch, _), output in zip(launches, outputs, strict=True):
            launch(*read, output)

    return Planned(f"movement in {len(movements[0].loops)} loops", run, [(each, types) for each, types in launches])


def _launch(movement: Movement, value: int | None, layouts: Sequence[Layout], output: Layout) -> Any:
    movement = movement._replace(loops=_folded(movement.loops))
    count = prod(loop.size for loop in movement.loops)
    programs = -(-count // BLOCK)
    declined = too_many(programs)
    if declined is not None:
        return declined
    reach = max((high - low) // layout.dtype.itemsize for layout in layouts for low, high in [layout.bounds()])
    kernel, arguments, pointers = generated(movement, max(reach, programs * BLOCK) + BLOCK >= WIDE)
    moved = BITS[output.dtype.itemsize]
    types = [TYPES[layouts[1].type] if pointer == "i" else moved for pointer in pointers]
    constants = {**({"value": value} if movement.has_constant else {}), "BLOCK": BLOCK}
    typed = [None if pointer == "i" else _POINTED[moved] for pointer in pointers]
    launch = Launch(kernel, programs, arguments, constants, typed)
    return launch, types


def _as_bits(value: Any) -> int:
    return int(value.view(np.dtype(f"i{value.dtype.itemsize}")))


def _viewed(view: views.View, source: Layout | None, output: Layout) -> Movement:
    item = output.dtype.itemsize
    loops = []
    for i, parts in enumerate(view):
        for dimension in parts:
            axis = i if dimension.source is None else dimension.source
            step = 0 if source is None else source.strides[axis] // item
            groups, begin = [], 0
            for group in dimension.groups:
                runs = _runs(group, step)
                groups.append(Group(begin, runs, group.repeats, group.step * step))
                begin += group.repeats * runs[-1].end
            loops.append(Loop(begin, dimension.every * output.strides[i] // item, tuple(groups)))
    has_constant = any(run.is_constant for loop in loops for group in loop.groups for run in group.runs)
    has_input = any(not run.is_constant for loop in loops for group in loop.groups for run in group.runs)
    return Movement(tuple(loops), (), has_constant, has_input and source is not None)


def _runs(group: views.Group, step: int) -> tuple[Run, ...]:
    ends = [*accumulate(segment.size for segment in group.segments)]
    runs = []
    for segment, end in zip(group.segments, ends, strict=True):
        if segment.start is None:
            runs.append(Run(end, 0, 0, True))
        else:
            each = segment.step * step if segment.size > 1 else 0
            runs.append(Run(end, segment.start * step - (end - segment.size) * each, each))
    return tuple(runs)


def _folded(loops: Sequence[Loop]) -> tuple[Loop, ...]:
    """In the order of the output's memory; loops that are one in all tensors are one."""
    folded: list[Loop] = []
    for loop in sorted(loops, key=lambda loop: -abs(loop.out)):
        if loop.size == 1 and loop.plain is not None and not loop.plain.offset:
            continue
        before, inner = folded[-1].plain if folded else None, loop.plain
        if (
            before is not None
            and inner is not None
            and folded[-1].out == loop.out * loop.size
            and folded[-1].indices == loop.indices * loop.size
            and before.step == inner.step * loop.size
        ):
            size = folded[-1].size * loop.size
            folded[-1] = _loop(size, loop.out, inner.step, loop.indices, before.offset + inner.offset)
        else:
            folded.append(loop)
    return tuple(folded) or (_loop(1, 0, 0),)


def _loop(size: int, out: int, step: int, indices: int = 0, offset: int = 0) -> Loop:
    return Loop(size, out, (Group(0, (Run(size, offset, step),)),), indices)


def _steps(layout: Layout) -> list[int]:
    return [stride // layout.dtype.itemsize for stride in layout.strides]


def _gather(desc: Any, x: Layout, indices: Layout, output: Layout) -> Movement:
    of_x, of_indices, of_output = _steps(x), _steps(indices), _steps(output)
    loops = []
    for (name, i), out in zip(result_dimensions(desc)[::-1], of_output[::-1], strict=False):
        if name == "InputTensor":
            loops.append(_loop(x.sizes[i], out, of_x[i]))
        else:
            loops.append(_loop(indices.sizes[i], out, 0, of_indices[i]))
    return Movement(tuple(loops), (Coordinate(0, x.sizes[desc.Axis], of_x[desc.Axis]),))


def _gather_elements(desc: Any, x: Layout, indices: Layout, output: Layout) -> Movement:
    of_x, axis = _steps(x), desc.Axis
    loops = [
        _loop(size, out, 0 if i == axis else of_x[i], step)
        for i, (size, out, step) in enumerate(zip(output.sizes, _steps(output), _steps(indices), strict=True))
    ]
    return Movement(tuple(loops), (Coordinate(0, x.sizes[axis], of_x[axis]),))


def _gather_nd(desc: Any, x: Layout, indices: Layout, output: Layout) -> Movement:
    of_x, of_indices, of_output = _steps(x), _steps(indices), _steps(output)
    batch, indexed, slices, tuples = dimensions_of(desc)
    steps = [of_x[i] for i in batch] + [0] * (len(tuples) - len(batch))
    first = len(output.sizes) - len(tuples) - len(slices)
    loops = [
        _loop(indices.sizes[i], of_output[first + number], step, of_indices[i])
        for number, (i, step) in enumerate(zip(tuples, steps, strict=True))
    ]
    first += len(tuples)
    loops += [_loop(x.sizes[i], of_output[first + number], of_x[i]) for number, i in enumerate(slices)]
    coordinates = [Coordinate(k * of_indices[-1], x.sizes[i], of_x[i]) for k, i in enumerate(indexed)]
    return Movement(tuple(loops), tuple(coordinates))


_POINTED = {torch.int8: tl.int8, torch.int16: tl.int16, torch.int32: tl.int32, torch.int64: tl.int64}

_LOOKED_UP: Mapping[str, Callable[..., Movement]] = {
    "GATHER": _gather,
    "GATHER_ELEMENTS": _gather_elements,
    "GATHER_ND": _gather_nd,
    "GATHER_ND1": _gather_nd,
}
