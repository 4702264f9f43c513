"""Dispatchables of type ``dmlSerializedGraph``: graphs whose inputs and outputs are bound to resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.enums import ExecutionFlags, FeatureLevel
from ...core.errors import DMLError, Violation, error
from ...core.memory import HOST
from ...core.strided_layout import Array
from ...device import Device
from ...graph.boundary import bound_inputs, bound_outputs
from ...graph.compile import CompiledGraph
from ...graph.desc import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_INPUT_GRAPH_EDGE_DESC,
    DML_INTERMEDIATE_GRAPH_EDGE_DESC,
    DML_OPERATOR_GRAPH_NODE_DESC,
    DML_OUTPUT_GRAPH_EDGE_DESC,
    Node,
)
from ...graph.verify import check as check_graph
from ...operators.schema import Tensor
from ...runtime.binding import DML_BUFFER_BINDING, BindingTable, bind, bind_range, check_sharing
from ...runtime.slots import slot_of
from .buffers import DEFERRED
from .commands import Dispatch, at, model_violation, placed
from .files import Refused, source_size
from .serialized import SerializedGraph
from .whole import Buffers, Prepared, Run, Whole, bound_to


@dataclass(frozen=True, eq=False)
class GraphDispatchable(Whole):
    """A serialised graph. Constants in files are inputs behind its own, which it is initialised with.

    Attributes:
        where: its place in the model.
        graph: what the file holds.
        flags: as for an operator.
    """

    where: str
    graph: SerializedGraph
    flags: ExecutionFlags

    @property
    def inputs(self) -> Sequence[str]:
        return self.graph.inputs

    @property
    def outputs(self) -> Sequence[str]:
        return self.graph.outputs

    def check(self, feature_level: FeatureLevel, strict: bool) -> list[Violation]:
        device = Device("cpu", feature_level, strict)
        try:
            desc = self.desc(device)
        except DMLError as problem:
            return [*problem.violations]
        wrong = placed(self.where, check_graph(desc, device))
        return wrong or [*self._check_files(desc)]

    def check_dispatch(
        self, command: Dispatch, buffers: Buffers, feature_level: FeatureLevel, strict: bool
    ) -> list[Violation]:
        device = Device("cpu", feature_level, strict)
        desc = self.desc(device)
        names = [*self.inputs, *(f"constant {i}" for i in range(desc.InputCount - len(self.inputs)))]
        inputs = [slot_of(name, tensor) for name, tensor in zip(names, bound_inputs(desc, {}), strict=True)]
        outputs = [slot_of(name, tensor, True) for name, tensor in zip(self.outputs, bound_outputs(desc), strict=True)]
        wrong = []
        for slot in (*inputs, *outputs):
            binding = bound_to(command.bindings, slot.label)
            buffer = None if binding is None else buffers[binding.resource]
            if binding is not None and buffer is None:
                return []  # the resource has been complained of
            if slot.tensor is not None and not slot.owned and binding is None:
                expected = 'a resource\'s name, or {"name": ...}'
                wrong.append(
                    model_violation(f"{command.where}.bindings", "(M12)", f"no binding for {slot.label}", expected)
                )
            elif buffer is not None and buffer.initial is DEFERRED:
                place = at(f"{command.where}.bindings", slot.label)
                wrong.append(model_violation(place, "(M12)", "a deferred resource", "one with a size"))
        if wrong:
            return wrong
        memory = {name: np.zeros(each.size, np.uint8) for name, each in buffers.items() if each is not None}
        read, written = self.arrange(command, buffers, memory, len(inputs))
        sides = ("inputs", inputs, read), ("outputs", outputs, written)
        try:
            bound = bind(HOST, "graph", sides, False, bind_range)
        except DMLError as problem:
            return placed(command.where, problem.violations)
        there = [[each for each in every if each is not None] for every in bound]
        return placed(command.where, check_sharing("graph", False, *there))

    def arrange(
        self, command: Dispatch, buffers: Buffers, memory: Mapping[str, Any], count: int
    ) -> tuple[list[DML_BUFFER_BINDING | None], list[DML_BUFFER_BINDING | None]]:
        """The bindings of the graph's inputs, of which there are `count` with constants, and of its outputs."""

        def find(name: str) -> DML_BUFFER_BINDING | None:
            binding = bound_to(command.bindings, name)
            buffer = None if binding is None else buffers[binding.resource]
            return None if binding is None or buffer is None else binding.of(buffer, memory[binding.resource])

        read = [*map(find, self.inputs)]
        return read + [None] * (count - len(read)), [*map(find, self.outputs)]

    def prepare(self, device: Device) -> Prepared:
        return _Graph(self, device)

    def desc(self, device: Device) -> DML_GRAPH_DESC:
        """The graph for a device.

        Raises:
            DMLError: every violation of its operators; (M11) for an edge that comes from nowhere.
        """
        wrong: list[Violation] = []
        nodes: list[Node] = []
        into, between, out = [], [], []
        count = len(self.inputs)
        numbers = {name: i for i, name in enumerate(self.inputs) if name}
        ends = {name: i for i, name in enumerate(self.outputs) if name}
        sources: dict[str, tuple[int, int]] = {}
        for node in self.graph.nodes:
            if node.file is not None:
                numbers |= dict.fromkeys(node.outputs, count)
                count += 1
                continue
            i = len(nodes)
            try:
                nodes.append(_node(device, node.desc, node.data, node.name))
            except DMLError as problem:
                wrong += placed(f"{self.where}: node {node.name!r}", problem.violations)
                nodes.append(DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=b"\0", Name=node.name))
            for j, name in enumerate(node.inputs):
                if name in numbers:
                    edge = DML_INPUT_GRAPH_EDGE_DESC(GraphInputIndex=numbers[name], ToNodeIndex=i, ToNodeInputIndex=j)
                    into.append(edge)
                elif name in sources:
                    start, number = sources[name]
                    between.append(
                        DML_INTERMEDIATE_GRAPH_EDGE_DESC(
                            FromNodeIndex=start, FromNodeOutputIndex=number, ToNodeIndex=i, ToNodeInputIndex=j
                        )
                    )
                elif name:
                    place = f"{self.where}: node {node.name!r}"
                    wrong.append(model_violation(place, "(M11)", f"an edge {name!r} from nowhere", "one from a node"))
            for j, name in enumerate(node.outputs):
                sources[name] = i, j
                if name in ends:
                    out.append(
                        DML_OUTPUT_GRAPH_EDGE_DESC(FromNodeIndex=i, FromNodeOutputIndex=j, GraphOutputIndex=ends[name])
                    )
        if wrong:
            raise error(wrong)
        return DML_GRAPH_DESC(
            InputCount=count,
            OutputCount=len(self.outputs),
            Nodes=nodes,
            InputEdges=into,
            IntermediateEdges=between,
            OutputEdges=out,
        )

    def constants(self) -> Iterator[Any]:
        """The files of constants, in the order of the inputs that they are."""
        return (node.file for node in self.graph.nodes if node.file is not None)

    def _check_files(self, desc: DML_GRAPH_DESC) -> Iterator[Violation]:
        for path, tensor in zip(self.constants(), bound_inputs(desc, {})[len(self.inputs) :], strict=True):
            try:
                size = source_size(path)
            except Refused as problem:
                yield model_violation(self.where, "(M10)", problem.found, problem.expected)
                continue
            if tensor is not None and not _fits(size, tensor):
                found = f"{size} bytes in {str(path)!r}"
                yield model_violation(self.where, "(M10)", found, f"the {tensor.TotalTensorSizeInBytes} of its tensor")


