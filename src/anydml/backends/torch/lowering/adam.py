"""ADAM_OPTIMIZER, whose outputs may be its inputs' memory: all is computed before anything is written."""

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
    return _step(desc)


def _step(desc: Any) -> Run:
    def run(read: Tensors, written: Tensors) -> None:
        x, m, v, g, t = map(double, read)
        m = desc.Beta1 * m + (1 - desc.Beta1) * g
        v = desc.Beta2 * v + (1 - desc.Beta2) * g * g
        alpha = torch.sqrt(1 - desc.Beta2**t) / (1 - desc.Beta1**t)
        alpha = torch.where(t == 0, 1.0, alpha)
        x = x - desc.LearningRate * alpha * m / (torch.sqrt(v) + desc.Epsilon)
        for y, out in zip((x, m, v), written, strict=True):
            store(y, out)

    return run
