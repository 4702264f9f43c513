"""Linear quantisation: of a tensor, of each place along an axis, or of blocks along it; to 8 bits, and to 4."""

from __future__ import annotations

from typing import Any

from anydml import QuantizationType, TensorDataType
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, broadcast, data_type_of, reshaped, sizes_of

_OUTPUTS = {
    2: TensorDataType.UINT8,
    3: TensorDataType.INT8,
    21: TensorDataType.UINT4,
    22: TensorDataType.INT4,
}
"""ONNX's numbers of data types."""


def along(node: Node, i: int, x: Expression) -> Expression:
    """A scale or a zero point, its dimensions in the places of those of the elements that it is for."""
    parameter, sizes = node.input(i), sizes_of(x)
    if node.values[i].ndim == len(sizes) and node.get("block_size", 0):
        return parameter
    if node.values[i].ndim == 1 and node.values[i].size > 1:
        axis = node.get("axis", 1) % len(sizes)
        return reshaped(parameter, [size if d == axis else 1 for d, size in enumerate(sizes)])
    return reshaped(parameter, (1,) * len(sizes)) if node.values[i].size == 1 else parameter


def by_blocks(node: Node, name: str, x: Expression, output: TensorDataType) -> Expression:
    parameters = [along(node, i, x) for i in (1, 2) if node.has(i)]
    return node(
        name,
        InputTensor=x,
        QuantizationType=QuantizationType(len(parameters)),
        QuantizationTensors=parameters,
        OutputTensor=output,
    )


def element_by_element(node: Node, name: str, x: Expression, **members: Any) -> Expression:
    if node.has(2):
        members["ZeroPointTensor"] = broadcast(along(node, 2, x), sizes_of(x))
    scale = broadcast(along(node, 1, x), sizes_of(x))
    return node(f"ELEMENT_WISE_{name}_LINEAR", InputTensor=x, ScaleTensor=scale, **members)


def quantize(node: Node) -> Expression:
    given = node.get("output_dtype", 0)
    kind = data_type_of(node.values[2]) if node.has(2) else _OUTPUTS.get(given or 2)
    if kind is None or (given and _OUTPUTS.get(given) != kind):
        raise NotSaid("another type of quantised numbers")
    x = node.input(0)
    if node.get("block_size", 0) or kind.bits == 4:
        return by_blocks(node, "QUANTIZE", x, kind)
    return element_by_element(node, "QUANTIZE", x, OutputTensor=kind)


def dequantize(node: Node) -> Expression:
    x = node.input(0)
    if node.get("block_size", 0) or x.tensor.DataType.bits == 4:
        real = data_type_of(node.values[1])
        if real is None:
            raise NotSaid("another type of real numbers")
        return by_blocks(node, "DEQUANTIZE", x, real)
    return element_by_element(node, "DEQUANTIZE", x)


ADAPTERS: dict[str, Adapter] = {"DequantizeLinear": dequantize, "QuantizeLinear": quantize}
