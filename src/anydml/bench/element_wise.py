"""The rows of element-wise operators and activations, alone and in chains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.tensor_desc import DML_SCALE_BIAS
from ..device import Device
from ..frontends.directmlx import Graph
from ..operators import spec
from ..runtime.compiled import Compiled
from .cases import Case, Work, compiled_of, desc_of, tensor_of
from .places import place_of

WIDTH = 1024
"""Of a row, where some input has one row or one column that is broadcast."""


@dataclass(frozen=True)
class ElementWise(Case):
    steps: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    """Operators and their members; from the second on each takes the result of the one before first."""
    broadcast: str = ""
    """Of the last input: "row" or "column", the same for all."""

    @property
    def cell(self) -> str:
        return "chains" if len(self.steps) > 1 else self.dtype

    def make(self, device: Device) -> Work:
        place, dtype = place_of(device), np.dtype(self.dtype)
        count = max(1, self.size // dtype.itemsize)
        shape = (max(1, count // WIDTH), min(count, WIDTH))
        arity = [len(spec(operator).tensors) - 1 for operator, _ in self.steps]
        low, high = (-64, 64) if dtype.kind == "f" else (1, 100)
        inputs = [self._values(place.integers(low, high, shape), dtype) for _ in range(sum(arity) - len(arity) + 1)]
        if self.broadcast:
            part = inputs[-1][:1] if self.broadcast == "row" else inputs[-1][:, :1]
            inputs[-1] = np.broadcast_to(part, shape)
        output = place.empty(shape, dtype)
        compiled = self._operator(device, inputs, output) if len(arity) == 1 else self._graph(device, inputs)
        return Work(place, inputs, output, compiled, lambda y: self._check(inputs, y))

    @staticmethod
    def _values(integers: Any, dtype: np.dtype[Any]) -> Any:
        """Floats from -4 to 4, but for 0, by which integers are divided as well."""
        return integers.astype(dtype) if dtype.kind != "f" else (integers / 16 + 1 / 32).astype(dtype)

    def _operator(self, device: Device, inputs: list[Any], output: Any) -> Compiled:
        ((operator, members),) = self.steps
        tensors = [tensor_of(device, array) for array in (*inputs, output)]
        return compiled_of(
            device, desc_of(operator, **dict(zip(spec(operator).tensors, tensors, strict=True)), **dict(members))
        )

    def _graph(self, device: Device, inputs: list[Any]) -> Compiled:
        graph = Graph(device)
        values = [graph.input(tensor_of(device, array)) for array in inputs]
        result = values.pop(0)
        for operator, members in self.steps:
            first, *others = [name for name in spec(operator).tensors if name != "OutputTensor"]
            taken: dict[str, Any] = {first: result, **{name: values.pop(0) for name in others}, **dict(members)}
            (result,) = graph.operator(spec(operator).desc, **taken)
        return graph.compile([result])

    def _check(self, inputs: list[Any], y: Any) -> str:
        """The first and the last row, by the operators' own references."""
        for part in (slice(0, 1), slice(-1, None)):
            given = [array[part] for array in inputs]
            result = given.pop(0)
            for operator, members in self.steps:
                found = spec(operator)
                tensors = dict.fromkeys(found.tensors, tensor_of(Device("reference"), result))
                others = [given.pop(0) for _ in range(len(tensors) - 2)]
                result = found.reference(found.desc(**tensors, **dict(members)), result, *others)
            if not are_near(y[part], result):
                return "a row differs from the reference's"
        return ""


def are_near(one: Any, other: Any) -> bool:
    """But for what libraries round otherwise."""
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol=4 * np.finfo(one.dtype).eps, atol=1e-6)


def function_of(library: str, module: Any, name: str) -> tuple[Callable[..., Any], int] | None:
    """What a library computes an operator by, with the output behind the inputs, and how many inputs that takes."""
    if name in ("ADD", "MULTIPLY", "DIVIDE", "MAX"):
        binary = getattr(module, {"MAX": "fmax"}.get(name, name.lower()))
        return lambda x, y, out: binary(x, y, out=out), 2
    if name == "CLIP":
        return lambda x, out: module.clip(x, -1, 1, out=out), 1
    if name == "RELU":
        relu = module.maximum if library == "numpy" else module.clamp_min
        return lambda x, out: relu(x, 0, out=out), 1
    unary = getattr(module, name.lower(), None)
    return None if unary is None else (lambda x, out: unary(x, out=out), 1)


_CLIP = ("ELEMENT_WISE_CLIP", (("Min", -1.0), ("Max", 1.0)))


def _of(operator: str, **members: Any) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    return ((operator, tuple(members.items())),)


def element_wise() -> Iterator[ElementWise]:
    def row(name: str, dtype: str, steps: Any, **options: Any) -> ElementWise:
        return ElementWise("ELEMENT_WISE", name, 1.1, dtype, steps=steps, **options)

    for dtype in ("float32", "float16", "int32", "int8"):
        yield row("ADD", dtype, _of("ELEMENT_WISE_ADD"))
    for name in ("MULTIPLY", "DIVIDE", "MAX"):
        yield row(name, "float32", _of(f"ELEMENT_WISE_{name}"))
    for broadcast in ("row", "column"):
        yield row(f"ADD, a {broadcast} for all", "float32", _of("ELEMENT_WISE_ADD"), broadcast=broadcast)
    yield row("CLIP", "float32", (_CLIP,))
    yield row("IDENTITY, scaled", "float32", _of("ELEMENT_WISE_IDENTITY", ScaleBias=DML_SCALE_BIAS(Scale=0.5, Bias=1)))
    for dtype in ("float32", "float16"):
        yield row("RELU", dtype, _of("ACTIVATION_RELU"))
    for name in ("SIGMOID", "TANH"):
        yield row(name, "float32", _of(f"ACTIVATION_{name}"))
    yield row("EXP", "float32", _of("ELEMENT_WISE_EXP"))
    both = (*_of("ELEMENT_WISE_MULTIPLY"), *_of("ELEMENT_WISE_ADD"), _CLIP)
    yield row("MULTIPLY, ADD, CLIP", "float32", both)
    yield row("MULTIPLY, ADD, CLIP", "float16", both)
