"""Operators of com.microsoft on quantised numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.enums import TensorDataType
from ....core.packed_array import PackedArray
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from .integer import lying, matrices, q_linear_conv
from .microsoft import channels_first, channels_last
from .pooling import results_of
from .windows import window_of


def dequantized(node: NodeContext, i: int, scale: int, zero_point: int) -> Expression:
    """An input as real numbers, by a scale and a zero point of all its elements."""
    point = node.x(zero_point).reshape((1,) * node.x(i).ndim) if node.has(zero_point) else None
    x = node.x(i)
    found: Expression = node.call("dequantize_linear", x, node.x(scale).reshape((1,) * x.ndim), point)
    return found


def quantized(node: NodeContext, y: Expression, scale: int, zero_point: int, dtype: Any = None) -> Expression:
    """Real numbers as a quantised result."""
    point = node.x(zero_point).reshape((1,) * y.ndim) if node.has(zero_point) else None
    kind = node.dtype(zero_point) if node.has(zero_point) else dtype or np.uint8
    found: Expression = node.call("quantize_linear", y, node.x(scale).reshape((1,) * y.ndim), point, output_dtype=kind)
    return found


def by_real_numbers(formula: Callable[[NodeContext, Expression], Expression]) -> Lowering:
    """quantise(f(dequantise(x)))"""

    def lowering(node: NodeContext) -> Any:
        y = formula(node, dequantized(node, 0, 1, 2))
        return node.shaped(quantized(node, y, 3, 4, node.dtype(0)), node.shape(0))

    return lowering


def _softmax(node: NodeContext, x: Expression) -> Expression:
    """Before ONNX's version 13 along all axes from the given one on."""
    axis = node.get("axis", -1) % x.ndim
    axes = [axis] if node.get("opset", 13) >= 13 else list(range(axis, x.ndim))
    found: Expression = node.call("softmax", x, axes)
    return found


def q_linear_mul(node: NodeContext) -> Any:
    shape = np.broadcast_shapes(node.shape(0), node.shape(3))
    a, b = dequantized(node, 0, 1, 2), dequantized(node, 3, 4, 5)
    return node.shaped(quantized(node, a * b, 6, 7, node.dtype(0)), shape)


def q_linear_add(node: NodeContext) -> Any:
    shape = np.broadcast_shapes(node.shape(0), node.shape(3))
    points = [node.x(i) if node.has(i) else None for i in (2, 5, 7)]
    y = node.call(
        "quantized_linear_add",
        node.x(0),
        node.x(1),
        node.x(3),
        node.x(4),
        output_scale=node.x(6),
        a_zero_point=points[0],
        b_zero_point=points[1],
        output_zero_point=points[2],
        output_dtype=node.dtype(7) if node.has(7) else node.dtype(0),
    )
    return node.shaped(y, shape)


def q_linear_concat(node: NodeContext) -> Any:
    """Inputs come in threes, each with its scale and its zero point; each is quantised anew before they are joined, as
    bytes take a quarter of the memory."""
    pieces = [_as_quantized(node, i) for i in range(2, len(node), 3)]
    return node.call("join", pieces, node.required("axis") % pieces[0].ndim)


def _as_quantized(node: NodeContext, i: int) -> Expression:
    """An input, with a scale and a zero point behind it, by those of the result."""
    if all(node.is_known(k) for k in (0, 1, i + 1, i + 2)) and node.dtype(i) == node.dtype(1):
        scales, points = ([node.known(k).ravel()[0] for k in pair] for pair in ((0, i + 1), (1, i + 2)))
        # q * scale / scale, rounded twice, is next to q where neither overflows or is subnormal.
        if scales[0] == scales[1] and points[0] == points[1] and 1e-30 < abs(scales[0]) < 1e30:
            return node.x(i)
    return quantized(node, dequantized(node, i, i + 1, i + 2), 0, 1)


def q_linear_where(node: NodeContext) -> Any:
    shape = np.broadcast_shapes(*(node.shape(i) for i in (0, 1, 4)))
    y = node.call("if_", node.x(0), dequantized(node, 1, 2, 3), dequantized(node, 4, 5, 6))
    return node.shaped(quantized(node, y, 7, 8, node.dtype(1)), shape)


def q_linear_reduce_mean(node: NodeContext) -> Any:
    x = dequantized(node, 0, 1, 2)
    axes = sorted(axis % x.ndim for axis in node.get("axes") or range(x.ndim))
    y = quantized(node, node.call("reduce", x, "average", axes=axes), 3, 4, node.dtype(0))
    kept = [size for i, size in enumerate(y.shape) if node.get("keepdims", 1) or i not in axes]
    return node.shaped(y, tuple(kept))


