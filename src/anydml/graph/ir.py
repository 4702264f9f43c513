"""The intermediate representation of a graph that is being compiled: operators, constants, and what reads what.

Passes change it, before kernels are asked for; it knows none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..core.enums import ExecutionFlags
from ..core.errors import error
from ..core.strided_layout import Array, Layout
from ..operators import spec_of
from ..operators.schema import OperatorDesc, OperatorSpec, Tensor
from ..operators.validate import validate
from ..runtime.context import Context, checks_values, fuses, select_kernel, wrong_values
from ..runtime.kernel_selection import KernelSelection
from ..runtime.slots import slots_of
from .desc import DML_CONSTANT_DATA_GRAPH_NODE_DESC, DML_GRAPH_DESC
from .verify import GRAPH, Port, named, order, wiring

INTERNAL = ("ACTIVATION_HARD_SWISH", "ACTIVATION_SWISH")
"""Activations that no desc may fuse, but that native kernels apply to the results of CONVOLUTION and GEMM as all
others."""


@dataclass
class Vertex:
    """An operator of the graph. `sources` says where its inputs come from; None for one that the desc leaves out."""

    name: str
    spec: OperatorSpec
    desc: OperatorDesc
    sources: list[Port | None]
    folded: str = ""
    """The operator that became part of it."""
    titles: tuple[str, ...] = ()
    """What the desc of the graph calls the nodes that it was made of, where they have names."""


class Network:
    """The nodes that are left, in an order in which they can run.

    Args:
        desc: a valid graph, whose constants nobody changes.
        device: where it will run.
        flags: as for an operator.

    Attributes:
        vertices: operators by the number of their node.
        owned: the inputs of the graph that are OWNED_BY_DML.
        prepared: those that depend on what is OWNED_BY_DML alone, and so run once, when that is bound.
        constants: the bytes of what is known.
        targets: what each output of the graph is.
        notes: what was done, in words.
    """

    def __init__(self, desc: DML_GRAPH_DESC, device: Context, flags: ExecutionFlags) -> None:
        sources, self.targets = wiring(desc)
        self.device = device
        self._flags = flags
        self.vertices: dict[int, Vertex] = {}
        self.constants: dict[Port, Array] = {}
        self.notes: list[str] = []
        for i in order(desc):
            node = desc.Nodes[i]
            if isinstance(node, DML_CONSTANT_DATA_GRAPH_NODE_DESC):
                self.constants[Port(i, 0)] = device.memory.to_device(np.frombuffer(node.Data, np.uint8))
            else:
                spec, inner = node.Operator.spec, node.Operator.desc
                fed = [sources.get(Port(i, j)) for j in range(len(spec.inputs(inner)))]
                self.vertices[i] = Vertex(named(desc, i), spec, inner, fed, titles=(node.Name,) if node.Name else ())
        self._numbers = count(len(desc.Nodes))
        self.owned = _owned(desc)
        self.prepared: dict[int, Vertex] = {}
        # Networks repeat layers.
        self._valid: dict[OperatorDesc, bool] = {}
        self._preferences: dict[OperatorDesc, bool] = {}
        self._fused: dict[OperatorDesc, bool] = {}

    @property
    def allows_half_precision(self) -> bool:
        return ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION in self._flags

    def readers(self) -> Counter[Port | None]:
        """How many operators and outputs of the graph read each tensor."""
        readers = Counter(port for vertex in self.vertices.values() for port in vertex.sources)
        readers.update(self.targets.values())
        return readers

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

    def insert(self, port: Port, vertex: Vertex) -> None:
        """Puts an operator between what gives a tensor and all that read it."""
        new = Port(next(self._numbers), 0)
        for each in self.vertices.values():
            each.sources = [new if source == port else source for source in each.sources]
        self.targets = {number: new if source == port else source for number, source in self.targets.items()}
        vertices: dict[int, Vertex] = {}
        for number, each in self.vertices.items():
            vertices[number] = each
            if number == port.node:
                vertices[new.node] = vertex
        self.vertices = vertices

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

    def takes(self, descs: Iterable[OperatorDesc]) -> bool:
        """Whether descs that a pass has made keep the rules."""
        return all(self._looked_up(self._valid, desc, self._is_valid) for desc in descs)

    def _is_valid(self, desc: Any) -> bool:
        activation = spec_of(getattr(desc, "FusedActivation", None))
        if activation is not None and activation.name in INTERNAL:
            desc = replace(desc, FusedActivation=None)
        return not validate(desc, self.device.feature_level, self.device.strict)

    @staticmethod
    def _looked_up(known: dict[OperatorDesc, bool], desc: OperatorDesc, of: Callable[[OperatorDesc], bool]) -> bool:
        found = known.get(desc)
        if found is None:
            found = known[desc] = of(desc)
        return found

    def fuses(self, vertex: Vertex) -> bool:
        """Whether the device runs a chain of operators as one."""
        return self._looked_up(self._fused, vertex.desc, lambda desc: self._fuses(vertex))

    def _fuses(self, vertex: Vertex) -> bool:
        inputs, outputs = (
            [None if tensor is None else Layout.of_desc(tensor) for _, tensor in side(vertex.desc)]
            for side in (vertex.spec.inputs, vertex.spec.outputs)
        )
        return fuses(self.device, vertex.spec, vertex.desc, inputs, outputs)

    def prefers_channels_last(self, vertex: Vertex) -> bool:
        """Whether what would serve a convolution with its channels last is faster so, whatever serves it as it is."""
        return self._looked_up(self._preferences, vertex.desc, lambda desc: self._prefers_channels_last(vertex))

    def _prefers_channels_last(self, vertex: Vertex) -> bool:
        desc: Any = vertex.desc
        sides = {name: getattr(desc, name) for name in ("InputTensor", "OutputTensor")}
        if any(len(tensor.Sizes) != 4 for tensor in sides.values()):
            return False
        laid = replace(desc, **{name: with_channels_last(tensor) for name, tensor in sides.items()})
        return self.step(replace(vertex, desc=laid), 0).served.kernel.channels_last


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
    demands: Context | None
    """The device, where it is asked whether values break a rule."""

    @classmethod
    def of(cls, vertex: Vertex, node: int, device: Context, flags: ExecutionFlags) -> Step:
        spec, desc = vertex.spec, vertex.desc
        slots, written = slots_of(spec, desc)
        reads = [
            None if port is None or slot.aligned is None else Place(port, slot.aligned, _room(slot.tensor))
            for port, slot in zip(vertex.sources, slots, strict=True)
        ]
        writes = [
            None if slot.aligned is None else Place(Port(node, i), slot.aligned, _room(slot.tensor))
            for i, slot in enumerate(written)
        ]
        demands = device if checks_values(device, spec) else None
        return cls(vertex, select_kernel(device, spec, desc, slots, written, flags), reads, writes, demands)

    def check(self, inputs: Sequence[Array | None]) -> None:
        """Refuses values that break a rule."""
        if self.demands is not None:
            wrong = wrong_values(self.demands, self.vertex.spec, self.vertex.desc, inputs)
            if wrong:
                raise error(replace(each, where=f"{self.vertex.name}.{each.where}") for each in wrong)


def with_channels_last(tensor: Tensor) -> Tensor:
    """A tensor of images with each place's channels side by side in memory."""
    _, c, h, w = tensor.Sizes
    return replace(tensor, Strides=(h * w * c, 1, w * c, c))


def _room(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.TotalTensorSizeInBytes or 0
