"""Linear quantisation: of a tensor, of each place along an axis, or of blocks along it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....core.enums import FeatureLevel, TensorDataType
from ....core.packed_array import FOUR_BITS, LIMITS, four_bits_of, unpacked_dtype
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from ..values import Shape
from .cast import dtype_said_by
from .pointwise import call, has

_BYTES = (np.uint8, np.int8)
_BYTE_TYPES = (TensorDataType.UINT8, TensorDataType.INT8)
_FLOATS = (np.float32, np.float16)


def parameter(node: NodeContext, i: int) -> Expression:
    """A scale or a zero point, its dimensions in the places of those of the elements that it is for.

    Of blocks a number is repeated for each element of its block, where blocks are not of one size.
    """
    shape, own, x = node.shape(0) or (1,), node.shape(i), node.x(i)
    if prod(own) == 1:
        return x.reshape((1,) * len(shape))
    axis = node.get("axis", 1)
    if not -len(shape) <= axis < len(shape):
        raise NotLowered(f"axis {axis} of {len(shape)} dimensions")
    axis %= len(shape)
    block = node.get("block_size", 0)
    if block:
        wanted = (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])
        if own != wanted:
            raise NotLowered(f"blocks of shape {own}, where {wanted} are {block} elements each")
        return x if shape[axis] % block == 0 else _repeated(node, x, axis, block, shape[axis])
    if own != (shape[axis],):
        raise NotLowered(f"scales or zero points of shape {own} along a dimension of {shape[axis]}")
    return x.reshape((1,) * axis + own + (1,) * (len(shape) - axis - 1))


def _repeated(node: NodeContext, x: Expression, axis: int, block: int, size: int) -> Expression:
    x = _unpacked(node, x)
    apart: Shape = (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])
    repeats = [block if i == axis + 1 else 1 for i in range(len(apart))]
    whole = call(node, "tile", x.reshape(apart), repeats).reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])
    return whole[(slice(None),) * axis + (slice(size),)]


def _is_short(x: Expression) -> bool:
    """Whether elements have 4 bits, which QUANTIZE and DEQUANTIZE alone take."""
    return x.tensor.DataType in FOUR_BITS


def _unpacked(node: NodeContext, x: Expression) -> Expression:
    """Numbers of 4 bits as those of 8."""
    if not _is_short(x):
        return x
    return call(node, "dequantize", x, 1.0).astype(unpacked_dtype(x.tensor.DataType))


def _in_blocks(node: NodeContext, x: Expression, parameters: list[Expression]) -> bool:
    """Whether parameters are of blocks, and the operators are there that have blocks, QUANTIZE and DEQUANTIZE."""
    pairs = [pair for each in parameters for pair in zip(each.shape, x.shape, strict=True)]
    return has(node, FeatureLevel.LEVEL_6_3) and any(1 < own < size for own, size in pairs)


def _spread(node: NodeContext, x: Expression, parameters: list[Expression]) -> list[Expression]:
    """Parameters of blocks as one for each element."""
    found = []
    for each in parameters:
        for axis, (own, size) in enumerate(zip(each.shape, x.shape, strict=True)):
            if 1 < own < size:
                each = _repeated(node, each, axis, size // own, size)
        found.append(each)
    return found


def quantize(node: NodeContext) -> Any:
    """clamp(round(x / scale) + zero_point), with halves to the even integer."""
    given = node.get("output_dtype", 0)
    dtype = node.dtype(2) if node.has(2) else dtype_said_by(node, "output_dtype") if given else np.dtype(np.uint8)
    _refuse_other(dtype)
    shape = node.shape(0)
    if 0 in shape:
        return np.zeros(shape, dtype)
    x, *parameters = _divided(node, node.x(0), [parameter(node, i) for i in (1, 2) if node.has(i)])
    kind = four_bits_of(dtype)
    if kind is not None:
        if x.dtype not in _FLOATS or not all(map(_is_short, parameters[1:])):
            x = _to_integers(node, x, _spread(node, x, parameters), *LIMITS[kind])
            parameters = [node.constant(np.ones((1,) * x.ndim, np.float32))]
        return node.shaped(call(node, "quantize", x, *parameters, output_dtype=dtype), shape)
    if dtype in _BYTES and _in_blocks(node, x, parameters) and x.dtype in _FLOATS:
        return node.shaped(node.call("quantize", x, *parameters, output_dtype=dtype), shape)
    parameters = _spread(node, x, parameters)
    if dtype in _BYTES:
        return node.shaped(node.call("quantize_linear", x, *parameters, output_dtype=dtype), shape)
    ends = np.iinfo(dtype)
    return node.shaped(_to_integers(node, x, parameters, ends.min, ends.max).astype(dtype), shape)


def _divided(node: NodeContext, x: Expression, parameters: list[Expression]) -> list[Expression]:
    """What is quantised, its scale, and its zero point.

    DirectML rounds quotients to FLOAT32. From operator set 23 on they are of the scale's type, or what the node says:
    those of FLOAT16 are divided before, and left with a scale of 1.
    """
    scale, *zero_points = parameters
    precision = dtype_said_by(node, "precision") if node.get("precision", 0) else scale.dtype
    if precision not in _FLOATS:
        raise NotLowered(f"elements of {precision}, which DirectML does not divide by")
    if node.opset < 23:
        return [x, *parameters]
    if scale.dtype != precision:
        scale = scale.astype(precision)
    if x.dtype != precision and (x.dtype != np.int32 or precision == np.float16):
        x = x.astype(precision)
    if precision == np.float32:
        return [x, scale, *zero_points]
    (whole,) = _spread(node, x, [scale])
    return [x / whole, node.constant(np.ones((1,) * len(x.shape), np.float16)), *zero_points]


def _to_integers(node: NodeContext, x: Expression, parameters: list[Expression], least: int, most: int) -> Expression:
    """Integers of types that DirectML's operators don't give, clamped in FLOAT32, which holds them exactly."""
    x, scale, *zero_points = [_unpacked(node, each).astype(np.float32) for each in (x, *parameters)]
    y = call(node, "round", x / scale)
    if zero_points:
        # What is beyond both ends with any zero point would lose digits in the sum.
        y = call(node, "clip", y, -131072.0, 131072.0) + zero_points[0]
    return call(node, "clip", y, float(least), float(most))


def dequantize(node: NodeContext) -> Any:
    """(x - zero_point) * scale."""
    _refuse_other(node.dtype(0))
    real = node.dtype(1)
    if real not in _FLOATS:
        raise NotLowered(f"scales of {real}, which DirectML has not")
    given = node.get("output_dtype", 0)
    dtype = dtype_said_by(node, "output_dtype") if given else real
    if dtype not in _FLOATS:
        raise NotLowered(f"elements of {dtype}, which DirectML does not dequantise to")
    shape = node.shape(0)
    if 0 in shape:
        return np.zeros(shape, dtype)
    x = node.x(0)
    parameters = [parameter(node, i) for i in (1, 2) if node.has(i)]
    is_short = _is_short(x) and all(map(_is_short, parameters[1:]))
    if is_short or (x.tensor.DataType in _BYTE_TYPES and _in_blocks(node, x, parameters)):
        y = call(node, "dequantize", x, *parameters)
    else:
        x = _unpacked(node, x)
        y = call(node, "dequantize_linear", x, *_spread(node, x, parameters))
    return node.shaped(y if y.dtype == dtype else y.astype(dtype), shape)


def _refuse_other(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "iu" and four_bits_of(dtype) is None:
        raise NotLowered(f"quantised numbers of {dtype}")


def dynamic_quantize(node: NodeContext) -> list[Any]:
    """The scale and the zero point have 0 dimensions."""
    if 0 in node.shape(0):
        raise NotLowered("the range of no elements")
    y, scale, zero_point = node.call("dynamic_quantize_linear", node.x(0))
    return [node.shaped(y, node.shape(0)), node.shaped(scale, ()), node.shaped(zero_point, ())]


LOWERINGS: dict[str, Lowering] = {
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "QuantizeLinear": quantize,
    "com.microsoft.DequantizeLinear": dequantize,
    "com.microsoft.QuantizeLinear": quantize,
}
