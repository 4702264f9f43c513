"""DYNAMIC_QUANTIZE_LINEAR: the range, by that the scale and the zero point, and the numbers. Nothing waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .values import double, store


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        x = read[0].float()
        numbers = x.masked_fill(x.isnan(), 0)
        least, largest = double(numbers.amin()).clamp(max=0), double(numbers.amax()).clamp(min=0)
        # In double precision, and rounded once.
        scale = ((largest - least) / 255).float()
        scale = torch.where(scale == 0, torch.ones_like(scale), scale)
        lowest, highest = torch.iinfo(written[0].dtype).min, torch.iinfo(written[0].dtype).max
        zero = (_whole(-least.float() / scale) + lowest).clamp(lowest, highest)
        store(_whole(x / scale) + zero, written[0])
        written[1].copy_(scale)
        store(zero.expand(written[2].shape), written[2])

    return run


def _whole(quotient: Any) -> Any:
    whole = double(quotient.round())
    return whole.masked_fill(whole.isnan(), 0)
