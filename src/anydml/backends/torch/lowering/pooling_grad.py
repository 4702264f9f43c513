"""Gradients of pooling, tap by tap of the window: a call adds what all windows have for the elements under one tap, so
that sums are of one order on every device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec
from ....operators.specs.pooling_grad import counts, windows
from ....operators.window_math import Window
from ...base import Declined
from . import Run, Tensors
from .values import double, store
from .windows import walks_over


def plan(
    spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    return _average(desc) if spec.name == "AVERAGE_POOLING_GRAD" else _maximum(desc)


def _taps(under: Sequence[Window], places: Sequence[int]) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """For each tap that lies on elements at some places: those places, and those elements."""
    whole = slice(None), slice(None)
    each = (list(window.tap_slices(count)) for window, count in zip(under, places, strict=True))
    found = []
    for taps in product(*each):
        _, of_places, of_elements = zip(*taps, strict=True)
        found.append(((*whole, *of_places), (*whole, *of_elements)))
    return found


def _average(desc: Any) -> Run:
    places = desc.InputGradientTensor.Sizes[2:]
    taps = _taps(windows(desc), places)
    along = counts(desc)

    def run(read: Tensors, written: Tensors) -> None:
        shares = double(read[0])
        count: Any = 1.0
        for i, numbers in enumerate(along):
            factor = torch.tensor([float(max(1, number)) for number in numbers], dtype=torch.float64)
            count = count * factor.to(shares.device).reshape(-1, *(1,) * (len(along) - 1 - i))
        shares = shares / count
        y = torch.zeros(written[0].shape, dtype=shares.dtype, device=shares.device)
        for of_places, of_elements in taps:
            y[of_elements] += shares[of_places]
        store(y, written[0])

    return run


def _maximum(desc: Any) -> Run:
    under, places = windows(desc), desc.InputGradientTensor.Sizes[2:]
    taps, walks = _taps(under, places), walks_over(under, places)
    sizes = desc.InputTensor.Sizes[2:]

    def run(read: Tensors, written: Tensors) -> None:
        x, gradient = read[0], double(read[1])
        number = torch.arange(sizes[0] * sizes[1], device=x.device).reshape(sizes)
        index = number.expand(x.shape)
        for walk in walks:
            x, index = walk.first_maximum(x, index)
        y = torch.zeros(written[0].shape, dtype=gradient.dtype, device=gradient.device)
        for of_places, of_elements in taps:
            is_maximum = index[of_places] == number[of_elements[2:]]
            y[of_elements] += torch.where(is_maximum, gradient[of_places], 0.0)
        store(y, written[0])

    return run
