"""Data parallelism of graphs: whether the rows of what a graph is given go through it each for itself.

The batch is followed from inputs to outputs: a node keeps its rows apart where its specification calls the dimension
independent. Between nodes bytes may be read as other sizes, so that rows are what lies in memory block behind block.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from ...core.strided_layout import Layout
from ...core.tensor_desc import DML_BUFFER_TENSOR_DESC
from ...graph.desc import DML_CONSTANT_DATA_GRAPH_NODE_DESC, DML_GRAPH_DESC, Interface
from ...operators.independence import REPEATED
from ...operators.schema import OperatorDesc, OperatorSpec


def batch_axes(desc: DML_GRAPH_DESC, interface: Interface, inputs: Collection[int], rows: int) -> list[int] | None:
    """The dimension of each output that has the rows; None where they are not independent.

    Args:
        desc: of the graph for so many rows, 2 or more.
        interface: what its inputs and outputs are bound as.
        inputs: the numbers of those that have rows, first.
        rows: how many.
    """
    feeds: dict[int, dict[int, Any]] = {i: {} for i in range(len(desc.Nodes))}
    for edge in desc.InputEdges:
        feeds[edge.ToNodeIndex][edge.ToNodeInputIndex] = ("input", edge.GraphInputIndex)
    for each in desc.IntermediateEdges:
        feeds[each.ToNodeIndex][each.ToNodeInputIndex] = (each.FromNodeIndex, each.FromNodeOutputIndex)
    known: dict[Any, int | None] = {}
    waiting = [*feeds]
    while waiting:
        ready = [i for i in waiting if all(source[0] == "input" or source in known for source in feeds[i].values())]
        for number in ready:
            node = desc.Nodes[number]
            if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC):
                known[number, 0] = None
                continue
            blocks: dict[int, int | None] = {}
            for place, source in feeds[number].items():
                blocks[place] = known.get(source)
                if source[0] == "input" and source[1] in inputs:
                    _, tensor = node.Operator.spec.inputs(node.Operator.desc)[place]
                    blocks[place] = _bytes_of(interface.inputs.get(source[1], tensor)) // rows
            given = _through(node.Operator.spec, node.Operator.desc, blocks, rows)
            if given is None:
                return None
            known |= {(number, i): block for i, block in enumerate(given)}
        waiting = [i for i in waiting if i not in ready]
    axes: list[int] = []
    for end in sorted(desc.OutputEdges, key=lambda each: each.GraphOutputIndex):
        node = desc.Nodes[end.FromNodeIndex]
        block = known[end.FromNodeIndex, end.FromNodeOutputIndex]
        if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC) or block is None:
            return None
        _, tensor = node.Operator.spec.outputs(node.Operator.desc)[end.FromNodeOutputIndex]
        axis = _axis(interface.outputs.get(end.GraphOutputIndex, tensor), block, rows)
        if axis is None:
            return None
        axes.append(axis)
    return axes


def _through(
    spec: OperatorSpec, desc: OperatorDesc, blocks: Mapping[int, int | None], rows: int
) -> list[int | None] | None:
    """The bytes of a row of each output of a node, None of those without rows; None where rows are not kept apart.

    Args:
        blocks: the bytes of a row of each input, None of those without.
    """
    stated = spec.independent(desc)
    inputs, outputs = spec.inputs(desc), spec.outputs(desc)
    numbers = set()
    for place, block in blocks.items():
        label, tensor = inputs[place]
        if block is not None:
            axis = _axis(tensor, block, rows)
            numbers.add(None if axis is None else stated[label][axis])
    if not numbers:
        return [None] * len(outputs)
    if len(numbers) > 1 or None in numbers:
        return None
    (number,) = numbers
    for place, block in blocks.items():
        label, tensor = inputs[place]
        if block is None and tensor is not None:
            layout = Layout.of_desc(tensor)
            if any(n == number and step for n, step in zip(stated[label], layout.strides, strict=True)):
                return None
    given: list[int | None] = []
    for label, tensor in outputs:
        if tensor is None:
            given.append(None)
            continue
        block = _bytes_of(tensor) // rows
        axis = _axis(tensor, block, rows)
        if axis is None or stated[label][axis] != number:
            return None
        given.append(block)
    return given


def _bytes_of(tensor: Any) -> int:
    """From its first element to the last; 0 where two share a byte."""
    if tensor.DataType.bits == 4:
        return 0
    layout = Layout.of_desc(tensor)
    steps = zip(layout.sizes, layout.strides, strict=True)
    return int(sum((size - 1) * step for size, step in steps)) + layout.dtype.itemsize


def _axis(tensor: Any, block: int, rows: int) -> int | None:
    """The dimension of a tensor that goes from row to row, each of so many bytes, and the others through one."""
    if tensor is None or tensor.DataType.bits == 4:
        return None
    layout = Layout.of_desc(tensor)
    pairs = [*zip(layout.sizes, layout.strides, strict=True)]
    for axis, (count, step) in enumerate(pairs):
        within = sum((n - 1) * s for i, (n, s) in enumerate(pairs) if i != axis)
        if count == rows and step == block and within + layout.dtype.itemsize <= block:
            return axis
    return None


def differ_by_rows_alone(desc: DML_GRAPH_DESC, other: DML_GRAPH_DESC) -> bool:
    """Whether a graph for some rows and that for one more differ in nothing but sizes that count rows."""
    if len(desc.Nodes) != len(other.Nodes):
        return False
    edges = ("InputEdges", "OutputEdges", "IntermediateEdges")
    if any(getattr(desc, each) != getattr(other, each) for each in edges):
        return False
    for one, two in zip(desc.Nodes, other.Nodes, strict=True):
        if isinstance(one, DML_CONSTANT_DATA_GRAPH_NODE_DESC) or isinstance(two, DML_CONSTANT_DATA_GRAPH_NODE_DESC):
            if bytes(getattr(one, "Data", b"1")) != bytes(getattr(two, "Data", b"2")):
                return False
        elif not _alike(one.Operator.desc, two.Operator.desc):
            return False
    return True


def _alike(one: Any, two: Any) -> bool:
    """Whether two descs are the same but for the sizes of tensors, and what repeats these."""
    if type(one) is not type(two):
        return False
    repeating = {*REPEATED.values()}
    pairs = [(each.name, getattr(one, each.name), getattr(two, each.name)) for each in fields(one)]
    return all(
        name in repeating or _without_tensors(first) == _without_tensors(second) for name, first, second in pairs
    )


def _without_tensors(value: Any) -> Any:
    """A member, with the type alone of what is a tensor."""
    if isinstance(value, tuple):
        return [*map(_without_tensors, value)]
    return value.DataType if isinstance(value, DML_BUFFER_TENSOR_DESC) else value