def q_linear_pool(node: NodeContext) -> Any:
    """Averages of a window, or of all; of one spatial dimension it is the second of two."""
    x = node.x(0)
    is_last = bool(node.get("channels_last", 0))
    x = channels_first(x) if is_last else x
    taps = node.get("kernel_shape") or x.shape[2:]
    window = window_of(node, x.shape[2:], taps)
    sizes = results_of(node, x.shape[2:], window)
    one = x.ndim == 3
    if one:
        x, window, sizes = x.reshape(*x.shape[:2], 1, x.shape[2]), window.with_height(), (1, *sizes)
    # Scales and zero points are of all channels: {1, 1, 1, 1}.
    given = [node.x(i).reshape((1,) * x.ndim) if node.has(i) else None for i in range(1, 5)]
    y: Expression = node.call(
        "quantized_linear_average_pooling",
        x,
        given[0],
        given[1],
        output_scale=given[2],
        output_zero_point=given[3],
        window_size=[*window.taps],
        **window.options(),
        include_padding=bool(node.get("count_include_pad", 0)),
        output_sizes=[*sizes],
        output_dtype=node.dtype(4) if node.has(4) else node.dtype(0),
    )
    y = y.reshape(*y.shape[:2], y.shape[3]) if one else y
    return channels_last(node, y) if is_last else y


def q_gemm(node: NodeContext) -> Any:
    """alpha * a b + c, quantised where there is a scale for the result, else real numbers.

    c is of INT32, in units of alpha times both scales.
    """
    a, b = node.x(0), node.x(3)
    a = node.call("identity", a.T) if node.get("transA", 0) else a
    b = node.call("identity", b.T) if node.get("transB", 0) else b
    scales = [lying(node, 1, -2, 2), lying(node, 4, -1, 2)]
    points = [lying(node, 2, -2, 2), lying(node, 5, -1, 2)]
    bias, alpha = None, node.get("alpha", 1.0)
    if scales[0] is None or scales[1] is None:
        raise NotLowered("matrices without scales")
    left = scales[0] * alpha if alpha != 1 else scales[0]
    if node.has(6):
        c = node.x(6)
        bias = c.reshape((1,) * (2 - c.ndim) + c.shape).astype(np.float32) * (left * scales[1])
    y = node.call(
        "matrix_multiply_integer_to_float", a, left, b, scales[1], bias, a_zero_point=points[0], b_zero_point=points[1]
    )
    return quantized(node, y, 7, 8, node.dtype(0)) if node.has(7) else y


def q_linear_conv_of_any_layout(node: NodeContext) -> Any:
    if not node.get("channels_last", 0):
        return q_linear_conv(node)
    y = q_linear_conv(node, channels_first(node.x(0)))
    return channels_last(node, y)


def mat_mul_integer_to_float(node: NodeContext) -> Any:
    a, b, shape = matrices(node, 0, 1)
    y = node.call(
        "matrix_multiply_integer_to_float",
        a,
        lying(node, 2, -2, a.ndim, False),
        b,
        lying(node, 3, -1, b.ndim, False),
        node.x(6) if node.has(6) else None,
        a_zero_point=lying(node, 4, -2, a.ndim),
        b_zero_point=lying(node, 5, -1, b.ndim),
    )
    return node.shaped(y, shape)


def dynamic_quantize_mat_mul(node: NodeContext) -> Any:
    """A product with a, quantised by its own range."""
    a, b, shape = matrices(node, 0, 1)
    quantised, scale, point = node.call("dynamic_quantize_linear", a)
    y = node.call(
        "matrix_multiply_integer_to_float",
        quantised,
        scale.reshape((1,) * a.ndim),
        b,
        lying(node, 2, -1, b.ndim),
        node.x(4) if node.has(4) else None,
        a_zero_point=point.reshape((1,) * a.ndim),
        b_zero_point=lying(node, 3, -1, b.ndim),
    )
    return node.shaped(y, shape)


def mat_mul_n_bits(node: NodeContext) -> Any:
    """x w^T of weights of {n, k}, quantised by blocks along k."""
    if node.has(4) and 0 not in node.shape(4):
        raise NotLowered("blocks of elements that are not neighbours")
    if node.get("weight_prepacked", 0):
        raise NotLowered("weights that a runtime packed for itself")
    n, k = node.required("N"), node.required("K")
    x = node.x(0)
    shape = (*node.shape(0)[:-1], n)
    w = weights(node, n, k)
    rows = x.reshape(-1, k)
    w = w if w.dtype == x.dtype else w.astype(x.dtype)
    return node.shaped(node.call("gemm", rows, w, node.x(5) if node.has(5) else None, trans_b=True), shape)


