"""The rules on graphs, (G1) to (G8), which stand in ``graph/desc.py``; and what a sound graph's edges say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.enums import FeatureLevel, HResult
from ..core.errors import Violation, kind_of, violation
from ..operators.member_types import UINT_MAX
from ..operators.schema import Tensor
from ..runtime.compiled import Operator
from .desc import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    LISTS,
    Node,
)

if TYPE_CHECKING:
    from ..runtime.context import Context


class Port(NamedTuple):
    """An input or output of a node, or of the graph, whose node is GRAPH."""

    node: int
    number: int


GRAPH = -1


class Wiring(NamedTuple):
    """The edges of a valid graph."""

    sources: dict[Port, Port]
    """Where each input of a node comes from: an input of the graph, or an output of a node."""
    targets: dict[int, Port]
    """Where each output of the graph comes from."""


def tensors_of(node: Node) -> tuple[Sequence[tuple[str, Tensor | None]], Sequence[tuple[str, Tensor | None]]]:
    """Inputs and outputs of a node, by their names; a constant's output is no tensor."""
    if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC):
        return [], [("Data", None)]
    return node.Operator.tensors


def check(desc: DML_GRAPH_DESC, device: Context) -> list[Violation]:
    """Every rule that a graph breaks; what needs sound edges is looked at where they are."""
    for rules in (_fields, _levels, _ends, _connections, _cycles, _sizes, _owned):
        found = list(rules(desc, device))
        if found:
            return found
    return []


def wiring(desc: DML_GRAPH_DESC) -> Wiring:
    """Of a graph whose edges are sound."""
    sources = {Port(e.ToNodeIndex, e.ToNodeInputIndex): Port(GRAPH, e.GraphInputIndex) for e in desc.InputEdges}
    sources |= {
        Port(e.ToNodeIndex, e.ToNodeInputIndex): Port(e.FromNodeIndex, e.FromNodeOutputIndex)
        for e in desc.IntermediateEdges
    }
    return Wiring(sources, {e.GraphOutputIndex: Port(e.FromNodeIndex, e.FromNodeOutputIndex) for e in desc.OutputEdges})


def order(desc: DML_GRAPH_DESC) -> list[int]:
    """The nodes such that each stands behind those that feed it; those of a cycle, and behind it, are left out."""
    fed: list[list[int]] = [[] for _ in desc.Nodes]
    missing = [0] * len(desc.Nodes)
    for edge in desc.IntermediateEdges:
        fed[edge.FromNodeIndex].append(edge.ToNodeIndex)
        missing[edge.ToNodeIndex] += 1
    ready = [i for i, count in enumerate(missing) if not count]
    for node in ready:
        for each in fed[node]:
            missing[each] -= 1
            if not missing[each]:
                ready.append(each)
    return ready


def _violation(rule: str, where: str, found: str, expected: str, remedy: str = "") -> Violation:
    return violation("compile_graph", rule, where, found, expected, remedy)


def _is_uint(value: object) -> bool:
    return type(value) is int and 0 <= value <= UINT_MAX


_MOST = 2**20
"""Inputs and outputs of a graph, each of which takes memory whether it has an edge or not."""


def _fields(desc: object, device: Context) -> Iterator[Violation]:
    if not isinstance(desc, DML_GRAPH_DESC):
        yield _violation("(G1)", "desc", kind_of(desc), "a DML_GRAPH_DESC")
        return
    for name in ("InputCount", "OutputCount"):
        count = getattr(desc, name)
        if not _is_uint(count) or count > _MOST:
            yield _violation("(G1)", name, kind_of(count), f"an integer from 0 to {_MOST}")
    for name, (counted, kinds) in LISTS.items():
        items = getattr(desc, name)
        expected = " or ".join(kind.__name__ for kind in kinds)
        if not isinstance(items, tuple):
            yield _violation("(G1)", name, kind_of(items), f"a list, each {expected}")
            continue
        if not _is_uint(getattr(desc, counted)) or getattr(desc, counted) != len(items):
            yield _violation("(G1)", counted, kind_of(getattr(desc, counted)), f"{len(items)}, the length of {name}")
        for i, item in enumerate(items):
            if not isinstance(item, kinds):
                yield _violation("(G1)", f"{name}[{i}]", kind_of(item), expected)
            else:
                found = list(_members(item, device))
                yield from (_violation("(G1)", f"{name}[{i}].{each[0]}", *each[1:]) for each in found)


