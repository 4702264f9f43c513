"""Resampling: sums of weighted slices of the input, along one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec
from ....operators.specs.resample import Taps, copies, taps_of
from . import Run, Tensors
from .values import bits, double, store


def plan(spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]) -> Run:
    (layout,) = inputs
    assert layout is not None
    taps = [
        (axis, each) for axis, (each, size) in enumerate(zip(taps_of(desc), layout.sizes, strict=True))
        if not each.is_identity(size)
    ]  # fmt: skip
    known: dict[Any, list[tuple[int, Any, Any, Any]]] = {}

    def tables(device: Any) -> list[tuple[int, Any, Any, Any]]:
        if device not in known:
            known[device] = [(axis, *(torch.from_numpy(part).to(device) for part in each)) for axis, each in taps]
        return known[device]

    def run_nearest(read: Tensors, written: Tensors) -> None:
        x = bits(read[0])
        for axis, first, _, _ in tables(x.device):
            x = x.index_select(axis, first)
        bits(written[0]).copy_(x)

    def run(read: Tensors, written: Tensors) -> None:
        y = double(read[0])
        for axis, *each in tables(y.device):
            y = _summed(y, axis, Taps(*each))
        store(y if written[0].is_floating_point() else y.round(), written[0])

    return run_nearest if copies(desc) else run


def _summed(x: Any, axis: int, taps: Any) -> Any:
    shape = (-1,) + (1,) * (x.ndim - axis - 1)
    size = x.shape[axis]
    y = x.new_zeros((*x.shape[:axis], len(taps.first), *x.shape[axis + 1 :]))
    for i in range(taps.weights.shape[1]):
        product = x.index_select(axis, (taps.first + i).clamp(max=size - 1)) * taps.weights[:, i].reshape(shape)
        y = torch.where((taps.counts > i).reshape(shape), y + product if i else product, y)
    return y
