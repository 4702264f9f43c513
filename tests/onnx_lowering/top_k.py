"""The largest or smallest elements."""

from __future__ import annotations

from anydml import TensorDataType
from anydml.core.enums import AxisDirection
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, sizes_of


def top_k(node: Node) -> list[Expression]:
    x = node.input(0)
    values, indices = node.apply(
        "TOP_K1",
        InputTensor=x,
        OutputIndexTensor=TensorDataType.UINT64,
        Axis=node.get("axis", -1) % len(sizes_of(x)),
        K=int(node.values[1].item()),
        AxisDirection=AxisDirection(node.get("largest", 1)),
    )
    return [values, node("CAST", InputTensor=indices, OutputTensor=TensorDataType.INT64)]


ADAPTERS: dict[str, Adapter] = {"TopK": top_k}
