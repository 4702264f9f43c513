"""The rows of reductions: the table of their functions in libraries, and that of the shapes they are measured on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ..core.enums import ReduceFunction
from .cases import Function, lay
from .operations import Line, Operation, Read, Shape
from .places import Place

LIMIT = 1.15
"""Beside the time to read the input once."""
FEW = 512
"""Elements that are not 0, at most about so many for each sum: sums of any floats are exact then, in any order."""


class Functions(NamedTuple):
    """Of one reduction: names in the libraries' modules."""

    numpy: str
    torch: str
    options: tuple[tuple[str, Any], ...] = ()
    has_type: bool = False
    """Whether the result's type is an argument, as integers are else summed in 64 bits."""
    has_one_axis: bool = False


FUNCTIONS: dict[str, Functions] = {
    "SUM": Functions("sum", "sum", has_type=True),
    "AVERAGE": Functions("mean", "mean"),
    "MIN": Functions("min", "amin"),
    "MAX": Functions("max", "amax"),
    "L1": Functions("linalg.vector_norm", "linalg.vector_norm", (("ord", 1),)),
    "L2": Functions("linalg.vector_norm", "linalg.vector_norm", (("ord", 2),)),
    "SUM_SQUARE": Functions("vecdot", "linalg.vecdot", has_one_axis=True),
    "MULTIPLY": Functions("prod", "prod", has_type=True),
    "LOG_SUM_EXP": Functions("logaddexp.reduce", "logsumexp"),
    "ARGMIN": Functions("argmin", "argmin", has_one_axis=True),
    "ARGMAX": Functions("argmax", "argmax", has_one_axis=True),
}
_INDICES = ("ARGMIN", "ARGMAX")
_BY_ARITHMETIC = ("MULTIPLY", "LOG_SUM_EXP")
"""Measured beside libraries alone, as multiplications in order and exponentials take longer than memory."""


class Geometry(NamedTuple):
    name: str
    shape: Callable[[int], Shape]
    """Of so many elements."""
    axes: Shape
    layout: str = "packed"


def _rows_of(length: int) -> Callable[[int], Shape]:
    def shape(n: int) -> Shape:
        width = min(length, max(1, n // 2))
        return (n // width, width)

    return shape


def _middle(length: int, width: int) -> Callable[[int], Shape]:
    return lambda n: (n // (length * width), min(length, max(1, n // width)), width)


_USUAL = (
    Geometry("all", lambda n: (n,), (0,)),
    Geometry("rows of 1024", _rows_of(1024), (1,)),
    Geometry("1024 columns", _rows_of(1024), (0,)),
    Geometry("middle axis of 64, inner 32", _middle(64, 32), (1,)),
)
_OTHERS = (
    *(Geometry(f"rows of {length}", _rows_of(length), (1,)) for length in (3, 32, 1021, 1_000_000)),
    *(Geometry(f"{width} columns", _rows_of(width), (0,)) for width in (3, 17, 1021, 65536, 1_000_000)),
    Geometry("middle axis of 61, inner 31", _middle(61, 31), (1,)),
    Geometry("outer and inner axes", _middle(64, 32), (0, 2)),
    Geometry("rows of 1021, gapped", _rows_of(1021), (1,), "gapped"),
    Geometry("1021 columns, gapped", _rows_of(1021), (0,), "gapped"),
    Geometry("rows of 1021, transposed", _rows_of(1021), (1,), "transposed"),
)


def reductions() -> Iterator[Operation]:
    """All functions of FLOAT32 on the usual shapes; sums on all shapes, and one function that compares and one that
    finds on some; and these of other types."""
    for name in FUNCTIONS:
        for geometry in _USUAL[:3]:
            yield _row(name, "float32", geometry)
    for name, geometries in (("SUM", _OTHERS), ("MAX", _OTHERS[::4]), ("ARGMAX", _OTHERS[1::4])):
        for geometry in (*_USUAL[3:], *geometries):
            yield _row(name, "float32", geometry)
    for i, dtype in enumerate(("float16", "int32", "int64", "uint8")):
        for name in ("SUM", "MAX", "ARGMAX"):
            if name != "SUM" or dtype != "uint8":  # which it has no sums of
                for geometry in (*_USUAL, *_OTHERS)[i::14]:
                    yield _row(name, dtype, geometry)


def reading() -> Iterator[Read]:
    """By the compiled module, where there is one."""
    with suppress(ImportError):
        from .. import _native  # noqa: F401

        yield Read("READ", "all", None, "uint64")


def _row(name: str, dtype: str, geometry: Geometry) -> Operation:
    operator = name if name in _INDICES else "REDUCE"
    members: dict[str, Any] = {"Axes": geometry.axes}
    if operator == "REDUCE":
        members["Function"] = ReduceFunction[name]
    functions = FUNCTIONS[name]

    def shapes(n: int, run: int) -> Sequence[Shape]:
        shape = geometry.shape(n)
        return [shape, tuple(1 if axis in geometry.axes else size for axis, size in enumerate(shape))]

    line = Line(
        operator,
        shapes,
        lambda shapes, dtype: members,
        _function(functions.numpy, functions, geometry.axes),
        _function(functions.torch, functions, geometry.axes),
        lambda place, shapes, dtype: [lay(_values(place, name, shapes[0], geometry.axes, dtype), geometry.layout)],
        "int64" if name in _INDICES else "",
        is_reduction=True,
        is_rounded=True,
    )
    is_strided = geometry.layout != "packed"
    cell = f"{name.lower().replace('_', ' ')}{', strided' if is_strided else ''}"
    limit = None if name in _BY_ARITHMETIC else LIMIT
    return Operation("REDUCE", f"{name}, {geometry.name}", limit, dtype, line=line, of=cell)


def _function(path: str, functions: Functions, axes: Shape) -> Function | None:
    if len(axes) > 1 and functions.has_one_axis:
        return None
    axis = axes[0] if len(axes) == 1 else axes

    def compute(library: Any, x: Any, y: Any) -> Any:
        is_torch, is_product = library.__name__ == "torch", path.endswith("vecdot")
        words = {**dict(functions.options), "dim" if is_torch else "axis": axis}
        if not is_product:
            words["keepdim" if is_torch else "keepdims"] = True
        if is_torch or path != "linalg.vector_norm":  # which writes into memory of its own alone
            words["out"] = y.reshape([size for i, size in enumerate(x.shape) if i not in axes]) if is_product else y
        if functions.has_type:
            words["dtype"] = x.dtype
        result = attrgetter(path)(library)(*[x] * (1 + is_product), **words)
        return result.reshape(y.shape)

    return compute


def _values(place: Place, name: str, shape: Shape, axes: Shape, dtype: str) -> Any:
    """Floats whose sums are exact in any order, and neither overflow nor vanish; else any."""
    kind = np.dtype(dtype).kind
    if kind != "f":
        # Odd ones, whose products never come to 0.
        return place.cast(place.integers(0, 50, shape) * 2 + 1, dtype)
    if name in ("MIN", "MAX", *_INDICES, "LOG_SUM_EXP"):
        return place.cast(place.integers(-4096, 4096, shape, np.int16), dtype) / np.dtype(dtype).type(1024)
    if name == "MULTIPLY":
        return place.cast(place.integers(0, 2, shape) * 2 - 1, dtype)
    length = int(np.prod([shape[axis] for axis in axes]))
    chances = place.integers(0, max(3, length // FEW), shape, np.int32)
    return place.cast((chances == 0).astype(np.int8) - (chances == 1), dtype)
