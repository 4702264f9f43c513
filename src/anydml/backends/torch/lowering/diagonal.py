"""A diagonal, or a band of them, as a mask that columns and rows make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec
from ....operators.specs.diagonal import band_of, value_of
from ...base import Declined
from . import Run, Tensors
from .values import bits


def plan(
    spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    begin, end = band_of(desc)
    value = value_of(desc)
    item = value.dtype.itemsize
    filled = int(value.view("u1" if item == 1 else f"i{item}"))

    def run(read: Tensors, written: Tensors) -> None:
        out = bits(written[0])
        height, width = out.shape[-2:]
        rows, columns = (torch.arange(size, device=out.device) for size in (height, width))
        diagonal = columns - rows[:, None]
        is_band = (diagonal >= min(begin, end)) & (diagonal < max(begin, end))
        if read and read[0] is not None:
            out.copy_(bits(read[0]))
        else:
            out.zero_()
        out.masked_fill_(is_band if begin <= end else ~is_band, filled)

    return run
