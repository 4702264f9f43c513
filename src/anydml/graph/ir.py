"""What compiling makes of a graph's nodes before it asks for kernels: constants are folded, activations fused,
element-wise operators chained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.enums import ExecutionFlags
from ..core.errors import error
from ..core.strided_layout import Array, Layout
from ..operators.fused_activation import FUSIBLE, fused_since
from ..operators.pointwise_chain import PointwiseChain
from ..operators.schema import OperatorDesc, OperatorSpec, Tensor, no_value_checks
from ..operators.validate import validate
from ..runtime.binding import Slot
from ..runtime.compiled import KernelSelection
from . import DML_CONSTANT_DATA_GRAPH_NODE_DESC, DML_GRAPH_DESC
from .passes.channels_last import lay_channels_last
from .passes.fold_batch_norm import fold_normalizations
from .passes.fuse_pointwise import chained
from .verify import GRAPH, Port, named, order, wiring

if TYPE_CHECKING:
    from ..runtime.device import Device


@dataclass
class Vertex:
    """An operator of the graph. `sources` says where its inputs come from; None for one that the desc leaves out."""

    name: str
    spec: OperatorSpec
    desc: OperatorDesc
    sources: list[Port | None]
    folded: str = ""
    """The operator that became part of it."""


class Network:
    """The nodes that are left, in an order in which they can run.

    Attributes:
        vertices: operators by the number of their node.
        prepared: those that depend on what is OWNED_BY_DML alone, and so run once, when that is bound.
        constants: the bytes of what is known.
        targets: what each output of the graph is.
        notes: what was done, in words.
    """

    def __init__(self, desc: DML_GRAPH_DESC, device: Device, flags: ExecutionFlags) -> None:
        sources, self.targets = wiring(desc)
        self.device = device
        self._flags = flags
        self.vertices: dict[int, Vertex] = {}
        self.constants: dict[Port, Array] = {}
        self.notes: list[str] = []
        for i in order(desc):
            node = desc.Nodes[i]
            if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC):
                flat = np.frombuffer(node.Data, np.uint8).copy()
                self.constants[Port(i, 0)] = device.memory.to_device(flat)
            else:
                spec, inner = node.Operator.spec, node.Operator.desc
                fed = [sources.get(Port(i, j)) for j in range(len(spec.inputs(inner)))]
                self.vertices[i] = Vertex(named(desc, i), spec, inner, fed)
        self._numbers = count(len(desc.Nodes))
        owned = _owned(desc)
        self._fold()
        self._fuse()
        fold_normalizations(self, owned)
        self._fold()
        self.prepared = self._take_prepared(owned)
        lay_channels_last(self)
        self.vertices = chained(self.vertices, self.targets.values(), device)
        chains = [vertex.name for vertex in self.vertices.values() if isinstance(vertex.desc, PointwiseChain)]
        self.notes += [f"in one pass: {name}" for name in chains]

    def constant(self, array: Array) -> Port:
        """Adds what is known."""
        port = Port(next(self._numbers), 0)
        self.constants[port] = self.device.memory.to_device(array.view(np.uint8))
        return port

    def add(self, vertex: Vertex) -> Port:
        """Adds an operator behind all others."""
        port = Port(next(self._numbers), 0)
        self.vertices[port.node] = vertex
        return port

    def replace(self, given_by: Mapping[Port | None, Port]) -> None:
        """Reads tensors from where others give them; the operators that gave them are no longer there."""
        for port in given_by:
            if port is not None:
                del self.vertices[port.node]
        for vertex in self.vertices.values():
            vertex.sources = [given_by.get(port, port) for port in vertex.sources]
        self.targets = {number: given_by.get(port, port) for number, port in self.targets.items()}

    def step(self, vertex: Vertex, node: int) -> Step:
        """An operator with its kernel."""
        return Step.of(vertex, node, self.device, self._flags)

    def prefers_channels_last(self, vertex: Vertex) -> bool:
        """Whether the engine that serves it says so."""
        return self.step(vertex, 0).served.kernel.channels_last

    def _take_prepared(self, owned: set[Port]) -> dict[int, Vertex]:
        prepared: dict[int, Vertex] = {}
        for i, vertex in list(self.vertices.items()):
            fed = [port for port in vertex.sources if port is not None and port not in self.constants]
            if all(port in owned or port.node in prepared for port in fed):
                prepared[i] = self.vertices.pop(i)
        if prepared:
            names = ", ".join(vertex.name for vertex in prepared.values())
            self.notes.append(f"run once, when it is initialised: {names}")
        return prepared

    def _fold(self) -> None:
        """Runs what depends on constants alone."""
        folded = []
        for i, vertex in list(self.vertices.items()):
            if any(port is not None and port not in self.constants for port in vertex.sources):
                continue
            step = self.step(vertex, i)
            memory = self.device.memory
            outputs = {
                place.port: memory.empty((place.room,), np.dtype(np.uint8))
                for place in step.writes
                if place is not None
            }
            known = {**self.constants, **outputs}
            read, written = (
                [None if place is None else memory.view(place.layout, known[place.port], 0) for place in side]
                for side in (step.reads, step.writes)
            )
            step.check(read)
            step.served.kernel.run(read, written)
            self.constants |= outputs
            folded.append(vertex.name)
            del self.vertices[i]
        if folded:
            self.notes.append(f"folded into constants: {', '.join(folded)}")

    def _fuse(self) -> None:
        """Makes an activation a member of the operator whose result nothing else reads."""
        readers = Counter(port for vertex in self.vertices.values() for port in vertex.sources)
        readers.update(self.targets.values())
        given_by: dict[Port | None, Port] = {}
        for i, activation in list(self.vertices.items()):
            source = activation.sources[0] if activation.sources else None
            if activation.spec.name not in FUSIBLE or source is None or readers[source] != 1:
                continue
            producer = self.vertices.get(source.node)
            fused = None if producer is None else self._fused(producer, activation)
            if producer is None or fused is None:
                continue
            producer.desc = fused
            given_by[Port(i, 0)] = source
            self.notes.append(f"{activation.name} fused into {producer.name}")
        self.replace(given_by)

    def _fused(self, producer: Vertex, activation: Vertex) -> OperatorDesc | None:
        """The desc of both in one, where the rules allow it."""
        since = fused_since(activation.spec.name, producer.spec.name)
        inner: Any = activation.desc
        outer: Any = producer.desc
        if since is None or since > self.device.feature_level or getattr(outer, "FusedActivation", self) is not None:
            return None
        between = Layout.of_desc(outer.OutputTensor), Layout.of_desc(inner.InputTensor)
        if not between[0].same_place(between[1]):
            return None
        alone = replace(inner, **dict.fromkeys(activation.spec.tensors))
        both: OperatorDesc = replace(outer, FusedActivation=alone, OutputTensor=inner.OutputTensor)
        return None if validate(both, self.device.feature_level, self.device.strict) else both


def _owned(desc: DML_GRAPH_DESC) -> set[Port]:
    """The inputs of a graph that are OWNED_BY_DML."""
    owned = set()
    for edge in desc.InputEdges:
        node: Any = desc.Nodes[edge.ToNodeIndex]
        tensor = node.Operator.spec.inputs(node.Operator.desc)[edge.ToNodeInputIndex][1]
        if tensor.Flags:
            owned.add(Port(GRAPH, edge.GraphInputIndex))
    return owned


class Place(NamedTuple):
    """A tensor that a kernel reads or writes, and how it lies there."""

    port: Port
    layout: Layout
    room: int
    """The tensor's TotalTensorSizeInBytes, which connected tensors share, however many of its bytes each spans."""


