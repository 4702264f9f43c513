"""LOCAL_RESPONSE_NORMALIZATION, by sums of squares around each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .values import store, widened
from .windows import sums_around


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    assert outputs[0] is not None
    return _normalized(desc, outputs[0].sizes)


def _normalized(desc: Any, sizes: Sequence[int]) -> Run:
    count = desc.LocalSize
    summed = sums_around(sizes, (1,) if desc.CrossChannel else (2, 3), (count - 1) // 2, count // 2)

    def run(read: Tensors, written: Tensors) -> None:
        # y = x / (Bias + Alpha / LocalSize * sum of squares) ^ Beta
        x = widened(read[0])
        store(x / (desc.Bias + desc.Alpha / count * summed(x * x)) ** desc.Beta, written[0])

    return run
