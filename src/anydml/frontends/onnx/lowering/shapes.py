"""What lowerings of many families share: arrays without elements, strides of 0, other shapes of known arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.tensor_desc import is_packed
from ...directmlx import Expression, ExpressionAdapter
from ..context import NodeContext, NotLowered
from ..values import Shape


def broadcast(x: Expression, shape: Shape) -> Expression:
    """An expression as one of a larger shape, by strides of 0."""
    side = ExpressionAdapter("ELEMENT_WISE_IDENTITY", x.graph, None, None)
    spread: Expression = side.spread(x, shape or (1,))
    # That of no dimension moves anything, but says that it is a view, which a graph's output has to be copied for.
    return spread.transpose(*range(len(shape) or 1))


def reshaped(x: Expression, shape: Shape) -> Expression:
    """The elements under another shape: by strides where these say it, be they in gaps, or else copied."""
    sizes = shape or (1,)
    is_plain = is_packed(x.shape, x.tensor.strides)
    strides = None if is_plain else _strides_of(x.shape, x.tensor.strides, sizes)
    if strides is None:
        return x.reshape(sizes)
    # As above.
    return x.reinterpret(x.tensor.DataType, sizes, strides).transpose(*range(len(sizes)))


def _strides_of(sizes: Shape, strides: Sequence[int], wanted: Shape) -> list[int] | None:
    """Strides that lead through the same elements in the same order; None where none do.

    Sizes of both shapes are taken in turn until their products are the same. The dimensions of such a group have to
    follow each other without gaps: a stride is the next one times its size.
    """
    own = [(size, stride) for size, stride in zip(sizes, strides, strict=True) if size != 1]
    found: list[int] = []
    i = j = 0
    while j < len(wanted):
        if wanted[j] == 1:
            found.append(0)
            j += 1
            continue
        group, first, last = own[i][0], i, j
        product = wanted[j]
        while product != group:
            if product < group:
                last += 1
                product *= wanted[last]
            else:
                i += 1
                group *= own[i][0]
        if any(own[k][1] != own[k + 1][1] * own[k + 1][0] for k in range(first, i)):
            return None
        step = own[i][1]
        steps = []
        for size in wanted[j : last + 1][::-1]:
            steps.append(step)
            step *= size
        found += steps[::-1]
        i, j = i + 1, last + 1
    return found


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
