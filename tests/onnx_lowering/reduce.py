"""Along axes: reductions and scans."""

from __future__ import annotations

import anydml
from anydml import TensorDataType
from anydml.core.enums import (
    ReduceFunction,
)
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, sizes_of


def running(name: str, exclusive: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.input(0)
        # AxisDirection counts as ONNX does: 1 is from the end.
        return node(
            name,
            InputTensor=x,
            Axis=int(node.values[1]) % len(sizes_of(x)),
            AxisDirection=anydml.AxisDirection(node.get("reverse", 0)),
            **{exclusive: bool(node.get("exclusive", 0))},
        )

    return adapter


def reduced(function: ReduceFunction) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.input(0)
        axes = node.value(1, node.get("axes", ()))
        if not len(axes):
            if node.get("noop_with_empty_axes", 0):
                return x
            axes = range(len(sizes_of(x)))
        return node("REDUCE", Function=function, InputTensor=x, Axes=[int(axis) % len(sizes_of(x)) for axis in axes])

    return adapter


def index(name: str) -> Adapter:
    def adapter(node: Node) -> Expression:
        x = node.input(0)
        return node(
            name,
            InputTensor=x,
            OutputTensor=TensorDataType.INT64,
            Axes=[node.get("axis", 0) % len(sizes_of(x))],
            AxisDirection=anydml.AxisDirection(node.get("select_last_index", 0)),
        )

    return adapter


ADAPTERS: dict[str, Adapter] = {
    "ArgMax": index("ARGMAX"),
    "ArgMin": index("ARGMIN"),
    "CumProd": running("CUMULATIVE_PRODUCT", "HasExclusiveProduct"),
    "CumSum": running("CUMULATIVE_SUMMATION", "HasExclusiveSum"),
    "ReduceL1": reduced(ReduceFunction.L1),
    "ReduceL2": reduced(ReduceFunction.L2),
    "ReduceLogSum": reduced(ReduceFunction.LOG_SUM),
    "ReduceLogSumExp": reduced(ReduceFunction.LOG_SUM_EXP),
    "ReduceMax": reduced(ReduceFunction.MAX),
    "ReduceMean": reduced(ReduceFunction.AVERAGE),
    "ReduceMin": reduced(ReduceFunction.MIN),
    "ReduceProd": reduced(ReduceFunction.MULTIPLY),
    "ReduceSum": reduced(ReduceFunction.SUM),
    "ReduceSumSquare": reduced(ReduceFunction.SUM_SQUARE),
}
