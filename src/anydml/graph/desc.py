"""The descs of graphs, and their rules.

(G1) A graph is a DML_GRAPH_DESC; its nodes, edges and counts are of the header's kinds, its operators the device's own.
(G2) An edge leads from and to what there is: inputs and outputs of the graph, and tensors that nodes have.
(G3) Each input tensor of a node has one edge; on a strict device, each output tensor has at least one.
(G4) Each output of the graph has one edge.
(G5) There is no cycle.
(G6) Connected tensors have the same TotalTensorSizeInBytes, and a constant has as many bytes.
(G7) What is OWNED_BY_DML is fed by an input of the graph; all tensors that one input feeds are owned, or none is.
(G8) Graphs are there from feature level 2.1 on, constant nodes from 6.2 on.
(G9) A graph is built from the header's descs, and from expressions of its own, for at least one output. Functions
     applied to them take neither `out` nor another device.
(G10) An expression is indexed, as NumPy's arrays are, by integers, slices, an ellipsis and None, and reshaped to as
      many elements. It has at least one dimension and one element, no truth value, and is compared by no operator yet.
(G11) Names are strings. No two inputs have the same, and none has that of an option of calls.
(G12) A function that is compiled takes arrays, and options that have a hash, and returns expressions.

Sizes and data types of connected tensors may differ: the bytes are read anew. Not in-place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from ..core.strided_layout import Array
from ..core.tensor_desc import Struct, plain
from ..operators.schema import Tensor
from ..runtime.compiled import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_OPERATOR_GRAPH_NODE_DESC(Struct):
    """A node that runs an operator.

    Args:
        Operator: what :meth:`anydml.Device.create_operator` returned.
        Name: what messages and pictures call it.

    Source: the page of DML_OPERATOR_GRAPH_NODE_DESC; since feature level 2.1.
    """

    Operator: Operator
    Name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_CONSTANT_DATA_GRAPH_NODE_DESC(Struct):
    """A node whose only output has bytes that are known when the graph is compiled.

    Args:
        Data: the bytes, any contiguous buffer; copied when the graph is compiled.
        Name: what messages and pictures call it.
        DataSize: their number; derived from Data.

    Source: directml.h; since feature level 6.2.
    """

    Data: Any
    Name: str = ""
    DataSize: int | None = None

    def __post_init__(self) -> None:
        if self.DataSize is None:
            try:
                object.__setattr__(self, "DataSize", memoryview(self.Data).nbytes)
            except TypeError:
                return  # (G1) says what it is

    def __reduce__(self) -> tuple[Any, ...]:
        """With the bytes, as not every buffer can be pickled or copied."""
        return _constant_of, (np.frombuffer(self.Data, np.uint8).copy(), self.Name, self.DataSize)


def _constant_of(data: Array, name: str, size: int | None) -> DML_CONSTANT_DATA_GRAPH_NODE_DESC:
    return DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=data, Name=name, DataSize=size)


class _Edge(Struct):
    __slots__ = ()

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, plain(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_INPUT_GRAPH_EDGE_DESC(_Edge):
    """From an input of the graph to one of a node.

    Source: the page of DML_INPUT_GRAPH_EDGE_DESC; since feature level 2.1.
    """

    GraphInputIndex: int
    ToNodeIndex: int
    ToNodeInputIndex: int
    Name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_OUTPUT_GRAPH_EDGE_DESC(_Edge):
    """From an output of a node to one of the graph.

    Source: the page of DML_OUTPUT_GRAPH_EDGE_DESC; since feature level 2.1.
    """

    FromNodeIndex: int
    FromNodeOutputIndex: int
    GraphOutputIndex: int
    Name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_INTERMEDIATE_GRAPH_EDGE_DESC(_Edge):
    """From an output of a node to an input of another.

    Source: the page of DML_INTERMEDIATE_GRAPH_EDGE_DESC; since feature level 2.1.
    """

    FromNodeIndex: int
    FromNodeOutputIndex: int
    ToNodeIndex: int
    ToNodeInputIndex: int
    Name: str = ""


Node: TypeAlias = DML_OPERATOR_GRAPH_NODE_DESC | DML_CONSTANT_DATA_GRAPH_NODE_DESC
Edge: TypeAlias = DML_INPUT_GRAPH_EDGE_DESC | DML_OUTPUT_GRAPH_EDGE_DESC | DML_INTERMEDIATE_GRAPH_EDGE_DESC


@dataclass(frozen=True, slots=True, kw_only=True)
class DML_GRAPH_DESC(Struct):
    """A directed graph without cycles, as IDMLDevice1::CompileGraph takes it.

    The header's DML_GRAPH_NODE_DESC and DML_GRAPH_EDGE_DESC, which say of what kind a node or an edge is, are not
    needed: its class says it.

    Args:
        InputCount: inputs of the graph; each may feed any number of nodes, or none.
        OutputCount: outputs of the graph.
        Nodes: the operators and constants.
        InputEdges: from inputs of the graph to nodes.
        OutputEdges: from nodes to outputs of the graph.
        IntermediateEdges: between nodes.
        NodeCount, InputEdgeCount, OutputEdgeCount, IntermediateEdgeCount: derived; checked where they are given.

    Source: the page of DML_GRAPH_DESC; since feature level 2.1.
    """

    InputCount: int
    OutputCount: int
    Nodes: Sequence[Node]
    InputEdges: Sequence[DML_INPUT_GRAPH_EDGE_DESC] = ()
    OutputEdges: Sequence[DML_OUTPUT_GRAPH_EDGE_DESC] = ()
    IntermediateEdges: Sequence[DML_INTERMEDIATE_GRAPH_EDGE_DESC] = ()
    NodeCount: int | None = None
    InputEdgeCount: int | None = None
    OutputEdgeCount: int | None = None
    IntermediateEdgeCount: int | None = None

    def __post_init__(self) -> None:
        for name in ("InputCount", "OutputCount"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        for name, (count, _) in LISTS.items():
            items = plain(getattr(self, name))
            object.__setattr__(self, name, items)
            if getattr(self, count) is None and isinstance(items, tuple):
                object.__setattr__(self, count, len(items))


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """What a graph's desc does not say of its inputs and outputs, by their numbers."""

    inputs: Mapping[int, Tensor] = field(default_factory=dict)
    """What inputs are bound as, where that spans no less than what they feed."""
    outputs: Mapping[int, Tensor] = field(default_factory=dict)
    """What outputs are bound as, where that is not as their nodes have them."""
    input_names: Mapping[int, str] = field(default_factory=dict)
    output_names: Mapping[int, str] = field(default_factory=dict)
    """Of all outputs, where a call returns them by name; of none otherwise."""
    truth_inputs: frozenset[int] = frozenset()
    """What calls take truth values for, whose bytes are those of UINT8."""
    truth_outputs: frozenset[int] = frozenset()
    """What calls return as truth values."""


