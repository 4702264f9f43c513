"""The rows that are measured, by operator: for a CPU, and for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import isqrt
from typing import Any

import numpy as np

from .cases import LARGE, LARGE_ON_GPU, LITTLE_ON_GPU, MIDDLE, SMALL, Case, Join, Pooling, Scan
from .computations import layers, of_any_size, one_of_each_cell
from .element_wise import element_wise
from .indexed import indexed
from .movement import movement
from .places import UFUNCS, count_of
from .reductions import reading, reductions
from .resampling import resampling
from .selection import selection


def _square(n: int) -> tuple[int, ...]:
    width = 1 << (n.bit_length() // 2)
    return (n // width, width)


def _middle(n: int) -> tuple[int, ...]:
    width = 1 << ((n // 64).bit_length() // 2)
    return (1, 64, n // 64 // width, width)


def _short(n: int) -> tuple[int, ...]:
    return (n // 32, 32)


def _inner(width: int, most: int = 1021) -> Callable[[int], tuple[int, ...]]:
    def shape(n: int) -> tuple[int, ...]:
        length = min(most, max(1, n // width))
        return (n // width // length, length, width)

    return shape


def _primes(n: int) -> tuple[int, ...]:
    length = next(p for p in range(isqrt(n), 0, -1) if all(p % d for d in range(2, isqrt(p) + 1)))
    return (n // length, length)


def _eight(n: int) -> tuple[int, ...]:
    return (2, 2, 4, max(1, n // 2048), 4, 2, 4, 4)


_SHAPES: tuple[tuple[str, Callable[[int], tuple[int, ...]], int], ...] = (
    ("one row", lambda n: (n,), 0),
    ("long rows", _square, 1),
    ("columns", _square, 0),
    ("middle axis", _middle, 1),
    ("rows of 32", _short, 1),
)
_ODD: tuple[tuple[str, Callable[[int], tuple[int, ...]], int], ...] = (
    *((f"middle axis, inner {width}", _inner(width), 1) for width in (1, 3, 17, 31)),
    ("rows of prime length", _primes, 1),
    ("8 dimensions", _eight, 3),
)


def _scans() -> Iterator[Scan]:
    for operator in UFUNCS:
        for dtype in ("float32", "float16", "int32", "uint32", "int64", "uint64"):
            limit = 1.4 if dtype == "float16" or (operator == "CUMULATIVE_PRODUCT" and dtype.endswith("64")) else 1.15
            for name, shape, axis in _SHAPES:
                yield Scan(operator, name, limit, dtype, shape=shape, axis=axis)
        for dtype in ("float32", "float16", "int64"):
            limit = 1.4 if dtype == "float16" or (operator == "CUMULATIVE_PRODUCT" and dtype.endswith("64")) else 1.15
            for name, shape, axis in _ODD:
                yield Scan(operator, name, limit, dtype, shape=shape, axis=axis, has_odd_shape=True)
            for name, shape, axis in _SHAPES[:3]:
                yield Scan(operator, f"{name}, DECREASING", limit, dtype, shape=shape, axis=axis, decreasing=True)
                yield Scan(operator, f"{name}, exclusive", limit, dtype, shape=shape, axis=axis, exclusive=True)
        for dtype, layout in product(("float32", "float16", "int64"), ("transposed", "gapped")):
            for name, shape, axis in _SHAPES[1:3]:
                yield Scan(operator, f"{name}, {layout}", 1.6, dtype, shape=shape, axis=axis, layout=layout)


def _joins() -> Iterator[Join]:
    for inputs, run in ((2, 2048), (2, 32768), (2, 10007), (16, 4096), (512, 2048), (512, 32768)):
        yield Join("JOIN", f"{inputs} runs of {run} B", 1.05, "uint8", runs=(run,), inputs=inputs)
    for inputs, run in ((2, 65), (2, 128), (3, 333), (16, 200), (512, 96), (2, 1024)):
        yield Join("JOIN", f"{inputs} runs of {run} B", 1.3, "uint8", runs=(run,), inputs=inputs)
    for inputs, run in ((3, 1), (4, 1), (2, 2), (3, 4), (2, 8), (4, 12), (2, 16), (2, 64), (64, 4), (512, 1)):
        yield Join("JOIN", f"{inputs} runs of {run} B", 1.6, "uint8", runs=(run,), inputs=inputs)
    yield Join("JOIN", "runs of 12 and 20 B", 1.6, "float32", runs=(12, 20))
    yield Join("JOIN", "2 runs of 16384 B", 1.05, "int64", runs=(16384,), inputs=2)


def _poolings() -> Iterator[Pooling]:
    def pooling(name: str, limit: float, **options: Any) -> Pooling:
        return Pooling("QUANTIZED_LINEAR_AVERAGE_POOLING", name, limit, options.pop("dtype", "uint8"), **options)

    deep = (16, 56, 56)
    for dtype in ("uint8", "int8"):
        yield pooling("2x2 stride 2", 1.5, dtype=dtype)
        yield pooling("3x3 stride 2", 1.5, window=3, dtype=dtype)
        yield pooling("3x3 stride 1", 2.0, window=3, stride=1, dtype=dtype)
    yield pooling("7x7 stride 1", 3.0, window=7, stride=1)
    yield pooling("3x3x3 stride 1", 3.0, spatial=deep, window=3, stride=1)
    yield pooling("2x2x2 stride 2", 1.5, spatial=deep)
    for size in (7, 14, 112):
        yield pooling(f"global {size}x{size}", 1.1, spatial=(size, size), window=size, stride=1)
    # Beside the plain case.
    for name, options in (
        ("2x2 stride 2", {"window": 2}),
        ("3x3 stride 2", {"window": 3}),
        ("3x3 stride 1", {"window": 3, "stride": 1}),
        ("7x7 stride 1", {"window": 7, "stride": 1}),
    ):
        padding = options["window"] // 2
        yield pooling(f"{name}, per channel", 1.3, **options, per_channel=True)
        yield pooling(f"{name}, padded", 1.3, **options, padding=padding)
        if name.startswith("3x3"):
            yield pooling(f"{name}, padding counted", 1.3, **options, padding=padding, include_padding=True)
            yield pooling(f"{name}, dilated", 1.3, **options, dilation=2)
            yield pooling(
                f"{name}, per channel, padded and dilated", 1.3, **options, per_channel=True, padding=2, dilation=2
            )
    yield pooling("3x3x3 stride 1, padded", 1.3, spatial=deep, window=3, stride=1, padding=1)
    yield pooling("global 14x14, per channel", 1.3, spatial=(14, 14), window=14, stride=1, per_channel=True)


def matrix(quick: bool = False, sizes: Sequence[int] = (LARGE, MIDDLE, SMALL)) -> list[Case]:
    """All rows for a CPU, by operator; where quick, a few of each operator."""
    computed, of_layers = [one_of_each_cell(table()) if quick else [*table()] for table in (of_any_size, layers)]
    scans, joins, poolings, others = list(_scans()), list(_joins()), list(_poolings()), list(element_wise())
    tabled: list[Case] = [*movement(), *indexed(), *resampling(), *reductions(), *selection(), *reading()]
    if quick:
        scans = [row for row in scans if row.cell in ("float32", "int64")]
        joins = joins[::3]
        poolings = [row for row in poolings if row.dtype == "uint8" and (row.plain() is None or row == poolings[-1])]
        others = [*{row.cell: row for row in reversed(others)}.values()]
        tabled = [*{row.cell: row for row in reversed(tabled)}.values()]
    rows: list[Case] = [*scans, *joins, *poolings, *others, *tabled, *computed]
    return [*(row.scaled(size) for size in sizes for row in rows), *(row.scaled(max(sizes)) for row in of_layers)]


# For a GPU: tensors of 2^28 elements, and bytes for JOIN and pooling as they come out

MOVED, NORMALISED = 1.2, 1.3
"""Limits of what reads and writes once, and of what reads a line before it is written."""


def _rows(length: int) -> Callable[[int], tuple[int, ...]]:
    return lambda n: (n // min(length, n), min(length, n))


_SHAPES_ON_GPU: tuple[tuple[str, str, Callable[[int], tuple[int, ...]], int, float, float], ...] = (
    # cell, name, shape, axis, limit, that of float16
    *(("many rows", f"rows of {length}", _rows(length), 1, 1.12, 1.25) for length in (32, 512, 16384, 65536)),
    ("outer axis", "columns", _square, 0, 1.15, 1.25),
    ("outer axis", "middle axis", lambda n: (4, 64, *_square(n // 256)), 1, 1.15, 1.25),
    ("one long row or few", "one row", lambda n: (n,), 0, 1.45, 1.6),
    ("one long row or few", "4 rows", lambda n: (4, n // 4), 1, 1.45, 1.6),
    ("one long row or few", "256 rows", lambda n: (256, n // 256), 1, 1.45, 1.6),
    *(
        ("middle axis, inner 1 to 31", f"middle axis of {length}, inner {width}", _inner(width, length), 1, 1.4, 1.4)
        for length, width in ((700, 3), (1 << 20, 3), (1 << 18, 16), (512, 17))
    ),
)


def _scans_on_gpu() -> Iterator[Scan]:
    for operator, dtypes in (
        ("CUMULATIVE_SUMMATION", ("float32", "float16", "int32", "int64")),
        ("CUMULATIVE_PRODUCT", ("float32", "int64")),
    ):
        for dtype in dtypes:
            size = np.dtype(dtype).itemsize << 28
            for cell, name, shape, axis, limit, half in _SHAPES_ON_GPU:
                group = f"{cell}, float16" if dtype == "float16" and half != limit else cell
                yield Scan(operator, name, half if dtype == "float16" else limit, dtype, size, group, shape, axis)


def _joins_on_gpu() -> Iterator[Join]:
    for inputs, rows, dtype in ((2, 1, "float32"), (2, 16384, "float32"), (16, 16, "float32"), (512, 1, "float16")):
        name = f"{inputs} runs in each of {count_of(rows, 'row')}"
        yield Join("JOIN", name, 1.06, dtype, 1 << 30, "long runs", inputs=inputs, rows=rows)
    for name, dtype, size, runs, inputs in (
        ("runs of 12 and 20 B", "float32", 1 << 30, (12, 20), 0),
        ("16 runs of 20 B", "uint8", 640 << 20, (20,), 16),
        ("3 runs of 1 B", "uint8", 768 << 20, (1,), 3),
    ):
        yield Join("JOIN", name, 1.5, dtype, size, "runs of 1 to 20 B", runs=runs, inputs=inputs)


def _poolings_on_gpu() -> Iterator[Pooling]:
    wide, deep = (112, 112), (16, 112, 112)
    for group, name, limit, spatial, window, stride, padding in (
        ("2x2 and 3x3 stride 2", "2x2 stride 2", 1.3, wide, 2, 2, 0),
        ("2x2 and 3x3 stride 2", "3x3 stride 2, padded", 1.3, wide, 3, 2, 1),
        ("3x3 stride 1", "3x3 stride 1, padded", 1.6, wide, 3, 1, 1),
        ("7x7 and 3x3x3 stride 1", "7x7 stride 1, padded", 3.0, wide, 7, 1, 3),
        ("7x7 and 3x3x3 stride 1", "3x3x3 stride 1, padded", 3.0, deep, 3, 1, 1),
        ("global", "global 32x32", 1.2, (32, 32), 32, 1, 0),
        ("global", "global 14x14", 1.2, (14, 14), 14, 1, 0),
    ):
        options: dict[str, Any] = {"spatial": spatial, "window": window, "stride": stride, "padding": padding}
        yield Pooling("QUANTIZED_LINEAR_AVERAGE_POOLING", name, limit, "uint8", 784 << 20, group, **options)


def _others_on_gpu() -> Iterator[Case]:
    """The CPU's rows of the other operators; some are judged by PyTorch alone."""
    for row in (*element_wise(), *reductions()):
        yield replace(row, limit=MOVED, size=LARGE_ON_GPU, group=row.cell)
    others: list[Case] = [*movement(), *indexed(), *resampling(), *selection()]
    for row in others:
        yield replace(row, limit=row.limit and MOVED, size=LARGE_ON_GPU, group=row.cell)
    for row in of_any_size():
        yield replace(row, limit=row.limit and NORMALISED, size=LARGE_ON_GPU, group=row.cell)
    for row in layers():
        yield replace(row, limit=None, group=row.cell)


_LITTLE = ("float32 rows of 512", "float32 columns", "float32 one row", "runs of 12 and 20 B", "uint8 2x2 stride 2")


def matrix_on_gpu(quick: bool = False, sizes: Sequence[int] | None = None) -> list[Case]:
    """All rows for a GPU, by operator, and a few of little tensors; where quick, one of each cell. All of the given
    sizes, where there are any."""
    kernels: list[Case] = [*_scans_on_gpu(), *_joins_on_gpu(), *_poolings_on_gpu()]
    rows = [*kernels, *_others_on_gpu()]
    summing = [row for row in kernels if row.operator != "CUMULATIVE_PRODUCT"]
    little = [row.scaled(LITTLE_ON_GPU) for row in summing if f"{row.dtype} {row.name}".endswith(_LITTLE)]
    if quick:
        cells: dict[tuple[str, str], Case] = {}
        for row in rows:
            cells.setdefault((row.operator, row.cell), row)
        rows = list(cells.values())
    return rows + little if sizes is None else [row.scaled(size) for size in sizes for row in rows]
