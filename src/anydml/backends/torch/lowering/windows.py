"""What slides along dimensions: pooling of floats and maxima, and sums around elements.

A window is walked tap by tap, one dimension after the other: a call combines what lies under a tap at all places. So
padding takes no memory, whatever its size, and NaN is treated as the references do it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import inf, nan
from typing import Any

import torch

from ....core.enums import TensorDataType
from ....core.strided_layout import Layout
from ....operators import OPERATORS
from ....operators.schema import OperatorDesc, OperatorSpec
from ....operators.window_math import Window, pooling_windows
from ...base import Declined
from . import NO_CALLS, Run, Tensors
from .values import LOWEST, double, flipped, store, widened


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    layout = outputs[0]
    assert layout is not None
    make = _MAKERS.get(spec.name)
    if make is None and OPERATORS[spec.name].family != "max_pooling":
        return Declined(NO_CALLS)
    walks = walks_over(pooling_windows(desc), layout.sizes[2:])
    return _maximum(layout, walks) if make is None else make(desc, walks)


class Walk:
    """Of a window along an axis, in so many places."""

    def __init__(self, axis: int, window: Window, places: int) -> None:
        self.axis = axis
        self.window = window
        self.places = places
        before = (slice(None),) * axis
        slices = list(window.tap_slices(places))
        self._steps = [((*before, written), (*before, read)) for _, written, read in slices]
        self._starts_whole = bool(slices) and slices[0][1] == slice(0, places)
        """Whether the first tap lies on an element at every place."""

    def reduced(self, x: Any, start: float, combine: Callable[..., Any]) -> Any:
        """What `combine` makes of the elements under the taps; `start` is its neutral element."""
        sizes = (*x.shape[: self.axis], self.places, *x.shape[self.axis + 1 :])
        # Two tensors that lie otherwise would be walked against the memory of one.
        is_last = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)
        order = torch.channels_last if is_last else torch.contiguous_format
        y = torch.empty(sizes, dtype=x.dtype, device=x.device, memory_format=order)
        steps = self._steps
        if self._starts_whole:
            y.copy_(x[steps[0][1]])
            steps = steps[1:]
        else:
            y.fill_(start)
        for written, read in steps:
            part = y[written]
            combine(part, x[read], out=part)
        return y

    def first_maximum(self, x: Any, index: Any) -> tuple[Any, Any]:
        """The first maximum and its index; the lowest value and 0 where there is no element."""
        sizes = (*x.shape[: self.axis], self.places, *x.shape[self.axis + 1 :])
        lowest = _lowest(x)
        y, place = x.new_full(sizes, lowest), index.new_full(sizes, -1)
        for written, read in self._steps:
            best, here = y[written], x[read]
            # A number is larger than a NaN.
            is_first = (here > best) | (place[written] < 0) | (best.isnan() & ~here.isnan())
            y[written] = torch.where(is_first, here, best)
            place[written] = torch.where(is_first, index[read], place[written])
        return y, place.clamp(min=0)

    def empty(self) -> list[Any]:
        """Where no tap lies on an element."""
        before = (slice(None),) * self.axis
        counts = [len(self.window.taps_before(self.window.size, place)) for place in range(self.places)]
        return [(*before, place) for place in _runs(counts) if not counts[place.start]]


def walks_over(windows: Sequence[Window], places: Sequence[int]) -> list[Walk]:
    """Along the last dimension first, so that of equal maxima the first in memory wins."""
    walks = [Walk(axis, *each) for axis, each in enumerate(zip(windows, places, strict=True), 2)]
    return walks[::-1]


def _runs(counts: Sequence[float]) -> list[slice]:
    """Where neighbours are equal."""
    runs, start = [], 0
    for _, group in groupby(counts):
        length = len(list(group))
        runs.append(slice(start, start + length))
        start += length
    return runs


def _lowest(x: Any) -> Any:
    return -inf if x.is_floating_point() else torch.iinfo(x.dtype).min


def _summed(x: Any, walks: Sequence[Walk]) -> Any:
    return _reduced(x, walks, 0, torch.add)


def _average(desc: Any, walks: Sequence[Walk]) -> Run:
    counts = []
    for walk in walks:
        # Nothing counted is a sum of 0, and stays it.
        every = [float(max(1, walk.window.counted(o, bool(desc.IncludePadding)))) for o in range(walk.places)]
        counts.append([(run, every[run.start]) for run in _runs(every)])

    def run(read: Tensors, written: Tensors) -> None:
        y = _summed(double(read[0]), walks)
        count: Any = 1.0
        for walk, parts in zip(walks, counts, strict=True):
            if len(parts) == 1:
                count = count * parts[0][1]
                continue
            along = y.new_empty((walk.places, *(1,) * (y.ndim - 1 - walk.axis)))
            for part, number in parts:
                along[part] = number
            count = count * along
        store(y / count, written[0])

    return run


def _norm(desc: Any, walks: Sequence[Walk]) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        store(_summed(double(read[0]).abs() ** desc.P, walks) ** (1 / desc.P), written[0])

    return run


_MAKERS = {"AVERAGE_POOLING": _average, "AVERAGE_POOLING1": _average, "LP_POOLING": _norm, "LP_POOLING1": _norm}


def _reduced(x: Any, walks: Sequence[Walk], start: float, combine: Callable[..., Any]) -> Any:
    for walk in walks:
        x = walk.reduced(x, start, combine)
    return x


def _largest_number(x: Any, walks: Sequence[Walk]) -> Any:
    """Of each window; NaN where it has no number."""
    # To pass NaN on takes a tenth of the time of passing numbers on, and is the same where no NaN is in the sum. To
    # look means to wait for a GPU.
    y = _reduced(x, walks, -inf, torch.maximum) if x.device.type == "cpu" else None
    return _reduced(x, walks, nan, torch.fmax) if y is None or y.sum().isnan() else y


def _maximum(layout: Layout, walks: Sequence[Walk]) -> Run:
    is_long = layout.type == TensorDataType.UINT64
    is_float = layout.dtype.kind == "f"
    empty = [places for walk in walks for places in walk.empty()]

    def run(read: Tensors, written: Tensors) -> None:
        x = read[0] if is_float else widened(read[0])
        x = flipped(x) if is_long else x
        if len(written) > 1 and written[1] is not None:
            index = torch.arange(x.numel(), device=x.device).reshape(x.shape)
            for walk in walks:
                x, index = walk.first_maximum(x, index)
            store(index, written[1])
        else:
            x = _largest_number(x, walks) if is_float else _reduced(x, walks, LOWEST, torch.maximum)
        for places in empty:
            x[places] = -inf if is_float else LOWEST if is_long else int(torch.iinfo(written[0].dtype).min)
        store(flipped(x) if is_long else x, written[0])

    return run


def sums_around(sizes: Sequence[int], axes: Sequence[int], before: int, after: int) -> Callable[[Any], Any]:
    """What sums up the elements around each one, 0 outside of the tensor."""
    # Along these each element has all others around it.
    whole = [axis for axis in axes if min(before, after) >= sizes[axis] - 1]
    others = [axis for axis in axes if axis not in whole]
    walks = [Walk(axis, Window(sizes[axis], before + 1 + after, 1, before, after, 1), sizes[axis]) for axis in others]

    def summed(x: Any) -> Any:
        x = _summed(x, walks) if walks else x
        return x.sum(whole, keepdim=True).expand(*sizes) if whole else x

    return summed