LISTS: dict[str, tuple[str, tuple[type, ...]]] = {
    "Nodes": ("NodeCount", (DML_OPERATOR_GRAPH_NODE_DESC, DML_CONSTANT_DATA_GRAPH_NODE_DESC)),
    "InputEdges": ("InputEdgeCount", (DML_INPUT_GRAPH_EDGE_DESC,)),
    "OutputEdges": ("OutputEdgeCount", (DML_OUTPUT_GRAPH_EDGE_DESC,)),
    "IntermediateEdges": ("IntermediateEdgeCount", (DML_INTERMEDIATE_GRAPH_EDGE_DESC,)),
}
"""The lists of a graph: what counts them, and what they are of."""


class OwnData(np.ndarray):
    """The bytes of a constant that nobody changes, so that graphs need no copy."""


def with_own_data(desc: DML_GRAPH_DESC) -> DML_GRAPH_DESC:
    """A valid graph with copies of those of its constants that somebody else could change."""
    nodes = [
        replace(node, Data=np.frombuffer(node.Data, np.uint8).copy())
        if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC) and not isinstance(node.Data, (bytes, OwnData))
        else node
        for node in desc.Nodes
    ]
    return replace(desc, Nodes=nodes)


def graph_of(operator: Operator) -> DML_GRAPH_DESC:
    """The graph of one operator, with its inputs and those of its outputs that there are."""
    inputs, outputs = operator.spec.inputs(operator.desc), operator.spec.outputs(operator.desc)
    there = [i for i, (_, tensor) in enumerate(outputs) if tensor is not None]
    return DML_GRAPH_DESC(
        InputCount=len(inputs),
        OutputCount=len(there),
        Nodes=[DML_OPERATOR_GRAPH_NODE_DESC(Operator=operator)],
        InputEdges=[
            DML_INPUT_GRAPH_EDGE_DESC(GraphInputIndex=i, ToNodeIndex=0, ToNodeInputIndex=i)
            for i, (_, tensor) in enumerate(inputs)
            if tensor is not None
        ],
        OutputEdges=[
            DML_OUTPUT_GRAPH_EDGE_DESC(FromNodeIndex=0, FromNodeOutputIndex=number, GraphOutputIndex=i)
            for i, number in enumerate(there)
        ],
    )
