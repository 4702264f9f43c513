"""From numbers to integers, and back."""

from __future__ import annotations

from anydml import QuantizationType, TensorDataType
from anydml.frontends.directmlx import Expression

from .layouts import broadcast
from .node import Adapter, Node


def by_blocks(node: Node, name: str, output: TensorDataType) -> Expression:
    """A scale may be of a block of elements, of 4 bits and of 8. Of others each dimension is then two, that of the
    blocks and that in a block."""
    x, *parameters = node.operands("input", "scale", "zeroPoint")
    scale, zero_point = (each.reshape((1,) * (x.ndim - each.ndim) + each.shape) for each in parameters)
    if zero_point.tensor.DataType.bits <= 8:
        return node(
            name,
            InputTensor=x,
            QuantizationType=QuantizationType.SCALE_ZERO_POINT,
            QuantizationTensors=[scale, zero_point],
            OutputTensor=output,
        )
    sizes, counts = x.shape, scale.shape
    if any(count not in (1, size) for size, count in zip(sizes, counts, strict=True)):
        sizes = tuple(n for size, count in zip(sizes, counts, strict=True) for n in (count, size // count))
        counts = tuple(n for count in counts for n in (count, 1))
    y = node(
        f"ELEMENT_WISE_{name}_LINEAR",
        InputTensor=x.reshape(sizes),
        ScaleTensor=broadcast(scale.reshape(counts), sizes),
        ZeroPointTensor=broadcast(zero_point.reshape(counts), sizes),
        OutputTensor=output,
    )
    return y.reshape(x.shape)


def quantize_linear(node: Node) -> Expression:
    return by_blocks(node, "QUANTIZE", node.operand("zeroPoint").tensor.DataType)


def dequantize_linear(node: Node) -> Expression:
    return by_blocks(node, "DEQUANTIZE", node.operand("scale").tensor.DataType)


ADAPTERS: dict[str, Adapter] = {
    "dequantizeLinear": dequantize_linear,
    "quantizeLinear": quantize_linear,
}
