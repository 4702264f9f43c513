"""Products and convolutions of integers, and dynamic quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml import TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, broadcast, fitted, reshaped, sizes_of


def lying(node: Node, i: int, axis: int, rank: int) -> Expression | None:
    """A scale or a zero point along an axis, scales in single precision; None where there is none."""
    if not node.has(i):
        return None
    value, parameter = node.values[i], node.input(i)
    if value.dtype == np.float16:
        parameter = node("CAST", InputTensor=parameter, OutputTensor=TensorDataType.FLOAT32)
    if value.ndim > 1:
        return reshaped(parameter, (1,) * (rank - value.ndim) + value.shape)
    return reshaped(parameter, [value.size if d == axis % rank else 1 for d in range(rank)])


def matrices(node: Node, a: int, b: int) -> tuple[Expression, Expression]:
    left, right = node.input(a), node.input(b)
    outer = np.broadcast_shapes(sizes_of(left)[:-2], sizes_of(right)[:-2])
    left, right = (broadcast(x, (*outer, *sizes_of(x)[-2:])) for x in (left, right))
    return left, right


def mat_mul_integer(node: Node) -> Expression:
    a, b = matrices(node, 0, 1)
    rank = len(sizes_of(a))
    return node(
        "MATRIX_MULTIPLY_INTEGER",
        ATensor=a,
        AZeroPointTensor=lying(node, 2, -2, rank),
        BTensor=b,
        BZeroPointTensor=lying(node, 3, -1, rank),
        OutputTensor=TensorDataType.INT32,
    )


def q_linear_mat_mul(node: Node) -> Expression:
    a, b = matrices(node, 0, 3)
    rank = len(sizes_of(a))
    return node(
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
        ATensor=a,
        AScaleTensor=lying(node, 1, -2, rank),
        AZeroPointTensor=lying(node, 2, -2, rank),
        BTensor=b,
        BScaleTensor=lying(node, 4, -1, rank),
        BZeroPointTensor=lying(node, 5, -1, rank),
        OutputScaleTensor=lying(node, 6, -2, rank),
        OutputZeroPointTensor=lying(node, 7, -2, rank),
        OutputTensor=DATA_TYPES[node.values[7].dtype],
    )


def windows(node: Node, filter: int) -> dict[str, Any]:
    x, w = node.values[0], node.values[filter]
    return {**fitted(node, x.shape[2:], w.shape[2:]), "GroupCount": node.get("group", 1)}


def conv_integer(node: Node) -> Expression:
    rank = node.values[0].ndim
    return node(
        "CONVOLUTION_INTEGER",
        InputTensor=node.input(0),
        InputZeroPointTensor=lying(node, 2, 1, rank),
        FilterTensor=node.input(1),
        FilterZeroPointTensor=lying(node, 3, 1, rank),
        OutputTensor=TensorDataType.INT32,
        **windows(node, 1),
    )


def q_linear_conv(node: Node) -> Expression:
    rank = node.values[0].ndim
    return node(
        "QUANTIZED_LINEAR_CONVOLUTION",
        InputTensor=node.input(0),
        InputScaleTensor=lying(node, 1, 1, rank),
        InputZeroPointTensor=lying(node, 2, 1, rank),
        FilterTensor=node.input(3),
        FilterScaleTensor=lying(node, 4, 1, rank),
        FilterZeroPointTensor=lying(node, 5, 1, rank),
        BiasTensor=lying(node, 8, 1, rank),
        OutputScaleTensor=lying(node, 6, 1, rank),
        OutputZeroPointTensor=lying(node, 7, 1, rank),
        OutputTensor=DATA_TYPES[node.values[7].dtype],
        **windows(node, 3),
    )


def dynamic_quantize_linear(node: Node) -> list[Expression]:
    return node.apply(
        "DYNAMIC_QUANTIZE_LINEAR",
        InputTensor=node.input(0),
        OutputTensor=TensorDataType.UINT8,
        OutputScaleTensor=TensorDataType.FLOAT32,
        OutputZeroPointTensor=TensorDataType.UINT8,
    )


ADAPTERS: dict[str, Adapter] = {
    "ConvInteger": conv_integer,
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "MatMulInteger": mat_mul_integer,
    "QLinearConv": q_linear_conv,
    "QLinearMatMul": q_linear_mat_mul,
}
