"""Bindings and arrays that do not fit, in one arena of memory that is watched."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple

import numpy as np

from anydml import DML_BUFFER_BINDING, CompiledOperator, Device
from anydml.core.strided_layout import Layout
from anydml.operators import spec_of
from fuzzing.common import ENGINES, expect, junk, note, outcome
from fuzzing.descs import same_results
from fuzzing.drawing import good_desc
from harness import units_of

ARENA = 1024
INEXACT = (
    *("AVERAGE_POOLING", "AVERAGE_POOLING1", "AVERAGE_POOLING_GRAD", "LP_POOLING", "LP_POOLING1"),
    *("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2", "MAX_POOLING_GRAD"),
    *("CONVOLUTION", "CUMULATIVE_PRODUCT", "CUMULATIVE_SUMMATION", "ELEMENT_WISE_LOG", "FOLD", "REDUCE"),
)
"""Operators that add or multiply in an order of their engine's, or whose NaNs have the bits of it."""


class Part(NamedTuple):
    """An array in an arena, or an explicit binding of it."""

    offset: int
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    kind: str = "array"

    def on(self, arena: np.ndarray) -> Any:
        if self.kind == "binding":
            return DML_BUFFER_BINDING(Buffer=arena, Offset=self.offset, SizeInBytes=self.sizes[0])
        array = np.ndarray(self.sizes, self.dtype, arena, self.offset, self.strides)
        if self.kind == "read-only":
            array.flags.writeable = False
        return memoryview(array) if self.kind == "memoryview" else array


def part_like(random: Random, layout: Layout, through: str) -> Part:
    """What fits a slot, somewhere in the arena, and often enough does not."""
    low, high = layout.bounds()
    item = layout.dtype.itemsize
    offset = random.choice([0, 16, 256, 512, 768, 16 * random.randrange(48), random.randrange(768)])
    if through == "table":
        needed = -(-high // 4) * 4
        offset = offset // 16 * 16 if random.random() < 0.9 else offset
        return Part(offset, "u1", (max(0, needed + random.choice([0, 0, 0, 0, 4, -1])),), (1,), "binding")
    kind = random.choice(["array"] * 6 + ["memoryview", "read-only"])
    offset -= low
    if random.random() < 0.3:
        flat = random.choice([("u1", high, 1), (layout.dtype.str, -(-high // item), item)])
        return Part(offset, flat[0], (flat[1],), (flat[2],), kind)
    sizes, strides, dtype = list(layout.sizes), list(layout.strides), layout.dtype.str
    if random.random() < 0.2:
        i = random.randrange(len(sizes))
        if random.random() < 0.5:
            sizes[i] = max(1, sizes[i] + random.choice([-1, 1]))
        else:
            strides[i] += random.choice([-item, item, 1, -2 * strides[i]])
    if random.random() < 0.05:
        dtype = random.choice(["<i4", ">i4", "<f4", "u1", "<i8", "?"])
    return Part(offset, dtype, tuple(sizes), tuple(strides), kind)


def fits(part: Part) -> bool:
    """Whether the arena has the array; NumPy itself refuses others."""
    if part.kind == "binding":
        return True
    steps = [(size - 1) * stride for size, stride in zip(part.sizes, part.strides, strict=True)]
    first = part.offset + sum(min(0, step) for step in steps)
    last = part.offset + sum(max(0, step) for step in steps) + np.dtype(part.dtype).itemsize
    return first >= 0 and last <= ARENA and all(size >= 0 for size in part.sizes)


@cache
def bound_operators(engine: str) -> list[CompiledOperator]:
    random = Random(7)
    device = Device(engine)
    operators = []
    while len(operators) < 40:
        desc = good_desc(random)
        found = spec_of(desc)
        assert found is not None
        tensors = [each for _, each in [*found.inputs(desc), *found.outputs(desc)] if each is not None]
        # Floats would be whatever bytes an arena holds: sums of those are not exact, nor what activations make of NaNs;
        # copies and averages are.
        is_inexact = found.name in INEXACT or found.name.startswith("ACTIVATION_")
        exact = not is_inexact or tensors[0].DataType.name[0] in "IU"
        exact &= not units_of(desc)
        if exact and all((each.TotalTensorSizeInBytes or 0) <= 256 for each in tensors):
            operators.append(device.compile_operator(device.create_operator(desc)))
            operators[-1].initialise([None] * len(found.inputs(desc)))
    return operators


def bindings(random: Random) -> None:
    which, through = random.randrange(40), random.choice(["dispatch", "table"])
    operator = bound_operators("reference")[which]
    desc, spec = operator.desc, operator.spec
    sides: list[list[Any]] = []
    for tensors in (spec.inputs(desc), spec.outputs(desc)):
        side: list[Any] = []
        for _, tensor in tensors:
            given = None if tensor is None else part_like(random, Layout.of_desc(tensor), through)
            side.append(given if given is None or fits(given) else None)
            if random.random() < 0.03:
                side[-1] = junk(random)
        if random.random() < 0.03:
            side = side[1:] if random.random() < 0.5 else [*side, None]
        sides.append(side)
    # Bytes that make scales of which most are greater than 0
    start = np.tile(np.array([1, 2, 0.5, 0.25], np.float32), ARENA // 16).view(np.uint8).copy()
    if random.random() < 0.3:
        start[:] = np.frombuffer(random.randbytes(ARENA), np.uint8)
    note(desc, through, sides)

    seen = []
    for engine in ENGINES:
        arena = start.copy()
        compiled = bound_operators(engine)[which]
        given = [[each.on(arena) if isinstance(each, Part) else each for each in side] for side in sides]

        def dispatch(compiled: CompiledOperator = compiled, given: list[list[Any]] = given) -> None:
            if through == "dispatch":
                compiled.dispatch(*given)
                return
            table = compiled.device.create_binding_table(compiled)
            table.bind_inputs(given[0])
            table.bind_outputs(given[1])
            compiled.device.dispatch(compiled, table)

        result = outcome(dispatch)
        if result.rules is not None:
            expect(bytes(arena) == bytes(start), engine, "refused", result.rules, "and wrote")
        else:
            check_writes(operator, sides[1], start, arena)
        seen.append((result.rules, arena))
    same_results((desc, sides), *seen[0], *seen[1])


def check_writes(operator: CompiledOperator, outputs: Sequence[Any], before: np.ndarray, after: np.ndarray) -> None:
    """Only elements of outputs were written."""
    writable = np.zeros(ARENA, bool)
    for (_, tensor), part in zip(operator.spec.outputs(operator.desc), outputs, strict=True):
        if isinstance(part, Part):
            marks = np.zeros(ARENA, np.uint8)
            layout = Layout.of_desc(tensor)
            dtype = f"u{layout.dtype.itemsize}"
            np.ndarray(layout.sizes, dtype, marks, part.offset, layout.strides)[...] = np.iinfo(dtype).max
            writable |= marks.astype(bool)
    expect(bool((before == after)[~writable].all()), "wrote beside the elements of an output")
