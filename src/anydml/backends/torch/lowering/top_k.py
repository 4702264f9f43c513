"""TOP_K and TOP_K1, by a stable sort: PyTorch's own selection leaves the order of equal elements open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.enums import AxisDirection
from ....core.strided_layout import Layout
from ....operators.schema import OperatorDesc, OperatorSpec
from . import Run, Tensors
from .values import bits, ordered, store


def plan(
    spec: OperatorSpec, desc: OperatorDesc, inputs: Sequence[Layout | None], outputs: Sequence[Layout | None]
) -> Run:
    return _top_k(desc)


def _top_k(desc: Any) -> Run:
    is_largest = getattr(desc, "AxisDirection", AxisDirection.DECREASING) == AxisDirection.DECREASING

    def run(read: Tensors, written: Tensors) -> None:
        order = ordered(read[0]).sort(dim=desc.Axis, descending=is_largest, stable=True).indices
        order = order.narrow(desc.Axis, 0, desc.K)
        bits(written[0]).copy_(bits(read[0]).gather(desc.Axis, order))
        store(order, written[1])

    return run
