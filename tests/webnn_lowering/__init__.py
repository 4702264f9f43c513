"""WebNN's operators in DirectML's words, as a browser's backend has them: how a graph becomes one of descs.

A family of operators has a file, whose ADAPTERS are found here without being listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from anydml import Device, Graph

from .node import Adapter, Node, NotThereYet, bound, operand

ADAPTERS: dict[str, Adapter] = {}
for _module in iter_modules(__path__):
    ADAPTERS |= getattr(import_module(f".{_module.name}", __name__), "ADAPTERS", {})


def computed(device: Device, case: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a case by their names.

    Raises:
        NotThereYet: a desc that says this is of an operator which is not in the table.
        DMLError: a desc says this, but its rules refuse it.
    """
    graph = Graph(device)
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
    return graph.compile({name: values[name] for name in case["expectedOutputs"]})(*read)


__all__ = ["ADAPTERS", "NotThereYet", "computed"]
