"""LP_NORMALIZATION."""

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
    return _normalized(desc)


def _normalized(desc: Any) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        # Of squares in double precision nothing overflows, nor is lost below.
        x = double(read[0])
        norm = x.abs().sum(desc.Axis, keepdim=True) if desc.P == 1 else torch.sqrt((x * x).sum(desc.Axis, keepdim=True))
        store(x / norm.clamp(min=desc.Epsilon), written[0])

    return run