def weights(node: NodeContext, n: int, k: int) -> Expression:
    """(q - z) * scale of {n, k}, each row in blocks, of which the last one may be filled up."""
    block, bits = node.required("block_size"), node.get("bits", 4)
    count = -(-k // block)
    scale = node.x(2).reshape(n, count)
    q = _of_bits(node, 1, bits, (n, count * block))
    if not node.has(3):
        w = node.call("dequantize", q, scale, _point(node, bits))
    elif node.dtype(3) == np.uint8:
        w = node.call("dequantize", q, scale, _of_bits(node, 3, bits, (n, count)))
    else:
        # A zero point is a real number: q * scale - z * scale.
        less = (node.x(3).reshape(n, count) * scale).reshape(n, count, 1)
        w = node.call("dequantize", q, scale, None).reshape(n, count, block) - less
        w = w.reshape(n, count * block)
    found: Expression = w if count * block == k else w[:, :k]
    return found


def _point(node: NodeContext, bits: int) -> Expression:
    """The middle of the range, of all blocks."""
    if bits != 4:
        return node.constant(np.full((1, 1), 2 ** (min(bits, 8) - 1), np.uint8))
    return _packed(node, PackedArray.pack(np.full((1, 1), 8, np.uint8), "UINT4"))


def _packed(node: NodeContext, array: PackedArray) -> Expression:
    from ...directmlx import ExpressionAdapter

    return ExpressionAdapter("DEQUANTIZE", node.graph, None, None).take("", array)


def _of_bits(node: NodeContext, i: int, bits: int, shape: tuple[int, int]) -> Expression:
    """Rows of numbers of some bits, the first in the low ones of a byte; each row begins with a byte."""
    if bits == 8:
        return node.x(i).reshape(shape)
    if bits == 4 and shape[1] % 2 == 0:
        return node.x(i).reshape(shape[0], shape[1] // 2).reinterpret(TensorDataType.UINT4, shape)
    if bits not in (2, 4):
        raise NotLowered(f"weights of {bits} bits")
    rows = node.known(i).reshape(shape[0], -1)
    parts = [(rows >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    numbers = np.stack(parts, axis=-1).reshape(shape[0], -1)[:, : shape[1]]
    if bits == 2:
        return node.constant(np.ascontiguousarray(numbers))
    return _packed(node, PackedArray.pack(np.ascontiguousarray(numbers), "UINT4"))


def gather_block_quantized(node: NodeContext) -> Any:
    """Rows of a table of few bits, quantised by blocks along each row: those that are asked for become real numbers."""
    table, bits = node.shape(0), node.get("bits", 4)
    if len(table) != 2 or node.dtype(0) != np.uint8 or bits not in (4, 8):
        raise NotLowered(f"a table of {node.dtype(0)} and shape {table}, of {bits} bits")
    if node.get("gather_axis", 0) % 2 != 0 or node.get("quantize_axis", 1) % 2 != 1:
        raise NotLowered("blocks along the rows' own axis")
    size, count = table[1] * 8 // bits, node.shape(2)[1]
    block = node.get("block_size", 128)
    if count * block != size:
        raise NotLowered(f"rows of {size} in {count} blocks of {block}")
    if node.has(3) and count * bits % 8:
        raise NotLowered("zero points of which one begins within a byte")
    indices = node.x(1).reshape(-1)
    rows, scale, *points = (node.call("gather", node.x(i), indices, axis=0) for i in (0, 2, 3) if node.has(i))
    point = _in_halves(points[0], bits, count) if points else _point(node, bits)
    y = node.call("dequantize", _in_halves(rows, bits, size), scale, point)
    return node.shaped(y, (*node.shape(1), size))


def _in_halves(x: Expression, bits: int, size: int) -> Expression:
    """Rows of bytes as rows of numbers of 4 bits, or as they are."""
    return x if bits == 8 else x.reinterpret(TensorDataType.UINT4, (x.shape[0], size))


LOWERINGS: dict[str, Lowering] = {
    f"com.microsoft.{name}": lowering
    for name, lowering in {
        "DynamicQuantizeMatMul": dynamic_quantize_mat_mul,
        "GatherBlockQuantized": gather_block_quantized,
        "MatMulIntegerToFloat": mat_mul_integer_to_float,
        "MatMulNBits": mat_mul_n_bits,
        "QGemm": q_gemm,
        "QLinearAdd": q_linear_add,
        "QLinearAveragePool": q_linear_pool,
        "QLinearConcat": q_linear_concat,
        "QLinearConv": q_linear_conv_of_any_layout,
        "QLinearGlobalAveragePool": q_linear_pool,
        "QLinearLeakyRelu": by_real_numbers(lambda node, x: node.call("leaky_relu", x, node.get("alpha", 0.01))),
        "QLinearMul": q_linear_mul,
        "QLinearReduceMean": q_linear_reduce_mean,
        "QLinearSigmoid": by_real_numbers(lambda node, x: node.call("sigmoid", x)),
        "QLinearSoftmax": by_real_numbers(_softmax),
        "QLinearWhere": q_linear_where,
    }.items()
}
