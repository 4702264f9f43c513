"""Activations."""

from __future__ import annotations

from math import pi, prod, sqrt
from typing import Any

import numpy as np

from ....core.enums import FeatureLevel
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .pointwise import applied, call, has, unary, unchanged


def relu(node: NodeContext) -> Any:
    """max(x, 0); of integers of 64 bits, which RELU does not take, by MAX."""
    return applied(node, lambda x: call(node, "max", x, 0) if x.dtype == np.int64 else call(node, "relu", x))


def prelu(node: NodeContext) -> Any:
    """x where x >= 0, else x * slope; integers that PARAMETERIZED_RELU does not take by IF."""

    def formula(x: Expression, slope: Expression) -> Expression:
        if x.dtype.kind == "u" or x.dtype == np.int64:
            return call(node, "if_", x < 0, x * slope, x)
        return call(node, "parameterized_relu", x, slope)

    shapes = node.shape(0), node.shape(1)
    if node.opset < 7 and len(shapes[1]) == 1 < len(shapes[0]):
        # Then one dimension was that of the channels.
        return node.shaped(formula(node.x(0), node.x(1).reshape(-1, *(1,) * (len(shapes[0]) - 2))), shapes[0])
    return applied(node, formula)


def shrink(node: NodeContext) -> Any:
    """Integers of 64 bits as those of 32."""

    def formula(x: Expression) -> Expression:
        own, narrower = x.dtype, {"i": np.int32, "u": np.uint32}
        if own.itemsize == 8 and own.kind in narrower:
            x = node.narrowed(x, narrower[own.kind])
        y = call(node, "shrink", x, float(node.get("bias", 0.0)), float(node.get("lambd", 0.5)))
        return y if y.dtype == own else y.astype(own)

    return applied(node, formula)


def gelu(node: NodeContext) -> Any:
    """GELU, x / 2 * (1 + erf(x / sqrt(2))).

    By tanh it is x / 2 * (1 + tanh(u)) with u = sqrt(2 / pi) * (x + 0.044715 * x^3), which is x * sigmoid(2 * u).
    """
    if node.get("approximate", "none") == "tanh":
        factor = sqrt(8 / pi)
        return applied(node, lambda x: x * call(node, "sigmoid", x * (x * x * (0.044715 * factor) + factor)))
    if has(node, FeatureLevel.LEVEL_5_1):
        return unary("gelu")(node)
    return applied(node, lambda x: x * (call(node, "erf", x * sqrt(0.5)) * 0.5 + 0.5))


def swish(node: NodeContext) -> Any:
    """x * sigmoid(alpha * x)."""
    alpha = float(node.get("alpha", 1.0))
    if has(node, FeatureLevel.LEVEL_6_2):
        return applied(node, lambda x: call(node, "swish", x, alpha))
    return applied(node, lambda x: x * call(node, "sigmoid", x * alpha))


def hard_swish(node: NodeContext) -> Any:
    """x * max(0, min(1, x / 6 + 1 / 2))."""
    if has(node, FeatureLevel.LEVEL_6_2):
        return unary("hard_swish")(node)
    return applied(node, lambda x: x * call(node, "hard_sigmoid", x, 1 / 6, 0.5))


def mish(node: NodeContext) -> Any:
    """x * tanh(ln(1 + e^x))."""
    return applied(node, lambda x: x * call(node, "tanh", call(node, "softplus", x)))


def along_axis(function: str) -> Lowering:
    """Along one axis; before operator set 13 along all from it on, which make one."""

    def lowering(node: NodeContext) -> Any:
        shape = node.shape(0)
        if 0 in shape:
            return np.zeros(shape, node.dtype(0))
        rank = max(len(shape), 1)
        axis = node.get("axis", -1 if node.opset >= 13 else 1)
        if not -rank <= axis <= rank - (node.opset >= 13):
            raise NotLowered(f"axis {axis} of {rank} dimensions")
        axis %= rank + (axis == rank)
        x = node.x(0)
        if node.opset < 13:
            rows = x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))
            return node.shaped(call(node, function, rows, axis=1), shape)
        if has(node, FeatureLevel.LEVEL_5_1):
            return node.shaped(call(node, function, x, axis=axis), shape)
        # Before there are axes, of rows.
        order = [*range(axis), *range(axis + 1, rank), axis]
        moved = x.transpose(order)
        y = call(node, function, moved.reshape(-1, x.shape[axis]), axis=1).reshape(moved.shape)
        return node.shaped(y.transpose([order.index(i) for i in range(rank)]), shape)

    return lowering


def dropout(node: NodeContext) -> Any:
    """Nothing is dropped but in training, which operator sets from 12 on may ask for."""
    is_training = node.opset >= 12 and bool(node.number(2, False))
    if is_training and node.number(1, 0.5) != 0:
        raise NotLowered("training, which drops at random")
    shape = node.shape(0)
    results: list[Any] = [np.zeros(shape, node.dtype(0)) if 0 in shape else unchanged(node)]
    if node.wants(1):
        # Before operator set 12 it says nothing where nothing is dropped; ONNX Runtime has zeros there.
        kept = np.ones if node.opset >= 12 else np.zeros
        results.append(kept(shape, node.dtype(0) if node.opset < 10 else np.bool_))
    return results


LOWERINGS: dict[str, Lowering] = {
    "Celu": unary("celu", alpha=("alpha", 1.0)),
    "Dropout": dropout,
    "Elu": unary("elu", alpha=("alpha", 1.0)),
    "Gelu": gelu,
    "HardSigmoid": unary("hard_sigmoid", alpha=("alpha", 0.2), beta=("beta", 0.5)),
    "HardSwish": hard_swish,
    "Hardmax": along_axis("hardmax"),
    "LeakyRelu": unary("leaky_relu", alpha=("alpha", 0.01)),
    "LogSoftmax": along_axis("log_softmax"),
    "Mish": mish,
    "PRelu": prelu,
    "ParametricSoftplus": unary("parametric_softplus", alpha=("alpha", 1.0), beta=("beta", 1.0)),
    "Relu": relu,
    "ScaledTanh": unary("scaled_tanh", alpha=("alpha", 1.0), beta=("beta", 1.0)),
    "Selu": unary("scaled_elu", alpha=("alpha", 1.67326319217681884765625), gamma=("gamma", 1.05070102214813232421875)),
    "Shrink": shrink,
    "Sigmoid": unary("sigmoid"),
    "Softmax": along_axis("softmax"),
    "Softplus": unary("softplus"),
    "Softsign": unary("softsign"),
    "Swish": swish,
    "Tanh": unary("tanh"),
    "ThresholdedRelu": unary("thresholded_relu", alpha=("alpha", 1.0)),
}
