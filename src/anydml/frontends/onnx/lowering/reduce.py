"""Along axes: reductions, indices of extremes, running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from ..values import Shape
from .pointwise import unchanged


def axes_of(node: NodeContext, is_input: bool) -> tuple[int, ...] | None:
    """What is reduced; None where nothing is."""
    given = node.integers(1) if is_input else node.get("axes")
    rank = node.rank(0)
    if not given:
        return None if node.get("noop_with_empty_axes", 0) else tuple(range(rank))
    for axis in given:
        if not -rank <= axis < rank:
            raise NotLowered(f"axis {axis} of {rank} dimensions")
    return tuple(sorted({axis % rank for axis in given}))


def reduced_shape(shape: Shape, axes: tuple[int, ...], keep: bool) -> Shape:
    """Of what is reduced, with its dimensions at a size of 1 where they are kept."""
    sizes = [(1 if i in axes else size) for i, size in enumerate(shape) if keep or i not in axes]
    return tuple(sizes)


def reduced(function: str, since: int = 18, *, nothing: Callable[[Any], Any]) -> Lowering:
    """A reduction.

    Args:
        function: REDUCE's, or "mean".
        since: the operator set from which on axes are an input.
        nothing: what it is of no elements, of a data type.
    """

    def lowering(node: NodeContext) -> Any:
        axes = axes_of(node, node.opset >= since)
        shape, dtype = node.shape(0), node.dtype(0)
        keep = bool(node.get("keepdims", 1)) or axes is None
        result = reduced_shape(shape, axes or (), keep)
        if 0 in shape:
            return np.full(result, nothing(dtype), dtype)
        x = node.x(0)
        if axes is None and function in _SAME_OF_ONE:
            return unchanged(node)
        # Of one element what the function makes of it is left where no axis is reduced.
        flat = x if axes else x.reshape(1, prod(x.shape))
        return node.shaped(_reduced(node, flat, function, axes or (0,)), result)

    return lowering


_SAME_OF_ONE = ("sum", "average", "max", "min", "multiply")


def _reduced(node: NodeContext, x: Expression, function: str, axes: tuple[int, ...]) -> Any:
    if function == "average" and x.dtype.kind in "iu":
        total = node.call("reduce", x, "sum", axes)
        return node.call("divide", total, prod(x.shape[axis] for axis in axes))
    if x.dtype == np.bool_:
        # Of truth values, 0 and 1, the greatest is true where one is, the least where all are.
        return node.call("reduce", x.astype(np.uint8), function, axes) != 0
    return node.call("reduce", x, function, axes)


def index(function: str) -> Lowering:
    """The index of an extreme along an axis, the first one's of equals, or the last one's."""

    def lowering(node: NodeContext) -> Any:
        shape, rank = node.shape(0), node.rank(0)
        axis = node.get("axis", 0)
        if not -max(rank, 1) <= axis < max(rank, 1):
            raise NotLowered(f"axis {axis} of {rank} dimensions")
        axis %= max(rank, 1)
        result = reduced_shape(shape, (axis,), bool(node.get("keepdims", 1)))
        if 0 in shape:
            if shape[axis] == 0:
                raise NotLowered("the extreme of no elements")
            return np.zeros(result, np.int64)
        last = bool(node.get("select_last_index", 0))
        found = node.call(function, node.x(0), axis, reverse=last, output_dtype=np.int64)
        return node.shaped(found, result)

    return lowering


def running(function: str) -> Lowering:
    """Along an axis that is an input."""

    def lowering(node: NodeContext) -> Any:
        shape = node.shape(0)
        if 0 in shape:
            return np.zeros(shape, node.dtype(0))
        axis = node.number(1)
        if not -len(shape) <= axis < len(shape):
            raise NotLowered(f"axis {axis} of {len(shape)} dimensions")
        options = {option: bool(node.get(option, 0)) for option in ("exclusive", "reverse")}
        return node.shaped(node.call(function, node.x(0), axis, **options), shape)

    return lowering


def _least(dtype: Any) -> Any:
    return False if dtype == np.bool_ else -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _most(dtype: Any) -> Any:
    return True if dtype == np.bool_ else np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _zero(dtype: Any) -> Any:
    return 0


def _logarithm(dtype: Any) -> Any:
    if dtype.kind != "f":
        raise NotLowered("the logarithm of no integers")
    return -np.inf


def _undefined(dtype: Any) -> Any:
    if dtype.kind != "f":
        raise NotLowered("the mean of no integers")
    return np.nan


LOWERINGS: dict[str, Lowering] = {
    "ArgMax": index("argmax"),
    "ArgMin": index("argmin"),
    "CumProd": running("cumulative_product"),
    "CumSum": running("cumulative_summation"),
    "ReduceL1": reduced("l1", nothing=_zero),
    "ReduceL2": reduced("l2", nothing=_zero),
    "ReduceLogSum": reduced("log_sum", nothing=_logarithm),
    "ReduceLogSumExp": reduced("log_sum_exp", nothing=_logarithm),
    "ReduceMax": reduced("max", nothing=_least),
    "ReduceMean": reduced("average", nothing=_undefined),
    "ReduceMin": reduced("min", nothing=_most),
    "ReduceProd": reduced("multiply", nothing=lambda dtype: 1),
    "ReduceSum": reduced("sum", 13, nothing=_zero),
    "ReduceSumSquare": reduced("sum_square", nothing=_zero),
}
