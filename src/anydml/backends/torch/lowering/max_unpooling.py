"""MAX_UNPOOLING: the number of the last element for each place, and then that element."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorSpec
from ...base import Declined
from . import Run, Tensors
from .values import bits, widened


def plan(
    spec: OperatorSpec, desc: Any, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run | Declined:
    size = prod(desc.OutputTensor.Sizes)

    def run(read: Tensors, written: Tensors) -> None:
        x, place = bits(read[0]).reshape(-1), widened(read[1]).reshape(-1)
        # What is nowhere goes behind the last place; the upper half of UINT64 is seen as negative.
        place = torch.where((place < 0) | (place >= size), size, place)
        latest = torch.full((size + 1,), -1, dtype=torch.int64, device=x.device)
        # A maximum, as the order in which a GPU writes is not known.
        latest.scatter_reduce_(0, place, torch.arange(x.numel(), device=x.device), "amax")
        latest = latest[:size]
        y = torch.where(latest < 0, 0, x.index_select(0, latest.clamp(min=0)))
        bits(written[0]).copy_(y.reshape(written[0].shape))

    return run
