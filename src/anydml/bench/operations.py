"""The rows of operators that stand in a table: each of its lines makes the tensors of an operator, and names what NumPy
and PyTorch compute it by. `movement.py`, `indexed.py`, `reductions.py` and `resampling.py` have the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..core.strided_layout import Array
from ..device import Device
from ..operators import spec
from ..operators.schema import OperatorDesc
from .cases import LINE, LITTLE_ON_GPU, Case, Function, Work, compiled_of, desc_of, lines_of, tensor_of
from .element_wise import are_near
from .places import Host, Place, place_of, read_plan

Shape = tuple[int, ...]


def random_inputs(place: Place, shapes: Sequence[Shape], dtype: str) -> list[Any]:
    return [place.cast(place.integers(0, 100, shape), dtype) for shape in shapes]


def no_members(shapes: Sequence[Shape], dtype: str) -> Mapping[str, Any]:
    return {}


class Line(NamedTuple):
    """Of a table: an operator on tensors of one geometry."""

    operator: str
    shapes: Callable[[int, int], Sequence[Shape]]
    """Of the inputs, then of the outputs, by the elements of the largest tensor and those of a run."""
    members: Callable[[Sequence[Shape], str], Mapping[str, Any]] = no_members
    """Of the desc, but for the tensors: by these shapes and the type of the elements."""
    numpy: Function | None = None
    torch: Function | None = None
    inputs: Callable[[Place, Sequence[Shape], str], list[Any]] = random_inputs
    """By the place, the inputs' shapes and their type."""
    output_dtype: str = ""
    """That of the inputs where it is not given."""
    read: Callable[..., int] | None = None
    """Lines of memory that are read of the inputs; where None, all that hold them."""
    node: tuple[str, Mapping[str, Any]] | None = None
    """ONNX's operator on the same inputs, and its attributes."""
    is_reduction: bool = False
    is_rounded: bool = False
    """Whether libraries differ in the last places of floats."""


@dataclass(frozen=True)
class Operation(Case):
    """A line of a table, for a type and a length of runs."""

    line: Line = field(kw_only=True)
    run: int = 1
    """Elements of the runs that are moved, where the line has some."""
    of: str = ""
    """The cell."""

    @property
    def cell(self) -> str:
        return self.group or self.of

    @property
    def of_operator(self) -> str:
        return self.line.operator

    @property
    def is_rounded(self) -> bool:
        """Whether libraries differ in the last places of its results."""
        return self.line.is_rounded and np.dtype(self.dtype).kind == "f"

    def make(self, device: Device) -> Work:
        place, line = place_of(device), self.line
        output_dtype = line.output_dtype or self.dtype
        # A reduction's output is small, whatever its type.
        largest = [self.dtype] if line.is_reduction else [self.dtype, output_dtype]
        count = self.size // max(np.dtype(dtype).itemsize for dtype in largest)
        shapes = [tuple(max(1, size) for size in shape) for shape in line.shapes(count, self.run)]
        *names, last = spec(line.operator).tensors
        inputs = line.inputs(Host(), shapes[: len(names)], self.dtype)
        given = [place.to_device(array) for array in inputs]
        output, outputs = _outputs(place, shapes[len(names) :], output_dtype)
        tensors: dict[str, Any] = {name: tensor_of(device, array) for name, array in zip(names, given, strict=True)}
        pieces = [tensor_of(device, piece) for piece in outputs]
        tensors[last] = pieces if last.endswith("s") else pieces[0]
        desc = desc_of(line.operator, **tensors, **line.members(shapes, output_dtype))
        read = sum(lines_of(x) for x in inputs) if line.read is None else line.read(*inputs)
        return Work(
            place,
            given,
            output,
            compiled_of(device, desc),
            lambda y: self._check(desc, inputs, shapes[len(names) :], place.numpy(y)),
            outputs=outputs,
            functions={name: each for name in ("numpy", "torch") if (each := getattr(line, name)) is not None},
            moved=LINE * (read if line.is_reduction else read - (-output.nbytes // LINE)),
            is_read=line.is_reduction,
        )

    def _check(self, desc: OperatorDesc, inputs: Sequence[Array], shapes: Sequence[Shape], y: Array) -> str:
        """By the operator's own reference; what is large on a GPU, by the CPU's kernels, which are checked so."""
        if self.group and sum(x.nbytes for x in inputs) > LITTLE_ON_GPU:
            expected, pieces = _outputs(Host(), shapes, y.dtype.name)
            compiled_of(Device("cpu"), desc).dispatch(inputs, pieces)
        else:
            with np.errstate(all="ignore"):
                expected = spec(self.line.operator).reference(desc, *inputs)
        if isinstance(expected, tuple):
            expected = np.concatenate([piece.reshape(-1) for piece in expected])
        is_right = are_near(y, expected) if self.is_rounded else np.array_equal(y, expected)
        return "" if is_right else "it differs from the reference's"


def _outputs(place: Place, shapes: Sequence[Shape], dtype: str) -> tuple[Any, list[Any]]:
    """One array of all outputs, and each of them: itself where it is the only one."""
    if len(shapes) == 1:
        output = place.empty(shapes[0], dtype)
        return output, [output]
    sizes = [prod(shape) for shape in shapes]
    output = place.empty((sum(sizes),), dtype)
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    pieces = [output[end - size : end].reshape(shape) for shape, size, end in zip(shapes, sizes, ends, strict=True)]
    return output, pieces


@dataclass(frozen=True)
class Read(Case):
    """No operator: the yardstick of reductions, beside a copy of as many bytes."""

    @property
    def cell(self) -> str:
        return "reading"

    def make(self, device: Device) -> Work:
        place = place_of(device)
        x = place.integers(0, 64, (max(1, self.size // 8),), np.uint64)
        output = place.empty((1,), np.uint8)
        compiled: Any = _Reading(read_plan(x))
        functions: dict[str, Function] = {"numpy": lambda np, x, y: np.bitwise_or.reduce(x).astype(y.dtype).reshape(1)}
        return Work(
            place,
            [x],
            output,
            compiled,
            lambda y: "" if y[0] == np.bitwise_or.reduce(x.view(np.uint8)) else "it is not the OR of all bytes",
            functions=functions,
            moved=x.nbytes,
        )


class _Reading(NamedTuple):
    """What is dispatched as operators are."""

    plan: Any
    engine: str = "cpu"

    def dispatch(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self.plan.run(inputs, outputs)