def _members(item: Any, device: Context) -> Iterator[tuple[str, ...]]:
    """Of those that are wrong: the member, what was found, what was expected, and perhaps a remedy."""
    if not isinstance(item.Name, str):
        yield "Name", kind_of(item.Name), "a string"
    if isinstance(item, DML_OPERATOR_GRAPH_NODE_DESC):
        if not isinstance(item.Operator, Operator):
            remedy = "device.create_operator(desc) makes one"
            yield "Operator", kind_of(item.Operator), "an Operator", remedy
        elif item.Operator.device is not device:
            found = f"an object of another device, {item.Operator.device}"
            yield "Operator", found, f"one of this device, {device}"
    elif isinstance(item, DML_CONSTANT_DATA_GRAPH_NODE_DESC):
        try:
            view = memoryview(item.Data)
            size = view.nbytes if view.c_contiguous and "O" not in view.format else None
        except TypeError:
            size = None
        if not size:
            yield "Data", kind_of(item.Data), "contiguous memory of at least a byte"
        elif item.DataSize != size:
            yield "DataSize", kind_of(item.DataSize), f"{size}, the bytes of Data"
    else:
        for name in item.__dataclass_fields__:
            if name != "Name" and not _is_uint(getattr(item, name)):
                yield name, kind_of(getattr(item, name)), "an integer from 0 to 2^32 - 1"


def _levels(desc: DML_GRAPH_DESC, device: Context) -> Iterator[Violation]:
    needed = {"": FeatureLevel.LEVEL_2_1}
    needed |= {
        f"Nodes[{i}]": FeatureLevel.LEVEL_6_2
        for i, node in enumerate(desc.Nodes)
        if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC)
    }
    for where, level in needed.items():
        if device.feature_level < level:
            yield violation(
                "compile_graph",
                "(G8)",
                where,
                "a constant node" if where else "a graph",
                f"feature level {level.number} or higher",
                feature_level=device.feature_level,
                hresult=HResult.DXGI_ERROR_UNSUPPORTED,
            )


def _ends(desc: DML_GRAPH_DESC, device: Context) -> Iterator[Violation]:
    """Rule (G2)."""
    tensors = [tensors_of(node) for node in desc.Nodes]

    def missing(where: str, edge: Any, node: str, index: str, side: int) -> Iterator[Violation]:
        at, number = getattr(edge, node), getattr(edge, index)
        if at >= len(tensors):
            yield _violation("(G2)", f"{where}.{node}", str(at), f"below {len(tensors)}, as there are nodes")
            return
        word, there = ("inputs", "outputs")[side], tensors[at][side]
        if number >= len(there):
            expected = f"below {len(there)}, the {word} of {named(desc, at)}"
            yield _violation("(G2)", f"{where}.{index}", str(number), expected)
        elif there[number][1] is None and isinstance(desc.Nodes[at], DML_OPERATOR_GRAPH_NODE_DESC):
            label = there[number][0]
            expected = f"a tensor that {named(desc, at)} has; its desc leaves {label} out"
            yield _violation("(G2)", f"{where}.{index}", str(number), expected)

    for name in ("InputEdges", "OutputEdges", "IntermediateEdges"):
        for i, edge in enumerate(getattr(desc, name)):
            where = f"{name}[{i}]"
            if name != "InputEdges":
                yield from missing(where, edge, "FromNodeIndex", "FromNodeOutputIndex", 1)
            if name != "OutputEdges":
                yield from missing(where, edge, "ToNodeIndex", "ToNodeInputIndex", 0)
            for index, count in (("GraphInputIndex", "InputCount"), ("GraphOutputIndex", "OutputCount")):
                number = getattr(edge, index, 0)
                if hasattr(edge, index) and number >= getattr(desc, count):
                    yield _violation("(G2)", f"{where}.{index}", str(number), f"below {getattr(desc, count)}, {count}")


def _connections(desc: DML_GRAPH_DESC, device: Context) -> Iterator[Violation]:
    """Rules (G3) and (G4)."""
    edges: dict[Port, list[str]] = {}
    used = set()
    given: dict[int, list[str]] = {}
    for i, edge in enumerate(desc.InputEdges):
        edges.setdefault(Port(edge.ToNodeIndex, edge.ToNodeInputIndex), []).append(f"InputEdges[{i}]")
    for i, each in enumerate(desc.IntermediateEdges):
        edges.setdefault(Port(each.ToNodeIndex, each.ToNodeInputIndex), []).append(f"IntermediateEdges[{i}]")
        used.add(Port(each.FromNodeIndex, each.FromNodeOutputIndex))
    for i, out in enumerate(desc.OutputEdges):
        used.add(Port(out.FromNodeIndex, out.FromNodeOutputIndex))
        given.setdefault(out.GraphOutputIndex, []).append(f"OutputEdges[{i}]")
    for i, node in enumerate(desc.Nodes):
        inputs, outputs = tensors_of(node)
        for j, (label, tensor) in enumerate(inputs):
            found = edges.get(Port(i, j), [])
            if tensor is not None and len(found) != 1:
                what = " and ".join(found) or "no edge"
                yield _violation("(G3)", f"{named(desc, i)}.{label}", what, "one edge that leads to it")
        for j, (label, tensor) in enumerate(outputs):
            if device.strict and Port(i, j) not in used and (tensor is not None or not inputs):
                remedy = "Leave out what nobody reads"
                yield _violation("(G3)", f"{named(desc, i)}.{label}", "no edge", "an edge that leads from it", remedy)
    if len(given) < desc.OutputCount:
        missing = next(i for i in range(desc.OutputCount) if i not in given)
        remedy = "An input wired to an output needs an ELEMENT_WISE_IDENTITY between"
        yield _violation("(G4)", f"outputs[{missing}]", "no edge", "one edge that leads to this output", remedy)
    for i, names in given.items():
        if len(names) > 1:
            yield _violation("(G4)", f"outputs[{i}]", " and ".join(names), "one edge that leads to this output")


