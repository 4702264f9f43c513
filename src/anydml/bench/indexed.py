"""The rows of indexed movement: elements and rows that are gathered and scattered by indices in random order.

No index comes twice in a scatter, as libraries differ in which one of several counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .operations import Line, Operation, Shape, random_inputs
from .places import SEED, Place


def _columns(width: int) -> Callable[[int], Shape]:
    return lambda n: (max(n // width, 1), min(width, n))


_SHAPES: tuple[tuple[str, Callable[[int], Shape], int], ...] = (
    ("one row", lambda n: (n,), 0),
    ("rows of 1021", _columns(1021), 1),
    ("1021 columns", _columns(1021), 0),
)
INDEX = 8
"""Bytes of an index, as PyTorch takes no others here: smaller elements are as many as indices of the row's size."""
_RUNS = (4, 32, 64, 256, 4096)


def _orders(shape: Shape, axis: int) -> Any:
    """Of each line along an axis all indices, in an order that is random, and begins elsewhere in each line."""
    random = np.random.default_rng(SEED)
    length = shape[axis]
    along = [length if i == axis else 1 for i in range(len(shape))]
    lines = [1 if i == axis else size for i, size in enumerate(shape)]
    order = random.permutation(length).reshape(along) + random.integers(0, length, lines)
    return np.broadcast_to(order % length, shape).astype(np.int64)


def _with_orders(axis: int) -> Callable[[Place, Sequence[Shape], str], list[Any]]:
    def inputs(place: Place, shapes: Sequence[Shape], dtype: str) -> list[Any]:
        x, *updates = random_inputs(place, [shapes[0], *shapes[2:]], dtype)
        return [x, _orders(shapes[1], axis), *updates]

    return inputs


def _gathered_elements(shape: Callable[[int], Shape], axis: int, item: int) -> Line:
    return Line(
        "GATHER_ELEMENTS",
        lambda n, run: [shape(n * item // INDEX)] * 3,
        lambda shapes, dtype: {"Axis": axis},
        lambda np, x, indices, y: np.take_along_axis(x, indices, axis),
        lambda torch, x, indices, y: torch.gather(x, axis, indices, out=y),
        _with_orders(axis),
        node=("GatherElements", {"axis": axis}),
    )


def _scattered_elements(shape: Callable[[int], Shape], axis: int, item: int) -> Line:
    def by_numpy(np: Any, x: Any, indices: Any, updates: Any, y: Any) -> None:
        np.copyto(y, x)
        np.put_along_axis(y, indices, updates, axis)

    return Line(
        "SCATTER_ELEMENTS",
        lambda n, run: [shape(n * item // INDEX)] * 4,
        lambda shapes, dtype: {"Axis": axis},
        by_numpy,
        lambda torch, x, indices, updates, y: torch.scatter(x, axis, indices, updates, out=y),
        _with_orders(axis),
        node=("ScatterElements", {"axis": axis}),
    )


_DIMENSIONS = {"InputDimensionCount": 2, "IndicesDimensionCount": 2}


def _rows(n: int, run: int, item: int) -> tuple[Shape, Shape]:
    """Rows of so many elements, and the index of each: the larger ones are as large as n elements."""
    rows = min(n // run, n * item // INDEX)
    return (rows, run), (rows, 1)


def _gathered_rows(item: int) -> Line:
    return Line(
        "GATHER_ND",
        lambda n, run: [*_rows(n, run, item), _rows(n, run, item)[0]],
        lambda shapes, dtype: _DIMENSIONS,
        lambda np, x, indices, y: np.take(x, indices[:, 0], 0, y, "clip"),
        lambda torch, x, indices, y: torch.index_select(x, 0, indices[:, 0], out=y),
        _with_orders(0),
        node=("GatherND", {}),
    )


def _scattered_rows(item: int) -> Line:
    def by_numpy(np: Any, x: Any, indices: Any, updates: Any, y: Any) -> None:
        np.copyto(y, x)
        y[indices[:, 0]] = updates

    def by_torch(torch: Any, x: Any, indices: Any, updates: Any, y: Any) -> None:
        y.copy_(x).index_copy_(0, indices[:, 0], updates)

    return Line(
        "SCATTER_ND",
        lambda n, run: [*_rows(n, run, item), *[_rows(n, run, item)[0]] * 2],
        lambda shapes, dtype: _DIMENSIONS,
        by_numpy,
        by_torch,
        _with_orders(0),
        node=("ScatterND", {}),
    )


def indexed() -> Iterator[Operation]:
    """What is judged by the libraries beside it alone, as memory is touched in random order."""

    def row(name: str, line: Line, dtype: str, run: int = 1) -> Operation:
        cell = "gathers by points" if line.operator.startswith("GATHER") else "scatters"
        return Operation("MOVEMENT", f"{line.operator}, {name}", None, dtype, line=line, run=run, of=cell)

    for of_elements in (_gathered_elements, _scattered_elements):
        for name, shape, axis in _SHAPES:
            for dtype in ("float32", "float16", "int64", "uint8")[: 4 if axis else 2]:
                yield row(name, of_elements(shape, axis, np.dtype(dtype).itemsize), dtype)
    for of_rows in (_gathered_rows, _scattered_rows):
        for size in _RUNS:
            yield row(f"runs of {size} B", of_rows(4), "float32", size // 4)
        yield row("runs of 3 B", of_rows(1), "uint8", 3)
