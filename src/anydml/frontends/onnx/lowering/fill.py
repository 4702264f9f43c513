"""What makes elements of none: constants, sequences, diagonals, triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .shapes import broadcast, filled, like, truth

_LEAST, _MOST = -(2**31), 2**31 - 1


def constant_of_shape(node: NodeContext) -> Any:
    """One element, by strides of 0."""
    shape = tuple(node.integers(0))
    value = node.get("value", np.zeros(1, np.float32))
    if 0 in shape:
        return np.zeros(shape, value.dtype)
    return node.shaped(broadcast(node.constant(value.reshape(1)), shape), shape)


def sequence(node: NodeContext) -> Any:
    """start, start + delta, ... before the limit."""
    start, limit, delta = (node.number(i) for i in range(3))
    if delta == 0:
        raise NotLowered("a step of 0")
    count = max(math.ceil((limit - start) / delta), 0)
    dtype = node.dtype(0)
    if count == 0 or dtype == np.float64:
        return start + np.arange(count, dtype=dtype) * dtype.type(delta)
    found = node.call("fill_value_sequence", count, start, delta, dtype, graph=node.graph)
    return node.shaped(found, (count,))


def eye_like(node: NodeContext) -> Any:
    import onnx

    shape, offset = node.shape(0), node.get("k", 0)
    wanted = node.get("dtype")
    dtype = node.dtype(0) if wanted is None else np.dtype(onnx.helper.tensor_dtype_to_np_dtype(wanted))
    rows, columns = shape
    if 0 in shape or not -rows < offset < columns:
        return np.zeros(shape, dtype)
    plain = np.dtype(np.uint8) if dtype == np.bool_ else dtype
    found: Expression = node.call("diagonal_matrix", shape, 1, plain, offset=offset, graph=node.graph)
    return truth(found) if plain != dtype else found


def trilu(node: NodeContext) -> Any:
    """A triangle: a band of zeros reaches to the other corner."""
    shape, k = node.shape(0), node.number(1, 0)
    band = (_LEAST, k) if node.get("upper", 1) else (k + 1, _MOST)
    begin, end = (min(max(each, _LEAST), _MOST) for each in band)

    def make() -> Expression:
        x = node.x(0)
        # DIAGONAL_MATRIX1 has up to four dimensions.
        x = x.reshape(-1, *shape[-2:]) if len(shape) > 4 else x
        found = node.call("diagonal_matrix", x=x, value=0, diagonal_fill_begin=begin, diagonal_fill_end=end)
        return like(node, found)

    return filled(node, shape, make)


def random(node: NodeContext) -> Any:
    raise NotLowered("random numbers, for which ONNX names no generator: no other runtime would draw the same")


LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(("Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), random),
    "ConstantOfShape": constant_of_shape,
    "EyeLike": eye_like,
    "Range": sequence,
    "Trilu": trilu,
    "com.microsoft.Trilu": trilu,
}
