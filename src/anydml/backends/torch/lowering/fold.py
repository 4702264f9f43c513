"""FOLD, element by element of the window, in the order of these."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec
from ....operators.specs.fold import windows
from ...base import Declined
from . import Run, Tensors
from .values import store, widened


def plan(
    spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    under = windows(desc)
    places = [window.places[0] for window in under]
    shape = (*desc.OutputTensor.Sizes[:2], *desc.WindowSizes, *places)
    slices = [list(window.tap_slices(count)) for window, count in zip(under, places, strict=True)]

    def run(read: Tensors, written: Tensors) -> None:
        x = widened(read[0]).reshape(shape)
        y = torch.zeros(written[0].shape, dtype=x.dtype, device=x.device)
        for each in product(*slices):
            taps, blocks, elements = zip(*each, strict=True)
            y[(slice(None), slice(None), *elements)] += x[(slice(None), slice(None), *taps, *blocks)]
        store(y, written[0])

    return run
