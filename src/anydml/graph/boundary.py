"""What is bound to a graph: the tensors of its inputs and outputs, and what looks at arrays for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.enums import TensorDataType
from ..core.strided_layout import Layout
from ..core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ..operators.schema import Tensor
from ..runtime.slots import Slot
from .desc import DML_CONSTANT_DATA_GRAPH_NODE_DESC, DML_GRAPH_DESC

if TYPE_CHECKING:
    from .._native import LayoutMatcher


def packed_outputs(outputs: Sequence[Slot]) -> list[tuple[tuple[int, ...], np.dtype[Any]]] | None:
    """Sizes and types of outputs; None where one does not lie packed, or has elements of less than a byte."""
    found = []
    for slot in outputs:
        if slot.layout is None or slot.is_packed or not slot.layout.is_packed():
            return None
        found.append((slot.layout.sizes, slot.layout.dtype))
    return found


def matcher_of(inputs: Sequence[Slot]) -> LayoutMatcher | None:
    """None where there is no compiled module for the platform."""
    try:
        from .._native import LayoutMatcher
    except ImportError:
        return None
    return LayoutMatcher([None if slot.owned else slot.layout for slot in inputs])


def bound_inputs(desc: DML_GRAPH_DESC, starts: Mapping[int, Tensor]) -> list[Tensor | None]:
    """Of the tensors that each input of the graph is, and feeds, the first that spans most bytes; None where it feeds
    none."""
    found: list[Tensor | None] = [None] * desc.InputCount
    for edge in desc.InputEdges:
        node: Any = desc.Nodes[edge.ToNodeIndex]
        tensor = node.Operator.spec.inputs(node.Operator.desc)[edge.ToNodeInputIndex][1]
        before = found[edge.GraphInputIndex]
        if before is None or Layout.of_desc(before).bounds()[1] < Layout.of_desc(tensor).bounds()[1]:
            found[edge.GraphInputIndex] = tensor
    for i, tensor in starts.items():
        fed = found[i]
        if fed is not None and Layout.of_desc(tensor).bounds()[1] >= Layout.of_desc(fed).bounds()[1]:
            found[i] = tensor
    return found


def bound_outputs(desc: DML_GRAPH_DESC) -> list[Tensor]:
    found: dict[int, Tensor] = {}
    for edge in desc.OutputEdges:
        node: Any = desc.Nodes[edge.FromNodeIndex]
        if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC):
            tensor = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.UINT8, Sizes=(node.DataSize or 0,))
        else:
            tensor = node.Operator.spec.outputs(node.Operator.desc)[edge.FromNodeOutputIndex][1]
        found[edge.GraphOutputIndex] = tensor
    return [found[i] for i in range(desc.OutputCount)]
