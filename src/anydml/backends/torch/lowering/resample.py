"""Resampling: sums of weighted slices of the input, along one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ....core.strided_layout import Layout
from ....operators.interpolation import Taps
from ....operators.schema import OperatorSpec
from ....operators.specs.resample import copies, taps_of
from . import Run, Tensors
from .values import bits, double, store


def plan(spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Run:
    (layout,) = inputs
    assert layout is not None
    taps = [
        (axis, each) for axis, (each, size) in enumerate(zip(taps_of(desc), layout.sizes, strict=True))
        if not each.is_identity(size)
    ]  # fmt: skip
    known: dict[Any, list[_Table]] = {}

    def tables(device: Any) -> list[_Table]:
        if device not in known:
            known[device] = [_Table(axis, each, device) for axis, each in taps]
        return known[device]

    def run_nearest(read: Tensors, written: Tensors) -> None:
        x = bits(read[0])
        for table in tables(x.device):
            x = x.index_select(table.axis, table.first)
        bits(written[0]).copy_(x)

    def run(read: Tensors, written: Tensors) -> None:
        y = double(read[0])
        for table in tables(y.device):
            y = table.summed(y)
        store(y if written[0].is_floating_point() else y.round(), written[0])

    return run_nearest if copies(desc) else run


class _Table:
    """The taps of a dimension on a device, by their numbers: of each the outputs that have it, what it is of, and its
    weights."""

    def __init__(self, axis: int, taps: Taps, device: Any) -> None:
        self.axis, self.size = axis, len(taps.first)
        self.first = torch.from_numpy(taps.first).to(device)
        self._steps: list[tuple[Any, Any, Any]] = []
        for i in range(int(taps.counts.max())):
            (rows,) = np.nonzero(taps.counts > i)
            parts = rows, taps.first[rows] + i, taps.weights[taps.starts[rows] + i]
            self._steps.append(tuple([torch.from_numpy(part).to(device) for part in parts]))

    def summed(self, x: Any) -> Any:
        y = x.new_zeros((*x.shape[: self.axis], self.size, *x.shape[self.axis + 1 :]))
        place: tuple[Any, ...] = (slice(None),) * self.axis
        for i, (rows, sources, weights) in enumerate(self._steps):
            product = x.index_select(self.axis, sources) * weights.reshape(-1, *[1] * (x.ndim - self.axis - 1))
            y[(*place, rows)] = y[(*place, rows)] + product if i else product
        return y
