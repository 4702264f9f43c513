"""Interpolation for the CPU's kernels: tables of the dimensions that have some other elements than the input's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ...core.enums import InterpolationMode
from ...core.strided_layout import DTYPES, Array, Layout
from ...operators.interpolation import Taps
from ...operators.specs.image import divisor_of_upsample, taps_of_upsample
from ...operators.specs.resample import copies, taps_of
from .movement_lowering import copied, lowered, repeated
from .request import Lowered


def resample(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    (x,), (y,) = inputs, outputs
    assert x is not None and y is not None
    taps = taps_of(desc)
    tables = _tables(taps, x)
    if not tables:
        return copied(x, y)
    if not copies(desc):
        return _sums(tables)
    times = [_times(each, size) for each, size in zip(taps, x.sizes, strict=True)]
    if all(times) and not _shuffles(times, x):
        return repeated(x, y, times)
    return "RESAMPLE_NEAREST", {"Axes": tuple(tables), "First": _list(each.first for each in tables.values())}


def upsample(desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Lowered | None:
    (x,) = inputs
    assert x is not None
    if desc.InterpolationMode == InterpolationMode.NEAREST_NEIGHBOR:
        return lowered(desc, inputs, outputs)
    name, attributes = _sums(_tables(taps_of_upsample(desc), x))
    return name, {**attributes, "Divisor": (divisor_of_upsample(desc),)}


def _tables(taps: Sequence[Taps], x: Layout) -> dict[int, Taps]:
    """By the numbers of their dimensions."""
    return {i: each for i, (each, size) in enumerate(zip(taps, x.sizes, strict=True)) if not each.is_identity(size)}


def _sums(tables: dict[int, Taps]) -> Lowered:
    parts = tables.values()
    return "RESAMPLE", {
        "Axes": tuple(tables),
        "First": _list(each.first for each in parts),
        "Counts": _list(each.counts for each in parts),
        "Starts": _list(each.starts for each in parts),
        "Weights": _list(each.weights for each in parts),
        "WeightEnds": tuple(accumulate(len(each.weights) for each in parts)),
    }


def _list(parts: Iterable[Array]) -> Any:
    first, *others = parts
    return np.concatenate([first, *others]) if others else np.ascontiguousarray(first)


def _shuffles(times: Sequence[int], x: Layout) -> bool:
    """Whether what is repeated are a few elements that lie together, which lists copy faster than a movement."""
    repeats = [i for i, each in enumerate(times) if each > 1]
    unit = prod(x.sizes[repeats[-1] + 1 :]) if repeats else 1
    return unit > 1 and unit * DTYPES[x.type].itemsize < 16


def _times(taps: Taps, size: int) -> int:
    """How often each element is repeated; 0 where they are not repeated alike."""
    times, rest = divmod(len(taps.first), size)
    return times if not rest and (taps.first == np.arange(size * times) // max(times, 1)).all() else 0
