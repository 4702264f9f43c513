"""Along axes: reductions and sums."""

from __future__ import annotations

from collections.abc import Sequence

from anydml import TensorDataType
from anydml.core.enums import AxisDirection, ReduceFunction
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node


def shaped(node: Node, y: Expression, axes: Sequence[int]) -> Expression:
    """Without the axes, unless they are to stay."""
    if node.get("keepDimensions", False):
        return y
    return y.reshape(tuple(size for i, size in enumerate(y.shape) if i not in axes) or (1,))


def reduced(function: ReduceFunction) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.x
        axes = node.get("axes", list(range(x.ndim)))
        if not axes:
            # Each element by itself is a reduction along a dimension of size 1.
            y = node("REDUCE", Function=function, InputTensor=x.reshape(*x.shape, 1), Axes=[x.ndim])
            return y.reshape(x.shape)
        return shaped(node, node("REDUCE", Function=function, InputTensor=x, Axes=sorted(axes)), axes)

    return adapter


def index(name: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        axis = node.get("axis")
        y = node(
            name,
            InputTensor=node.x,
            OutputTensor=TensorDataType[node.get("outputDataType", "int32").upper()],
            Axes=[axis],
            AxisDirection=AxisDirection.INCREASING,
        )
        return shaped(node, y, [axis])

    return adapter


def cumulative_sum(node: Node) -> Expression:
    return node(
        "CUMULATIVE_SUMMATION",
        InputTensor=node.x,
        Axis=node.get("axis"),
        AxisDirection=AxisDirection(node.get("reversed", False)),
        HasExclusiveSum=node.get("exclusive", False),
    )


ADAPTERS: dict[str, Adapter] = {
    "argMax": index("ARGMAX"),
    "argMin": index("ARGMIN"),
    "cumulativeSum": cumulative_sum,
    "reduceL1": reduced(ReduceFunction.L1),
    "reduceL2": reduced(ReduceFunction.L2),
    "reduceLogSum": reduced(ReduceFunction.LOG_SUM),
    "reduceLogSumExp": reduced(ReduceFunction.LOG_SUM_EXP),
    "reduceMax": reduced(ReduceFunction.MAX),
    "reduceMean": reduced(ReduceFunction.AVERAGE),
    "reduceMin": reduced(ReduceFunction.MIN),
    "reduceProduct": reduced(ReduceFunction.MULTIPLY),
    "reduceSum": reduced(ReduceFunction.SUM),
    "reduceSumSquare": reduced(ReduceFunction.SUM_SQUARE),
}
