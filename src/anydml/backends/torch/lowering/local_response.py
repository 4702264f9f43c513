"""LOCAL_RESPONSE_NORMALIZATION and its gradients, by sums around each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .values import double, store, widened
from .windows import sums_around


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    assert outputs[0] is not None
    make = _gradients if spec.name == "LOCAL_RESPONSE_NORMALIZATION_GRAD" else _normalized
    return make(desc, outputs[0].sizes)


def _axes(desc: Any) -> tuple[int, ...]:
    return (1,) if desc.CrossChannel else (2, 3)


def _normalized(desc: Any, sizes: Sequence[int]) -> Run:
    count = desc.LocalSize
    summed = sums_around(sizes, _axes(desc), (count - 1) // 2, count // 2)

    def run(read: Tensors, written: Tensors) -> None:
        # y = x / (Bias + Alpha / LocalSize * sum of squares) ^ Beta
        x = widened(read[0])
        store(x / (desc.Bias + desc.Alpha / count * summed(x * x)) ** desc.Beta, written[0])

    return run


def _gradients(desc: Any, sizes: Sequence[int]) -> Run:
    before, after = (desc.LocalSize - 1) // 2, desc.LocalSize // 2
    summed = sums_around(sizes, _axes(desc), before, after)
    summed_back = sums_around(sizes, _axes(desc), after, before)
    factor, beta = desc.Alpha / desc.LocalSize, desc.Beta

    def run(read: Tensors, written: Tensors) -> None:
        # dx = dy / s^Beta - 2 * Alpha * Beta / LocalSize * x * sum of dy * x / s^(Beta + 1)
        x, dy = map(double, read)
        s = desc.Bias + factor * summed(x * x)
        around = summed_back(dy * x / s ** (beta + 1))
        store(dy / s**beta - 2 * factor * beta * x * around, written[0])

    return run
