"""Descs of graphs for tests: nodes, edges, and the chain that most tests begin with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anydml import (
    DML_BUFFER_TENSOR_DESC,
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC,
    DML_ELEMENT_WISE_ADD_OPERATOR_DESC,
    DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC,
    DML_GRAPH_DESC,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
    Device,
    DMLError,
)
from anydml.operators.schema import OperatorDesc
from cases import tensor

DEVICE = Device("cpu")
X = tensor([2, 3])


def node(desc: OperatorDesc, device: Device = DEVICE, name: str = "") -> DML_OPERATOR_GRAPH_NODE_DESC:
    return DML_OPERATOR_GRAPH_NODE_DESC(Operator=device.create_operator(desc), Name=name)


def sums(tensor: DML_BUFFER_TENSOR_DESC = X, **members: Any) -> DML_CUMULATIVE_SUMMATION_OPERATOR_DESC:
    return DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=tensor, OutputTensor=tensor, Axis=1, **members)


def negated(tensor: DML_BUFFER_TENSOR_DESC = X) -> DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC:
    return DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC(InputTensor=tensor, OutputTensor=tensor)


def added(tensor: DML_BUFFER_TENSOR_DESC = X) -> DML_ELEMENT_WISE_ADD_OPERATOR_DESC:
    return DML_ELEMENT_WISE_ADD_OPERATOR_DESC(ATensor=tensor, BTensor=tensor, OutputTensor=tensor)


def into(graph_input: int, node: int, number: int = 0) -> DML_INPUT_GRAPH_EDGE_DESC:
    return DML_INPUT_GRAPH_EDGE_DESC(GraphInputIndex=graph_input, ToNodeIndex=node, ToNodeInputIndex=number)


def out_of(node: int, graph_output: int = 0, number: int = 0) -> DML_OUTPUT_GRAPH_EDGE_DESC:
    return DML_OUTPUT_GRAPH_EDGE_DESC(FromNodeIndex=node, FromNodeOutputIndex=number, GraphOutputIndex=graph_output)


def between(source: int, target: int, number: int = 0) -> DML_INTERMEDIATE_GRAPH_EDGE_DESC:
    return DML_INTERMEDIATE_GRAPH_EDGE_DESC(
        FromNodeIndex=source, FromNodeOutputIndex=0, ToNodeIndex=target, ToNodeInputIndex=number
    )


def chain() -> DML_GRAPH_DESC:
    """The sums of x, negated, and x added."""
    return DML_GRAPH_DESC(
        InputCount=1,
        OutputCount=1,
        Nodes=[node(sums()), node(negated(), name="turn"), node(added())],
        InputEdges=[into(0, 0), into(0, 2, 1)],
        IntermediateEdges=[between(0, 1), between(1, 2)],
        OutputEdges=[out_of(2)],
    )


def changed(desc: DML_GRAPH_DESC, **members: Any) -> DML_GRAPH_DESC:
    """With other members, and the counts of these."""
    counts = dict.fromkeys(("NodeCount", "InputEdgeCount", "OutputEdgeCount", "IntermediateEdgeCount"))
    return replace(desc, **{**counts, **members})


x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
POINTWISE_CHAIN = x - np.cumsum(x, axis=1)


def refused(desc: Any, device: Device = DEVICE) -> list[tuple[str, str]]:
    with pytest.raises(DMLError) as caught:
        device.compile_graph(desc)
    return [(violation.rule, violation.where) for violation in caught.value.violations]
