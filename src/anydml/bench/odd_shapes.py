"""Rows of a GPU of shapes at random, few of them multiples of anything: kernels lean on no round sizes."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from random import Random
from typing import Any

import numpy as np

from .cases import Case, Join, Pooling, Scan

ODD = 1.3
"""How many times as long as of even sizes it may take at most."""
SCANS, JOINS, POOLINGS = 40, 12, 8
"""So many rows there are."""
CELLS = (
    *(
        f"{cell}{dtype}"
        for cell in ("rows of any length", "few rows of any length", "any number of columns")
        for dtype in ("", ", float16")
    ),
    "middle axis, inner 1 to 31, of any length",
    *(f"{runs} runs of any length" for runs in ("long", "short")),
    *(f"windows of {window}, stride {stride}, any size" for window, stride in (("2x2", 2), ("3x3", 2))),
    *(f"windows of {window}, stride 1, any size" for window in ("3x3", "3x3x3")),
)
"""What rows of the same limit are called."""
_MIB = 1 << 20


def odd_shapes(seed: int) -> list[Case]:
    """Scans, joins and pooling of 512 MiB and more, the same ones for a seed."""
    random = Random(seed)
    scans = [_scan(random, i) for i in range(SCANS)]
    return [*scans, *(_join(random) for _ in range(JOINS)), *(_pooling(random, i) for i in range(POOLINGS))]


def _between(random: Random, least: int, most: int) -> int:
    """A number, small ones as often as large ones."""
    return round(exp(random.uniform(log(least), log(most))))


def _scan(random: Random, i: int) -> Scan:
    operator, dtype = random.choice(
        [
            *(("CUMULATIVE_SUMMATION", dtype) for dtype in ("float32", "float16", "int32", "int64")),
            *(("CUMULATIVE_PRODUCT", dtype) for dtype in ("float32", "int64")),
        ]
    )
    shape: Callable[[int], tuple[int, ...]]
    kind = i % 5
    if kind == 0:
        group, limit, axis = "rows of any length", 1.25 if dtype == "float16" else 1.12, 1
        length = _between(random, 9, 100_000)
        name, shape = f"rows of {length}", lambda n: (max(1, n // length), min(length, n))
    elif kind == 1:
        group, limit, axis = "few rows of any length", 1.6 if dtype == "float16" else 1.45, 1
        rows = _between(random, 1, 300)
        name, shape = f"{rows} rows", lambda n: (rows, max(1, n // rows))
    elif kind == 2:
        group, limit, axis = "any number of columns", 1.25 if dtype == "float16" else 1.15, 0
        width = _between(random, 1000, 100_000)
        name, shape = f"{width} columns", lambda n: (max(1, n // width), min(width, n))
    elif kind == 3:
        group, limit, axis = "any number of columns", 1.25 if dtype == "float16" else 1.15, 1
        batch, width = _between(random, 2, 30), _between(random, 100, 20_000)
        name, shape = f"{batch} x {width} columns", lambda n: (batch, max(1, n // batch // width), min(width, n))
    else:
        group, limit, axis = "middle axis, inner 1 to 31, of any length", 1.4, 1
        length, inner = _between(random, 100, 1 << 18), random.randint(2, 31)
        name, shape = (
            f"middle axis of {length}, inner {inner}",
            lambda n: (max(1, n // length // inner), max(1, min(length, n // inner)), inner),
        )
    group = f"{group}, float16" if dtype == "float16" and limit != 1.4 else group
    size = random.randint(512 * _MIB, 1024 * _MIB) // np.dtype(dtype).itemsize * np.dtype(dtype).itemsize
    return Scan(operator, f"{i}: {name}", ODD * limit, dtype, size, group, shape, axis)


def _join(random: Random) -> Join:
    dtype = random.choice(["uint8", "float16", "float32", "int64"])
    inputs, item = _between(random, 2, 512), np.dtype(dtype).itemsize
    is_short = random.random() < 0.3
    most = 20 // item if is_short else 5000
    runs = tuple(item * _between(random, 1 if is_short else 65, max(2, most)) for _ in range(min(inputs, 7)))
    name, limit = f"{inputs} runs of {min(runs)} to {max(runs)} B", 1.5 if is_short else 1.06
    size = random.randint(512 * _MIB, 1024 * _MIB)
    group = "short runs of any length" if is_short else "long runs of any length"
    return Join("JOIN", name, ODD * limit, dtype, size, group, runs, inputs)


def _pooling(random: Random, i: int) -> Pooling:
    window, stride, limit, dimensions = ((2, 2, 1.3, 2), (3, 2, 1.3, 2), (3, 1, 1.6, 2), (3, 1, 3.0, 3))[i % 4]
    spatial = tuple(random.randint(*((9, 19) if dimensions == 3 and k == 0 else (61, 151))) for k in range(dimensions))
    padding, size = random.randrange(window // 2 + 1), random.randint(512 * _MIB, 1024 * _MIB)
    windows, sizes = "x".join([str(window)] * dimensions), " x ".join(map(str, spatial))
    name = f"{windows} stride {stride} on {sizes}, {padding} padded"
    group = f"windows of {windows}, stride {stride}, any size"
    options: dict[str, Any] = {"spatial": spatial, "window": window, "stride": stride, "padding": padding}
    return Pooling("QUANTIZED_LINEAR_AVERAGE_POOLING", name, ODD * limit, "uint8", size, group, **options)
