"""What operators that work element by element share: shapes that broadcast, and results without elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from ....core.enums import FeatureLevel
from ....core.strided_layout import DATA_TYPES
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from ..values import Shape, Traced

Formula: TypeAlias = Callable[..., Expression]


def broadcast_shape(node: NodeContext) -> Shape:
    """The shape that all inputs broadcast to, by NumPy's rules."""
    shapes = [node.shape(i) for i in range(len(node)) if node.has(i)]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise NotLowered(f"shapes {' and '.join(map(str, shapes))}, which do not broadcast") from None


def applied(node: NodeContext, formula: Formula, dtype: Any = None) -> Any:
    """A formula of all inputs, element by element.

    Args:
        node: the node.
        formula: of an expression for each input, which has their broadcast shape.
        dtype: of the results, where that is not the first input's.
    """
    shape = broadcast_shape(node)
    if 0 in shape:
        return np.zeros(shape, node.dtype(0) if dtype is None else dtype)
    return node.shaped(formula(*node.xs()), shape)


def call(node: NodeContext, function: str, *operands: Any, **options: Any) -> Expression:
    """A function that gives one expression."""
    result: Expression = node.call(function, *operands, **options)
    return result


def same_bytes(x: Expression, dtype: Any) -> Expression:
    """The bytes as elements of another type of the same size."""
    packed = x.reshape(x.shape)
    return packed.reinterpret(DATA_TYPES[np.dtype(dtype)], packed.shape)


def has(node: NodeContext, level: FeatureLevel) -> bool:
    """Whether operators of a feature level are there; what they do others may, more slowly."""
    return node.graph.device.feature_level >= level


def unary(function: str, **attributes: tuple[str, float]) -> Lowering:
    """A function of one operand; each option is an attribute, with its default."""

    def lowering(node: NodeContext) -> Any:
        options = {option: node.get(*each) for option, each in attributes.items()}
        return applied(node, lambda x: node.call(function, x, **options))

    return lowering


def binary(function: str, dtype: Any = None) -> Lowering:
    """A function of two operands; `dtype` is the results', where that is not the operands'."""
    return lambda node: applied(node, lambda a, b: node.call(function, a, b), dtype)


def folded(function: str) -> Lowering:
    """f(f(f(a, b), c), ...) of a function of two."""
    return lambda node: applied(node, lambda *xs: reduce(lambda a, b: node.call(function, a, b), xs))


def unchanged(node: NodeContext, i: int = 0) -> Traced:
    """An input as a result."""
    value = node.value(i)
    return value if isinstance(value, Traced) else node.shaped(node.x(i), node.shape(i))
