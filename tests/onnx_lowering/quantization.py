"""Linear quantisation: of a tensor, or of each place along an axis. Blocks are of another operator."""

from __future__ import annotations

from anydml import TensorDataType
from anydml.core.strided_layout import DATA_TYPES
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, NotSaid, broadcast, reshaped, sizes_of


def along(node: Node, i: int, x: Expression) -> Expression:
    """A scale or a zero point, at the places of the elements that it is for."""
    parameter, sizes = node.input(i), sizes_of(x)
    if node.get("block_size", 0):
        raise NotSaid("scales of blocks")
    if node.values[i].ndim == 1 and node.values[i].size > 1:
        axis = node.get("axis", 1) % len(sizes)
        parameter = reshaped(parameter, [size if d == axis else 1 for d, size in enumerate(sizes)])
    return broadcast(parameter, sizes)


def parameters(node: Node, x: Expression) -> dict[str, Expression]:
    zero_point = {"ZeroPointTensor": along(node, 2, x)} if node.has(2) else {}
    return {"InputTensor": x, "ScaleTensor": along(node, 1, x), **zero_point}


def quantize(node: Node) -> Expression:
    kind = DATA_TYPES.get(node.values[2].dtype) if node.has(2) else TensorDataType.UINT8
    if kind is None or node.get("output_dtype", 0):
        raise NotSaid("another type of quantised numbers")
    return node("ELEMENT_WISE_QUANTIZE_LINEAR", **parameters(node, node.input(0)), OutputTensor=kind)


def dequantize(node: Node) -> Expression:
    return node("ELEMENT_WISE_DEQUANTIZE_LINEAR", **parameters(node, node.input(0)))


ADAPTERS: dict[str, Adapter] = {"DequantizeLinear": dequantize, "QuantizeLinear": quantize}
