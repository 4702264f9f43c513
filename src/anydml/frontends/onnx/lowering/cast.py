"""Elements as values of another type, and bytes as elements of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from ....core.strided_layout import DATA_TYPES
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .pointwise import same_bytes, unchanged


def dtype_of(node: NodeContext, attribute: str) -> np.dtype[Any]:
    """The data type that an attribute says by ONNX's number."""
    number = node.required(attribute)
    if number == onnx.TensorProto.STRING:
        raise NotLowered("strings")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))


def converted(x: Expression, dtype: np.dtype[Any]) -> Expression:
    """Elements as values of another type; what is not 0 is true."""
    if dtype == x.dtype:
        return x
    if dtype != np.bool_:
        return x.astype(dtype)
    if x.dtype == np.float64:
        # LOGICAL_EQUALS has none: all bits but the sign's.
        return (same_bytes(x, np.uint64) << 1) != 0
    return x != 0


def _cast(node: NodeContext, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "OUST" or node.dtype(0).kind in "OUST":
        raise NotLowered("strings")
    if dtype not in DATA_TYPES and dtype != np.bool_:
        raise NotLowered(f"elements of {dtype}, which DirectML has not")
    shape = node.shape(0)
    if 0 in shape:
        return np.zeros(shape, dtype)
    return unchanged(node) if node.dtype(0) == dtype else node.shaped(converted(node.x(0), dtype), shape)


def cast(node: NodeContext) -> Any:
    return _cast(node, dtype_of(node, "to"))


def cast_like(node: NodeContext) -> Any:
    return _cast(node, node.dtype(1))


def bit_cast(node: NodeContext) -> Any:
    """The same bytes as elements of a type of the same size."""
    dtype, own, shape = dtype_of(node, "to"), node.dtype(0), node.shape(0)
    if dtype.itemsize != own.itemsize:
        raise NotLowered(f"bits of {own} as {dtype}")
    if dtype not in DATA_TYPES and dtype != np.bool_:
        raise NotLowered(f"elements of {dtype}, which DirectML has not")
    if 0 in shape:
        return np.zeros(shape, dtype)
    if own == dtype:
        return unchanged(node)
    x = node.x(0).astype(np.uint8) if own == np.bool_ else node.x(0)
    return node.shaped(same_bytes(x, np.uint8) != 0 if dtype == np.bool_ else same_bytes(x, dtype), shape)


LOWERINGS: dict[str, Lowering] = {
    "BitCast": bit_cast,
    "Cast": cast,
    "CastLike": cast_like,
}