class _Graph(Prepared):
    def __init__(self, used: GraphDispatchable, device: Device) -> None:
        self.used = used
        self.device = device
        self.compiled: CompiledGraph = device.compile_graph(used.desc(device), used.flags)
        owned: list[Any] = [None] * len(used.inputs)
        for path, tensor in zip(used.constants(), self.compiled.inputs[len(used.inputs) :], strict=True):
            owned.append(None if tensor is None else self._owned(path, tensor))
        self.persistent: DML_BUFFER_BINDING | None = None
        if any(each is not None for each in owned):
            self.persistent = DML_BUFFER_BINDING(Buffer=self.compiled.initialise(owned))

    def _owned(self, path: Any, tensor: Tensor) -> Any:
        room = np.zeros(tensor.TotalTensorSizeInBytes or 0, np.uint8)
        try:
            data = np.fromfile(path, np.uint8)
        except OSError as problem:
            found = f"{str(path)!r} ({problem.strerror})"
            raise error([model_violation(self.used.where, "(M10)", found, "a file that can be read")]) from None
        room[: data.size] = data[: room.size]
        return self.device.memory.to_device(room)

    def explain(self) -> str:
        return self.compiled.explain()

    def bound(self, command: Dispatch, buffers: Buffers, memory: Mapping[str, Array], there: Mapping[str, Any]) -> Run:
        table = self.device.create_binding_table(self.compiled)
        inputs, outputs = self.used.arrange(command, buffers, there, len(self.compiled.inputs))
        table.bind_inputs(inputs)
        table.bind_outputs(outputs)
        table.bind_persistent_resource(self.persistent)
        return _Run(self.device, self.compiled, table)


class _Run(Run):
    def __init__(self, device: Device, compiled: CompiledGraph, table: BindingTable) -> None:
        self.device = device
        self.compiled = compiled
        self.table = table

    def __call__(self) -> None:
        self.device.dispatch(self.compiled, self.table)


def _node(device: Device, desc: Any, data: bytes | None, name: str) -> Node:
    if desc is None:
        return DML_CONSTANT_DATA_GRAPH_NODE_DESC(Data=data, Name=name)
    return DML_OPERATOR_GRAPH_NODE_DESC(Operator=device.create_operator(desc), Name=name)


def _fits(size: int, tensor: Tensor) -> bool:
    """Whether a file has a tensor's bytes, with or without the padding to 4."""
    total = tensor.TotalTensorSizeInBytes or 0
    return total - 3 <= size <= total