class Step(NamedTuple):
    """A kernel, and what it reads and writes; None for what the desc leaves out."""

    vertex: Vertex
    served: KernelSelection
    reads: list[Place | None]
    writes: list[Place | None]
    demands: Device | None
    """The device, where it is asked whether values break a rule."""

    @classmethod
    def of(cls, vertex: Vertex, node: int, device: Device, flags: ExecutionFlags) -> Step:
        spec, desc = vertex.spec, vertex.desc
        layouts = [None if t is None else Layout.of_desc(t) for _, t in spec.inputs(desc)]
        aligned = spec.align(desc, layouts)
        results = [None if t is None else Layout.of_desc(t) for _, t in spec.outputs(desc)]
        slots = [Slot(label, t, None, each) for (label, t), each in zip(spec.inputs(desc), aligned, strict=True)]
        written = [
            Slot(label, t, each, each, True) for (label, t), each in zip(spec.outputs(desc), results, strict=True)
        ]
        reads = [
            None if port is None or slot.aligned is None else Place(port, slot.aligned, _room(slot.tensor))
            for port, slot in zip(vertex.sources, slots, strict=True)
        ]
        writes = [
            None if slot.aligned is None else Place(Port(node, i), slot.aligned, _room(slot.tensor))
            for i, slot in enumerate(written)
        ]
        skips_value_checks = not device.memory.is_host and not device.debug
        demands = None if skips_value_checks or spec.check_values is no_value_checks else device
        return cls(vertex, device.compile(spec, desc, slots, written, flags), reads, writes, demands)

    def check(self, inputs: Sequence[Array | None]) -> None:
        """Refuses values that break a rule."""
        if self.demands is not None:
            wrong = self.demands.check_values(self.vertex.spec, self.vertex.desc, inputs)
            if wrong:
                raise error(replace(each, where=f"{self.vertex.name}.{each.where}") for each in wrong)


def _room(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.TotalTensorSizeInBytes or 0
