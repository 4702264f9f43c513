"""What lowerings of many families share: arrays without elements, strides of 0, other shapes of known arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...directmlx import Expression, ExpressionAdapter
from ..context import NodeContext, NotLowered
from ..values import Shape


def broadcast(x: Expression, shape: Shape) -> Expression:
    """An expression as one of a larger shape, by strides of 0."""
    side = ExpressionAdapter("ELEMENT_WISE_IDENTITY", x.graph, None, None)
    spread: Expression = side.spread(x, shape or (1,))
    # That of no dimension moves anything, but says that it is a view, which a graph's output has to be copied for.
    return spread.transpose(*range(len(shape) or 1))


def viewed(node: NodeContext, shape: Shape, known: Callable[[Any], Any], traced: Callable[[Expression], Any]) -> Any:
    """The first input under another shape: an array where it is known, or has no elements."""
    if node.is_known(0):
        return known(node.value(0))
    return filled(node, shape, lambda: traced(node.x(0)))


def filled(node: NodeContext, shape: Shape, make: Callable[[], Expression]) -> Any:
    """What `make` gives, under a shape; of a shape without elements an array of the first input's type."""
    if 0 in shape:
        return np.zeros(shape, node.dtype(0))
    return node.shaped(make(), shape)


def axis_of(axis: int, rank: int) -> int:
    """An axis from the first; negative ones count from the last."""
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise NotLowered(f"axis {axis} of {rank} dimensions")
    return axis % max(rank, 1)


def axes_of(axes: Sequence[int], rank: int) -> list[int]:
    """Likewise of several."""
    return [axis_of(axis, rank) for axis in axes]


def truth(x: Expression) -> Expression:
    """Bytes that are 0 or 1 as truth values."""
    return Expression(x.graph, x.port, x.tensor, is_truth=True)


def like(node: NodeContext, found: Expression, i: int = 0) -> Expression:
    """Bytes that an operator made of an input's, as truth values where that has such."""
    return truth(found) if node.dtype(i) == np.bool_ else found
