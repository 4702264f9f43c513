"""Products and convolutions of integers, and of quantised numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext
from .empty import may_be_empty
from .windows import window_of


def lying(node: NodeContext, i: int, axis: int, rank: int, is_single: bool = True) -> Expression | None:
    """A scale or a zero point along an axis, scales in single precision, or as they are; None where there is none."""
    if not node.has(i):
        return None
    shape, x = node.shape(i), node.x(i)
    if x.dtype == np.float16 and is_single:
        x = x.astype(np.float32)
    if len(shape) > 1:
        return x.reshape((1,) * (rank - len(shape)) + shape)
    return x.reshape([x.shape[0] if d == axis % rank else 1 for d in range(rank)])


def matrices(node: NodeContext, i: int, j: int) -> tuple[Expression, Expression, tuple[int, ...]]:
    """Two operands as matrices, as MatMul has them, and the shape of the product."""
    a, b = node.shape(i), node.shape(j)
    left, right = ((1, *a) if len(a) == 1 else a), ((*b, 1) if len(b) == 1 else b)
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    shape = (*batch, *(left[-2:-1] if len(a) > 1 else ()), *(right[-1:] if len(b) > 1 else ()))
    return node.x(i).reshape(left), node.x(j).reshape(right), shape


def mat_mul_integer(node: NodeContext) -> Any:
    a, b, shape = matrices(node, 0, 1)
    points = [lying(node, 2, -2, a.ndim), lying(node, 3, -1, b.ndim)]
    return node.shaped(node.call("matrix_multiply_integer", a, b, *points), shape)


def q_linear_mat_mul(node: NodeContext) -> Any:
    """In single precision; scales of other types are taken to it."""
    a, b, shape = matrices(node, 0, 3)
    y = node.call(
        "quantized_linear_matrix_multiply",
        a,
        lying(node, 1, -2, a.ndim),
        b,
        lying(node, 4, -1, b.ndim),
        output_scale=lying(node, 6, -2, a.ndim),
        a_zero_point=lying(node, 2, -2, a.ndim),
        b_zero_point=lying(node, 5, -1, b.ndim),
        output_zero_point=lying(node, 7, -2, a.ndim),
        output_dtype=node.dtype(7),
    )
    return node.shaped(y, shape)


def windowed(node: NodeContext, x: Expression, w: Expression) -> dict[str, Any]:
    """Where the window of a convolution stands, as a function's options have it."""
    return {**window_of(node, x.shape[2:], w.shape[2:]).options(), "group_count": node.get("group", 1)}


def conv_integer(node: NodeContext) -> Any:
    """Of one, or two spatial dimensions."""
    points = [node.x(i) if node.has(i) else None for i in (2, 3)]
    x, w = node.x(0), node.x(1)
    return node.call("convolution_integer", x, w, *points, **windowed(node, x, w))


def q_linear_conv(node: NodeContext, view: Expression | None = None) -> Any:
    """Of one spatial dimension it is of two, of height 1.

    Args:
        node: the node.
        view: {N, C, ...}, where that is not the first input.
    """
    x, w = node.x(0) if view is None else view, node.x(3)
    options = windowed(node, x, w)
    one = x.ndim == 3
    if one:
        x, w = (each.reshape(*each.shape[:2], 1, each.shape[2]) for each in (x, w))
        for name in ("strides", "dilations"):
            options[name] = [1, *options[name]]
        for name in ("start_padding", "end_padding"):
            options[name] = [0, *options[name]]
    y: Expression = node.call(
        "quantized_linear_convolution",
        x,
        lying(node, 1, 1, x.ndim),
        w,
        lying(node, 4, 1, x.ndim),
        node.x(8) if node.has(8) else None,
        input_zero_point=lying(node, 2, 1, x.ndim),
        filter_zero_point=lying(node, 5, 1, x.ndim),
        output_scale=lying(node, 6, 1, x.ndim),
        output_zero_point=lying(node, 7, 1, x.ndim),
        output_dtype=node.dtype(7),
        **options,
    )
    return y.reshape(*y.shape[:2], y.shape[3]) if one else y


LOWERINGS: dict[str, Lowering] = may_be_empty(
    {
        "ConvInteger": conv_integer,
        "MatMulInteger": mat_mul_integer,
        "QLinearConv": q_linear_conv,
        "QLinearMatMul": q_linear_mat_mul,
    }
)
