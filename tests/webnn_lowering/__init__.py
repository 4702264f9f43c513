"""WebNN's operators in DirectML's words, as a browser's backend has them: how a graph becomes one of descs.

A family of operators has a file, whose ADAPTERS are found here without being listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from anydml import Device, Graph
from anydml.frontends.directmlx import Expression
from anydml.operators.schema import OperatorDesc

from .node import Adapter, Node, bound, operand

ADAPTERS: dict[str, Adapter] = {}
for _module in iter_modules(__path__):
    ADAPTERS |= getattr(import_module(f".{_module.name}", __name__), "ADAPTERS", {})


class RecordingGraph(Graph):
    """A graph that keeps which operators were applied, by name."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.applied: set[str] = set()

    def operator(self, kind: type[OperatorDesc], name: str = "", **members: Any) -> list[Expression]:
        self.applied.add(kind.__name__.removeprefix("DML_").removesuffix("_OPERATOR_DESC"))
        return super().operator(kind, name, **members)


def lowered(device: Device, case: Mapping[str, Any]) -> tuple[RecordingGraph, dict[str, Expression], list[Any]]:
    """The graph of a case, its outputs by their names, and what its inputs are bound to.

    Raises:
        DMLError: a desc says this, but its rules refuse it.
    """
    graph = RecordingGraph(device)
    values, read = {}, []
    for name, given in case["inputs"].items():
        values[name] = operand(graph, given)
        if not given.get("constant"):
            read.append(bound(given))
    ranks = {name: len(given["descriptor"]["shape"]) for name, given in case["inputs"].items()}
    for operator in case["operators"]:
        found = ADAPTERS[operator["name"]](Node(graph, operator, values, ranks))
        found = found if isinstance(found, list) else [found]
        names = operator["outputs"] if isinstance(operator["outputs"], list) else [operator["outputs"]]
        values |= zip(names, found, strict=True)
    return graph, {name: values[name] for name in case["expectedOutputs"]}, read


def computed(device: Device, case: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a case by their names."""
    graph, outputs, read = lowered(device, case)
    return graph.compile(outputs)(*read)


def operators_of(case: Mapping[str, Any]) -> set[str]:
    """The operators of DirectML that the graph of a case is made of."""
    return lowered(Device("reference"), case)[0].applied


__all__ = ["ADAPTERS", "computed", "operators_of"]
