"""Elements as values of another type, and bytes as elements of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from ....core.packed_array import four_bits_of
from ....core.strided_layout import DATA_TYPES
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from ..values import dtype_of, is_held_by_directml
from .pointwise import call, same_bytes, unchanged


def dtype_said_by(node: NodeContext, attribute: str) -> np.dtype[Any]:
    """The data type that an attribute says by ONNX's number."""
    number = node.required(attribute)
    if number == onnx.TensorProto.STRING:
        raise NotLowered("strings")
    if number not in onnx.TensorProto.DataType.values() or number == onnx.TensorProto.UNDEFINED:
        raise NotLowered(f"a type of number {number}, which ONNX has not")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))


def converted(node: NodeContext, x: Expression, dtype: np.dtype[Any]) -> Expression:
    """Elements as values of another type; what is not 0 is true."""
    own = dtype_of(x)
    if dtype == own:
        return x
    if four_bits_of(own) is not None:
        return converted(node, call(node, "dequantize", x, 1.0), dtype)
    if four_bits_of(dtype) is not None:
        return _four_bits(node, x, dtype)
    if dtype != np.bool_:
        return x.astype(dtype)
    if x.dtype == np.float64:
        # LOGICAL_EQUALS has none: all bits but the sign's.
        return (same_bytes(x, np.uint64) << 1) != 0
    return x != 0


def _four_bits(node: NodeContext, x: Expression, dtype: np.dtype[Any]) -> Expression:
    """The last 4 bits of the integer that is left of a number; numbers are made to 4 bits by QUANTIZE alone."""
    whole = x.astype(np.int32)
    bits = whole & 15
    low = bits if dtype.name == "uint4" else (bits ^ 8) - 8
    return call(node, "quantize", low.astype(np.float32), 1.0, output_dtype=dtype)


def _cast(node: NodeContext, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "OUST" or node.dtype(0).kind in "OUST":
        raise NotLowered("strings")
    if not is_held_by_directml(dtype):
        raise NotLowered(f"elements of {dtype}, which DirectML has not")
    shape = node.shape(0)
    if 0 in shape:
        return np.zeros(shape, dtype)
    return unchanged(node) if node.dtype(0) == dtype else node.shaped(converted(node, node.x(0), dtype), shape)


def cast(node: NodeContext) -> Any:
    return _cast(node, dtype_said_by(node, "to"))


def cast_like(node: NodeContext) -> Any:
    return _cast(node, node.dtype(1))


def bit_cast(node: NodeContext) -> Any:
    """The same bytes as elements of a type of the same size."""
    dtype, own, shape = dtype_said_by(node, "to"), node.dtype(0), node.shape(0)
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
