"""ONNX's operators in DirectML's words: how a node becomes descs, for what DirectML says in a few of them.

A family of operators has a file, whose ADAPTERS are found here without being listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from anydml import Device, DMLError, Graph, PackedArray
from anydml.core.packed_array import as_ml_dtypes
from anydml.core.strided_layout import Layout
from anydml.frontends.directmlx import Expression

from .node import Adapter, Counted, Node, NotSaid, sizes_of

ADAPTERS: dict[str, Adapter] = {}
for _module in iter_modules(__path__):
    ADAPTERS |= getattr(import_module(f".{_module.name}", __name__), "ADAPTERS", {})


def computed(
    device: Device, op: str, outputs: Sequence[str], attributes: dict[str, Any], values: Sequence[Any]
) -> list[np.ndarray]:
    """The outputs that there are of an ONNX node.

    Raises:
        NotSaid: no desc says this, or none that is right.
    """
    graph = Graph(device)
    node = Node(graph, op, outputs, attributes, values)
    try:
        found = ADAPTERS[op](node)
    except DMLError as refused:
        raise NotSaid(str(refused)) from refused
    if isinstance(found, Counted):
        output, count = _run(graph, node, [found.output, found.count])
        return [output.take(range(int(count[0])), found.axis)]
    return _run(graph, node, found if isinstance(found, list) else [found])


def _run(graph: Graph, node: Node, found: Sequence[Any]) -> list[np.ndarray]:
    layouts = [Layout.of_desc(each.tensor) for each in found]
    ys = [np.empty(layout.sizes, layout.dtype) for layout in layouts]
    graph.compile(found).dispatch(node.read, ys)
    return [result(each, y) for each, y in zip(found, ys, strict=True)]


def result(y: Expression, array: np.ndarray) -> np.ndarray:
    """The elements of an output, those of 4 bits as ml_dtypes has them."""
    if y.tensor.DataType.bits == 4:
        return as_ml_dtypes(PackedArray(array, y.tensor.DataType, sizes_of(y)))
    return array.view(np.bool_) if y.dtype == np.bool_ else array


__all__ = ["ADAPTERS", "NotSaid", "computed"]
