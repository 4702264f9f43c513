"""Constants on devices of feature levels before 6.2, whose graphs have none: there they are inputs of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.enums import FeatureLevel, TensorDataType
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...device import Device
from ...graph.desc import DML_CONSTANT_DATA_GRAPH_NODE_DESC
from ...graph.verify import Port
from ..directmlx import Expression, Graph


def are_inputs(device: Device) -> bool:
    """Whether a device's graphs have no constants; rule (G8)."""
    return device.feature_level < FeatureLevel.LEVEL_6_2


def lifted(graph: Graph, ends: Sequence[Expression]) -> list[Any]:
    """Makes inputs of a graph's constants, behind those that it has.

    Args:
        graph: a graph that is complete.
        ends: its outputs.

    Returns:
        What the new inputs are bound to: the bytes of each constant, which are whole words.
    """
    moved: dict[Port, Port] = {}
    arrays = []
    for number, node in enumerate(graph._nodes):
        if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC):
            words = np.frombuffer(node.Data, np.uint32)
            tensor = DML_BUFFER_TENSOR_DESC(DataType=TensorDataType.UINT32, Sizes=words.shape)
            moved[Port(number, 0)] = graph.input(tensor).port
            arrays.append(words)
    graph._sources = [[None if port is None else moved.get(port, port) for port in ports] for ports in graph._sources]
    for end in ends:
        end.port = moved.get(end.port, end.port)
    return arrays
