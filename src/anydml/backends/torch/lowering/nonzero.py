"""NONZERO_COORDINATES, by a running sum: PyTorch's own function waits for the device, to know how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .values import modular


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    return _nonzero_coordinates(desc)


def _nonzero_coordinates(desc: Any) -> Run:
    *_, columns = desc.OutputCoordinatesTensor.Sizes
    sizes = desc.InputTensor.Sizes
    elements = prod(sizes)
    last = [(size, prod(sizes[i + 1 :])) for i, size in enumerate(sizes)][len(sizes) - columns :]

    def run(read: Tensors, written: Tensors) -> None:
        count, rows = modular(written[0]), modular(written[1])
        rows = rows[(0,) * (rows.dim() - 2)]
        is_there = (modular(read[0]) != 0).reshape(-1)
        before = is_there.cumsum(0)
        # Each element that there is goes to the row of its number, all others behind the last row.
        numbers = torch.arange(elements, device=is_there.device)
        elements_of_rows = torch.zeros(elements + 1, dtype=torch.int64, device=is_there.device)
        elements_of_rows.scatter_(0, torch.where(is_there, before - 1, elements), numbers)
        element = elements_of_rows[:elements]
        count.copy_(before[-1])
        found = torch.stack([element // step % size for size, step in last], 1)
        rows.copy_(torch.where((numbers < before[-1])[:, None], found.to(rows.dtype), rows))

    return run
