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
from ..launch import BITS, WIDE, Launch, Planned, Tensors, between_elements, next_power_of_2, too_many
from ..pointwise import plan as pointwise
from .parts import parts_of
from .source import Coordinate, Group, Loop, Movement, Run, generated, generated_rows

NEAREST = InterpolationMode.NEAREST_NEIGHBOR

BLOCK = 1024
"""Elements of a program, or, where it only fills, of 8 bytes each."""
LONG_RUN, LARGE = {1: 64, 2: 128, 4: 512, 8: 1024}, 1 << 20
"""Bytes of the innermost loop's runs, by those of an element, and of the output, from which on runs are copied by
words, and there may be a launch for each of a loop's runs."""
FEW = 32
"""Elements of a constant beside a run, up to which it is filled by the run's kernel."""
TILE = 512
"""Words of a program then."""
WIDE_TILE = 1 << 20
"""More than the elements that a program reaches beyond the last one."""


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
    # For each output one launch, or more.
    launches: list[list[Any]] = []
    how: set[str] = set()
    for movement, output in zip(movements, outputs, strict=True):
        movement = movement._replace(loops=_folded(movement.loops))
        rows = _rows(movement, value, layouts, output)
        made_of = rows or _elements(movement, value, layouts, output)
        how.add("by words" if rows else "by elements")
        if isinstance(made_of, Declined):
            return made_of
        launches.append(made_of)
    has_input = movements[0].has_input
    is_looked_up = bool(movements[0].coordinates)

    def run(inputs: Tensors, outputs: Tensors) -> None:
        read = inputs[: has_input + is_looked_up]
        for each, output in zip(launches, outputs, strict=True):
            for launch, _ in each:
                launch(*read, output)

    words = f"movement in {len(movements[0].loops)} loops, {' and '.join(sorted(how))}"
    return Planned(words, run, [pair for each in launches for pair in each])


def _elements(movement: Movement, value: int | None, layouts: Sequence[Layout], output: Layout) -> Any:
    """A kernel with a thread for each element."""
    count = prod(loop.size for loop in movement.loops)
    block = BLOCK if movement.has_input else BLOCK * max(1, 8 // output.dtype.itemsize)
    programs = -(-count // block)
    declined = too_many(programs)
    if declined is not None:
        return declined
    reach = max((high - low) // layout.dtype.itemsize for layout in layouts for low, high in [layout.bounds()])
    kernel, arguments, pointers = generated(movement, max(reach, programs * block) + block >= WIDE)
    moved = BITS[output.dtype.itemsize]
    types = [TYPES[layouts[1].type] if pointer == "i" else moved for pointer in pointers]
    constants = {**({"value": value} if movement.has_constant else {}), "BLOCK": block}
    typed = [None if pointer == "i" else POINTED[moved] for pointer in pointers]
    launch = Launch(kernel, programs, arguments, constants, typed)
    return [(launch, types)]


def _rows(movement: Movement, value: int | None, layouts: Sequence[Layout], output: Layout) -> Any:
    """Kernels that copy or fill runs by words, one for each run of the innermost loop; None where these are short, or
    their elements do not lie side by side."""
    inner, item = movement.loops[-1], output.dtype.itemsize
    (group, *others) = inner.groups
    if inner.out != 1 or inner.indices or others or group.repeats > 1:
        return None
    copied = [run for run in group.runs if not run.is_constant]
    count = prod(loop.size for loop in movement.loops[:-1])
    bytes_of = inner.size * item
    if len(copied) != 1 or copied[0].step != 1 or bytes_of < LONG_RUN[item] or bytes_of * count < LARGE:
        return None
    reach = max((high - low) // layout.dtype.itemsize for layout in layouts for low, high in [layout.bounds()])
    is_wide = max(reach, count * inner.size) + WIDE_TILE >= WIDE
    moved = BITS[item]
    begins = [0, *[run.end for run in group.runs]]
    short = [
        (begin, run.end)
        for begin, run in zip(begins, group.runs, strict=False)
        if run.is_constant and run.end - begin <= FEW
    ]
    launches = []
    for begin, run in zip(begins, group.runs, strict=False):
        if (begin, run.end) in short:
            continue
        beside = [] if run.is_constant else short
        kernel, arguments, pointers = generated_rows(movement, begin, run, beside, is_wide)
        columns, parts = parts_of((run.end - begin) * item)
        # The bytes at the ends of runs are a tile of their own, of 32 bytes of each.
        rows = max(min(TILE // max(columns, 32 // item), next_power_of_2(count)), 1)
        programs = parts * -(-count // rows)
        if too_many(programs) is not None:
            return None
        pattern = {"value": _repeated(value or 0, item)} if movement.has_constant else {}
        constants = {**pattern, "ITEM": POINTED[moved], "SIZE": item, "BLOCK": rows, "COLUMNS": columns}
        typed = [None if pointer == "i" else POINTED[moved] for pointer in pointers]
        types = [TYPES[layouts[1].type] if pointer == "i" else moved for pointer in pointers]
        launches.append((Launch(kernel, programs, (parts, *arguments), constants, typed), types))
    return launches


def _repeated(value: int, item: int) -> int:
    """A constant as often as it is in 8 bytes, as a signed number."""
    return int(np.frombuffer((value % (1 << 8 * item)).to_bytes(item, "little") * (8 // item), np.int64)[0])


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
    if not has_input:
        # Loops that are constant alone are alike.
        loops = [_loop(loop.size, loop.out, 0) for loop in loops]
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


POINTED = {torch.int8: tl.int8, torch.int16: tl.int16, torch.int32: tl.int32, torch.int64: tl.int64}

_LOOKED_UP: Mapping[str, Callable[..., Movement]] = {
    "GATHER": _gather,
    "GATHER_ELEMENTS": _gather_elements,
    "GATHER_ND": _gather_nd,
    "GATHER_ND1": _gather_nd,
}