def _cycles(desc: DML_GRAPH_DESC, device: Context) -> Iterator[Violation]:
    done = set(order(desc))
    if len(done) == len(desc.Nodes):
        return
    # Backward from a node that was never ready, along nodes that were not: it comes to one twice.
    before = {e.ToNodeIndex: e.FromNodeIndex for e in desc.IntermediateEdges if e.FromNodeIndex not in done}
    node = next(i for i in range(len(desc.Nodes)) if i not in done)
    path: dict[int, None] = {}
    while node not in path:
        path[node] = None
        node = before[node]
    walked = list(path)
    cycle = walked[walked.index(node) :][::-1]
    first = cycle.index(min(cycle))
    cycle = cycle[first:] + cycle[:first]
    shown = [named(desc, i) for i in cycle[:_MOST_NAMED]]
    rest = ["..."] * (len(cycle) > _MOST_NAMED)
    what = f"a cycle of {len(cycle)} nodes: {' -> '.join([*shown, *rest, shown[0]])}"
    yield _violation("(G5)", "IntermediateEdges", what, "edges without a cycle")


_MOST_NAMED = 8
"""Nodes of a cycle that are named."""


def _sizes(desc: DML_GRAPH_DESC, device: Context) -> Iterator[Violation]:
    """Rule (G6)."""
    tensors = [tensors_of(node) for node in desc.Nodes]

    for i, edge in enumerate(desc.IntermediateEdges):
        label, tensor = tensors[edge.ToNodeIndex][0][edge.ToNodeInputIndex]
        output, given = tensors[edge.FromNodeIndex][1][edge.FromNodeOutputIndex]
        node = desc.Nodes[edge.FromNodeIndex]
        size = node.DataSize if given is None else given.TotalTensorSizeInBytes  # type: ignore[union-attr]
        assert tensor is not None
        if size != tensor.TotalTensorSizeInBytes:
            where = f"IntermediateEdges[{i}]"
            found = f"{tensor.TotalTensorSizeInBytes} bytes in {named(desc, edge.ToNodeIndex)}.{label}"
            expected = f"{size}, the bytes of {named(desc, edge.FromNodeIndex)}.{output}"
            yield _violation("(G6)", where, found, expected)
    first: dict[int, tuple[int | None, str]] = {}
    for i, fed in enumerate(desc.InputEdges):
        label, tensor = tensors[fed.ToNodeIndex][0][fed.ToNodeInputIndex]
        assert tensor is not None
        name = f"{named(desc, fed.ToNodeIndex)}.{label}"
        size, other = first.setdefault(fed.GraphInputIndex, (tensor.TotalTensorSizeInBytes, name))
        if size != tensor.TotalTensorSizeInBytes:
            found = f"{tensor.TotalTensorSizeInBytes} bytes in {name}"
            yield _violation("(G6)", f"InputEdges[{i}]", found, f"{size}, the bytes of {other}, fed by the same input")


def _owned(desc: DML_GRAPH_DESC, device: Context) -> Iterator[Violation]:
    """Rule (G7)."""
    tensors = [tensors_of(node)[0] for node in desc.Nodes]
    for i, edge in enumerate(desc.IntermediateEdges):
        label, tensor = tensors[edge.ToNodeIndex][edge.ToNodeInputIndex]
        if tensor is not None and tensor.Flags:
            found = f"an edge to {named(desc, edge.ToNodeIndex)}.{label}, which is OWNED_BY_DML"
            yield _violation("(G7)", f"IntermediateEdges[{i}]", found, "an edge from an input of the graph")
    first: dict[int, tuple[int, str]] = {}
    for i, fed in enumerate(desc.InputEdges):
        label, tensor = tensors[fed.ToNodeIndex][fed.ToNodeInputIndex]
        assert tensor is not None
        name = f"{named(desc, fed.ToNodeIndex)}.{label}"
        flags, other = first.setdefault(fed.GraphInputIndex, (tensor.Flags, name))
        if flags != tensor.Flags:
            found = f"{name} {'OWNED_BY_DML' if tensor.Flags else 'not owned'}"
            expected = f"both {'owned' if flags else 'not owned'}, as {other}, fed by the same input"
            yield _violation("(G7)", f"InputEdges[{i}]", found, expected)


def named(desc: DML_GRAPH_DESC, index: int) -> str:
    """A node as messages call it: ``Nodes[3] (CONVOLUTION, 'conv1')``."""
    node = desc.Nodes[index]
    kind = node.Operator.spec.name if isinstance(node, DML_OPERATOR_GRAPH_NODE_DESC) else "constant"
    return f"Nodes[{index}] ({kind}, {node.Name!r})" if node.Name else f"Nodes[{index}] ({kind})"
