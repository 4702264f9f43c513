"""The rows of what is chosen among elements: the largest of them, and those that are not 0.

How much is written depends on what is found, so that they are judged by the libraries beside them alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.strided_layout import Array
from ..device import Device
from .cases import Case, Work, compiled_of, desc_of, tensor_of
from .places import Host, place_of


def _shape_of(count: int, row: int) -> tuple[int, ...]:
    """Rows of so many elements, or one row for 0."""
    return (count,) if row == 0 else (max(count // row, 1), min(row, count))


@dataclass(frozen=True)
class TopK(Case):
    """The largest of each row or column."""

    k: int = field(kw_only=True)
    row: int = field(kw_only=True)
    axis: int = -1

    @property
    def cell(self) -> str:
        return "few of many" if self.k * 16 <= (self.row or self.size) else "many of few"

    def make(self, device: Device) -> Work:
        place = place_of(device)
        shape = _shape_of(self.size // np.dtype(self.dtype).itemsize, self.row)
        axis = self.axis % len(shape)
        k = min(self.k, shape[axis])
        most = 1 << (11 if self.dtype == "float16" else 24)  # all of which are numbers of the type
        x = Host().integers(0, most, shape, np.int32).astype(self.dtype)
        given = place.to_device(x)
        chosen = tuple(k if i == axis else size for i, size in enumerate(shape))
        values, indices = place.empty(chosen, self.dtype), place.empty(chosen, "uint32")
        names = ("InputTensor", "OutputValueTensor", "OutputIndexTensor")
        tensors = {name: tensor_of(device, each) for name, each in zip(names, (given, values, indices), strict=True)}
        desc = desc_of("TOP_K", **tensors, Axis=axis, K=k)

        def by_numpy(library: Any, x: Array, values: Array, indices: Array) -> Array:
            """The largest in any order, and then in theirs."""
            length = x.shape[axis]
            places = library.argpartition(x, length - k, axis).take(range(length - k, length), axis)
            found = library.take_along_axis(x, places, axis)
            order = library.flip(library.argsort(found, axis), axis)
            library.copyto(indices, library.take_along_axis(places, order, axis), casting="unsafe")
            result: Array = library.take_along_axis(found, order, axis)
            return result

        def check(output: Any) -> str:
            y = place.numpy(output)
            is_right = np.array_equal(y, by_numpy(np, x, y, np.empty(y.shape, np.uint32)))
            is_right &= np.array_equal(y, np.take_along_axis(x, place.numpy(indices).astype(np.int64), axis))
            return "" if is_right else "it differs from what NumPy chooses"

        return Work(
            place,
            [given],
            values,
            compiled_of(device, desc),
            check,
            outputs=[values, indices],
            functions={"numpy": by_numpy, "torch": lambda torch, x, *y: torch.topk(x, k, axis).values},
            moved=x.nbytes + values.nbytes + indices.nbytes,
        )


@dataclass(frozen=True)
class Nonzero(Case):
    """The coordinates of what is not 0."""

    row: int = field(kw_only=True)
    percent: int = field(kw_only=True)

    @property
    def cell(self) -> str:
        return "coordinates"

    def make(self, device: Device) -> Work:
        place = place_of(device)
        # Rows for all elements have room there, too.
        shape = _shape_of(max(self.size // (4 * (1 + bool(self.row))), 1), self.row)
        x = (Host().integers(0, 100, shape) < self.percent).astype(self.dtype)
        given = place.to_device(x)
        count, rows = place.empty((1,), "uint32"), place.empty((x.size, x.ndim), "uint32")
        names = ("InputTensor", "OutputCountTensor", "OutputCoordinatesTensor")
        tensors = {name: tensor_of(device, each) for name, each in zip(names, (given, count, rows), strict=True)}
        expected = np.argwhere(x)

        def check(y: Any) -> str:
            is_right = int(y[0]) == len(expected) and np.array_equal(place.numpy(rows[: len(expected)]), expected)
            return "" if is_right else "it differs from what NumPy finds"

        def counted(found: Any) -> Any:
            return place.to_device(np.array([len(found)], np.uint32))

        return Work(
            place,
            [given],
            count,
            compiled_of(device, desc_of("NONZERO_COORDINATES", **tensors)),
            check,
            outputs=[count, rows],
            functions={
                "numpy": lambda np, x, *y: counted(np.argwhere(x)),
                "torch": lambda torch, x, *y: counted(torch.nonzero(x)),
            },
            moved=x.nbytes + len(expected) * x.ndim * rows.itemsize,
        )


def selection() -> Iterator[Case]:
    """Rows of a few lengths and numbers, of FLOAT32, and some of other types."""
    for k in (1, 10, 100, 1000, 100_000):
        yield TopK("TOP_K", f"{k} of one row", None, "float32", k=k, row=0)
    for k in (1, 8, 64, 1024):
        yield TopK("TOP_K", f"{k} of rows of 1024", None, "float32", k=k, row=1024)
        yield TopK("TOP_K", f"{k} of columns, of 1024", None, "float32", k=k, row=1024, axis=0)
    for k in (1, 5, 64):
        yield TopK("TOP_K", f"{k} of rows of 64", None, "float32", k=k, row=64)
    for dtype in ("float16", "int32", "int64"):
        yield TopK("TOP_K", "100 of one row", None, dtype, k=100, row=0)
        yield TopK("TOP_K", "8 of rows of 1024", None, dtype, k=8, row=1024)
    for row in (0, 3, 1024):
        for percent in (1, 50, 100):
            name = f"{percent} % of {f'rows of {row}' if row else 'one row'}"
            yield Nonzero("NONZERO_COORDINATES", name, None, "float32", row=row, percent=percent)
    for dtype in ("float16", "uint8"):
        yield Nonzero("NONZERO_COORDINATES", "50 % of one row", None, dtype, row=0, percent=50)
