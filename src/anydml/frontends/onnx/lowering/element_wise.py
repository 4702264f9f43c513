"""Arithmetic, element by element."""

from __future__ import annotations

import numpy as np

from ..context import Lowering, NodeContext
from ..values import Traced


def binary(function: str) -> Lowering:
    """A function of two operands that broadcast as NumPy's do."""

    def lowering(node: NodeContext) -> Traced:
        shape = np.broadcast_shapes(node.shape(0), node.shape(1))
        return node.shaped(node.call(function, node.x(0), node.x(1)), shape)

    return lowering


LOWERINGS: dict[str, Lowering] = {
    "Add": binary("add"),
    "Div": binary("divide"),
    "Mul": binary("multiply"),
    "Sub": binary("subtract"),
}
