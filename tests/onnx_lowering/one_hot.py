"""One-hot vectors."""

from __future__ import annotations

from anydml import TensorDataType
from anydml.frontends.directmlx import Expression

from .node import Adapter, Node, packed, reshaped, sizes_of


def one_hot(node: Node) -> Expression:
    """Indices of any type become integers, and get the dimension of the vectors."""
    indices, depth, values = node.input(0), int(node.values[1].item()), node.input(2)
    sizes = sizes_of(indices)
    axis = node.get("axis", -1) % (len(sizes) + 1)
    before, behind = sizes[:axis], sizes[axis:]
    indices = node("CAST", InputTensor=indices, OutputTensor=TensorDataType.INT64)
    return node(
        "ONE_HOT",
        IndicesTensor=reshaped(indices, (*before, 1, *behind)),
        ValuesTensor=reshaped(values, (*(1,) * len(sizes), 2)),
        OutputTensor=packed(values.tensor.DataType, (*before, depth, *behind)),
        Axis=axis,
    )


ADAPTERS: dict[str, Adapter] = {"OneHot": one_hot}
