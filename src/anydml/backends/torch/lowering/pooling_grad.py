"""Gradients of pooling, tap by tap of the window: a call adds what all windows have for the elements under one tap, so
that sums are of one order on every device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec
from ....operators.specs.pooling_grad import counts, steps, windows
from ...base import Declined
from . import Run, Tensors
from .values import double, store
from .windows import walks_over


def plan(
    spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    return _average(desc) if spec.name == "AVERAGE_POOLING_GRAD" else _maximum(desc)


_WHOLE = slice(None), slice(None)
"""Batch and channels."""


def _average(desc: Any) -> Run:
    taps, along = [*steps(desc)], counts(desc)

    def run(read: Tensors, written: Tensors) -> None:
        shares = double(read[0])
        count: Any = 1.0
        for i, numbers in enumerate(along):
            factor = torch.tensor([float(max(1, number)) for number in numbers], dtype=torch.float64)
            count = count * factor.to(shares.device).reshape(-1, *(1,) * (len(along) - 1 - i))
        shares = shares / count
        y = torch.zeros(written[0].shape, dtype=shares.dtype, device=shares.device)
        for places, elements in taps:
            y[(*_WHOLE, *elements)] += shares[(*_WHOLE, *places)]
        store(y, written[0])

    return run


def _maximum(desc: Any) -> Run:
    taps, walks = [*steps(desc)], walks_over(windows(desc), desc.InputGradientTensor.Sizes[2:])
    sizes = desc.InputTensor.Sizes[2:]

    def run(read: Tensors, written: Tensors) -> None:
        x, gradient = read[0], double(read[1])
        number = torch.arange(sizes[0] * sizes[1], device=x.device).reshape(sizes)
        index = number.expand(x.shape)
        for walk in walks:
            x, index = walk.first_maximum(x, index)
        y = torch.zeros(written[0].shape, dtype=gradient.dtype, device=gradient.device)
        for places, elements in taps:
            is_maximum = index[(*_WHOLE, *places)] == number[elements]
            y[(*_WHOLE, *elements)] += torch.where(is_maximum, gradient[(*_WHOLE, *places)], 0.0)
        store(y, written[0])

    return run
